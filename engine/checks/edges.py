"""Scales at the edge of their prior: in its tail, where the prior decides and not the data, or not told from zero."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ...compiler.language.nodes import Random, is_data
from ...factors.arrays import Array
from ...factors.conditionals import conditional_of
from ...factors.errors import UnsupportedError
from ...factors.factor import Term
from ...factors.switches import double_precision
from ..answers.inferred import Inferred
from ..data.missing_and_sparse import Arrays
from ..values.evaluate import value
from ..values.scope import Scope

TAIL = 0.01  # of the prior, on either side
STEEP = 1.5  # slope of the log density in the logarithm: tails of a Cauchy or of a vague Gamma decide nothing
UNTOLD = 0.7  # sd over mean: a half-normal distribution has .76
NAMED = 3


class Edge(NamedTuple):
    """A positive variable: the median of its belief and sd over mean, and the prior there: mass below, log slope."""

    name: str
    median: float
    relative: float
    below: float
    slope: float

    @property
    def in_tail(self) -> bool:
        """Whether the belief is where the prior has next to no mass and falls steeply."""
        return (self.below > 1.0 - TAIL and self.slope < -STEEP) or (self.below < TAIL and self.slope > STEEP)

    @property
    def at_zero(self) -> bool:
        """Whether the belief leans against zero, which its prior does not keep it from."""
        return self.relative > UNTOLD and self.slope < STEEP


def in_tails(posterior: Inferred) -> str:
    """Which variables have beliefs in a tail of their priors, in a sentence; "" for none."""
    found = [edge for edge in _edges(posterior) if edge.in_tail]
    if not found:
        return ""
    named = ", ".join(f"'{edge.name}' (median {edge.median:.3g}, {_mass(edge)})" for edge in found[:NAMED])
    return f"In the tail of its prior: {named}. Look at the units of the data, or give a wider prior."


def at_zero(posterior: Inferred) -> str:
    """Which variables are not told from zero, in a sentence; "" for none."""
    found = [edge.name for edge in _edges(posterior) if edge.at_zero]
    return f"Not told from zero by the data: {', '.join(found[:NAMED])}." if found else ""


def _mass(edge: Edge) -> str:
    share, side = (edge.below, "below") if edge.below < TAIL else (1.0 - edge.below, "above")
    return f"{100.0 * share:.1g} % of the prior lies {side}"


def _edges(posterior: Inferred) -> Iterator[Edge]:
    """Positive variables whose priors have known arguments; of several elements the one that is farthest out."""
    for name, node in posterior.model.randoms.items():
        if not node.domain.is_positive or name in posterior.request.observed or name not in posterior.families:
            continue
        if not isinstance(node.term, Term) or not all(is_data(arg) for arg in node.term.args.values()):
            continue
        mean, sd = np.ravel(posterior[name].mean), np.ravel(posterior[name].sd)
        if mean.size and np.all(np.isfinite(mean)) and np.all(np.isfinite(sd)) and np.all(mean > 0.0):
            spread = np.log1p((sd / mean) ** 2)
            medians = mean * np.exp(-0.5 * spread)
            try:
                found = [_edge(posterior, node, float(x), float(s)) for x, s in _ends(medians, sd / mean)]
            except UnsupportedError:
                continue  # a prior without a distribution function
            yield max(found, key=lambda edge: abs(edge.below - 0.5))


def _ends(medians: np.ndarray, relative: np.ndarray) -> list[tuple[float, float]]:
    return [(medians[i], relative[i]) for i in {int(np.argmin(medians)), int(np.argmax(medians))}]


def _edge(posterior: Inferred, node: Random, median: float, relative: float) -> Edge:
    with double_precision():
        call = posterior.machine.function("prior at", (node.name,), partial(_prior_at, node, posterior.binding.sizes))
        below, slope = call(posterior.arrays, np.float64(median))
    return Edge(node.name, median, relative, float(below), 1.0 + median * float(slope))


def _prior_at(node: Random, sizes: Mapping[str, int], arrays: Arrays, median: Array) -> tuple[Array, Array]:
    """The mass of the prior below a number, and the slope of its log density there."""
    assert isinstance(node.term, Term)
    conditional, scope = conditional_of(node.term.factor, "positive"), Scope(dict(sizes), arrays, {})
    given = {edge: jnp.asarray(value(arg, scope).value, float) for edge, arg in node.term.args.items()}
    if conditional.below is None or any(array.ndim for array in given.values()):
        raise UnsupportedError("Only priors that are alike for all elements are looked at.")
    slope = jax.grad(lambda x: jnp.asarray(conditional.log_density(x, **given)))(median)
    return jnp.asarray(conditional.below(median, **given)), slope
