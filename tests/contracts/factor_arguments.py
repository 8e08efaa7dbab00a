"""Random arguments of the factors: points of all edges, and beliefs over those that may be random.

Both follow from the domains and the rules that a factor declares. A factor stands in a table below only where its laws
hold at special arguments alone.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from cavity.factors import REGISTRY
from cavity.factors.domains import Domain
from cavity.factors.families import (
    FOR_DOMAIN,
    Bernoulli,
    Beta,
    Categorical,
    Dirichlet,
    Gamma,
    Gaussian,
    Poisson,
    SpikeAndSlab,
    VectorGaussian,
    Wishart,
)
from cavity.factors.moments import Category, Vector
from cavity.factors.quadrature.derived import completed


def positive(rng):
    return float(np.exp(rng.normal()))


def matrix(rng, size=3):
    root = rng.normal(size=(size, size))
    return root @ root.T + 0.5 * np.eye(size)


def simplex(rng, size=3):
    return rng.dirichlet(np.full(size, 2.0))


CUTPOINTS = np.array([-1.0, 0.2, 1.5])


def BOUNDS(low, high):
    return {"low": lambda r: low, "high": lambda r: high}


# kind of domain -> a point of it
VALUES = {
    "real": lambda r: r.normal(),
    "sparse": lambda r: r.normal(),
    "positive": positive,
    "unit": lambda r: r.uniform(0.1, 0.9),
    "boolean": lambda r: float(r.integers(2)),
    "category": lambda r: int(r.integers(3)),
    "count": lambda r: float(r.integers(6)),
    "simplex": simplex,
    "concentration": lambda r: np.exp(r.normal(size=3)),
    "vector": lambda r: r.normal(size=3),
    "posdef": matrix,
}
# factor -> points of some edges, for moments that must exist and bounds that others share
SPECIAL = {
    "beta_of_mean": {"mean": lambda r: r.uniform(0.2, 0.8), "total": lambda r: 1 + positive(r)},
    "between": {"out": lambda r: 1.0, "value": lambda r: r.uniform(-0.9, 0.9)} | BOUNDS(-1.0, 1.0),
    "dirichlet_of_mean": {"total": lambda r: 3 + positive(r)},
    # Of which the mean and the variance are finite.
    "half_student_t": {"dof": lambda r: 3 + positive(r)},
    "inverse_gamma": {"shape": lambda r: 3 + positive(r)},
    "pareto": {"shape": lambda r: 3 + positive(r), "scale": lambda r: r.uniform(0.1, 0.5)},
    "lkj": {"out": lambda r: r.uniform(-0.9, 0.9)},
    "ordered_logistic": {"cutpoints": lambda r: CUTPOINTS},
    "ordered_probit": {"cutpoints": lambda r: CUTPOINTS},
    # Of which the variance is finite, and no spike that is narrow against a belief of its mean.
    "skew_normal": {"scale": lambda r: 0.5 + positive(r)},
    "student_t": {"dof": lambda r: 3 + positive(r), "scale": lambda r: 0.5 + positive(r)},
    "truncated_gamma": {"out": lambda r: r.uniform(0.6, 2.9)} | BOUNDS(0.5, 3.0),
    "truncated_gaussian": {"out": lambda r: r.uniform(-0.9, 1.9)} | BOUNDS(-1.0, 2.0),
    "uniform": {"out": lambda r: r.uniform(-0.9, 1.9)} | BOUNDS(-1.0, 2.0),
}
_TRIES = 100


def points_of(name, rng):
    """Points of out and of all edges that keep the rules of the factor and have a density."""
    factor, special = REGISTRY[name], SPECIAL.get(name, {})
    ways = {edge: special.get(edge, VALUES[kind]) for edge, kind in {"out": factor.kind, **factor.edges}.items()}
    for _ in range(_TRIES):
        found = {edge: way(rng) for edge, way in ways.items() if edge != "out"}
        if not keeps_rules(factor, found):
            continue
        for _ in range(_TRIES):
            whole_point = {"out": ways["out"](rng), **found}
            if keeps_rules(factor, whole_point) and np.isfinite(log_density(factor, whole_point)):
                return whole_point
        if factor.conditional:  # outcomes that no chance hits, such as counts of a given sum
            key = jax.random.key(int(rng.integers(1 << 30)))
            drawn = factor.conditional["draw"](key, **{edge: jnp.asarray(value) for edge, value in found.items()})
            return {"out": np.asarray(drawn), **found}
        if name in OUTCOMES:
            return {"out": OUTCOMES[name](rng, **found), **found}
    raise AssertionError(f"no arguments of {name} from its domains keep its rules: give some to SPECIAL")


# factor -> an outcome, where chance hits none that keeps the rules
OUTCOMES = {"multinomial": lambda r, n, probability: r.multinomial(int(n), probability).astype(float)}


def keeps_rules(factor, values):
    """Whether the rules that speak of these edges alone hold."""
    domain = domain_of(factor)
    rules = [rule for rule in factor.rules if set(rule.edges) <= set(values)]
    spoken = [{edge: np.asarray(values[edge], float) for edge in rule.edges} for rule in rules]
    return all(bool(np.all(rule.holds(domain, **own))) for rule, own in zip(rules, spoken, strict=True))


def domain_of(factor):
    return Domain(factor.kind, 3 if factor.kind in ("posdef", "simplex", "vector", "category") else None)


def log_density(factor, point):
    return float(factor.log_density(**{edge: jnp.asarray(value) for edge, value in point.items()}))


def gaussian(r):
    return Gaussian.from_parameters(mean=r.normal(), variance=positive(r))


def vector_gaussian(r):
    return VectorGaussian.from_parameters(mean=r.normal(size=3), covariance=matrix(r))


def gamma(r):
    return Gamma.from_parameters(shape=2.0 + positive(r), rate=positive(r))


def wishart(r):
    return Wishart.from_parameters(dof=4.0 + positive(r), scale=matrix(r) / 4.0)


def dirichlet(r):
    return Dirichlet.from_parameters(concentration=1.0 + np.exp(r.normal(size=3)))


def unit(r):
    return Beta.from_parameters(a=1 + positive(r), b=1 + positive(r))


def spike_and_slab(r):
    return SpikeAndSlab.from_parameters(
        probability=r.uniform(0.1, 0.9), slab_mean=r.normal(), slab_variance=positive(r)
    )


def gamma_dividing(r, n):
    """A belief of which 1 / x^n has a variance with tails that samples show."""
    return Gamma.from_parameters(shape=2.0 + 2.0 * n + positive(r), rate=positive(r))


# kind of domain -> a belief
BELIEFS = {
    "real": gaussian,
    "sparse": spike_and_slab,
    "positive": gamma,
    "unit": unit,
    "boolean": lambda r: Bernoulli.from_parameters(probability=r.uniform(0.1, 0.9)),
    "category": lambda r, size=3: Categorical.from_parameters(probability=simplex(r, size)),
    "count": lambda r: Poisson.from_parameters(rate=positive(r)),
    "simplex": dirichlet,
    "vector": vector_gaussian,
    "posdef": wishart,
}

# Edges that VMP serves, but with no other rule here than the derived one over outcomes of observed data.
KNOWN_BY_CHOICE = {
    "dirichlet_of_mean": {"mean"},
    "student_t": {"out", "dof"},
}


def beliefs_of(name, seed):
    """Beliefs over all edges that may be random."""
    rng, factor = np.random.default_rng(seed), REGISTRY[name]
    found = {}
    for edge, kind in {"out": factor.kind, **factor.edges}.items():
        if edge in factor.unsupported or edge in KNOWN_BY_CHOICE.get(name, ()) or kind not in BELIEFS:
            continue
        if kind == "category":
            found[edge] = BELIEFS[kind](rng, classes(name))
        elif edge in factor.divides:
            found[edge] = gamma_dividing(rng, factor.divides[edge])
        else:
            found[edge] = BELIEFS[kind](rng)
    return found


def conjugate(name, seed):
    """Those over the edges in which it is conjugate; the others are fixed at a point."""
    return {edge: belief for edge, belief in beliefs_of(name, seed).items() if edge in REGISTRY[name].conjugate}


def classes(name):
    """How many classes an outcome has whose arguments have three elements."""
    return REGISTRY[name].out({edge: Domain(kind, 3) for edge, kind in REGISTRY[name].edges.items()}).size


def whole(name, random=()):
    """The factor with all that it does not declare derived."""
    return completed(REGISTRY[name], random, REGISTRY[name].kind)


def kind_of(name, edge):
    return REGISTRY[name].kind if edge == "out" else REGISTRY[name].edges[edge]


def moments_of_point(name, edge, value):
    kind = kind_of(name, edge)
    if kind == "concentration":
        return Vector(jnp.asarray(value), jnp.zeros((len(value), len(value))))
    if kind == "category":
        return Category(jax.nn.one_hot(value, classes(name)))
    return FOR_DOMAIN[kind].moments_at(jnp.asarray(value))
