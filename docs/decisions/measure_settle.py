"""What `engine/support/computed_once.py` saves: the time of a sweep of a mixture; the numbers of 0003-settle.md.

Run from a checkout: OPENBLAS_NUM_THREADS=1 python docs/decisions/measure_settle.py
"""

import statistics
import time

import numpy as np

import cavity as cv
from cavity.engine.run import judging, machine
from cavity.models import mixture

ROWS, COMPONENTS, DIMENSION = 10_000, 10, 5


def milliseconds_a_sweep(x):
    """Median over repeats of the difference between 60 and 20 sweeps, so that calls and starts drop out."""
    programs = [
        cv.compile(mixture(COMPONENTS, DIMENSION), ["x"], max_iterations=sweeps, tolerance=1e-300, acceleration=0)
        for sweeps in (20, 60)
    ]
    for program in programs:
        program({"x": x})
    found = []
    for _ in range(7):
        marks = [time.perf_counter()]
        for program in programs:
            program({"x": x}).log_evidence  # noqa: B018 (waits for the result)
            marks.append(time.perf_counter())
        found.append((marks[2] - 2 * marks[1] + marks[0]) / 40)
    return 1e3 * statistics.median(found)


def main():
    rng = np.random.default_rng(5)
    centres = rng.normal(scale=4.0, size=(COMPONENTS, DIMENSION))
    x = centres[rng.integers(COMPONENTS, size=ROWS)] + rng.normal(size=(ROWS, DIMENSION))
    print(f"with settle:    {milliseconds_a_sweep(x):.2f} ms")
    for module in (machine, judging):
        module.computed_once = lambda tree, always: tree
    print(f"without settle: {milliseconds_a_sweep(x):.2f} ms")


if __name__ == "__main__":
    main()
