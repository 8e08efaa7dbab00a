"""Pass: Gaussian variables that meet in linear forms share one belief with a full covariance.

Beliefs that are kept apart are the chief source of silent error: under VMP an intercept and a slope come out with far
too small variances, under EP their messages run in a loop. Where the variables together have few dimensions, one
Gaussian over all of them costs little and makes that part of the model exact.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterable, Mapping

from ..factors.domains import Domain, real
from ..factors.errors import UnsupportedError
from ..factors.factor import Term
from .choose import ZERO
from .expressions import Apply, Expr, Gather, Let, Plate, Random, parents, union_plates
from .graph import Block, Graph, Joint, LinearTerm
from .known import known_in
from .linear import linear_form, linear_term
from .polynomial import Monomial, monomials

DIMENSIONS = {"default": 100, "best": 2000}  # of a joint belief
CELLS = {"default": 5e6, "best": 2e8}  # of the largest array of directions, rows * dimensions
GAUSSIAN = ("gaussian", "vector_gaussian")


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Direction(Expr):
    """The direction of a linear form in the space of a joint belief, from data alone."""

    joint: Joint
    terms: tuple[LinearTerm, ...]
    plates: tuple[Plate, ...]
    domain: Domain


def direction(joint: Joint, terms: tuple[LinearTerm, ...]) -> Direction:
    """The direction of a sum of terms in members of `joint`."""
    plates = union_plates(*(node.plates for term in terms for node in _nodes_of(term)))
    return Direction(joint, terms, plates, joint.variable.domain)


def _nodes_of(term: LinearTerm) -> tuple[Expr, ...]:
    return (term.element, *term.coefficients, *(() if term.direction is None else (term.direction,)))


def merged(terms: Iterable[LinearTerm], joints: tuple[Joint, ...]) -> tuple[LinearTerm, ...]:
    """The terms with those in members of one joint belief as a single term along a direction."""
    rest, groups = [], {joint: [] for joint in joints}
    for term in terms:
        joint = next((joint for joint in joints if term.variable in set(joint.members)), None)
        (rest if joint is None else groups[joint]).append(term)
    together = [
        LinearTerm(joint.variable, joint.variable, (), direction(joint, tuple(group)))
        for joint, group in groups.items()
        if group
    ]
    return (*rest, *together)


def with_directions(
    terms: list[Monomial], joint_of: Callable[[Random], Joint | None], known: Callable[[Expr], bool]
) -> list[Monomial]:
    """The monomials of a real expression, those linear in members of a joint belief merged into inner products."""
    rest, groups = [], {}
    for coefficients, atoms in terms:
        term = linear_term(atoms[0], coefficients, known) if len(atoms) == 1 else None
        joint = None if term is None else joint_of(term.variable)
        if term is None or joint is None:
            rest.append((coefficients, atoms))
        else:
            groups.setdefault(joint, []).append(term)
    for joint, group in groups.items():
        along = direction(joint, tuple(group))
        rest.append(((), (Apply("dot", (joint.variable, along), (), along.plates, real),)))
    return rest


def join(graph: Graph) -> Graph:
    """Gives every affordable group of Gaussian variables that meet in linear forms one belief."""
    if graph.sizes is None or (graph.default.name != "auto" and graph.accuracy != "best"):
        return graph
    uses = [_uses(graph, block) for block in graph.blocks]
    groups = [group for group in _components(graph, uses) if _affordable(graph, group)]
    if not groups:
        return graph
    joints = tuple(_joint(graph, number, group) for number, group in enumerate(groups, start=1))
    owner = {member.name: joint.variable.name for joint in joints for member in joint.members}
    latent = {name: node for name, node in graph.latent.items() if name not in owner}
    latent |= {joint.variable.name: joint.variable for joint in joints}
    blocks = tuple(_rewritten(graph, block, joints, owner) for block in graph.blocks)
    return dataclasses.replace(graph, joints=joints, latent=latent, blocks=blocks)


def _joint(graph: Graph, number: int, members: tuple[Random, ...]) -> Joint:
    name = f"joint of {', '.join(member.name for member in members)}"
    axis = Plate(f"dimension of joint {number}", sum(dimension(member, graph.sizes or {}) for member in members))
    variable = Random(name, None, (), Domain("vector", axis))  # type: ignore[arg-type]
    return Joint(variable, members)


def dimension(member: Random, sizes: Mapping[str, int]) -> int:
    """How many numbers a member adds to a joint belief."""
    return math.prod(sizes[plate.name] for plate in member.plates) * (member.domain.size or 1)


# which variables meet -------------------------------------------------------------------------------------------------

Meeting = frozenset  # of variables that meet in one linear form


def _candidates(graph: Graph) -> set[Random]:
    """The Gaussian variables that a joint belief could hold."""

    def fits(node: Random | Let) -> bool:
        generated = isinstance(node, Random) and isinstance(node.term, Term) and node.term.factor.name in GAUSSIAN
        return generated and (node.domain.kind == "real" or isinstance(node.domain.size, int))

    return {node for node in graph.latent.values() if isinstance(node, Random) and fits(node)}


def _uses(graph: Graph, block: Block) -> list[Meeting] | None:
    """The linear forms of a block as sets of variables, or None where it uses a Gaussian variable in another way."""
    if block.kind == "site":
        return [Meeting(term.variable for term in block.form.terms)]
    if block.kind != "energy":
        return None
    known = known_in(graph)
    own = Meeting((block.out,)) if isinstance(block.out, Random) and block.out.name in graph.latent else Meeting()
    try:
        if block.factor.name == "gaussian":
            mean, *others = _forms(block.args["mean"], known)
            return [mean | own, *others, *_forms(block.args["precision"], known)]
        forms = [form for arg in block.args.values() for form in _forms(arg, known)]
    except UnsupportedError:
        return None
    return [own, *forms]


def _forms(expr: Expr, known) -> list[Meeting]:
    """The linear forms inside an expression, the outermost first; UnsupportedError where a variable is multiplied."""
    if known(expr):
        return [Meeting()]
    if isinstance(expr, Random):
        return [Meeting((expr,))]
    if expr.domain.kind != "real":
        if isinstance(expr, Gather) and not known(expr.index):
            raise UnsupportedError("a gate")
        return [Meeting(), *(form for child in parents(expr) for form in _forms(child, known))]
    outer, inner = Meeting(), []
    for _, atoms in monomials(expr, known):
        form = linear_form(atoms[0], known) if len(atoms) == 1 and _is_element(atoms[0]) else None
        if form is not None:
            outer |= Meeting(term.variable for term in form.terms)
        else:
            inner += [form for atom in atoms for form in _nonlinear(atom, known)]
    return [outer, *inner]


def _is_element(atom: Expr) -> bool:
    while isinstance(atom, Let):
        atom = atom.expression
    return isinstance(atom, (Random, Gather)) or (isinstance(atom, Apply) and atom.op == "dot")


def _nonlinear(atom: Expr, known) -> list[Meeting]:
    if isinstance(atom, Apply) and atom.op != "dot":
        return [form for child in parents(atom) for form in _forms(child, known)]
    raise UnsupportedError("a product")


def _components(graph: Graph, uses: list[list[Meeting] | None]) -> list[tuple[Random, ...]]:
    """Groups of candidates that meet, in order of declaration."""
    import networkx as nx

    candidates = _candidates(graph)
    for block, forms in zip(graph.blocks, uses, strict=True):
        if forms is None:
            candidates -= {graph.latent[name] for name in block.latent if name in graph.latent}
            candidates -= {atom for atom in block.atoms if isinstance(atom, Random)}
    web = nx.Graph()
    for forms in uses:
        for form in forms or []:
            members = [variable for variable in form if variable in candidates]
            web.add_nodes_from(members)
            web.add_edges_from(itertools.pairwise(members))
    groups = []
    for component in nx.connected_components(web):
        apart = all(sum(bool(form & component) for form in forms) <= 1 for forms in uses if forms is not None)
        if apart and (len(component) > 1 or _meets_itself(graph, component)):
            groups.append(tuple(node for node in graph.latent.values() if node in component))
    return groups


def _meets_itself(graph: Graph, component: set[Random]) -> bool:
    """Whether several elements of the only variable meet in one linear form."""
    return any(
        sum(term.variable in component for term in block.form.terms) > 1
        for block in graph.blocks
        if block.kind == "site"
    )


def _affordable(graph: Graph, group: tuple[Random, ...]) -> bool:
    sizes = graph.sizes or {}
    plates = {plate.name for member in group for plate in member.plates}
    if not plates <= set(sizes):
        return False
    total = sum(dimension(member, sizes) for member in group)
    names = {member.name for member in group}
    rows = max(
        math.prod(sizes.get(plate.name, 1) for plate in block.plates)
        for block in graph.blocks
        if names & set(block.latent)
    )
    return total <= DIMENSIONS[graph.accuracy] and total * rows <= CELLS[graph.accuracy]


# the blocks over the joint belief -------------------------------------------------------------------------------------


def _rewritten(graph: Graph, block: Block, joints: tuple[Joint, ...], owner: Mapping[str, str]) -> Block:
    if not set(block.latent) & set(owner):
        return block
    latent = tuple(dict.fromkeys(owner.get(name, name) for name in block.latent))
    block = dataclasses.replace(block, latent=latent)
    own = graph.model.randoms.get(block.name)
    if block.kind == "site":
        exact = block.link == "identity" and block.factor is not None and not block.absorbed and len(latent) == 1
        if not exact:
            return dataclasses.replace(
                block, form=dataclasses.replace(block.form, terms=merged(block.form.terms, joints))
            )
        block = dataclasses.replace(
            block,
            kind="energy",
            constant=True,
            form=None,
            out=own,
            operator="gaussian closed form",
            reason="linear in Gaussian variables that share one belief: its message is exact",
        )
    if block.factor.name == "gaussian" and isinstance(block.out, Random) and block.out.name in owner:
        block = dataclasses.replace(block, out=ZERO, args={**block.args, "mean": block.args["mean"] - block.out})
    return block
