"""From a term and the beliefs about its arguments to the distribution of its outcome."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

import jax
import jax.numpy as jnp
from jaxtyping import PyTree

from ...compiler.language.atoms import atom_key
from ...compiler.language.nodes import Apply, Expr, Gather, Let, Random
from ...factors import LINKS
from ...factors.arrays import Array, Exponent
from ...factors.conditional import Conditional
from ...factors.conditionals import conditional_named, conditional_of
from ...factors.factor import Term
from ...factors.families import FOR_DOMAIN, DiscreteFamily, ExponentialFamily, Family
from ...factors.moments import POINT_VARIANCE, Real, Vector
from ..values.evaluate import gather, known, value
from ..values.moments import moments
from ..values.plated import Placed, mapped
from ..values.scope import Scope
from .cases import Projected
from .compound import Compound
from .formula import Tree, has_formula
from .partly_observed import Completed
from .sums import DependentSums

_READ_AS_OTHERS = ("sparse", "posdef")  # domains whose moments no link takes as they are


class Arguments:
    """Collects the random parts of the arguments of a term, each once, and its known ones.

    `exact` is false where a part stands for an expression whose distribution is not known by its moments alone.
    """

    def __init__(self, scope: Scope, families: Mapping[str, Family]) -> None:
        self._scope, self._families = scope, families
        self.sources: list[Placed] = []
        self.known: list[Placed] = []
        self.exact = True
        self._seen: dict[tuple, Tree] = {}
        self._sums = DependentSums([], scope)

    def trees(self, args: Mapping[str, Expr], kinds: Mapping[str, str]) -> dict[str, Tree]:
        """The formulas of all arguments of a term, which a factor reads as these kinds."""
        self._sums = DependentSums([part for arg in args.values() for part in self._linear_parts(arg)], self._scope)
        return {edge: self.tree(arg, kinds[edge]) for edge, arg in args.items()}

    def tree(self, expr: Expr, kind: str) -> Tree:
        """The formula of an argument that a factor reads as this kind."""
        if known(expr, self._scope):
            found = value(expr, self._scope)
            return self.given(Placed(jnp.asarray(found.value, float), found.plates))
        if isinstance(expr, Let):
            return self.tree(expr.expression, kind)
        if self._is_linear(expr):
            return self._linear(expr)
        if (chosen := self._gathered(expr)) is not None:
            return self._once(expr, lambda: self.random(chosen))
        if (parts := _operands(expr)) and kind != "vector":
            exponent = dict(expr.options).get("exponent")  # type: ignore[attr-defined]
            return (expr.op, exponent, *(self.tree(part, part.domain.kind) for part in parts))  # type: ignore[attr-defined]
        if kind != "vector" or self.degree(expr) > 1:
            self.exact = False
            return self.given(Placed(jnp.zeros(()), ()))
        return self._by_moments(expr, kind)

    def given(self, placed: Placed) -> Tree:
        """A known value."""
        self.known.append(placed)
        return ("known", len(self.known) - 1)

    def random(self, placed: Placed) -> Tree:
        """A random part with a belief of its own."""
        self.sources.append(placed)
        return ("source", len(self.sources) - 1)

    def _linear_parts(self, expr: Expr) -> list[Expr]:
        """The largest parts of an argument that are linear in Gaussian beliefs, as `tree` comes upon them."""
        while isinstance(expr, Let):
            expr = expr.expression
        if known(expr, self._scope):
            return []
        if self._is_linear(expr):
            return [expr]
        return [found for part in _operands(expr) for found in self._linear_parts(part)]

    def _is_linear(self, expr: Expr) -> bool:
        return expr.domain.is_real and self.degree(expr) <= 1

    def _linear(self, expr: Expr) -> Tree:
        """A Gaussian number: a source of its own, or made of those that others are made of, too."""
        if (opened := self._sums.opened(expr)) is not None:
            return (opened.op, None, *(self.tree(part, part.domain.kind) for part in opened.args))
        if (rows := self._sums.rows(expr)) is not None:
            return self._of_rows(*rows)
        self.exact &= not self._sums.unknown(expr)
        chosen = self._gathered(expr)
        return self._once(expr, lambda: self._by_moments(expr, "real") if chosen is None else self.random(chosen))

    def _of_rows(self, mean: Placed, shares: list[tuple[tuple, Placed, Placed]]) -> Tree:
        """mean + sum of shares of independent numbers around zero, given by key, share and variance."""
        tree = self.given(mean)
        for key, share, variance in shares:
            if key not in self._seen:
                self._seen[key] = self.random(mapped(_about_zero, variance))
            tree = ("add", None, tree, ("multiply", None, self.given(share), self._seen[key]))
        return tree

    def _once(self, expr: Expr, make: Callable[[], Tree]) -> Tree:
        """The formula of a random number, the same wherever it occurs."""
        key = atom_key(expr)
        if key not in self._seen:
            self._seen[key] = make()
        return self._seen[key]

    def alone(self, tree: Tree, *trees: Tree) -> bool:
        """Whether a formula is a source that no other one holds."""

        def holds(other: Tree) -> bool:
            return other == tree or any(isinstance(part, tuple) and holds(part) for part in other)

        return tree[0] == "source" and not any(map(holds, trees))

    def belief(self, tree: Tree, family: type) -> bool:
        """Whether a formula is a belief of this family as a whole."""
        return tree[0] == "source" and isinstance(self.sources[tree[1]].value, family)

    def _belief(self, variable: Random) -> Family | None:
        """The belief about a variable; None where it is given in part, which only its moments tell."""
        family = self._families.get(variable.name)
        return None if isinstance(family, Completed) else family

    def _gathered(self, expr: Expr) -> Placed | None:
        """A belief's elements at known places; those at random ones keep the plate that they are chosen from."""
        if isinstance(expr, Random) and (family := self._belief(expr)) is not None:
            return Placed(family, expr.plates)
        if not isinstance(expr, Gather):
            return None
        source = self._gathered(expr.source)
        if source is None or not known(expr.index, self._scope):
            return source
        return gather(source, value(expr.index, self._scope), expr)

    def _by_moments(self, expr: Expr, kind: str) -> Tree:
        return self.random(mapped(_gaussian, moments(expr, self._scope, kind)))

    def degree(self, expr: Expr) -> float | int:
        """The degree of an expression in Gaussian beliefs; infinite where it is none, or holds others."""
        if known(expr, self._scope):
            return 0
        if isinstance(expr, Let):
            return self.degree(expr.expression)
        if isinstance(expr, Gather):
            return self.degree(expr.source)
        if isinstance(expr, Random):
            family = self._families.get(expr.name)
            own = family.predicted if isinstance(family, Completed) else family
            return 1 if isinstance(own, ExponentialFamily) and expr.domain.is_gaussian else float("inf")
        if not isinstance(expr, Apply):
            return float("inf")
        return expr.operation.degree([self.degree(part) for part in expr.args])


def outcome(term: Term, projection: Placed, scope: Scope, families: Mapping[str, Family]) -> Placed:
    """The distribution of what a term generates; `projection` is the one that messages use."""
    kind, keeps = projection.value.kind, term.factor.keeps
    if kind in ("boolean", "category"):
        return _classes(term, projection, scope, families)
    random = {edge for edge, arg in term.args.items() if not known(arg, scope)}
    stays = keeps is not None and random <= set(keeps)
    if stays and not random:
        return projection
    found = Arguments(scope, families)
    trees = found.trees(term.args, term.factor.edges)
    if keeps is not None and stays and all(found.belief(trees[edge], keeps[edge]) for edge in random) and found.exact:
        return projection
    if not found.exact:
        return Placed(Projected(projection.value), projection.plates)
    rule = term.factor.closed
    closed = None if rule is None else rule({edge: ArgumentFormula(tree, found) for edge, tree in trees.items()})
    if closed is None:
        return _compounded(projection, conditional_of(term.factor, kind), trees, found, lambda compound: compound)
    trees = {edge: formula.tree for edge, formula in closed.arguments.items()}
    return _compounded(projection, conditional_named(closed.conditional), trees, found, lambda compound: compound)


def _compounded(
    projection: Placed,
    conditional: Conditional,
    trees: dict[str, Tree],
    found: Arguments,
    function: Callable[[Compound], Family],
) -> Placed:
    """A function of the mixture of a conditional over its arguments."""
    used = sorted({i for tree in trees.values() for i in _leaves(tree, "source")})
    place = {i: number for number, i in enumerate(used)}
    formulas = tuple((edge, _renamed(tree, place)) for edge, tree in trees.items())
    sources = [found.sources[i] for i in used]

    def compound(own: ExponentialFamily, *leaves: PyTree) -> Family:
        return function(Compound(tuple(leaves[: len(used)]), tuple(leaves[len(used) :]), own, conditional, formulas))

    return mapped(compound, projection, *sources, *found.known)


def _classes(term: Term, projection: Placed, scope: Scope, families: Mapping[str, Family]) -> Placed:
    """A discrete outcome: its probabilities, averaged over its arguments where their moments do not tell all."""
    found = Arguments(scope, families)
    trees = found.trees(term.args, term.factor.edges)
    if not found.exact or all(_by_moments(tree, found) for tree in trees.values()):
        return projection
    boolean, log_density = projection.value.kind == "boolean", term.factor.log_density
    family = FOR_DOMAIN[projection.value.kind]
    assert issubclass(family, DiscreteFamily)
    states = 2 if boolean else projection.value.mean().shape[-1]

    def probabilities(**arguments: Array) -> Array:
        logs = jax.vmap(lambda state: log_density(state, **arguments))(jnp.arange(states) * (1.0 if boolean else 1))
        return jax.nn.softmax(logs)

    def averaged(compound: Compound) -> Family:
        logs = jnp.log(compound.expected(probabilities))
        return family.from_logits(logs)

    return _compounded(projection, _unasked(term.factor.name), trees, found, averaged)


def _unasked(name: str) -> Conditional:
    def nothing(**_: Array) -> Array:
        raise NotImplementedError

    return Conditional(name, "category", nothing, nothing, nothing, nothing)


def _by_moments(tree: Tree, found: Arguments) -> bool:
    """Whether an argument is known, or a belief of the family of its domain, or a link of that."""
    if tree[0] in LINKS:
        tree = tree[2]
    if tree[0] == "source":
        belief = found.sources[tree[1]].value
        return isinstance(belief, ExponentialFamily) and belief.kind not in _READ_AS_OTHERS
    return tree[0] == "known"


def _gaussian(found: Real | Vector) -> Family:
    """The belief about a real number, which may be certain, or about a vector with these moments."""
    if isinstance(found, Real):
        found = Real(found.mean, jnp.maximum(found.variance, POINT_VARIANCE))
    return FOR_DOMAIN["real" if isinstance(found, Real) else "vector"].from_moments(found)


def _about_zero(variance: Array) -> Family:
    return _gaussian(Real(jnp.zeros_like(variance), variance))


def _operands(expr: Expr) -> tuple[Expr, ...]:
    """Those of an operation that formulas have; none of any other expression."""
    return expr.args if isinstance(expr, Apply) and has_formula(expr) else ()


def _leaves(tree: Tree, kind: str) -> list[int]:
    if tree[0] in ("source", "known"):
        return [tree[1]] if tree[0] == kind else []
    return [leaf for part in tree[2:] for leaf in _leaves(part, kind)]


def _renamed(tree: Tree, place: dict[int, int]) -> Tree:
    if tree[0] == "source":
        return ("source", place[tree[1]])
    return tree if tree[0] == "known" else (*tree[:2], *(_renamed(part, place) for part in tree[2:]))


@dataclasses.dataclass(frozen=True)
class ArgumentFormula:
    """An argument as the closed forms of the factors see it: the `Formula` of `factors/closed.py`."""

    tree: Tree
    found: Arguments

    @property
    def known(self) -> bool:
        return self.tree[0] == "known"

    def belief(self, family: type) -> ArgumentFormula | None:
        return self if self.found.belief(self.tree, family) else None

    def alone(self, *others: ArgumentFormula) -> bool:
        return self.found.alone(self.tree, *(other.tree for other in others))

    def given(self, function: Callable[[PyTree], PyTree]) -> ArgumentFormula:
        return self._with(self.found.given(mapped(function, self._placed())))

    def random(self, function: Callable[[PyTree], PyTree]) -> ArgumentFormula:
        return self._with(self.found.random(mapped(function, self._placed())))

    def number(self, value: float) -> ArgumentFormula:
        return self._with(self.found.given(Placed(jnp.asarray(value), ())))

    def draw(self, belief: Family) -> ArgumentFormula:
        return self._with(self.found.random(Placed(belief, ())))

    def __add__(self, other: ArgumentFormula) -> ArgumentFormula:
        return self._with(("add", None, self.tree, other.tree))

    def __mul__(self, other: ArgumentFormula) -> ArgumentFormula:
        return self._with(("multiply", None, self.tree, other.tree))

    def __truediv__(self, other: ArgumentFormula) -> ArgumentFormula:
        return self._with(("divide", None, self.tree, other.tree))

    def __pow__(self, exponent: Exponent) -> ArgumentFormula:
        return self._with(("power", exponent, self.tree))

    def _placed(self) -> Placed:
        return (self.found.known if self.known else self.found.sources)[self.tree[1]]

    def _with(self, tree: Tree) -> ArgumentFormula:
        return ArgumentFormula(tree, self.found)
