"""Orders among the elements of a variable: laws of their coordinates, densities, draws and evidence."""

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import cavity as cv
from cavity.engine.density.log_density import LogDensity
from cavity.engine.density.orders import in_order, order_among
from cavity.factors.errors import DataError, ModelError

ENDS = [(-np.inf, np.inf), (0.0, np.inf), (0.0, 1.0), (-2.0, 5.0), (-np.inf, 1.0)]


def sides(pairs):
    """The larger and the smaller ones."""
    return tuple(np.array(pairs, int).reshape(-1, 2).T)


@st.composite
def orders(draw):
    """A partial order of some numbers, and its pairs: each above some of those before it."""
    count = draw(st.integers(1, 8))
    pairs = [(i, j) for i in range(count) for j in range(i) if draw(st.integers(0, 2)) == 0]
    renamed = draw(st.permutations(range(count)))
    pairs = [(renamed[i], renamed[j]) for i, j in pairs]
    return order_among("t", [sides(pairs)], count), pairs


@settings(deadline=None, max_examples=6)
@given(orders(), st.sampled_from(ENDS), st.integers(0, 100))
def test_coordinates_of_an_order(made, ends, seed):
    order, pairs = made
    count = len(order.below)
    b, z = in_order(order, *ends, (count,)), np.random.default_rng(seed).normal(size=count)
    with jax.enable_x64(True):
        x = np.asarray(b.forward(z))
        assert all(x[above] > x[below] for above, below in pairs)
        assert (x > ends[0]).all()
        assert (x < ends[1]).all()
        assert np.asarray(b.backward(x)) == pytest.approx(z, abs=1e-7)
        _, expected = np.linalg.slogdet(np.asarray(jax.jacobian(b.forward)(z)))
        assert float(b.log_jacobian(z)) == pytest.approx(expected, abs=1e-7)


def test_a_circle_has_no_order():
    with pytest.raises(DataError) as error:
        order_among("t", [sides([(0, 1), (1, 2), (2, 0)])], 4)
    assert "circle" in str(error.value)
    assert "'t'" in str(error.value)


def ordered_times(prior, noise=None):
    """Times on a tree, each after its parent's; a root is its own parent."""
    m = cv.Model("times")
    node = m.plate("node")
    parent = m.input("parent", cv.index(node), plates=node)
    t = m.random("t", prior, plates=node)
    m.constrain(t > t[parent])
    if noise is not None:
        m.random("y", cv.gaussian(t, sd=noise), plates=node)
    return m


TREE = np.array([0, 0, 0, 1, 1, 2, 2])


def test_long_chains_begin_evenly_spaced():
    pairs = [(i, i - 1) for i in range(1, 300)]
    b = in_order(order_among("t", [sides(pairs)], 300), 0.0, 1.0, (300,))
    with jax.enable_x64(True):
        x = np.asarray(b.forward(np.zeros(300)))
    assert np.diff(x) == pytest.approx(1.0 / 301.0)


def test_a_difference_that_is_zero_is_told_where_it_must_be_positive():
    for length in (lambda d: cv.gaussian(0.0, variance=d), lambda d: cv.gaussian(d**0.5, sd=1.0), cv.exponential):
        m = cv.Model("times")
        node = m.plate("node")
        parent = m.input("parent", cv.index(node), plates=node)
        t = m.random("t", cv.uniform(0.0, 1.0), plates=node)
        m.constrain(t > t[parent])
        m.random("y", length(t - t[parent]), plates=node)
        with pytest.raises(DataError, match="one element twice"):
            cv.log_density(m, {"parent": TREE, "y": np.ones(7)})
        m.random("z", cv.gaussian(t - t[parent], sd=1.0), plates=node)  # as a mean it may be zero


def test_the_prior_of_an_order_is_refused():
    density = cv.log_density(ordered_times(cv.uniform(0.0, 1.0), 0.5), {"parent": TREE, "y": np.zeros(7)})
    with pytest.raises(cv.UnsupportedError, match=r"cv\.evidence"):
        density.prior(np.zeros(7))


def test_coordinates_with_and_without_the_order_are_two_programs():
    m = ordered_times(cv.gaussian(0.0, variance=1.0), 0.5)
    binding = cv.log_density(m, {"parent": TREE, "y": np.zeros(7)}).binding
    z = -np.arange(7.0)
    apart = LogDensity(m, binding, ordered=False).constrain(z)["t"]
    together = LogDensity(m, binding).constrain(z)["t"]
    assert apart == pytest.approx(z)
    assert (together[1:] > together[TREE[1:]]).all()


def test_ends_that_move_are_no_ends_of_coordinates():
    m = cv.Model("ends")
    k, n = m.plate("k", 2), m.plate("n", 2)
    high, z = m.input("high", cv.positive, plates=k), m.input("z", cv.index(k), plates=n)
    x = m.random("x", cv.uniform(0.0, high[z]), plates=n)
    m.constrain(x[1:] > x[:-1])
    data = {"high": [1.0, 2.0], "z": [0, 0]}
    density = LogDensity(m, cv.log_density(m, data).binding, moved=["z"])
    assert density.hard == ("constraint 1",)


def test_density_is_zero_out_of_order_and_roots_are_not_compared():
    density = cv.log_density(ordered_times(cv.uniform(0.0, 1.0), 0.5), {"parent": TREE, "y": np.zeros(7)})
    assert density.ordered == ("constraint 1",)
    assert not density.hard
    up = np.linspace(0.1, 0.7, 7)
    assert density({"t": up}) == pytest.approx(stats.norm.logpdf(up, 0.0, 0.5).sum())
    assert density({"t": up[::-1]}) == -np.inf


def test_beliefs_are_compared_without_the_order():
    m = ordered_times(cv.gaussian(0.0, variance=1.0), 0.5)
    binding = cv.log_density(m, {"parent": TREE, "y": np.zeros(7)}).binding
    density = LogDensity(m, binding, ordered=False)
    assert density.hard == ("constraint 1",)
    assert not density.ordered


def test_an_order_that_moves_is_no_matter_of_coordinates():
    m = ordered_times(cv.uniform(0.0, 1.0), 0.5)
    binding = cv.log_density(m, {"parent": TREE, "y": np.zeros(7)}).binding
    density = LogDensity(m, binding, moved=["parent"])
    assert density.hard == ("constraint 1",)
    start = density.coordinates.of_start(m.randoms["t"])
    up = np.asarray(start.forward(np.zeros(7)))
    assert (up[1:] > up[TREE[1:]]).all()


def test_an_order_that_moves_against_all_labels():
    """Which of three times each of two rows has is moved; each is above a time that data give, or is that time."""
    m = cv.Model("moved")
    k, n = m.plate("k", 3), m.plate("n", 2)
    label, base = (m.input(name, cv.index(k), plates=n) for name in ("label", "base"))
    t = m.random("t", cv.uniform(0.0, 1.0), plates=k)
    m.constrain(t[label] > t[base])
    m.random("y", cv.gaussian(t[label], sd=0.3), plates=n)
    y, low = np.array([0.2, 0.9]), np.array([0, 1])
    data = {"label": [1, 2], "base": low, "y": y}
    draws = cv.sample(m, data, draws=2000, moves={"label": cv.moves.relabels()}, seed=2)
    found = np.bincount(np.asarray(draws["label"]).reshape(-1, 2) @ [3, 1], minlength=9) / 8000
    random = np.random.default_rng(0)
    times, labels = random.uniform(size=(500_000, 3)), random.integers(0, 3, (500_000, 2))
    own = np.take_along_axis(times, labels, 1)
    possible = ((own > times[:, low]) | (labels == low)).all(1)
    weights = possible * np.exp(-0.5 * ((own - y) ** 2).sum(1) / 0.09)
    expected = np.bincount(labels @ [3, 1], weights=weights, minlength=9) / weights.sum()
    assert np.abs(found - expected).max() < 0.025


def test_draws_of_a_chain_are_order_statistics():
    m = cv.Model("sorted")
    n = m.plate("n", 5)
    x = m.random("x", cv.uniform(0.0, 1.0), plates=n)
    m.constrain(x[1:] > x[:-1])
    m.random("y", cv.gaussian(x[0], sd=100.0))  # hardly tells anything
    draws = np.asarray(cv.sample(m, {"y": 0.0}, draws=1000, seed=1)["x"]).reshape(-1, 5)
    assert (np.diff(draws) > 0).all()
    for k in range(5):
        assert stats.kstest(draws[::10, k], stats.beta(k + 1, 5 - k).cdf).pvalue > 1e-4


def test_evidence_of_an_order_is_its_probability():
    m = cv.Model("sorted")
    n = m.plate("n", 3)
    x = m.random("x", cv.uniform(0.0, 1.0), plates=n)
    m.constrain(x[1:] > x[:-1])
    m.random("y", cv.gaussian(x[0], sd=1e3))
    found = cv.evidence(m, {"y": 0.0}, sweeps=256, replicas=4)
    expected = stats.norm.logpdf(0.0, 0.0, 1e3) - np.log(6.0)
    assert abs(found.log_evidence - expected) < 4.0 * found.standard_error < 1.0


def clock(noise=0.1):
    """A diffusion along a tree whose times are random: the variance of a branch is a rate times its length."""
    m = cv.Model("clock")
    node, trait = m.plate("node"), m.plate("trait")
    parent = m.input("parent", cv.index(node), plates=node)
    t = m.random("t", cv.uniform(0.0, 1.0), plates=node)
    m.constrain(t > t[parent])
    rate = m.random("rate", cv.gamma(2.0, 2.0))
    length = m.let("length", t - t[parent])
    x = m.tree(
        "x",
        over=node,
        parent=parent,
        root=cv.gaussian(0.0, variance=1.0),
        then=lambda above: cv.gaussian(above, variance=rate * length),
        plates=trait,
    )
    m.random("y", cv.gaussian(x, sd=noise))
    return m


def test_times_as_variances_against_a_grid():
    """Two branches below a root: the posterior of the two times and the rate by the exact density of the data."""
    y = np.random.default_rng(3).normal(size=(3, 12)) * np.array([[1.0], [0.6], [1.5]])
    found = cv.laplace_approximation(clock(), {"parent": [0, 0, 0], "y": y}, integrate=["x"])
    grid, rates = (np.arange(40) + 0.5) / 40, np.linspace(0.05, 8.0, 40)
    t0, t1, t2, rate = (axis.ravel() for axis in np.meshgrid(grid, grid, grid, rates, indexing="ij"))
    inside = (t1 > t0) & (t2 > t0)
    t0, t1, t2, rate = t0[inside], t1[inside], t2[inside], rate[inside]
    covariance = np.ones((len(rate), 3, 3))
    covariance[:, 1, 1] += rate * (t1 - t0)
    covariance[:, 2, 2] += rate * (t2 - t0)
    covariance += 0.01 * np.eye(3)
    square = np.einsum("di,nij,dj->n", y.T, np.linalg.inv(covariance), y.T)
    log = stats.gamma.logpdf(rate, 2.0, scale=0.5) - 0.5 * (12 * np.linalg.slogdet(covariance)[1] + square)
    weights = np.exp(log - log.max())
    weights /= weights.sum()
    for k, values in enumerate((t0, t1, t2)):
        mean = weights @ values
        sd = np.sqrt(weights @ (values - mean) ** 2)
        assert abs(found["t"].mean[k] - mean) < 0.1 * sd
        assert found["t"].sd[k] == pytest.approx(sd, rel=0.1)
    mean = weights @ rate
    assert found["rate"].mean == pytest.approx(mean, rel=0.03)


def test_differences_that_a_constraint_makes_positive():
    m = cv.Model("m")
    n = m.plate("n")
    low, high = (m.random(name, cv.gaussian(0.0, variance=1.0)) for name in ("low", "high"))
    assert (high - low).domain.is_real
    m.constrain(high - low > 0)
    assert (high - low).domain.is_positive
    assert (low - high).domain.is_real
    named = m.let("width", high - low)
    m.random("y", cv.gaussian(low, sd=named), plates=n)
    p, q = (m.random(name, cv.beta(1.0, 1.0)) for name in "pq")
    m.constrain(q < p)
    assert (p - q).domain.is_positive
    m.random("waiting", cv.exponential(p - q), plates=n)
    with pytest.raises(ModelError, match="must be positive"):
        m.random("z", cv.gaussian(0.0, sd=q - p))


def test_infer_names_what_draws_such_a_model():
    with pytest.raises(cv.UnsupportedError) as error:
        cv.infer(ordered_times(cv.uniform(0.0, 1.0), 0.5), {"parent": TREE, "y": np.zeros(7)})
    assert "cv.sample(model, data)" in str(error.value)
