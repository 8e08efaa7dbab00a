"""damping= keeps a share of the old in every step, and leaves fixed points where they are."""

import numpy as np
import pytest

import cavity as cv

TIGHT = {"tolerance": 1e-9, "max_iterations": 3000}


def probit_rows():
    """A probit regression: EP sites over a joint belief."""
    m = cv.Model("probit")
    row = m.plate("row")
    x = m.input("x", cv.real, plates=row)
    slope, bias = (m.random(name, cv.gaussian(0.0, variance=4.0)) for name in ("slope", "bias"))
    m.random("y", cv.bernoulli(cv.probit(slope * x + bias)), plates=row)
    return m, {"x": np.array([-1.0, 0.5, 2.0, 0.1]), "y": np.array([False, True, True, False])}, ("slope", "bias")


def location_and_scale():
    """A mean and a precision: conjugate updates of VMP."""
    m = cv.Model("location and scale")
    row = m.plate("row")
    mean, precision = m.random("mean", cv.gaussian(0.0, variance=9.0)), m.random("precision", cv.gamma(2.0, 2.0))
    m.random("y", cv.gaussian(mean, precision=precision), plates=row)
    return m, {"y": np.array([0.3, 1.4, 2.2, -0.4, 1.0])}, ("mean", "precision")


def counts():
    """Poisson counts with a log rate: not conjugate, NCVMP or EP by quadrature."""
    m = cv.Model("counts")
    row = m.plate("row")
    rate = m.random("rate", cv.gaussian(0.0, variance=4.0))
    m.random("y", cv.poisson(cv.exp(rate)), plates=row)
    return m, {"y": np.array([3, 5, 2, 4])}, ("rate",)


def two_components():
    """A mixture of two Gaussians with random weights."""
    m = cv.Model("two components")
    row, k = m.plate("row"), m.plate("k", 2)
    share = m.random("share", cv.dirichlet(np.ones(2)))
    mean = m.random("mean", cv.gaussian(0.0, variance=25.0), plates=k)
    z = m.random("z", cv.categorical(share), plates=row)
    m.random("y", cv.gaussian(mean[z], variance=1.0), plates=row)
    rng = np.random.default_rng(0)
    return m, {"y": np.concatenate([rng.normal(-2.0, 1.0, 12), rng.normal(3.0, 1.0, 8)])}, ("mean",)


CASES = [
    (probit_rows, "ep"),
    (probit_rows, "vmp"),
    (probit_rows, cv.power(0.5)),
    (location_and_scale, "vmp"),
    (location_and_scale, "ep"),
    (counts, "ncvmp"),
    (counts, "ep"),
    (two_components, "vmp"),
]


@pytest.mark.parametrize(("make", "method"), CASES, ids=lambda case: getattr(case, "__name__", str(case)))
def test_fixed_points_stay_where_they_are(make, method):
    model, data, names = make()
    plain = cv.infer(model, data, method=method, **TIGHT)
    kept = cv.infer(model, data, method=method, damping=0.4, **TIGHT)
    assert plain.converged
    assert kept.converged
    np.testing.assert_allclose(kept.log_evidence, plain.log_evidence, rtol=1e-9)
    for name in names:
        np.testing.assert_allclose(kept[name].mean, plain[name].mean, rtol=1e-6)


@pytest.mark.parametrize(("make", "method"), [(location_and_scale, "vmp"), (counts, "ncvmp"), (probit_rows, "ep")])
def test_a_plain_run_keeps_the_share_that_was_asked_for(make, method):
    """Without extrapolation, what is left of the distance after a sweep is (1 - damping) rate + damping: nearly it."""
    model, data, _ = make()
    plain, kept = (cv.infer(model, data, method=method, acceleration=0, damping=share, **TIGHT) for share in (0.0, 0.9))
    residuals = kept.trace.residual[-12:-2]
    rate = (residuals[-1] / residuals[0]) ** (1.0 / (len(residuals) - 1))
    assert 0.85 <= rate < 1.0  # a rate of the undamped sweep below zero (it overshoots) lowers it a little
    assert kept.iterations > 3 * plain.iterations


@pytest.mark.parametrize("damping", [1.0, -0.1, True, "some", float("nan")])
def test_what_is_no_share_is_refused(damping):
    model, data, _ = counts()
    with pytest.raises(cv.ModelError, match="damping= is the share"):
        cv.infer(model, data, damping=damping)
