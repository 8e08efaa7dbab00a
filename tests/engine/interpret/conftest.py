"""What the tests of this room share: a function interpreted beside the same function compiled."""

import pickle

import jax
import numpy as np
import pytest

from cavity.engine.interpret.interpreter import Interpreter
from cavity.engine.interpret.writing import written


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


@pytest.fixture
def agree():
    """Asserts that NumPy and XLA give a function's outputs the same form, and numbers that differ by rounding alone."""

    def check(function, *arguments, tolerance=1e-14):
        arguments = jax.tree.map(np.asarray, arguments)
        program = written(jax.make_jaxpr(function)(*arguments))
        found = Interpreter(program)(*jax.tree.leaves(arguments))
        kept = Interpreter(pickle.loads(pickle.dumps(program)))(*jax.tree.leaves(arguments))
        assert [own.tobytes() for own in kept] == [own.tobytes() for own in found]  # as the next process reads it
        wanted = [np.asarray(leaf) for leaf in jax.tree.leaves(jax.jit(function)(*arguments))]
        assert len(found) == len(wanted)
        for own, other in zip(found, wanted, strict=True):
            assert (own.dtype, own.shape) == (other.dtype, other.shape)
            exact = other.dtype.kind != "f"
            np.testing.assert_allclose(own, other, rtol=0.0 if exact else tolerance, atol=0.0 if exact else 1e-300)

    return check
