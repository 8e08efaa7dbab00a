"""The laws of the families, which are discovered; each needs a strategy and a SciPy reference in the tables below."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from cavity.engine.values.first_beliefs import stats_from_moments
from cavity.factors.domains import Domain
from cavity.factors.errors import UnsupportedError
from cavity.factors.families import ALL, BY_NAME, FOR_DOMAIN, ExponentialFamily, Family
from cavity.factors.moments import BY_KIND

EXPONENTIAL = [family for family in ALL if issubclass(family, ExponentialFamily)]
# One shape for most laws, as JAX compiles each operation once a shape; other ranks are compared with this one.
PLATES, SIZE = (4,), 3
laws = settings(max_examples=5, deadline=None, derandomize=True, database=None)
each_family = pytest.mark.parametrize("family", EXPONENTIAL, ids=lambda family: family.__name__)


class SpikeSlab:
    """SciPy's methods for a Gaussian number that is zero with some probability; densities are probabilities there."""

    def __init__(self, p, mean, variance):
        self.p, self.slab = p, scipy.stats.norm(mean, np.sqrt(variance))

    def logpdf(self, x):
        return np.where(x == 0.0, np.log1p(-self.p), np.log(self.p) + self.slab.logpdf(x))

    def entropy(self):
        return scipy.stats.bernoulli(self.p).entropy() + self.p * self.slab.entropy()

    def mean(self):
        return self.p * self.slab.mean()

    def var(self):
        return self.p * (self.slab.var() + self.slab.mean() ** 2) - self.mean() ** 2

    def cdf(self, x):
        return self.p * self.slab.cdf(x) + (1.0 - self.p) * (x >= 0.0)

    def ppf(self, levels):
        return np.array([self.quantile(level) for level in levels])

    def quantile(self, level):
        if self.cdf(-1e-12) < level <= self.cdf(0.0):
            return 0.0
        reach = np.abs(self.slab.mean()) + 40.0 * self.slab.std()
        return scipy.optimize.brentq(lambda x: self.cdf(x) - level, -reach, reach, xtol=1e-14, rtol=1e-14)


# Random instances ----------------------------------------------------------------------------------------------------


def reals(shape, bound=3.0):
    # A grid: tiny and subnormal numbers test floating point rather than families.
    return hnp.arrays(np.float64, shape, elements=st.integers(-1000, 1000).map(lambda i: bound * i / 1000))


def positives(shape, decades=1.0):
    return reals(shape, decades).map(lambda x: 10.0**x)


def matrices(plates, size, decades=1.0):
    """Positive definite: L L' with a positive diagonal."""
    shape = (*plates, size, size)
    lower = reals(shape, 0.5).map(lambda x: np.tril(x, -1))
    diagonal = positives((*plates, size), decades / 2).map(lambda d: d[..., None] * np.eye(size))
    return st.tuples(lower, diagonal).map(
        lambda p: (p[1] @ (p[0] + np.eye(size))) @ np.swapaxes(p[1] @ (p[0] + np.eye(size)), -1, -2)
    )


def probabilities(shape, decades=1.0):
    return positives(shape, decades).map(lambda x: x / x.sum(axis=-1, keepdims=True))


# name -> (plates, event size, decades that positive parameters span to either side) -> strategy of the usual parameters
STRATEGIES = {
    "Gaussian": lambda p, k, w: {"mean": reals(p), "variance": positives(p, w)},
    "VectorGaussian": lambda p, k, w: {"mean": reals((*p, k)), "covariance": matrices(p, k, w)},
    "Gamma": lambda p, k, w: {"shape": positives(p, w), "rate": positives(p, w)},
    "Beta": lambda p, k, w: {"a": positives(p, w), "b": positives(p, w)},
    "Dirichlet": lambda p, k, w: {"concentration": positives((*p, k), w)},
    "Bernoulli": lambda p, k, w: {"probability": positives(p, w).map(lambda odds: odds / (1.0 + odds))},
    "Categorical": lambda p, k, w: {"probability": probabilities((*p, k), w)},
    "Wishart": lambda p, k, w: {"dof": positives(p, w).map(lambda x: x + k - 1.0), "scale": matrices(p, k, w)},
    "Poisson": lambda p, k, w: {"rate": positives(p, w)},
    "SpikeAndSlab": lambda p, k, w: {
        "probability": positives(p, w).map(lambda odds: odds / (1.0 + odds)),
        "slab_mean": reals(p),
        "slab_variance": positives(p, w),
    },
}

# name -> usual parameters of one element -> the SciPy distribution
SCIPY = {
    "Gaussian": lambda mean, variance: scipy.stats.norm(mean, np.sqrt(variance)),
    "VectorGaussian": lambda mean, covariance: scipy.stats.multivariate_normal(mean, covariance),
    "Gamma": lambda shape, rate: scipy.stats.gamma(shape, scale=1.0 / rate),
    "Beta": lambda a, b: scipy.stats.beta(a, b),
    "Dirichlet": lambda concentration: scipy.stats.dirichlet(concentration),
    "Bernoulli": lambda probability: scipy.stats.bernoulli(probability),
    "Categorical": lambda probability: scipy.stats.multinomial(1, probability),
    "Wishart": lambda dof, scale: scipy.stats.wishart(dof, scale),
    "Poisson": lambda rate: scipy.stats.poisson(rate),
    "SpikeAndSlab": lambda probability, slab_mean, slab_variance: SpikeSlab(probability, slab_mean, slab_variance),
}


def instances(family, decades=1.0):
    """Random members of `family`."""
    return st.fixed_dictionaries(STRATEGIES[family.__name__](PLATES, SIZE, decades)).map(lambda p: member(family, p))


def member(family, parameters):
    return family.from_parameters(**{name: jnp.asarray(value) for name, value in parameters.items()})


def ordinary(family):
    """One member with ordinary parameters, for tests that sample."""
    ramp = np.linspace(0.8, 2.0, *PLATES)
    wide = ramp[:, None] * np.linspace(0.5, 1.5, SIZE)
    matrix = ramp[:, None, None] * (np.eye(SIZE) + 0.3)
    usual = {
        "mean": wide if family.kind == "vector" else ramp,
        "probability": wide / wide.sum(-1, keepdims=True) if family.kind == "category" else 0.4 * ramp,
        "concentration": wide,
        "dof": SIZE + 1.5 * ramp,
    }
    names = STRATEGIES[family.__name__](PLATES, SIZE, 1.0)
    default = {name: matrix if name in {"covariance", "scale"} else 1.3 * ramp for name in names}
    return member(family, {name: usual.get(name, default[name]) for name in names})


# What is compared ----------------------------------------------------------------------------------------------------


def numbers(q):
    """All that a family answers without data."""
    stats = q.expected_stats()
    return {
        "log_partition": q.log_partition(),
        "stats": stats,
        "mean": q.mean(),
        "variance": q.variance(),
        "entropy": q.entropy(),
        "moments": tuple(q.moments()),
        "parameters": q.parameters(),
        "projected": type(q).from_stats(stats).expected_stats(),
        "solved": q.fisher_solve(stats),
    }


def close(found, expected, rtol=1e-9, atol=1e-11):
    jax.tree.map(lambda f, e: np.testing.assert_allclose(f, e, rtol=rtol, atol=atol), found, expected)


def inner(a, b, ndims):
    """sum_j <a_j, b_j>, over the event axes."""
    return sum(jnp.sum(x * y, axis=tuple(range(-n, 0))) for x, y, n in zip(a, b, ndims, strict=True))


def draws(q):
    """Four values to evaluate at: always the same call, as each sampler compiles for a second."""
    return q.sample(jax.random.key(0), (4,))


def stats_of(q, value):
    return type(q).stats_of(value, *_size(q))


def moments_at(q, value):
    return type(q).moments_at(value, *_size(q))


def _event_ndim(family):
    return Domain(family.kind).event_ndim


def _size(q):
    return (q.logits.shape[-1],) if type(q).__name__ == "Categorical" else ()


def total_log_partition(family):
    return lambda naturals: jnp.sum(family.from_naturals(naturals).log_partition())


def elements(q):
    """Index of each plate element and the SciPy distribution there."""
    parameters = {name: np.asarray(value) for name, value in q.parameters().items()}
    for index in np.ndindex(*q.plates):
        yield index, SCIPY[type(q).__name__](**{name: value[index] for name, value in parameters.items()})


def scipy_log_density(q, distribution, value):
    value = np.asarray(value)
    if type(q).__name__ == "Categorical":
        return distribution.logpmf(np.eye(_size(q)[0])[value])
    if type(q).__name__ == "Dirichlet":
        return np.array([distribution.logpdf(x / x.sum()) for x in value])
    if type(q).__name__ == "Wishart":
        return distribution.logpdf(np.moveaxis(value, 0, -1))
    return distribution.logpmf(value) if hasattr(distribution, "logpmf") else distribution.logpdf(value)


def well_posed(q, value):
    """Where two programs can agree to 1e-8: rounding a matrix alone moves its log determinant by condition x 1e-16."""
    if type(q).__name__ != "Wishart":
        return True
    return np.linalg.cond(np.asarray(value)) < 1e8


# The laws ------------------------------------------------------------------------------------------------------------


@each_family
def test_statistics_are_read_off_the_moments(family):
    """The evidence pairs messages with these: as many as there are naturals, and the expected statistics."""
    with jax.enable_x64(True):
        q = ordinary(family)
        found, expected = stats_from_moments(q.moments()), q.expected_stats()
        assert len(found) == len(expected) == len(q.naturals())
        for own, wanted in zip(found, expected, strict=True):
            np.testing.assert_allclose(own, wanted, rtol=1e-9)


def test_discovery():
    names = {family.__name__ for family in EXPONENTIAL}
    assert names == set(STRATEGIES) == set(SCIPY), "a family has no strategy, or a strategy no family"
    assert set(BY_NAME.values()) == set(ALL)
    assert set(FOR_DOMAIN) == set(BY_KIND)
    assert all(issubclass(family, Family) for family in ALL)


@each_family
@laws
@given(data=st.data())
def test_fields_are_the_naturals(family, data):
    q = data.draw(instances(family))
    assert all(a is b for a, b in zip(jax.tree.leaves(q), q.naturals(), strict=True))
    close(family.from_naturals(q.naturals()), q)
    close(member(family, q.parameters()).naturals(), q.naturals(), atol=1e-9)


@each_family
@laws
@given(data=st.data())
def test_stats_are_the_gradient_of_log_partition(family, data):
    q = data.draw(instances(family))
    close(jax.grad(total_log_partition(family))(q.naturals()), q.expected_stats())


@each_family
@laws
@given(data=st.data())
def test_projection_inverts_expected_stats(family, data):
    q = data.draw(instances(family))
    projected = family.from_stats(q.expected_stats())
    close(projected.expected_stats(), q.expected_stats(), rtol=1e-12, atol=1e-12)
    close(projected.parameters(), q.parameters(), rtol=1e-9)


@each_family
@laws
@given(data=st.data())
def test_product_adds_naturals(family, data):
    q, r = data.draw(instances(family)), data.draw(instances(family))
    product = family.from_naturals(jax.tree.map(jnp.add, q.naturals(), r.naturals()))
    value = draws(q)
    log = q.log_density(value) + r.log_density(value) - family.log_base(value) - product.log_density(value)
    proper = np.broadcast_to(product.is_proper(), log.shape)
    close(np.where(proper, log - log[0], 0.0), np.zeros(log.shape), atol=1e-8)


@each_family
@laws
@given(data=st.data())
def test_fisher_is_the_hessian_of_log_partition(family, data):
    q, direction = data.draw(instances(family)), data.draw(instances(family)).naturals()
    _, tangent = jax.jvp(jax.grad(total_log_partition(family)), (q.naturals(),), (direction,))
    if family.__name__ == "Categorical":
        direction = tuple(u - u.mean(axis=-1, keepdims=True) for u in direction)
    close(q.fisher_solve(tangent), direction, rtol=1e-7, atol=1e-7)


@each_family
@laws
@given(data=st.data())
def test_log_density_is_the_exponential_form_and_scipys(family, data):
    q = data.draw(instances(family))
    value = draws(q)
    found = q.log_density(value)
    assert found.shape == (4, *q.plates)
    form = inner(q.naturals(), stats_of(q, value), family.natural_ndims) - q.log_partition() + family.log_base(value)
    usable = np.isfinite(form)  # samples of a small shape underflow to the boundary
    close(np.where(usable, found, 0.0), np.where(usable, form, 0.0), rtol=1e-8, atol=1e-8)
    usable &= well_posed(q, value)
    for index, distribution in elements(q):
        at = (slice(None), *index)
        if np.all(usable[at]):
            close(found[at], scipy_log_density(q, distribution, value[at]), rtol=1e-7, atol=1e-7)


@each_family
@laws
@given(data=st.data())
def test_mean_variance_and_entropy_agree_with_scipy(family, data):
    q = data.draw(instances(family))
    mean, variance, entropy = q.mean(), q.variance(), q.entropy()
    for index, distribution in elements(q):
        close(entropy[index], distribution.entropy(), rtol=1e-7, atol=1e-8)
        if family.__name__ == "Categorical":
            close(mean[index], distribution.p)
            close(variance[index], distribution.p * (1.0 - distribution.p))
        elif family.__name__ == "VectorGaussian":
            close(mean[index], distribution.mean)
            close(q.covariance()[index], distribution.cov)
            close(variance[index], np.diagonal(distribution.cov))
        else:
            close(mean[index], distribution.mean())
            close(variance[index], distribution.var())


@each_family
@laws
@given(data=st.data())
def test_entropy_is_log_partition_minus_naturals_times_stats(family, data):
    q = data.draw(instances(family))
    base = -q.moments().log_factorial if family.kind == "count" else 0.0
    form = q.log_partition() - inner(q.naturals(), q.expected_stats(), family.natural_ndims) - base
    close(q.entropy(), form, atol=1e-8)


@each_family
@pytest.mark.parametrize("plates", [(), (3,), (2, 3)])
def test_uniform_is_zero_naturals(family, plates):
    uniform = family.uniform(plates, 4)
    assert uniform.plates == plates
    for natural, ndim in zip(uniform.naturals(), family.natural_ndims, strict=True):
        assert natural.shape == plates + (4,) * ndim
        assert not np.any(natural)
    bounded = family.kind in {"unit", "simplex", "boolean", "category", "count"}
    assert np.all(np.asarray(uniform.is_proper()) == bounded)
    assert uniform.is_proper().shape == plates


@each_family
@laws
@given(data=st.data())
def test_pull_is_the_gradient_in_expected_stats(family, data):
    """By the chain rule: the Hessian of log_partition times dS/d(stats) is dS/d(naturals)."""
    q = data.draw(instances(family))
    moments = q.moments()
    keys = jax.random.split(jax.random.key(data.draw(st.integers(0, 99))), len(moments))
    linear = type(moments)(*(jax.random.normal(k, m.shape) for k, m in zip(keys, moments, strict=True)))
    # The 1 / x! of a count belongs to the base measure: no message comes of it.
    carried = [name != "log_factorial" for name in moments._fields]

    def scalar(moments):
        terms = (c * m + 0.5 * m**2 for c, m in zip(linear, moments, strict=True))
        return sum(jnp.sum(term) for term, use in zip(terms, carried, strict=True) if use)

    message = family.pull(moments, jax.grad(scalar)(moments))
    _, found = jax.jvp(jax.grad(total_log_partition(family)), (q.naturals(),), (message,))
    expected = jax.grad(lambda naturals: scalar(family.from_naturals(naturals).moments()))(q.naturals())
    size = max(float(jnp.max(jnp.abs(e))) for e in expected)
    close(found, expected, rtol=1e-7, atol=1e-9 * (1.0 + size))


@each_family
def test_samples_have_the_expected_stats_and_moments(family):
    q = ordinary(family)
    value = q.sample(jax.random.key(7), (20_000,))
    assert value.shape == (20_000, *np.shape(q.mean())[: len(PLATES) + _event_ndim(family)])
    moments, at = q.moments(), moments_at(q, value)
    sampled = list(zip(stats_of(q, value), q.expected_stats(), strict=True))
    sampled += [
        (at_field, m) for name, at_field, m in zip(at._fields, at, moments, strict=True) if "variance" not in name
    ]
    for draws, expected in sampled:
        draws = np.asarray(draws)
        error = draws.std(axis=0) / np.sqrt(len(draws))
        assert np.all(np.abs(draws.mean(axis=0) - expected) <= 5.0 * error + 1e-12)


@each_family
@laws
@given(data=st.data())
def test_moments_name_what_the_family_names(family, data):
    q = data.draw(instances(family))
    moments = q.moments()
    assert type(moments) is BY_KIND[family.kind]
    for name in {"mean", "variance", "covariance"} & set(moments._fields):
        close(getattr(moments, name), getattr(q, name)())
    point = moments_at(q, draws(q)[0])
    assert jax.tree.map(jnp.shape, point) == jax.tree.map(jnp.shape, moments)
    for name in {"variance", "covariance"} & set(moments._fields):
        assert not np.any(getattr(point, name))


@each_family
@settings(laws, max_examples=4)
@given(data=st.data())
def test_jit_and_vmap_equal_eager(family, data):
    q = data.draw(instances(family))
    eager = numbers(q)
    close(jax.jit(numbers)(q), eager, rtol=1e-8, atol=1e-9)
    close(jax.vmap(numbers)(q), eager, rtol=1e-8, atol=1e-9)


@each_family
@settings(laws, max_examples=2)
@given(data=st.data())
def test_plates_of_any_rank(family, data):
    """Plates are independent: an element alone, or the elements laid out as a matrix, give the same answers."""
    q = data.draw(instances(family))
    compiled = jax.jit(numbers)
    together = compiled(q)
    alone = jax.tree.map(lambda x: x[1], q)
    assert alone.plates == ()
    assert jax.eval_shape(alone.sample, jax.random.key(0)).ndim == _event_ndim(family)
    close(compiled(alone), jax.tree.map(lambda x: x[1], together), rtol=1e-8, atol=1e-9)
    square = jax.tree.map(lambda x: x.reshape(2, 2, *x.shape[1:]), q)
    assert square.plates == (2, 2)
    drawn = jax.eval_shape(lambda key: square.sample(key, (5,)), jax.random.key(0))
    assert drawn.shape[:3] == (5, 2, 2)
    close(compiled(square), jax.tree.map(lambda x: x.reshape(2, 2, *x.shape[1:]), together), rtol=1e-8, atol=1e-9)


@each_family
@settings(laws, max_examples=4)
@given(data=st.data())
def test_float32(family, data):
    """Parameters within a decade: all answers are float32 and within 1e-3 of their size or 1."""
    q = data.draw(instances(family))
    single = jax.tree.map(lambda x: x.astype(jnp.float32), q)
    found, expected = jax.jit(numbers)(single), numbers(jax.tree.map(lambda x: x.astype(jnp.float64), single))
    for name in expected:
        assert all(leaf.dtype == jnp.float32 for leaf in jax.tree.leaves(found[name])), name
        close(found[name], expected[name], rtol=1e-3, atol=1e-3)
    value = jax.eval_shape(single.sample, jax.random.key(3))
    assert value.dtype != jnp.float64
    assert jax.eval_shape(single.log_density, value).dtype == jnp.float32


@each_family
@laws
@given(data=st.data())
def test_quantile(family, data):
    q = data.draw(instances(family))
    level = np.array([0.05, 0.5, 0.9])
    if family.kind in {"category", "posdef"}:
        with pytest.raises(UnsupportedError, match="quantile"):
            q.quantile(level)
        return
    found = q.quantile(level)
    assert isinstance(found, np.ndarray)
    assert found.shape == (3, *q.mean().shape)
    assert q.quantile(0.5).shape == q.mean().shape
    close(q.quantile(0.5), found[1])
    for index, distribution in elements(q):
        at = (slice(None), *index)
        if family.kind == "vector":
            close(
                found[at], scipy.stats.norm(distribution.mean, np.sqrt(np.diag(distribution.cov))).ppf(level[:, None])
            )
        elif family.kind == "simplex":
            alpha = distribution.alpha
            close(found[at], scipy.stats.beta(alpha, alpha.sum() - alpha).ppf(level[:, None]), rtol=1e-7)
        else:
            close(found[at], distribution.ppf(level), rtol=1e-7)


@each_family
@laws
@given(data=st.data())
def test_instances_are_proper(family, data):
    q = data.draw(instances(family))
    assert q.is_proper().shape == q.plates
    assert np.all(q.is_proper())


@each_family
@laws
@given(data=st.data())
def test_extreme_parameters_are_finite(family, data):
    q = data.draw(instances(family, decades=5.0))
    for name, answer in numbers(q).items():
        assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(answer)), name
    stats = q.expected_stats()
    # Relative to the largest entry: a matrix of condition 1e10 has no better digits in its small ones.
    for found, expected in zip(family.from_stats(stats).expected_stats(), stats, strict=True):
        close(found, expected, rtol=1e-8, atol=1e-8 * float(np.max(np.abs(expected))))
