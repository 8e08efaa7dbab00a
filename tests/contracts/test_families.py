"""The laws of the families, which are discovered; each needs a strategy and a reference in `family_members.py`."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from family_members import (
    EXPONENTIAL,
    SCIPY,
    STRATEGIES,
    close,
    draws,
    each_family,
    elements,
    inner,
    instances,
    laws,
    member,
    moments_at,
    ordinary,
    scipy_log_density,
    stats_of,
    total_log_partition,
    well_posed,
)
from hypothesis import given
from hypothesis import strategies as st

from cavity.engine.values.first_beliefs import stats_from_moments
from cavity.factors.families import ALL, BY_NAME, FOR_DOMAIN, Family
from cavity.factors.moments import BY_KIND


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
def test_statistics_are_read_off_the_moments(family):
    """The evidence pairs messages with these: as many as there are naturals, and the expected statistics."""
    with jax.enable_x64(True):
        q = ordinary(family)
        found, expected = stats_from_moments(q.moments()), q.expected_stats()
        assert len(found) == len(expected) == len(q.naturals())
        for own, wanted in zip(found, expected, strict=True):
            np.testing.assert_allclose(own, wanted, rtol=1e-9)


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
