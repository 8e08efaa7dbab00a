"""The engine on an accelerator beside all processors of the same machine: time of a sweep and of a warm call.

    python benchmarks/accelerator.py                 # both, each in a process of its own, and the table
    python benchmarks/accelerator.py --sizes small   # to see that it runs
    python benchmarks/accelerator.py --only skills --only batch

Every case is a model of another benchmark, at a size for which people ask for a GPU. A sweep's seconds are those of
`posterior.timing`, so without planning and without reading the data; a call's are those of a whole warm call, with the
way of the data to the device and of the posterior back. Trees are searched by kernels that stay on the processor.
"""

import os

os.environ.setdefault("XLA_FLAGS", "")  # the modules below would give XLA one thread
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import argparse
import json
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path

import numpy as np

PLATFORMS = {"processor": "cpu", "accelerator": "cuda,cpu"}


def swept(program, data):
    """One warm call: seconds of a sweep, of the call, sweeps and log evidence."""
    begin = time.perf_counter()
    posterior = program(data)
    call = time.perf_counter() - begin
    evidence = float(posterior.log_evidence)
    return {"unit": posterior.timing.run / posterior.iterations, "call": call, "answer": evidence}


def skills(cv, small):
    from tournament import model, tournament

    players, games = (100, 1_000) if small else (10_000, 200_000)
    winner, loser = tournament(players, games)
    program = cv.compile(model(cv), observed=[], method="ep", sizes={"player": players}, execution="compile")
    return "sweep", lambda: swept(program, {"winner": winner, "loser": loser})


def logistic(cv, small, method="ncvmp"):
    import logistic as benchmark

    rows, columns = (1_000, 10) if small else (1_000_000, 100)
    x, y = benchmark.data(rows, columns)
    program = cv.compile(
        benchmark.model(cv, columns), observed=["y"], method=method, sizes={"row": rows}, execution="compile"
    )
    return "sweep", lambda: swept(program, {"x": x, "y": y})


def logistic_ep(cv, small):
    return logistic(cv, small, "ep")


def mixture(cv, small, joint=False, rows=1_000_000, **options):
    import mixture as benchmark

    rows = 1_000 if small else rows
    x = benchmark.data(rows)
    program = cv.compile(
        benchmark.model(cv, joint),
        observed=["x"],
        sizes={"n": rows},
        max_iterations=10,
        execution="compile",
        **options,
    )
    return "sweep", lambda: swept(program, {"x": x})


def mixture_ep(cv, small):
    return mixture(cv, small, joint=True, rows=10_000, method="ep")


def batch(cv, small, large=10_000):
    import logistic as benchmark

    number, rows, columns = 20 if small else large, 50, 3
    datas = [dict(zip("xy", benchmark.data(rows, columns, seed), strict=True)) for seed in range(number)]
    program = cv.compile(
        benchmark.model(cv, columns), observed=["y"], method="ep", sizes={"row": rows}, execution="compile"
    )

    def run():
        begin = time.perf_counter()
        results = program.batch(datas)
        call = time.perf_counter() - begin
        return {"unit": call / number, "call": call, "answer": float(results.log_evidence.sum())}

    return "model", run


def large_batch(cv, small):
    return batch(cv, small, 100_000)


def chain(program, data, steps):
    def run():
        begin = time.perf_counter()
        evidence = float(program(data).log_evidence)
        call = time.perf_counter() - begin
        return {"unit": call / steps, "call": call, "answer": evidence}

    return "step", run


def smoother(cv, small):
    import chains

    steps = 500 if small else 100_000
    return chain(chains.smoother_program(steps), {"y": chains.smoother_data(steps)}, steps)


def hidden_markov(cv, small):
    import chains

    steps = 500 if small else 100_000
    transition, value, y = chains.markov_data(steps, 10)
    return chain(chains.markov_program(steps, 10), {"transition": transition, "value": value, "y": y}, steps)


def gibbs(cv, small):
    import logistic as benchmark

    rows, columns, draws = (100, 3, 20) if small else (10_000, 50, 100)
    x, y = benchmark.data(rows, columns)
    model = benchmark.model(cv, columns)

    def run():
        begin = time.perf_counter()
        draws_of = cv.sample(model, {"x": x, "y": y}, draws=draws, warmup=draws, chains=16, seed=0)
        call = time.perf_counter() - begin
        return {"unit": call / (2 * draws), "call": call, "answer": float(np.mean(draws_of["w"]))}

    return "draw of 16 chains", run


CASES = {
    "skills": ("EP, 10,000 players, 200,000 games", skills),
    "logistic": ("NCVMP, 1,000,000 x 100", logistic),
    "mixture": ("VMP, 1,000,000 rows, 5 dimensions, 10 components", mixture),
    "batch": ("EP, 10,000 logistic regressions of 50 x 3", batch),
    "large batch": ("EP, 100,000 logistic regressions of 50 x 3", large_batch),
    "smoother": ("100,000 steps, 2 dimensions", smoother),
    "hidden Markov": ("100,000 steps, 10 states", hidden_markov),
    "logistic EP": ("EP, 1,000,000 x 100", logistic_ep),
    "gibbs": ("Polya-gamma, 10,000 x 50", gibbs),
    "mixture EP": ("EP, 10,000 rows, 5 dimensions, 10 components", mixture_ep),
}


def measure(name, small, repeats):
    """A case on this process's platform: the first call, then warm ones."""
    import cavity as cv

    unit, run = CASES[name][1](cv, small)
    begin = time.perf_counter()
    first = run()
    cold = time.perf_counter() - begin
    rounds = [run() for _ in range(1 if cold > 100.0 else repeats)]
    best = min(rounds, key=lambda one: one["unit"])
    return {
        "of": unit,
        "cold": cold,
        "unit": best["unit"],
        "call": min(one["call"] for one in rounds),
        "slowest": max(one["unit"] for one in rounds),
        "answer": first["answer"],
    }


def measure_all(names, small, repeats, path):
    """All cases in this process; each that fails says why in its place."""
    import harness
    import jax

    warnings.simplefilter("ignore")
    device = str(jax.devices()[0].device_kind)
    found = {"device": device, "jax": jax.__version__, "machine": harness.machine(), "cases": {}}
    for name in names:
        try:
            found["cases"][name] = measure(name, small, repeats)
        except Exception as problem:
            traceback.print_exc()
            found["cases"][name] = {"problem": f"{type(problem).__name__}: {problem}"[:300]}
        print(device, name, found["cases"][name], flush=True)
        Path(path).write_text(json.dumps(found))


def elsewhere(platform, arguments, names, path):
    """`measure_all` in a process that knows this platform alone."""
    command = [sys.executable, __file__, "--here", path, "--repeats", str(arguments.repeats)]
    command += ["--sizes", arguments.sizes, *(f"--only={name}" for name in names)]
    subprocess.run(command, env={**os.environ, "JAX_PLATFORMS": PLATFORMS[platform]}, check=False)
    return json.loads(Path(path).read_text())


def shown(seconds):
    return f"{1e3 * seconds:.3g} ms" if seconds >= 1e-3 else f"{1e6 * seconds:.3g} us"


def line(name, one, other):
    """A row of the table: processor, accelerator, ratios, and whether both gave the same answer."""
    for found in (one, other):
        if "problem" in found:
            return [name, CASES[name][0], found["problem"].split("\n")[0][:80], *[""] * 6]
    difference = abs(one["answer"] - other["answer"]) / max(abs(one["answer"]), 1e-300)
    return [
        name,
        CASES[name][0],
        one["of"],
        shown(one["unit"]),
        shown(other["unit"]),
        f"{one['unit'] / other['unit']:.3g} ({one['unit'] / other['slowest']:.3g})",
        f"{one['call'] / other['call']:.3g}",
        f"{one['cold']:.3g} s, {other['cold']:.3g} s",
        f"{difference:.1g}",
    ]


COLUMNS = ["case", "", "unit", "processor", "accelerator", "ratio (worst round)", "call", "first calls", "difference"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=list(CASES), help="only these cases")
    parser.add_argument("--sizes", choices=["small", "large"], default="large")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument(
        "--keep", help="a folder for what each platform gave; what is there already is not measured again"
    )
    parser.add_argument("--here", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    names = arguments.only or list(CASES)
    if arguments.here:
        measure_all(names, arguments.sizes == "small", arguments.repeats, arguments.here)
        return
    folder = Path(arguments.keep or tempfile.mkdtemp())
    found = {}
    for platform in reversed(PLATFORMS):
        path = folder / f"{platform}.json"
        found[platform] = json.loads(path.read_text()) if path.exists() else elsewhere(platform, arguments, names, path)
    import harness

    report = harness.Report("accelerator", sizes=arguments.sizes, repeats=arguments.repeats)
    report.content["machine"] = found["accelerator"]["machine"]  # where it was measured, which may be another
    cases = {platform: content["cases"] for platform, content in found.items()}
    lines = [
        line(name, cases["processor"][name], cases["accelerator"][name])
        for name in names
        if all(name in each for each in cases.values())
    ]
    note = (
        f"{found['accelerator']['device']} beside the processors of the same machine, all of them, "
        f"JAX {found['accelerator']['jax']}, float64. Ratios: time on the processors over that on the accelerator, of "
        "a unit and of a whole warm call; difference: of the two answers (log evidence; of draws their mean), relative."
    )
    report.table("An accelerator beside processors", note, COLUMNS, lines, found)


if __name__ == "__main__":
    main()
