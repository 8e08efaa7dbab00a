"""The default call, warm, beside NUTS to the same error, of models that `second_opinions.py` has NumPyro programs of.

    python benchmarks/first_hour/speed.py [--only NAME ...] [--write]

Both are timed in one process, alone on the machine, when all is compiled: cavity's third call of a model, and NUTS run
again with other keys. The error of cavity is the worst of its means against the reference, in sds, at least .02; NUTS
has it when its least effective size is one over its square: its time is that of the warm-up and of so many draws.
`--write` makes docs/benchmarks/nuts_speed.md.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import harness

# isort: split
import argparse
import time
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
PAGE = Path(__file__).resolve().parents[2] / "docs" / "benchmarks" / "nuts_speed.md"


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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [name for name in second_opinions.PROGRAMS if name in table.declared()]
    parser.add_argument("--only", nargs="+", default=names, choices=names, metavar="NAME")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    rows = []
    for name in options.only:
        began = time.perf_counter()
        try:
            rows.append(row(name))
        except Exception as error:  # one model that fails is no reason to lose the others
            print(f"{name}: {type(error).__name__}: {str(error)[:100]}", flush=True)
            continue
        found = rows[-1]
        took = time.perf_counter() - began
        print(
            f"{name}: {found[1]} {found[2]:.3f} {found[3]:.3f} {found[4]:.3f} {found[5]:.1f} ({took:.0f} s)", flush=True
        )
    ratios = sorted(found[-1] for found in rows)
    head = f"Median of {len(rows)}: {np.median(ratios):.1f} times as fast, from {ratios[0]:.2f} to {ratios[-1]:.0f}."
    print(head)
    if options.write:
        lines = [
            f"| {name} | {mark} | {error:.3f} | {spent:.3f} | {other:.3f} | {ratio:.1f} |"
            for name, mark, error, spent, other, ratio in rows
        ]
        machine = harness.machine()
        about = f"{machine['date']}, {machine['processor']}, {machine['cores']} cores, commit {machine['commit']}."
        text = (
            "# The default call beside NUTS\n\n"
            + __doc__.split("\n\n")[2].replace("`--write` makes docs/benchmarks/nuts_speed.md.", "").strip()
            + f"\n\n{head} {about}\n\n"
            + "| model | mark | worst mean (sd) | cavity, CPU s | NUTS, CPU s | NUTS over cavity |\n"
            + "| --- | --- | --- | --- | --- | --- |\n"
            + "\n".join(lines)
            + "\n"
        )
        PAGE.write_text(text)


if __name__ == "__main__":
    main()
