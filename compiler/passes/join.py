"""Pass: Gaussian variables that meet in linear forms share one belief with a full covariance.

Beliefs that are kept apart are the chief source of errors that nothing shows: under VMP an intercept and a slope have
far too small variances, under EP their messages run in a loop. Where the variables together have few dimensions, one
Gaussian over all of them costs little and makes that part of the model exact.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, TypeGuard

from ...factors import LINKS
from ...factors.domains import Domain, real
from ...factors.errors import UnsupportedError
from ...factors.factor import Term
from ...factors.roles import LinearGaussian, ScalarGaussian, gaussian_arguments, replaced
from ..algebra.known import known_in
from ..algebra.linear import linear_term, summed_term
from ..algebra.polynomial import monomials
from ..algebra.sums import all_unrolled
from ..blocks.base import Block, Choice
from ..blocks.energy import EnergyBlock
from ..blocks.site import LinearTerm, SiteBlock
from ..data.keys import joint_belief
from ..graph import Draft, Joint
from ..language.atoms import Monomial, atom_key
from ..language.nodes import (
    Apply,
    Expr,
    Gather,
    IsData,
    Let,
    Plate,
    Random,
    applies,
    gathers_of,
    moved,
    parents,
    union_plates,
    unnamed,
)
from ..language.operations import DOT, SUM, TOGETHER
from ..methods import EXACT
from ..rules.exact_observation import exact_observation, known_scales
from .choose_operators import ZERO

DIMENSIONS = {"default": 100, "best": 2000}  # of a joint belief
SUMMED = 1000  # of one that a sum over a plate needs, without which the sum has no linear form
CELLS = {"default": 5e6, "best": 2e8}  # of the largest array of directions, rows * dimensions


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Direction(Expr):
    """The direction of a linear form in the space of a joint belief, from data alone."""

    joint: Joint
    terms: tuple[LinearTerm, ...]
    plates: tuple[Plate, ...]
    domain: Domain


def joint_term(joint: Joint, terms: tuple[LinearTerm, ...]) -> LinearTerm:
    """A sum of terms in members of `joint` as one inner product with (an element of) the joint belief."""
    element = moved(terms[0].element, joint.variable) if joint.variable.plates else joint.variable
    nodes = [
        node for term in terms for node in (*term.coefficients, *(() if term.direction is None else (term.direction,)))
    ]
    places = [] if joint.variable.plates else [term.element.plates for term in terms]
    over = {term.over for term in terms}
    plates = tuple(p for p in union_plates(*(node.plates for node in nodes), *places) if p not in over)
    return LinearTerm(joint.variable, element, (), Direction(joint, terms, plates, joint.variable.domain))


def merged(terms: Iterable[LinearTerm], joints: tuple[Joint, ...]) -> tuple[LinearTerm, ...]:
    """The terms with those in members of one joint belief as a single term along a direction."""
    rest, groups = [], {}
    for term in terms:
        joint = next((joint for joint in joints if term.variable in set(joint.members)), None)
        if joint is None:
            rest.append(term)
        else:
            groups.setdefault(joint, []).append(term)
    return (*rest, *(joint_term(joint, tuple(group)) for joint, group in groups.items()))


def _term(coefficients: tuple[Expr, ...], atoms: tuple[Expr, ...], known: IsData) -> LinearTerm | None:
    """A monomial as a term of a joint belief, a sum over a plate as one; None for what is not linear."""
    if len(atoms) != 1:
        return None
    return linear_term(atoms[0], coefficients, known) or summed_term(atoms[0], coefficients, known)


def with_directions(terms: list[Monomial], joint_of: Callable[[Random], Joint | None], known: IsData) -> list[Monomial]:
    """The monomials of a real expression, those linear in members of a joint belief merged into inner products."""
    rest, groups = [], {}
    for coefficients, atoms in terms:
        term = _term(coefficients, atoms, known)
        joint = None if term is None else joint_of(term.variable)
        if term is None or joint is None:
            rest.append((coefficients, atoms))
        else:
            groups.setdefault(joint, []).append(term)
    for joint, group in groups.items():
        merged_term = joint_term(joint, tuple(group))
        factors = (merged_term.element, merged_term.direction)
        assert factors[1] is not None
        plates = union_plates(factors[0].plates, factors[1].plates)
        rest.append(((), (Apply(DOT, (factors[0], factors[1]), (), plates, real),)))
    return rest


def join(draft: Draft) -> Draft:
    """Gives every affordable group of Gaussian variables that meet in linear forms one belief."""
    if draft.sizes is None or (draft.default.name != "auto" and draft.accuracy != "best"):
        return draft
    uses = [_uses(draft, block) for block in draft.blocks]
    groups = [part for group in _components(draft, uses) for part in _parts(draft, group, uses)]
    if not groups:
        return draft
    joints = tuple(_joint(draft, number, *group) for number, group in enumerate(groups, start=1))
    owner = {member.name: joint.variable.name for joint in joints for member in joint.members}
    latent = {name: node for name, node in draft.latent.items() if name not in owner}
    latent |= {joint.variable.name: joint.variable for joint in joints}
    blocks = tuple(_rewritten(draft, block, joints, owner) for block in draft.blocks)
    return dataclasses.replace(draft, joints=joints, latent=latent, blocks=blocks)


def _joint(draft: Draft, number: int, members: tuple[Random, ...], plates: tuple[Plate, ...]) -> Joint:
    total = sum(dimension(member, plates, draft.sizes or {}) for member in members)
    domain = Domain("vector", Plate(f"dimension of joint {number}", total))
    name = joint_belief(member.name for member in members)
    return Joint(Random(name, None, plates, domain), members)  # type: ignore[arg-type]


def dimension(member: Random, plates: tuple[Plate, ...], sizes: Mapping[str, int]) -> int:
    """How many numbers a member adds to an element of a joint belief over `plates`."""
    inside = (plate for plate in member.plates if plate not in set(plates))
    return math.prod(sizes[plate.name] for plate in inside) * (member.domain.size or 1)


# which variables meet -------------------------------------------------------------------------------------------------


class ElementUse(NamedTuple):
    """A variable in a linear form, and by which index data its element is chosen.

    `end` tells the first from the last of the elements that a link of a plate takes.
    """

    variable: Random
    place: tuple
    end: tuple = ()


Meeting = frozenset  # of the uses in one linear form


def _uses_of(term: LinearTerm) -> Meeting:
    """The element of a term, or of a sum its first and its last one: they meet."""
    place = tuple((atom_key(gather.index), gather.axis.name) for gather in gathers_of(term.element))
    if term.over is None:
        return Meeting([ElementUse(term.variable, place)])
    return Meeting(ElementUse(term.variable, (*place, end, term.over.name)) for end in ("first", "last"))


def _candidates(draft: Draft) -> set[Random]:
    """The Gaussian variables that a joint belief could hold; those whose method is asked for by name stay apart."""

    def fits(node: Random | Let) -> bool:
        if draft.method_of(node.name).name != "auto" and draft.accuracy != "best":
            return False
        generated = (
            isinstance(node, Random)
            and isinstance(node.term, Term)
            and isinstance(node.term.factor.role, LinearGaussian)
        )
        return generated and (node.domain.is_real or isinstance(node.domain.size, int))

    return {node for node in draft.latent.values() if isinstance(node, Random) and fits(node)}


def _uses(draft: Draft, block: Block) -> list[Meeting] | None:
    """The linear forms of a block as sets of uses, or None where it uses a Gaussian variable in another way."""
    if isinstance(block, SiteBlock):
        return [Meeting().union(*map(_uses_of, block.form.terms))]
    if not isinstance(block, EnergyBlock):
        return None
    if shared_before(block):  # element by element, or all elements with each other
        return [Meeting(ElementUse(v, () if block.out.option("plated") else (v.name,)) for v in block.out.args)]
    known = known_in(draft)
    latent = isinstance(block.out, Random) and block.out.name in draft.latent
    own = Meeting([ElementUse(block.out, ())] if latent else [])
    try:
        if isinstance(block.factor.role, ScalarGaussian):
            centre, precision = gaussian_arguments(block)
            mean, *others = _forms(centre, known)
            return [mean | own, *others, *_forms(precision, known)]
        return [own, *(form for arg in block.args.values() for form in _forms_below(draft, block, arg))]
    except UnsupportedError:
        return None


def shared_before(block: Block) -> bool:
    """Whether the block is a given belief that several variables share."""
    return applies(block.out, TOGETHER)


def spans(expr: Expr, bound: str | None, sizes: Mapping[str, int]) -> TypeGuard[Apply]:
    """Whether an expression is a link of a plate that takes elements with covariances, under this bound."""
    if not isinstance(expr, Apply) or expr.over is None or expr.op not in LINKS:
        return False
    link = LINKS[expr.op]
    return sizes.get(expr.over.name, link.most + 1) <= link.most and bound in (None, next(iter(link.bounds)))


def _forms_below(draft: Draft, block: Block, arg: Expr) -> list[Meeting]:
    """The linear forms of an argument; all elements of the one that a link of a plate takes meet in it."""
    expr, known = unnamed(arg), known_in(draft)
    if not spans(expr, block.method.bound, draft.sizes or {}) or known(expr):
        return _forms(arg, known)
    outer, *inner = _forms(expr.args[0], known)
    ends = [(expr.option("over").name, end) for end in ("first", "last")]
    return [Meeting(), Meeting(use._replace(end=end) for use in outer for end in ends), *inner]


def _forms(expr: Expr, known: IsData) -> list[Meeting]:
    """The linear forms inside an expression, the outermost first; UnsupportedError where a variable is multiplied."""
    if known(expr):
        return [Meeting()]
    if isinstance(expr, Random):
        return [Meeting([ElementUse(expr, ())])]
    if not expr.domain.is_real:
        if isinstance(expr, Gather) and not known(expr.index):
            raise UnsupportedError("a gate")
        return [Meeting(), *(form for child in parents(expr) for form in _forms(child, known))]
    outer, inner = Meeting(), []
    sizes = getattr(known, "sizes", {})
    for coefficients, atoms in monomials(expr, known, lambda parts: all_unrolled(parts, sizes)):
        term = _term(coefficients, atoms, known) if getattr(known, "sums", False) else None
        term = term or (linear_term(atoms[0], coefficients, known) if len(atoms) == 1 else None)
        if term is not None:
            outer |= _uses_of(term)
        else:
            inner += [form for atom in atoms for form in _nonlinear(atom, known)]
    return [outer, *inner]


def _nonlinear(atom: Expr, known: IsData) -> list[Meeting]:
    if isinstance(atom, Apply) and not applies(atom, DOT, SUM):
        return [form for child in parents(atom) for form in _forms(child, known)]
    raise UnsupportedError("a product")


def _components(draft: Draft, uses: list[list[Meeting] | None]) -> list[tuple[Random, ...]]:
    """Groups of candidates that meet, in order of declaration."""
    candidates = _candidates(draft)
    for block, forms in zip(draft.blocks, uses, strict=True):
        if forms is None:
            candidates -= {draft.latent[name] for name in block.latent if name in draft.latent}
    components: dict[Random, set[Random]] = {}  # of each candidate: networkx takes a seventh of a second to import
    for forms in uses:
        for form in forms or []:
            members = {use.variable for use in form} & candidates
            met = members.union(*(components.get(member, ()) for member in members))
            components |= dict.fromkeys(met, met)
    groups = []
    for component in {id(component): component for component in components.values()}.values():
        apart = all(sum(bool(_within(form, component)) for form in forms) <= 1 for forms in uses if forms is not None)
        meeting = max(len(_within(form, component)) for forms in uses for form in forms or [Meeting()])
        if apart and meeting > 1:
            groups.append(tuple(node for node in draft.latent.values() if node in component))
    return groups


def _within(form: Meeting, group: Iterable[Random]) -> list[ElementUse]:
    members = set(group)
    return [use for use in form if use.variable in members]


def _parts(
    draft: Draft, group: tuple[Random, ...], uses: list[list[Meeting] | None]
) -> list[tuple[tuple[Random, ...], tuple[Plate, ...]]]:
    """The group with the plates of its joint belief, where that is affordable; else the parts of it that are."""
    choices = [group[0].plates if _aligned(group, uses, ends) else () for ends in (True, False)]
    for plates in dict.fromkeys(choices):  # where all elements of links are too many, those of each place
        if _affordable(draft, group, plates):
            return [(group, plates)]
    by_plates: dict[tuple[Plate, ...], list[Random]] = {}
    for member in group:
        by_plates.setdefault(member.plates, []).append(member)
    parts = [tuple(part) for part in by_plates.values() if len(part) < len(group)]
    parts = [part for part in parts if len(part) > 1 or _meets_itself(part, uses)]
    return [found for part in parts for found in _parts(draft, part, uses)]


def _meets_itself(part: tuple[Random, ...], uses: list[list[Meeting] | None]) -> bool:
    """Whether a link of a plate takes several elements of it."""
    return any(use.end for forms in uses for form in forms or [] for use in _within(form, part))


def _aligned(group: tuple[Random, ...], uses: list[list[Meeting] | None], ends: bool) -> bool:
    """Whether elements meet only at the same place of the same plates; those of a link meet where `ends` count."""
    forms = [_within(form, group) for forms in uses for form in forms or []]
    together = all(len({(use.place, ends and use.end) for use in form}) <= 1 for form in forms)
    return together and len(group) > 1 and len({member.plates for member in group}) == 1


def _affordable(draft: Draft, group: tuple[Random, ...], plates: tuple[Plate, ...]) -> bool:
    sizes = draft.sizes or {}
    if not {plate.name for member in group for plate in member.plates} <= set(sizes):
        return False
    total = sum(dimension(member, plates, sizes) for member in group)
    names = {member.name for member in group}
    touching = [block for block in draft.blocks if names & set(block.latent)]
    if any(block.over is not None and block.over not in set(plates) for block in touching):
        return False  # its site needs elements that are independent
    rows = max(_instances(block, sizes) * (1 if plates else _elements(block, sizes)) for block in touching)
    most = DIMENSIONS[draft.accuracy]
    if any(_is_summed(block) for block in touching):
        most = max(most, SUMMED)
    carried = any(shared_before(block) and not block.out.option("plated") for block in touching)  # cannot be torn
    return total <= most and total * rows <= CELLS["best" if carried else draft.accuracy]


def _instances(block: Block, sizes: Mapping[str, int]) -> int:
    return math.prod(sizes.get(plate.name, 1) for plate in block.plates)


def _elements(block: Block, sizes: Mapping[str, int]) -> int:
    """How many elements a link of a plate takes in each instance; 1 where there is no such link."""
    links = [arg for arg in map(unnamed, block.arguments) if spans(arg, block.method.bound, sizes)]
    return max((sizes[link.option("over").name] for link in links), default=1)


def _is_summed(block: Block) -> bool:
    """Whether a linear form has a sum over a plate as a term, which has no messages to its elements one by one."""
    return isinstance(block, SiteBlock) and any(term.over is not None for term in block.form.terms)


def sums_apart(draft: Draft) -> bool:
    """Whether a sum is left whose elements do not share a belief."""
    return any(map(_is_summed, draft.blocks))


# the blocks over the joint belief -------------------------------------------------------------------------------------


def _rewritten(draft: Draft, block: Block, joints: tuple[Joint, ...], owner: Mapping[str, str]) -> Block:
    if not set(block.latent) & set(owner):
        return block
    latent = tuple(dict.fromkeys(owner.get(name, name) for name in block.latent))
    block = dataclasses.replace(block, latent=latent)
    if shared_before(block):
        if len(latent) > 1:
            raise UnsupportedError(
                f"prior= gives one belief to {block.name.removeprefix('prior of ')} "
                "together, but here they do not all share one. Carry them one by one, without their covariances: "
                "prior={name: posterior[name], ...}."
            )
        return dataclasses.replace(block.chosen(method=EXACT), constant=True)
    if isinstance(block, SiteBlock):
        one = len(latent) == 1 and block.link == "identity" and not block.absorbed
        if one and block.factor is None and isinstance(block.out, Let):
            joint = next(joint for joint in joints if joint.variable.name == latent[0])
            if known_scales(draft, joint.members):
                return exact_observation(block, block.out)
        if not one or block.factor is None:
            return dataclasses.replace(
                block, form=dataclasses.replace(block.form, terms=merged(block.form.terms, joints))
            )
        block = _closed_form(block, draft.model.randoms.get(block.name))
    assert isinstance(block, EnergyBlock)
    scalar = isinstance(block.factor.role, ScalarGaussian)
    if scalar and isinstance(block.out, Random) and block.out.name in owner:
        mean, _ = gaussian_arguments(block)
        block = dataclasses.replace(block, out=ZERO, args=replaced(block, mean=mean - block.out))
    return block


def _closed_form(block: SiteBlock, out: Random | None) -> EnergyBlock:
    """The conjugate message of a Gaussian site whose variables share one belief."""
    reason = "linear in Gaussian variables that share one belief: its message is exact"
    choice = Choice(EXACT, "gaussian closed form", "exact", reason)
    return block.remade(EnergyBlock, choice=choice, out=out, factor=block.factor, constant=True)
