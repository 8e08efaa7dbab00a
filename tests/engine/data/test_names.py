"""Names of a user's variables that a program would take for what it makes of the data of another one are refused."""

import numpy as np
import pytest

import cavity as cv
from cavity.compiler.data.keys import clash, joint_belief, prior_part


def regression(name):
    """y ~ N(w x, 1), the input x going by this name."""
    m = cv.Model()
    row = m.plate("row")
    x = m.input(name, cv.real, plates=row)
    w = m.random("w", cv.gaussian(0.0, variance=1.0))
    m.random("y", cv.gaussian(w * x, variance=1.0), plates=row)
    return m


@pytest.mark.parametrize("name", ["y present", "y given", "y is given", "y is missing", "y process", "w prior 0"])
def test_a_name_of_the_library_is_refused(name):
    data = {name: np.array([1.0, 2.0, 3.0]), "y": np.array([1.0, np.nan, 2.0])}
    with pytest.raises(cv.ModelError, match=f"declares '{name}'.*another name"):
        cv.infer(regression(name), data)
    with pytest.raises(cv.ModelError, match=f"declares '{name}'"):
        cv.compile(regression(name), ["y"])(data)


def test_such_a_name_may_stand_alone():
    m = cv.Model()
    present = m.random("z present", cv.gaussian(0.0, variance=1.0))
    m.random("y", cv.gaussian(present, variance=1.0))
    assert cv.infer(m, {"y": 1.0})["z present"].mean == pytest.approx(0.5, abs=1e-9)


def test_the_parts_of_a_belief_of_several_clash_too():
    assert clash(["a", "b", prior_part(("a", "b"), 1)]) == ("a, b prior 1", "a, b")
    assert clash(["a", "b", joint_belief("ab")]) == ("joint of a, b", "a, b")
    assert clash(["a", prior_part(("a", "b"), 1), joint_belief("ab")]) is None
