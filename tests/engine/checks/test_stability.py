"""posterior.stability(): the eigenvalues of a sweep at its fixed point, against known ones and measured rates."""

import numpy as np
import pytest

import cavity as cv
from cavity.engine.checks import stability

from ..run.test_damping import TIGHT, counts, location_and_scale, probit_rows, two_components


def sum_of_two(noise=0.5):
    """Two numbers of which the sum is seen, and the correlation that they have."""
    m = cv.Model("sum")
    a, b = m.random("a", cv.gaussian(0.0, variance=1.0)), m.random("b", cv.gaussian(1.0, variance=1.0))
    m.random("y", cv.gaussian(a + b, variance=noise))
    return m, {"y": 2.5}, -(1.0 / noise) / (1.0 + 1.0 / noise)


@pytest.mark.parametrize("noise", [0.1, 0.5, 2.0])
def test_two_gaussians_apart_contract_by_their_squared_correlation(noise):
    model, data, correlation = sum_of_two(noise)
    found = cv.infer(model, data, method="vmp", **TIGHT).stability()
    np.testing.assert_allclose(found.eigenvalues[0], correlation**2, rtol=1e-8)
    np.testing.assert_allclose(np.abs(found.eigenvalues[1:]), 0.0, atol=1e-8)
    assert found.stable


CASES = [(location_and_scale, "vmp"), (location_and_scale, "ep"), (probit_rows, "ep"), (counts, "ep")]
CASES += [(two_components, "vmp")]


@pytest.mark.parametrize(("make", "method"), CASES)
def test_unaccelerated_runs_contract_at_the_rate_it_tells(make, method):
    model, data, names = make()
    slow = cv.infer(model, data, method=method, acceleration=0, tolerance=1e-11, max_iterations=3000)
    found = cv.infer(model, data, method=method, **TIGHT).stability()
    residuals = slow.trace.residual
    late = residuals[(residuals < 1e-4) & (residuals > 1e-10)]
    if len(late) < 2:
        assert found.rate < 0.01  # too fast to be measured
        return
    np.testing.assert_allclose((late[-1] / late[0]) ** (1.0 / (len(late) - 1)), found.rate, rtol=0.15, atol=0.01)
    assert set(found.variables[0]) & set(names)


@pytest.mark.parametrize("make", [probit_rows, counts])
def test_a_matrix_products_and_differences_agree(make, monkeypatch):
    """Many messages have no matrix, and some sweeps no derivative."""
    model, data, _ = make()
    posterior = cv.infer(model, data, method="ep", **TIGHT)
    whole = posterior.stability(count=2)
    monkeypatch.setattr(stability, "DENSE", 0)
    np.testing.assert_allclose(np.abs(posterior.stability(count=2).eigenvalues), np.abs(whole.eigenvalues), rtol=1e-6)
    monkeypatch.setattr(stability, "_has_derivative", lambda probe: False)
    np.testing.assert_allclose(posterior.stability(count=1).rate, whole.rate, rtol=1e-3)


def test_one_pass_has_no_sweeps_and_no_fixed_point_is_refused():
    m = cv.Model("mean")
    mean = m.random("mean", cv.gaussian(0.0, variance=100.0))
    m.random("x", cv.gaussian(mean, precision=2.0))
    assert "One pass is exact" in str(cv.infer(m, {"x": 2.0}).stability())
    model, data, _ = sum_of_two(0.001)
    with pytest.warns(cv.CavityWarning):
        short = cv.infer(model, data, method="vmp", max_iterations=2, acceleration=0)
    with pytest.raises(cv.UnsupportedError, match="fixed point"):
        short.stability()


@pytest.mark.parametrize("method", ["vmp", "ep"])
def test_inputs_may_be_the_parameters_of_a_prior(method):
    m = cv.Model()
    n, k = m.plate("n"), m.plate("k", 2)
    rows = m.random("rows", cv.dirichlet(m.input("concentration", cv.vector(2), plates=k)), plates=k)
    z = m.random("z", cv.categorical([0.4, 0.6]), plates=n)
    m.random("x", cv.categorical(rows[z]), plates=n)
    data = {"x": [0, 0, 1, 1, 1], "concentration": [[3.0, 1.0], [1.0, 2.0]]}
    assert cv.infer(m, data, method=method).stability().stable
