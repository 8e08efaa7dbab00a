"""Rule: a mean whose prior precision is a multiple of a random precision shares one belief with it.

That is the conjugate prior of both, normal-Gamma or normal-Wishart: where all that reads either of them is Gaussian
about the mean with (a multiple of) the precision, nothing is lost by a belief of this family.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator

import numpy as np

from ...factors.domains import Domain, positive
from ...factors.factor import Factor, Switch, Term
from ...factors.roles import LinearGaussian, ScalarGaussian, VectorGaussian
from ...factors.vectors.pairs import NORMAL_PAIR, VECTOR_PAIR, prior_of_precision
from ..algebra.known import known_in
from ..data.keys import joint_belief
from ..graph import Draft, NormalPair
from ..language.atoms import atom_key
from ..language.nodes import (
    Constant,
    Expr,
    IsData,
    Plate,
    Random,
    applies,
    gathers_of,
    inside,
    moved,
    parents,
    source_of,
    unnamed,
)
from ..language.operations import DIVIDE, MULTIPLY

ONE = Constant(np.array(1.0), (), positive)
PAIRED: dict[type, tuple[str, Factor]] = {
    ScalarGaussian: ("normal_gamma", NORMAL_PAIR),
    VectorGaussian: ("normal_wishart", VECTOR_PAIR),
}


def normal_pairs(draft: Draft) -> tuple[NormalPair, ...]:
    """The pairs of latent variables that may share a belief, in order of declaration."""
    if draft.partly:  # whose factors are split by what is given
        return ()
    known = known_in(draft)
    found: dict[Random, NormalPair] = {}
    for mean in draft.latent.values():
        if isinstance(mean, Random) and (pair := _pair(draft, mean, known)) is not None:
            if pair.precision in found or not all(_fits(node, pair, known) for node in _readers(draft, pair)):
                return ()  # of two means under one precision neither has it alone
            found[pair.precision] = pair
    return tuple(found.values())


def _pair(draft: Draft, mean: Random, known: IsData) -> NormalPair | None:
    term = mean.term
    if not isinstance(term, Term) or type(term.factor.role) not in PAIRED or mean.name in draft.given:
        return None
    role = term.factor.role
    assert isinstance(role, LinearGaussian)
    _, precision = scaled(term.args[role.precision], known)
    prior = precision.term if isinstance(precision, Random) else None
    if not known(term.args[role.mean]) or not isinstance(prior, Term):
        return None
    assert isinstance(precision, Random)
    usable = precision.name in draft.latent and precision.name not in draft.given and precision.plates == mean.plates
    known_prior = all(map(known, prior.args.values())) and "out" in prior.factor.conjugate
    if not usable or not known_prior or prior.factor.expected_log is None:
        return None
    kind, _ = PAIRED[type(role)]
    name, domain = joint_belief((mean.name, precision.name)), Domain(kind, mean.domain.size)
    variable = Random(name, None, mean.plates, domain)  # type: ignore[arg-type]
    return NormalPair(variable, mean, precision)


def scaled(expr: Expr, known: IsData) -> tuple[Expr, Expr]:
    """The known multiple and what it is of."""
    inner = unnamed(expr)
    if applies(inner, MULTIPLY) and any(map(known, inner.args)):
        left, right = inner.args if known(inner.args[0]) else inner.args[::-1]
        multiple, rest = scaled(right, known)
        return (left if multiple is ONE else left * multiple), rest
    if applies(inner, DIVIDE) and known(inner.args[1]):
        multiple, rest = scaled(inner.args[0], known)
        return multiple / inner.args[1], rest
    return ONE, inner if isinstance(inner, Random) else expr


def _readers(draft: Draft, pair: NormalPair) -> Iterator[Expr]:
    """All that reads one of the two and matters to what is observed, but for the prior of the mean."""
    model = draft.model
    for name, node in {**model.randoms, **model.lets}.items():
        matters = name in draft.needed and (isinstance(node, Random) or name in draft.observed)
        if matters and node is not pair.mean and _reads(parents(node), pair):
            yield node
    yield from (expr for expr in model.constraints.values() if _reads((expr,), pair))


def _reads(exprs: tuple[Expr, ...], pair: NormalPair) -> bool:
    return any(node is pair.mean or node is pair.precision for node in inside(exprs))


def _fits(node: Expr, pair: NormalPair, known: IsData) -> bool:
    """Whether all terms of a variable that read the pair are Gaussian about its mean with its precision."""
    if not isinstance(node, Random) or not isinstance(node.term, (Term, Switch)):
        return False
    if isinstance(node.term, Switch) and _reads((node.term.selector,), pair):
        return False
    terms = node.term.terms if isinstance(node.term, Switch) else (node.term,)
    return all(_of_both(term, pair, known) for term in terms if _reads(tuple(term.args.values()), pair))


def _of_both(term: Term, pair: NormalPair, known: IsData) -> bool:
    role = term.factor.role
    if type(role) not in PAIRED:
        return False
    assert isinstance(role, LinearGaussian)
    mean, (_, precision) = term.args[role.mean], scaled(term.args[role.precision], known)
    return source_of(mean) is pair.mean and source_of(precision) is pair.precision and _place(mean) == _place(precision)


def _place(element: Expr) -> list[tuple[object, Plate]]:
    return [(atom_key(gather.index), gather.axis) for gather in gathers_of(element)]


def paired(draft: Draft, node: Expr, term: Term) -> tuple[Expr, Term]:
    """The outcome and the term of a factor, in terms of the pair where it reads one."""
    known = known_in(draft)
    for pair in draft.pairs:
        kind = pair.variable.domain.kind
        if node is pair.precision:
            return pair.variable, dataclasses.replace(term, factor=prior_of_precision(term.factor, kind))
        if not (node is pair.mean or _reads(tuple(term.args.values()), pair)):
            continue
        role = term.factor.role
        assert isinstance(role, LinearGaussian)
        if node is not pair.mean:
            return node, _about_mean(term, pair, known)
        multiple, _ = scaled(term.args[role.precision], known)
        return term.args[role.mean], Term(PAIRED[type(role)][1], {"pair": pair.variable, "multiple": multiple})
    return node, term


def _about_mean(term: Term, pair: NormalPair, known: IsData) -> Term:
    """A term that is Gaussian about the mean of a pair with its precision, in terms of the pair."""
    role = term.factor.role
    assert isinstance(role, LinearGaussian)
    multiple, _ = scaled(term.args[role.precision], known)
    element = moved(term.args[role.mean], pair.variable)
    return Term(PAIRED[type(role)][1], {"pair": element, "multiple": multiple})


def about_pair(term: Term, pairs: Iterable[NormalPair], known: IsData) -> Term:
    """A term in terms of the pair that it is Gaussian about, or itself where it is about none."""
    pair = next((pair for pair in pairs if _of_both(term, pair, known)), None)
    return term if pair is None else _about_mean(term, pair, known)


def with_pairs(draft: Draft) -> Draft:
    """The draft in which these pairs have one belief each, and their members none."""
    pairs = normal_pairs(draft)
    if not pairs:
        return draft
    owner = {pair.mean.name: pair.variable for pair in pairs} | {pair.precision.name: None for pair in pairs}
    latent = {}
    for name, node in draft.latent.items():
        if name not in owner:
            latent[name] = node
        elif (variable := owner[name]) is not None:
            latent[variable.name] = variable
    return dataclasses.replace(draft, pairs=pairs, latent=latent)
