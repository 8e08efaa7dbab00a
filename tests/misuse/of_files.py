"""Damaged files: of posteriors and of chains, each part removed, changed, cut, enlarged and made NaN.

A file of version 0.5 has no digests: of such a one everything that is told by its own logic is refused. With digests
every change is.
"""

from __future__ import annotations

import functools
import io
import itertools
import json
import zipfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from misuse_judge import Case

import cavity as cv
from cavity.engine.mcmc.kernel import Kernel
from cavity.engine.mcmc.run import run


def parts_of(content):
    """The parts of a file by name."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def written(parts, compression=zipfile.ZIP_STORED):
    """A file of these parts."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return file.getvalue()


def array_in(content):
    return np.load(io.BytesIO(content), allow_pickle=False)


def as_part(array, pickled=False):
    file = io.BytesIO()
    np.save(file, array, allow_pickle=pickled)
    return file.getvalue()


def _declaring(shape):
    """An array whose header declares a shape that its content does not have."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": shape})
    return header.getvalue() + b"\0" * 8


def changed_arrays(array):
    """The array as a part of a file, wrong in one way each, by name."""
    yield "another shape", as_part(np.concatenate([np.atleast_1d(array)] * 2))
    yield "more axes", as_part(array[None])
    yield "complex", as_part(array.astype(complex))
    yield "text", as_part(array.astype(str))
    yield "a pickle", as_part(np.array([{}, []], object), pickled=True)
    yield "no array", b"nothing"
    yield "empty", b""
    yield "a huge header", _declaring((10**15,))
    yield "a negative header", _declaring((-1,))
    if array.dtype.kind == "f":
        yield "NaN", as_part(np.full_like(array, np.nan))
        yield "negative", as_part(-np.abs(array) - 1.0)
        yield "single", as_part(array.astype(np.float32))


def changed_bytes(content):
    """The file, wrong as a whole."""
    yield "empty", b""
    yield "text", b"a posterior"
    for share in (0.2, 0.5, 0.9, 0.99):
        yield f"cut at {share}", content[: int(share * len(content))]
    for place in np.linspace(0, len(content) - 1, 60).astype(int):
        yield f"byte {place}", content[:place] + bytes([content[place] ^ 255]) + content[place + 1 :]
    parts = parts_of(content)
    yield "compressed", written(parts, zipfile.ZIP_DEFLATED)
    yield "another kind", written({"other.json": b"{}"})
    yield "no dictionary", written({**parts, "meta.json": b"[]"})
    yield "no json", written({**parts, "meta.json": b"{"})
    yield "deep json", written({**parts, "meta.json": b"[" * 100_000})
    yield "bomb", written({**parts, "bomb.npy": bytes(10**7)}, zipfile.ZIP_DEFLATED)
    for name in parts:
        yield f"without {name}", written({other: c for other, c in parts.items() if other != name})
        yield f"emptied {name}", written({**parts, name: b""})


WRONG = {"null": None, "text": "x", "negative": -3, "list": [-1], "object": {"a": -1}, "number": 10**9, "true": True}


def changed_meta(content):
    """The description, wrong in one key each, in a file without digests."""
    parts = parts_of(content)
    parts.pop("sums.json", None)
    meta = json.loads(parts["meta.json"])
    for key in meta:
        yield (
            f"without key {key}",
            written({**parts, "meta.json": json.dumps({k: v for k, v in meta.items() if k != key})}),
        )
        for name, value in WRONG.items():
            yield f"{key}: {name}", written({**parts, "meta.json": json.dumps({**meta, key: value})})
            if isinstance(meta[key], dict):
                for inner in list(meta[key])[:3]:
                    new = {**meta, key: {**meta[key], inner: value}}
                    yield f"{key}/{inner}: {name}", written({**parts, "meta.json": json.dumps(new)})


def changed_parts(content, digests):
    """One array, wrong in one way each; with or without digests."""
    parts = parts_of(content)
    if not digests:
        parts.pop("sums.json", None)
    for name in parts:
        if name.endswith(".npy"):
            for what, new in changed_arrays(array_in(parts[name])):
                if new != parts[name]:
                    yield f"{name}: {what}", written({**parts, name: new})


def _telling(changes):
    """Those that can be told from the file alone; another number in the place of one cannot."""
    return (change for change in changes if not change[0].endswith("negative"))


# posteriors -----------------------------------------------------------------------------------------------------------


def model():
    m = cv.Model("level")
    n = m.plate("n")
    x = m.input("x", cv.real, plates=n)
    a = m.random("a", cv.gaussian(0.0, variance=4.0))
    t = m.random("t", cv.gamma(2.0, 2.0))
    m.random("y", cv.gaussian(a * x, precision=t))
    m.random("v", cv.vector_gaussian(np.zeros(2), covariance=np.eye(2)))
    return m


@functools.cache
def saved(folder, accuracy="default"):
    """The file of a posterior: by default of one that was integrated over a grid."""
    path = Path(folder) / "saved"
    cv.infer(model(), {"x": [1.0, 2.0, 3.0], "y": [0.5, np.nan, 2.5]}, accuracy=accuracy).save(path)
    return path.read_bytes()


def _load(folder, content, with_model):
    path = Path(folder) / "damaged"
    path.write_bytes(content)
    found = cv.load(path, model()) if with_model else cv.load(path)
    return [(name, np.array(found[name].mean), np.array(found[name].variance)) for name in found], found.log_evidence


def same_answers(folder, with_model, accuracy, found):
    """Whether the file was read as the one that was saved."""
    wanted, evidence = _load(folder, saved(folder, accuracy), with_model)
    pairs = zip(found[0], wanted, strict=True)
    close = all(a[0] == b[0] and np.allclose(a[1], b[1]) and np.allclose(a[2], b[2]) for a, b in pairs)
    return close and np.isclose(found[1], evidence)


def of_posteriors(folder, with_model, every=1, accuracy="default"):
    """Every so many of these."""
    content = saved(folder, accuracy)
    kinds = {
        "file": changed_bytes(content),
        "description": changed_meta(content),
        "array with digests": changed_parts(content, True),
        "array": _telling(changed_parts(content, False)),
    }
    for kind, changes in kinds.items():
        for name, damaged in itertools.islice(changes, 0, None, every):
            # What the answers do not hang on may be read, where no digest tells.
            right = (
                None if kind == "array with digests" else functools.partial(same_answers, folder, with_model, accuracy)
            )
            yield Case(f"{kind}: {name}", functools.partial(_load, folder, damaged, with_model), right)


# chains ---------------------------------------------------------------------------------------------------------------

WALK = Kernel(
    init=lambda key: {"x": jax.random.normal(key, (2,)), "n": np.int32(0)},
    step=lambda key, state: {"x": 0.5 * state["x"] + jax.random.normal(key, (2,)), "n": state["n"] + np.int32(1)},
    record=lambda state: {"x": state["x"], "n": state["n"]},
    reduce=lambda totals, new: ({"sum": new["x"] + (0.0 if totals is None else totals["sum"])}, new),
    identity="walk",
)


def _draws(path, draws):
    return run(WALK, jax.random.key(5), draws, chains=2, warmup=1, thin=2, checkpoint=path)


@functools.cache
def checkpoint(folder):
    path = Path(folder) / "chains"
    _draws(path, 3)
    return path.read_bytes()


@functools.cache
def never_stopped():
    return _draws(None, 5)


def _resumed(folder, content):
    path = Path(folder) / "changed"
    path.write_bytes(content)
    return _draws(path, 5)


def same_draws(found):
    """Whether the run went on to the draws of one that never stopped."""
    wanted = never_stopped()
    totals = all(np.array_equal(a["sum"], b["sum"]) for a, b in zip(found.totals, wanted.totals, strict=True))
    return all(np.array_equal(found[name], wanted[name]) for name in ("x", "n")) and totals


def of_chains(folder):
    """All of these."""
    content = checkpoint(folder)
    assert jnp.array_equal(_resumed(folder, content)["x"], never_stopped()["x"])
    kinds = {
        "file": changed_bytes(content),
        "description": changed_meta(content),
        "array with digests": changed_parts(content, True),
        "array": _telling(changed_parts(content, False)),
    }
    for kind, changes in kinds.items():
        for name, damaged in changes:
            right = None if kind == "array with digests" else same_draws
            yield Case(f"checkpoint {kind}: {name}", functools.partial(_resumed, folder, damaged), right)
