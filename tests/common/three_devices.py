"""What one process with three devices does for tests/engine/cluster/test_devices.py, as one JSON text.

The arguments are what is asked for, each a part and a case of it with a slash between.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
import warnings

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=3"

import dealt_models
import jax
import numpy as np

import cavity as cv
from cavity.engine.files.checkpoint import Keeping
from cavity.engine.run import chunks
from cavity.engine.support import compiled

LARGE = {
    "logistic, ncvmp": {"rows": 4095},
    "logistic, ep": {"rows": 4095},
    "mixture, vmp": {"rows": 4095},
    "mixture, ep": {"rows": 2049},
    "skills": {"games": 4095},
    "factors": {"rows": 2049},
    "topics": {"documents": 513},
}
RESUMED = {
    "logistic, ncvmp, None to 3": ("logistic, ncvmp", None, 3),
    "logistic, ep, 3 to 2": ("logistic, ep", 3, 2),
    "logistic, ep, 3 to None": ("logistic, ep", 3, None),
    "mixture, vmp, None to 3": ("mixture, vmp", None, 3),
    "mixture, vmp, 3 to 2": ("mixture, vmp", 3, 2),
}
CROSSING = re.compile(
    r"= (.*?) (all-reduce|all-gather|all-to-all|collective-permute|reduce-scatter|collective-broadcast)(?:-start)?\("
)
NUMBERS = re.compile(r"\w+\[([\d,]*)\]")


def mesh(devices):
    return jax.sharding.Mesh(np.array(jax.devices()[:devices]), ("rows",))


def crossings(run):
    """What crosses devices in the programs that are compiled for a run: kinds, and numbers of the largest."""
    texts, code = [], compiled._code

    def kept(traced):
        call = code(traced)
        texts.append(call.as_text())
        return call

    compiled._code = kept
    try:
        run()
    finally:
        compiled._code = code
    found = [one for text in texts for one in CROSSING.findall(text)]
    sizes = [np.prod([int(n) for n in shape.split(",") if n]) for what, _ in found for shape in NUMBERS.findall(what)]
    return {"kinds": sorted({kind for _, kind in found}), "largest": float(max(sizes))}


def few_sweeps(name):
    make, options, _ = dealt_models.CASES[name]
    model, data, more = make(**LARGE[name])
    cv.infer(model, data, **options, **more, max_iterations=3, mesh=mesh(3))


def batch(name, own, **sizes):
    """A program, and seven data sets side by side."""
    make, options, _ = dealt_models.CASES[name]
    model, data, more = make(**sizes)
    changed = [key for key, array in data.items() if np.asarray(array).dtype == float]
    datas = [{key: v * (1.0 + 0.1 * i) if key in changed else v for key, v in data.items()} for i in range(7)]
    program = cv.compile(model, observed=list(data.keys() & model.randoms.keys()), **options, **more, mesh=own)
    return program, datas, program.batch(datas)


def after_one_device():
    """A batch of as many data sets on one device, and then on three: neither is run by the program of the other."""
    make, options, _ = dealt_models.CASES["logistic, ep"]
    model, data, _ = make(rows=212)
    datas = [data] * 9
    for own in (None, mesh(3)):
        cv.compile(model, observed=["y"], **options, mesh=own).batch(datas)


def side_by_side(name):
    """Log evidence of seven data sets, and twice that of one by itself, on one device and on three."""
    found = []
    for program, datas, many in (batch(name, None), batch(name, mesh(3))):
        alone = float(many[5].log_evidence), float(program(datas[5]).log_evidence)
        found.append([*many.log_evidence.tolist(), *alone])
    return found


def streamed(place):
    """A regression in memory and from a file, in blocks, on one device and on three."""
    model, data, _ = dealt_models.logistic(5003, 6)
    np.save(os.path.join(place, "x.npy"), data["x"])
    options = {"method": "ncvmp", "accuracy": "fast"}
    rows = {**data, "x": cv.rows(os.path.join(place, "x.npy"), stream=True)}
    found = [cv.infer(model, data, **options)]
    found += [cv.infer(model, rows, **options, mesh=own) for own in (None, mesh(2), mesh(3))]
    return [[float(p.log_evidence), p["weight"].mean.tolist(), p.iterations] for p in found]


class Stopped(Exception):
    """A run was stopped here."""


def resumed(place, name, first, then):
    """A run that stops at a checkpoint, and goes on with other devices: its evidence and sweeps, and those of one."""
    make, options, _ = dealt_models.CASES[name]
    model, data, more = make()
    path, write = os.path.join(place, "run.ckpt"), Keeping.write
    options = {"accuracy": "fast", "damping": 0.5, **options, **more}
    whole = cv.infer(model, data, **options)

    def stop(self, told, sweeps):
        write(self, told, sweeps)
        raise Stopped

    Keeping.write, before = stop, (chunks.FIRST, chunks.next_chunk)
    chunks.FIRST, chunks.next_chunk = 4, lambda sweeps, seconds: 4
    try:
        cv.infer(model, data, **options, mesh=first and mesh(first), checkpoint=path, every=0)
    except Stopped:
        stopped = True
    finally:
        Keeping.write = write
    after = cv.resume(path, mesh=then and mesh(then))
    chunks.FIRST, chunks.next_chunk = before
    return {
        "stopped": stopped,
        "evidence": [float(whole.log_evidence), float(after.log_evidence)],
        "sweeps": [whole.iterations, after.iterations],
    }


def crossings_of_batches(case):
    after = {"side by side": lambda: batch("logistic, ep", mesh(3), rows=211), "after one device": after_one_device}
    return crossings(after[case])


def main(asked):
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as place:
        parts = {
            "crossings": lambda name: crossings(lambda: few_sweeps(name)),
            "side by side": side_by_side,
            "crossings of batches": crossings_of_batches,
            "streamed": lambda _: streamed(place),
            "resumed": lambda case: resumed(place, *RESUMED[case]),
        }
        found = {one: parts[one.split("/")[0]](one.split("/")[1]) for one in asked}
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1:])
