"""One process with three devices: what crosses them, rows from files, and runs that go on with other numbers."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "common" / "three_devices.py"


@pytest.fixture(scope="module")
def found():
    environment = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    done = subprocess.run([sys.executable, str(SCRIPT)], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    "name", ["logistic, ncvmp", "logistic, ep", "mixture, vmp", "mixture, ep", "skills", "factors", "topics"]
)
def test_what_crosses_devices_is_sums_of_no_size_of_the_data(found, name):
    own = found["crossings"][name]
    assert own["kinds"] == ["all-reduce"]
    assert own["largest"] <= 200  # of thousands of rows


@pytest.mark.parametrize("name", ["logistic, ncvmp", "logistic, ep", "mixture, vmp"])
def test_data_sets_side_by_side_on_three_devices(found, name):
    one, three = found["side by side"][name]
    np.testing.assert_allclose(three, one, rtol=1e-12)
    assert len(set(one[:7])) == 7
    np.testing.assert_allclose(one[5:6] * 2, one[7:], rtol=1e-12)


@pytest.mark.parametrize("case", ["side by side", "after one device"])
def test_nothing_but_flags_crosses_devices_where_data_sets_are_side_by_side(found, case):
    own = found[f"crossings {case}"]
    assert own["kinds"] == ["all-reduce"]
    assert own["largest"] <= 10


def test_rows_of_files_are_those_in_memory(found):
    (evidence, mean, sweeps), *others = found["streamed"]
    for own in others:
        assert own[2] == sweeps
        np.testing.assert_allclose(own[0], evidence, rtol=1e-12)
        np.testing.assert_allclose(own[1], mean, rtol=1e-11)


@pytest.mark.parametrize(
    "case",
    [
        "logistic, ncvmp, None to 3",
        "logistic, ep, 3 to 2",
        "logistic, ep, 3 to None",
        "mixture, vmp, None to 3",
        "mixture, vmp, 3 to 2",
    ],
)
def test_a_run_goes_on_with_other_devices_to_the_same_answer(found, case):
    own = found["resumed"][case]
    assert own["stopped"]
    assert own["sweeps"][0] == own["sweeps"][1]
    np.testing.assert_allclose(own["evidence"][0], own["evidence"][1], rtol=1e-12)
