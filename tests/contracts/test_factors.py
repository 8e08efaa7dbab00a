"""The laws of factors, which are discovered, with arguments from their domains; run those of one by --factor NAME."""

from __future__ import annotations

import dataclasses
import itertools

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
import scipy.integrate
import scipy.special
import scipy.stats
from factor_arguments import beliefs_of, conjugate, kind_of, moments_of_point, points_of, whole

from cavity.factors import REGISTRY
from cavity.factors.conditionals import conditional_of
from cavity.factors.families import Categorical, Gamma
from cavity.factors.positive.gamma import expected_lgamma
from cavity.factors.quadrature.derived import completed

close = np.testing.assert_allclose


def outer(x):
    return np.outer(x, x)


def mean_square(a, b):
    """E (a - b)(a - b)' of independent vectors."""
    return a.covariance() + b.covariance() + outer(a.mean() - b.mean())


def scaled(precision, mean):
    """The naturals of N(mean, I / precision)."""
    return precision * mean, -0.5 * precision * np.eye(len(mean))


# (factor, edge) -> the natural parameters of the message in a textbook, from the beliefs (and points) of the others
TEXTBOOK = {
    ("beta", "out"): lambda b, p: (p["a"] - 1, p["b"] - 1),
    ("beta_of_mean", "out"): lambda b, p: (p["total"] * p["mean"] - 1, p["total"] * (1 - p["mean"]) - 1),
    ("binomial", "probability"): lambda b, p: (p["out"], p["n"] - p["out"]),
    ("dirichlet_of_mean", "out"): lambda b, p: (p["total"] * p["mean"] - 1,),
    ("logit_normal", "mean"): lambda b, p: (
        b["precision"].mean() * scipy.special.logit(p["out"]),
        -0.5 * b["precision"].mean(),
    ),
    ("logit_normal", "precision"): lambda b, p: (
        -0.5 * ((scipy.special.logit(p["out"]) - b["mean"].mean()) ** 2 + b["mean"].variance()),
        0.5,
    ),
    ("log_normal", "mean"): lambda b, p: (b["precision"].mean() * np.log(p["out"]), -0.5 * b["precision"].mean()),
    ("log_normal", "precision"): lambda b, p: (
        -0.5 * ((np.log(p["out"]) - b["mean"].mean()) ** 2 + b["mean"].variance()),
        0.5,
    ),
    ("multinomial", "probability"): lambda b, p: (p["out"],),
    ("negative_binomial_trials", "probability"): lambda b, p: (p["successes"], p["out"]),
    ("bernoulli", "out"): lambda b, p: (b["probability"].moments().log - b["probability"].moments().log_complement,),
    ("bernoulli", "probability"): lambda b, p: (b["out"].mean(), 1 - b["out"].mean()),
    ("categorical", "out"): lambda b, p: (b["probability"].moments().log,),
    ("categorical", "probability"): lambda b, p: (b["out"].mean(),),
    ("dirichlet", "out"): lambda b, p: (p["concentration"] - 1,),
    ("exponential", "out"): lambda b, p: (-b["rate"].mean(), 0.0),
    ("exponential", "rate"): lambda b, p: (-b["out"].mean(), 1.0),
    ("flat", "out"): lambda b, p: (0.0, 0.0),
    ("flat_positive", "out"): lambda b, p: (0.0, 0.0),
    ("gamma", "out"): lambda b, p: (-b["rate"].mean(), p["shape"] - 1),
    ("gamma", "rate"): lambda b, p: (-b["out"].mean(), p["shape"]),
    ("gaussian", "out"): lambda b, p: (b["precision"].mean() * b["mean"].mean(), -0.5 * b["precision"].mean()),
    ("gaussian", "mean"): lambda b, p: (b["precision"].mean() * b["out"].mean(), -0.5 * b["precision"].mean()),
    ("gaussian", "precision"): lambda b, p: (
        -0.5 * ((b["out"].mean() - b["mean"].mean()) ** 2 + b["out"].variance() + b["mean"].variance()),
        0.5,
    ),
    ("inverse_gamma", "scale"): lambda b, p: (-1.0 / p["out"], p["shape"]),
    ("inverse_gaussian", "shape"): lambda b, p: (-((p["out"] / p["mean"] - 1) ** 2) / (2 * p["out"]), 0.5),
    ("isotropic_gaussian", "out"): lambda b, p: scaled(b["precision"].mean(), b["mean"].mean()),
    ("isotropic_gaussian", "mean"): lambda b, p: scaled(b["precision"].mean(), b["out"].mean()),
    ("isotropic_gaussian", "precision"): lambda b, p: (-0.5 * np.trace(mean_square(b["out"], b["mean"])), 1.5),
    ("pareto", "shape"): lambda b, p: (np.log(p["scale"] / p["out"]), 1.0),
    ("poisson", "out"): lambda b, p: (b["rate"].moments().log,),
    ("poisson", "rate"): lambda b, p: (-1.0, b["out"].mean()),
    ("spike_and_slab", "out"): lambda b, p: (
        b["probability"].moments().log
        - b["probability"].moments().log_complement
        + 0.5 * (b["precision"].moments().log - np.log(2 * np.pi)),
        0.0,
        -0.5 * b["precision"].mean(),
    ),
    ("spike_and_slab", "probability"): lambda b, p: (b["out"].probability, 1 - b["out"].probability),
    ("spike_and_slab", "precision"): lambda b, p: (-0.5 * b["out"].expected_stats()[2], 0.5 * b["out"].probability),
    ("vector_gaussian", "out"): lambda b, p: (b["precision"].mean() @ b["mean"].mean(), -0.5 * b["precision"].mean()),
    ("vector_gaussian", "mean"): lambda b, p: (b["precision"].mean() @ b["out"].mean(), -0.5 * b["precision"].mean()),
    ("vector_gaussian", "precision"): lambda b, p: (-0.5 * mean_square(b["out"], b["mean"]), 0.5),
    ("wishart", "out"): lambda b, p: (-0.5 * b["rate"].mean(), 0.5 * (p["dof"] - 4)),
    ("wishart", "rate"): lambda b, p: (-0.5 * b["out"].mean(), 0.5 * p["dof"]),
}

each_factor = pytest.mark.parametrize("name", sorted(REGISTRY))
each_seed = pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])


def test_every_conjugate_edge_has_its_textbook_message():
    edges = {(name, edge) for name in REGISTRY for edge in REGISTRY[name].conjugate}
    assert set(TEXTBOOK) == edges, "give the new edge its textbook message"
    assert {(name, edge) for name in REGISTRY for edge in conjugate(name, 0)} == edges, "an edge without a belief"


@pytest.mark.parametrize(
    ("name", "edge"), sorted((name, edge) for name in REGISTRY for edge in conjugate(name, 0)), ids=lambda text: text
)
def test_messages_of_conjugate_edges_do_not_depend_on_their_own_belief(name, edge):
    """That is what conjugate means: the expected log density is linear in the statistics of the edge's family."""
    points, beliefs = points_of(name, np.random.default_rng(7)), conjugate(name, 7)
    moments = {e: moments_of_point(name, e, value) for e, value in points.items()}
    moments |= {e: belief.moments() for e, belief in beliefs.items()}
    messages = []
    for own in (beliefs[edge], conjugate(name, 8)[edge]):
        gradient = jax.grad(lambda m: whole(name, beliefs).expected_log(**{**moments, edge: m}))(own.moments())
        found = type(own).pull(own.moments(), gradient)
        messages.append((found[0] - found[0].mean(),) if isinstance(own, Categorical) else found)
    for one, other in zip(*messages, strict=True):
        close(one, other, rtol=1e-9, atol=1e-10)


@each_factor
@each_seed
def test_expected_log_at_points_is_the_log_density(name, seed):
    points = points_of(name, np.random.default_rng(seed))
    assert set(points) == {"out", *REGISTRY[name].edges}
    moments = {edge: moments_of_point(name, edge, value) for edge, value in points.items()}
    expected = REGISTRY[name].log_density(**{edge: jnp.asarray(value) for edge, value in points.items()})
    close(whole(name).expected_log(**moments), expected, rtol=1e-12, atol=1e-12)


OUTSIDE = {
    "lkj": {"out": 1.1},
    "pareto": {"out": 0.4, "scale": 0.5},
    "truncated_gamma": {"out": 0.4},
    "truncated_gaussian": {"out": -1.2},
    "uniform": {"out": 2.1},
    "von_mises": {"out": 3.5},
}


@pytest.mark.parametrize("name", sorted(OUTSIDE))
def test_nothing_is_outside_of_the_support(name):
    """Neither by the density nor by its average, which a grid over the outcome or its bounds takes at points."""
    points = points_of(name, np.random.default_rng(0)) | OUTSIDE[name]
    moments = {edge: moments_of_point(name, edge, value) for edge, value in points.items()}
    assert REGISTRY[name].log_density(**{edge: jnp.asarray(value) for edge, value in points.items()}) == -np.inf
    assert whole(name).expected_log(**moments) == -np.inf


def draws(belief, kind, key, number):
    """Independent values; categories and truth values as numbers."""
    values = np.asarray(belief.sample(key, (number,)))
    return values.astype(int) if kind == "category" else values.astype(float)


@pytest.mark.parametrize("name", sorted(name for name in REGISTRY if beliefs_of(name, 0)))
@each_seed
def test_expected_log_is_the_expectation_of_the_log_density(name, seed):
    """Monte Carlo, within five standard errors."""
    number = 40_000
    beliefs, points = beliefs_of(name, seed), points_of(name, np.random.default_rng(seed))
    moments = {edge: moments_of_point(name, edge, value) for edge, value in points.items()}
    moments |= {edge: belief.moments() for edge, belief in beliefs.items()}
    found = float(whole(name, beliefs).expected_log(**moments))
    keys = jax.random.split(jax.random.key(seed), len(beliefs))
    samples = {e: draws(b, kind_of(name, e), k, number) for (e, b), k in zip(beliefs.items(), keys, strict=True)}
    fixed = {edge: value for edge, value in points.items() if edge not in beliefs}
    values = np.asarray(jax.vmap(lambda s: REGISTRY[name].log_density(**s, **fixed))(samples))
    assert np.isfinite(found)
    assert abs(found - values.mean()) < 5 * values.std() / np.sqrt(number) + 1e-9


@pytest.mark.parametrize(("name", "edge"), sorted(TEXTBOOK), ids=lambda text: text)
def test_messages_are_the_textbook_ones(name, edge):
    rng = np.random.default_rng(7)
    beliefs, points = conjugate(name, 7), points_of(name, rng)
    moments = {e: moments_of_point(name, e, value) for e, value in points.items()}
    moments |= {e: belief.moments() for e, belief in beliefs.items()}
    target = beliefs[edge]
    gradient = jax.grad(lambda own: whole(name, beliefs).expected_log(**{**moments, edge: own}))(target.moments())
    found = type(target).pull(target.moments(), gradient)
    expected = TEXTBOOK[name, edge](beliefs, points)
    if isinstance(target, Categorical):  # logits are identified up to a constant
        found, expected = (found[0] - found[0].mean(),), (expected[0] - expected[0].mean(),)
    for one, other in zip(found, expected, strict=True):
        close(one, other, rtol=1e-10, atol=1e-12)


def single_and_pairs():
    """Sets of random edges: each alone, and all pairs of scalars."""
    for name in sorted(REGISTRY):
        edges = sorted(beliefs_of(name, 0))
        for number in (1, 2):
            for chosen in itertools.combinations(edges, number):
                kinds = {kind_of(name, edge) for edge in chosen}
                if number == 1 or not kinds & {"vector", "simplex", "posdef"}:
                    yield name, chosen


def not_conjugate():
    for name, chosen in single_and_pairs():
        if len(chosen) == 1 and chosen[0] not in REGISTRY[name].conjugate:
            yield name, chosen[0]


def declared(name, chosen):
    """Whether anything is declared for these random edges; where not, what is derived meets itself."""
    factor = REGISTRY[name]
    special = factor.with_random and factor.with_random(frozenset(chosen))
    return (factor.expected_log or special) is not None


def what_is_declared():
    """By default each edge by itself where it can differ, all edges and pairs in the slow suite."""
    for name, chosen in single_and_pairs():
        slow = len(chosen) > 1 or not declared(name, chosen)
        yield pytest.param(name, chosen, marks=[pytest.mark.slow] * slow)


@pytest.mark.parametrize(("name", "chosen"), list(what_is_declared()), ids=lambda item: str(item))
def test_what_is_declared_is_what_is_derived(name, chosen):
    """Expected log densities and messages, with these edges random and the others at points."""
    beliefs, points = beliefs_of(name, 5), points_of(name, np.random.default_rng(5))
    moments = {e: moments_of_point(name, e, value) for e, value in points.items()}
    own = {edge: beliefs[edge].moments() for edge in chosen}
    bare = dataclasses.replace(REGISTRY[name], expected_log=None, with_random=None)
    values, messages = [], []
    for factor in (whole(name, chosen), completed(bare, chosen, REGISTRY[name].kind)):
        value, gradient = jax.value_and_grad(lambda own, f=factor: f.expected_log(**{**moments, **own}))(own)
        values.append(value)
        messages.append([type(beliefs[e]).pull(own[e], gradient[e]) for e in chosen])
    # A density with a kink at a point, |x|, has no fast quadrature.
    rough = 2e-2 if name == "laplace" and not {"out", "mean"}.isdisjoint(chosen) else 1e-7
    close(values[0], values[1], rtol=rough, atol=rough)
    for edge, one, other in zip(chosen, *messages, strict=True):
        for a, b in zip(one, other, strict=True):
            if kind_of(name, edge) == "category":  # logits are identified up to a constant
                a, b = a - a.mean(), b - b.mean()
            close(a, b, rtol=5 * rough, atol=5 * rough)


@pytest.mark.parametrize(
    ("name", "edge"),
    list(not_conjugate()),
    ids=lambda text: str(text),
)
def test_messages_are_derivatives_along_the_family(name, edge):
    """Moving the natural parameters of a belief moves E[log f] by the Fisher matrix times the message."""
    beliefs, points = beliefs_of(name, 6), points_of(name, np.random.default_rng(6))
    moments = {e: moments_of_point(name, e, value) for e, value in points.items()}
    factor, belief = whole(name, [edge]), beliefs[edge]

    def scalar(naturals):
        return factor.expected_log(**{**moments, edge: type(belief).from_naturals(naturals).moments()})

    naturals = tuple(jnp.asarray(natural) for natural in belief.naturals())
    rng = np.random.default_rng(0)
    direction = tuple(jnp.asarray(rng.normal(size=np.shape(n))) for n in naturals)
    direction = tuple(0.5 * (d + jnp.swapaxes(d, -1, -2)) if jnp.ndim(d) == 2 else d for d in direction)
    tangent = jax.jvp(scalar, (naturals,), (direction,))[1]
    h = 1e-5
    moved = [scalar(tuple(n + sign * h * d for n, d in zip(naturals, direction, strict=True))) for sign in (1, -1)]
    close(tangent, (moved[0] - moved[1]) / (2 * h), rtol=2e-5, atol=1e-7)


def test_expected_log_gamma_of_a_gamma_variable():
    """E log gamma(x) against adaptive quadrature in log x with 30 digits, over shapes and scales."""
    for shape, mean in itertools.product((1e-2, 0.3, 1.0, 17.0, 1e4), (1e-2, 2.0, 1e3)):
        found = float(expected_lgamma(Gamma.from_parameters(shape=jnp.asarray(shape), rate=shape / mean).moments()))
        with mpmath.workdps(30):
            a, rate = mpmath.mpf(shape), mpmath.mpf(shape / mean)
            constant = a * mpmath.log(rate) - mpmath.loggamma(a)

            def height(u, a=a, rate=rate, constant=constant):
                x = mpmath.exp(u)
                return mpmath.exp(a * u - rate * x + constant) * mpmath.loggamma(x)

            peak, sd = mpmath.log(a / rate), 1 / mpmath.sqrt(a)
            left = [peak - s / a - s * sd for s in (80, 40, 20, 8, 3, 1, 0.3)]
            right = [peak + s * sd for s in (0, 0.5, 1, 2)] + [mpmath.log((a + s) / rate) for s in (1, 3, 10, 30, 90)]
            right = [u for u in right if u > peak - sd] + [peak + 9 * sd if a > 20 else mpmath.log((a + 140) / rate)]
            expected = mpmath.quad(height, sorted(set(left + right)))
        close(found, float(expected), rtol=1e-10, atol=1e-10)


# The outcome's family holds the density itself.
OWN_FAMILY = {
    "beta", "beta_of_mean", "bernoulli", "between", "categorical", "dirichlet", "dirichlet_of_mean",
    "exponential", "gamma", "gaussian", "isotropic_gaussian", "ordered_logistic", "ordered_probit", "poisson",
    "spike_and_slab", "vector_gaussian", "wishart",
}  # fmt: skip
# (mean, variance) of the prediction where it is not matched in the family's statistics
MATCHED = {
    "laplace": lambda p: (p["mean"], 2 * p["scale"] ** 2),
    "truncated_gaussian": lambda p: between_moments(
        lambda x: scipy.stats.norm.pdf(x, p["mean"], p["precision"] ** -0.5), p["low"], p["high"]
    ),
    "uniform": lambda p: (0.5 * (p["low"] + p["high"]), (p["high"] - p["low"]) ** 2 / 12),
    "student_t": lambda p: (p["mean"], p["scale"] ** 2 * p["dof"] / (p["dof"] - 2)),
    "truncated_gamma": lambda p: between_moments(
        lambda x: scipy.stats.gamma.pdf(x, p["shape"], scale=1 / p["rate"]), 0.5, 3.0
    ),
}
# (mean, variance) of the logarithm, for outcomes that may have no mean
MATCHED_LOGS = {
    "half_cauchy": lambda p: (np.log(p["scale"]), np.pi**2 / 4),
    "inverse_gamma": lambda p: (
        np.log(p["scale"]) - scipy.special.digamma(p["shape"]),
        scipy.special.polygamma(1, p["shape"]),
    ),
    "pareto": lambda p: (np.log(p["scale"]) + 1 / p["shape"], p["shape"] ** -2),
}


def between_moments(density, low, high):
    zero, one, two = (scipy.integrate.quad(lambda x, k=k: x**k * density(x), low, high)[0] for k in range(3))
    return one / zero, two / zero - (one / zero) ** 2


COUNTS = np.arange(10_000.0)


def masses(name, known):
    """Of the counts, by the factor's log density."""
    return np.exp(jax.vmap(lambda out: REGISTRY[name].log_density(out, **known))(jnp.asarray(COUNTS)))


# (the mean, the covariance) of the counts of classes, of a prediction that is a Gaussian of as much
COUNTS_OF_CLASSES = {
    "dirichlet_multinomial": lambda p: scipy.stats.dirichlet_multinomial(p["concentration"], int(p["n"])),
    "dirichlet_multinomial_of_mean": lambda p: scipy.stats.dirichlet_multinomial(p["mean"] * p["total"], int(p["n"])),
    "multinomial": lambda p: scipy.stats.multinomial(int(p["n"]), p["probability"]),
}


@pytest.mark.parametrize("name", sorted(name for name in REGISTRY if not REGISTRY[name].improper))
def test_predictions_at_points(name):
    """With known arguments the predictive marginal is the density, or its projection on the outcome's family."""
    rng = np.random.default_rng(3)
    first, second = points_of(name, rng), points_of(name, rng)
    arguments = {edge: value for edge, value in first.items() if edge != "out"}
    moments = {e: moments_of_point(name, e, v) for e, v in arguments.items()}
    family = whole(name).predict(**moments)
    if name in OWN_FAMILY:
        for out in (first["out"], second["out"]):
            expected = REGISTRY[name].log_density(jnp.asarray(out), **{e: jnp.asarray(v) for e, v in arguments.items()})
            close(family.log_density(jnp.asarray(out)), expected, rtol=1e-10, atol=1e-10)
    elif name in MATCHED:
        mean, variance = MATCHED[name](arguments)
        close(family.mean(), mean, rtol=1e-6)
        close(family.variance(), variance, rtol=1e-4)
    elif name in COUNTS_OF_CLASSES:
        counts = COUNTS_OF_CLASSES[name](arguments)
        close(family.mean(), counts.mean(), rtol=1e-6)
        ridge = 2e-6 * (1.0 + arguments["n"])  # the covariance of counts of a fixed sum is singular
        close(family.covariance(), counts.cov(), rtol=1e-6, atol=ridge)
    elif name in MATCHED_LOGS:
        mean, variance = MATCHED_LOGS[name](arguments)
        close(family.moments().log, mean, rtol=1e-12, atol=1e-12)
        close(scipy.special.polygamma(1, family.parameters()["shape"]), variance, rtol=1e-12)
    elif REGISTRY[name].kind in ("real", "count"):
        known = {edge: jnp.asarray(value, float) for edge, value in arguments.items()}
        own = conditional_of(REGISTRY[name], REGISTRY[name].kind)
        close(family.mean(), own.mean(**known), rtol=1e-6)
        if REGISTRY[name].kind == "real":
            close(family.variance(), own.variance(**known), rtol=1e-4)
        else:  # the family of counts has no more than a mean; what a prediction is made of has the distribution
            mean, mass = float(own.mean(**known)), masses(name, known)
            close(mass @ COUNTS, mean, rtol=1e-9)
            close(family.log_density(COUNTS[:20]), scipy.stats.poisson.logpmf(COUNTS[:20], mean), rtol=1e-6)
            close(own.below(COUNTS, **known), np.cumsum(mass), rtol=1e-9)
    else:
        derived = completed(dataclasses.replace(REGISTRY[name], predict=None), (), REGISTRY[name].kind)
        for one, other in zip(family.expected_stats(), derived.predict(**moments).expected_stats(), strict=True):
            close(one, other, rtol=1e-6, atol=1e-6)
