"""Which answers of a plan are exact, and what makes the others approximate.

The accuracy of an operator is that of its message: an exact message to a belief that cannot hold the posterior, or that
comes back through a loop, still gives an approximate answer. Exact are the beliefs where all factors that hang together
are conjugate, linear-Gaussian, or tables that are summed, without loops.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Collection, Hashable, Sequence
from typing import NamedTuple, TypeAlias

from .algebra.known import latent_names, ungathered
from .blocks.base import Block
from .blocks.energy import EnergyBlock
from .blocks.site import SiteBlock
from .blocks.slots import SlotsBlock
from .blocks.whole import ChainBlock
from .discrete.loops import loopy
from .graph import Plan
from .language.atoms import atom_key
from .language.nodes import Apply, Expr, Gather, Let, Plate, Random, parents


class Kind(enum.Enum):
    """What makes an answer approximate."""

    POWER = "power EP"
    APART = "beliefs that are taken apart"
    NEAREST = "a belief that cannot hold the posterior"
    PROJECTED = "a message that keeps no more than some moments"
    LOOP = "messages that come back"
    ECHO = "messages that come back through discrete states or chains"


Cause: TypeAlias = tuple[str, Kind]  # in which factor
SERIOUS = frozenset({Kind.APART, Kind.NEAREST, Kind.POWER, Kind.ECHO})  # what mostly makes sds wrong, and not a little


class Exactness(NamedTuple):
    """The variables that hang together, and why their marginals are approximate: nothing where they are exact.

    `latent` are their beliefs' names, `kinds` those of their domains. `causes` are what `reasons` say in words.
    `moments` is true where only the expected statistics of their beliefs are exact: of the one factor that is not
    conjugate EP keeps no more.
    """

    names: tuple[str, ...]
    reasons: tuple[str, ...]
    moments: bool
    kinds: tuple[str, ...]
    latent: tuple[str, ...]
    causes: frozenset[Cause]

    def of(self, kinds: Collection[Kind]) -> frozenset[Cause]:
        """The causes of these kinds."""
        return frozenset(cause for cause in self.causes if cause[1] in kinds)


def answers(plan: Plan) -> list[Exactness]:
    """One answer for every group of variables that factors tie together, in order of declaration."""
    loops = loopy(plan)
    found = []
    for component in _components(plan):
        blocks = [block for block in plan.blocks if component & set(_touched(plan, block))]
        own = tuple(name for name in plan.latent if name in component)
        names = tuple(_shown(plan, name) for name in own)
        kinds = tuple(plan.latent[name].domain.kind for name in own)
        reasons, causes = _reasons(plan, blocks, loops)
        moments = not reasons and any(block.projects for block in blocks)
        found.append(Exactness(names, tuple(reasons), moments, kinds, own, causes))
    return found


def causes_of(plan: Plan, kinds: Collection[Kind] = tuple(Kind)) -> frozenset[Cause]:
    """What leaves answers of a plan approximate, of these kinds."""
    return frozenset().union(*(answer.of(kinds) for answer in answers(plan)))


def fewest_given(
    candidates: Sequence[str], causes: Callable[[tuple[str, ...]], frozenset[Cause] | None], now: frozenset[Cause]
) -> tuple[str, ...]:
    """Those of the candidates given which as little is approximate as given all; nothing where that is no less than
    `now`.

    `causes` tells what leaves answers approximate where the variables of these names are given, None where they cannot
    be. The first candidates are dropped first.
    """
    kept = tuple(candidates)
    least = causes(kept) if kept else None
    if least is None or not least < now:
        return ()
    for name in kept:
        fewer = tuple(other for other in kept if other != name)
        found = causes(fewer) if fewer else None
        if found is not None and found <= least:
            kept = fewer
    return kept


def _components(plan: Plan) -> list[set[str]]:
    """The latent variables, those together that factors tie together."""
    found: list[set[str]] = [{name} for name in plan.latent]
    for block in plan.blocks:
        touched = set(_touched(plan, block))
        tied = [group for group in found if group & touched]
        if len(tied) > 1:
            tied[0].update(*tied[1:])
            found = [group for group in found if not any(group is other for other in tied[1:])]
    return found


def _touched(plan: Plan, block: Block) -> list[str]:
    atoms = (getattr(ungathered(atom), "name", "") for atom in block.atoms)
    return [name for name in dict.fromkeys((*block.latent, *atoms)) if name in plan.latent]


def _shown(plan: Plan, name: str) -> str:
    """The name of a variable, of a joint belief the names of its members."""
    joint = next((joint for joint in plan.joints if joint.variable.name == name), None)
    return name if joint is None else ", ".join(member.name for member in joint.members)


def _reasons(plan: Plan, blocks: list[Block], loops: list[str]) -> tuple[list[str], frozenset[Cause]]:
    """Why answers are approximate, in words and by factor."""
    reasons: dict[str, None] = {}
    causes: set[Cause] = set()
    for block in blocks:
        if (found := _of_block(plan, block)) is not None:
            kind, reason = found
            reasons[reason] = None
            causes.add((block.name, kind))
    projecting = [block for block in blocks if block.projects]
    alone = len(blocks) - len(projecting) == sum(block.constant for block in blocks)
    if not (len(projecting) == 1 and alone and _single(plan, projecting[0]) and not reasons):
        reasons |= {f"the message of {block.name} keeps no more than {_kept(block)}": None for block in projecting}
        causes |= {(block.name, Kind.PROJECTED) for block in projecting}
    back = [block.name for block in blocks if block.name in loops]
    if back:
        reasons[f"messages may come back to where they began ({', '.join(back)})"] = None
        echoing = _echoing(plan, blocks)
        loud = {block.name for block in blocks if echoing & set(_touched(plan, block))}
        causes |= {(name, Kind.ECHO if name in loud else Kind.LOOP) for name in back}
    return list(reasons), frozenset(causes)


def _of_block(plan: Plan, block: Block) -> tuple[Kind, str] | None:
    """What a factor makes approximate by itself."""
    if block.method.name == "power":
        return Kind.POWER, f"{block.name} runs under power EP"
    if block.parameters:
        parameters = ", ".join(block.parameters)
        return Kind.APART, f"{parameters} and the states of {block.name} are taken apart (structured VMP)"
    if not isinstance(block, EnergyBlock) or block.constant or not block.latent:
        return None
    names = [_shown(plan, name) for name in block.latent]
    if len(names) > 1:
        return Kind.APART, f"the beliefs of {' and '.join(names)} are taken apart in {block.name} ({block.method})"
    if _reads_several(plan, block):
        return Kind.APART, f"the elements of {names[0]} are taken apart in {block.name} ({block.method})"
    if block.method.name == "ncvmp":
        nearest = f"the belief of {names[0]} is the nearest of its family ({block.method})"
        return Kind.NEAREST, f"{block.name} is not conjugate: {nearest}"
    return None


def _reads_several(plan: Plan, block: EnergyBlock) -> bool:
    """Whether a factor reads more than one element of a variable whose elements have beliefs of their own."""
    together = {member for joint in plan.joints for member in joint.members}
    read: dict[str, set[Hashable]] = {}
    roots = (block.out, *block.args.values(), *(gate.selector for gate in block.gates))
    queue: list[tuple[Expr, frozenset[Plate], Hashable]] = [(root, frozenset(), ()) for root in roots]
    seen: set[Hashable] = set()  # what several expressions share is read once
    while queue:
        node, over, of = queue.pop()
        if (id(node), over, of) in seen:
            continue
        seen.add((id(node), over, of))
        source = ungathered(node)
        if isinstance(node, (Random, Let)) and node.name in plan.observed:
            continue
        if isinstance(source, Random):
            if source.name in plan.latent and source not in together:
                elements = read.setdefault(source.name, set())
                elements.add((of, atom_key(node)))
                if len(elements) > 1 or over & set(node.plates):
                    return True
            queue += [(index, over, of) for index in _indices(node)]
            continue
        if isinstance(node, Apply) and node.over is not None:
            over |= {node.over}
        if isinstance(node, Gather):  # of a function: its element, and what chooses it
            queue += [(node.source, over, (of, atom_key(node.index))), (node.index, over, of)]
        else:
            queue += [(parent, over, of) for parent in parents(node)]
    return False


def _indices(node: Expr) -> list[Expr]:
    """What chooses an element, through all gathers."""
    found = []
    while isinstance(node, Gather):
        found.append(node.index)
        node = node.source
    return found


def _echoing(plan: Plan, blocks: list[Block]) -> set[str]:
    """The variables through which what comes back mostly counts for more than a little: whole chains, and states."""
    chained = {name for block in blocks if isinstance(block, ChainBlock) for name in _touched(plan, block)}
    return chained | {name for name, node in plan.latent.items() if node.domain.is_discrete}


def _kept(block: Block) -> str:
    gaussian = not isinstance(block, SlotsBlock) or all(edge.variable.domain.is_gaussian for edge in block.edges)
    return "means and variances" if gaussian else "some moments"


def _single(plan: Plan, block: Block) -> bool:
    """Whether a factor has one instance, or one for each element of the one variable that it touches."""
    terms = block.form.terms if isinstance(block, SiteBlock) and block.over is None else ()
    if len(terms) == 1 and terms[0].element is terms[0].variable and set(block.plates) == set(terms[0].variable.plates):
        return True
    sizes = {name: plate.size for name, plate in plan.model.plates.items()} | dict(plan.sizes or {})
    numbers = [sizes.get(plate.name) for plate in block.plates]
    return None not in numbers and math.prod(number or 1 for number in numbers) == 1


def in_words(plan: Plan) -> str:
    """One line: for which variables the answers are exact, and for which approximate and why."""
    found = answers(plan)
    words: dict[str, list[str]] = {}
    for answer in found:
        for name, kind in zip(answer.names, answer.kinds, strict=True):
            if not answer.reasons:
                kept = _KEPT.get(kind, "") if answer.moments else ""
                words.setdefault(f"exact in {kept}" if kept else "exact", []).append(name)
    parts = [f"{word} for {', '.join(names)}" for word, names in sorted(words.items())]
    parts += [f"approximate for {', '.join(a.names)}: {'; '.join(a.reasons)}" for a in found if a.reasons]
    projected = {name for a in found if a.moments for name, kind in zip(a.names, a.kinds, strict=True) if kind in _KEPT}
    if predicted := _made_of(plan, projected):
        parts.append(f"approximate for {', '.join(predicted)}: made of beliefs of which no more is exact")
    return ". ".join(parts)


def _made_of(plan: Plan, names: set[str]) -> list[str]:
    """The variables that are predicted from beliefs about these."""
    found: list[str] = []
    for name in plan.forward:
        node = plan.model.randoms.get(name)
        if node is not None and {*names, *found} & set(latent_names(plan, list(parents(node)))):
            found.append(name)
    return found


# What a projection keeps of a distribution, by the kind of domain: the expected statistics of the belief's family.
# Probabilities of states are kept whole.
_KEPT = {
    "real": "mean and variance",
    "vector": "mean and covariance",
    "positive": "E x and E log x",
    "unit": "E log x and E log(1 - x)",
    "simplex": "E log x",
    "count": "the mean",
}
