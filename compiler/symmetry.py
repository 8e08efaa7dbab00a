"""Where a posterior may have several modes: classes that choose between random components, and factors of products.

Components that their priors do not tell apart may be permuted, and signs and rotations of the two sides of a product be
changed. A start that treats them alike stays at a saddle; each other one has mirror images that are as good.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

from ..factors.factor import Chain, Switch, Term
from .algebra.known import ungathered
from .algebra.told import untold
from .blocks.base import Block
from .blocks.mixture import MixtureBlock
from .graph import Plan
from .language.nodes import Constant, Expr, Let, Plate, Random, inside, parents
from .language.operations import DOT, MULTIPLY


class Choice(NamedTuple):
    """A latent `selector` on plates of random components on the plate `axis`, or in the cases of a switch (None).

    `components` are the names of these, and `alike` tells whether all have the same prior.
    """

    selector: Random
    axis: Plate | None
    components: tuple[str, ...]
    alike: bool


def choices(plan: Plan) -> tuple[Choice, ...]:
    """The choices of a plan, one for each selector and plate of components."""
    found: dict[tuple[str, Plate | None], Choice] = {}
    for block in plan.blocks:
        for gate in block.gates:
            selector = ungathered(gate.selector)
            if not isinstance(selector, Random) or selector.name not in plan.latent or not selector.plates:
                continue
            key = selector.name, gate.axis
            if gate.axis is None and key not in found and (cases := _cases(plan, selector)):
                own = dict.fromkeys(name for terms in cases for term in terms for name in _own(plan, terms, term))
                found[key] = Choice(selector, None, tuple(own), all(_alike(terms) for terms in cases))
            elif gate.axis is not None and (components := _components(plan, block, gate.axis)):
                before = found.get(key, Choice(selector, gate.axis, (), True))
                names = dict.fromkeys((*before.components, *(node.name for node in components)))
                alike = before.alike and untold(plan, components, gate.axis)
                found[key] = Choice(selector, gate.axis, tuple(names), alike)
    return tuple(found.values())


def exchangeable(plan: Plan) -> tuple[Choice, ...]:
    """The choices between components that the model cannot tell apart."""
    return tuple(choice for choice in choices(plan) if choice.alike)


def interchangeable(plan: Plan) -> tuple[Choice, ...]:
    """Those of `exchangeable`, and of mixtures whose selector is summed out."""
    mixtures = [block for block in plan.blocks if isinstance(block, MixtureBlock) and block.alike and not block.kept]
    found = [
        Choice(block.selector, axis, tuple(p.variable.name for p in block.parents if axis in p.variable.plates), True)
        for block in mixtures
        for axis in dict.fromkeys(axis for axis in block.axes if axis is not None)
    ]
    return (*exchangeable(plan), *found)


def multiplied(plan: Plan) -> tuple[str, ...]:
    """Gaussian variables that enter a product with another random variable.

    Their signs and rotations are symmetric at the prior.
    """
    found: set[str] = set()
    for block in plan.blocks:
        for node in inside(block.arguments):
            if getattr(node, "operation", None) in (MULTIPLY, DOT):
                sides = [set(_latent(plan, side)) for side in parents(node)]
                if all(sides):
                    found |= sides[0] | sides[1]
    return tuple(name for name, node in plan.latent.items() if name in found and _has_sign(node))


def _has_sign(node: Random | Let) -> bool:
    return node.domain.is_gaussian or node.domain.is_sparse


def many_modes(plan: Plan) -> tuple[str, ...]:
    """The variables whose start has to be drawn at random, so that several starts may find several modes.

    These are selectors of components that are alike, and the vectors, or numbers on plates, of a product.
    """
    chosen = [choice.selector.name for choice in exchangeable(plan)]
    turned = [name for name in multiplied(plan) if plan.latent[name].plates or plan.latent[name].domain.is_vector]
    return tuple(dict.fromkeys([*chosen, *(turned if len(turned) > 1 else [])]))


def _latent(plan: Plan, expr: Expr) -> list[str]:
    return [node.name for node in inside([expr]) if isinstance(node, Random) and node.name in plan.latent]


def _components(plan: Plan, block: Block, axis: Plate) -> list[Random]:
    """The latent variables of a block on the plate `axis`."""
    touched = (plan.latent[name] for name in block.latent)
    return [node for node in touched if isinstance(node, Random) and axis in node.plates]


def _cases(plan: Plan, selector: Random) -> list[tuple[Term, ...]]:
    """The terms of the switches over a selector that have latent variables of their own."""
    made = (node.term for node in plan.model.randoms.values())
    terms = (term for part in made for term in ((part.first, part.then) if isinstance(part, Chain) else (part,)))
    switches = (term for term in terms if isinstance(term, Switch))
    mine = [switch.terms for switch in switches if ungathered(switch.selector) is selector]
    return [terms for terms in mine if all(_own(plan, terms, term) for term in terms)]


def _own(plan: Plan, terms: tuple[Term, ...], term: Term) -> set[str]:
    """The latent variables that one case alone reads."""
    read = [
        {name for arg in other.args.values() for name in _latent(plan, arg)} for other in terms if other is not term
    ]
    return {name for arg in term.args.values() for name in _latent(plan, arg)}.difference(*read)


def _alike(terms: tuple[Term, ...]) -> bool:
    """Whether the cases of a switch are the same but for the variables that they read, and these have one prior."""
    return len({_form(term) for term in terms}) == 1


def _form(term: Term) -> Hashable:
    """What a term is, whatever its random variables are called."""
    return term.factor, tuple((edge, _form_of(arg)) for edge, arg in term.args.items())


def _form_of(expr: Expr) -> Hashable:
    if isinstance(expr, Constant):
        return expr.value.shape, expr.value.tobytes(), expr.plates
    if isinstance(expr, Random):
        return (_form(expr.term), expr.plates) if isinstance(expr.term, Term) else expr
    below = parents(expr)
    return (getattr(expr, "operation", None), getattr(expr, "options", None), *map(_form_of, below)) if below else expr
