"""The default call, warm, beside NUTS to the same error, of models that `second_opinions.py` has NumPyro programs of.

    python benchmarks/first_hour/speed.py [--only NAME ...] [--write]

Both are timed in one process for each model, alone on the machine, when all is compiled: cavity's third call of a
model, and NUTS run again with other keys. The error of cavity is the worst of its means against the reference, in sds,
at least .02; NUTS has it when its least effective size is one over its square: its time is that of the warm-up and of
so many draws.
`--write` makes docs/first-hour-speed.md.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import harness

# isort: split
import argparse
import subprocess
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import second_opinions
import table
from numpyro.diagnostics import effective_sample_size
from numpyro.infer import MCMC, NUTS

import cavity as cv

FLOOR = 0.02  # of the error that both are asked for, in sds: 2,500 effective draws
WARM_UP, DRAWS = 500, 1000
PAGE = Path(__file__).resolve().parents[2] / "docs" / "first-hour-speed.md"


def seconds(run):
    """CPU time of a call, and what it returns."""
    began = harness.cpu_seconds()
    found = run()
    return harness.cpu_seconds() - began, found


def ours(name):
    """CPU seconds of the third call, and the worst error of its means."""
    file, function = table.declared()[name]
    model, data, *options = function()
    call = lambda: cv.infer(model, data, **(options[0] if options else {}))  # noqa: E731
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        call(), call()
        spent, posterior = seconds(call)
    worst = table.compared(posterior, table.reference_of(file, name))
    return spent, max(one["distance"] for kind, one in worst.items() if kind == "mean"), table.mark(worst)


def nuts(name):
    """CPU seconds of a warm-up, of a draw, and effective draws for each draw."""
    _, data, *_ = table.declared()[name][1]()
    data = {key: jnp.asarray(array) for key, array in data.items()}
    sampler = MCMC(NUTS(second_opinions.PROGRAMS[name]), num_warmup=WARM_UP, num_samples=DRAWS, progress_bar=False)

    def run(seed):
        sampler.run(jax.random.key(seed), data)
        return jax.block_until_ready(sampler.get_samples())

    def warm_up(seed):
        sampler.warmup(jax.random.key(seed), data)

    with jax.enable_x64(True):
        run(0)
        spent, draws = seconds(lambda: run(1))
        warm_up(0)
        first, _ = seconds(lambda: warm_up(1))
        least = min(float(np.min(effective_sample_size(np.asarray(values)[None]))) for values in draws.values())
    return first, max(spent - first, 1e-6) / DRAWS, least / DRAWS


def row(name):
    """One line of the table."""
    spent, error, mark = ours(name)
    first, each, effective = nuts(name)
    needed = 1.0 / max(error, FLOOR) ** 2
    other = first + each * needed / effective
    return name, mark, error, spent, other, other / spent


def in_own_process(name):
    """The row of a model, timed in a process of its own: machine code of many would fill the map of one's memory."""
    done = subprocess.run([sys.executable, __file__, "--only", name], capture_output=True, text=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith(f"{name}: ")]
    return read(lines[0]) if lines else f"{name}: {done.stderr.strip().splitlines()[-1][:100]}"


def written(found):
    """A row as a line."""
    name, mark, error, spent, other, ratio = found
    return f"{name}: {mark} {error:.3f} {spent:.3f} {other:.3f} {ratio:.1f}"


def read(line):
    """The row of such a line; the line itself where it tells why there is none."""
    name, rest = line.split(": ", 1)
    *mark, error, spent, other, ratio = rest.split()
    return name, " ".join(mark), *map(float, (error, spent, other, ratio))


def page(rows):
    """docs/first-hour-speed.md."""
    machine = harness.machine()
    about = f"{machine['date']}, {machine['processor']}, {machine['cores']} cores, commit {machine['commit']}."
    told = __doc__.split("\n\n")[2].replace("`--write` makes docs/first-hour-speed.md.", "").strip()
    lines = [
        f"| {name} | {mark} | {error:.3f} | {spent:.3f} | {other:.3f} | {ratio:.1f} |"
        for name, mark, error, spent, other, ratio in rows
    ]
    head = ["| model | mark | worst mean (sd) | cavity, CPU s | NUTS, CPU s | NUTS over cavity |", "| --- " * 6 + "|"]
    return "\n".join(
        ["# The default call beside NUTS", "", told, "", f"{summary(rows)} {about}", "", *head, *lines, ""]
    )


def summary(rows):
    """The ratios in a line."""
    ratios = sorted(found[-1] for found in rows)
    return f"Median of {len(rows)}: {np.median(ratios):.1f} times as fast, from {ratios[0]:.2f} to {ratios[-1]:.0f}."


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [name for name in second_opinions.PROGRAMS if name in table.declared()]
    parser.add_argument("--only", nargs="+", default=names, choices=names, metavar="NAME")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    one = row if len(options.only) == 1 else in_own_process
    found = []
    for name in options.only:
        found.append(one(name))
        print(found[-1] if isinstance(found[-1], str) else written(found[-1]), flush=True)
    rows = [one for one in found if not isinstance(one, str)]
    print(summary(rows))
    if options.write:
        PAGE.write_text(page(rows))


if __name__ == "__main__":
    main()
