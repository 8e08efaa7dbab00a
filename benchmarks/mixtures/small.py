"""Small mixtures whose answers are known: one datum, pruning, one mode or both, and seven rows with their corrections.

E01 to E03 and E05 of the source: a mixture of two means with a single datum, by every power; the fixed points of VMP
as the prior narrows; two close groups of data that EP covers with one belief, until four of them move apart; and seven
rows, or each twice, whose evidence is a sum over all allocations. Source: paquet2007thesis.
"""

import common
import components

# isort: split
import itertools
import math
import warnings

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from scipy import stats
from scipy.optimize import brentq
from scipy.special import expit, gammaln, logsumexp

import cavity as cv

POWERS = (0.01, 0.1, 0.25, 0.5, 0.75, 1.0)
SEVEN = (-3.1, -2.4, -1.9, 1.2, 1.8, 2.5, 3.0)
EXACT_CHECKS = {"N=7": -19.1041, "N=14": -31.7654}  # of the specification, by enumeration


def two_means(x, precision):
    """Components of unit variance and equal weights, with unknown means."""
    model = cv.Model("two means")
    n, k = model.plate("n"), model.plate("k", 2)
    mean = model.random("mean", cv.gaussian(0.0, precision=precision), plates=k)
    z = model.random("z", cv.categorical([0.5, 0.5]), plates=n)
    model.random("x", cv.gaussian(mean[z], precision=1.0))
    return model, {"x": np.asarray(x, float)}


# E01: one datum -------------------------------------------------------------------------------------------------------


def one_datum(precision=0.1):
    """log s and the sd of a mean by power; the truth is a mixture of two Gaussians of equal weight."""
    model, data = two_means([0.0], precision)
    exact = stats.norm.logpdf(0.0, 0.0, math.sqrt(1.0 + 1.0 / precision))
    rows = []
    for name, method in [("VMP", "vmp"), *((f"power {p:g}", cv.power(p)) for p in POWERS[:-1]), ("EP", "ep")]:
        found = cv.infer(model, data, method=method, accuracy="fast", tolerance=1e-10, max_iterations=5000)
        rows.append([name, found.log_evidence, float(found["mean"].sd[0]), found.code])
    truth_sd = math.sqrt(0.5 / precision + 0.5 / (1.0 + precision))
    common.table("E01: one datum", ["", "log s", "sd of a mean", "run"], [*rows, ["exact", exact, truth_sd, ""]])
    evidences = [row[1] for row in rows]
    return {"rows": rows, "exact": exact, "sd": truth_sd, "never falls": bool(np.all(np.diff(evidences) > -1e-6))}


# E02: pruning ---------------------------------------------------------------------------------------------------------


def crossings(precision, points=200_001):
    """Where gamma = g(gamma), the responsibility of the first component for the one datum: alike around one half."""

    def gap(gamma):
        return expit(0.5 * (1.0 / (precision + 1.0 - gamma) - 1.0 / (precision + gamma))) - gamma

    grid = np.concatenate([[0.0], np.linspace(1e-9, 0.5 - 1e-9, points)])
    value = gap(grid)
    brackets = zip(grid, grid[1:], value, value[1:], strict=False)
    below = [brentq(gap, a, b, xtol=1e-300) for a, b, f, g in brackets if f * g < 0]
    return [*below, 0.5, *(1.0 - root for root in reversed(below))]


def critical():
    """The precision of the prior above which one half alone is left."""
    low, high = 0.05, 0.12
    while high - low > 1e-7:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if len(crossings(middle, 20_001)) > 1 else (low, middle)
    return 0.5 * (low + high)


def reached(precision):
    """The responsibilities at which VMP ends, by where it begins, and whether sweeps come back to each."""
    model, data = two_means([0.0], precision)
    ends = {}
    for gamma in (1e-3, 0.2, 0.45, 0.5, 0.55, 0.8, 0.999):
        spread = 1.0 / (precision + np.array([gamma, 1.0 - gamma]))
        start = {"mean": cv.infer(*_seen(spread), method="vmp")["mean"]}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = cv.infer(model, data, method="vmp", accuracy="fast", start=start, tolerance=1e-10)
        ends[gamma] = float(1.0 / found["mean"].variance[0] - precision)
    return ends


def _seen(variances):
    """A model whose belief has these variances and the mean zero."""
    model = cv.Model("as given")
    k = model.plate("k", 2)
    precision = model.input("precision", cv.positive, plates=k)
    mean = model.random("mean", cv.gaussian(0.0, precision=precision), plates=k)
    model.random("y", cv.gaussian(mean, precision=1e-12))
    return model, {"precision": 1.0 / variances, "y": np.zeros(2)}


def pruning():
    by_precision = {f"{p:g}": crossings(p) for p in (0.1, 0.0970, 0.05, 0.01)}
    rows = [[name, str([round(root, 4) for root in roots])] for name, roots in by_precision.items()]
    common.table("E02: where gamma = g(gamma)", ["precision of the prior", "gamma"], rows)
    ends, where = reached(0.01), critical()
    common.table("VMP at .01, by its start", ["from", "to"], [[f"{a:g}", b] for a, b in ends.items()])
    print(f"critical precision {where:.5f}; printed .97, in error for .0970")
    return {"crossings": by_precision, "reached": ends, "critical": where}


# E03: one mode or both ------------------------------------------------------------------------------------------------


def one_or_both():
    """Twenty rows in two close groups: EP's belief has both orders; with four rows moved apart it has one."""
    noise = np.random.default_rng(3).normal(size=20)
    close = (noise - noise.mean()) / noise.std() + np.repeat([-0.5, 0.5], 10)
    apart, order = close.copy(), np.argsort(close)
    apart[order[:2]] -= 1.0
    apart[order[-2:]] += 1.0
    rows = {}
    for name, x in (("close", close), ("four moved apart", apart)):
        model, data = two_means(x, 0.1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = cv.infer(model, data, method="ep", accuracy="fast", restarts=8, max_iterations=1000)
        rows[name] = [
            {"log evidence": mode.log_evidence, "means": mode["mean"].mean.tolist(), "sds": mode["mean"].sd.tolist()}
            for mode in found.all_modes()
            if mode.converged
        ]
    told = [
        [name, f"{one['log evidence']:.3f}", str(np.round(one["means"], 2)), str(np.round(one["sds"], 2))]
        for name, modes in rows.items()
        for one in modes
    ]
    common.table("E03: fixed points of EP", ["", "log evidence", "means", "sds"], told)
    return rows


# E05: seven rows ------------------------------------------------------------------------------------------------------


def enumerated(x, number, ratio=components.NARROW, a=1.0, b=0.11):
    """The log evidence as a sum over all allocations."""
    x, total = np.asarray(x), []
    for z in itertools.product(range(number), repeat=len(x)):
        own = gammaln(number) - gammaln(number + len(x))
        for j in range(number):
            mine = x[np.equal(z, j)]
            count = len(mine)
            weight = ratio + count
            mean = mine.sum() / weight
            rate = b + 0.5 * ((mine**2).sum() - weight * mean**2)
            own += gammaln(1.0 + count) + gammaln(a + 0.5 * count) - gammaln(a) + a * math.log(b)
            own += -(a + 0.5 * count) * math.log(rate) + 0.5 * math.log(ratio / weight)
            own -= 0.5 * count * math.log(2.0 * math.pi)
        total.append(own)
    return float(logsumexp(total))


def seven_rows(quick):
    rows = []
    for name, x in (("N=7", SEVEN), ("N=14", SEVEN * 2)):
        model, data = components.mixture(x, 2, components.NARROW)
        found = {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for who, method in components.METHODS.items():
                modes = cv.infer(model, data, method=method, restarts=12, max_iterations=2000).all_modes()
                found[who] = [mode for mode in modes if mode.converged]
            corrected = [mode.corrected_evidence for mode in found["EP"]]
        exact = enumerated(x, 2) if len(x) == 7 or not quick else EXACT_CHECKS[name]
        trusted = [one for one in corrected if one.trusted]
        rows.append(
            [name, exact]
            + [max(mode.log_evidence for mode in found[who]) for who in ("VMP", "power 1/2")]
            + [trusted[0].plain, float(trusted[0]), trusted[0].plain + math.log(2.0)]
            + [", ".join(f"{one.plain:.2f} ({one.size:.0f} nats)" for one in corrected if not one.trusted)]
        )
    titles = ["", "exact", "VMP", "power 1/2", "EP", "EP corrected", "EP + log 2", "EP, not to be trusted"]
    common.table("E05: two components", titles, rows)
    return [dict(zip(titles, row, strict=True)) for row in rows]


def picture(results):
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5))
    names = [row[0] for row in results["one datum"]["rows"]]
    left.plot(names, [row[1] for row in results["one datum"]["rows"]], marker="o")
    left.axhline(results["one datum"]["exact"], color="black", linewidth=1)
    left.tick_params(axis="x", rotation=60)
    left.set(title="one datum", ylabel="log s")
    gamma = np.linspace(0.0, 1.0, 1001)
    for precision in (0.1, 0.0970, 0.01):
        right.plot(gamma, expit(0.5 * (1 / (precision + 1 - gamma) - 1 / (precision + gamma))), label=f"{precision:g}")
    right.plot(gamma, gamma, color="black", linewidth=1)
    right.set(title="g(gamma), by precision of the prior", xlabel="gamma")
    right.legend(fontsize="small")
    figure.tight_layout()
    return figure


def main():
    arguments = common.options(__doc__).parse_args()
    results = {
        "one datum": one_datum(),
        "pruning": pruning(),
        "one or both": one_or_both(),
        "seven rows": seven_rows(arguments.quick),
    }
    common.save("small", {"small": picture(results)}, results=results)


if __name__ == "__main__":
    main()
