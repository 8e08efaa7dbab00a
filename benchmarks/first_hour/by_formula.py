"""References of the models of first_tries.py: closed forms, grids and importance sampling.

    python benchmarks/first_hour/by_formula.py [--only NAME ...]

Each function here has the name of a model, takes its data, and gives the entry of first_tries.json. NumPy and SciPy
only: nothing of the engine is used but the data of the models.
"""

import argparse
import itertools
import json
from pathlib import Path

import first_tries
import numpy as np
import truth
from scipy import special, stats
from truth import Grid, known, weighted

FILE = Path(__file__).resolve().parent / "first_tries.json"


def over(points):
    """Coordinates of points beside rows."""
    return [axis[:, None] for axis in points]


def limit_of_detection(data):
    x, y = data["x"], data["y"]

    def log_density(theta):
        a, b, log_sd = over(theta.T)
        z = (y - a - b * x) / np.exp(log_sd)
        rows = np.where(y > 0.0, stats.norm.logpdf(z) - log_sd, special.log_ndtr(z)).sum(axis=1)
        prior = stats.norm.logpdf(theta[:, :2], scale=3.0).sum(axis=1)
        return rows + prior + stats.halfnorm.logpdf(np.exp(theta[:, 2]), scale=2.0) + theta[:, 2]

    def values(theta):
        return {"intercept": known(theta[:, 0]), "slope": known(theta[:, 1]), "sd": known(np.exp(theta[:, 2]))}

    return truth.importance(log_density, [0.5, 1.0, 0.0], values)


def remission_times(data):
    grid = Grid.of((-1.5, 1.7, 501), (1.5, 7.0, 501))
    shape, scale = (np.exp(axis) for axis in grid.points)
    t, seen = data["weeks"], ~np.isfinite(data["followed"]) | (data["weeks"] < data["followed"])
    died, scaled = seen.sum(), (t / scale[:, None]) ** shape[:, None]
    rows = died * np.log(shape / scale) + (shape - 1.0) * np.log(t[seen, None] / scale).sum(0) - scaled.sum(axis=1)
    prior = stats.gamma.logpdf(shape, 2.0) + stats.gamma.logpdf(scale, 2.0, scale=20.0) + np.log(shape * scale)
    return grid.entry(rows + prior, {"shape": known(shape), "scale": known(scale)})


def extra_zeros(data):
    y = np.array(data["y"])
    grid = Grid.of((-12.0, 12.0, 801), (-1.5, 3.0, 801))
    never, rate = special.expit(grid.points[0]), np.exp(grid.points[1])
    poisson = stats.poisson.logpmf(y[:, None], rate)
    rows = np.where(y[:, None] == 0, np.log(never + (1.0 - never) * np.exp(-rate)), np.log1p(-never) + poisson)
    prior = np.log(never * (1.0 - never)) + stats.gamma.logpdf(rate, 1.0, scale=5.0) + np.log(rate)
    zero = never / (never + (1.0 - never) * np.exp(-rate))  # true is the first term of the mixture
    of_class = np.where(y == 0, zero[:, None], 0.0)
    return grid.entry(rows.sum(axis=0) + prior, {"never": known(never), "rate": known(rate), "y class": of_class})


def only_positive_counts(data):
    y = np.array(data["y"])
    grid = Grid.of((-3.5, 2.5, 8001))
    rate = np.exp(grid.points[0])
    rows = (stats.poisson.logpmf(y[:, None], rate) - np.log(-np.expm1(-rate))).sum(axis=0)
    prior = stats.gamma.logpdf(rate, 1.0, scale=1.0 / 0.3) + grid.points[0]
    return grid.entry(rows + prior, {"rate": known(rate)})


def ratings(data):
    """Points: the slope, the first cutpoint and the logarithms of the gaps; the prior is that of sorted draws."""
    x, y = data["x"], data["y"]

    def cutpoints(theta):
        return np.cumsum(np.concatenate([theta[:, 1:2], np.exp(theta[:, 2:])], axis=1), axis=1)

    def log_density(theta):
        cuts = cutpoints(theta)
        ends = np.concatenate([np.full((len(cuts), 1), -np.inf), cuts, np.full((len(cuts), 1), np.inf)], axis=1)
        score = theta[:, :1] * x
        with np.errstate(divide="ignore"):
            rows = np.log(special.expit(ends[:, y + 1] - score) - special.expit(ends[:, y] - score)).sum(axis=1)
        prior = stats.norm.logpdf(cuts, scale=3.0).sum(axis=1) + np.log(6.0)
        return rows + prior + stats.norm.logpdf(theta[:, 0], scale=2.0) + theta[:, 2:].sum(axis=1)

    def values(theta):
        cuts = cutpoints(theta)
        found = {"slope": known(theta[:, 0]), "cutpoints[0]": known(cuts[:, 0])}
        for k in (1, 2):
            found[f"cutpoints[{k}] - cutpoints[{k - 1}]"] = known(cuts[:, k] - cuts[:, k - 1])
        return found | {"cutpoints": known(cuts)}

    return truth.importance(log_density, [1.2, -1.0, 0.3, 0.3], values)


def gaussian(name, prior, design, variances, seen, shape=None):
    """The posterior of Gaussian numbers with a prior covariance, seen through a matrix with noise."""
    design, seen, noise = np.asarray(design, float), np.asarray(seen, float), np.diag(variances)
    outer = design @ prior @ design.T + noise
    gain = np.linalg.solve(outer, design @ prior).T
    mean, variance = gain @ seen, np.diag(prior - gain @ design @ prior)
    shape = shape or mean.shape
    log_evidence = stats.multivariate_normal.logpdf(seen, np.zeros(len(seen)), outer)
    return weighted("closed form", [log_evidence], {name: (mean.reshape(1, *shape), variance.reshape(1, *shape))})


def teams_of_any_size(data):
    design = np.zeros((4, 6))
    np.add.at(design, (data["of"], data["member"]), 1.0)
    return gaussian("skill", np.eye(6), design, np.full(4, 0.25), data["points"])


def players_by_year(data):
    steps = np.tril(np.ones((3, 3)))
    of_one = steps @ np.diag([1.0, 0.16, 0.16]) @ steps.T
    design = np.zeros((6, 3, 3))
    rows = np.arange(6)
    design[rows, data["white"], data["when"]] += 1.0
    design[rows, data["black"], data["when"]] -= 1.0
    return gaussian("skill", np.kron(np.eye(3), of_one), design.reshape(6, 9), np.full(6, 0.49), data["margin"], (3, 3))


def states_of_known_levels(data):
    grid = Grid.of((-5.0, 2.5, 20_001))
    noise = np.exp(grid.points[0])
    each = stats.norm.logpdf(np.array(data["y"])[:, None], [0.0, 2.0, 5.0], noise[:, None, None])
    each = each + np.log([0.5, 0.3, 0.2])
    rows = special.logsumexp(each, axis=2)
    prior = stats.halfnorm.logpdf(noise, scale=2.0) + grid.points[0]
    return grid.entry(rows.sum(axis=1) + prior, {"noise": known(noise), "z": np.exp(each - rows[..., None])})


def enzyme(data):
    x, y = np.array(data["x"]), np.array(data["y"])

    def log_density(theta):
        top, log_half, log_sd = over(theta.T)
        rows = stats.norm.logpdf(y, top * x / (np.exp(log_half) + x), np.exp(log_sd)).sum(axis=1)
        prior = stats.norm.logpdf(theta[:, 0], 200.0, 50.0) + theta[:, 1:].sum(axis=1)
        return rows + prior + sum(stats.halfnorm.logpdf(np.exp(theta[:, k]), scale=s) for k, s in ((1, 0.5), (2, 20.0)))

    def values(theta):
        return {"top": known(theta[:, 0]), "half": known(np.exp(theta[:, 1])), "sd": known(np.exp(theta[:, 2]))}

    return truth.importance(log_density, [210.0, -2.7, 2.4], values)


def chance_by_itself(data):
    yes, no = sum(data["heads"]), len(data["heads"]) - sum(data["heads"])
    found, log_evidence = (
        stats.beta(2.0 + yes, 2.0 + no),
        special.betaln(2.0 + yes, 2.0 + no) - special.betaln(2.0, 2.0),
    )
    return weighted("closed form", [log_evidence], {"heads.probability": ([found.mean()], [found.var()])})


def unknown_variance(data):
    y = np.array(data["y"])
    n, shape = len(y), 2.0 + 0.5 * (len(y) - 1)
    scale = 3.0 + 0.5 * np.sum((y - y.mean()) ** 2)
    log_evidence = 2.0 * np.log(3.0) - special.gammaln(2.0) + special.gammaln(shape) - shape * np.log(scale)
    log_evidence -= 0.5 * (n - 1) * np.log(2.0 * np.pi) + 0.5 * np.log(n)
    expected = scale / (shape - 1.0)
    found = {"mean": ([y.mean()], [expected / n]), "variance": ([expected], [expected**2 / (shape - 2.0)])}
    return weighted("closed form", [log_evidence], found)


def waiting_times(data):
    x, t = data["x"], data["t"]
    grid = Grid.of((-0.8, 1.8, 501), (-0.6, 2.2, 501))
    a, b = grid.points
    score = a[:, None] + b[:, None] * x
    rows = (-score - t * np.exp(-score)).sum(axis=1)
    prior = stats.norm.logpdf(a, scale=2.0) + stats.norm.logpdf(b, scale=2.0)
    return grid.entry(rows + prior, {"a": known(a), "b": known(b)})


def small_steps(data):
    design = np.concatenate([np.diff(np.eye(9), axis=0), np.eye(9)[[0, 4, 8]]])
    seen = np.concatenate([data["step"], [data["begins"], data["middle"], data["ends"]]])
    return gaussian("x", 100.0 * np.eye(9), design, np.repeat([1.0, 0.09], [8, 3]), seen)


def drifts_by_regime(data):
    y = np.array(data["y"])
    paths = np.array(list(itertools.product((False, True), repeat=len(y))))
    sums = np.tril(np.ones((len(y), len(y))))
    spread = sums @ np.diag([4.0, *[0.04] * (len(y) - 1)]) @ sums.T
    total = spread + 0.25 * np.eye(len(y))
    gain = spread @ np.linalg.inv(total)
    drift = np.where(paths, 0.5, -0.5)
    drift[:, 0] = 0.0
    means = drift @ sums.T
    same = paths[:, 1:] == paths[:, :-1]
    log = np.log(0.5) + np.where(same, np.log(0.9), np.log(0.1)).sum(axis=1)
    log += stats.multivariate_normal(np.zeros(len(y)), total).logpdf(y - means)
    level = means + (y - means) @ gain.T, np.broadcast_to(np.diag(spread - gain @ spread), means.shape)
    return weighted("all paths of regimes", log, {"level": level, "up": paths.astype(float)})


def rare_jumps(data):
    """Forward and backward sums over a grid of levels, three points to the scale of a step."""
    y = np.array(data["y"])
    level, step = np.linspace(-8.0, 11.0, 571, retstep=True)
    moves = stats.t.pdf(level[:, None] - level, 3.0, scale=0.1) * step  # from a column to a row
    seen = stats.norm.pdf(y[:, None], level, 0.5)
    forward, log_evidence = [], 0.0
    for row in seen:
        before = stats.norm.pdf(level, scale=5.0) * step if not forward else moves @ forward[-1]
        forward.append(before * row)
        log_evidence += np.log(forward[-1].sum())
        forward[-1] = forward[-1] / forward[-1].sum()
    backward, found = np.ones_like(level), []
    for share, row in zip(forward[::-1], seen[::-1], strict=True):
        belief = share * backward / (share @ backward)
        mean = belief @ level
        found.append((mean, np.sqrt(belief @ (level - mean) ** 2)))
        backward = moves.T @ (row * backward)
        backward = backward / backward.max()
    mean, sd = np.array(found[::-1]).T
    how = "sums over a grid of 571 levels"
    own = {"mean": mean.tolist(), "sd": sd.tolist()}
    return {"how": how, "log_evidence": log_evidence, "evidence_how": how, "parameters": {"level": own}}


def main():
    models = {function.__name__: function for function in first_tries.MODELS}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[*models], choices=[*models], metavar="NAME")
    found = json.loads(FILE.read_text()) if FILE.exists() else {}
    for name in parser.parse_args().only:
        _, data, *_ = models[name]()
        found[name] = globals()[name](data)
        print(f"{name}: {found[name]['how']}; log evidence {found[name]['log_evidence']}", flush=True)
    truth.write(FILE, found)


if __name__ == "__main__":
    main()
