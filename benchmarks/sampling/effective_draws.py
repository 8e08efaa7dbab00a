"""Effective draws a second: cavity's compiled Gibbs beside a hand-written sampler, NumPyro's NUTS and JAGS.

One chain and one thread for each. A round runs every contestant once, with what it compiled before; its time is that
of draws and warming up, for JAGS less that of a run of few draws, which reads and compiles. Effective draws are the
least, over the numbers that are watched, of ArviZ's bulk effective sample size; what is watched does not depend on the
order of classes or the rotation of factors.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import harness

# isort: split
import statistics
import time
import warnings

import by_hand
import by_jags
import cases
import numpy as np

WARMUP = 500
DRAWS = {"cavity": 4000, "by hand": 4000, "NumPyro NUTS": 1000, "JAGS": 2000}
FEW = 10
SHORTER = {("topics", "NumPyro NUTS"): 200, ("factor model", "NumPyro NUTS"): 300, ("topics", "JAGS"): 500}


def effective(case, draws):
    """The least effective sample size of what is watched."""
    import arviz

    watched = cases.WATCHED[case](draws, cases.DATA[case])
    found = arviz.ess(arviz.convert_to_dataset({name: np.asarray(array) for name, array in watched.items()}))
    return min(float(found[name].min()) for name in watched)


def contestants():
    """The rooms of samplers that are there, by name."""
    import by_nuts
    import ours

    rooms = {"cavity": ours, "by hand": by_hand, "NumPyro NUTS": by_nuts}
    if by_jags.AVAILABLE:
        rooms["JAGS"] = by_jags
    return rooms


def timed(sample, draws, seed, name):
    begin = time.perf_counter()
    found = sample(draws, WARMUP, seed)
    seconds = time.perf_counter() - begin
    if name == "JAGS":
        begin = time.perf_counter()
        sample(FEW, 0, seed)
        seconds -= time.perf_counter() - begin
    return found, max(seconds, 1e-9)


def measured(case, rounds):
    """By contestant its effective draws a second in each round, and microseconds for each transition."""
    found, samplers = {}, {name: room.sampler(case) for name, room in contestants().items()}
    for number in range(rounds + 1):
        for name, sample in samplers.items():
            draws = SHORTER.get((case, name), DRAWS[name])
            kept, seconds = timed(sample, draws, number, name)
            if number:  # the first compiles
                rate = effective(case, kept) / seconds
                found.setdefault(name, []).append((rate, 1e6 * seconds / (draws + WARMUP)))
    return found


def cells(found):
    """Effective draws a second, microseconds of a transition, and cavity's rate over each in the same rounds."""
    for name, rounds in found.items():
        rate, each = (statistics.median(column) for column in zip(*rounds, strict=True))
        ratios = [ours[0] / theirs[0] for ours, theirs in zip(found["cavity"], rounds, strict=True)]
        spread = f"{statistics.median(ratios):.3g} ({min(ratios):.3g}, {max(ratios):.3g})"
        yield name, f"{rate:.4g}", f"{each:.4g}", spread


def main():
    options = harness.options(__doc__)
    options.add_argument("cases", nargs="*", default=list(cases.DATA))
    asked = options.parse_args()
    report = harness.Report("effective_draws", warmup=WARMUP, draws=DRAWS, rounds=asked.repeats)
    warnings.simplefilter("ignore")
    for case in asked.cases:
        found = measured(case, asked.repeats)
        columns = ["", "effective draws a second", "microseconds a transition", "cavity over it (least, most)"]
        report.table(case, "One chain, one thread.", columns, [list(line) for line in cells(found)], found)


if __name__ == "__main__":
    main()
