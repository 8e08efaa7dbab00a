"""Compiled Gibbs sampling: effective draws a second beside other samplers, sweeps beside those of VMP, and NSFA.

Peers are a sampler written by hand for the model (numba where a loop asks for it), NumPyro's NUTS, and JAGS where its
program is installed. One chain and one thread for each. A round runs every contestant once, with what it compiled
before; its time is that of draws and warming up, for JAGS less that of a run of few draws, which reads and compiles.
Effective draws are the least, over the numbers that are watched, of ArviZ's bulk effective sample size; what is watched
does not depend on the order of classes or the rotation of factors.
"""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent / "sampling"), str(Path(__file__).parent / "nsfa")]

import harness

# isort: split
import statistics
import time
import warnings

import by_hand
import by_jags
import cases
import numpy as np
import ours

WARMUP = 500
DRAWS = {"cavity": 4000, "by hand": 4000, "NumPyro NUTS": 1000, "JAGS": 2000}
SHORTER = {("topics", "NumPyro NUTS"): 200, ("factor model", "NumPyro NUTS"): 300, ("topics", "JAGS"): 500}
FEW = 10
SWEEPS = 4000
VMP_SWEEPS = 1000
ROWS, SAMPLES, FACTORS = 226, 251, 15


def effective(case, draws):
    """The least effective sample size of what is watched."""
    import arviz

    watched = cases.WATCHED[case](draws, cases.DATA[case])
    found = arviz.ess(arviz.convert_to_dataset({name: np.asarray(array) for name, array in watched.items()}))
    return min(float(found[name].min()) for name in watched)


def contestants():
    """The modules of samplers that are there, by name."""
    import by_nuts

    found = {"cavity": ours, "by hand": by_hand, "NumPyro NUTS": by_nuts}
    if by_jags.AVAILABLE:
        found["JAGS"] = by_jags
    return found


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
    found, samplers = {}, {name: module.sampler(case) for name, module in contestants().items()}
    for number in range(rounds + 1):
        for name, sample in samplers.items():
            draws = SHORTER.get((case, name), DRAWS[name])
            kept, seconds = timed(sample, draws, 1, name)  # the same draws each time: how fast, not which
            if number:  # the first compiles
                rate = effective(case, kept) / seconds
                found.setdefault(name, []).append((rate, 1e6 * seconds / (draws + WARMUP)))
    return found


def ratio(ours, theirs):
    """Median, least and most over rounds."""
    found = [one / other for one, other in zip(ours, theirs, strict=True)]
    return f"{statistics.median(found):.3g} ({min(found):.3g}, {max(found):.3g})"


def cells(found):
    """Effective draws a second, microseconds of a transition, and cavity's rate over each in the same rounds."""
    for name, rounds in found.items():
        rates, each = zip(*rounds, strict=True)
        own = [rate for rate, _ in found["cavity"]]
        yield [name, f"{statistics.median(rates):.4g}", f"{statistics.median(each):.4g}", ratio(own, rates)]


def per_sweep(run, few, many):
    """Seconds of a sweep: a long run less a short one."""

    def once(count):
        begin = time.perf_counter()
        done = run(count)
        return time.perf_counter() - begin, done

    def measure():
        (short, first), (long, second) = once(few), once(many)
        return max(long - short, 1e-9) / max(second - first, 1)

    return measure


def in_turns(measures, rounds):
    """What each measures in each round, after one that compiles."""
    found = {name: [] for name in measures}
    for number in range(rounds + 1):
        for name, measure in measures.items():
            value = measure()
            if number:
                found[name].append(value)
    return found


def beside_vmp(case, rounds):
    """Microseconds of a sweep of Gibbs and of VMP on the same model and data."""
    import cavity as cv

    model, data = ours.MODELS[case](cases.DATA[case])
    observed = [name for name in data if name in model.randoms]

    def gibbs(count):
        cv.sample(model, data, draws=count, warmup=1, chains=1, seed=0, progress=False)
        return count

    never = {"method": "vmp", "tolerance": 1e-300}
    programs = {count: cv.compile(model, observed, max_iterations=count, **never) for count in (20, VMP_SWEEPS)}

    def vmp(count):
        return int(programs[count](data).iterations)

    return in_turns({"Gibbs": per_sweep(gibbs, 100, 100 + SWEEPS), "VMP": per_sweep(vmp, 20, VMP_SWEEPS)}, rounds)


def nsfa_beside_kernels(share, rounds):
    """Seconds of a sweep of `cv.sample` on the declaration of NSFA, and of the kernels made for it."""
    import speed

    import cavity as cv

    state, observed = state, observed = speed.problem(ROWS, SAMPLES, FACTORS, share, places=24)
    values = observed.values.copy()
    values[observed.row, observed.sample] = np.nan
    model = cv.models.nsfa(FACTORS)
    run = speed.sampler(state, observed)

    def general(count):
        cv.sample(model, {"y": values}, draws=count, warmup=1, chains=1, seed=0, progress=False)
        return count

    return in_turns({"declaration": per_sweep(general, 50, 350), "kernels": per_sweep(run, 50, 350)}, rounds)


def beside(found, names):
    """A line of a table: microseconds of both, and the ratio of the first to the second."""
    first, second = (found[name] for name in names)
    return [f"{1e6 * statistics.median(first):.4g}", f"{1e6 * statistics.median(second):.4g}", ratio(first, second)]


def main():
    options = harness.options(__doc__)
    options.add_argument("cases", nargs="*", default=list(cases.DATA))
    asked = options.parse_args()
    warnings.simplefilter("ignore")
    report = harness.Report("gibbs", warmup=WARMUP, draws=DRAWS, rounds=asked.repeats)
    for case in asked.cases:
        found = measured(case, asked.repeats)
        columns = ["", "effective draws a second", "microseconds a transition", "cavity over it (least, most)"]
        report.table(case, "One chain, one thread.", columns, list(cells(found)), found)
    note = "Microseconds; one chain, one thread, ratio in the same rounds (least, most)."
    sweeps = {case: beside_vmp(case, asked.repeats) for case in asked.cases}
    lines = [[case, *beside(found, ("Gibbs", "VMP"))] for case, found in sweeps.items()]
    report.table("A sweep of Gibbs and of VMP", note, ["", "Gibbs", "VMP", "ratio"], lines, sweeps)
    nsfa = {f"{share:.0%} missing": nsfa_beside_kernels(share, asked.repeats) for share in (0.0, 0.1)}
    lines = [[case, *beside(found, ("declaration", "kernels"))] for case, found in nsfa.items()]
    title = f"NSFA of {ROWS} x {SAMPLES}, {FACTORS} factors: a sweep from the declaration and by the kernels"
    report.table(title, note, ["", "declaration", "kernels", "ratio"], lines, nsfa)


if __name__ == "__main__":
    main()
