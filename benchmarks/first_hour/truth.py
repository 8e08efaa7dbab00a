"""Ways to the truth that share nothing with the engine: weighted points, grids, importance sampling, Gibbs sampling.

Each gives an entry of the json of references: how it was made, a mean and an sd for every element of every latent
variable (probabilities without sd), and the log evidence. Values at points are a pair (mean, variance) given the point,
or an array of probabilities; both shaped points + the variable's shape.
"""

import dataclasses
import json

import numpy as np
from scipy import linalg, optimize, special, stats

LOG_ROOT_2_PI = 0.5 * np.log(2.0 * np.pi)


def entry(how, parameters, log_evidence, evidence_how=""):
    return {
        "how": how,
        "parameters": parameters,
        "log_evidence": None if log_evidence is None else float(log_evidence),
        "evidence_how": evidence_how or (how if log_evidence is not None else "not computed"),
    }


def write(path, entries):
    """One line for each variable of each model, so that a change can be read."""
    lines = []
    for name, entry in sorted(entries.items()):
        head = {key: value for key, value in entry.items() if key != "parameters"}
        rows = [f"   {json.dumps(v)}: {json.dumps(found)}" for v, found in entry["parameters"].items()]
        lines.append(
            f" {json.dumps(name)}: {{\n  {json.dumps(head)[1:-1]},\n"
            + '  "parameters": {\n'
            + ",\n".join(rows)
            + "\n  }\n }"
        )
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def rounded(values):
    return np.round(np.asarray(values, float), 7).tolist()


def weighted(how, log_weights, values):
    """The entry of weighted points, the evidence being the sum of the weights."""
    log_weights = np.ravel(log_weights)
    evidence = special.logsumexp(log_weights)
    weights, parameters = np.exp(log_weights - evidence), {}
    for name, value in values.items():
        if isinstance(value, tuple):
            mean, variance = (np.asarray(part, float) for part in value)
            first = np.tensordot(weights, mean, 1)
            second = np.tensordot(weights, variance + (mean - first) ** 2, 1)
            parameters[name] = {"mean": rounded(first), "sd": rounded(np.sqrt(second))}
        else:
            parameters[name] = {"mean": rounded(np.tensordot(weights, np.asarray(value, float), 1))}
    return entry(how, parameters, evidence)


def known(value):
    """A value without spread, of each point."""
    return value, np.zeros_like(value)


@dataclasses.dataclass(frozen=True)
class Grid:
    """Evenly spaced points along each axis, all combinations: the trapezoidal rule."""

    axes: tuple

    @classmethod
    def of(cls, *ranges):
        """Ranges are (low, high, points)."""
        return cls(tuple(np.linspace(*one) for one in ranges))

    @property
    def points(self):
        """The coordinates of all points, an array for each axis."""
        return [axis.ravel() for axis in np.meshgrid(*self.axes, indexing="ij")]

    def entry(self, log_density, values):
        """The entry of a density that the points are given of. Raises ValueError where the borders have mass."""
        cell = sum(np.log(axis[1] - axis[0]) for axis in self.axes)
        table = log_density.reshape([len(axis) for axis in self.axes])
        for axis in range(table.ndim):
            border = np.take(table, [0, -1], axis).max()
            if border > table.max() - 14.0:
                raise ValueError(
                    f"axis {axis} of the grid ends where the density is {border - table.max():.1f} below its top"
                )
        size = " by ".join(str(len(axis)) for axis in self.axes)
        return weighted(f"grid of {size} points", log_density + cell, values)


def log_normal_density(x, mean, variance):
    return -LOG_ROOT_2_PI - 0.5 * np.log(variance) - 0.5 * (x - mean) ** 2 / variance


def truncated(mean, variance, low=-np.inf, high=np.inf):
    """log P(low < x < high), E x and Var x of a Gaussian between two bounds."""
    sd = np.sqrt(variance)
    a, b = (low - mean) / sd, (high - mean) / sd
    flip = a > 0  # both bounds in the right tail: the left one is more exact
    left, right = np.where(flip, -b, a), np.where(flip, -a, b)
    log_mass = special.log_ndtr(right) + np.log1p(-np.exp(special.log_ndtr(left) - special.log_ndtr(right)))
    at = [np.exp(-0.5 * edge**2 - LOG_ROOT_2_PI - log_mass) for edge in (left, right)]
    by = [np.where(np.isfinite(edge), edge, 0.0) * one for edge, one in zip((left, right), at, strict=True)]
    first = at[0] - at[1]
    second = 1.0 + by[0] - by[1] - first**2
    return log_mass, mean + sd * np.where(flip, -first, first), variance * second


def ordered(mean, variance, other_mean, other_variance):
    """log P(a > b), and means and variances of two independent Gaussians a and b given that a > b."""
    both = variance + other_variance
    log_mass, gap, spread = truncated(mean - other_mean, both, low=0.0)
    more = gap - (mean - other_mean)
    first = mean + variance / both * more, variance - variance**2 / both + (variance / both) ** 2 * spread
    second = other_mean - other_variance / both * more, other_variance - (other_variance**2) * (both - spread) / both**2
    return log_mass, first, second


def importance(log_density, start, values, count=2**17, rounds=4):
    """Self-normalised importance sampling from a Student t that is fitted to the density in a few rounds.

    `log_density` takes points + dimensions and gives its logarithm, `values` what `weighted` takes at these points.
    """
    start = np.asarray(start, float)
    found = optimize.minimize(lambda x: -float(log_density(x[None])[0]), start, method="BFGS")
    mean, covariance = found.x, np.atleast_2d(found.hess_inv)
    uniform = stats.qmc.Sobol(len(start) + 1, seed=0).random(count)
    uniform = np.clip(uniform, 1e-12, 1.0 - 1e-12)
    normal, scale = special.ndtri(uniform[:, 1:]), np.sqrt(7.0 / stats.chi2.ppf(uniform[:, :1], 7.0))
    for _ in range(rounds):
        root = linalg.cholesky(covariance, lower=True)
        points = mean + scale * normal @ root.T
        log_weights = log_density(points) - stats.multivariate_t(mean, covariance, df=7.0).logpdf(points)
        weights = special.softmax(log_weights)
        mean = weights @ points
        covariance = (weights * (points - mean).T) @ (points - mean)
    effective = 1.0 / np.sum(weights**2)
    if effective < 0.05 * count:
        raise ValueError(f"only {effective:.0f} of {count} points are effective")
    how = f"importance sampling, {count:,} Sobol points of a fitted Student t, effective {effective:,.0f}"
    return weighted(how, log_weights - np.log(count), values(points))


def gibbs(start, sweep, read, discrete=(), chains=200, draws=2000, warmup=500, seed=0):
    """Gibbs sampling, many chains at once. `start(rng, chains)` gives a state, `sweep(rng, state)` the next one.

    `read(state)` gives arrays by name, shaped chains + the variable's shape; `discrete` names the probabilities.
    R-hat and the effective number of draws come from the spread of the chains' means.
    """
    rng = np.random.default_rng(seed)
    state, sums = start(rng, chains), {}
    for step in range(warmup + draws):
        state = sweep(rng, state)
        if step >= warmup:
            for name, value in read(state).items():
                value = np.asarray(value, float)
                first, second = sums.get(name, (0.0, 0.0))
                sums[name] = first + value, second + value**2
    parameters, worst, effective = {}, 1.0, np.inf
    for name, (first, second) in sums.items():
        means = first / draws
        within = (second / draws - means**2).mean(axis=0)
        between = means.var(axis=0, ddof=1)
        used = within > 1e-12
        worst = max(worst, np.sqrt(np.max((within + between)[used] / within[used], initial=1.0)))
        effective = min(effective, np.min(chains * within[used] / between[used], initial=np.inf))
        mean = means.mean(axis=0)
        sd = np.sqrt(np.maximum(second.mean(axis=0) / draws - mean**2, 0.0))
        parameters[name] = {"mean": rounded(mean)} if name in discrete else {"mean": rounded(mean), "sd": rounded(sd)}
    how = f"Gibbs sampling, {chains} chains of {draws:,} draws after {warmup}, seed {seed}, largest R-hat {worst:.3f}, "
    return entry(how + f"smallest effective size {effective:,.0f}", parameters, None)


def draw_truncated(rng, mean, sd, positive):
    """Gaussian draws on one side of zero: above it where `positive`, below it elsewhere."""
    sign = np.where(positive, 1.0, -1.0)
    top = special.log_ndtr(sign * mean / sd)
    tail = special.ndtri_exp(np.log(rng.random(np.shape(mean))) + top)  # -(x - mean) / sd where positive
    return mean - sign * sd * tail


def draw_category(rng, log_probability):
    """Classes by the last axis of unnormalised log probabilities."""
    return np.argmax(log_probability + rng.gumbel(size=log_probability.shape), axis=-1)


def draw_dirichlet(rng, concentration):
    gamma = rng.gamma(concentration)
    return gamma / gamma.sum(axis=-1, keepdims=True)


def draw_gaussian(rng, precision, shift):
    """Draws of Gaussians by precision matrix and its product with the mean."""
    root = np.linalg.cholesky(precision)
    mean = np.linalg.solve(precision, shift[..., None])
    noise = np.linalg.solve(np.swapaxes(root, -1, -2), rng.normal(size=shift.shape)[..., None])
    return (mean + noise)[..., 0]


def one_hot(classes, count):
    return (np.asarray(classes)[..., None] == np.arange(count)).astype(float)


def smoothed(log_first, log_step, log_seen):
    """Marginals of a chain over the points of a grid, and its log evidence; `log_step` is from row to column."""
    forward, backward = [log_first + log_seen[0]], [np.zeros_like(log_first)]
    for seen in log_seen[1:]:
        forward.append(special.logsumexp(forward[-1][:, None] + log_step, axis=0) + seen)
    for seen in log_seen[:0:-1]:
        backward.append(special.logsumexp(log_step + seen + backward[-1], axis=1))
    joint = np.array(forward) + np.array(backward[::-1])
    return special.softmax(joint, axis=1), special.logsumexp(forward[-1])


def chain_precision(first, coefficient, variance, length):
    """Precisions of x_0 with variance `first` and x_t = coefficient x_(t-1) + noise, for arrays of parameters."""
    coefficient, variance = np.broadcast_arrays(coefficient, np.asarray(variance, float))
    root = np.broadcast_to(np.eye(length), (*coefficient.shape, length, length)).copy()
    later = np.arange(1, length)
    root[..., later, later - 1] = -coefficient[..., None]
    weight = np.broadcast_to(1.0 / variance[..., None], (*variance.shape, length)).copy()
    weight[..., 0] = 1.0 / first
    return np.swapaxes(root, -1, -2) @ (weight[..., None] * root)


def given_noise(precision, noise, y):
    """Of x ~ N(0, 1 / precision) seen as y = x + noise of this variance: log evidence, means and variances."""
    noise = np.broadcast_to(noise, precision.shape[:-2])[..., None]
    covariance = np.linalg.inv(precision + np.eye(len(y)) / noise[..., None])
    mean = covariance @ y / noise
    log_determinants = np.linalg.slogdet(precision)[1] + np.linalg.slogdet(covariance)[1]
    log_evidence = 0.5 * log_determinants - 0.5 * ((y - mean) / noise) @ y
    log_evidence -= len(y) * (LOG_ROOT_2_PI + 0.5 * np.log(noise[..., 0]))
    return log_evidence, mean, np.einsum("...tt->...t", covariance)


def agreed(sampled, integrated, orders=1):
    """A sampled entry with the evidence of an integrated one, after a check that both have the same moments.

    `orders` is the number of equivalent orders of the classes, of which the integrated one has seen one.
    """
    for name, truth in integrated["parameters"].items():
        found = sampled["parameters"][name]
        mean, sd = np.array(truth["mean"]), np.array(truth["sd"])
        off, ratio = np.abs(np.array(found["mean"]) - mean) / sd, np.array(found["sd"]) / sd
        if off.max() > 0.04 or np.abs(ratio - 1.0).max() > 0.04:
            raise ValueError(f"{name}: means differ by {off.max():.3f} sd, sds by a factor of {ratio.ravel()}")
    how = integrated["how"] + (f", times {orders} orders of the classes" if orders > 1 else "")
    return sampled | {"log_evidence": integrated["log_evidence"] + np.log(orders), "evidence_how": how}
