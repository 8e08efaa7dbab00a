"""The prior of a diffusion tree: its parameters, its log density, and the tables that every kernel reads."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from ...engine.support.user_numbers import number
from ...factors.errors import DataError, ModelError
from .divergence import Divergence
from .tree import ORIGIN, Tree

MEASURES = ("depth", "time")
SLOWEST = -600.0  # log of the least rate at which two points part; depths, its inverse, stay in double precision


@dataclasses.dataclass(frozen=True)
class TreePrior:
    """The Pitman-Yor diffusion tree; the Dirichlet diffusion tree where both numbers are zero.

    On a path that m points have taken, the next one diverges with intensity
    `a(t) Gamma(m - discount) / Gamma(m + 1 + concentration)`. At a branch point with K branches taken by b_1 .. b_K
    points it follows branch k with probability `(b_k - discount) / (m + concentration)` and starts a new one with
    probability `(concentration + K discount) / (m + concentration)`.

    Args:
        concentration: 0 for binary trees (with discount 0); large for flat ones with many children.
        discount: below 1. Three regimes: `0 <= discount < 1` with `concentration > -2 discount` (any number of
            children; 0 and 0 is the binary Dirichlet diffusion tree), `discount < 0` with `concentration = -k discount`
            (at most k = 3, 4, ... children), and `concentration = -2 discount` (binary; unbalanced towards 1,
            balanced towards minus infinity).
        divergence: the divergence function a(t).

    Raises:
        ModelError: parameters outside these regimes.

    Source: knowles2015pitman.
    """

    concentration: float = 0.0
    discount: float = 0.0
    divergence: Divergence = dataclasses.field(default_factory=Divergence)

    def __post_init__(self) -> None:
        concentration, discount = number(self.concentration), number(self.discount)
        if not np.isfinite([concentration, discount]).all():
            raise ModelError(
                f"concentration and discount are finite numbers; found {self.concentration!r}, {self.discount!r}."
            )
        object.__setattr__(self, "concentration", concentration)
        object.__setattr__(self, "discount", discount)
        if discount >= 1.0:
            raise ModelError(f"The discount is below 1 (at 1 all paths part at once); found {discount!r}.")
        if discount >= 0.0 and concentration < -2.0 * discount:
            raise ModelError(
                f"With discount {discount:.6g} the concentration is at least {-2.0 * discount:.6g}; found "
                f"{concentration:.6g}: a third child would have negative probability."
            )
        if discount < 0.0 and self.most_children is None:
            raise ModelError(
                f"With a negative discount, {discount:.6g}, the concentration is -k discount for an integer k >= 2, "
                f"the largest number of children; found {concentration:.6g} = {-concentration / discount:.6g} x "
                f"{-discount:.6g}."
            )
        if gammaln(1.0 - discount) - gammaln(2.0 + concentration) < SLOWEST:
            raise ModelError(
                "Two points part with the intensity a(t) Gamma(1 - discount) / Gamma(2 + concentration). At "
                f"concentration {concentration:.6g} and discount {discount:.6g} that is zero in double precision, and "
                "all leaves would coincide. Take a smaller concentration, or a larger discount."
            )
        if not isinstance(self.divergence, Divergence):
            raise ModelError(f"divergence is a Divergence, such as Divergence(rate=1.0); found {self.divergence!r}.")

    @property
    def binary(self) -> bool:
        """Whether every branch point has two children."""
        return self.concentration + 2.0 * self.discount == 0.0

    @property
    def most_children(self) -> int | None:
        """The largest number of children that has positive probability; None where there is no limit."""
        if self.binary:
            return 2
        if self.discount >= 0.0:
            return None
        most = -self.concentration / self.discount
        return round(most) if abs(most - round(most)) < 1e-9 and most > 1.5 else None


class Tables(NamedTuple):
    """What kernels read of a prior, for trees of up to n leaves; entries are indexed by numbers of leaves or children.

    Kernels differ between priors in these numbers only, so that another prior recompiles nothing.

    Attributes:
        coefficients: (3,) constant, rate, square of the divergence function.
        harmonic: (n + 1,) sum over i = 1 .. m of Gamma(i - discount) / Gamma(i + 1 + concentration).
        log_follow: (n + 1,) log Gamma(m - discount), 0 at 0.
        log_total: (n + 1,) log Gamma(m + concentration), 0 at 0 and at 1 where unused.
        log_new: (n + 2,) entry K: log(concentration + (K - 1) discount), the K-th child's factor; 0 below 3, minus
            infinity where there cannot be so many children.
        log_unit: () log Gamma(1 - discount).
    """

    coefficients: np.ndarray
    harmonic: np.ndarray
    log_follow: np.ndarray
    log_total: np.ndarray
    log_new: np.ndarray
    log_unit: np.ndarray


def tables(prior: TreePrior, n: int) -> Tables:
    """The tables of a prior for trees of up to `n` leaves."""
    concentration, discount = prior.concentration, prior.discount
    m = np.arange(1, n + 1, dtype=np.float64)
    steps = np.exp(gammaln(m - discount) - gammaln(m + 1.0 + concentration))
    children = np.arange(3, n + 2, dtype=np.float64)
    weight = concentration + (children - 1.0) * discount
    if prior.most_children is not None:  # rounding must not leave a tiny positive weight
        weight = np.where(children > prior.most_children, 0.0, weight)
    with np.errstate(divide="ignore"):
        log_new = np.concatenate([np.zeros(min(3, n + 2)), np.log(weight)])[: n + 2]
    return Tables(
        coefficients=prior.divergence.coefficients,
        harmonic=np.concatenate([[0.0], np.cumsum(steps)]),
        log_follow=np.concatenate([[0.0], gammaln(m - discount)]),
        log_total=np.concatenate([[0.0, 0.0], gammaln(m[1:] + concentration)])[: n + 1],
        log_new=log_new,
        log_unit=np.asarray(gammaln(1.0 - discount)),
    )


def log_structure(tree: Tree, prior: TreePrior) -> float:
    """Log of the structure's factors (without divergence times): the sum over branch points v with K children of
    `sum_k>=3 log(concentration + (k-1) discount) + sum_l log Gamma(n_l - discount) - log Gamma(m + concentration)
    - (K - 1) log Gamma(1 - discount)`, n_l and m being the leaves below the children and below v.

    It is not the log probability of the structure: the times' factors depend on the structure too.
    """
    table = tables(prior, tree.n_leaves)
    total = 0.0
    for node in range(tree.n_leaves, tree.n_nodes):
        below = tree.children[node]
        total += table.log_new[: len(below) + 1].sum() + table.log_follow[tree.count[list(below)]].sum()
        total -= table.log_total[tree.count[node]] + (len(below) - 1) * float(table.log_unit)
    return float(total)


def log_times(tree: Tree, prior: TreePrior, measure: str = "depth") -> float:
    """Log of the divergence times' factors: the sum over branch points v below u of
    `log a(v) + (A(u) - A(v)) H(m - 1)`, with H the table `harmonic` and m the leaves below v.

    Args:
        measure: "depth" for the density with respect to depths, "time" for that with respect to times. They differ by
            `sum log(1 - t_v)`. Only the first has a maximum where leaves are noisy: see docs/trees.md.
    """
    if measure not in MEASURES:
        raise DataError(f"The measure of the times is one of {', '.join(MEASURES)}; found {measure!r}.")
    table, points = tables(prior, tree.n_leaves), np.arange(tree.n_leaves, tree.n_nodes)
    depth, above = tree.depth[points], tree.parent[points]
    passed = prior.divergence.cumulative(depth) - prior.divergence.cumulative(
        np.where(above == ORIGIN, 0.0, tree.depth[above])
    )
    with np.errstate(divide="ignore"):
        total = np.log(prior.divergence.intensity(depth)) - passed * table.harmonic[tree.count[points] - 1]
    return float(total.sum() + (depth.sum() if measure == "time" else 0.0))


def log_prior(tree: Tree, prior: TreePrior, measure: str = "depth") -> float:
    """Log density of structure and divergence times: `log_structure + log_times`."""
    return log_structure(tree, prior) + log_times(tree, prior, measure)
