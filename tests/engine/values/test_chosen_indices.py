"""Index data that a random variable chooses, x[index[z]], against enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import cavity as cv

close = np.testing.assert_allclose
PRIOR, INDEX = np.array([0.2, 0.3, 0.5]), np.array([0, 1, 1])


def chosen(number, elements=2):
    """The model, its plate of elements, the index data and the choice."""
    m = cv.Model()
    case, element = m.plate("case", 3), m.plate("element", elements)
    index = m.input("index", cv.index(element), plates=case)
    return m, element, index, m.random("z", cv.categorical(PRIOR), plates=m.plate("row", number))


def test_data_chosen_by_a_chosen_index():
    m, element, index, z = chosen(2)
    x = m.input("x", cv.real, plates=element)
    where = m.let("where", index[z])
    m.random("y", cv.gaussian(x[where], variance=1.0))
    y, values = np.array([0.4, 2.5]), np.array([-1.0, 2.0])
    posterior = cv.infer(m, {"index": INDEX, "x": values, "y": y})
    weights = PRIOR * stats.norm.pdf(y[:, None], values[INDEX])
    close(posterior["z"].mean, weights / weights.sum(1, keepdims=True), rtol=1e-9)
    close(posterior.log_evidence, np.log(weights.sum(1)).sum(), rtol=1e-9)


def test_variables_chosen_by_a_chosen_index():
    """One row: EP matches the moments of the mixture of the three cases."""
    m, element, index, z = chosen(1, 3)
    prior, order = np.array([-1.0, 1.0, 0.5]), np.array([2, 0, 1])
    w = m.random("w", cv.gaussian(prior, variance=1.0), plates=element)
    m.random("y", cv.gaussian(w[index[z]], variance=1.0))
    posterior = cv.infer(m, {"index": order, "y": [1.5]}, method="ep")
    weights = PRIOR * stats.norm.pdf(1.5, prior[order], np.sqrt(2.0))
    share = weights / weights.sum()
    close(posterior["z"].mean[0], share, rtol=1e-6)
    close(posterior.log_evidence, np.log(weights.sum()), rtol=1e-6)
    seen = np.zeros(3)
    seen[order] = share
    close(posterior["w"].mean, prior + seen * (1.5 - prior) / 2.0, rtol=1e-6)


def test_an_index_that_is_compared():
    m, _, index, z = chosen(1)
    first = m.let("first", index[z] == 1)
    posterior = cv.infer(m, {"index": INDEX, "first": [True]})
    assert first.domain.kind == "boolean"
    close(posterior["z"].mean[0], [0.0, 0.375, 0.625], atol=1e-12)


def test_a_plate_that_would_be_indexed_twice_is_refused():
    m, element, index, z = chosen(1)
    w = m.random("w", cv.gaussian(0.0, variance=1.0), plates=(m.plates["case"], element))
    with pytest.raises(cv.ModelError, match=r"has that plate itself. Give the index data a plate of its own"):
        w[index[z]]
