"""Nothing is compiled for the first answers about a small model: who runs them is counted, whatever is asked.

An operation of JAX outside a traced function compiles too, twenty milliseconds each, hundreds of them here and there.
"""

import contextlib
import traceback

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cavity as cv
from cavity import models
from cavity.engine.support import compiled

RNG = np.random.default_rng(0)
X = RNG.normal(size=(18, 2))


@pytest.fixture
def count():
    """What was compiled since the test began: its name, and the calls that led there."""
    found = []

    def listen(event, seconds, **more):
        if event.endswith("backend_compile_duration"):
            found.append((more.get("fun_name"), "".join(traceback.format_stack(limit=30))))

    compiled.KEPT.clear()
    jax.clear_caches()  # what other tests have compiled would not be counted
    jax.monitoring.register_event_duration_secs_listener(listen)
    yield found
    jax.monitoring.unregister_event_duration_listener(listen)


def coin():
    m = cv.Model("coin")
    m.random("heads", cv.bernoulli(m.random("chance", cv.beta(1.0, 1.0))), plates=m.plate("throw"))
    return m, {"heads": X[:, 0] > 0}, {}, {"sizes": {"throw": 3}}


def normal():
    m = cv.Model("normal")
    mean, precision = m.random("mean", cv.gaussian(0.0, variance=9.0)), m.random("precision", cv.gamma(1.0, 1.0))
    m.random("y", cv.gaussian(mean, precision=precision), plates=m.plate("row"))
    return m, {"y": X[:, 0]}, {}, {"sizes": {"row": 3}}


def games():
    data = {"winner": [0, 0, 1, 2], "loser": [1, 2, 3, 3]}
    return models.skills(), data, {"sizes": {"player": 4}}, {"data": {"winner": [0, 1], "loser": [2, 3]}}


def logistic():
    return models.logistic_regression(2), {"x": X, "y": X[:, 0] > 0.3}, {}, {"data": {"x": X[:5]}}


def softmax():
    return models.softmax_regression(2, 3), {"x": X, "y": np.arange(18) % 3}, {}, {"data": {"x": X[:5]}}


def schools():
    m = cv.Model("schools")
    school = m.plate("school")
    mean, spread = m.random("mean", cv.gaussian(0.0, sd=5.0)), m.random("spread", cv.half_cauchy(5.0))
    effect = m.random("effect", cv.gaussian(mean, sd=spread), plates=school)
    m.random("y", cv.gaussian(effect, sd=m.input("sd", cv.positive, school)), plates=school)
    sd = np.linspace(9.0, 18.0, 8)
    return m, {"y": 10.0 * X[:8, 0], "sd": sd}, {}, {"data": {"sd": sd[:2]}}


def mixture():
    return models.mixture(2, 2), {"x": X + 3.0 * (X[:, :1] > 0)}, {"accuracy": "fast"}, None


def ask(marginal):
    """All that is asked of one marginal, where it has an answer."""
    for question in (
        lambda: (marginal.mean, marginal.sd, marginal.parameters, repr(marginal)),
        lambda: marginal.sample(0, (5,)),
        lambda: marginal.interval(0.8),
        lambda: marginal.log_density(np.zeros(marginal.sample(0).shape)),
    ):
        with contextlib.suppress(cv.UnsupportedError):
            question()


def test_what_is_counted(count):
    jnp.sin(jnp.ones(3) + 2.0)
    assert count


@pytest.mark.parametrize("build", [coin, normal, games, logistic, schools, mixture])
def test_answers_about_a_small_model_compile_nothing(build, count):
    model, data, options, new = build()
    posterior = cv.infer(model, data, **options)
    assert posterior.timing.interpreted
    for name in posterior:
        ask(posterior[name])
    if build is not mixture:  # the thousand draws of its verdict, and of what its factor does not tell, take longer
        assert posterior.summary()  # than compiling its density
        posterior.loo()
    assert posterior.explain()
    if new is not None:
        for marginal in posterior.predict(**{"data": {}, **new}).values():
            ask(marginal)
    assert count == []


@pytest.mark.parametrize("build", [coin, normal, games, schools])
def test_the_checks_of_a_small_model_compile_nothing(build, count):
    model, data, options, _ = build()
    posterior = cv.infer(model, data, **options)
    assert posterior.trust().level != "unchecked"
    posterior.evidence_gradient()
    cv.infer(model, data, prior=posterior, **options)
    if build is not schools:  # the prior of the spread is of no family
        assert posterior.contribution.naturals
    assert count == []


def test_joint_beliefs_and_their_priors_compile_nothing(count):
    model, data, options, new = softmax()
    posterior = cv.infer(model, data, accuracy="fast", **options)  # the beliefs, which weighted draws would correct
    ask(posterior["weight"])
    ask(posterior["score"])
    assert posterior.contribution.naturals
    for marginal in posterior.predict(**new).values():
        ask(marginal)
    assert count == []


def test_a_fit_and_its_predictions_compile_nothing(count):
    estimators = pytest.importorskip("cavity.models.estimators")
    found = estimators.LogisticRegression().fit(X, X[:, 0] > 0.3)
    assert found.predict_proba(X[:4]).shape == (4, 2)
    assert count == []
