"""One logistic factor under one Gaussian prior: what each bound makes of mean and variance."""

from __future__ import annotations

import numpy as np
import pytest

import cavity as cv

# (prior mean, prior variance) -> (mean, variance) of sigma(x) N(x): exact, then the fixed points of NCVMP by
# quadrature, of the tilted bound and of the quadratic bound; computed independently to the printed digits.
TOY = {
    (0.0, 10.0): ((2.206, 5.134), (2.187, 4.900), (2.245, 3.648), (1.922, 3.844)),
    (-5.0, 10.0): ((0.0, 4.055), (0.0, 3.972), (0.0, 2.857), (0.0, 3.361)),
    (-10.0, 10.0): ((-2.206, 5.134), (-2.187, 4.900), (-2.245, 3.648), (-1.922, 3.844)),
    (5.0, 10.0): ((5.461, 8.031), (5.487, 7.699), (5.593, 6.419), (5.430, 5.430)),
    (10.0, 10.0): ((10.026, 9.810), (10.031, 9.763), (10.048, 9.540), (10.157, 6.771)),
    (0.0, 1.0): ((0.413, 0.829), (0.413, 0.829), (0.414, 0.805), (0.406, 0.812)),
    (0.0, 50.0): ((5.468, 20.10), (5.422, 16.07), (5.444, 8.545), (4.439, 8.879)),
}
METHODS = ("ep", *({"y": cv.ncvmp(bound=bound)} for bound in ("quadrature", "tilted", "jaakkola")))


@pytest.mark.parametrize("column", range(4), ids=("exact", "quadrature", "tilted", "jaakkola"))
def test_the_toy_posterior(column):
    """EP is exact here: there is one factor, whose moments it matches."""
    m = cv.Model("toy")
    row = m.plate("row")
    mean, variance = m.input("mean", cv.real, plates=row), m.input("variance", cv.positive, plates=row)
    x = m.random("x", cv.gaussian(mean, variance=variance))
    m.random("y", cv.bernoulli(cv.logistic(x)))
    means, variances = np.array(list(TOY)).T
    data = {"mean": means, "variance": variances, "y": np.ones(len(TOY), bool)}
    posterior = cv.infer(m, data, method=METHODS[column], tolerance=1e-9)
    assert posterior.converged, posterior.diagnosis
    expected = np.array([columns[column] for columns in TOY.values()])
    mean_error, variance_error = np.abs(np.array([posterior["x"].mean, posterior["x"].variance]) - expected.T)
    assert np.all(mean_error < 5e-4)
    assert np.all(variance_error < np.where(expected[:, 1] > 10.0, 5e-3, 5e-4))  # half of the last digit printed
