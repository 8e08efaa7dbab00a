"""Under the tests the annotations of the modules listed in tests/common/held_annotations.py hold."""

import importlib
import os
import subprocess
import sys
from pathlib import Path

import held_annotations
import jax
import jax.numpy as jnp
import jaxtyping
import pytest

from cavity.factors.quadrature import bracketed_newton
from cavity.factors.special import lgamma

pytestmark = pytest.mark.skipif("CAVITY_UNCHECKED" in os.environ, reason="annotations are not checked")


def halves(low, high):
    return bracketed_newton(lambda x: (1.0 - x, -jnp.ones_like(x)), low, high, 20)


def test_right_shapes_pass():
    assert jnp.allclose(halves(jnp.zeros(3), jnp.full(3, 4.0)), 1.0)


@pytest.mark.parametrize("high", [jnp.ones(4), jnp.ones((3, 1)), jnp.ones(3, int), 1.0])
def test_a_wrong_shape_or_type_is_refused(high):
    with pytest.raises(jaxtyping.TypeCheckError, match="high"):
        halves(jnp.zeros(3), high)


def test_a_wrong_shape_is_refused_under_compilation_too():
    with pytest.raises(jaxtyping.TypeCheckError, match="high"):
        jax.jit(halves)(jnp.zeros(3), jnp.ones(4))


def test_what_is_no_number_is_refused():
    with pytest.raises(jaxtyping.TypeCheckError, match="parameter 'x'"):
        lgamma([1.0, 2.0])


@pytest.mark.parametrize("name", held_annotations.MODULES)
def test_every_module_of_the_list_is_there_and_checked(name):
    loader = importlib.import_module(name).__spec__.loader
    assert type(loader).__module__.startswith("jaxtyping")


def test_one_variable_of_the_environment_switches_it_off():
    here = Path(held_annotations.__file__).parent
    code = "import sys, held_annotations as h; n = len(sys.meta_path); h.install(); print(len(sys.meta_path) - n)"
    for value, added in (("", "1"), ("1", "0")):
        environment = {**os.environ, "CAVITY_UNCHECKED": value}
        found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=here, env=environment)
        assert found.stdout.strip() == added, found.stderr
