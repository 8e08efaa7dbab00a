"""Tempering: a path whose barrier is known exactly, and round trips by two rules of exchange.

The path is the example that Pigeons.jl prints: a Gaussian of 100 numbers whose precision goes from one to ten. The
rejections of a ladder of ten rungs add up to less than the barrier, an integral: this sum is what Pigeons prints after
1,024 scans (7.1). Round trips are counted on mixtures of the 82 galaxy velocities, where a copy of
them lies beside the repository.
"""

import harness

# isort: split
from pathlib import Path

import numpy as np
from scipy.special import gammaln

GALAXIES = (
    Path(__file__).resolve().parents[1].parent / "shared" / "data" / "mixture_galaxy" / "galaxy_BNPdensity_82.csv"
)
RUNGS, SCANS, SIZE, PRECISION = 10, 1024, 100, 10.0
PRINTED = 7.1  # by Pigeons.jl, of ten chains
CLASSES, REPLICAS, COPIES = (3, 6), 30, 4


def gaussian(cv):
    m = cv.Model("a Gaussian that becomes narrow")
    n = m.plate("n", SIZE)
    x = m.random("x", cv.gaussian(0.0, sd=1.0), plates=n)
    m.random("y", cv.gaussian(x, precision=PRECISION - 1.0))
    return m, {"y": np.zeros(SIZE)}


def barriers(draws=400_000, seed=0):
    """Of the Gaussian path: the integral, and the sum of the rejections of ten rungs of equal rejection.

    At inverse temperature b the precision is 1 + 9 b and half of 9 |x|^2 is the energy, so |x|^2 is of a chi-square
    distribution, scaled. Both are the same between any two precisions of the same ratio.
    """
    half = 0.5 * SIZE
    apart = 4.0 * np.exp(gammaln(half + 0.5) - gammaln(half)) / np.sqrt(np.pi)  # two such numbers, on average
    integral = 0.25 * apart * np.log(PRECISION)
    one, other = np.random.default_rng(seed).chisquare(SIZE, (2, draws))
    ratio = PRECISION ** (1.0 / (RUNGS - 1))
    log_accept = 0.5 * (ratio - 1.0) * (other / ratio - one)
    return integral, (RUNGS - 1) * float(np.mean(1.0 - np.exp(np.minimum(log_accept, 0.0))))


def evidence_of_gaussian():
    variance = 1.0 + 1.0 / (PRECISION - 1.0)
    return -0.5 * SIZE * np.log(2.0 * np.pi * variance)


def mixture(cv, classes, y):
    m = cv.Model("classes of velocities")
    n, k = m.plate("n"), m.plate("k", classes)
    share = m.random("share", cv.dirichlet(np.ones(classes)))
    precision = m.random("precision", cv.gamma(1.0, 0.11), plates=k)
    centre = m.random("centre", cv.gaussian(0.0, precision=0.01 * precision), plates=k)
    z = m.random("z", cv.categorical(share), plates=n)
    m.random("y", cv.gaussian(centre[z], precision=precision[z]))
    return m, {"y": y}


def main():
    parser = harness.options(__doc__)
    parser.add_argument("--sweeps", type=int, default=2048, help="of the mixtures, that are kept")
    arguments = parser.parse_args()
    import cavity as cv

    report = harness.Report("tempering", **vars(arguments))
    integral, of_rungs = barriers()
    found = cv.evidence(*gaussian(cv), sweeps=SCANS, replicas=RUNGS, copies=1, progress=False)
    report.facts(
        f"A Gaussian of {SIZE} numbers, {RUNGS} rungs, {SCANS:,} sweeps of one ladder",
        **{
            "barrier, the integral": integral,
            "the same as rejections of ten rungs, exactly": of_rungs,
            "printed by Pigeons.jl": PRINTED,
            "cavity": found.barrier,
            "log evidence minus the exact one": found.log_evidence - evidence_of_gaussian(),
            "its standard error": found.standard_error,
        },
    )
    if not GALAXIES.is_file():
        return
    y = np.loadtxt(GALAXIES, skiprows=1)
    lines, measured = [], []
    for classes in CLASSES:
        for swaps in ("one", "even-odd"):
            found = cv.evidence(
                *mixture(cv, classes, y),
                sweeps=arguments.sweeps,
                replicas=REPLICAS,
                copies=COPIES,
                swaps=swaps,
                progress=False,
            )
            numbers = 1000.0 * found.round_trips / found.sweeps, found.barrier, found.log_evidence, found.standard_error
            measured.append((classes, swaps, found.round_trips, *numbers))
            lines.append([str(classes), swaps, *(f"{number:.2f}" for number in numbers)])
    title = f"Round trips on the galaxy velocities, {REPLICAS} temperatures, {arguments.sweeps:,} sweeps"
    note = (
        f"Per thousand sweeps, of {COPIES} ladders together; `one` exchanges one pair at random a sweep, as the thesis."
    )
    report.table(
        title, note, ["classes", "exchanges", "round trips", "barrier", "log evidence", "error"], lines, measured
    )


if __name__ == "__main__":
    main()
