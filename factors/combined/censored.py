"""The censored factors: values of any scalar term of which an observation may tell only on which side of a bound."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

import jax.numpy as jnp
import numpy as np

from ..arrays import Argument, Array
from ..factor import Factor, Mixture, Switch, Term, told_with_name
from ..quadrature.interval_mass import log_mass
from ..rules import BOUNDS, Rule
from .parts import check_free, densities, refuse_others

_BOUND = "a random bound says which rows are censored; give bounds as numbers or inputs"
_UNTIL = Rule(
    ("out", "until"),
    lambda domain, out, until: out <= until,
    "`until` must not be below the observation, from which the interval starts",
    "Swap them; equal ones are an exact observation.",
)


@functools.cache
def _factor(base: Factor, until: bool) -> Factor:
    """The censored factor made of another, with or without the ends of intervals."""
    edges = ("low", "high", "until")[: 3 if until else 2]

    def density(value: Callable[[Array], Array], out: Array, bounds: Mapping[str, Array], **own: Array) -> Array:
        low, high = bounds["low"], bounds["high"]
        interval = bounds["until"] > out if until else jnp.zeros_like(out, bool)
        below, above = (out <= low) & ~interval, (out >= high) & ~interval
        first = jnp.where(below, -jnp.inf, jnp.where(above, high, out))
        last = jnp.where(below, low, jnp.where(interval, bounds["until"], jnp.inf) if until else jnp.inf)
        return jnp.where(interval | below | above, log_mass(base, first, last, **own), value(out))

    return Factor(
        name=f"censored {base.name}",
        edges={**base.edges, **dict.fromkeys(edges, "real")},
        out=base.out,
        **densities(base, edges, density),
        site_edge=base.site_edge,
        unsupported={**base.unsupported, **dict.fromkeys(edges, _BOUND)},
        rules=(*base.rules, BOUNDS, *([_UNTIL] if until else [])),
        divides=base.divides,
        bounds=base.bounds | set(edges),
        uncensored=base,
    )


@told_with_name
def censored(term: Term, low: Argument = -np.inf, high: Argument = np.inf, *, until: Argument = None) -> Term:
    """A value x ~ term of which too small, too large or rounded ones are not seen themselves.

    An observation y of it counts as P(x <= low) where y <= `low` (left-censored), as P(x >= high) where y >= `high`
    (right-censored), as P(y <= x <= until) where y < `until` (interval-censored), and else as the density of y. `term`
    generates single numbers, or is a mixture or a switch of such terms. `low` < `high` and `until` are numbers, arrays
    or inputs, by row where they have the plate of the rows, and infinite where they bound nothing: high = inf for the
    rows of a life table whose event was seen. What is not observed, or predicted, is the value itself, which no bound
    hides. Returns a term for `Model.random`, which raises ModelError for reversed bounds; as data they are a DataError.
    Source: rinne2008weibull.
    """
    if isinstance(term, Switch):
        return Switch(term.selector, tuple(_each(term.terms, low, high, until)))  # type: ignore[return-value]
    if isinstance(term, Mixture):
        return Mixture(term.weights, tuple(_each(term.terms, low, high, until)))  # type: ignore[return-value]
    refuse_others("censored", term)
    ends = {"low": low, "high": high} | ({} if until is None else {"until": until})
    if "problem" in term.options:
        return term
    check_free("censored", term, tuple(ends))
    return Term(_factor(term.factor, until is not None), {**term.args, **ends})


def _each(terms: tuple[Term, ...], low: Argument, high: Argument, until: Argument) -> list[Term]:
    return [censored(term, low, high, until=until) for term in terms]
