"""One process with three devices: what crosses them, rows from files, and runs that go on with other numbers."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

SLOW = pytest.mark.slow
SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "common" / "three_devices.py"


@pytest.fixture(scope="module")
def found(request):
    """What the script tells of all that the tests to be run ask for, by one start for all."""
    cases = [item.callspec.params["asked"] for item in request.session.items if item.path == request.path]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    command = [sys.executable, str(SCRIPT), *cases]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def of(part, quick, slow=()):
    """Cases of a part of the script."""
    cases = [pytest.param(f"{part}/{case}", id=case) for case in quick]
    return pytest.mark.parametrize(
        "asked", cases + [pytest.param(f"{part}/{case}", id=case, marks=SLOW) for case in slow]
    )


@of("crossings", ["logistic, ep", "mixture, vmp"], ["logistic, ncvmp", "mixture, ep", "skills", "factors", "topics"])
def test_what_crosses_devices_is_sums_of_no_size_of_the_data(found, asked):
    own = found[asked]
    assert own["kinds"] == ["all-reduce"]
    assert own["largest"] <= 200  # of thousands of rows


@of("side by side", ["mixture, vmp"], ["logistic, ncvmp", "logistic, ep"])
def test_data_sets_side_by_side_on_three_devices(found, asked):
    one, three = found[asked]
    np.testing.assert_allclose(three, one, rtol=1e-12)
    assert len(set(one[:7])) == 7
    np.testing.assert_allclose(one[5:6] * 2, one[7:], rtol=1e-12)


@of("crossings of batches", ["side by side"], ["after one device"])
def test_nothing_but_flags_crosses_devices_where_data_sets_are_side_by_side(found, asked):
    own = found[asked]
    assert own["kinds"] == ["all-reduce"]
    assert own["largest"] <= 10


@of("streamed", ["from a file"])
def test_rows_of_files_are_those_in_memory(found, asked):
    (evidence, mean, sweeps), *others = found[asked]
    for own in others:
        assert own[2] == sweeps
        np.testing.assert_allclose(own[0], evidence, rtol=1e-12)
        np.testing.assert_allclose(own[1], mean, rtol=1e-11)


@of(
    "resumed",
    ["logistic, ncvmp, None to 3", "mixture, vmp, 3 to 2"],
    ["logistic, ep, 3 to 2", "logistic, ep, 3 to None", "mixture, vmp, None to 3"],
)
def test_a_run_goes_on_with_other_devices_to_the_same_answer(found, asked):
    own = found[asked]
    assert own["stopped"]
    assert own["sweeps"][0] == own["sweeps"][1]
    np.testing.assert_allclose(own["evidence"][0], own["evidence"][1], rtol=1e-12)
