"""Chains whose transitions are gated by random variables: which are solved together, and by what block.

A gate that does not vary along the chain is a class of what the chain belongs to. One that does is a chain beside it,
which joins it where the states of both together are few, or a regime of each element.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable

from ...factors.errors import UnsupportedError
from ...factors.factor import Chain, Switch, arguments_of
from ..algebra.known import Known, known_in, latent_names
from ..blocks.base import Choice, Gate
from ..blocks.whole import GatedBlock
from ..graph import Draft
from ..language.nodes import Expr, Gather, Plate, Random, gathers_of, inside, source_of
from ..methods import EP

STATES = 64  # joint states of chains and regimes


@dataclasses.dataclass(frozen=True)
class Group:
    """Chains that are solved together, in order of declaration, and all that gates them."""

    chains: tuple[Random, ...]
    gates: tuple[Random, ...] = ()

    @property
    def is_gated(self) -> bool:
        """Whether random variables choose among transitions."""
        return bool(self.gates)

    @property
    def over(self) -> Plate:
        """The plate of the chains."""
        return _chain(self.chains[0]).over

    @property
    def regimes(self) -> tuple[Random, ...]:
        """The gates that vary along the chains, and are none of them."""
        own = set(self.chains)
        return tuple(gate for gate in self.gates if self.over in gate.plates and gate not in own)

    @property
    def classes(self) -> tuple[Random, ...]:
        """The gates that do not vary along the chains."""
        return tuple(gate for gate in self.gates if self.over not in gate.plates)


def check_method(draft: Draft, node: Random, parameters: Iterable[str]) -> None:
    """UnsupportedError where EP was asked for a chain with random parameters."""
    names = ", ".join(parameters)
    if names and draft.method_of(node.name).name in ("ep", "power"):
        raise UnsupportedError(
            f"'{node.name}' was asked to run under EP, but its parameters {names} are random: their "
            "product with the states has no exact integral; EP takes chains of states whose probabilities are elements "
            "of Dirichlet or beta variables. Use method='auto', where the states stay exact given the parameters' "
            "moments, or fix the parameters."
        )


def gated_groups(draft: Draft) -> list[Group]:
    """All chains and trees that are needed, those together that one gates the other."""
    found: list[Group] = []
    for name, node in draft.model.randoms.items():
        if name not in draft.needed or not isinstance(node.term, Chain):
            continue
        gates = tuple(draft.model.randoms[gate] for gate in gate_names(draft, node))
        mine = Group((node,), gates)
        for other in [other for other in found if set(other.chains) & set(gates)]:
            if _fits(draft, mine, other):
                found.remove(other)
                mine = _together(draft, mine, other)
        found.append(mine)
    return found


def _chain(node: Random) -> Chain:
    assert isinstance(node.term, Chain)
    return node.term


def _gates(draft: Draft, node: Random) -> list[Gate]:
    """The gates of a chain that are random, but for the element before."""
    chain, facts = _chain(node), known_in(draft)
    known = Known(facts.observed | {chain.previous.name}, facts.sizes)
    found: dict[tuple[str, Plate | None], Gate] = {}
    for term in (chain.first, chain.then):
        if isinstance(term, Switch) and not known(term.selector):
            found[str(term.selector), None] = Gate(term.selector, case=0)
        for part in inside(arguments_of(term)):
            if isinstance(part, Gather) and not known(part.index):
                found[str(part.index), part.axis] = Gate(part.index, axis=part.axis)
    return list(found.values())


def gate_names(draft: Draft, node: Random) -> tuple[str, ...]:
    """The random variables that gate the transitions of a chain; UnsupportedError for what may not."""
    names = latent_names(draft, [gate.selector for gate in _gates(draft, node)])
    if names and _chain(node).parent is not None:
        raise UnsupportedError(
            f"'{node.name}' is a tree whose transitions are gated by the random '{names[0]}'. Trees have no "
            "operator for that yet, chains do. Observe that variable, or write the cases out in one larger discrete "
            "state."
        )
    for gate in _gates(draft, node):
        _check_selector(draft, node, gate.selector)
    return names


def _check_selector(draft: Draft, node: Random, selector: Expr) -> None:
    for name in latent_names(draft, [selector]):
        gate = draft.model.randoms[name]
        if not gate.domain.is_discrete:
            raise UnsupportedError(
                f"'{node.name}': its transitions are gated by '{selector}', a comparison of '{name}', which is "
                f"{gate.domain}. The gate of a chain is made of booleans and categories. Declare the comparison's "
                f"outcome as one, cv.bernoulli(cv.probit(...)), and switch on that."
            )
    for part in inside([selector]):
        source = source_of(part)
        if isinstance(part, Gather) and gathers_of(part) and isinstance(source, Random) and source.domain.is_discrete:
            raise UnsupportedError(
                f"'{node.name}': its transitions are gated by '{part}', an element of '{source.name}' that an index "
                f"chooses. The gate of a chain has the plates of the chain itself, or fewer. Give '{node.name}' the "
                f"plate of '{source.name}' (plates=), and its data an axis for it."
            )


def _fits(draft: Draft, one: Group, other: Group) -> bool:
    """Whether two groups can be one: with few joint states, and Gaussian states in at most one chain."""
    chains = (*one.chains, *other.chains)
    latent = [node for node in chains if node.name not in draft.observed]
    gaussian = [node for node in latent if node.domain.is_gaussian]
    lanes = set(latent[0].plates) if latent else set()
    same = all(set(node.plates) == lanes for node in latent) and all(lanes <= set(node.plates) for node in chains)
    along = all(_chain(node).over is _chain(chains[0]).over and _chain(node).parent is None for node in chains)
    return same and along and len(gaussian) < 2 and _joint_states(draft, _together(draft, one, other)) <= STATES


def _together(draft: Draft, one: Group, other: Group) -> Group:
    names = {node.name for node in (*one.chains, *other.chains)}
    gates = {node.name for node in (*one.gates, *other.gates)}
    model = draft.model.randoms.items()
    return Group(tuple(n for name, n in model if name in names), tuple(n for name, n in model if name in gates))


def _joint_states(draft: Draft, group: Group) -> int:
    """The states of all chains and regimes together, as far as sizes are known."""
    chains = [node for node in group.chains if node.name not in draft.observed and node.domain.is_discrete]
    return math.prod(_states(draft, node) for node in (*chains, *group.regimes))


def _states(draft: Draft, node: Random) -> int:
    size = node.domain.size
    if node.domain.is_boolean:
        return 2
    return size if isinstance(size, int) else known_in(draft).sizes.get(getattr(size, "name", ""), 2)


def gated_block(draft: Draft, group: Group) -> GatedBlock:
    """The block of chains with all that gates them."""
    out = group.chains[-1]
    latent = [node for node in group.chains if node.name not in draft.observed]
    states = tuple(node for node in latent if node.domain.is_discrete)
    gaussian = next((node for node in latent if node.domain.is_gaussian), None)
    lanes = _lanes(draft, group)
    terms = [term for node in group.chains for term in (_chain(node).first, _chain(node).then)]
    gates = {node.name for node in group.gates}
    parameters = latent_names(draft, [arg for term in terms for arg in arguments_of(term)])
    parameters = tuple(name for name in parameters if name not in gates)
    for node in group.chains:
        check_method(draft, node, parameters)
    reached = {node.name for node in (*latent, *group.gates)}
    return GatedBlock(
        name=out.name,
        plates=(*(plate for plate in out.plates if plate in {*lanes, group.over}),),
        latent=tuple(name for name in draft.model.randoms if name in {*reached, *parameters}),
        choice=_choice(draft, group, gaussian, parameters),
        out=out,
        chain=_chain(out),
        parameters=parameters,
        states=states,
        gaussian=gaussian,
        observed_chains=tuple(node for node in group.chains if node.name in draft.observed),
        regimes=group.regimes,
        classes=group.classes,
        lanes=lanes,
        gating=frozenset(gates),
        chooses=tuple(gate for node in group.chains for gate in _gates(draft, node)),
    )


def _lanes(draft: Draft, group: Group) -> tuple[Plate, ...]:
    """The plates of the independent chains; UnsupportedError where gates have others."""
    out = next((node for node in group.chains if node.name not in draft.observed), None)
    out = next(iter(group.regimes), group.chains[-1]) if out is None else out
    lanes = tuple(plate for plate in out.plates if plate is not group.over)
    for gate in group.regimes:
        if set(gate.plates) != {group.over, *lanes}:
            raise UnsupportedError(
                f"'{out.name}' varies over ({_names(out.plates)}), and the gate '{gate.name}' of its transitions over "
                f"({_names(gate.plates)}): chains that share a gate which moves along them are not independent, and "
                f"have no operator yet. Give '{gate.name}' all these plates, or observe it."
            )
    classes = group.classes
    if any(set(gate.plates) != set(classes[0].plates) for gate in classes) or not set().union(
        *(gate.plates for gate in classes)
    ) <= set(lanes):
        raise UnsupportedError(
            f"'{out.name}' varies over ({_names(out.plates)}), and its transitions are gated by classes over "
            + " and ".join(f"({_names(gate.plates)}) ('{gate.name}')" for gate in classes)
            + ". Such classes need one set of plates, all among those of the chain: write several as one class of all "
            "their combinations."
        )
    if (number := _joint_states(draft, group)) > STATES:
        names = ", ".join(node.name for node in (*group.chains, *group.regimes))
        raise UnsupportedError(
            f"{names} have {number} joint states, of which at most {STATES} are summed out together along a chain. "
            "Give some of them fewer states."
        )
    return lanes


def _names(plates: tuple[Plate, ...]) -> str:
    return ", ".join(plate.name for plate in plates)


def _choice(draft: Draft, group: Group, gaussian: Random | None, parameters: tuple[str, ...]) -> Choice:
    latent = [node.name for node in group.chains if node.name not in draft.observed]
    moving = [node.name for node in group.gates if group.over in node.plates]
    classes = ", ".join(node.name for node in group.classes)
    by_class = f"for each class of {classes}" if classes else ""
    if gaussian is not None and moving:
        number = _joint_states(draft, group)
        operator = f"chain, mixtures of Gaussians over the last steps of {number} states, forward and back"
        accuracy = "older histories merged"
        reason = f"Gaussian given every history of {', '.join(moving)}: the last steps apart, older ones by two moments"
    else:
        states = "Gaussian" if gaussian is not None else "sum-product"
        operator, accuracy = f"chain, {states} forward-backward", "exact" if gaussian is None else "exact moments"
        together = ", ".join(dict.fromkeys([*latent, *moving])) or "all elements are observed"
        reason = f"{together} jointly, given the messages of all other factors"
    operator = " ".join(part for part in (operator, by_class) if part)
    if parameters:
        reason += f"; {', '.join(parameters)} through their moments (structured VMP)"
    return Choice(EP, operator, accuracy, reason)
