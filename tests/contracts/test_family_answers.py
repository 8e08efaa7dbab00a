"""What families answer when they are compiled, mapped, of another rank or precision, sampled, or extreme."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from family_members import (
    PLATES,
    close,
    each_family,
    elements,
    event_ndim,
    instances,
    laws,
    moments_at,
    numbers,
    ordinary,
    stats_of,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from cavity.factors.errors import UnsupportedError
from cavity.factors.families.capabilities import PairFamily


@each_family
def test_samples_have_the_expected_stats_and_moments(family):
    q = ordinary(family)
    value = q.sample(jax.random.key(7), (20_000,))
    assert value.shape == (20_000, *np.shape(q.mean())[: len(PLATES) + event_ndim(family)])
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
    assert jax.eval_shape(alone.sample, jax.random.key(0)).ndim == event_ndim(family)
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
    if family.kind in {"category", "posdef"} or issubclass(family, PairFamily):
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
    # The natural parameters of a pair hold scale^-1 + multiple mean mean': three scales lose their digits together.
    q = data.draw(instances(family, decades=3.0 if issubclass(family, PairFamily) else 5.0))
    for name, answer in numbers(q).items():
        heavy = name == "variance" and issubclass(family, PairFamily)  # of Student's t: none up to 2 degrees of freedom
        assert all(np.all(~np.isnan(leaf) if heavy else np.isfinite(leaf)) for leaf in jax.tree.leaves(answer)), name
    stats = q.expected_stats()
    # Relative to the largest entry: a matrix of condition 1e10 has no better digits in its small ones.
    for found, expected in zip(family.from_stats(stats).expected_stats(), stats, strict=True):
        close(found, expected, rtol=1e-8, atol=1e-8 * float(np.max(np.abs(expected))))
