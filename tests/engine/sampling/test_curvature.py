"""Precisions of Gaussian conditionals: the short ways to them give what second derivatives give."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cavity as cv
from cavity.engine.sampling.choose import start
from cavity.engine.sampling.conditionals.curvature import curvature_of
from cavity.engine.sampling.conditionals.gaussian import precision_by_lane
from cavity.engine.sampling.conditionals.lanes import lanes_of
from cavity.engine.sampling.conditionals.predictors import through_predictors
from cavity.engine.sampling.sample import joint_of
from cavity.models import nsfa

RANDOM = np.random.default_rng(3)
TABLE = RANDOM.normal(size=(5, 7))
GAPS = np.where(RANDOM.random(TABLE.shape) < 0.3, np.nan, TABLE)


@pytest.fixture(autouse=True)
def _double():
    with jax.enable_x64(True):
        yield


def hierarchy():
    m = cv.Model("hierarchy")
    group, each = m.plate("group"), m.plate("each")
    centre = m.random("centre", cv.gaussian(0.0, sd=10.0))
    between = m.random("between", cv.gamma(2.0, 1.0))
    within = m.random("within", cv.gamma(2.0, 1.0))
    effect = m.random("effect", cv.gaussian(centre, precision=between), plates=group)
    m.random("y", cv.gaussian(effect, precision=within), plates=(group, each))
    return m, {"y": TABLE}


def covariate():
    """A slope by row on a number by row and sample, gaps, and a product of two random numbers in the mean."""
    m = cv.Model("covariate")
    row, sample = m.plate("row"), m.plate("sample")
    x = m.input("x", cv.real, plates=(row, sample))
    slope = m.random("slope", cv.gaussian(0.0, sd=1.0), plates=row)
    gain = m.random("gain", cv.gaussian(1.0, sd=1.0), plates=sample)
    noise = m.random("noise", cv.gamma(2.0, 1.0), plates=sample)
    m.random("y", cv.gaussian(slope * gain * x + 1.0, precision=noise))
    return m, {"x": RANDOM.normal(size=TABLE.shape), "y": GAPS}


LANES = {
    "hierarchy": (hierarchy(), "effect"),
    "slope": (covariate(), "slope"),
    "gain": (covariate(), "gain"),
} | {
    f"{name} {sparsity} {noise} {'gaps' if y is GAPS else ''}": ((nsfa(3, sparsity, noise=noise), {"y": y}), name)
    for sparsity in ("spike", "none")
    for noise in ("per row", "shared")
    for y in (TABLE, GAPS)
    for name in ("loading", "score")
}


@pytest.mark.parametrize("case", LANES)
def test_through_predictors(case):
    (model, data), name = LANES[case]
    joint = joint_of(model, data, None, {}, 0)
    values, lanes = start(joint, jax.random.key(0)), lanes_of(joint, name)
    factors = tuple(factor for factor in joint.touching([name]) if factor != name)
    assert "y" in through_predictors(joint, name, factors)
    found = precision_by_lane(joint, name, lanes, factors, values, joint.arrays)
    rows = jnp.zeros((lanes.count, lanes.size))
    wanted = lanes.precision(lambda x: joint.finite(factors, {**values, name: lanes.back(x)}, joint.arrays), rows)
    np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-12 * float(jnp.abs(wanted).max()))


def _precision(joint, names):
    """Of all elements of some variables, by second derivatives at zero, and the values of the others."""
    from jax.flatten_util import ravel_pytree

    values, factors = start(joint, jax.random.key(0)), joint.touching(names)
    at, back = ravel_pytree({name: values[name] for name in names})
    others = {name: array for name, array in values.items() if name not in names}

    def precision(values, data):
        return -jax.hessian(lambda x: joint.finite(factors, {**values, **back(x)}, data))(at)

    return precision, others


def test_affine_in_two_precisions():
    joint = joint_of(*hierarchy(), None, {}, 0)
    precision, others = _precision(joint, ("centre", "effect"))
    curvature = curvature_of(joint, precision, others)
    assert curvature.precision is not precision
    for seed in range(3):
        size = jax.random.gamma(jax.random.key(seed), 1.0, (2,))
        moved = {**others, "between": size[0], "within": 50.0 * size[1]}
        wanted = precision(moved, joint.arrays)
        np.testing.assert_allclose(curvature.precision(moved, joint.arrays), wanted, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(
            curvature.root(moved, joint.arrays), jnp.linalg.cholesky(wanted), rtol=1e-8, atol=1e-8
        )


def test_what_is_no_affine_function_stays():
    """Half of the slopes' precision is a square of the gains: derivatives again at each step."""
    joint = joint_of(*covariate(), None, {}, 0)
    precision, others = _precision(joint, ("slope",))
    assert curvature_of(joint, precision, others).precision is precision


def test_a_constant_is_computed_once():
    m = cv.Model("probit")
    row = m.plate("row")
    w = m.random("w", cv.vector_gaussian(np.zeros(2), covariance=np.eye(2)))
    x = m.input("x", cv.vector(2), plates=row)
    m.random("y", cv.bernoulli(cv.probit(cv.dot(w, x))))
    x_of = RANDOM.normal(size=(6, 2))
    joint = joint_of(m, {"x": x_of, "y": np.arange(6) % 2}, None, {}, 0)
    precision, others = _precision(joint, ("w",))
    found = curvature_of(joint, precision, others).precision({}, {})  # reads nothing
    np.testing.assert_allclose(found, np.eye(2) + x_of.T @ x_of, rtol=1e-12)


def test_a_gate_on_a_number_is_no_affine_function():
    """Its precision jumps where the number changes its sign, which no derivative tells."""
    m = cv.Model("gate on a number")
    x = m.random("x", cv.gaussian(0.0, variance=1.0))
    w = m.random("w", cv.gaussian(0.0, variance=1.0))
    m.random("y", cv.switch(x > 0, cv.gaussian(w, variance=1.0), cv.gaussian(w, variance=0.01)))
    joint = joint_of(m, {"y": np.array(1.0)}, None, {}, 0)
    precision, others = _precision(joint, ("w",))
    curvature = curvature_of(joint, precision, others)
    for at, wanted in ((1.0, 2.0), (-1.0, 101.0)):
        found = curvature.precision({**others, "x": jnp.asarray(at)}, joint.arrays)
        np.testing.assert_allclose(found, [[wanted]], rtol=1e-12)
