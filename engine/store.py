"""Posteriors in files: arrays and a description in JSON, nothing that runs.

A file is a zip archive of `meta.json` and of arrays in NumPy's format (`0.npy`, `1.npy`, ...), so `numpy.load` opens it
too. Nothing in it is pickled, and reading it runs no code of the file.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import os
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from ..compiler.bind import Binding
from ..compiler.expressions import Constant, Plate, Random
from ..compiler.given import Part
from ..compiler.given import names as given_names
from ..compiler.graph import Joint
from ..compiler.language import Model, check_graph
from ..compiler.methods import Method
from ..compiler.sparse import is_sparse
from ..factors.domains import Domain
from ..factors.errors import DataError, UnsupportedError
from ..factors.families import BY_NAME, Point
from .archive import write_archive
from .completed import Completed
from .options import Options, key_of
from .posterior import Posterior
from .program import Program, arrays_of
from .result import Result
from .runner import Runner
from .saved import Saved
from .stream import Beliefs, baseline
from .trace import Trace

FORMAT, VERSION = "cavity posterior", 2
KINDS = {**BY_NAME, "Point": Point, "Completed": Completed}


# writing --------------------------------------------------------------------------------------------------------------


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
            "fields": {
                name: self.family(value) if dataclasses.is_dataclass(value) else self.put(value)
                for name, value in fields.items()
            },
        }


def save(posterior: Posterior, path: str | os.PathLike[str]) -> None:
    """Writes `posterior` to the file `path`, which is replaced as a whole or not at all. See `load`."""
    writer = _Writer()
    meta = _describe(posterior, writer)
    text = json.dumps(meta, indent=1, allow_nan=False, default=_number)
    write_archive(path, text, writer.arrays)


def _describe(posterior: Posterior, writer: _Writer) -> dict[str, Any]:
    program, binding, model = posterior._program, posterior._binding, posterior.model
    given, carried = posterior._machine.graph.given_parts, posterior.carried
    leaves = jax.tree_util.tree_flatten_with_path(posterior._result.outputs)[0]
    families, without = {}, {}
    for name in posterior:
        try:
            families[name] = writer.family(posterior[name].family)
        except UnsupportedError as problem:
            without[name] = str(problem)
    try:
        priors: Any = [
            {"part": part, "naturals": [writer.put(n) for n in naturals]}
            for part, naturals in baseline(posterior, carried).items()
        ]
    except UnsupportedError as problem:
        priors = str(problem)
    return {
        "format": FORMAT,
        "version": VERSION,
        "name": model.name,
        "model": repr(model),
        "constants": _constants(model),
        "program": {
            "observed": sorted(program.observed),
            "method": _method(program.method),
            "sizes": {str(getattr(plate, "name", plate)): int(size) for plate, size in program.sizes.items()},
            "options": dataclasses.asdict(program.options),
            "given": sorted(given),
        },
        "sizes": binding.sizes,
        "inputs": writer.named({name: array for name, array in binding.inputs.items() if not is_sparse(array)}),
        "sparse": {name: writer.sparse(array) for name, array in binding.inputs.items() if is_sparse(array)},
        "observed": writer.named(binding.observed),
        "missing": writer.named(binding.missing),
        "given": writer.named({key: posterior._arrays[key] for part in given for key in given_names(model, part)}),
        "outputs": {jax.tree_util.keystr(place): writer.put(leaf) for place, leaf in leaves},
        "families": families,
        "without_family": without,
        "carried": [
            {
                "part": part,
                "family": writer.family(family),
                "members": _members(model, part, binding.sizes) if part in carried.joints else [],
            }
            for part, family in carried.parts.items()
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


def _part(entry: Any) -> Part:
    """A part as it was written; a name alone in the files of version 1, which carried variables one by one."""
    return Part((entry,)) if isinstance(entry, str) else Part(tuple(entry[0]), bool(entry[1]))


def _read_beliefs(reader: _Reader) -> Beliefs:
    """The carried beliefs, with stand-ins for the variables of joint ones."""
    parts, joints, sizes = {}, {}, {}
    for entry in reader.meta["carried"]:
        if isinstance(entry, str):
            parts[_part(entry)] = reader.family(reader.meta["families"][entry])
            continue
        part = _part(entry["part"])
        parts[part] = reader.family(entry["family"])
        nodes = []
        for member in entry["members"]:
            plates = tuple(Plate(name, size) for name, size in member["plates"].items())
            sizes |= member["plates"]
            nodes.append(Random(member["name"], None, plates, Domain(member["kind"], member["size"])))  # type: ignore[arg-type]
        if nodes:
            over = nodes[0].plates if part.plated else ()
            joints[part] = Joint(Random("joint", None, over, Domain("vector")), tuple(nodes))  # type: ignore[arg-type]
    return Beliefs(parts, joints, sizes)


def _number(value: Any) -> Any:
    return value.item()  # a NumPy number among the options


def _constants(model: Model) -> str:
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


def _read_method(method: Any) -> Any:
    if isinstance(method, str):
        return method
    if "method" in method:
        return Method(**method["method"])
    return {name: _read_method(value) for name, value in method["by_name"].items()}


# reading --------------------------------------------------------------------------------------------------------------


class _Reader:
    """An open file: its description, and its arrays by number, each read when it is asked for."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self.meta = json.loads(archive.read("meta.json"))

    def array(self, number: int) -> np.ndarray:
        return np.load(io.BytesIO(self._archive.read(f"{int(number)}.npy")), allow_pickle=False)

    def named(self, group: str) -> dict[str, np.ndarray]:
        return {name: self.array(number) for name, number in self.meta[group].items()}

    def sparse(self) -> dict[str, Any]:
        """The sparse inputs; files of earlier versions know of none."""
        found = self.meta.get("sparse", {})
        if not found:
            return {}
        from scipy.sparse import csr_array  # here: it takes a quarter of a second to import

        arrays = {name: {part: self.array(n) for part, n in entry["parts"].items()} for name, entry in found.items()}
        return {
            name: csr_array((parts["data"], parts["indices"], parts["indptr"]), shape=found[name]["shape"])
            for name, parts in arrays.items()
        }

    def family(self, entry: Any) -> Any:
        fields = {
            name: self.family(value) if isinstance(value, Mapping) else self.array(value)
            for name, value in entry["fields"].items()
        }
        return KINDS[entry["family"]](**fields)


def load(path: str | os.PathLike[str], model: Model | None = None) -> Any:
    """The posterior that `posterior.save(path)` wrote.

    With the `model` that made it, a `Posterior` that can do all that the saved one could; nothing is inferred again.
    Without, a `Saved`: marginals, evidence, summary and what else needs no model. Raises DataError for a file that is
    damaged, of another kind or of a newer version, and for a model that is not the one of the file.
    """
    where = f"'{os.fspath(path)}'"
    if model is not None and not isinstance(model, Model):
        raise DataError(f"cv.load(path, model) takes a cv.Model; found {type(model).__name__}.")
    try:
        with zipfile.ZipFile(path) as archive:
            if "meta.json" not in archive.namelist():
                raise DataError(_foreign(where))
            if (broken := archive.testzip()) is not None:
                raise zipfile.BadZipFile(f"the checksum of its part {broken} is wrong")
            reader = _Reader(archive)
            _check_version(where, reader.meta)
            return _saved(reader) if model is None else _posterior(reader, model, where)
    except (FileNotFoundError, IsADirectoryError, PermissionError, DataError):
        raise
    except zipfile.BadZipFile as problem:
        raise DataError(
            f"{where} is damaged or is no posterior ({problem}). Save the posterior again with posterior.save(path), "
            "or restore the file from a copy."
        ) from None
    except (KeyError, TypeError, ValueError, AttributeError, EOFError, OSError, zlib.error, NotImplementedError) as e:
        raise DataError(
            f"{where} is damaged: its parts do not fit together ({type(e).__name__}: {e}). Save the posterior again "
            "with posterior.save(path), or restore the file from a copy."
        ) from None


def _foreign(where: str) -> str:
    return f"{where} is not a saved posterior: it is another kind of archive. cv.load reads what posterior.save wrote."


def _check_version(where: str, meta: Any) -> None:
    if not isinstance(meta, Mapping) or meta.get("format") != FORMAT:
        raise DataError(_foreign(where))
    if not isinstance(meta.get("version"), int) or meta["version"] > VERSION:
        raise DataError(
            f"{where} has format version {meta.get('version')}, and this cavity reads up to {VERSION}: a newer one "
            "wrote it. Upgrade cavity, or save the posterior again with this one."
        )


def _saved(reader: _Reader) -> Saved:
    meta = reader.meta
    families = {name: reader.family(entry) for name, entry in meta["families"].items()}
    priors = meta["baseline"]
    if isinstance(priors, Mapping):
        priors = {_part(name): tuple(map(reader.array, numbers)) for name, numbers in priors.items()}
    elif not isinstance(priors, str):
        priors = {_part(entry["part"]): tuple(map(reader.array, entry["naturals"])) for entry in priors}
    return Saved(
        name=meta["name"],
        families=families,
        without_family=meta["without_family"],
        sizes=meta["sizes"],
        log_evidence=float(reader.array(meta["log_evidence"])),
        evidence={name: float(value) for name, value in reader.named("evidence").items()},
        code=meta["code"],
        iterations=meta["iterations"],
        trace=Trace(*map(reader.array, meta["trace"])),
        restarts=reader.array(meta["restarts"]),
        floored=meta["floored"],
        diagnosis=meta["diagnosis"],
        explanation=meta["explanation"],
        carried=_read_beliefs(reader),
        baseline=priors,
    )


def _posterior(reader: _Reader, model: Model, where: str) -> Posterior:
    meta = reader.meta
    _check_model(meta, model, where)
    asked = meta["program"]
    options = Options(**asked["options"])
    program = Program(model, asked["observed"], _read_method(asked["method"]), asked["sizes"], options)
    inputs = {**reader.named("inputs"), **reader.sparse()}
    binding = Binding(meta["sizes"], inputs, *(reader.named(group) for group in ("observed", "missing")))
    with jax.enable_x64(True):
        machine, run = program._run(binding, binding.inputs, frozenset(map(_part, asked["given"])))
        arrays = {**arrays_of(binding, machine.graph), **reader.named("given")}
        form = jax.eval_shape(Runner(machine, options, lambda: None)._run_all, arrays, key_of(0))
    places, tree = jax.tree_util.tree_flatten_with_path(form)
    found = reader.named("outputs")
    absent = [key for key in (jax.tree_util.keystr(place) for place, _ in places) if key not in found]
    if absent:
        raise DataError(
            f"{where} was written by another version of cavity, whose runs gave no {absent[0]}. Read it without its "
            "model, cv.load(path), or infer and save again."
        )
    outputs = jax.tree.unflatten(tree, [found[jax.tree_util.keystr(place)] for place, _ in places])
    return Posterior(machine, arrays, binding, Result(outputs, run.settings), program)


def _check_model(meta: Any, model: Model, where: str) -> None:
    """The declarations are compared as they print, and the constants by digest."""
    theirs, ours = meta["model"].splitlines()[1:], repr(model).splitlines()[1:]
    if theirs != ours:
        lost, extra = [line for line in theirs if line not in ours], [line for line in ours if line not in theirs]
        parts = [
            f"its model '{meta['name']}' declares \"{line.strip()}\", which this one does not" for line in lost[:1]
        ]
        parts += [f'this one declares "{line.strip()}"' for line in extra[:1]]
        raise DataError(
            f"{where} is a posterior of another model: {', '.join(parts) or 'the order of declarations differs'}. "
            "Load it with the model that made it, or without one: cv.load(path)."
        )
    if meta["constants"] != _constants(model):
        raise DataError(
            f"{where} is a posterior of a model with the same declarations but other constants (numbers or arrays in "
            "its terms). Load it with the model that made it, or without one: cv.load(path)."
        )
