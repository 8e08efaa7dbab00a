"""What a family declares for places where nothing is known, for mixtures of its members, and for samplers."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from family_members import EXPONENTIAL, SIZE, close, draws, each_family, elements, event_ndim, instances, laws, ordinary
from hypothesis import given
from hypothesis import strategies as st

from cavity.engine.distributions.cases import Cases, mixed
from cavity.factors.domains import Domain
from cavity.factors.families import DiscreteFamily, DivisorFamily, GaussianFamily, TwoMomentFamily
from cavity.factors.families.bijections import interval
from cavity.factors.moments import BY_KIND

LEVELS = np.array([0.05, 0.3, 0.9])
WEIGHTS = np.array([0.2, 0.5, 0.3])


def can(capability):
    families = [family for family in EXPONENTIAL if issubclass(family, capability)]
    return pytest.mark.parametrize("family", families, ids=lambda family: family.__name__)


def event_of(family):
    """The number of classes or the dimension, None where values have none."""
    return SIZE if family.kind in {"category", "simplex", "vector", "posdef", "normal_wishart"} else None


def finite(tree):
    return all(bool(np.all(np.isfinite(leaf))) for leaf in jax.tree.leaves(tree))


# Where nothing is known ----------------------------------------------------------------------------------------------


@each_family
@pytest.mark.parametrize("what", ["anchor", "placeholder"])
def test_beliefs_before_a_run_are_proper(family, what):
    belief = getattr(family, what)(event_of(family))
    assert isinstance(belief, family)
    assert belief.plates == ()
    assert bool(belief.is_proper())
    assert finite(belief.moments())
    assert np.isfinite(belief.entropy())
    wide = belief.over((2, 3))
    assert wide.plates == (2, 3)
    close(jax.tree.map(lambda natural: natural[1, 2], wide), belief)


@can(DivisorFamily)
def test_the_inverse_of_a_placeholder_has_moments(family):
    belief = family.placeholder()
    close(belief.mean_inverse(), belief.mean() ** -1.0, rtol=0.05)
    close(belief.divisible(2), belief)


@each_family
def test_first_moments_are_those_of_a_distribution(family):
    """Of a member, or of a point, which a sequence of members tends to."""
    found = family.first_moments(event_of(family))
    assert type(found) is BY_KIND[family.kind]
    assert jax.tree.map(jnp.shape, found) == jax.tree.map(jnp.shape, family.anchor(event_of(family)).moments())
    points = [family.legal_value(event_of(family)), *([1.0] if family.kind == "count" else [])]
    sizes = (event_of(family),) if family.kind == "category" else ()
    candidates = [family.moments_at(jnp.asarray(point), *sizes) for point in points]
    member = family.from_moments(found)
    candidates += [member.moments()] if finite(member) else []
    assert any(
        all(np.allclose(a, b, rtol=1e-12, atol=1e-12) for a, b in zip(found, other, strict=True))
        for other in candidates
    )


@each_family
def test_legal_values_are_in_the_support(family):
    value = family.legal_value(event_of(family))
    assert np.ndim(value) == Domain(family.kind).event_ndim
    assert np.shape(value) == np.shape(family.anchor(event_of(family)).sample(jax.random.key(0)))
    assert np.isfinite(ordinary(family).log_density(value)).all()


# Members by other descriptions ---------------------------------------------------------------------------------------


@each_family
@laws
@given(data=st.data())
def test_from_moments_undoes_moments(family, data):
    q = data.draw(instances(family))
    close(family.from_moments(q.moments()).parameters(), q.parameters(), rtol=1e-8)


@can(TwoMomentFamily)
@laws
@given(data=st.data())
def test_mean_and_variance_decide_the_member(family, data):
    q = data.draw(instances(family))
    close(family.from_mean_and_variance(q.mean(), q.variance()).parameters(), q.parameters())


@can(DiscreteFamily)
def test_logits_of_all_states(family):
    logits = np.log([[0.2, 0.8], [0.5, 0.5]]) + 3.0
    found = family.from_logits(jnp.asarray(logits))
    for state in (0, 1):
        close(np.exp(found.log_density(state)), np.array([[0.2, 0.8], [0.5, 0.5]])[:, state])


@each_family
def test_sharpened_keeps_the_mean(family):
    q = ordinary(family)
    sharp = q.sharpened(100.0)
    close(sharp.mean(), q.mean())
    if sharp is not q:
        close(sharp.variance(), q.variance() / 100.0)
    assert (sharp is q) == (family.kind not in {"real", "vector", "positive"})


@can(GaussianFamily)
def test_moved_keeps_the_spread(family):
    q, mean = ordinary(family), 0.5 + ordinary(family).mean()
    moved = q.moved(mean)
    for before, after in zip(q.naturals()[-1:], moved.naturals()[-1:], strict=True):
        close(after, before)
    if family.kind == "sparse":
        close(moved.slab_mean, mean)
        close(moved.probability, 0.5 * np.ones_like(mean))
    else:
        close(moved.mean(), mean)
    improper = jax.tree.map(jnp.zeros_like, q)
    assert finite(improper.jittered(jax.random.key(0)).naturals()[-2:])


# Mixtures ------------------------------------------------------------------------------------------------------------


def cases(data, family):
    """Three cases, two in one part and one in another, as their families, and as parts with weights."""
    q, r, s = (data.draw(instances(family)) for _ in range(3))
    two = jax.tree.map(lambda *leaves: jnp.stack(leaves), q, r)
    one = jax.tree.map(lambda leaf: leaf[None], s)
    return (q, r, s), (two, one), (jnp.asarray(WEIGHTS[:2]), jnp.asarray(WEIGHTS[2:]))


def weighted(members, function):
    return sum(w * np.asarray(function(member)) for w, member in zip(WEIGHTS, members, strict=True))


@each_family
@laws
@given(data=st.data())
def test_a_mixture_has_the_expected_statistics_of_its_cases(family, data):
    members, parts, weights = cases(data, family)
    found = family.mixture(parts, weights).expected_stats()
    for place, stat in enumerate(found):
        close(stat, weighted(members, lambda member, i=place: member.expected_stats()[i]), rtol=1e-8, atol=1e-8)


@can(DiscreteFamily)
@laws
@given(data=st.data())
def test_a_mixture_of_states_is_a_member(family, data):
    members, parts, weights = cases(data, family)
    found = mixed(parts, weights)
    assert isinstance(found, family)
    for state in range(2 if family.kind == "boolean" else SIZE):
        close(np.exp(found.log_density(state)), weighted(members, lambda q, s=state: np.exp(q.log_density(s))))


def mixture(parts, weights):
    """`mixed` with the plates of the parts in front, as variables have them."""
    parts = jax.tree.map(lambda leaf: jnp.moveaxis(leaf, 0, 1), parts)
    return jax.vmap(lambda *own: mixed(own, weights))(*parts)


@each_family
@laws
@given(data=st.data())
def test_moments_and_densities_of_mixtures(family, data):
    """Sums over the cases: no draws."""
    if issubclass(family, DiscreteFamily):
        return
    members, parts, weights = cases(data, family)
    found = mixture(parts, weights)
    mean = weighted(members, lambda q: q.mean())
    close(found.mean(), mean)
    square = weighted(members, lambda q: q.variance() + q.mean() ** 2)
    close(found.variance(), square - mean**2, rtol=1e-8, atol=1e-8)
    value = draws(members[0])[0]
    close(np.exp(found.log_density(value)), weighted(members, lambda q: np.exp(q.log_density(value))), rtol=1e-8)


@pytest.mark.parametrize(
    "family", [f for f in EXPONENTIAL if f.kind in {"real", "sparse", "positive", "unit", "count"}]
)
def test_quantiles_of_mixtures_are_where_the_mass_is(family):
    """Against SciPy's distribution functions of the cases."""
    q = ordinary(family)
    parts = (jax.tree.map(lambda leaf: jnp.stack([leaf, leaf[::-1]], axis=1), q),)
    weights = (jnp.broadcast_to(jnp.asarray([0.3, 0.7]), (*q.plates, 2)),)
    found = Cases(parts, weights, q).quantile(LEVELS)
    by_element = [distribution for _, distribution in elements(q)]

    def below(x, i):
        return 0.3 * by_element[i].cdf(x) + 0.7 * by_element[-1 - i].cdf(x)

    for i in range(len(by_element)):
        for at, level in zip(found[:, i], LEVELS, strict=True):
            assert below(at + 1e-6, i) >= level - 1e-9
            assert below(at - 1e-6, i) <= level + 1e-9


# Unconstrained coordinates -------------------------------------------------------------------------------------------

BIJECTIONS = {
    **{family.__name__: functools.partial(family.bijection, event_of(family)) for family in EXPONENTIAL},
    "between": functools.partial(interval, -2.0, 3.0),
    "below": functools.partial(interval, -np.inf, 3.0),
}
DISCRETE = {"Bernoulli", "Categorical", "Poisson", "SpikeAndSlab"}  # values that have no neighbours, or a mass


def free(name, value):
    """The numbers of a value that determine the rest: all but the last probability, the lower triangle of a matrix."""
    if name == "NormalWishart":
        return jnp.concatenate([value[:, 0], free("Wishart", value[:, 1:])])
    if name == "Dirichlet":
        return value[:-1]
    return value[jnp.tril_indices(SIZE)] if name == "Wishart" else jnp.ravel(value)


@pytest.mark.parametrize("name", sorted(set(BIJECTIONS) - DISCRETE))
def test_bijections(name):
    """There and back, and the log Jacobian against automatic differentiation."""
    own = BIJECTIONS[name]()
    z = jax.random.normal(jax.random.key(1), (own.size,))
    close(own.backward(own.forward(z)), z, atol=1e-12)
    _, log = jnp.linalg.slogdet(jax.jacobian(lambda at: free(name, own.forward(at)))(z))
    close(own.log_jacobian(z), log, rtol=1e-11)
    plated = own.over((2, 2))
    flat = jnp.concatenate([z, 2.0 * z, -z, 0.5 * z])
    close(plated.backward(plated.forward(flat)), flat, atol=1e-12)
    close(plated.log_jacobian(flat), sum(own.log_jacobian(part) for part in flat.reshape(4, -1)))


@each_family
def test_values_from_coordinates_are_legal(family):
    own = family.bijection(event_of(family))
    assert (own is None) == (family.__name__ in DISCRETE)
    if own is not None:
        value = own.forward(jax.random.normal(jax.random.key(2), (own.size,)))
        assert jnp.ndim(value) == event_ndim(family)
        assert np.isfinite(ordinary(family).log_density(value)).all()


def test_the_middle_of_a_simplex():
    close(BIJECTIONS["Dirichlet"]().forward(jnp.zeros(SIZE - 1)), np.full(SIZE, 1.0 / SIZE), rtol=1e-14)
