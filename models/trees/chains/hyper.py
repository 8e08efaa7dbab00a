"""Hyperparameters given a tree: each maximised, in logarithms, with the tree's structure and times fixed."""

from __future__ import annotations

import dataclasses

import numpy as np
from scipy import optimize
from scipy.special import gammaln

from ....engine.support.user_numbers import two_positive
from ....factors.errors import ModelError
from ..backend import Kernels
from ..divergence import Divergence
from ..likelihoods.times import branch_points
from ..prior import Tables, TreePrior, tables
from ..shapes.arrays import Arrays, Leaves

LEARNABLE = ("variance", "noise", "rate", "concentration", "discount")


@dataclasses.dataclass(frozen=True)
class Hyperpriors:
    """Priors of the hyperparameters that are learned; gamma distributions as (shape, rate).

    Args:
        precision: of 1 / diffusion variance.
        noise: of 1 / noise variance of continuous columns.
        rate: of the divergence function's rate.
        concentration: of the concentration.
        discount: two shapes of a beta distribution.

    Source: knowles2015pitman.
    """

    precision: tuple[float, float] = (1.0, 1.0)
    noise: tuple[float, float] = (1.0, 0.01)
    rate: tuple[float, float] = (1.0, 1.0)
    concentration: tuple[float, float] = (2.0, 0.5)
    discount: tuple[float, float] = (1.0, 1.0)

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            if not two_positive(pair := getattr(self, field.name)):
                raise ModelError(f"The prior of {field.name} takes two positive numbers; found {pair!r}.")


def log_gamma_of_log(log_value: np.ndarray, prior: tuple[float, float]) -> float:
    """Log density of the logarithm of gamma variables, summed: `shape log x - rate x` and its constant."""
    shape, rate = prior
    return float(np.sum(shape * (np.log(rate) + log_value) - rate * np.exp(log_value) - gammaln(shape)))


def best_variance(
    arrays: Arrays,
    leaves: Leaves,
    table: Tables,
    variance: np.ndarray,
    prior: tuple[float, float],
    engine: Kernels,
    *,
    shared: bool,
) -> np.ndarray:
    """(D,) diffusion variances that maximise evidence times prior of their logarithms, by L-BFGS on exact gradients.

    Args:
        leaves: in units of the present `variance`.
        shared: one variance for all columns, else one for each.
    """
    known = np.isfinite(np.broadcast_to(leaves.variance, leaves.mean.shape)).sum(axis=0)
    precision = 1.0 / np.asarray(variance, dtype=np.float64)
    shape, rate = prior

    def value(step: np.ndarray) -> tuple[float, np.ndarray]:  # steps in the logs of the columns' scales
        step = np.broadcast_to(step, known.shape)
        moved = Leaves(leaves.mean * np.exp(-step), _scaled(leaves.variance, step))
        log_joint, _, gradient = engine.joint_gradient(arrays, moved, table)
        now = precision * np.exp(-2.0 * step)
        if shared:
            penalty, slope = shape * np.log(now[0]) - rate * now[0], np.array([-2.0 * (shape - rate * now[0])])
            gradient = np.array([gradient.sum()])
        else:
            penalty, slope = np.sum(shape * np.log(now) - rate * now), -2.0 * (shape - rate * now)
        return -(float(log_joint) - known @ step + penalty), -(np.asarray(gradient) + slope)

    start = np.zeros(1 if shared else len(known))
    result = optimize.minimize(
        value, start, jac=True, method="L-BFGS-B", bounds=[(-10.0, 10.0)] * len(start), options={"maxfun": 30}
    )
    return np.asarray(variance) * np.exp(2.0 * np.broadcast_to(result.x, known.shape))


def _scaled(variance: np.ndarray, step: np.ndarray) -> np.ndarray:
    """Leaf variances in new units; one column is enough while all columns move together."""
    if variance.shape[1] == 1 and (not variance.any() or np.ptp(step) == 0.0):
        return variance * np.exp(-2.0 * step[0])
    return variance * np.exp(-2.0 * step)


def best_rate(arrays: Arrays, prior: TreePrior, gamma: tuple[float, float]) -> TreePrior:
    """The rate of divergence that maximises the times' density times the prior of its logarithm: closed form.

    It is `(shape + points) / (rate + sum over branch points of H(m - 1) (depth - depth of the parent))`.
    """
    if prior.divergence.constant or prior.divergence.square:
        raise ModelError(
            "The rate is learned for the divergence function rate / (1 - t) only; fix the other terms at 0."
        )
    points, depth = branch_points(arrays), np.asarray(arrays.depth)
    harmonic = tables(prior, len(depth) // 2).harmonic[np.asarray(arrays.count)[points] - 1]
    waited = harmonic @ (depth[points] - depth[np.asarray(arrays.parent)[points]])
    rate = (gamma[0] + len(points)) / (gamma[1] + waited)
    return dataclasses.replace(prior, divergence=Divergence(rate=float(rate)))


def best_structure(arrays: Arrays, prior: TreePrior, priors: Hyperpriors, learn: frozenset[str]) -> TreePrior:
    """Concentration and discount (either or both) of the largest density of structure and times, times their priors
    in the log and the logit; the times' rate stays. They stay non-negative: the regime of any number of children.
    """
    free = [name for name in ("concentration", "discount") if name in learn]
    log_density = structure_density(arrays, prior.divergence)

    def candidate(x: np.ndarray) -> TreePrior:
        values = dict(zip(free, x, strict=True))
        concentration = np.exp(values["concentration"]) if "concentration" in values else prior.concentration
        discount = 1.0 / (1.0 + np.exp(-values["discount"])) if "discount" in values else prior.discount
        return dataclasses.replace(prior, concentration=float(concentration), discount=float(discount))

    def value(x: np.ndarray) -> float:
        proposal = candidate(x)
        total = log_density(proposal)
        if "concentration" in free:
            total += log_gamma_of_log(np.log(proposal.concentration), priors.concentration)
        if "discount" in free:
            first, second = priors.discount
            total += first * np.log(proposal.discount) + second * np.log1p(-proposal.discount)
        return -total

    start = {"concentration": np.log(max(prior.concentration, 0.05)), "discount": _logit(prior.discount)}
    bounds = {"concentration": (-6.0, 4.0), "discount": (-8.0, 3.0)}
    result = optimize.minimize(
        value,
        [np.clip(start[name], *bounds[name]) for name in free],
        method="L-BFGS-B",
        bounds=[bounds[name] for name in free],
    )
    return candidate(result.x)


def structure_density(arrays: Arrays, divergence: Divergence):
    """Log density of structure and times as a function of the prior, for one tree: `log_prior` on padded arrays."""
    points, depth = branch_points(arrays), np.asarray(arrays.depth)
    parent, count, degree = (np.asarray(part) for part in (arrays.parent, arrays.count, arrays.degree))
    below = count[: len(parent) - 1][parent[:-1] >= 0]
    top = count[parent == len(parent) - 1]
    passed = divergence.cumulative(depth[points]) - divergence.cumulative(depth[parent[points]])
    start = float(np.log(divergence.intensity(depth[points])).sum())

    def value(prior: TreePrior) -> float:
        table = tables(prior, len(parent) // 2)
        total = start - passed @ table.harmonic[count[points] - 1]
        total += table.log_follow[below].sum() - table.log_follow[top].sum() - table.log_total[count[points]].sum()
        total += np.cumsum(table.log_new)[degree[points]].sum() - (degree[points] - 1).sum() * table.log_unit
        return float(total)

    return value


def _logit(discount: float) -> float:
    discount = min(max(discount, 1e-3), 1.0 - 1e-3)
    return float(np.log(discount) - np.log1p(-discount))
