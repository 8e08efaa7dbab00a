"""All orders of components that are alike: beside enumeration, and in the evidence from beliefs that name them."""

import itertools

import jax
import numpy as np
import pytest
from scipy.special import logsumexp

import cavity as cv
from cavity.compiler.symmetry import interchangeable
from cavity.engine.data.rules_of_arguments import bind_checked
from cavity.engine.tempering.evidence import path_of
from cavity.engine.tempering.orders import log_permanent, orders_of, shares_of

from .known_evidences import MODELS, RANDOM


@pytest.mark.slow
@pytest.mark.parametrize("name", ["two_classes", "three_classes"])
@pytest.mark.parametrize("method", ["vmp", "ep"])
def test_a_path_from_beliefs_counts_all_orders_of_components(name, method):
    m, data, truth = MODELS[name]()
    posterior = cv.infer(m, data, method=method, restarts=4, seed=0)
    found = cv.evidence(m, data, posterior, sweeps=512, progress=False)
    if np.ptp(posterior["centre"].mean) < 1e-4:  # beliefs that are alike hold all orders already: none is lacking
        assert abs(found.orders) < 1e-6
    else:
        assert 0.0 < found.orders < np.log(6.0) + 0.01
    assert abs(found.log_evidence - truth) < 3.5 * found.standard_error + 0.02
    assert f"add {max(found.orders, 0.0):.2f}" in found.explain()


def test_orders_are_summed_as_by_enumeration():
    tables = RANDOM.normal(scale=3.0, size=(5, 4, 4))
    found = log_permanent(tables)
    orders = list(itertools.permutations(range(4)))
    wanted = logsumexp([[t[range(4), order].sum() for order in orders] for t in tables], axis=1)
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_the_named_share_is_that_of_all_orders_of_the_beliefs():
    """log r under each order of the components, by its own density, beside the sum of what components add."""
    m, data, _ = MODELS["three_classes"]()
    posterior = cv.infer(m, data, method="vmp", seed=0)
    with jax.enable_x64(True):
        path = path_of(m, bind_checked(m, data), posterior, 1.5)
        drawn = jax.vmap(lambda key: path.drawn(key, path.arrays))(jax.random.split(jax.random.key(0), 3))
        orders = list(itertools.permutations(range(3)))
        logs = [[sum(_of_beliefs(path, _renamed(drawn, draw, order))) for order in orders] for draw in range(3)]
        share = np.array(logs)[:, 0] - logsumexp(logs, axis=1)
        named = jax.vmap(orders_of(path, interchangeable(posterior.graph)).named)(drawn)
    found = shares_of(np.asarray(named)[:, None, None])
    assert found.orders == pytest.approx(np.log(6.0) + logsumexp(share) - np.log(3.0), abs=1e-9)
    np.testing.assert_allclose(found.weights[:, 0, 0], np.exp(share) / np.exp(share).mean(), rtol=1e-9)


def _renamed(drawn, draw, order):
    """A draw whose component k is called order[k]."""
    values = {name: np.asarray(value)[draw] for name, value in drawn.items()}
    back = np.argsort(order)
    own = {name: values[name][back] for name in ("share", "precision", "centre")}
    return {**own, "z": np.array(order)[values["z"]]}


def _of_beliefs(path, values):
    return [float(np.sum(belief.log_density(values[name]))) for name, belief in path.beliefs.items()]


def test_orders_of_other_weights_are_told():
    """Shares that are not alike: the other order is a mode of its own, which a path from beliefs may not meet."""
    m = cv.Model()
    n, k = m.plate("n"), m.plate("k", 2)
    share = m.random("share", cv.dirichlet([1.0, 4.0]))
    centre = m.random("centre", cv.gaussian(0.0, sd=4.0), plates=k)
    z = m.random("z", cv.categorical(share), plates=n)
    m.random("y", cv.gaussian(centre[z], sd=1.0), plates=n)
    data = {"y": np.array([-3.0, -2.5, 2.0, 2.6])}
    posterior = cv.infer(m, data, method="vmp", seed=0)
    with jax.enable_x64(True):
        path = path_of(m, bind_checked(m, data), posterior, 1.5)
        assert orders_of(path, interchangeable(posterior.graph)) == ("centre", None)
