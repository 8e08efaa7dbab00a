"""The block of a chain or a tree: all its elements jointly, and exactly where its steps are linear."""

from __future__ import annotations

import dataclasses

from ...factors.errors import UnsupportedError
from ...factors.factor import REGISTRY, Chain, Term, arguments_of, cases_of
from ...factors.roles import LinearGaussian, transition
from ..algebra.complement import complement_of
from ..algebra.degree import degree_in
from ..algebra.has_moments import no_moments, random_elements
from ..algebra.known import Known, known_in, latent_names
from ..blocks.base import Block, Choice
from ..blocks.whole import ChainBlock, CurvedChainBlock, LearnedChainBlock, TreeBlock
from ..graph import Draft
from ..language.nodes import Expr, Gather, Random, inside
from ..methods import EP
from .gated_chain import check_method, gate_names, gated_block, gated_groups
from .learned_chain import learned_chain


def chain_blocks(draft: Draft, node: Random) -> list[Block]:
    """The block of a chain or a tree; where random variables gate it, one with them, at the last chain of that."""
    group = next(group for group in gated_groups(draft) if any(node is chain for chain in group.chains))
    if not group.is_gated:
        return [_chain_block(draft, node)]
    for chain in group.chains:
        _check_missing(draft, chain, "chain that other variables gate")
        _check(draft, chain, "chain")
    return [gated_block(draft, group)] if group.chains[-1] is node else []


def _chain_block(draft: Draft, node: Random) -> ChainBlock | LearnedChainBlock:
    """The block of a chain or a tree: all its elements jointly and exactly, its random parameters through VMP."""
    chain = node.term
    assert isinstance(chain, Chain)
    observed = node.name in draft.observed
    what = "chain" if chain.parent is None else "tree"
    parameters = latent_names(draft, [*arguments_of(chain.first), *arguments_of(chain.then)])
    if is_curved(node):
        _check_missing(draft, node, f"{what} whose steps are not linear")
        if not node.domain.is_real:
            _check_terms(node, chain, what)
        _check_curved(node, chain, what, known_in(draft))
    else:
        _check(draft, node, what)
    if (learned := learned_chain(draft, node)) is not None:
        return learned
    if not observed:
        check_method(draft, node, parameters)
    inside = "forward-backward" if chain.parent is None else "up-down"
    reason = (
        "the elements jointly and exactly, given the messages of all other factors"
        if not observed
        else ("all elements are observed: each factor is known but for its parameters")
    )
    if node.name in draft.partly:
        reason += "; those that are given cut it"
    if parameters:
        reason += f"; {', '.join(parameters)} through their moments (structured VMP)"
    states = "Gaussian" if node.domain.is_gaussian else "sum-product"
    operator, accuracy = f"{what}, {states} {inside}", "exact"
    make = ChainBlock if chain.parent is None else TreeBlock
    if is_curved(node):
        make, accuracy = CurvedChainBlock, "quadrature" if parameters or not observed else "exact"
        operator = f"{what}, log density" if observed else f"{what}, {states} {inside}, moments of tilted pairs"
    if is_curved(node) and not observed:
        reason = reason.replace("jointly and exactly", "jointly, by linear steps that keep the moments of each pair")
    return make(
        name=node.name,
        plates=node.plates,
        latent=parameters if observed else tuple(n for n in draft.model.randoms if n in {node.name, *parameters}),
        choice=Choice(EP, operator, accuracy, reason),
        out=node,
        chain=chain,
        parameters=parameters,
    )


def _check_missing(draft: Draft, node: Random, what: str) -> None:
    if node.name in draft.missing:
        raise UnsupportedError(
            f"'{node.name}' is a {what} that is observed with missing entries (NaN), and its elements are either all "
            "observed or all inferred. Observe a noisy copy of it, e.g. y = m.random('y', cv.gaussian(state, "
            "variance=1e-6)), whose entries may be missing."
        )


def _check(draft: Draft, node: Random, what: str) -> None:
    chain = node.term
    assert isinstance(chain, Chain)
    _check_terms(node, chain, what)
    facts = known_in(draft)
    known = Known(facts.observed | {chain.previous.name, *gate_names(draft, node)}, facts.sizes)
    for term in chain.terms:
        read = {edge: _read(arg) for edge, arg in term.args.items()}
        lacking = no_moments(((arg, term.factor.edges[edge]) for edge, arg in read.items()), known)
        if lacking is not None and lacking.domain.is_unit:
            raise UnsupportedError(
                f"'{node.name}': there is no average of the logarithm of the probability '{lacking}', which its random "
                "parameters need. Give such a probability as a variable of its own, or in the cases of a cv.switch."
            )
    if node.domain.is_gaussian:
        for term in cases_of(chain.then):
            _check_linear(node, chain, term)


def _read(arg: Expr) -> Expr:
    """The expression whose average a term reads."""
    found = complement_of(arg)
    return arg if found is None else found


def _check_terms(node: Random, chain: Chain, what: str) -> None:
    wanted = transition(REGISTRY.values(), node.domain.kind)
    for term in chain.terms:
        if term.factor.role is None or term.factor.role.states != node.domain.kind:
            raise UnsupportedError(
                f"'{node.name}' is a {what} of {node.domain} values generated by {term.factor.name}. The messages "
                f"along a {what} of them need {wanted} terms; that of real numbers takes any."
            )


def _check_linear(node: Random, chain: Chain, term: Term) -> None:
    for edge, arg in term.args.items():
        if _bends(chain, term, edge, arg):
            centre = isinstance(term.factor.role, LinearGaussian) and edge == term.factor.role.mean
            raise UnsupportedError(
                f"'{node.name}': the {edge} '{arg}' of then= is not "
                + ("linear in the previous element" if centre else "free of the previous element")
                + ", in a step that is gated. Write the mean as a sum of products of the previous element with data or "
                "parameters (a matrix as matrix @ previous), and the precision without it; a chain that nothing random "
                "gates may have curved steps."
            )


def _bends(chain: Chain, term: Term, edge: str, arg: Expr) -> bool:
    """Whether an argument depends on the previous element otherwise than a Gaussian mean that is linear in it."""
    role = term.factor.role
    degree, centre = degree_in(arg, chain.previous), isinstance(role, LinearGaussian) and edge == role.mean
    return degree is None or degree > centre


def _check_curved(node: Random, chain: Chain, what: str, known: Known) -> None:
    """Refuses what has no average at a value of the previous element, or reads further elements."""
    given = dataclasses.replace(known, observed=known.observed | {chain.previous.name})
    for term in chain.terms:
        lacking = no_moments([(arg, term.factor.edges[edge]) for edge, arg in term.args.items()], given)
        if lacking is not None:
            names = ", ".join(sorted({v.name for v, _ in random_elements(lacking, given)}))
            raise UnsupportedError(
                f"'{node.name}': '{lacking}' in its {term.factor.name} has no moments in {names}, which is random. A "
                f"{what} whose steps are not linear takes parameters in sums and products with functions of data and "
                f"of the previous element. Fix {names}, write the step so, or integrate it by hand over a few values."
            )
        for edge, arg in term.args.items():
            if edge in term.factor.unsupported and not given(arg):
                raise UnsupportedError(
                    f"'{node.name}': the argument {edge}='{arg}' of {term.factor.name} is random, and "
                    f"{term.factor.unsupported[edge]}."
                )
            across = next((g for g in inside([arg]) if isinstance(g, Gather) and g.axis is chain.over), None)
            if across is not None:
                raise UnsupportedError(
                    f"'{node.name}': '{across}' in its {term.factor.name} reads another row of the plate "
                    f"'{chain.over.name}', along which the {what} runs, and its steps are not linear. Give what it "
                    "reads as an input of its own over the plate."
                )


def is_curved(node: Random) -> bool:
    """Whether the steps of a chain or a tree of numbers or vectors are not linear with Gaussian noise."""
    chain = node.term
    assert isinstance(chain, Chain)
    if not node.domain.is_gaussian or not (isinstance(chain.first, Term) and isinstance(chain.then, Term)):
        return False
    roles = [term.factor.role for term in (chain.first, chain.then)]
    if any(role is None or role.states != node.domain.kind for role in roles):
        return True
    return any(_bends(chain, chain.then, edge, arg) for edge, arg in chain.then.args.items())
