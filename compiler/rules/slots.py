"""Rule: EP for any factor, from its log density, over the slots of an instance; gates are slots too.

A gate's selector is one more discrete slot whose states choose a branch, or an element. So a switch, a random index, a
product, a random scale and a user's own density are one kind of block: the states are summed, what is Gaussian given
them is integrated in closed form, and at most two other random numbers by quadrature.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping
from typing import NamedTuple

import jax.numpy as jnp

from ...factors.domains import boolean
from ...factors.errors import UnsupportedError
from ...factors.factor import Factor, Switch
from ...factors.roles import ScalarGaussian, VectorGaussian
from ..algebra.known import known_in, latent_names, ungathered
from ..algebra.linear import element_of
from ..algebra.maxima import maximum_sides
from ..algebra.squares import square_of
from ..blocks.base import Choice
from ..blocks.energy import EnergyBlock
from ..blocks.slots import Branch, Edge, SlotsBlock
from ..graph import Draft, Facts
from ..language.atoms import ONE, atom_key
from ..language.monomials import expand
from ..language.nodes import Apply, Constant, Expr, IsData, Plate, Random, unnamed
from ..methods import EP, Method
from .slot_finder import Edges, Finder, NoSlots, difference, discrete_elements, given_states, summands
from .vector_gaussian import vector_branch

MOST_STATES = 256
COMPARED = Factor(
    "comparison",
    {"left": "real", "right": "real"},
    lambda domains: boolean,
    lambda out, left, right: jnp.where((left > right) == (out > 0.5), 0.0, -jnp.inf),
)


class _Factor(NamedTuple):
    """Whose block it is: `latent` are the random variables below its expressions."""

    name: str
    plates: tuple[Plate, ...]
    latent: tuple[str, ...]
    out: Expr


def term_block(facts: Facts, block: EnergyBlock, method: Method, reason: str) -> SlotsBlock:
    """The block of one term; `block` has its name, outcome, factor and arguments."""
    base = _Factor(block.name, block.out.plates, block.latent, block.out)
    found = _block(facts, base, [(block.factor, block.args)], None, method, reason)
    return dataclasses.replace(found, args=block.args)


def switch_block(draft: Draft, node: Random, method: Method) -> SlotsBlock:
    """The block of a switch: one branch for every state of its selector."""
    switch = node.term
    assert isinstance(switch, Switch)
    cases = [(term.factor, term.args) for term in switch.terms]
    if switch.selector.domain.is_boolean:  # written true first; as a number true is 1
        cases = cases[::-1]
    exprs = [node, switch.selector, *(arg for _, args in cases for arg in args.values())]
    base = _Factor(node.name, node.plates, latent_names(draft, exprs), node)
    return _block(draft, base, cases, switch.selector, method, "asked for: a gate under EP")


def comparison_block(
    draft: Draft, name: str, expression: Apply, out: Expr, observed: bool, method: Method
) -> SlotsBlock:
    """left > right where that is linear in some Gaussian variables, whatever else it depends on."""
    known = known_in(draft)
    discrete = discrete_elements([*expression.args], known, name) + (() if observed else (out,))
    given = given_states(known, discrete)
    finder = Finder(name, given, Edges())
    case = _half_lines(finder, expression, out, known)
    if not case:
        branch = finder.linked(None, "positive", out, {}, difference(expression.args[0], expression.args[1], given), ())
        halves = (1, -1) if branch is not None and _jumps(branch, given) else (0,)
        case = tuple(dataclasses.replace(branch, half=half) for half in halves if branch is not None)
    if not case and _counts(expression, given):
        case = (finder.density(COMPARED, out, dict(zip(COMPARED.edges, expression.args, strict=True))),)
    if not case:
        raise UnsupportedError(
            f"'{name}' compares {expression}, which is linear in no Gaussian variable: its step has no operator. "
            "Give a side a Gaussian variable of its own: m.random('margin', cv.gaussian(..., variance=...)). Or draw "
            "the model as it is, cv.sample(model, data)."
        )
    base = _Factor(name, expression.plates, latent_names(draft, [expression]), out)
    reason = "a constraint or comparison: infinite divergence under VMP; linear in some Gaussians given the rest"
    return _finished(base, finder.edges.all(), discrete, (case,), None, known, method, reason)


def _counts(expression: Apply, given: IsData) -> bool:
    """Whether each side of a comparison is a random count, or known."""
    return all(given(side) or element_of(side, given) is not None for side in expression.args) and all(
        given(side) or side.domain.is_count for side in expression.args
    )


def _half_lines(finder: Finder, expression: Apply, out: Expr, known: IsData) -> tuple[Branch, ...]:
    """The two half lines of a square that a constraint bounds from below, each in closed form; else nothing.

    Only where the outcome is certain: of the opposite both must hold.
    """
    square = square_of(expression, known) if isinstance(out, Constant) else None
    if square is None or not square.outside:
        return ()
    sides = (difference(side, square.root, finder.given) for side in (square.base, -square.base))
    found = [finder.linked(None, "positive", out, {}, side) for side in sides]
    return tuple(branch for branch in found if branch is not None)


def _jumps(branch: Branch, given: IsData) -> bool:
    """Whether the sign of a single coefficient, linear in a single real slot, decides a step."""
    if len(branch.slots) != 1 or not branch.slots[0].domain.is_real or len(branch.members) != 1:
        return False
    slot, ((_, coefficient),) = branch.slots[0], branch.members
    parts = expand(coefficient, lambda e: given(e) or atom_key(e) == atom_key(slot.expr))
    linear = expand(coefficient, given)
    return not given(coefficient) and all(len(atoms) <= 1 for _, atoms in linear) and not any(a for _, a in parts)


def _block(
    facts: Facts,
    base: _Factor,
    cases: list[tuple],
    selector: Expr | None,
    method: Method,
    reason: str,
) -> SlotsBlock:
    known, name = known_in(facts), base.name
    exprs = [base.out, *(arg for _, args in cases for arg in args.values())]
    discrete = discrete_elements(exprs, known, name)
    if selector is not None:
        chosen = () if known(selector) else discrete_elements([selector], known, name)
        if isinstance(selector, Apply) and not known(selector):
            raise UnsupportedError(
                f"'{name}' is switched by the unnamed expression '{selector}'. Name it first: m.let(name, {selector})."
            )
        keys = {atom_key(expr) for expr in chosen}
        discrete = (selector, *(expr for expr in discrete if atom_key(expr) not in keys))
    given = given_states(known, discrete)
    finder = Finder(name, given, Edges())
    found = tuple(_branches(finder, factor, base.out, args) for factor, args in cases)
    edges, number = finder.edges.all(), None if selector is None else 0
    _check_states(name, discrete)
    _check_directions(name, edges)
    return _finished(base, edges, discrete, found, number, known, method, reason)


def _branches(finder: Finder, factor: Factor, out: Expr, args: Mapping[str, Expr]) -> tuple[Branch, ...]:
    """A Gaussian with a maximum in its mean is split into its two sides; one branch for all else."""
    role = factor.role
    if not isinstance(role, ScalarGaussian) or not (split := maximum_sides([args[role.mean]], finder.given)):
        return (_branch(finder, factor, out, args),)
    found = []
    for side in split:
        here = side.of_all(args)
        parts, above = difference(here[role.mean], out, finder.given), summands(side.above, finder.given)
        inner = maximum_sides(here.values(), finder.given) or maximum_sides([side.above], finder.given)
        # The positivity of two quantities at once has no closed form.
        found.append(inner or _gaussian(finder, factor, here, parts, above))
    linked = tuple(branch for branch in found if isinstance(branch, Branch))
    return linked if len(linked) == len(split) else (_branch(finder, factor, out, args),)


def _gaussian(
    finder: Finder, factor: Factor, args: Mapping[str, Expr], parts: list, side: list | None = None
) -> Branch | None:
    role = factor.role
    assert isinstance(role, ScalarGaussian)
    precision = args[role.precision]
    return finder.linked(factor, "identity", None, {role.precision: precision}, parts, (precision,), side)


def _branch(finder: Finder, factor: Factor, out: Expr, args: Mapping[str, Expr]) -> Branch:
    """The factor in closed form over Gaussian edges where it has one, else over slots alone."""
    branch = None
    if isinstance(factor.role, ScalarGaussian):
        branch = _gaussian(finder, factor, args, difference(args[factor.role.mean], out, finder.given))
    elif isinstance(factor.role, VectorGaussian):
        branch = vector_branch(finder, factor, out, args)
    elif factor.sites and finder.given(out):
        edge = factor.site_edge or next(iter(args))
        others = {name: arg for name, arg in args.items() if name != edge}
        argument = unnamed(args[edge])
        plain = all(map(finder.given, others.values()))
        if plain and "linear" in factor.sites:
            branch = finder.linked(factor, "linear", out, others, summands(argument, finder.given), ())
        elif plain and isinstance(argument, Apply) and argument.op in factor.sites:
            parts = summands(argument.args[0], finder.given)
            branch = finder.linked(factor, argument.op, out, others, parts, ())
    elif "out" in factor.sites and all(map(finder.given, args.values())):  # a prior, in closed form
        branch = finder.linked(factor, "out", ONE, dict(args), summands(out, finder.given), ())
    return branch or finder.density(factor, out, args)


def _check_states(name: str, discrete: tuple[Expr, ...]) -> None:
    sizes = [2 if expr.domain.is_boolean else getattr(expr.domain.size, "size", expr.domain.size) for expr in discrete]
    known = [size for size in sizes if isinstance(size, int)]
    if len(discrete) > 1 and math.prod(known) > MOST_STATES:
        raise NoSlots(
            f"'{name}' joins {len(discrete)} discrete variables with {math.prod(known)} joint states; EP sums over at "
            f"most {MOST_STATES}.",
            "Split the factor.",
            f"Or use method={{'{name}': 'vmp', ...}} for it.",
        )


def _check_directions(name: str, edges: tuple[Edge, ...]) -> None:
    for first, second in itertools.combinations(edges, 2):
        if atom_key(first.element) == atom_key(second.element):
            raise NoSlots(
                f"'{name}' uses the vector '{first.element}' twice, in inner products or as a whole, which depend on "
                "each other.",
                "Write inner products as one cv.dot with the summed vector.",
                "Or use method='vmp'.",
            )


def _finished(
    base: _Factor,
    edges: tuple[Edge, ...],
    discrete: tuple[Expr, ...],
    cases: tuple[tuple[Branch, ...], ...],
    selector: int | None,
    known: IsData,
    method: Method,
    reason: str,
) -> SlotsBlock:
    selected = selector is not None and known(discrete[selector])
    atoms = discrete[1:] if selected else discrete
    # What a named discrete expression is made of is the business of its own block.
    touched = {edge.variable.name for edge in edges} | {getattr(ungathered(atom), "name", "") for atom in atoms}
    operator, accuracy = _words(discrete, [branch for case in cases for branch in case])
    return SlotsBlock(
        name=base.name,
        plates=base.plates,
        latent=tuple(name for name in base.latent if name in touched),
        choice=Choice(method if method.name == "power" else EP, operator, accuracy, reason),
        out=base.out,
        edges=edges,
        discrete=discrete,
        cases=cases,
        selector=selector,
        atoms=atoms,
    )


def _words(discrete: tuple[Expr, ...], branches: list[Branch]) -> tuple[str, str]:
    most = max(len(branch.slots) for branch in branches)
    closed = all(map(_closed, branches))
    rule = f"quadrature, {most}-D adaptive" if most else "closed form" if closed else "quadrature"
    over = f", summed over the states of {', '.join(map(str, discrete))}" if discrete else ""
    links = ", ".join(dict.fromkeys(_link_words(branch) for branch in branches))
    mixture = "moment-matched mixture: " if discrete else ""
    accuracy = "exact moments" if not most and closed else "quadrature"
    if any(branch.link == "positive" and branch.slots and not branch.half for branch in branches):
        accuracy = "quadrature, 1e-2 where the step moves with a quadrature argument"
    return f"{mixture}{links}{over}; {rule}", accuracy


def _closed(branch: Branch) -> bool:
    """Whether the factor's own part is exact, the slots aside."""
    if branch.link == "density":
        return not branch.slots
    return branch.link in ("identity", "positive", "vector") or branch.link in branch.factor.closed_sites


def _link_words(branch: Branch) -> str:
    name = branch.factor.name if branch.factor is not None else "positivity"
    if branch.link == "density":
        return f"{name} density"
    side = " on each side of a maximum" if branch.side is not None else ""
    return f"{name} site{side}, Gaussian arguments in closed form"
