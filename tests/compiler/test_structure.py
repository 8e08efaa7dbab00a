"""Digests of structure: equal for what is declared twice, different wherever a program could be."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import cavity as cv
from cavity.compiler.structure import LARGEST, digest


def line(prior=1.0, rows=5, power=2, name="slope", shape=2.0, scale=None):
    m = cv.Model("line")
    row = m.plate("row", rows)
    x = m.input("x", cv.real, row)
    slope = m.random(name, cv.gaussian(0.0, variance=prior))
    noise = m.random("noise", cv.gamma(shape, 1.0))
    mean = slope * x**power if scale is None else slope * (x**power * scale)
    m.random("y", cv.gaussian(mean, precision=noise), row)
    return m


def of(model, **options):
    program = cv.compile(model, ["y"], **options)
    return digest(program.plan)


def test_a_model_that_is_declared_twice_has_one_digest():
    assert of(line()) == of(line()) is not None


@pytest.mark.parametrize(
    "changed",
    [
        {"prior": 2.0},
        {"prior": np.nextafter(1.0, 2.0)},
        {"rows": 6},
        {"power": 3},
        {"name": "gradient"},
        {"shape": 2},  # of another type only: the same program, compiled twice, which is allowed
        {"scale": np.array([1.0, 2.0, 3.0, 4.0, 5.0])},
    ],
    ids=str,
)
def test_whatever_is_changed_changes_it(changed):
    different = of(line(**changed)) != of(line())
    assert different or changed == {"shape": 2}


def test_methods_and_observations_change_it():
    digests = {of(line()), of(line(), method="vmp"), of(line(), method=cv.power(0.5)), of(line(), accuracy="best")}
    assert len(digests) >= 3
    assert digest(cv.compile(line(), []).plan) not in digests


def test_constants_are_compared_by_their_values():
    first, second = (of(line(scale=np.array([1.0, 2.0, 3.0, 4.0, last]))) for last in (5.0, 6.0))
    assert first != second


OF_A_USER = """
import cavity as cv
from cavity.compiler.structure import digest

def user(shift):
    def log_density(out, at):
        return -0.5 * (out - at - shift) ** 2
    return cv.factor("mine", out=cv.real, log_density=log_density, at=cv.real)

def mine(shift):
    m = cv.Model()
    m.random("y", user(shift)(m.random("at", cv.gaussian(0.0, variance=1.0))))
    return digest(cv.compile(m, ["y"]).plan)

print(mine(1.0) == mine(1.0) is not None, mine(1.0) != mine(2.0))
"""


def test_functions_of_a_user_are_compared_by_their_code_and_what_they_close_over():
    """In a process of its own: under the tests functions of cavity are wrapped by checks, which have no digest."""
    done = subprocess.run([sys.executable, "-c", OF_A_USER], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True"]


def test_what_is_known_by_identity_alone_has_no_digest():
    class Strange:
        pass

    assert digest(Strange()) is None
    assert digest(np.array([object()])) is None
    assert digest([1, {"a": Strange()}]) is None
    assert digest(np.zeros(LARGEST // 8 + 1)) is None


def test_nesting_types_and_sharing_are_part_of_it():
    a, b = line(), line()
    different = [
        (1,),
        [1],
        (1.0,),
        (True,),
        ((1,),),
        {"a": 1},
        {"b": 1},
        {1},
        frozenset({2}),
        "1",
        b"1",
        None,
        type(None),
        int,
        a.plates,
    ]
    assert len({digest(thing) for thing in different}) == len(different)
    assert digest(a.randoms["y"], a.randoms["y"]) != digest(a.randoms["y"], b.randoms["y"])
    assert digest({1, 2, 3}) == digest({3, 2, 1})
