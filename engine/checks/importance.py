"""Importance sampling from the beliefs of a posterior: draws of their product, weighted by the model's joint density.

Unlike the draws of a verdict, which go wherever the density is, these come from the beliefs alone: their weights say
how good the beliefs are as a proposal, and the mean weight is an unbiased estimate of the evidence.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from ...factors.errors import DataError
from ...factors.switches import double_precision
from ..answers.inferred import Inferred
from ..answers.marginal import Marginal
from ..density.expressions_at_draws import values_of_expressions
from ..density.log_density import density_of
from ..distributions.weighted_draws import WeightedDraws
from ..options import seed_of
from ..support.asked_arguments import check_counts
from .psis import GOOD_K
from .reference import belief_draws, functions, weighted

FEWEST = 25  # draws to whose weights a tail is fitted


@dataclasses.dataclass(frozen=True, eq=False)
class Importance:
    """Weighted draws from beliefs.

    Attributes:
        draws: by name, (draws, plates, event), of all continuous variables that the data tell of, and of the named
            expressions of them; discrete ones are summed out.
        weights: (draws,) their smoothed probabilities.
        log_weights: (draws,) log p(draw, data) - log q(draw), as they were before.
        effective: how many equally weighted draws they are worth.
        k: shape of the tail of the weights; averages can be trusted below 0.7.
        log_evidence: logarithm of the mean weight; its standard error in nats is `error`.
        kinds: by name the kind of a variable's domain.
    """

    draws: dict[str, np.ndarray]
    weights: np.ndarray
    log_weights: np.ndarray
    effective: float
    k: float
    log_evidence: float
    error: float
    kinds: dict[str, str]

    @property
    def usable(self) -> bool:
        """Whether averages with these weights can be trusted."""
        return self.k < GOOD_K

    def __getitem__(self, name: str) -> Marginal:
        """The marginal of a variable or a named expression, by the weighted draws."""
        if name not in self.draws:
            raise DataError(f"There are no draws of '{name}'. There are: {', '.join(self.draws)}.")
        return Marginal(WeightedDraws(self.draws[name], self.weights, self.kinds[name]), name)

    def __str__(self) -> str:
        told = "" if self.usable else "; averages with such weights cannot be trusted (k of at least 0.7)"
        return (
            f"{len(self.weights)} draws from the beliefs, worth {self.effective:.0f} independent ones (Pareto k "
            f"{self.k:.2f}); log evidence {self.log_evidence:.6g} +- {self.error:.2g}{told}."
        )


def importance(posterior: Inferred, draws: int = 4000, seed: int = 0) -> Importance:
    """Weighted draws from the product of the marginals of `posterior`: see `Posterior.importance`."""
    check_counts("posterior.importance", draws=draws)
    if draws < FEWEST:
        raise DataError(f"draws={draws} are too few to judge their weights by; give at least {FEWEST}.")
    density = density_of(posterior)
    with double_precision():
        call = functions(density)
        drawn = belief_draws(density, call, posterior, seed_of(seed), draws, restricted=False)
        log_weights = call.log_density(drawn.z) - drawn.log_q
        found = weighted(drawn.z, log_weights)
        values = {**drawn.values, **values_of_expressions(density, drawn.values)}
    nodes = {**posterior.model.lets, **posterior.model.randoms}
    return Importance(
        {name: np.asarray(array) for name, array in values.items()},
        found.weighted.weights,
        log_weights,
        found.weighted.effective,
        found.weighted.k,
        found.log_total,
        found.error,
        {name: nodes[name].domain.kind for name in values},
    )
