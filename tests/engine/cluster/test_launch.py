"""Processes that fail: the others are stopped, and a line says which failed and where the last checkpoint is."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import dealt_models

import cavity as cv

COMMON = str(pathlib.Path(__file__).resolve().parents[2] / "common")
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}


def launched(tmp_path, text, *arguments):
    script = tmp_path / "script.py"
    script.write_text(text)
    command = [sys.executable, "-m", "cavity", "launch", "-n", "2", str(script), *arguments]
    return subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=False, timeout=300)


LOST = """
import os, signal, sys, warnings
import jax, numpy as np, cavity as cv
import dealt_models
from cavity.engine.files.checkpoint import Keeping

write = Keeping.write
def then_die(self, told, sweeps):
    write(self, told, sweeps)
    if jax.process_index() == 1 and sweeps >= 8:
        os.kill(os.getpid(), signal.SIGKILL)
Keeping.write = then_die
mesh = jax.make_mesh((2,), ("rows",), axis_types=(jax.sharding.AxisType.Auto,))
model, data, _ = dealt_models.logistic(400, 3)
try:
    slow = dict(method="ncvmp", damping=0.9, acceleration=0, tolerance=1e-9)
    cv.infer(model, data, **slow, mesh=mesh, checkpoint=sys.argv[1], every=0)
except cv.LostError as problem:
    print("told:", problem, flush=True)
    raise
"""


def test_a_lost_process_is_told_with_the_last_checkpoint_and_another_number_goes_on(tmp_path):
    kept = tmp_path / "run.ckpt"
    done = launched(tmp_path, f"import sys; sys.path.insert(0, {COMMON!r})\n" + LOST, str(kept))
    assert done.returncode == 9
    assert "process 1 of 2 was killed by signal 9" in done.stderr
    assert str(kept) in done.stderr
    assert "told: Process 0 of 2 lost another one" in done.stdout
    assert str(kept) in done.stdout
    model, data, _ = dealt_models.logistic(400, 3)
    whole = cv.infer(model, data, method="ncvmp", damping=0.9, acceleration=0, tolerance=1e-9)
    after = cv.resume(kept, model, data)
    assert after.iterations == whole.iterations
    assert abs(after.log_evidence - whole.log_evidence) <= 1e-12 * abs(whole.log_evidence)


def test_the_status_of_a_script_is_that_of_the_launch(tmp_path):
    done = launched(tmp_path, "import jax, sys\nsys.exit(3 if jax.process_index() else 0)\n")
    assert done.returncode == 3
    assert "process 1 of 2 ended with 3" in done.stderr
