"""CPU time from a cold process to the first posterior: cavity, and beside it NumPyro, PyMC with nutpie and statsmodels.

    python benchmarks/first_answer.py [--rounds 3] [--parts imports posteriors everyday] [--models NAME ...]

Every number is of a process of its own with empty caches (but for Python's bytecode), user and system time together,
one after the other in turns. A peer that is not installed is left out with a word: `pip install pymc nutpie` brings
PyMC (a few hundred megabytes, so that it is not in the extra `bench`), the others come with that extra.
"""

import harness

# isort: split
import argparse
import importlib.util
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import everyday
import first_posterior

HERE = Path(__file__).parent
TARGETS = dict.fromkeys(("coin", "mean and precision", "skills", "logistic regression"), 0.5)  # seconds; the others:
TARGET = 1.5
PACKAGES = {
    "cavity": ("cavity",),
    "NumPyro": ("numpyro",),
    "PyMC": ("pymc", "nutpie"),
    "statsmodels": ("statsmodels",),
}
IMPORTED = ("numpy", "jax", "cavity")


def fresh(*command, cache="off"):
    """What a new process prints as json; cavity keeps what it compiles in `cache`, peers find empty folders."""
    with tempfile.TemporaryDirectory() as folder:
        caches = {
            "CAVITY_CACHE": str(cache),
            "PYTENSOR_FLAGS": f"base_compiledir={folder}/pytensor",
            "NUMBA_CACHE_DIR": f"{folder}/numba",
        }
        done = subprocess.run(
            [sys.executable, *map(str, command)], env=os.environ | caches, capture_output=True, text=True
        )
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def seconds(values):
    """Median, smallest and largest."""
    found = harness.spread(values)
    return f"{found['median']:.2f} ({found['min']:.2f}, {found['max']:.2f})"


def milliseconds(values):
    return f"{1e3 * statistics.median(values):.3g}"


# the first posterior of seven models ---------------------------------------------------------------------------------


def posteriors(report, rounds, wanted):
    """First, second and further calls of each model, as infer does by default and as machine code."""
    problems = [name for name in first_posterior.PROBLEMS if wanted(name)]
    for execution in TITLES:
        found, nexts = {name: [] for name in problems}, {name: [] for name in problems}
        with tempfile.TemporaryDirectory() as folder:
            commands = {name: (HERE / "first_posterior.py", name, execution) for name in problems}
            filled = {name: Path(folder) / str(number) for number, name in enumerate(problems)}
            for name in problems:  # this also warms the bytecode
                filled[name].mkdir(mode=0o700)
                fresh(*commands[name], cache=filled[name])
            for _ in range(rounds):
                for name in problems:
                    found[name].append(fresh(*commands[name]))
                    nexts[name].append(fresh(*commands[name], cache=filled[name])["first"]["cpu"])
        lines = [posterior_line(name, found[name], nexts[name]) for name in problems]
        report.table(TITLES[execution], NOTE, COLUMNS, lines, found | {"next process": nexts})


TITLES = {"auto": "First posterior, as infer does by default", "compile": 'First posterior, execution="compile"'}
COLUMNS = (
    "", "target s", "first s", "second ms", "declared again ms", "one row more ms", "traced", "next process s",
)  # fmt: skip
NOTE = (
    "CPU time from after the import of cavity and NumPy to means and standard deviations; median (smallest, largest). "
    "Then in the same process: the same call, the same model declared again by the same code, and data with one row "
    "more; traced says which of these three had to trace a program. Next process: the first call of a process that "
    "finds the folder of compiled programs as an earlier one left it; all others have none."
)


def posterior_line(name, runs, nexts):
    first, second, anew, more = ([run[call]["cpu"] for run in runs] for call in ("first", "second", "anew", "more"))
    traced = ", ".join(str(max(run[call]["traced"] for run in runs)) for call in ("second", "anew", "more"))
    calls = map(milliseconds, (second, anew, more))
    return [name, str(TARGETS.get(name, TARGET)), seconds(first), *calls, traced, seconds(nexts)]


# imports -------------------------------------------------------------------------------------------------------------


def imports(report, rounds, _):
    """CPU seconds of importing packages; one run before warms Python's bytecode."""
    repeats = max(5, rounds)
    found = {name: [] for name in IMPORTED}
    for number in range(repeats + 1):
        for name in IMPORTED:
            code = f"import time; began = time.process_time(); import {name}; print(time.process_time() - began)"
            spent = fresh("-P", "-c", code)
            if number:
                found[name].append(spent)
    lines = [[f"import {name}", seconds(values)] for name, values in found.items()]
    note = f"CPU seconds, median of {repeats} processes (smallest, largest)."
    report.table("Imports", note, ("", "s"), lines, found)


# eight everyday models beside the peers ------------------------------------------------------------------------------


def installed(contestant):
    return all(importlib.util.find_spec(package) for package in PACKAGES[contestant])


def contestants_of(name):
    """The installed contestants that have a program for this model."""
    able = [one for one in everyday.CONTESTANTS if one != "statsmodels" or everyday.MODELS[name].statsmodels]
    return [one for one in able if installed(one)]


def contest(report, rounds, wanted):
    """Every contestant with every model, in turns; answers are compared with those of cavity."""
    models = [name for name in everyday.MODELS if wanted(name)]
    pairs = [(name, contestant) for name in models for contestant in contestants_of(name)]
    for contestant in {contestant: name for name, contestant in reversed(pairs)}:  # one run warms the bytecode
        fresh(HERE / "everyday.py", contestant, models[0])
    found = {pair: [] for pair in pairs}
    for _ in range(rounds):
        for name, contestant in pairs:
            found[name, contestant].append(fresh(HERE / "everyday.py", contestant, name))
    lines = [everyday_line(name, one, runs, found.get((name, "cavity"))) for (name, one), runs in found.items()]
    kept = {f"{name}: {contestant}": runs for (name, contestant), runs in found.items()}
    report.table(
        "Eight everyday models, from a cold process to the first summary", contest_note(), EVERYDAY, lines, kept
    )


EVERYDAY = (
    "model", "by", "with imports s", "without imports s", "means apart, sd", "sd over that of cavity",
)  # fmt: skip


def contest_note():
    left_out = [name for name in everyday.CONTESTANTS if not installed(name)]
    words = [
        "CPU time until means and standard deviations of the parameters are there; median (smallest, largest). cavity "
        "is `cv.infer(model, data)`; NumPyro and PyMC (sampler: nutpie) are NUTS, one chain, 1000 draws after 1000 for "
        "warm-up; statsmodels maximises the likelihood, without priors and without the hierarchies. Means apart: the "
        "largest distance of a parameter's mean from that of cavity, in cavity's standard deviations; then the "
        "smallest and the largest ratio of standard deviations. Chains have errors of their own, of about .05."
    ]
    if left_out:
        words.append(f"Not installed, so left out: {', '.join(left_out)}.")
    if "PyMC" not in left_out and not shutil.which("g++"):
        words.append("There is no C++ compiler here, which PyTensor would use.")
    return " ".join(words)


def everyday_line(name, contestant, runs, ours):
    times = [seconds([run[kind] for run in runs]) for kind in ("cpu", "without imports")]
    return [name, contestant, *times, *apart(runs[0]["found"], ours[0]["found"] if ours else {})]


def apart(found, ours):
    """The farthest mean, and the range of the ratios of standard deviations, over the parameters that both have."""
    both = [
        (mean, sd, our_mean, our_sd)
        for name in found.keys() & ours.keys()
        for mean, sd, our_mean, our_sd in zip(*found[name], *ours[name], strict=True)
    ]
    if not both:
        return ["", ""]
    ratios = [sd / our_sd for _, sd, _, our_sd in both]
    farthest = max(abs(mean - our_mean) / our_sd for mean, _, our_mean, our_sd in both)
    return [f"{farthest:.2f}", f"{min(ratios):.2f} to {max(ratios):.2f}"]


PARTS = {"imports": imports, "posteriors": posteriors, "everyday": contest}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="processes for each number")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), help="sections of the page")
    parser.add_argument("--models", nargs="+", default=[""], metavar="NAME", help="only models whose name begins so")
    arguments = parser.parse_args()
    report = harness.Report("first_answer", rounds=arguments.rounds)
    for part in arguments.parts:
        PARTS[part](report, arguments.rounds, lambda name: name.startswith(tuple(arguments.models)))


if __name__ == "__main__":
    main()
