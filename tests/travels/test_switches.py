"""JAX's own switches, as users set them for their code: answers stay what they are, and so does the process."""

import os
import subprocess
import sys

import jax
import numpy as np
import pytest
import travelling
from small_models import EARLY, SIZES, skills

import cavity as cv
from cavity.engine.support import compiled, on_disk
from cavity.factors.switches import double_precision

SWITCHES = {
    "nan": lambda: jax.debug_nans(True),
    "types": lambda: jax.numpy_dtype_promotion("strict"),
    "axes": lambda: jax.numpy_rank_promotion("raise"),
    "transfers": lambda: jax.transfer_guard("disallow"),
    "keys": lambda: jax.default_prng_impl("rbg"),
}


def answers():
    """Answers of programs that are made anew, by NumPy and by machine code, and draws."""
    compiled.KEPT.clear()
    found = [cv.infer(skills(), EARLY, sizes=SIZES, execution=way)["skill"] for way in ("interpret", "compile")]
    return np.stack([*(one.mean for one in found), found[0].sample(3)])


@pytest.fixture(scope="module", autouse=True)
def nothing_from_disk():
    before = list(on_disk._chosen)
    cv.cache(None)
    yield
    on_disk._chosen[:] = before


@pytest.fixture(scope="module")
def wanted():
    return answers()


@pytest.mark.parametrize("name", SWITCHES)
def test_answers_do_not_hang_on_the_switches_of_jax(name, wanted):
    with SWITCHES[name]():
        found = answers()
    np.testing.assert_allclose(found, wanted, rtol=1e-9)


@pytest.mark.parametrize("name", SWITCHES)
def test_switches_are_ours_within_and_the_users_after(name):
    def seen():
        return (
            jax.config.jax_debug_nans, jax.config.jax_numpy_dtype_promotion, jax.config.jax_numpy_rank_promotion,
            jax.config.jax_transfer_guard_host_to_device, jax.config.jax_default_prng_impl,
        )  # fmt: skip

    with double_precision():
        plain = seen()
    with SWITCHES[name]():
        before = seen()
        with double_precision():
            assert seen()[:3] == plain[:3]
            assert seen()[3] in (None, "allow")
            assert seen()[4] == "threefry2x32"
            jax.numpy.ones(3) + np.ones((2, 3), np.float32)  # which strict rules and guards refuse
        assert seen() == before
        assert not jax.config.jax_enable_x64


def test_the_machinery_of_jax_does_refuse_what_the_switches_are_for():
    with SWITCHES["axes"](), pytest.raises(ValueError, match="rank_promotion"):
        jax.numpy.ones(3) + jax.numpy.ones((2, 3))


def in_a_process(code, **environment):
    own = {**os.environ, **environment}
    where = os.pathsep.join([os.path.dirname(travelling.__file__), own.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**own, "PYTHONPATH": where}, timeout=600
    )


def test_a_platform_that_is_not_there_is_told():
    found = in_a_process("import travelling; print(travelling.evidence())", JAX_PLATFORMS="nonsense")
    assert found.stdout.startswith("UnsupportedError: JAX found no platform"), found.stdout + found.stderr
    assert "JAX_PLATFORMS=cpu" in found.stdout


def test_importing_changes_no_filter_of_warnings_and_starts_nothing():
    code = """
import logging, signal, sys, threading, warnings
import jax, networkx, numpy, scipy.optimize, scipy.sparse, scipy.special
before = list(warnings.filters), threading.active_count(), signal.getsignal(signal.SIGINT), numpy.geterr()
import cavity as cv, cavity.engine.sampling.sample, cavity.engine.tempering.evidence, cavity.engine.moves.search
after = list(warnings.filters), threading.active_count(), signal.getsignal(signal.SIGINT), numpy.geterr()
print(before == after, logging.getLogger().handlers, bool(sys.modules["jax._src.xla_bridge"]._backends))
"""
    found = in_a_process(code)
    assert found.stdout.strip() == "True [] False", found.stdout + found.stderr
