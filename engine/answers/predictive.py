"""Forward marginals: the predictive distribution of a variable from the marginals of its parents.

Means of probabilities are taken where a probability is needed, not exponentials of mean logarithms; random selectors
give mixtures, matched in mean and variance.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import jax
import jax.numpy as jnp

from ...compiler.algebra.known import latent_names
from ...compiler.blocks.base import Gate
from ...compiler.graph import Plan
from ...compiler.language.nodes import Apply, Expr, Gather, Let, Random, applies, parents
from ...compiler.language.operations import CUMPROD
from ...compiler.passes.choose_operators import index_gates
from ...compiler.rules.pairs import about_pair
from ...factors import LINKS
from ...factors.errors import UnsupportedError
from ...factors.factor import Chain, Switch, Term
from ...factors.families import FOR_DOMAIN, DivisorFamily, Family
from ...factors.links.multinomial_probit import expected_choice
from ...factors.links.probit import positive_site
from ...factors.links.softmax import expected_softmax, expected_softmax_jointly
from ...factors.moments import POINT_VARIANCE, Boolean, Category, Real, Vector
from ...factors.quadrature.derived import completed
from ...factors.roles import Process, ScalarGaussian, Table, gaussian_arguments
from ..blocks.chain.curved import prior as chain_prior
from ..blocks.chain.gated_prior import is_gated
from ..blocks.chain.gated_prior import prior as gated_prior
from ..blocks.energy import gate_weight
from ..blocks.gaussian_process import predicted
from ..blocks.site.sites import SMALLEST_VARIANCE
from ..distributions.arguments import outcome
from ..distributions.cases import mixed
from ..expressions.discrete_expressions import distribution
from ..expressions.transformed import positive, probability
from ..values.evaluate import gather, known, value
from ..values.moments import moments, scores_together
from ..values.operations import along, kept
from ..values.plated import Placed, mapped, spread, to_event
from ..values.scope import Scope

_EXPECTED = {"softmax": expected_softmax, "multinomial_probit": expected_choice}  # means of links of a plate
_JOINTLY = {"softmax": expected_softmax_jointly}  # where their elements have covariances
Families = Mapping[str, Any]  # families by name


def forward(node: Random | Let, scope: Scope, families: Families) -> Family:
    """The marginal of a variable given the families of everything above it, broadcast over the variable's plates."""
    if isinstance(node, Let):
        random = [] if _by_states(node.expression) else [node.expression]  # all states hold those of an index
        placed = _chosen(_let(node, scope, families), random, scope)
    else:
        placed = _random(node, scope, families)
    return spread(placed, node.plates, scope.sizes)


def marginals(
    graph: Plan, names: Iterable[str], sizes: dict[str, int], data: dict[str, Any], families: Families
) -> dict[str, Any]:
    """The marginals of the named variables, computed forward with those between them and the given families."""
    named = {**graph.model.randoms, **graph.model.lets}
    found = dict(families)
    moments = {name: family.moments() for name, family in families.items()}
    scope = Scope(sizes, data, moments, joints=graph.joints, pairs=graph.pairs)

    def visit(node: Random | Let) -> Any:
        for name in latent_names(graph, list(parents(node))):
            if name not in found and name not in data:
                found[name] = visit(named[name])
                scope.moments[name] = found[name].moments()
        return forward(node, scope, found)

    results = {}
    for name in names:
        results[name] = visit(named[name])
        if isinstance(named[name], Random) and name not in found:
            found[name] = results[name]
            scope.moments[name] = results[name].moments()
    return results


def _let(node: Let, scope: Scope, families: Families) -> Placed:
    expr = node.expression
    if node.domain.is_boolean:
        p = _probability(expr, scope, families)
        return Placed(FOR_DOMAIN["boolean"].from_moments(Boolean(p.value)), p.plates)
    if node.domain.is_category:
        p = distribution(expr, scope, families)
        return Placed(FOR_DOMAIN["category"].from_moments(Category(p.value)), p.plates)
    if node.domain.is_simplex and isinstance(expr, Apply) and expr.op in _EXPECTED:
        p = _probability(expr, scope, families)
        return Placed(FOR_DOMAIN["category"].from_moments(Category(p.value)), p.plates)
    if node.domain.is_vector:
        found = moments(expr, scope, "vector")
        covariance = _regular(found.value.covariance)
        return Placed(FOR_DOMAIN["vector"].from_moments(Vector(found.value.mean, covariance)), found.plates)
    if node.domain.is_unit:
        return probability(expr, scope)
    if node.domain.is_positive:
        return positive(expr, scope)
    found = moments(expr, scope, "real")
    variance = jnp.maximum(found.value.variance, POINT_VARIANCE)  # r - r has none, and no precision either
    return Placed(FOR_DOMAIN["real"].from_moments(Real(found.value.mean, variance)), found.plates)


def _by_states(expr: Expr) -> bool:
    """Whether an expression is of discrete variables alone, whose states are enumerated."""
    if isinstance(expr, Let):
        return _by_states(expr.expression)
    if not isinstance(expr, Apply):
        return False
    if expr.op == "greater":
        return any(arg.domain.is_category for arg in expr.args)
    return (expr.operation.logical or expr.operation.aggregate) and expr.domain.is_discrete


def _regular(covariance: Any) -> Any:
    """A covariance that has an inverse: coordinates that are certain, or repeat others, get a little of their own."""
    values = jnp.linalg.eigvalsh(covariance)
    lowest, highest = values[..., :1, None], jnp.maximum(values[..., -1:, None], POINT_VARIANCE)
    return covariance + jnp.where(lowest > 1e-13 * highest, 0.0, 1e-12 * highest) * jnp.eye(covariance.shape[-1])


def _random(node: Random, scope: Scope, families: Families) -> Placed:
    if isinstance(node.term, Chain):
        prior = gated_prior if is_gated(node, scope) else chain_prior
        return prior(node, scope, lambda expr, inside: _probability(expr, inside, families))
    if isinstance(node.term, Switch):
        cases = len(node.term.terms)
        parts, weights = [], []
        for number, term in enumerate(node.term.terms):
            state = cases - 1 - number if node.term.selector.domain.is_boolean else number
            weights.append(gate_weight(Gate(node.term.selector, case=state), scope))
            parts.append(_mixed(term, scope, families))
        return _chosen(mapped(_switched, *parts, *weights), [node.term.selector], scope)
    if isinstance(node.term.factor.role, Process):
        return predicted(node, scope)
    return _mixed(node.term, scope, families)


def _switched(*cases: Any) -> Any:
    """The mixture of terms, one case each, and their weights."""
    parts, weights = cases[: len(cases) // 2], cases[len(cases) // 2 :]
    return mixed(tuple(jax.tree.map(lambda a: a[None], part) for part in parts), tuple(w[None] for w in weights))


def _mixed(term: Term, scope: Scope, families: Families) -> Placed:
    """The predictive family of a term, mixed over the random variables that index its arguments."""
    term = term.uncensored
    known_pairs = [pair for pair in scope.pairs if pair.variable.name in families]
    whole = about_pair(term, known_pairs, lambda expr: known(expr, scope))
    placed = outcome(whole, _term(term, scope, families), scope, families)
    return _chosen(placed, term.args.values(), scope)


def _chosen(placed: Placed, exprs: Iterable[Expr], scope: Scope) -> Placed:
    """Families with a plate for every random index below `exprs`, mixed over the elements that it may choose."""
    for gate in index_gates(exprs, lambda e: known(e, scope)):
        if gate.axis not in placed.plates:
            continue
        weight = to_event(gate_weight(gate, scope), gate.axis)
        placed = mapped(lambda part, w: mixed((part,), (w,)), to_event(placed, gate.axis), weight)
    return placed


def _term(term: Term, scope: Scope, families: Families) -> Placed:
    """The member of the domain's family that messages use for what a term generates."""
    role, args = term.factor.role, term.args
    if isinstance(role, Table):
        p = _probability(args[role.probability], scope, families)
        return Placed(role.belief(p.value), p.plates)
    if isinstance(role, ScalarGaussian):
        centre, precision = gaussian_arguments(term)
        mean, noise = moments(centre, scope, "real"), _inverse(precision, scope, families)
        return mapped(lambda m, n: FOR_DOMAIN["real"].from_moments(Real(m.mean, m.variance + n)), mean, noise)
    edges = list(args)
    operands = [moments(args[edge], scope, term.factor.edges[edge]) for edge in edges]
    out = term.factor.out({edge: arg.domain for edge, arg in args.items()})
    factor = completed(term.factor, [edge for edge in edges if not known(args[edge], scope)], out.kind)
    predict: Any = factor.predict
    if not edges:
        return Placed(predict(), ())
    return mapped(lambda *a: predict(**dict(zip(edges, a, strict=True))), *operands)


def _inverse(expr: Expr, scope: Scope, families: Families) -> Placed:
    """E[1 / precision]; where that is infinite, exp of minus the mean logarithm."""
    if known(expr, scope):
        found = value(expr, scope)
        return Placed(1.0 / found.value, found.plates)
    if isinstance(expr, Random) and isinstance(belief := families.get(expr.name), DivisorFamily):
        return Placed(belief.mean_inverse(), expr.plates)
    if isinstance(expr, Apply) and expr.op == "exp":
        argument = moments(expr.args[0], scope, "real")
        return mapped(lambda s: jnp.exp(-s.mean + 0.5 * s.variance), argument)
    if isinstance(expr, Gather):
        source = _inverse(expr.source, scope, families)
        return gather(source, value(expr.index, scope), expr) if known(expr.index, scope) else source
    found = moments(expr, scope, "positive")
    return Placed(jnp.exp(-found.value.log), found.plates)


def _probability(expr: Expr, scope: Scope, families: Families) -> Placed:
    """The mean of an expression that is a probability, or the probability that a boolean expression is true."""
    if known(expr, scope):
        found = value(expr, scope)
        return Placed(jnp.asarray(found.value, float), found.plates)
    if isinstance(expr, (Random, Let)) and expr.name in families:
        return Placed(jnp.asarray(families[expr.name].mean()), expr.plates)
    if isinstance(expr, Let):
        return _probability(expr.expression, scope, families)
    if isinstance(expr, Gather):
        source = _probability(expr.source, scope, families)
        if known(expr.index, scope):
            return gather(source, value(expr.index, scope), expr)
        if known(expr.source, scope):  # a table: the chosen row, weighted
            weight = gate_weight(Gate(expr.index, axis=expr.axis), scope)
            return mapped(
                lambda p, w: jnp.tensordot(w, p, axes=1), to_event(source, expr.axis), to_event(weight, expr.axis)
            )
        return source
    assert isinstance(expr, Apply)
    if (scores := scores_together(expr, scope)) is not None:
        return Placed(_JOINTLY[expr.op](scores.value.mean, scores.value.covariance), scores.plates)
    if expr.op in _EXPECTED:
        argument = to_event(moments(expr.args[0], scope, "real"), expr.option("over"))
        return Placed(_EXPECTED[expr.op](argument.value.mean, argument.value.variance), argument.plates)
    if applies(expr, CUMPROD):
        return kept(expr, mapped(jnp.cumprod, along(expr, _probability(expr.args[0], scope, families), scope)))
    chance = LINKS[expr.op].chance if expr.op in LINKS else None
    if chance is not None:
        argument = moments(expr.args[0], scope, "real")
        mean, variance = argument.value.mean, jnp.maximum(argument.value.variance, SMALLEST_VARIANCE)
        site = chance(jnp.ones_like(mean), mean, variance)
        return Placed(jnp.exp(site.log_evidence), argument.plates)
    if _by_states(expr):
        found = distribution(expr, scope, families)
        return Placed(found.value[..., 1], found.plates)
    if expr.op == "greater":
        argument = moments(expr.args[0] - expr.args[1], scope, "real")
        mean, variance = argument.value.mean, jnp.maximum(argument.value.variance, SMALLEST_VARIANCE)
        site = positive_site(jnp.ones_like(mean), mean, variance)
        certain = argument.value.variance <= 0.0  # a > a is false
        return Placed(jnp.where(certain, mean > 0.0, jnp.exp(site.log_evidence)), argument.plates)
    raise UnsupportedError(
        f"The probability '{expr}' ({expr.op}) has no predictive mean yet. "
        "Use a link (cv.logistic, cv.probit, cv.softmax) or a variable."
    )
