"""Parity of an expression in a variable, against its values at x and -x."""

import numpy as np
import pytest

import cavity as cv
from cavity.compiler.algebra.parity import EVEN, FREE, NEITHER, ODD, parity


class Numbers:
    """The functions of the language that a shape below uses, for arrays."""

    max, exp = staticmethod(np.maximum), staticmethod(np.exp)


SHAPES = {
    "x": lambda x, z, f: x,
    "-x": lambda x, z, f: -x,
    "x^2": lambda x, z, f: x**2,
    "x^3": lambda x, z, f: x**3,
    "x x": lambda x, z, f: x * x,
    "x z": lambda x, z, f: x * z,
    "x^2 z": lambda x, z, f: x**2 * z,
    "x z x": lambda x, z, f: (x * z) * x,
    "2 x^2 - 1": lambda x, z, f: 2.0 * x**2 - 1.0,
    "x + z": lambda x, z, f: x + z,
    "x + x^3": lambda x, z, f: x + x**3,
    "x + x^2": lambda x, z, f: x + x**2,
    "(x + z)^2": lambda x, z, f: (x + z) ** 2,
    "exp x": lambda x, z, f: f.exp(x),
    "exp x^2": lambda x, z, f: f.exp(-(x**2)),
    "|x|": lambda x, z, f: f.max(x, -x),
    "|x|, turned": lambda x, z, f: f.max(-x, x),
    "max(x, z)": lambda x, z, f: f.max(x, z),
    "max(x^2, z)": lambda x, z, f: f.max(x**2, z),
    "z^2": lambda x, z, f: z**2,
}


@pytest.mark.parametrize("shape", SHAPES)
def test_parity_is_what_values_show(shape):
    m = cv.Model()
    x, z = (m.random(name, cv.gaussian(0.0, variance=1.0)) for name in "xz")
    found = parity(SHAPES[shape](x, z, cv), x)
    here, there = (
        SHAPES[shape](np.array([-1.3, 0.4, 2.1]) * sign, np.array([0.7, -0.2, 1.1]), Numbers) for sign in (1, -1)
    )
    free, even, odd = "x" not in shape, np.allclose(here, there), np.allclose(here, -there)
    assert found == (FREE if free else EVEN if even else ODD if odd else NEITHER)
