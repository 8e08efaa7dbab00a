"""Long tables as data of two plates."""

import contextlib

import numpy as np
import pytest

import cavity as cv

TABLE = {"user": ["b", "a", "a"], "item": ["x", "x", "y"], "rating": [1.0, 2.0, 3.0]}
ASKED = {"rows": "user", "columns": "item", "value": "rating"}


def model():
    m = cv.Model()
    user, item = m.plate("user"), m.plate("item")
    a = m.random("a", cv.gaussian(0.0, variance=1.0), plates=user)
    b = m.random("b", cv.gaussian(0.0, variance=1.0), plates=item)
    m.random("rating", cv.gaussian(a + b, variance=1.0), plates=(user, item))
    return m


def test_a_matrix_with_names_and_gaps():
    found = cv.long(TABLE, **ASKED)
    np.testing.assert_array_equal(found.values, [[2.0, 3.0], [1.0, np.nan]])
    assert found.labels == (("a", "b"), ("x", "y"))


def test_inference_from_a_long_table():
    frames = [TABLE]
    for package in ("pandas", "polars"):
        with contextlib.suppress(ImportError):
            frames.append(__import__(package).DataFrame(TABLE))
    wide = cv.infer(model(), {"rating": np.array([[2.0, 3.0], [1.0, np.nan]])})
    for frame in frames:
        posterior = cv.infer(model(), {"rating": cv.long(frame, **ASKED)})
        assert posterior["a"]["b"] == wide["a"][1]
        assert posterior["rating"].sel(user="b", item="y").mean == wide["rating"].mean[1, 1]


def test_what_is_no_long_table():
    twice = {name: column * 2 for name, column in TABLE.items()}
    with pytest.raises(cv.DataError, match="2 rows are of user 'a' and item 'x'"):
        cv.long(twice, **ASKED)
    with pytest.raises(cv.DataError, match="no column 'stars'"):
        cv.long(TABLE, rows="user", columns="item", value="stars")
    with pytest.raises(cv.DataError, match="data frame"):
        cv.long(np.zeros((2, 2)), **ASKED)
