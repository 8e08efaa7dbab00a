"""Kernels tell once where JAX is not a release that their marks were tested with, and an extra asks for such a one."""

import tomllib
from pathlib import Path

import jax
import numpy as np
import pytest
from packaging.requirements import Requirement

from cavity.engine.support import machine_code
from cavity.factors.errors import CavityWarning

PROJECT = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]


def test_loops_are_marked_with_this_release_of_jax():
    assert machine_code.MARKED, f"try the trees with JAX {jax.__version__}, then add it to TESTED and to the extra"


def test_unmarked_loops_are_told_once_at_the_users_line(monkeypatch):
    monkeypatch.setattr(machine_code, "MARKED", False)
    machine_code._tell_unmarked.cache_clear()
    plain = machine_code.Kernel(lambda x: x - 1.0)
    double, half = (machine_code.Kernel(machine_code.native(lambda x, by=by: by * x)) for by in (2.0, 0.5))
    assert plain(np.ones(2)).sum() == 0.0
    with pytest.warns(CavityWarning, match=r"pip install 'cavity\[kernels\]'") as told:
        found = half(double(np.ones(2))), double(np.ones(3))
    assert [one.sum() for one in found] == [2.0, 6.0]
    assert len(told) == 1
    assert told[0].filename == __file__


def test_the_extra_asks_for_the_tested_releases_and_the_core_for_no_last_one():
    (extra,) = map(Requirement, PROJECT["optional-dependencies"]["kernels"])
    (core,) = (one for one in map(Requirement, PROJECT["dependencies"]) if one.name == "jax")
    tested = {f"0.{minor}" for minor in range(200) if f"0.{minor}.3" in extra.specifier}
    assert extra.name == "jax"
    assert tested == set(machine_code.TESTED)
    assert "0.199.0" in core.specifier
