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


def declared(**more):
    """The waiting time until an event of a random rate."""
    return cv.factor(
        "waiting",
        out=cv.positive,
        rate=cv.positive,
        log_density=lambda out, rate: jnp.log(rate) - rate * out,
        **more,
    )


def test_what_is_declared_is_used():
    """A conjugate average and a link density: the exact Gamma posterior, and the density at an extreme rate."""
    waiting = declared(
        expected_log=lambda out, rate: rate.log - rate.mean * out.mean,
        link_densities={"exp": lambda out, s: s - out * jnp.exp(s)},
    )
    m = cv.Model()
    rate = m.random("rate", cv.gamma(2.0, 1.0))
    m.random("wait", waiting(rate), plates=m.plate("n"))
    posterior = cv.infer(m, {"wait": [0.3, 1.2, 0.7]}, method="vmp")
    np.testing.assert_allclose(posterior["rate"].mean, 5.0 / 3.2, rtol=1e-8)
    m = cv.Model()
    m.random("wait", waiting(cv.exp(m.random("s", cv.gaussian(0.0, variance=1.0)))))
    found = cv.log_density(m, {"wait": 1.0})({"s": jnp.asarray(-800.0)})  # exp(s) alone would be zero
    np.testing.assert_allclose(found, -800.0 + scipy.stats.norm.logpdf(-800.0), rtol=1e-12)


def test_what_is_unsupported_is_refused_with_the_reason():
    m = cv.Model()
    rate = m.random("rate", cv.gamma(2.0, 1.0))
    m.random("wait", declared(unsupported={"rate": "its average is infinite; use method='ep'"})(rate))
    with pytest.raises(cv.UnsupportedError, match="its average is infinite; use method='ep'"):
        cv.infer(m, {"wait": 1.0}, method="vmp")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"expected_log": lambda out, rate: rate.mean * out.mean}, "at the point"),
        ({"expected_log": lambda out: 0.0}, "expected_log"),
        ({"predict": lambda: 0.0}, "predict"),
        ({"unsupported": {"scale": "it is not there"}}, "unsupported= speaks of 'scale'"),
        ({"link_densities": {"cube": lambda out, s: 0.0}}, "which is no link"),
        ({"link_densities": {"exp": 3.0}}, "cannot be called"),
    ],
)
def test_declarations_that_contradict_the_density_are_refused(more, message):
    with pytest.raises(cv.ModelError, match=message):
        declared(**more)


def test_a_name_that_joined_the_vocabulary_later_stays_the_users():
    """Programs of before 0.6.0 may have a Weibull of their own: theirs is used, whatever `cv.weibull` is."""

    def log_density(out, shape, scale):
        ratio = out / scale
        return jnp.log(shape) - jnp.log(scale) + (shape - 1.0) * jnp.log(ratio) - ratio**shape - 1.0  # not normalised

    own = cv.factor("weibull", out=cv.positive, shape=cv.positive, scale=cv.positive, log_density=log_density)
    found = []
    for builder in (own, cv.weibull):
        m = cv.Model()
        scale = m.random("scale", cv.gamma(3.0, 2.0))
        m.random("y", builder(shape=2.0, scale=scale))
        found.append(cv.infer(m, {"y": 1.5}, method="ep").log_evidence)
    assert found[0] == pytest.approx(found[1] - 1.0, abs=1e-6)


@pytest.mark.parametrize(
    ("declared", "text"),
    [
        ({"expected_log": lambda out, rate: out.no_such_moment * rate.mean}, "expected_log fails at ordinary moments"),
        ({"expected_log": lambda out, rate: jnp.zeros(3)}, r"expected_log gives shape \(3,\)"),
        ({"predict": lambda rate: rate.mean}, "predict gives"),
        ({"predict": lambda rate: rate.nothing}, "predict fails at ordinary moments"),
    ],
)
def test_what_is_declared_is_tried_at_once(declared, text):
    def log_density(out, rate):
        return jnp.log(rate) - rate * out

    with pytest.raises(cv.ModelError, match=text):
        cv.factor("waiting", out=cv.positive, rate=cv.positive, log_density=log_density, **declared)
