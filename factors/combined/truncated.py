"""The truncated factors: any scalar term known to lie between two bounds."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ..arrays import Argument, Array, Key
from ..conditional import inverted
from ..factor import Factor, Term, told_with_name
from ..positive.gamma import factor as gamma
from ..positive.truncated_gamma import factor as truncated_gamma
from ..quadrature.interval_mass import ENDS, log_mass, nodes_between
from ..real.gaussian import factor as gaussian
from ..real.truncated_gaussian import factor as truncated_gaussian
from ..rules import BOUNDS, WITHIN, Rule
from .parts import check_free, densities, refuse_others

_HARD = "the density is zero beyond the bounds, where every belief about it has mass; EP serves it"
_BOUND = "a random bound moves the normaliser and the support together; give it as a number or an input"
_EDGES = ("low", "high")
_CLOSED = {gaussian: truncated_gaussian, gamma: truncated_gamma}  # with operators in closed form
_SOME = Rule(
    _EDGES,
    lambda domain, low, high: (high >= ENDS[domain.kind][0]) & (low <= ENDS[domain.kind][1]),
    "the bounds must leave some of the values that the term generates",
    "Move them.",
)


@functools.cache
def _factor(base: Factor) -> Factor:
    """The truncated factor made of another."""

    def density(value: Callable[[Array], Array], out: Array, bounds: Mapping[str, Array], **own: Array) -> Array:
        inside = (out >= bounds["low"]) & (out <= bounds["high"])
        return jnp.where(inside, value(out) - log_mass(base, bounds["low"], bounds["high"], **own), -jnp.inf)

    found = densities(base, _EDGES, density)
    return Factor(
        name=f"truncated {base.name}",
        edges={**base.edges, **dict.fromkeys(_EDGES, "real")},
        out=base.out,
        **found,
        site_edge=base.site_edge,
        unsupported={**base.unsupported, "out": _HARD, **dict.fromkeys(_EDGES, _BOUND)},
        rules=(*base.rules, BOUNDS, WITHIN, _SOME),
        divides=base.divides,
        bounds=base.bounds | set(_EDGES),
        support=_EDGES if base.kind == "real" else None,
        conditional=_conditional(base),
    )


def _conditional(base: Factor) -> dict[str, Callable[..., Array]]:
    """Mean, variance, distribution function and draws between the bounds."""

    def weighed(low: Array, high: Array, own: dict[str, Array]) -> tuple[Float[Array, " node"], Float[Array, " node"]]:
        x, logs = nodes_between(base, low, high, **own)
        return x, jax.nn.softmax(logs)

    def mean(low: Array, high: Array, **own: Array) -> Array:
        x, share = weighed(low, high, own)
        return share @ jnp.where(share > 0.0, x, 0.0)

    def variance(low: Array, high: Array, **own: Array) -> Array:
        x, share = weighed(low, high, own)
        return share @ jnp.where(share > 0.0, x - share @ jnp.where(share > 0.0, x, 0.0), 0.0) ** 2

    def below(x: Array, low: Array, high: Array, **own: Array) -> Array:
        part = log_mass(base, low, jnp.minimum(x, high), **own) - log_mass(base, low, high, **own)
        return jnp.where(x < low, 0.0, jnp.exp(jnp.minimum(part, 0.0)))

    def draw(key: Key, **arguments: Array) -> Array:
        level = jax.random.uniform(key)
        found = inverted(lambda x: below(x, **arguments) < level, base.kind)
        return jnp.clip(found, arguments["low"], arguments["high"])

    return {"mean": mean, "variance": variance, "below": below, "draw": draw}


@told_with_name
def truncated(term: Term, low: Argument = -np.inf, high: Argument = np.inf) -> Term:
    """A value x ~ term known to lie between two bounds: its density over P(low <= x <= high), zero beyond.

    `term` generates single numbers; its arguments may be random, and the normaliser is theirs. `low` < `high` are
    numbers, arrays or inputs, infinite ones allowed; both are among the values that a count may have, so that a count
    above zero is `truncated(poisson(rate), low=1)`. A latent one needs EP. Returns a term for `Model.random`; bounds
    that are reversed, and observations beyond them, are a ModelError as numbers and a DataError as data. Source:
    minka2001ep.
    """
    refuse_others("truncated", term)
    if "problem" in term.options:
        return term
    check_free("truncated", term, _EDGES)
    made = _CLOSED.get(term.factor) or _factor(term.factor)
    return Term(made, {**term.args, "low": low, "high": high})
