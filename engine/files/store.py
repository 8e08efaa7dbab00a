"""Posteriors in files: arrays and a description in JSON, nothing that runs.

A file is a zip archive of `meta.json` and of arrays in NumPy's format (`0.npy`, `1.npy`, ...), so `numpy.load` opens it
too. Nothing in it is pickled. `load` reads it.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from ...compiler.data.sparse_matrices import is_sparse
from ...compiler.language.model import Model, check_graph
from ...compiler.language.nodes import Constant
from ...compiler.methods import Method
from ...compiler.passes.given import Part
from ...compiler.passes.given import names as given_names
from ...factors.conditional import Conditional
from ...factors.conditionals import name_of
from ...factors.errors import UnsupportedError
from ..answers.carry import baseline, carried
from ..answers.outcome import Outcome
from .archive import write_archive

FORMAT, VERSION = "cavity posterior", 2


class _Writer:
    """Arrays by number; one that was written already is only referred to."""

    def __init__(self) -> None:
        self.arrays: list[np.ndarray] = []
        self._known: dict[tuple[Any, ...], int] = {}

    def put(self, value: Any) -> int:
        array = np.asarray(value)
        content = (array.shape, array.dtype.str, hashlib.sha256(array.tobytes()).digest())
        if content not in self._known:
            self._known[content] = len(self.arrays)
            self.arrays.append(array)
        return self._known[content]

    def named(self, arrays: Mapping[str, Any]) -> dict[str, int]:
        return {name: self.put(array) for name, array in arrays.items()}

    def sparse(self, matrix: Any) -> dict[str, Any]:
        parts = {part: getattr(matrix, part) for part in ("data", "indices", "indptr")}
        return {"shape": list(matrix.shape), "parts": self.named(parts)}

    def family(self, family: Any) -> dict[str, Any]:
        fields = {field.name: getattr(family, field.name) for field in dataclasses.fields(family)}
        return {
            "family": type(family).__name__,
            "fields": {name: self._field(name, value) for name, value in fields.items()},
        }

    def _field(self, name: str, value: Any) -> Any:
        if isinstance(value, Conditional):
            return {"conditional": name_of(value)}
        if name == "formulas":
            return {"formulas": value}
        if isinstance(value, tuple):
            return [self._field(name, part) for part in value]
        return self.family(value) if dataclasses.is_dataclass(value) else self.put(value)


def save(posterior: Outcome, path: str | os.PathLike[str]) -> None:
    """Writes `posterior` to the file `path`, which is replaced as a whole or not at all. See `load`."""
    writer = _Writer()
    meta = _describe(posterior, writer)
    text = json.dumps(meta, indent=1, allow_nan=False, default=_number)
    write_archive(path, text, writer.arrays)


def _describe(posterior: Outcome, writer: _Writer) -> dict[str, Any]:
    request, binding, model = posterior.request, posterior.binding, posterior.model
    given, beliefs = posterior.graph.given_parts, carried(posterior)
    leaves = jax.tree_util.tree_flatten_with_path(posterior.result.outputs)[0]
    families, without = {}, {}
    for name in posterior:
        try:
            families[name] = writer.family(posterior[name].family)
        except UnsupportedError as problem:
            without[name] = str(problem)
    try:
        priors: Any = [
            {"part": part, "naturals": [writer.put(n) for n in naturals]}
            for part, naturals in baseline(posterior, beliefs).items()
        ]
    except UnsupportedError as problem:
        priors = str(problem)
    return {
        "format": FORMAT,
        "version": VERSION,
        "name": model.name,
        "model": repr(model),
        "constants": digest_of_constants(model),
        "program": {
            "observed": sorted(request.observed),
            "method": _method(request.method),
            "sizes": {str(getattr(plate, "name", plate)): int(size) for plate, size in request.sizes.items()},
            "options": dataclasses.asdict(request.options),
            "given": sorted(given),
        },
        "sizes": binding.sizes,
        "inputs": writer.named({name: array for name, array in binding.inputs.items() if not is_sparse(array)}),
        "sparse": {name: writer.sparse(array) for name, array in binding.inputs.items() if is_sparse(array)},
        "observed": writer.named(binding.observed),
        "missing": writer.named(binding.missing),
        "given": writer.named({key: posterior.arrays[key] for part in given for key in given_names(model, part)}),
        "outputs": {jax.tree_util.keystr(place): writer.put(leaf) for place, leaf in leaves},
        "families": families,
        "without_family": without,
        "carried": [
            {
                "part": part,
                "family": writer.family(family),
                "members": _members(model, part, binding.sizes) if part in beliefs.joints else [],
            }
            for part, family in beliefs.parts.items()
        ],
        "baseline": priors,
        "log_evidence": writer.put(posterior.log_evidence),
        "evidence": writer.named(posterior.evidence),
        "code": posterior.code,
        "iterations": posterior.iterations,
        "trace": [writer.put(part) for part in posterior.trace],
        "restarts": writer.put(posterior.restarts),
        "floored": posterior.floored,
        "diagnosis": posterior.diagnosis,
        "explanation": posterior.explain(),
    }


def _members(model: Model, part: Part, sizes: Mapping[str, int]) -> list[dict[str, Any]]:
    """What the variables of a joint belief are, for a reader without the model."""
    return [
        {
            "name": node.name,
            "kind": node.domain.kind,
            "size": node.domain.size,
            "plates": {plate.name: sizes[plate.name] for plate in node.plates},
        }
        for node in (model.randoms[name] for name in part.members)
    ]


def _number(value: Any) -> Any:
    return value.item()  # a NumPy number among the options


def digest_of_constants(model: Model) -> str:
    """A digest of all constants of a model: its printed form shows arrays by shape only."""
    digest = hashlib.sha256()
    for node in check_graph(model):
        if isinstance(node, Constant):
            digest.update(np.ascontiguousarray(node.value).tobytes())
    return digest.hexdigest()


def _method(method: Any) -> Any:
    if isinstance(method, Method):
        return {"method": dataclasses.asdict(method)}
    return {"by_name": {n: _method(m) for n, m in method.items()}} if isinstance(method, Mapping) else method
