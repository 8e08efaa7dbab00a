"""Chains that are kept between calls: nothing is traced again for the same data, and nothing is kept for others."""

import numpy as np

import cavity as cv
from cavity.engine.sampling import sample

Y = np.array([1.0, 2.0, 4.0])


def draws(y, seed=0):
    m = cv.Model("normal")
    centre = m.random("centre", cv.gaussian(0.0, sd=3.0))
    m.random("y", cv.gaussian(centre, sd=1.0), plates=m.plate("row"))
    return cv.sample(m, {"y": y}, draws=20, warmup=5, chains=2, seed=seed, progress=False)["centre"]


def forget():
    sample.PLANS.clear()
    sample.KEPT.clear()


def test_the_same_model_and_data_plan_and_compile_once(monkeypatch):
    first = draws(Y)
    monkeypatch.setattr(sample, "_kernel", None)  # whatever compiles anew fails
    other = draws(Y, seed=1)
    monkeypatch.setattr(sample, "plan", None)  # whatever plans anew fails
    again = draws(Y.copy())  # the model is declared again too
    np.testing.assert_array_equal(first, again)
    monkeypatch.undo()
    forget()
    np.testing.assert_array_equal(first, draws(Y))
    forget()
    np.testing.assert_array_equal(other, draws(Y, seed=1))


def test_other_data_of_the_same_shape_have_other_answers():
    forget()
    fresh = draws(Y + 10.0)
    forget()
    draws(Y)
    after = draws(Y + 10.0)
    np.testing.assert_array_equal(after, fresh)
    assert after.mean() > draws(Y).mean() + 5.0


def regression(x):
    m = cv.Model("regression")
    row = m.plate("row")
    w = m.random("w", cv.vector_gaussian(np.zeros(3), covariance=np.eye(3)))
    m.random("y", cv.gaussian(cv.dot(w, m.input("x", cv.vector(3), plates=row)), sd=1.0), plates=row)
    return cv.sample(m, {"x": x, "y": x[:, 0]}, draws=4, warmup=1, chains=1, progress=False)["w"]


def test_data_of_more_than_a_megabyte_are_told_apart_and_compile_once(monkeypatch):
    forget()
    x = np.random.default_rng(0).normal(size=(50_000, 3))
    changed = x.copy()
    changed[-1, 2] += 1e-9
    first = regression(x)
    regression(changed)
    assert len(sample.KEPT) == 2
    monkeypatch.setattr(sample, "_kernel", None)
    np.testing.assert_array_equal(regression(x.copy()), first)


def test_very_large_data_are_not_kept_alive(monkeypatch):
    forget()
    monkeypatch.setattr(sample, "MOST_KEPT", 1_000)
    regression(np.random.default_rng(0).normal(size=(50, 3)))
    assert len(sample.KEPT) == 0
