"""Factors, links, terms and their registries: each is declared once, in one file, and found by name."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import NamedTuple, NoReturn, TypeAlias, TypeVar

from jaxtyping import Float

from .arrays import Argument, Array
from .closed import Closed, Formula
from .domains import Domain
from .errors import ModelError
from .families.base import ExponentialFamily
from .moments import Moments
from .roles import Role
from .rules import Rule


class Site(NamedTuple):
    """What a scalar factor f says of its Gaussian argument s ~ N(m, v) under EP.

    `log_evidence` = log of the integral of f(s) N(s; m, v), `score` its derivative in m, `curvature` minus its second
    derivative, and `ratio` = 1 - v * curvature, the tilted variance over v, carried along because it cannot be
    recovered by subtraction in the tails. A factor of several scalars, or of a vector, has the derivatives of each: an
    event axis.
    """

    log_evidence: Float[Array, "*instances"]
    score: Float[Array, "*instances"]
    curvature: Float[Array, "*instances"]
    ratio: Float[Array, "*instances"]


Support: TypeAlias = tuple[
    str | float, str | float
]  # the ends of an interval: numbers, or the arguments that give them


@dataclasses.dataclass(frozen=True, eq=False)
class Factor:
    """A conditional density p(out | arguments) and what the engine may compute from it, each for one scalar instance.

    `edges` maps each argument's name to the kind of its domain; `out(domains)` gives the domain of the generated
    variable. `log_density(out, **arguments)` is evaluated at points. `expected_log(out, **arguments)` takes moments
    (see `moments.py`) and returns E[log density]: all that VMP and NCVMP need. `predict(**arguments)` takes moments and
    returns the family instance of `out` when nothing below it is observed. A factor that leaves these two out gets them
    from its log density (see `derived.py`). `with_random` takes the set of random edges and returns the expected log
    density to use for them instead, or None, for densities that are simple while some edges are known.

    `sites` maps the link of the argument `site_edge` (the first by default) to its EP operator: `site(out, m, v, power,
    **others) -> Site`, where `out` and the other arguments are points. The link "linear" is none, the link "out" that
    of the outcome itself under known arguments: `site(None, m, v, power, **arguments)`. Those named in `closed_sites`
    have exact moments; the others are quadrature.

    `conjugate` names the arguments (and `out`) in which the expected log density is linear in the statistics of the
    matching family, whatever the others are: there VMP is exact and needs no damping; in the others the message is
    NCVMP's. `unsupported` maps the arguments (and `out`) that VMP and NCVMP refuse while these are random to
    the reason, such as a density that vanishes where any belief has mass; EP needs the log density alone. `rules` are
    what known arguments and observed outcomes must satisfy beyond their domains. `accuracy` is that of the expected log
    density.

    `link_densities` maps a link of the argument `site_edge` to the log density under it, `(out, argument of the link,
    **others)`, where the density after the link would lose its digits (log(1 - logistic(40)) is -inf).
    `log_predictive(out, **arguments)` is log E f(out | arguments) of one outcome left out: real arguments come as
    moments, all others as a value or as a belief, an instance of its family. `keeps` maps the arguments that may be
    random to the family that they may be of while the outcome keeps its own ({}: none may), and `closed(arguments)`
    gives the distribution of the outcome in closed form where an argument is integrated out (see `closed.py`).
    `conditional` are the functions of `Conditional` (`conditional.py`), of which quadrature over the outcome gives
    those that are left out, for outcomes that are numbers.

    `role` tells operators of one form of density which argument is which (see `roles.py`). `divides` maps the positive
    arguments (and `out`) whose power 1 / x^n the expected log density averages to n: their beliefs start where that has
    a mean. `support` are the ends of the interval outside of which the density of a real outcome is zero: numbers, or
    names of arguments. `bounds` names the real arguments that may be infinite, since a bound there is none. `improper`
    tells that the density has no finite integral over the outcome, so that data have to make the posterior proper.
    `derived` tells that the expected log density is not declared but was derived (`completed`). `joined` is the version
    that brought the factor, where users may have written one of their own under its name before: theirs keeps it.
    """

    name: str
    edges: Mapping[str, str]
    out: Callable[[Mapping[str, Domain]], Domain]
    log_density: Callable[..., Array]
    expected_log: Callable[..., Array] | None = None
    predict: Callable[..., ExponentialFamily] | None = None
    with_random: Callable[[frozenset[str]], Callable[..., Array] | None] | None = None
    conjugate: frozenset[str] = frozenset()
    sites: Mapping[str, Callable[..., Site]] = dataclasses.field(default_factory=dict)
    unsupported: Mapping[str, str] = dataclasses.field(default_factory=dict)
    site_edge: str | None = None
    closed_sites: frozenset[str] = frozenset()
    rules: tuple[Rule, ...] = ()
    accuracy: str = "exact"
    link_densities: Mapping[str, Callable[..., Array]] = dataclasses.field(default_factory=dict)
    log_predictive: Callable[..., Array] | None = None
    keeps: Mapping[str, type[ExponentialFamily]] | None = None
    closed: Callable[[Mapping[str, Formula]], Closed | None] | None = None
    conditional: Mapping[str, Callable[..., Array] | bool] = dataclasses.field(default_factory=dict)
    role: Role | None = None
    divides: Mapping[str, int] = dataclasses.field(default_factory=dict)
    support: Support | None = None
    bounds: frozenset[str] = frozenset()
    improper: bool = False
    derived: bool = False
    joined: str = ""
    source: str = ""

    @property
    def kind(self) -> str:
        """The kind of domain of the outcome, which is the same whatever the sizes are."""
        return self.out({edge: Domain(kind, 2) for edge, kind in self.edges.items()}).kind


@dataclasses.dataclass(frozen=True, eq=False)
class Link:
    """A deterministic function of one real argument and how moments travel through it.

    `moments(argument, bound)` maps the argument's moments to those of the result; `bounds` are the names it accepts,
    the first is the default; `accuracy` states for each bound whether it is exact, a bound, or quadrature.

    `site(out, mean, variance) -> Site`, for a link of a plate, is the EP operator of a category with these
    probabilities: by instance the log evidence, and by element of the plate, the last axis, the derivatives, for
    elements that are independent under the cavities. `chance(out, mean, variance) -> Site`, for a link to a
    probability, is that of an outcome that is true with it.
    """

    name: str
    value: Callable[..., Array]
    moments: Callable[..., Moments]
    bounds: Mapping[str, str] = dataclasses.field(default_factory=lambda: {"exact": "exact"})
    site: Callable[..., Site] | None = None
    chance: Callable[..., Site] | None = None
    source: str = ""


@dataclasses.dataclass(frozen=True, eq=False)
class Term:
    """A factor applied to its arguments: numbers, arrays or expressions, by edge name."""

    factor: Factor
    args: dict[str, Argument]
    options: dict[str, Argument] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, eq=False)
class Switch:
    """A gate over whole terms: `selector` (boolean or categorical) decides which term generates the variable."""

    selector: Argument
    terms: tuple[Term, ...]


@dataclasses.dataclass(frozen=True, eq=False)
class Chain:
    """What generates the elements of a chain or a tree over the plate `over`.

    Elements without a parent are generated by `first`, the others by `then`, in which `previous` stands for the parent.
    `parent` is the input that gives each element the position of its parent (a root points to itself), or None for the
    chain, where it is the element before.
    """

    first: Term
    then: Term
    previous: Argument
    over: Argument
    parent: Argument = None


def told_with_name(builder: Callable[..., Term]) -> Callable[..., Term]:
    """A builder whose refusals are told where the variable is named.

    The term carries the problem to `Model.random`, which raises it as a ModelError.
    """

    @functools.wraps(builder)
    def build(*args: Argument, **kwargs: Argument) -> Term:
        try:
            return builder(*args, **kwargs)
        except ModelError as problem:
            return Term(_REFUSED, {}, {"problem": str(problem)})

    return build


def _never(*args: object, **kwargs: object) -> NoReturn:
    raise AssertionError("a refused term has no density")


_REFUSED = Factor("refused", {}, _never, _never, _never, _never)
REGISTRY: dict[str, Factor] = {}
LINKS: dict[str, Link] = {}
Entry = TypeVar("Entry", Factor, Link)
VECTOR_LINKS = ("softmax", "multinomial_probit")  # their argument is all elements of a plate


def register(item: Entry) -> Entry:
    """Adds a factor or a link to its registry under its name and returns it."""
    if item.name in (LINKS if isinstance(item, Link) else REGISTRY):
        raise ValueError(f"Two entries of the vocabulary are called {item.name!r}.")
    if isinstance(item, Link):
        LINKS[item.name] = item
    else:
        REGISTRY[item.name] = item
    return item


def switch(selector: Argument, *terms: Term) -> Switch:
    """A gate over terms: `switch(boolean, when_true, when_false)` or `switch(categorical, case_0, case_1, ...)`.

    `selector` is a boolean or categorical variable; all `terms`, one for each of its values, must generate the same
    domain. Returns a `Switch`, to be given to `Model.random`; a selector of another domain, or the wrong number of
    cases, is a `ModelError` there. Source: minka2008gates.
    """
    return Switch(selector, tuple(terms))
