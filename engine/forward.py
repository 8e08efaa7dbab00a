"""Forward marginals: the predictive distribution of a variable from the marginals of its parents.

Means of probabilities are taken where a probability is needed, not exponentials of mean logarithms; random selectors
give mixtures, matched in mean and variance.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import jax.numpy as jnp

from ..compiler.choose import index_gates
from ..compiler.expressions import Apply, Expr, Gather, Let, Random, parents
from ..compiler.graph import Gate, Graph
from ..compiler.known import latent_names
from ..factors.derived import completed
from ..factors.errors import UnsupportedError
from ..factors.factor import Chain, Switch, Term
from ..factors.families import Bernoulli, Categorical, Family, Gamma, Gaussian, VectorGaussian
from ..factors.gaussian_process import NAME as PROCESS
from ..factors.multinomial_probit import expected_choice
from ..factors.probit import positive_site
from ..factors.softmax import expected_softmax
from .chains import prior as chain_prior
from .discrete import distribution
from .energy import gate_weight
from .evaluate import Scope, gather, known, moments, value
from .placed import Placed, mapped, spread, to_event
from .processes import predicted
from .sites import SMALLEST_VARIANCE
from .transformed import positive, probability

_EXPECTED = {"softmax": expected_softmax, "multinomial_probit": expected_choice}  # means of links of a plate
SMALLEST = 1e-200  # variance of what is certain: its inverse, and that times a mean, are still finite
Families = Mapping[str, Any]  # families by name


def forward(node: Random | Let, scope: Scope, families: Families) -> Family:
    """The marginal of a variable given the families of everything above it, broadcast over the variable's plates."""
    if isinstance(node, Let):
        placed = _chosen(_let(node, scope, families), [node.expression], scope)
    else:
        placed = _random(node, scope, families)
    return spread(placed, node.plates, scope.sizes)


def marginals(
    graph: Graph, names: Iterable[str], sizes: dict[str, int], data: dict[str, Any], families: Families
) -> dict[str, Any]:
    """The marginals of the named variables, computed forward with those between them and the given families."""
    named = {**graph.model.randoms, **graph.model.lets}
    found = dict(families)
    moments = {name: family.moments() for name, family in families.items()}
    scope = Scope(sizes, data, moments, joints=graph.joints)

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
    if node.domain.kind == "boolean":
        p = _probability(expr, scope, families)
        return Placed(Bernoulli(jnp.log(p.value) - jnp.log1p(-p.value)), p.plates)
    if node.domain.kind == "category":
        p = distribution(expr, scope, families)
        return Placed(Categorical(jnp.log(p.value)), p.plates)
    if node.domain.kind == "simplex" and isinstance(expr, Apply) and expr.op in _EXPECTED:
        p = _probability(expr, scope, families)
        return Placed(Categorical(jnp.log(p.value)), p.plates)
    if node.domain.kind == "vector":
        found = moments(expr, scope, "vector")
        return Placed(
            VectorGaussian.from_parameters(mean=found.value.mean, covariance=found.value.covariance), found.plates
        )
    if node.domain.kind == "unit":
        return probability(expr, scope)
    if node.domain.kind == "positive":
        return positive(expr, scope)
    found = moments(expr, scope, "real")
    variance = jnp.maximum(found.value.variance, SMALLEST)  # r - r has none, and no precision either
    return Placed(Gaussian.from_parameters(mean=found.value.mean, variance=variance), found.plates)


def _random(node: Random, scope: Scope, families: Families) -> Placed:
    if isinstance(node.term, Chain):
        return chain_prior(node, scope, lambda expr, inside: _probability(expr, inside, families))
    if isinstance(node.term, Switch):
        cases = len(node.term.terms)
        parts, weights = [], []
        for number, term in enumerate(node.term.terms):
            state = cases - 1 - number if node.term.selector.domain.kind == "boolean" else number
            weights.append(gate_weight(Gate(node.term.selector, case=state), scope))
            parts.append(_mixed(term, scope, families))
        stacked = mapped(lambda *p: _stack(p), *parts)
        weight = mapped(lambda *w: jnp.stack(w), *weights)
        return _chosen(mapped(_mixture, stacked, weight), [node.term.selector], scope)
    if node.term.factor.name == PROCESS:
        return predicted(node, scope)
    return _mixed(node.term, scope, families)


def _stack(parts: tuple[Any, ...]) -> Any:
    import jax

    kinds = {type(part) for part in parts}
    if len(kinds) > 1:
        raise UnsupportedError(
            "The cases of a switch have predictive marginals of different families "
            f"({', '.join(k.__name__ for k in kinds)}); their mixture has none."
        )
    return jax.tree.map(lambda *a: jnp.stack(a), *parts)


def _mixed(term: Term, scope: Scope, families: Families) -> Placed:
    """The predictive family of a term, mixed over the random variables that index its arguments."""
    return _chosen(_term(term, scope, families), term.args.values(), scope)


def _chosen(placed: Placed, exprs: Iterable[Expr], scope: Scope) -> Placed:
    """Families with a plate for every random index below `exprs`, mixed over the elements that it may choose."""
    for gate in index_gates(exprs, lambda e: known(e, scope)):
        if gate.axis not in placed.plates:
            continue
        weight = to_event(gate_weight(gate, scope), gate.axis)
        placed = mapped(_mixture, to_event(placed, gate.axis), weight)
    return placed


def _mixture(family: Any, weight: Any) -> Any:
    """A mixture over the first axis, matched in mean and variance."""
    if isinstance(family, Gaussian):
        mean = weight @ family.mean()
        return Gaussian.from_parameters(mean=mean, variance=weight @ (family.variance() + (family.mean() - mean) ** 2))
    if isinstance(family, VectorGaussian):
        means = family.mean()
        mean = weight @ means
        gap = means - mean
        covariance = jnp.einsum("k,kij->ij", weight, family.covariance()) + jnp.einsum("k,ki,kj->ij", weight, gap, gap)
        return VectorGaussian.from_parameters(mean=mean, covariance=covariance)
    if isinstance(family, Bernoulli):
        p = weight @ family.mean()
        return Bernoulli(jnp.log(p) - jnp.log1p(-p))
    if isinstance(family, Categorical):
        return Categorical(jnp.log(weight @ family.mean()))
    raise UnsupportedError(
        f"The predictive mixture of {type(family).__name__} cases has no family; "
        "ask for the marginals of the cases' parameters instead."
    )


def _term(term: Term, scope: Scope, families: Families) -> Placed:
    name, args = term.factor.name, term.args
    if name == "bernoulli":
        p = _probability(args["probability"], scope, families)
        return Placed(Bernoulli(jnp.log(p.value) - jnp.log1p(-p.value)), p.plates)
    if name == "categorical":
        p = _probability(args["probability"], scope, families)
        return Placed(Categorical(jnp.log(p.value)), p.plates)
    if name == "gaussian":
        mean, noise = moments(args["mean"], scope, "real"), _inverse(args["precision"], scope, families)
        return mapped(lambda m, n: Gaussian.from_parameters(mean=m.mean, variance=m.variance + n), mean, noise)
    edges = list(args)
    operands = [moments(args[edge], scope, term.factor.edges[edge]) for edge in edges]
    out = term.factor.out({edge: arg.domain for edge, arg in args.items()})
    factor = completed(term.factor, [edge for edge in edges if not known(args[edge], scope)], out.kind)
    predict: Any = factor.predict
    return mapped(lambda *a: predict(**dict(zip(edges, a, strict=True))), *operands)


def _inverse(expr: Expr, scope: Scope, families: Families) -> Placed:
    """E[1 / precision]; for a Gamma whose mean inverse is infinite, exp of minus the mean logarithm."""
    if known(expr, scope):
        found = value(expr, scope)
        return Placed(1.0 / found.value, found.plates)
    if isinstance(expr, Random) and isinstance(families.get(expr.name), Gamma):
        gamma: Any = families[expr.name]
        shape, rate = gamma.shape, gamma.rate
        heavy = jnp.exp(-gamma.moments().log)
        return Placed(jnp.where(shape > 1.0, rate / jnp.where(shape > 1.0, shape - 1.0, 1.0), heavy), expr.plates)
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
    if expr.op in _EXPECTED:
        argument = to_event(moments(expr.args[0], scope, "real"), expr.option("over"))
        return Placed(_EXPECTED[expr.op](argument.value.mean, argument.value.variance), argument.plates)
    if expr.op in ("logistic", "probit"):
        from ..factors import REGISTRY

        argument = moments(expr.args[0], scope, "real")
        mean, variance = argument.value.mean, jnp.maximum(argument.value.variance, SMALLEST_VARIANCE)
        site = REGISTRY["bernoulli"].sites[expr.op](jnp.ones_like(mean), mean, variance, 1.0)
        return Placed(jnp.exp(site.log_evidence), argument.plates)
    if expr.op == "greater" and any(arg.domain.kind == "category" for arg in expr.args):
        found = distribution(expr, scope, families)
        return Placed(found.value[..., 1], found.plates)
    if expr.op == "greater":
        argument = moments(expr.args[0] - expr.args[1], scope, "real")
        mean, variance = argument.value.mean, jnp.maximum(argument.value.variance, SMALLEST_VARIANCE)
        site = positive_site(jnp.ones_like(mean), mean, variance)
        return Placed(jnp.exp(site.log_evidence), argument.plates)
    if expr.op in ("and", "or", "not", "xor", "equal", "all", "any"):
        found = distribution(expr, scope, families)
        return Placed(found.value[..., 1], found.plates)
    raise UnsupportedError(
        f"The probability '{expr}' ({expr.op}) has no predictive mean yet. "
        "Use a link (cv.logistic, cv.probit, cv.softmax) or a variable."
    )
