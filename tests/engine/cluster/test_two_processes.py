"""Two processes that share rows: answers are those of one device, whether each has all the data or rows of its own."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import dealt_models
import numpy as np
import pytest

COMMON = pathlib.Path(__file__).resolve().parents[2] / "common"


@pytest.fixture(scope="module")
def found(request, tmp_path_factory):
    """What both processes tell of the cases of all tests to be run, by one launch."""
    cases = {item.callspec.params["name"] for item in request.session.items if item.path == request.path}
    place = tmp_path_factory.mktemp("two")
    command = [
        sys.executable,
        "-m",
        "cavity",
        "launch",
        "-n",
        "2",
        str(COMMON / "two_processes.py"),
        str(place),
        *sorted(cases),
    ]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads((place / f"{rank}.json").read_text()) for rank in range(2)]


QUICK = ("logistic, ncvmp", "logistic, ep", "mixture, vmp", "skills")
CASES = [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in dealt_models.CASES]


@pytest.mark.parametrize("name", CASES)
def test_two_processes_agree_with_one_device(found, name):
    for told in found:
        alone, both = told[name]["alone"], told[name]["both"]
        assert both["sweeps"] == alone["sweeps"]
        np.testing.assert_allclose(both["evidence"], alone["evidence"], rtol=1e-12)
        for variable, mean in alone["means"].items():
            size = np.abs(mean).max() + 1e-300
            np.testing.assert_allclose(np.asarray(both["means"][variable]) / size, np.asarray(mean) / size, atol=1e-10)


@pytest.mark.parametrize("name", ["logistic, ep", "mixture, vmp", "skills"])
def test_each_may_have_rows_of_its_own(found, name):
    """Evidence and shared beliefs are those of all rows; of beliefs by row each has those of its rows."""
    rows = {"mixture, vmp": ("z",)}.get(name, ())
    for told in found:
        alone, own = told[name]["alone"], told[name]["own"]
        assert own["sweeps"] == alone["sweeps"]
        np.testing.assert_allclose(own["evidence"], alone["evidence"], rtol=1e-12)
        for variable in alone["means"]:
            if variable not in (*rows, "y", "margin"):
                np.testing.assert_allclose(own["means"][variable], alone["means"][variable], rtol=1e-9, atol=1e-12)
    for variable in rows:
        together = [row for told in found for row in told[name]["own"]["means"][variable]]
        np.testing.assert_allclose(together, found[0][name]["alone"]["means"][variable], atol=1e-12)
