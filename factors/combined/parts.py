"""What the factors that are made of another have in common: bounds beside its own arguments, and its links."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np

from ..arrays import Argument, Array
from ..errors import ModelError
from ..factor import LINKS, Factor, Mixture, Switch, Term
from ..quadrature.interval_mass import ENDS


class Density(Protocol):
    """log p(out | ...) with the bounds, given the density of what it is made of and that one's arguments."""

    def __call__(self, value: Callable[[Array], Array], out: Array, bounds: Mapping[str, Array], **own: Array) -> Array:
        """At one point of one instance: `own` are arguments of the factor that it is made of."""
        ...


def densities(base: Factor, bounds: tuple[str, ...], density: Density) -> dict[str, Any]:
    """The log density of a factor made of `base`, also behind the links whose density the base declares itself."""

    def split(arguments: Mapping[str, Array]) -> tuple[dict[str, Array], dict[str, Array]]:
        own = {edge: value for edge, value in arguments.items() if edge not in bounds}
        return own, {edge: arguments[edge] for edge in bounds}

    def plain(out: Array, **arguments: Array) -> Array:
        own, ends = split(arguments)
        return density(lambda x: base.log_density(x, **own), out, ends, **own)

    def behind(link: str) -> Callable[..., Array]:
        edge, of = base.site_edge or next(iter(base.edges)), base.link_densities[link]

        def linked(out: Array, argument: Array, **others: Array) -> Array:
            own, ends = split(others)
            return density(lambda x: of(x, argument, **own), out, ends, **{edge: LINKS[link].value(argument), **own})

        return linked

    return {"log_density": plain, "link_densities": {link: behind(link) for link in base.link_densities}}


def refuse_others(name: str, term: object) -> None:
    """Raises ModelError for what is no term of single numbers."""
    if not isinstance(term, Term):
        kind = "a switch or a mixture of terms" if isinstance(term, (Switch, Mixture)) else f"{term!r}, no term"
        raise ModelError(
            f"{name}() is given {kind}. It takes a term, which is what generates the value: "
            f"m.random('y', cv.{name}(cv.gaussian(mean, sd=sd), ...))."
        )
    if "problem" not in term.options and term.factor.kind not in ENDS:
        raise ModelError(
            f"{name}() is given a {term.factor.name} term, which generates a {term.factor.kind}. Bounds are of single "
            "numbers: give a term of real or positive numbers, probabilities or counts."
        )


def check_free(name: str, term: Term, edges: tuple[str, ...]) -> None:
    """Raises ModelError where the term has arguments of these names itself."""
    taken = [edge for edge in edges if edge in term.factor.edges]
    if taken:
        raise ModelError(
            f"{name}() is given a {term.factor.name} term, which has bounds of its own (`{taken[0]}`). Give the term "
            "without them, and its bounds once."
        )


def number(value: Argument, default: float) -> Argument:
    """A bound that was left out."""
    return default if value is None else np.asarray(value, float) if isinstance(value, (int, list, tuple)) else value
