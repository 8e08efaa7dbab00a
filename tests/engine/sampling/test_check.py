"""`posterior.check()` by Gibbs sampling: what is right agrees, what is wrong does not, states are compared."""

import dataclasses

import numpy as np
import pytest

import cavity as cv

pytest.importorskip("numpyro")


def two_causes():
    m = cv.Model("causes")
    a, b = m.random("a", cv.bernoulli(0.3)), m.random("b", cv.bernoulli(0.6))
    m.constrain(a | b)
    return cv.infer(m, {})


def test_without_a_density_of_numbers_the_states_are_compared():
    found = two_causes().check(draws=500)
    assert found.by == "Gibbs"
    assert found.ok
    assert {row.name for row in found.rows} == {"a", "b"}
    assert all(row.chances for row in found.rows)
    assert "agrees with Gibbs" in str(found)


def test_a_probability_that_is_off_differs():
    found = two_causes().check("gibbs", draws=500)
    first = found.rows[0]
    wrong = dataclasses.replace(found, rows=(first._replace(mean=first.mean + 0.1), *found.rows[1:]))
    assert not wrong.ok
    assert "differs from Gibbs in 'a'" in wrong.verdict


def test_numbers_that_a_constraint_cuts():
    m = cv.Model("order")
    x, y = (m.random(name, cv.gaussian(0.0, variance=1.0)) for name in "xy")
    m.constrain(x > y)
    m.random("seen", cv.gaussian(x + y, variance=1.0))
    found = cv.infer(m, {"seen": 1.0}).check(draws=1000)
    assert found.by == "Gibbs"
    assert found.ok, found


def test_classes_with_an_order_agree_and_are_compared():
    rng = np.random.default_rng(0)
    m = cv.Model("classes")
    n = m.plate("n")
    z = m.random("z", cv.bernoulli(m.random("share", cv.beta(2.0, 2.0))), plates=n)
    m.random("y", cv.switch(z, cv.gaussian(2.0, variance=1.0), cv.gaussian(-2.0, variance=1.0)))
    posterior = cv.infer(m, {"y": np.concatenate([rng.normal(-2, 1, 5), rng.normal(2, 1, 10)])})
    found = posterior.check("gibbs", draws=800)
    assert found.ok, found
    assert next(row for row in found.rows if row.name == "z").mean.shape == (15,)


def test_another_sampler_is_refused():
    with pytest.raises(cv.ModelError, match="nuts, gibbs, auto"):
        two_causes().check("hmc")
