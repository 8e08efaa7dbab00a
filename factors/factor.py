"""Factors, links, terms and their registries: each is declared once, in one file, and found by name."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple, NoReturn, TypeAlias, TypeVar

from jaxtyping import Float

from .arrays import Argument, Array
from .calls import call_checked
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
    `log_below(x, **arguments)` and `log_above(x, **arguments)` are log P(X <= x) and log P(X >= x), with relative
    accuracy in their tails: both or none, which quadrature then finds (`quadrature/interval_mass.py`). `uncensored` is
    the factor of the value itself, where an observed outcome tells less than that.
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
    log_below: Callable[..., Array] | None = None
    log_above: Callable[..., Array] | None = None
    uncensored: Factor | None = None
    source: str = ""

    @property
    def kind(self) -> str:
        """The kind of domain of the outcome, which is the same whatever the sizes are."""
        return self.out({edge: Domain(kind, 2) for edge, kind in self.edges.items()}).kind


@dataclasses.dataclass(frozen=True, eq=False)
class Link:
    """A deterministic function of one argument, real or of the domain `of`, and how moments travel through it.

    `moments(argument, bound)` maps the argument's moments to those of the result; `bounds` are the names it accepts,
    the first is the default; `accuracy` states for each bound whether it is exact, a bound, or quadrature.
    `jointly(argument)`, for a link of a plate, does so under the default for at most `most` elements with covariances,
    a Vector.

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
    jointly: Callable[..., Moments] | None = None
    most: int = 0
    of: str = "real"
    source: str = ""


AS_VARIABLE: dict[str, Callable[..., Any]] = {}
"""What makes a term the variable that it generates, "unnamed": the language, which has variables, enters it."""


class Operand:
    """A term in arithmetic is the variable that it generates: `sd ** 2` in a builder that is given `sd=half_normal(1)`.

    The variable is named where the model is told what it is part of.
    """

    __array_ufunc__ = None  # NumPy arrays on the left defer to the reflected operators

    @property
    def variable(self) -> Any:
        return AS_VARIABLE["unnamed"](self)

    def __add__(self, other: Argument) -> Any:
        return self.variable + other

    def __radd__(self, other: Argument) -> Any:
        return other + self.variable

    def __sub__(self, other: Argument) -> Any:
        return self.variable - other

    def __rsub__(self, other: Argument) -> Any:
        return other - self.variable

    def __mul__(self, other: Argument) -> Any:
        return self.variable * other

    def __rmul__(self, other: Argument) -> Any:
        return other * self.variable

    def __truediv__(self, other: Argument) -> Any:
        return self.variable / other

    def __rtruediv__(self, other: Argument) -> Any:
        return other / self.variable

    def __pow__(self, exponent: Argument) -> Any:
        return self.variable**exponent

    def __rpow__(self, base: Argument) -> Any:
        return base**self.variable

    def __matmul__(self, other: Argument) -> Any:
        return self.variable @ other

    def __rmatmul__(self, other: Argument) -> Any:
        return other @ self.variable

    def __neg__(self) -> Any:
        return -self.variable

    def __abs__(self) -> Any:
        return abs(self.variable)

    def __gt__(self, other: Argument) -> Any:
        return self.variable > other

    def __lt__(self, other: Argument) -> Any:
        return self.variable < other

    def __ge__(self, other: Argument) -> Any:
        return self.variable >= other

    def __le__(self, other: Argument) -> Any:
        return self.variable <= other

    def __and__(self, other: Argument) -> Any:
        return self.variable & other

    def __rand__(self, other: Argument) -> Any:
        return other & self.variable

    def __or__(self, other: Argument) -> Any:
        return self.variable | other

    def __ror__(self, other: Argument) -> Any:
        return other | self.variable

    def __xor__(self, other: Argument) -> Any:
        return self.variable ^ other

    def __rxor__(self, other: Argument) -> Any:
        return other ^ self.variable

    def __invert__(self) -> Any:
        return ~self.variable

    def __getitem__(self, index: Argument) -> Any:
        return self.variable[index]

    __iter__ = None  # else it would be read element by element


class Nameless(Operand):
    """What cannot be computed with before its variable has a name; `called` says what it is."""

    called: ClassVar[str] = "term"

    @property
    def variable(self) -> NoReturn:
        raise ModelError(
            f"{str(self).capitalize()} cannot be part of an expression, nor an argument: name its variable first, "
            f"v = m.random(name, {self.called}), and compute with v."
        )

    def __repr__(self) -> str:
        return f"{'an' if self.called[0] in 'aeiou' else 'a'} {self.called}"


@dataclasses.dataclass(frozen=True, eq=False)
class Term(Operand):
    """A factor applied to its arguments: numbers, arrays, expressions or other terms, by edge name."""

    factor: Factor
    args: dict[str, Argument]
    options: dict[str, Argument] = dataclasses.field(default_factory=dict)

    @property
    def origin(self) -> Term:
        """The term as its user made it, where this is a copy that knows what argument it is."""
        return self.options.get("origin", self)

    def as_argument(self, name: str) -> Term:
        """The same term as the argument `name` of another."""
        return dataclasses.replace(self, options={"argument": name, "origin": self.origin, **self.options})

    @property
    def uncensored(self) -> Term:
        """What generates the value itself: the same term, where an observed outcome is the value."""
        whole = self.factor.uncensored
        return self if whole is None else Term(whole, {edge: self.args[edge] for edge in whole.edges}, self.options)


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Switch(Nameless):
    """A gate over whole terms: `selector` (boolean or categorical) decides which term generates the variable."""

    called = "switch"
    selector: Argument
    terms: tuple[Term, ...]

    @property
    def uncensored(self) -> Switch:
        """The gate over what generates the value itself in each case."""
        return Switch(self.selector, tuple(term.uncensored for term in self.terms))


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Mixture(Nameless):
    """Terms of which one generates each element, chosen with the probabilities `weights`."""

    called = "mixture"
    weights: Argument
    terms: tuple[Term, ...]


def cases_of(term: Term | Switch) -> tuple[Term, ...]:
    """The terms that a gate is over; a term alone is one."""
    return term.terms if isinstance(term, Switch) else (term,)


def arguments_of(term: Term | Switch) -> tuple[Argument, ...]:
    """What a term or a gate is made of: the selector, and the arguments of every case."""
    selector = (term.selector,) if isinstance(term, Switch) else ()
    return (*selector, *(arg for case in cases_of(term) for arg in case.args.values()))


@dataclasses.dataclass(frozen=True, eq=False)
class Chain:
    """What generates the elements of a chain or a tree over the plate `over`.

    Elements without a parent are generated by `first`, the others by `then`, in which `previous` stands for the parent.
    `parent` is the input that gives each element the position of its parent (a root points to itself), or None for the
    chain, where it is the element before. Both may be gates, on the parent or on other discrete variables.
    """

    first: Term | Switch
    then: Term | Switch
    previous: Argument
    over: Argument
    parent: Argument = None

    @property
    def terms(self) -> tuple[Term, ...]:
        """All terms, those of a gate case by case."""
        return (*cases_of(self.first), *cases_of(self.then))

    @property
    def uncensored(self) -> Chain:
        """Itself: the elements of a chain are latent."""
        return self


def all_terms(term: Term | Switch | Chain) -> tuple[Term, ...]:
    """All terms of what generates a variable: of a chain those of its first element too, of a gate case by case."""
    return term.terms if isinstance(term, Chain) else cases_of(term)


def told_with_name(builder: Callable[..., Term]) -> Callable[..., Term]:
    """A builder whose refusals are told where the variable is named.

    The term carries the problem to `Model.random`, which raises it as a ModelError.
    """

    names = tuple(inspect.signature(builder).parameters)
    called = call_checked(builder)

    @functools.wraps(called)
    def build(*args: Argument, **kwargs: Argument) -> Term:
        args = tuple(_named(name, arg) for name, arg in zip(names, args, strict=False)) + args[len(names) :]
        kwargs = {name: _named(name, arg) for name, arg in kwargs.items()}
        try:
            return called(*args, **kwargs)
        except ModelError as problem:
            return Term(_REFUSED, {}, {"problem": str(problem)})

    return build


def _named(name: str, arg: Argument) -> Argument:
    """An argument as the builder is given it: one that is itself a term knows its name."""
    return arg.as_argument(name) if isinstance(arg, Term) else arg


def _never(*args: object, **kwargs: object) -> NoReturn:
    raise AssertionError("a refused term has no density")


_REFUSED = Factor("refused", {}, _never, _never, _never, _never)
REGISTRY: dict[str, Factor] = {}
LINKS: dict[str, Link] = {}
Entry = TypeVar("Entry", Factor, Link)
VECTOR_LINKS = ("softmax", "multinomial_probit")  # their argument is all elements of a plate
RUNNING_LINKS = ("cumprod",)  # along a plate, which the result has too: each element is of those up to it


def register(item: Entry) -> Entry:
    """Adds a factor or a link to its registry under its name and returns it."""
    if item.name in (LINKS if isinstance(item, Link) else REGISTRY):
        raise ValueError(f"Two entries of the vocabulary are called {item.name!r}.")
    if isinstance(item, Link):
        LINKS[item.name] = item
    else:
        REGISTRY[item.name] = item
    return item


@call_checked
def mixture(weights: Argument, *terms: Term) -> Mixture:
    """One of several terms for each element: p(x) = sum_k weights_k p_k(x), the class k summed out.

    `weights`: of two terms the probability of the first, in [0, 1], or of any number one probability a term: numbers
    that sum to one, an input or a variable (`beta`, `dirichlet`), or a link such as `logistic` of a regression. All
    `terms` must generate the same domain; their arguments may be random. Zero-inflated counts are
    `mixture(p, point(0), poisson(rate))`, hurdles `mixture(p, point(0), truncated(poisson(rate), low=1))`. The class
    is a variable of the model: posterior["y class"] of the variable "y" has its probabilities, of two terms that of
    the first. Returns a `Mixture`, to be given to `Model.random`, which raises ModelError for other weights. Source:
    lambert1992zip, minka2008gates.
    """
    return Mixture(weights, tuple(terms))


@call_checked
def switch(selector: Argument, *terms: Term) -> Switch:
    """A gate over terms: `switch(boolean, when_true, when_false)` or `switch(categorical, case_0, case_1, ...)`.

    `selector` is a boolean or categorical variable; all `terms`, one for each of its values, must generate the same
    domain. Returns a `Switch`, to be given to `Model.random`; a selector of another domain, or the wrong number of
    cases, is a `ModelError` there. Source: minka2008gates.
    """
    return Switch(selector, tuple(terms))
