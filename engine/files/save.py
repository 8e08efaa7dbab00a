"""Posteriors in files: arrays and a description in JSON, nothing that runs.

A file is a zip archive of `meta.json` and of arrays in NumPy's format (`0.npy`, `1.npy`, ...), so `numpy.load` opens it
too. Nothing in it is pickled. `load` reads it.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import operator
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import jax
import numpy as np
from numpy.typing import ArrayLike

from ...compiler.data.sparse_matrices import is_sparse, is_streamed
from ...compiler.language.model import Model, check_graph
from ...compiler.language.nodes import Constant
from ...compiler.methods import Method
from ...compiler.passes.given import Part
from ...compiler.passes.given import names as given_names
from ...factors.conditional import Conditional
from ...factors.conditionals import name_of
from ...factors.errors import UnsupportedError
from ...factors.families import Family
from ..answers.inferred import Inferred, axes_of
from ..answers.next_prior import Beliefs, Naturals, baseline, carried
from ..answers.outcome import Outcome
from ..answers.verdict import Verdict
from ..options import Asked, Request
from ..run.fixed_points import Restarts
from ..run.result import Outputs
from .archive import write_archive
from .description import (
    Description,
    DrawsEntry,
    FamilyEntry,
    FieldEntry,
    IntegrationEntry,
    MemberEntry,
    MethodEntry,
    OneMethod,
    PriorEntry,
    ProgramEntry,
    SparseEntry,
)

FORMAT, VERSION = "cavity posterior", 4  # 4 has weighted draws; integrated posteriors are written as 3, others as 2


class _Writer:
    """Arrays by number; one that was written already is only referred to."""

    def __init__(self) -> None:
        self.arrays: list[np.ndarray] = []
        self._known: dict[tuple[tuple[int, ...], str, bytes], int] = {}

    def put(self, value: ArrayLike) -> int:
        array = np.asarray(value)
        content = (array.shape, array.dtype.str, hashlib.sha256(array.tobytes()).digest())
        if content not in self._known:
            self._known[content] = len(self.arrays)
            self.arrays.append(array)
        return self._known[content]

    def named(self, arrays: Mapping[str, ArrayLike]) -> dict[str, int]:
        return {name: self.put(array) for name, array in arrays.items()}

    def sparse(self, matrix: Any) -> SparseEntry:
        parts = {part: getattr(matrix, part) for part in ("data", "indices", "indptr")}
        return {"shape": list(matrix.shape), "parts": self.named(parts)}

    def family(self, family: Family) -> FamilyEntry:
        fields = {field.name: getattr(family, field.name) for field in dataclasses.fields(family)}
        return {
            "family": type(family).__name__,
            "fields": {name: self._field(name, value) for name, value in fields.items()},
        }

    def _field(self, name: str, value: Any) -> FieldEntry:  # of a family, of any kind
        if isinstance(value, Conditional):
            return {"conditional": name_of(value)}
        if name == "formulas":
            return {"formulas": value}
        if isinstance(value, tuple):
            return [self._field(name, part) for part in value]
        if value is None or name == "origin":
            return {"text": value}
        if isinstance(value, str):
            return {"kind": value}
        return self.family(value) if isinstance(value, Family) else self.put(value)


@dataclasses.dataclass(frozen=True)
class Integration:
    """What an integrated posterior has beside a plain one.

    `values` are those of the integrated scalars at the points of the grid, `families` their marginals.
    """

    seed: int
    values: Mapping[str, np.ndarray]
    weights: np.ndarray
    error: float
    families: Mapping[str, Family]


@dataclasses.dataclass(frozen=True)
class Drawn:
    """What a posterior of weighted draws has beside the one that it corrects: see `DrawsEntry`."""

    z: np.ndarray
    weights: np.ndarray
    k: float
    effective: float
    error: float
    annealed: bool
    plain: float


@dataclasses.dataclass(frozen=True)
class Contents:
    """What a file holds that is not read of every posterior alike.

    `outputs` are those of the run, stacked where there is an `integration`; `carried` is what later data start from,
    and `baseline` gives its priors or raises UnsupportedError. `verdict` is None where none was asked for. `restarts`
    are the fixed points of what `draws` correct, where there are any.
    """

    outputs: Outputs
    carried: Beliefs
    baseline: Callable[[], Mapping[Part, Naturals]]
    remark: str = ""
    integration: Integration | None = None
    verdict: Verdict | None = None
    draws: Drawn | None = None
    restarts: Restarts | None = None


def save(posterior: Outcome, path: str | os.PathLike[str], verdict: Verdict | None = None) -> None:
    """Writes `posterior` and its `verdict` to the file `path`, replaced as a whole or not at all. See `load`."""
    write(posterior, path, dataclasses.replace(contents_of(posterior), verdict=verdict))


def contents_of(posterior: Outcome) -> Contents:
    """What the file of one run holds."""
    result, beliefs = posterior.result, carried(posterior)

    def priors() -> Mapping[Part, Naturals]:
        return baseline(posterior.machine, posterior.arrays, beliefs)

    return Contents(result.outputs, beliefs, priors, result.remark)


def write(posterior: Inferred, path: str | os.PathLike[str], contents: Contents) -> None:
    """The same of any posterior, with what is not read of all alike."""
    if streamed := [name for name, array in posterior.binding.inputs.items() if is_streamed(array)]:
        raise UnsupportedError(
            f"save() keeps the data with a posterior, and '{streamed[0]}' is streamed from files, of which nothing is "
            "kept. Save the marginals that you need, numpy.savez(path, weight=posterior['weight'].mean)."
        )
    writer = _Writer()
    meta = _describe(posterior, contents, writer)
    text = json.dumps(meta, indent=1, allow_nan=False, default=_number)
    write_archive(path, text, writer.arrays)


def _describe(posterior: Inferred, contents: Contents, writer: _Writer) -> Description:
    binding, model = posterior.binding, posterior.model
    beliefs, parts, integration = contents.carried, posterior.graph.given_parts, contents.integration
    given = [key for part in parts for key in given_names(model, part)]
    leaves = jax.tree_util.tree_flatten_with_path(contents.outputs)[0]
    families, without = _families(posterior, writer)
    restarts = contents.restarts or posterior.restarts
    return {
        "format": FORMAT,
        "version": VERSION if contents.draws else 3 if integration else 2,
        "name": model.name,
        "model": repr(model),
        "constants": digest_of_constants(model),
        "program": program_entry(posterior.request, parts),
        "sizes": binding.sizes,
        "names": {plate: list(labels) for plate, labels in binding.names.items()},
        "inputs": writer.named({name: array for name, array in binding.inputs.items() if not is_sparse(array)}),
        "sparse": {name: writer.sparse(array) for name, array in binding.inputs.items() if is_sparse(array)},
        "observed": writer.named(binding.observed),
        "missing": writer.named(binding.missing),
        "given": {key: writer.put(np.asarray(posterior.arrays[key])) for key in given},
        "outputs": {jax.tree_util.keystr(place): writer.put(leaf) for place, leaf in leaves},
        "families": families,
        "axes": {name: [[axis.name, axis.is_class] for axis in axes_of(model, name, {})] for name in families},
        "without_family": without,
        "carried": [
            {
                "part": part,
                "family": writer.family(family),
                "members": _members(model, part, binding.sizes) if part in beliefs.joints else [],
            }
            for part, family in beliefs.parts.items()
        ],
        "baseline": _priors(contents, writer),
        "log_evidence": writer.put(posterior.log_evidence),
        "evidence": writer.named(posterior.evidence),
        "code": posterior.code,
        "iterations": posterior.iterations,
        "trace": [writer.put(part) for part in posterior.trace],
        "restarts": writer.put(restarts.by_start),
        "fixed_points": writer.put(restarts.table()),
        "position": posterior.result.position if isinstance(posterior, Outcome) else 0,
        "floored": posterior.floored,
        "diagnosis": posterior.diagnosis,
        "explanation": posterior.explain(),
        "timing": None if posterior.timing is None else list(posterior.timing),
        "remark": contents.remark,
        "verdict": None if (told := contents.verdict) is None else {"level": told.level, "reason": told.reason},
        "integration": None if integration is None else _integration(integration, writer),
        "draws": None if contents.draws is None else _drawn(contents.draws, writer),
    }


def _families(posterior: Inferred, writer: _Writer) -> tuple[dict[str, FamilyEntry], dict[str, str]]:
    """The family of each random variable, and why another has none."""
    families, without = {}, {}
    for name in posterior:
        try:
            families[name] = writer.family(posterior[name].family)
        except UnsupportedError as problem:
            without[name] = str(problem)
    return families, without


def _priors(contents: Contents, writer: _Writer) -> list[PriorEntry] | str:
    """What the prior alone says of each part, or why that is not known."""
    try:
        known = contents.baseline().items()
        return [{"part": part, "naturals": [writer.put(n) for n in naturals]} for part, naturals in known]
    except UnsupportedError as problem:
        return str(problem)


def _integration(found: Integration, writer: _Writer) -> IntegrationEntry:
    return {
        "seed": operator.index(found.seed),
        "values": writer.named(found.values),
        "weights": writer.put(found.weights),
        "error": writer.put(found.error),
        "families": {name: writer.family(family) for name, family in found.families.items()},
    }


def _drawn(found: Drawn, writer: _Writer) -> DrawsEntry:
    return {
        "z": writer.put(found.z),
        "weights": writer.put(found.weights),
        "k": writer.put(found.k),
        "effective": writer.put(found.effective),
        "error": writer.put(found.error),
        "annealed": writer.put(float(found.annealed)),
        "plain": writer.put(found.plain),
    }


def program_entry(request: Request, given: Iterable[Part] = ()) -> ProgramEntry:
    """What a program is compiled for, without the devices that it had, and the parts whose prior is a belief."""
    return {
        "observed": sorted(request.observed),
        "method": _method(request.method),
        "sizes": {str(getattr(plate, "name", plate)): int(size) for plate, size in request.sizes.items()},
        "options": dataclasses.asdict(dataclasses.replace(request.options, mesh=None)),
        "given": sorted(given),
    }


def _members(model: Model, part: Part, sizes: Mapping[str, int]) -> list[MemberEntry]:
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


def _number(value: np.generic) -> float:  # among the options
    return value.item()


def digest_of_constants(model: Model) -> str:
    """A digest of all constants of a model: its printed form shows arrays by shape only."""
    digest = hashlib.sha256()
    for node in check_graph(model):
        if isinstance(node, Constant):
            digest.update(np.ascontiguousarray(node.value).tobytes())
    return digest.hexdigest()


def _method(method: Asked) -> MethodEntry:
    return {"by_name": {n: _one(m) for n, m in method.items()}} if isinstance(method, Mapping) else _one(method)


def _one(method: str | Method) -> str | OneMethod:
    if isinstance(method, str):
        return method
    return {"method": {"name": method.name, "alpha": method.alpha, "bound": method.bound}}
