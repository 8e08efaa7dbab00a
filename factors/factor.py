"""Factors, links, terms and their registries: each is declared once, in one file, and found by name."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from .domains import Domain
from .errors import ModelError


class Site(NamedTuple):
    """What a scalar factor f says of its Gaussian argument s ~ N(m, v) under EP.

    `log_evidence` = log of the integral of f(s) N(s; m, v), `score` its derivative in m, `curvature` minus its second
    derivative, and `ratio` = 1 - v * curvature, the tilted variance over v, carried along because it cannot be
    recovered by subtraction in the tails.
    """

    log_evidence: Any
    score: Any
    curvature: Any
    ratio: Any


@dataclasses.dataclass(frozen=True, eq=False)
class Factor:
    """A conditional density p(out | arguments) and what the engine may compute from it, each for one scalar instance.

    `edges` maps each argument's name to the kind of its domain; `out(domains)` gives the domain of the generated
    variable. `log_density(out, **arguments)` is evaluated at points. `expected_log(out, **arguments)` takes moments
    (see `moments.py`) and returns E[log density]: all that VMP and NCVMP need. `predict(**arguments)` takes moments and
    returns the family instance of `out` when nothing below it is observed. `sites` maps the link of the factor's last
    argument to its EP operator: `site(out, m, v, power) -> Site`, where `out` is a point. `conjugate` names the
    arguments (and `out`) in which the expected log density is linear in the statistics of the matching family, whatever
    the others are: there VMP is exact and needs no damping; in the others the message is NCVMP's.
    """

    name: str
    edges: Mapping[str, str]
    out: Callable[[Mapping[str, Domain]], Domain]
    log_density: Callable[..., Any]
    expected_log: Callable[..., Any]
    predict: Callable[..., Any]
    conjugate: frozenset[str] = frozenset()
    sites: Mapping[str, Callable[..., Site]] = dataclasses.field(default_factory=dict)
    unsupported: Mapping[str, str] = dataclasses.field(default_factory=dict)
    source: str = ""


@dataclasses.dataclass(frozen=True, eq=False)
class Link:
    """A deterministic function of one real argument and how moments travel through it.

    `moments(argument, bound)` maps the argument's moments to those of the result; `bounds` are the names it accepts,
    the first is the default; `accuracy` states for each bound whether it is exact, a bound, or quadrature.
    """

    name: str
    value: Callable[..., Any]
    moments: Callable[..., Any]
    bounds: Mapping[str, str] = dataclasses.field(default_factory=lambda: {"exact": "exact"})
    source: str = ""


@dataclasses.dataclass(frozen=True, eq=False)
class Term:
    """A factor applied to its arguments: numbers, arrays or expressions, by edge name."""

    factor: Factor
    args: dict[str, Any]
    options: dict[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, eq=False)
class Switch:
    """A gate over whole terms: `selector` (boolean or categorical) decides which term generates the variable."""

    selector: Any
    terms: tuple[Term, ...]


def told_with_name(builder: Callable[..., Term]) -> Callable[..., Term]:
    """A builder whose refusals are told where the variable is named.

    The term carries the problem to `Model.random`, which raises it as a ModelError.
    """

    @functools.wraps(builder)
    def build(*args: Any, **kwargs: Any) -> Term:
        try:
            return builder(*args, **kwargs)
        except ModelError as problem:
            return Term(_REFUSED, {}, {"problem": str(problem)})

    return build


def _never(*args: Any, **kwargs: Any) -> Any:
    raise AssertionError("a refused term has no density")


_REFUSED = Factor("refused", {}, _never, _never, _never, _never)
REGISTRY: dict[str, Factor] = {}
LINKS: dict[str, Link] = {}


def register(item: Any) -> Any:
    """Adds a factor or a link to its registry under its name and returns it."""
    registry: dict[str, Any] = LINKS if isinstance(item, Link) else REGISTRY
    if item.name in registry:
        raise ValueError(f"Two entries of the vocabulary are called {item.name!r}.")
    registry[item.name] = item
    return item


def switch(selector: Any, *terms: Term) -> Switch:
    """A gate over terms: `switch(boolean, when_true, when_false)` or `switch(categorical, case_0, case_1, ...)`.

    `selector` is a boolean or categorical variable; every term must generate the same domain. Returns a `Switch`, to be
    given to `Model.random`; a selector of another domain, or the wrong number of cases, is a `ModelError` there.
    Source: minka2008gates.
    """
    return Switch(selector, tuple(terms))
