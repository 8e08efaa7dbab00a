"""A user's own factor: what it gives, and what is refused before anything is compiled."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
import scipy.stats

import cavity as cv
from cavity.factors import REGISTRY


def log_density(out, mean):
    return jax.scipy.stats.t.logpdf(out, 4.0, loc=mean)


def student():
    return cv.factor("student", out=cv.real, mean=cv.real, log_density=log_density)


def test_a_users_factor_under_ncvmp_is_the_best_gaussian():
    """The optimum of the bound over a Gaussian belief, found by a search over its two numbers with fine quadrature."""
    data = np.array([1.0, 2.0, 1.5, 6.0])
    m = cv.Model()
    n = m.plate("n")
    s = m.random("s", cv.gaussian(0.0, variance=10.0))
    m.random("y", student()(mean=s), plates=n)
    posterior = cv.infer(m, {"y": data}, method="ncvmp")
    z = np.linspace(-9, 9, 2001)
    weight = scipy.stats.norm.pdf(z) / scipy.stats.norm.pdf(z).sum()

    def bound(p):
        x = p[0] + np.exp(p[1]) * z
        log_joint = scipy.stats.t.logpdf(data[:, None], 4.0, loc=x).sum(0) + scipy.stats.norm.logpdf(x, 0, 10**0.5)
        return -(weight @ log_joint + p[1] + 0.5 * np.log(2 * np.pi * np.e))

    best = scipy.optimize.minimize(bound, [1.5, 0.0], tol=1e-12)
    assert posterior.converged
    np.testing.assert_allclose(posterior["s"].mean, best.x[0], rtol=1e-5)
    np.testing.assert_allclose(posterior["s"].sd, np.exp(best.x[1]), rtol=1e-5)
    np.testing.assert_allclose(posterior.log_evidence, -best.fun, rtol=1e-8)


def test_it_leaves_the_vocabulary_alone():
    before = set(REGISTRY)
    student()
    assert set(REGISTRY) == before
    student()  # the same name twice is two factors


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"log_density": 3.0}, "cannot be called"),
        ({"log_density": lambda out, location: 0.0 * out}, "'out' and as the keywords"),
        ({"log_density": lambda out, mean: jnp.stack([out, mean])}, "one real number per instance"),
        ({"log_density": lambda out, mean: jnp.log(-1.0 - out**2)}, "is NaN at"),
        ({"log_density": lambda out, mean: 1.0 if out > mean else 0.0 * out}, "without Python branches"),
        ({"mean": "real"}, "the domain of `mean`"),
        ({"name": "gaussian"}, "already part of the vocabulary"),
        ({"name": ""}, "non-empty string"),
    ],
)
def test_refusals(arguments, message):
    given = {"name": "student", "out": cv.real, "mean": cv.real, "log_density": log_density, **arguments}
    with pytest.raises(cv.ModelError, match=message):
        cv.factor(given.pop("name"), **given)


def test_wrong_arguments_are_told_with_the_variable():
    m = cv.Model()
    with pytest.raises(cv.ModelError, match=r"'y'.*takes the arguments mean; found location"):
        m.random("y", student()(location=0.0))
