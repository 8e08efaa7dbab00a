"""Chains and trees integrated out of a log density, against the density with them among the variables."""

import jax
import numpy as np
import pytest

import cavity as cv

LENGTHS = np.array([0.4, 0.7, 0.3, 0.9, 0.2])
PARENTS = np.array([2, 2, 2, 1, 1])  # the third is the root


def tree_with_noise(read_by=None):
    m = cv.Model("tree")
    node, leaf, column = m.plate("node"), m.plate("leaf"), m.plate("column", 2)
    parent = m.input("parent", cv.index(node), plates=node)
    length = m.input("length", cv.positive, plates=node)
    speed, noise = (m.random(name, cv.gamma(shape=2.0, rate=1.0)) for name in ("speed", "noise"))
    slope = m.random("slope", cv.gaussian(1.0, variance=0.1))
    x = m.tree(
        "x",
        over=node,
        parent=parent,
        root=cv.gaussian(0.3, variance=speed),
        then=lambda above: cv.gaussian(slope * above, variance=speed * length),
        plates=column,
    )
    seen = x[m.input("at", cv.index(node), plates=leaf)]
    if read_by is None:
        m.random("y", cv.gaussian(2.0 * seen + 0.5, variance=noise))
    else:
        read_by(m, seen)
    return m


def chain_with_noise():
    m = cv.Model("chain")
    t, series = m.plate("t"), m.plate("series", 2)
    speed, noise = (m.random(name, cv.gamma(shape=2.0, rate=1.0)) for name in ("speed", "noise"))
    slope = m.random("slope", cv.gaussian(1.0, variance=0.1))
    x = m.chain(
        "x",
        over=t,
        first=cv.gaussian(0.3, variance=speed),
        then=lambda before: cv.gaussian(slope * before, variance=0.6 * speed),
        plates=series,
    )
    m.random("y", cv.gaussian(2.0 * x + 0.5, variance=noise))
    return m


def y_of(*shape):
    y = np.random.default_rng(0).normal(size=shape)
    y[1, 0] = np.nan
    return y


MODELS = {
    "tree": (tree_with_noise, {"parent": PARENTS, "length": LENGTHS, "at": [0, 3, 4, 3], "y": y_of(4, 2)}),
    "chain": (chain_with_noise, {"y": y_of(5, 2)}),
}
AT = {"speed": 0.7, "noise": 0.4, "slope": 0.8}


def by_curvature(model, data, at):
    """log of the integral over x of the density, from its peak and its curvature: exact for a quadratic form."""
    whole = cv.log_density(model, data)
    shape = whole.shapes["x"]

    def height(x):
        return whole({**at, "x": x.reshape(shape)})

    x = np.zeros(int(np.prod(shape)))
    curvature = -np.asarray(jax.hessian(height)(x))
    peak = np.linalg.solve(curvature, np.asarray(jax.grad(height)(x)))
    return float(height(peak)) - 0.5 * np.linalg.slogdet(curvature / (2.0 * np.pi))[1]


@pytest.mark.parametrize("kind", MODELS)
def test_the_integral_is_that_of_the_quadratic_form(kind):
    make, data = MODELS[kind]
    found = cv.log_density(make(), data, integrate=["x"])
    assert found.collapsed == ("x",)
    assert set(found.names) == set(AT)
    assert "integrated out: x" in repr(found)
    with jax.enable_x64(True):
        assert found(AT) == pytest.approx(by_curvature(make(), data, AT), abs=1e-10)
        for name in AT:
            above, below = ({**AT, name: AT[name] + step} for step in (1e-5, -1e-5))
            slope = (by_curvature(make(), data, above) - by_curvature(make(), data, below)) / 2e-5
            own = jax.grad(lambda v, name=name: found({**AT, name: v}))(np.float64(AT[name]))
            assert float(own) == pytest.approx(slope, rel=1e-6)


def squared(m, seen):
    m.random("y", cv.gaussian(seen**2, variance=1.0))


def counted(m, seen):
    m.random("y", cv.poisson(cv.exp(seen)))


def spread(m, seen):
    m.random("y", cv.gaussian(seen, variance=cv.exp(seen)))


@pytest.mark.parametrize("read_by", [squared, counted, spread])
def test_what_is_not_gaussian_about_the_chain_is_refused(read_by):
    data = {**MODELS["tree"][1], "y": np.ones((4, 2), int)}
    with pytest.raises(cv.UnsupportedError, match="otherwise than as a Gaussian"):
        cv.log_density(tree_with_noise(read_by), data, integrate=["x"])


def test_names_that_are_no_chains_are_refused():
    make, data = MODELS["chain"]
    with pytest.raises(cv.UnsupportedError, match="no chain or tree"):
        cv.log_density(make(), data, integrate=["speed"])
    with pytest.raises(cv.ModelError, match="no latent continuous variable"):
        cv.log_density(make(), data, integrate=["z"])


def test_a_factor_that_reads_two_chains_is_refused():
    m = cv.Model("two chains")
    t = m.plate("t")
    one, other = (
        m.chain(name, over=t, first=cv.gaussian(0.0, sd=1.0), then=lambda x: cv.gaussian(x, sd=1.0)) for name in "ab"
    )
    m.random("y", cv.gaussian(one + other, sd=1.0))
    with pytest.raises(cv.UnsupportedError, match="reads both"):
        cv.log_density(m, {"y": np.ones(4)}, integrate=["a", "b"])


def test_a_factor_that_reads_two_elements_is_refused():
    m = cv.Model("differences")
    t = m.plate("t")
    x = m.chain("x", over=t, first=cv.gaussian(0.0, sd=1.0), then=lambda x: cv.gaussian(x, sd=1.0))
    m.random("y", cv.gaussian(x[1:] - x[:-1], sd=1.0))
    with pytest.raises(cv.UnsupportedError):
        cv.log_density(m, {"y": np.ones(4)}, integrate=["x"])
