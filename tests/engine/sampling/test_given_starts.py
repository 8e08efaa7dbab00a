"""`cv.sample(start=)`: chains begin at draws from beliefs, or at values that are given."""

from __future__ import annotations

import numpy as np
import pytest

import cavity as cv


def two_groups():
    """In two dimensions, far from the prior's centre: chains that begin at random stay with one component."""
    rng = np.random.default_rng(1)
    centre = np.array([[2.0, 55.0], [4.3, 80.0]])
    z = np.arange(120) % 3 > 0
    x = centre[z.astype(int)] + rng.normal(size=(120, 2)) * [0.3, 5.0]
    m = cv.Model()
    n, k = m.plate("n"), m.plate("k", 2)
    share = m.random("share", cv.dirichlet(np.ones(2)))
    precision = m.random("precision", cv.wishart(2.0, rate=[[0.22, 0.02], [0.02, 0.22]]), plates=k)
    mean = m.random("mean", cv.vector_gaussian(np.zeros(2), precision=0.01 * precision), plates=k)
    own = m.random("z", cv.categorical(share), plates=n)
    m.random("x", cv.vector_gaussian(mean[own], precision=precision[own]))
    return m, {"x": x}, centre, z


@pytest.mark.parametrize("method", ["vmp", "ep"])
def test_chains_begin_at_draws_from_beliefs(method):
    model, data, centre, _ = two_groups()
    posterior = cv.infer(model, data, method=method, restarts=4)
    draws = cv.sample(model, data, draws=100, chains=2, warmup=20, start=posterior, progress=False)
    order = np.argsort(posterior["mean"].mean[:, 0])
    found = np.asarray(draws["mean"])[..., order, :]
    assert np.all(np.abs(found.mean((0, 1)) - centre) < [0.3, 3.0])
    first = draws.warmup["mean"][:, 0]
    assert not np.array_equal(first[0], first[1])  # a draw for each chain


def test_chains_begin_at_values():
    model, data, centre, z = two_groups()
    start = {"mean": centre, "z": z.astype(int)}
    draws = cv.sample(model, data, draws=50, chains=2, warmup=10, start=start, progress=False)
    assert np.all(np.abs(np.asarray(draws["mean"]).mean((0, 1)) - centre) < [0.3, 3.0])


def test_the_start_is_forgotten():
    m = cv.Model()
    mean, rate = m.random("mean", cv.gaussian(0.0, sd=3.0)), m.random("precision", cv.gamma(2.0, 1.0))
    m.random("y", cv.gaussian(mean, precision=rate), plates=m.plate("n"))
    data = {"y": np.array([1.0, 1.4, 0.2, 2.1, 1.3])}
    options = {"draws": 4000, "progress": False, "seed": 2}
    far = cv.sample(m, data, start={"mean": 40.0, "precision": 1e-3}, **options)
    near = cv.sample(m, data, start=cv.infer(m, data), **options)
    for name in ("mean", "precision"):
        one, other = np.asarray(far[name]), np.asarray(near[name])
        np.testing.assert_allclose(one.mean(), other.mean(), atol=0.05)
        np.testing.assert_allclose(one.std(), other.std(), rtol=0.06)


@pytest.mark.parametrize(
    ("start", "error", "words"),
    [
        (3, cv.ModelError, "posterior"),
        ({}, cv.DataError, "none of the variables"),
        ({"nobody": 1.0}, cv.DataError, "share"),
        ({"mean": np.zeros(2)}, cv.DataError, "shape"),
    ],
)
def test_what_is_no_start_is_refused(start, error, words):
    model, data, *_ = two_groups()
    with pytest.raises(error, match=words):
        cv.sample(model, data, draws=10, start=start, progress=False)
