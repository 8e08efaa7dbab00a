"""References of models of bugs.py and stan.py by quadrature over the few variables that all others are tractable given.

    python benchmarks/first_hour/by_quadrature.py [--only NAME ...]

Each function here has the name of a model, takes its data, and gives the entry of its json file, which by_nuts.py then
leaves alone. It is for models in which NUTS mixes badly, and for those with a precision of heavy tail, whose sd
is a matter of draws that hardly ever come. NumPy and SciPy only: nothing of the engine is used but the data.
"""

import argparse
import dataclasses
import importlib
import json
from pathlib import Path

import numpy as np
import truth
from scipy import interpolate, optimize, special, stats
from truth import Grid, known

HERE = Path(__file__).resolve().parent
CHUNK = 1000  # points whose matrices are held at once


# densities of logarithms ----------------------------------------------------------------------------------------------


def of_log(distribution, logs):
    """The log density of the logarithm of a positive variable."""
    return distribution.logpdf(np.exp(logs)) + logs


def gamma(shape, rate):
    return stats.gamma(shape, scale=1.0 / rate)


VAGUE = gamma(0.001, 0.001)  # BUGS's prior of precisions

# of entries whose sds rest on a tail
NOTES = {
    "five_points": "Student's tails of 3 degrees of freedom: no fourth moments, so sds of draws do not settle",
    "rats": "tau.beta beyond 100 has a probability of 1.2e-6 and an eighth of the variance",
    "surgical": "tau has the prior's tail exp(-0.001 tau) / tau: a sd of three and a half times its mean says little",
    "salm": "tau has the prior's tail exp(-0.001 tau) / tau: a sd of 1.7 times its mean says little",
}


# linear Gaussian models given their scales ----------------------------------------------------------------------------


def linear(mean, root, weight, design, y, noise):
    """Of y = design x + noise, its precision `noise`; root (x - mean) has independent precisions `weight`.

    `root` is triangular with ones. Gives the log evidence, means and variances of x at each point.
    """
    parts = []
    for start in range(0, len(weight), CHUNK):
        at = slice(start, start + CHUNK)
        maps = np.linalg.inv(root) / np.sqrt(weight[at, None, :])  # of standard variables
        seen = np.sqrt(noise[at])[:, None, None] * (design @ maps)
        rest = np.sqrt(noise[at])[:, None] * (y - design @ mean)
        posterior = np.eye(len(mean)) + np.swapaxes(seen, -1, -2) @ seen
        lower = np.linalg.cholesky(posterior)
        spread = np.linalg.solve(lower, np.swapaxes(maps, -1, -2))
        shift = np.linalg.solve(lower, np.einsum("gij,gi->gj", seen, rest)[..., None])[..., 0]
        square = (rest**2).sum(-1) - (shift**2).sum(-1)
        log_determinant = 2.0 * np.log(np.einsum("gii->gi", lower)).sum(-1) - len(y) * np.log(noise[at])
        log_evidence = -0.5 * (square + log_determinant) - len(y) * truth.LOG_ROOT_2_PI
        parts.append((log_evidence, mean + np.einsum("gij,gi->gj", spread, shift), (spread**2).sum(1)))
    return [np.concatenate(part) for part in zip(*parts, strict=True)]


def columns(*blocks):
    """Weights of all points side by side, from pairs of a size and a weight."""
    weights = np.broadcast_arrays(*(np.asarray(weight, float) for _, weight in blocks))
    return np.concatenate(
        [np.repeat(weight[:, None], size, 1) for (size, _), weight in zip(blocks, weights, strict=True)], 1
    )


def around(count):
    """The root of a centre and `count` effects around it."""
    root = np.eye(count + 1)
    root[1:, 0] = -1.0
    return root


def five_points(data):
    """The precision has 3 degrees of freedom, so the line has a Student's tails: its variance is just finite."""
    grid = Grid.of((-45.0, 6.0, 4001))
    (logs,) = grid.points
    design = np.column_stack([np.ones(5), data["x"]])
    weight = columns((2, np.full(len(logs), 1e-6)))
    log_evidence, mean, variance = linear(np.zeros(2), np.eye(2), weight, design, data["y"], np.exp(logs))
    values = {"alpha": (mean[:, 0], variance[:, 0]), "beta": (mean[:, 1], variance[:, 1]), "tau": known(np.exp(logs))}
    return grid.entry(log_evidence + of_log(VAGUE, logs), values)


def rats(data):
    """Intercepts and slopes of 30 rats given the three precisions."""
    grid = Grid.of((-7.5, -3.2, 28), (-0.8, 10.0, 73), (-4.6, -2.7, 22))
    logs = grid.points
    tau_alpha, tau_beta, tau = np.exp(logs)
    root = np.kron(np.eye(2), around(30))
    weight = columns((1, 1e-6), (30, tau_alpha), (1, 1e-6), (30, tau_beta))
    rat, age = np.repeat(np.eye(30), 5, 0), np.tile(data["age"], 30)[:, None]
    none = np.zeros((150, 1))
    design = np.hstack([none, rat, none, rat * age])
    log_evidence, mean, variance = linear(np.zeros(62), root, weight, design, np.ravel(data["y"]), tau)
    parts = {"alpha.c": 0, "alpha": slice(1, 31), "beta.c": 31, "beta": slice(32, 62)}
    values = {name: (mean[:, part], variance[:, part]) for name, part in parts.items()}
    scales = {"tau.alpha": tau_alpha, "tau.beta": tau_beta, "tau.y": tau}
    log_density = log_evidence + sum(of_log(VAGUE, one) for one in logs)
    return grid.entry(log_density, values | {name: known(one) for name, one in scales.items()})


def dyes(data):
    """The means of six batches given the two spreads."""
    grid = Grid.of((-14.0, 9.0, 401), (2.7, 6.0, 121))
    logs = grid.points
    between, within = np.exp(logs)
    design = np.hstack([np.zeros((30, 1)), np.repeat(np.eye(6), 5, 0)])
    weight = columns((1, 1e-6), (6, between**-2.0))
    y = np.ravel(data["y"])
    log_evidence, mean, variance = linear(np.full(7, 1500.0), around(6), weight, design, y, within**-2.0)
    prior = stats.halfcauchy(scale=50.0)
    values = {"theta": (mean[:, 0], variance[:, 0]), "mu": (mean[:, 1:], variance[:, 1:])}
    values |= {"between": known(between), "within": known(within)}
    return grid.entry(log_evidence + of_log(prior, logs[0]) + of_log(prior, logs[1]), values)


def equiv(data):
    """Three coefficients and the effects of ten subjects given the two spreads."""
    grid = Grid.of((-18.0, 1.2, 401), (-4.0, 0.8, 161))
    logs = grid.points
    sd_subject, noise = np.exp(logs)
    ones, tablet, sign = np.ones(20), np.ravel(data["tablet"]), np.tile(data["sign"], 10)
    design = np.column_stack([ones, 0.5 * tablet, 0.5 * sign, np.repeat(np.eye(10), 2, 0)])
    weight = columns((3, 1e-6), (10, sd_subject**-2.0))
    y = np.ravel(data["y"])
    log_evidence, mean, variance = linear(np.zeros(13), np.eye(13), weight, design, y, noise**-2.0)
    parts = {"mu": 0, "phi": 1, "pi": 2, "delta": slice(3, 13)}
    values = {name: (mean[:, part], variance[:, part]) for name, part in parts.items()}
    values |= {"sd_subject": known(sd_subject), "noise": known(noise)}
    prior = stats.halfnorm()
    return grid.entry(log_evidence + of_log(prior, logs[0]) + of_log(prior, logs[1]), values)


def ar1_plus_noise(data):
    """A chain of 60 given its coefficient and both spreads."""
    grid = Grid.of((-0.6, 1.35, 30), (-4.0, 1.1, 42), (-14.0, 0.8, 76))
    phi, *logs = grid.points
    step, noise = np.exp(logs)
    parts = []
    for start in range(0, len(phi), CHUNK):
        at = slice(start, start + CHUNK)
        precision = truth.chain_precision(4.0, phi[at], step[at] ** 2, len(data["y"]))
        parts.append(truth.given_noise(precision, noise[at] ** 2, data["y"]))
    log_evidence, mean, variance = (np.concatenate(part) for part in zip(*parts, strict=True))
    prior = stats.halfnorm()
    log_density = log_evidence + stats.norm.logpdf(phi, 0.5, 0.3) + of_log(prior, logs[0]) + of_log(prior, logs[1])
    return grid.entry(
        log_density, {"x": (mean, variance), "phi": known(phi), "step": known(step), "noise": known(noise)}
    )


def local_level(data):
    """A level of 50 years given both spreads."""
    grid = Grid.of((-17.0, 1.4, 185), (-9.0, 1.6, 161))
    logs = grid.points
    step, noise = np.exp(logs)
    length = len(data["flow"])
    weight = columns((1, 0.04), (length - 1, step**-2.0))
    root = np.eye(length) - np.eye(length, k=-1)
    found = linear(np.full(length, 10.0), root, weight, np.eye(length), data["flow"], noise**-2.0)
    log_evidence, mean, variance = found
    priors = of_log(stats.halfnorm(), logs[0]) + of_log(stats.halfnorm(scale=2.0), logs[1])
    return grid.entry(log_evidence + priors, {"level": (mean, variance), "step": known(step), "noise": known(noise)})


def eight_schools(data):
    """Effects of schools given their spread."""
    grid = Grid.of((-20.0, 7.0, 2001))
    (logs,) = grid.points
    s = np.asarray(data["s"], float)
    design, y = np.hstack([np.zeros((8, 1)), np.eye(8)]) / s[:, None], np.asarray(data["y"]) / s
    weight = columns((1, 0.04), (8, np.exp(-2.0 * logs)))
    log_evidence, mean, variance = linear(np.zeros(9), around(8), weight, design, y, np.ones(len(logs)))
    values = {"mu": (mean[:, 0], variance[:, 0]), "theta": (mean[:, 1:], variance[:, 1:]), "tau": known(np.exp(logs))}
    return grid.entry(log_evidence - np.log(s).sum() + of_log(stats.halfcauchy(scale=5.0), logs), values)


# independent Gaussian effects in counts -------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Poisson:
    """Counts of rate exp(score)."""

    y: np.ndarray

    def first_scores(self):
        return np.log(self.y + 0.5)

    def log_likelihood(self, score):
        return stats.poisson.logpmf(self.y, 1.0) + 1.0 + self.y * score - np.exp(score)

    def slope(self, score):
        return self.y - np.exp(score)

    def curvature(self, score):
        return np.exp(score)


@dataclasses.dataclass(frozen=True)
class Binomial:
    """Counts out of `n` with logit `score`."""

    y: np.ndarray
    n: np.ndarray

    def first_scores(self):
        return np.log((self.y + 0.5) / (self.n - self.y + 0.5))

    def log_likelihood(self, score):
        ways = -special.betaln(self.y + 1.0, self.n - self.y + 1.0) - np.log(self.n + 1.0)
        return ways + self.y * score - self.n * np.logaddexp(0.0, score)

    def slope(self, score):
        return self.y - self.n * special.expit(score)

    def curvature(self, score):
        return self.n * special.expit(score) * special.expit(-score)


def effects(counts, score, tau):
    """Of e ~ N(0, 1 / tau) in the likelihood of score + e: log of the integral, mean and variance of e.

    The trapezoidal rule at the mode plus a width times sinh(u), which resolves the peak and reaches the tails.
    """
    bound = counts.slope(score) / tau  # the mode lies between it and zero, as the likelihood is log concave
    low, high = np.minimum(bound, 0.0), np.maximum(bound, 0.0)
    for _ in range(50):
        middle = 0.5 * (low + high)
        rising = counts.slope(score + middle) > tau * middle
        low, high = np.where(rising, middle, low), np.where(rising, high, middle)
    width = 1.0 / np.sqrt(tau + counts.curvature(score + low))
    u = np.linspace(-4.2, 4.2, 43)
    shape = (-1,) + (1,) * np.ndim(score)
    e = low + width * np.sinh(u).reshape(shape)
    log_f = counts.log_likelihood(score + e) + 0.5 * np.log(tau) - truth.LOG_ROOT_2_PI - 0.5 * tau * e**2
    log_f += np.log(width * (u[1] - u[0])) + np.log(np.cosh(u)).reshape(shape)
    log_integral = special.logsumexp(log_f, axis=0)
    weight = np.exp(log_f - log_integral)
    mean = (weight * e).sum(0)
    return log_integral, mean, (weight * (e - mean) ** 2).sum(0)


def hermite(log_density, mean, covariance, order):
    """Points and log weights of a product Gauss-Hermite rule fitted to a Gaussian."""
    node, weight = np.polynomial.hermite_e.hermegauss(order)
    axes = np.meshgrid(*[node] * len(mean), indexing="ij")
    standard = np.stack([axis.ravel() for axis in axes], -1)
    log_weight = sum(np.log(one).ravel() for one in np.meshgrid(*[weight] * len(mean), indexing="ij"))
    root = np.linalg.cholesky(covariance)
    points = mean + standard @ root.T
    log_weight = log_weight + 0.5 * (standard**2).sum(-1) + np.log(np.diag(root)).sum()
    return points, log_weight + log_density(points)


def fitted(log_density, mean, covariance, order):
    """A Gaussian of the density's moments, from a rule of this order again and again."""
    for _ in range(6):
        points, log_weight = hermite(log_density, mean, covariance, order)
        weight = special.softmax(log_weight)
        mean = weight @ points
        covariance = (weight * (points - mean).T) @ (points - mean)
    return mean, covariance


def with_effects(counts, design, prior_sd, logs, order, fit_order):
    """Points of coefficients and of the precision of one effect for each count, and what is known at them."""
    coefficients = np.linalg.lstsq(design, counts.first_scores(), rcond=None)[0]
    covariance = 4.0 * np.linalg.inv(design.T @ (counts.curvature(design @ coefficients)[:, None] * design))
    found = []
    for log_tau in logs[::-1]:  # from no effects to large ones, each fit starting from the last

        def log_density(points, log_tau=log_tau):
            prior = stats.norm.logpdf(points, 0.0, prior_sd).sum(-1)
            return prior + effects(counts, points @ design.T, np.exp(log_tau))[0].sum(-1)

        coefficients, covariance = fitted(log_density, coefficients, covariance, fit_order)
        points, log_weight = hermite(log_density, coefficients, covariance, order)
        _, mean, variance = effects(counts, points @ design.T, np.exp(log_tau))
        found.append((log_weight + of_log(VAGUE, log_tau), points, mean, variance, np.full(len(points), log_tau)))
    log_weight, points, mean, variance, log_tau = (np.concatenate(part) for part in zip(*found, strict=True))
    ends = [special.logsumexp(found[end][0]) for end in (0, -1)]
    if max(ends) > special.logsumexp(log_weight) - 14.0:
        raise ValueError(f"the axis of log tau ends {special.logsumexp(log_weight) - np.array(ends)} below the whole")
    how = f"grid of {len(logs)} log precisions by Gauss-Hermite rules of order {order}, effects by a rule of 43 points"
    return how, log_weight + np.log(logs[1] - logs[0]), points, (mean, variance), log_tau


def surgical(data):
    """The centre and the precision of the effects on a grid."""
    counts = Binomial(np.asarray(data["r"]), np.asarray(data["n"]))
    how, log_weight, points, (mean, variance), log_tau = with_effects(
        counts, np.ones((12, 1)), 1000.0, np.linspace(-3.5, 10.5, 281), 41, 15
    )
    values = {"mu": known(points[:, 0]), "b": (points + mean, variance), "tau": known(np.exp(log_tau))}
    return truth.weighted(how, log_weight, values)


def salm(data):
    """Three coefficients and the precision of the effects on a grid."""
    dose = np.column_stack([np.ones(6), data["log_x"], data["x"]])
    counts = Poisson(np.ravel(data["y"]))
    how, log_weight, points, (mean, variance), log_tau = with_effects(
        counts, np.repeat(dose, 3, 0), 10.0, np.linspace(-2.0, 10.5, 101), 9, 5
    )
    values = {name: known(points[:, k]) for k, name in enumerate(("alpha", "beta", "gamma"))}
    shape = (-1, 6, 3)
    values |= {"lambda": (mean.reshape(shape), variance.reshape(shape)), "tau": known(np.exp(log_tau))}
    return truth.weighted(how, log_weight, values)


def blocker(data):
    """Rates of the controls and effects of each trial on grids, given the centre and the spread of the effects."""
    grid = Grid.of((-1.6, 1.2, 141), (-18.0, 0.2, 160))
    d, log_sigma = grid.points
    u = np.linspace(-8.0, 8.0, 161)
    log_u = stats.norm.logpdf(u) + np.log(u[1] - u[0])
    delta = d + np.exp(log_sigma) * u[:, None]
    log_evidence, means, variances = 0.0, {"mu": [], "delta": []}, {"mu": [], "delta": []}
    for nc, rc, nt, rt in zip(*(np.asarray(data[name]) for name in ("nc", "rc", "nt", "rt")), strict=True):
        log_f, mu_mean, mu_variance = (spline(delta) for spline in by_effect(Binomial(rc, nc), Binomial(rt, nt)))
        log_weight = log_f + log_u[:, None]
        total = special.logsumexp(log_weight, axis=0)
        weight = np.exp(log_weight - total)
        log_evidence = log_evidence + total
        for name, mean, variance in (("mu", mu_mean, mu_variance), ("delta", delta, 0.0)):
            first = (weight * mean).sum(0)
            means[name].append(first)
            variances[name].append((weight * (variance + (mean - first) ** 2)).sum(0))
    values = {name: (np.stack(means[name], -1), np.stack(variances[name], -1)) for name in means}
    values |= {"d": known(d), "sigma": known(np.exp(log_sigma))}
    log_prior = stats.norm.logpdf(d, 0.0, 10.0) + of_log(stats.halfnorm(), log_sigma)
    return grid.entry(log_evidence + log_prior, values)


def by_effect(control, treated):
    """Splines over the effect in one trial: the log likelihood without the control's rate, its mean and variance."""
    delta, mu = np.linspace(-12.0, 12.0, 1201), np.linspace(-20.0, 14.0, 1701)[:, None]
    log_f = stats.norm.logpdf(mu, 0.0, 10.0) + control.log_likelihood(mu) + treated.log_likelihood(mu + delta)
    total = special.logsumexp(log_f, axis=0)
    weight = np.exp(log_f - total)
    mean = (weight * mu).sum(0)
    variance = (weight * (mu - mean) ** 2).sum(0)
    cell = np.log(mu[1, 0] - mu[0, 0])
    return [interpolate.CubicSpline(delta, one) for one in (total + cell, mean, variance)]


def chance_and_total(data, total_prior, log_totals):
    """A Beta of unknown mean and total, its draws seen in binomial counts: by the mean's logit and the log total."""
    grid = Grid.of((-4.0, 6.0, 401), log_totals)
    logit, log_total = grid.points
    mean, total = special.expit(logit), np.exp(log_total)
    a, b = (total * mean)[:, None], (total * special.expit(-logit))[:, None]
    y, n = np.asarray(data["r"], float), np.asarray(data["n"], float)
    ways = -special.betaln(y + 1.0, n - y + 1.0) - np.log(n + 1.0)
    log_density = (ways + special.betaln(a + y, b + n - y) - special.betaln(a, b)).sum(-1)
    log_density += special.log_expit(logit) + special.log_expit(-logit) + of_log(total_prior, log_total)
    chance = (a + y) / (a + b + n)
    values = {"mean": known(mean), "total": known(total), "p": (chance, chance * (1.0 - chance) / (a + b + n + 1.0))}
    return grid.entry(log_density, values)


def litters(data):
    """The two groups have nothing in common."""
    groups = [{"r": r, "n": n} for r, n in zip(data["r"], data["n"], strict=True)]
    found = [chance_and_total(one, gamma(2.0, 0.1), (-9.0, 6.0, 301)) for one in groups]
    parameters = {
        name: {key: [one["parameters"][name][key] for one in found] for key in ("mean", "sd")}
        for name in ("mean", "p", "total")
    }
    return truth.entry(f"{found[0]['how']} for each group", parameters, sum(one["log_evidence"] for one in found))


def beta_binomial(data):
    return chance_and_total({"r": data["hits"], "n": 45}, gamma(2.0, 0.02), (-2.0, 8.0, 301))


# effects of patients and, within them, of visits ----------------------------------------------------------------------


def stretched(centre, width, count):
    """Points centre + width sinh(u) on a new last axis, and the logs of their cells."""
    u = np.linspace(-3.2, 3.2, count)
    cells = np.log(width[..., None] * (u[1] - u[0])) + np.log(np.cosh(u))
    return centre[..., None] + width[..., None] * np.sinh(u), cells


@dataclasses.dataclass(frozen=True)
class Visits:
    """Counts of patients at visits: log rates s of patients and t of their visits at points that the data choose."""

    data: dict
    points: int = 25

    def grids(self):
        y = self.data["y"]
        centre = np.log((y.sum(1) + 1.0) / y.shape[1])
        width = 1.0 / np.sqrt(4.0 + 4.0 / (0.125 + np.exp(-centre)))
        s, s_cell = stretched(centre, width, self.points)
        t = np.broadcast_to(centre[:, None], y.shape)
        for _ in range(50):  # to the mode with a precision of 8 of the visits
            step = (y - np.exp(t) - 8.0 * (t - centre[:, None])) / (8.0 + np.exp(t))
            t = t + np.clip(step, -0.5, 0.5)
        t, t_cell = stretched(t, 1.0 / np.sqrt(8.0 + np.exp(t)), self.points)
        seen = np.exp(stats.poisson.logpmf(y[..., None], np.exp(t)) + t_cell)
        return s, s_cell, seen[:, :, None], t[:, :, None] - s[:, None, :, None]

    def at(self, theta, grids):
        """Log likelihood; effects of patients and visits: their weights at the points, and both effects there."""
        s, s_cell, seen, gap = grids
        beta, last, (tau_patient, tau_visit) = theta[:5], theta[5], np.exp(theta[6:])
        b = gap - (last * self.data["fourth"])[:, None, None]
        kernel = np.exp(-0.5 * tau_visit * b**2) * (np.sqrt(tau_visit / (2.0 * np.pi)) * seen)
        of_visit = kernel.sum(-1)
        b1 = s - (self.data["x"] @ beta)[:, None]
        log_f = np.log(of_visit).sum(1) - 0.5 * tau_patient * b1**2 + s_cell
        log_f += 0.5 * np.log(tau_patient) - truth.LOG_ROOT_2_PI
        total = special.logsumexp(log_f, axis=1)
        weight = np.exp(log_f - total[:, None])
        return total.sum(), (weight, b1), (weight[:, None, :, None] * kernel / of_visit[..., None], b)


def epil(data):
    """Importance sampling over six coefficients and two log precisions, effects summed over grids at each point."""
    visits = Visits(data)
    grids = visits.grids()

    def log_density(theta):
        prior = stats.norm.logpdf(theta[:, :6], 0.0, 100.0).sum(-1) + of_log(VAGUE, theta[:, 6:]).sum(-1)
        return prior + np.array([visits.at(one, grids)[0] for one in theta])

    def values(theta):
        moments = {"b1": [], "b": []}
        for one in theta:
            _, *parts = visits.at(one, grids)
            for (name, found), (weight, effect) in zip(moments.items(), parts, strict=True):
                axes = (1,) if name == "b1" else (2, 3)
                mean = (weight * effect).sum(axes)
                found.append((mean, (weight * effect**2).sum(axes) - mean**2))
        found = {name: tuple(np.array(part) for part in zip(*pairs, strict=True)) for name, pairs in moments.items()}
        found |= {"beta": known(theta[:, :5]), "last": known(theta[:, 5])}
        return found | {f"tau.{name}": known(np.exp(theta[:, k])) for name, k in (("patient", 6), ("visit", 7))}

    return truth.importance(log_density, [1.6, 0.9, -0.9, 0.3, 0.5, -0.1, 1.4, 2.1], values, count=2**11, rounds=9)


# few variables --------------------------------------------------------------------------------------------------------


def seasonal_counts(data):
    design = np.column_stack([np.ones(len(data["t"])), data["t"], data["wave"]])
    counts = Poisson(data["y"])

    def log_density(theta):
        prior = stats.norm.logpdf(theta, [2.0, 0.0, 0.0, 0.0], [2.0, 1.0, 1.0, 1.0]).sum(-1)
        return prior + counts.log_likelihood(theta @ design.T).sum(-1)

    def values(theta):
        return {"level": known(theta[:, 0]), "trend": known(theta[:, 1]), "season": known(theta[:, 2:])}

    return truth.importance(log_density, [1.8, 0.1, 0.5, -0.2], values)


def weibull_regression(data):
    x, log_time = data["x"], np.log(data["time"])

    def log_density(theta):
        a, b, log_shape = theta.T[..., None]
        shape = np.exp(log_shape)
        z = shape * (log_time - a - b * x)
        log_likelihood = (log_shape + z - np.exp(z) - log_time).sum(-1)
        prior = stats.norm.logpdf(theta[:, :2], 0.0, 2.0).sum(-1) + of_log(gamma(2.0, 1.0), theta[:, 2])
        return log_likelihood + prior

    def values(theta):
        return {"intercept": known(theta[:, 0]), "slope": known(theta[:, 1]), "shape": known(np.exp(theta[:, 2]))}

    return truth.importance(log_density, [0.5, 0.4, 0.5], values)


def eyes(data):
    """Classes summed out; half of the points near the two peaks, half where one class has all of the data.

    Points: first, log shift, log sigma and the logit of p. With one class empty, `first` or the sum is at the mean.
    """
    y = data["y"]

    def log_shares(theta):
        first, log_shift, log_sigma, logit = theta.T[..., None]
        off = (
            stats.norm.logpdf(y, first, np.exp(log_sigma)),
            stats.norm.logpdf(y, first + np.exp(log_shift), np.exp(log_sigma)),
        )
        return off[0] + special.log_expit(-logit), off[1] + special.log_expit(logit)

    def log_prior(theta):
        scales = of_log(stats.halfnorm(scale=30.0), theta[:, 1]) + of_log(stats.halfnorm(scale=10.0), theta[:, 2])
        return stats.norm.logpdf(theta[:, 0], 540.0, 30.0) + scales + stats.logistic.logpdf(theta[:, 3])

    def log_density(theta):
        return np.logaddexp(*log_shares(theta)).sum(-1) + log_prior(theta)

    peaks = optimize.minimize(lambda x: -log_density(x[None])[0], [537.0, np.log(12.0), np.log(3.6), -0.4])
    near = stats.multivariate_t(peaks.x, 1.3 * peaks.hess_inv, df=5.0, seed=0)
    rng, count = np.random.default_rng(0), 2**18
    theta = near.rvs(count)
    one_class = np.arange(count) < count // 2
    second_only = np.arange(count) < count // 4
    far = np.log(np.abs(30.0 * rng.normal(size=count))), np.log(7.0) + 0.3 * rng.normal(size=count)
    middle = y.mean() + 3.0 * rng.normal(size=count) - np.exp(far[0]) * second_only
    theta[one_class] = np.stack([middle, *far, rng.logistic(size=count)], 1)[one_class]
    log_far = of_log(stats.halfnorm(scale=30.0), theta[:, 1]) + stats.norm.logpdf(theta[:, 2], np.log(7.0), 0.3)
    log_far += stats.logistic.logpdf(theta[:, 3])
    each = [np.log(0.5) + near.logpdf(theta)]
    for shift in (np.exp(theta[:, 1]), 0.0):
        each.append(np.log(0.25) + log_far + stats.norm.logpdf(theta[:, 0] + shift, y.mean(), 3.0))
    log_weight = log_density(theta) - special.logsumexp(each, axis=0) - np.log(count)
    weight = special.softmax(log_weight)
    effective = 1.0 / np.sum(weight**2)
    how = (
        f"importance sampling, {count:,} draws of a Student t at the peaks and of one class, effective {effective:,.0f}"
    )
    first, second = log_shares(theta)
    values = {"first": known(theta[:, 0]), "shift": known(np.exp(theta[:, 1])), "sigma": known(np.exp(theta[:, 2]))}
    values |= {"p": known(special.expit(theta[:, 3])), "second": special.expit(second - first)}
    return truth.weighted(how, log_weight, values)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", metavar="NAME")
    chosen = parser.parse_args().only
    for file in ("bugs", "stan"):
        module = importlib.import_module(file)
        for make in (*module.MODELS, *module.WITHOUT_REFERENCE):
            name = make.__name__
            if name not in ENTRIES or (chosen and name not in chosen):
                continue
            found = ENTRIES[name](make()[1])
            if name in NOTES:
                found["note"] = NOTES[name]
            print(f"{name}: {found['how']}; log evidence {found['log_evidence']}", flush=True)
            path = HERE / f"{file}.json"
            truth.write(path, json.loads(path.read_text()) | {name: found})


ENTRIES = {
    function.__name__: function
    for function in (
        five_points,
        rats,
        dyes,
        equiv,
        surgical,
        salm,
        blocker,
        litters,
        epil,
        eyes,
        ar1_plus_noise,
        local_level,
        eight_schools,
        beta_binomial,
        seasonal_counts,
        weibull_regression,
    )
}


if __name__ == "__main__":
    main()
