"""Posteriors from files: what `save` wrote is checked and made a posterior again.

A file is judged before anything of it is used, and reading it runs none of its code.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypeAlias, overload
from zipfile import BadZipFile

import jax
import numpy as np
from jaxtyping import Bool

from ..compiler.data.bind import Binding
from ..compiler.data.labels import placed
from ..compiler.graph import Joint
from ..compiler.language.model import Model
from ..compiler.language.nodes import Plate, Random
from ..compiler.methods import Method
from ..compiler.passes.given import Part
from ..compiler.schedules import Schedule
from ..factors.calls import call_checked
from ..factors.conditionals import conditional_named
from ..factors.domains import Domain
from ..factors.errors import DataError
from ..factors.families import BY_NAME, FOR_DOMAIN, Family, Point
from ..factors.switches import double_precision
from .answers.marginal import Axis
from .answers.next_prior import Beliefs
from .answers.verdict import LEVELS, Verdict
from .data.missing_and_sparse import Arrays, arrays_of
from .data.rules_of_arguments import bind_checked
from .distributions.cases import Cases, Projected
from .distributions.compound import Compound
from .distributions.count_table import CountTable
from .distributions.mixed_over_grid import FROM_REAL, GridMixture, OnGrid
from .distributions.partly_observed import Completed
from .distributions.tabulated import Tabulated
from .distributions.weighted_draws import WeightedDraws
from .evidence.at_points import Mixture
from .evidence.conditionals import Conditionals
from .evidence.hyperparameters import scalars_of
from .evidence.integrated import Integrated
from .files.archive import DAMAGED, Archive, Foreign, opened
from .files.description import (
    Description,
    DrawsEntry,
    FamilyEntry,
    FieldEntry,
    IntegrationEntry,
    MethodEntry,
    OneMethod,
    ProgramEntry,
)
from .files.file_checks import check_belief, check_description, check_leaves, check_values, check_weights
from .files.paths import text_of
from .files.save import FORMAT, VERSION, digest_of_constants
from .files.saved_posterior import Saved
from .options import Asked, Options
from .posterior import Posterior
from .program import Program
from .run.fixed_points import Restarts, from_table, single
from .run.machine import Machine
from .run.progress import Timing
from .run.result import Result
from .run.runner import Runner
from .run.trace import Trace
from .values.first_beliefs import family_of

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from .evidence.reweighted import Reweighted

Nested: TypeAlias = "str | int | float | Sequence[Nested] | None"
KINDS: dict[str, type[Family]] = {
    **BY_NAME,
    **{kind.__name__: kind for kind in (Point, Completed, Compound, Cases, Projected, CountTable, Tabulated)},
    **{kind.__name__: kind for kind in (GridMixture, OnGrid, WeightedDraws)},
}


Json: TypeAlias = Any  # nested lists, dictionaries, strings and numbers of a description, whose form is checked


class _Reader:
    """What an open file holds besides arrays."""

    def __init__(self, archive: Archive) -> None:
        self.meta: Description = archive.meta
        self.array = archive.array

    def named(self, group: str) -> dict[str, np.ndarray]:
        return {name: self.array(number) for name, number in self.meta[group].items()}

    def sparse(self) -> dict[str, csr_array]:
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

    def family(self, entry: FamilyEntry, part_of_mixture: bool = False) -> Family:
        """A family that is checked; those of a mixture with it, which knows how much each counts."""
        kind = KINDS[entry["family"]]
        inside = part_of_mixture or kind is GridMixture
        family = kind(**{name: self._field(value, inside) for name, value in entry["fields"].items()})
        if isinstance(family, OnGrid) and family.kind not in FROM_REAL:
            raise ValueError(f"a scalar on a grid is of the kind {family.kind!r}")
        if not part_of_mixture:
            check_belief(family)
        return family

    def _field(self, value: FieldEntry, part_of_mixture: bool) -> Any:  # of a family, of any kind
        if isinstance(value, list):
            return tuple(self._field(part, part_of_mixture) for part in value)
        if not isinstance(value, Mapping):
            return self.array(value)
        if "conditional" in value:
            return conditional_named(value["conditional"])
        if "text" in value:
            return _text(value["text"])
        if "kind" in value:
            return _kind(value["kind"])
        return _nested(value["formulas"]) if "formulas" in value else self.family(value, part_of_mixture)


def _text(value: str | None) -> str | None:
    if not (value is None or isinstance(value, str)):
        raise ValueError(f"a distribution says of itself {value!r}")
    return value


def _kind(value: str) -> str:
    """That of a domain."""
    if value not in {*FROM_REAL, *FOR_DOMAIN}:
        raise ValueError(f"a distribution is of the kind {value!r}")
    return value


def _nested(value: Nested) -> Nested:
    """Lists of lists as tuples of tuples."""
    return tuple(map(_nested, value)) if isinstance(value, list) else value


def _part(entry: Part | str) -> Part:
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


def _read_method(method: MethodEntry) -> Asked:
    if not isinstance(method, str) and "by_name" in method:
        return {name: _one_method(value) for name, value in method["by_name"].items()}
    return _one_method(method)


def _one_method(method: str | OneMethod) -> str | Method:
    return method if isinstance(method, str) else Method(**method["method"])


@overload
def load(path: str | os.PathLike[str], model: Model) -> Posterior | Integrated | Reweighted: ...


@overload
def load(path: str | os.PathLike[str], model: None = None) -> Saved: ...


def of_bytes(content: bytes, model: Model) -> Posterior | Integrated | Reweighted:
    """The posterior of the `model` that a file of this content has."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix="cavity-") as place:
        path = os.path.join(place, "posterior")
        with open(path, "wb") as file:
            file.write(content)
        return load(path, model)


@call_checked
def load(path: str | os.PathLike[str], model: Model | None = None) -> Posterior | Integrated | Reweighted | Saved:
    """The posterior that `posterior.save(path)` wrote.

    With the `model` that made it, a posterior of the same kind that can do all that the saved one could; nothing is
    inferred again, but for the `plain` of an integrated one when it is asked for.
    Without, a `Saved`: marginals, evidence, summary and what else needs no model. Raises DataError for a file that is
    damaged, of another kind or of a newer version, and for a model that is not the one of the file; one that is a
    FileNotFoundError too where there is none. ModelError for what is no path.
    """
    where = f"'{text_of(path)}'"
    if model is not None and not isinstance(model, Model):
        raise DataError(f"cv.load(path, model) takes a cv.Model; found {type(model).__name__}.")
    try:
        with opened(path) as archive:
            _check_version(where, archive.meta)
            archive.verify()
            reader = _Reader(archive)
            check_description(archive.meta, reader.array)
            if model is None:
                return _saved(reader)
            _check_model(reader.meta, model, where)
            integration = reader.meta.get("integration")
            if integration is None:
                found = _posterior(reader, model, where)
            else:
                found = _integrated(reader, model, where, integration)
            if (draws := reader.meta.get("draws")) is not None:
                found = _reweighted(reader, found, draws)
            found._tell(_verdict(reader.meta))
            return found
    except DataError:
        raise
    except Foreign:
        raise DataError(_foreign(where)) from None
    except BadZipFile as problem:
        raise DataError(
            f"{where} is damaged or is no posterior ({problem}). Save the posterior again with posterior.save(path), "
            "or restore the file from a copy."
        ) from None
    except DAMAGED as e:
        raise DataError(
            f"{where} is damaged: its parts do not fit together ({type(e).__name__}: {e}). Save the posterior again "
            "with posterior.save(path), or restore the file from a copy."
        ) from None


def _foreign(where: str) -> str:
    return f"{where} is not a saved posterior: it is another kind of archive. cv.load reads what posterior.save wrote."


def _check_version(where: str, meta: object) -> None:
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
        restarts=_single(reader) if meta.get("draws") is not None else _restarts(reader),
        floored=meta["floored"],
        diagnosis=meta["diagnosis"],
        explanation=meta["explanation"],
        carried=_read_beliefs(reader),
        baseline=priors,
        timing=_timing(meta),
        told=_verdict(meta),
        axes=_axes(meta, families),
    )


def _axes(meta: Description, families: Mapping[str, Family]) -> dict[str, tuple[Axis, ...]]:
    """What the axes of each mean are; files of before 0.6 do not tell."""
    names = {plate: tuple(labels) for plate, labels in meta.get("names", {}).items()}
    found = {}
    for name, entry in meta.get("axes", {}).items():
        axes = tuple(Axis(plate, names.get(plate), bool(of_classes)) for plate, of_classes in entry)
        shape = np.shape(families[name].mean())
        for axis, size in zip(axes, shape, strict=False):
            if axis.labels is not None and len(axis.labels) != size:
                raise ValueError(f"{name!r} has {size} elements along {axis.name!r}, and {len(axis.labels)} names")
        found[name] = axes
    return found


def _timing(meta: Description) -> Timing | None:
    found = meta.get("timing")
    return None if found is None else Timing(bool(found[0]), *found[1:])


def _restarts(reader: _Reader) -> Restarts:
    """The fixed points that the starts met; files of earlier versions have the evidence of each start alone."""
    by_start = reader.array(reader.meta["restarts"])
    if "fixed_points" not in reader.meta:
        return Restarts(_single(reader).points, by_start)
    return from_table(reader.array(reader.meta["fixed_points"]), by_start)


def _single(reader: _Reader) -> Restarts:
    """Those of an answer that had one start, which draws are too."""
    meta = reader.meta
    return single(float(reader.array(meta["log_evidence"])), meta["code"] == "converged", meta["iterations"])


def _position(meta: Description) -> int:
    found = meta.get("position", 0)
    if isinstance(found, bool) or not isinstance(found, int) or found < 0:
        raise ValueError(f"its position among fixed points is {found!r}")
    return found


def _verdict(meta: Description) -> Verdict | None:
    """That of the file, whose level must be one that there is; files of earlier versions have none."""
    found = meta.get("verdict")
    if found is None:
        return None
    if found["level"] not in LEVELS:
        raise ValueError(f"its verdict is {found['level']!r}")
    return Verdict(found["level"], found["reason"])


def program_of(asked: ProgramEntry, model: Model, **changes: Any) -> Program:
    """The program that ran, with some options changed; nothing is compiled."""
    schedule = Schedule(**asked["options"].get("schedule", {}))
    options = Options(**{**asked["options"], "schedule": schedule, **changes})
    return Program(model, asked["observed"], _read_method(asked["method"]), asked["sizes"], options)


def _posterior(reader: _Reader, model: Model, where: str) -> Posterior:
    program = program_of(reader.meta["program"], model)
    binding = bind_checked(model, _data(reader, model), reader.meta["sizes"])
    program.check_observed(binding)
    given = frozenset(map(_part, reader.meta["program"]["given"]))
    with double_precision():
        machine, run = program.machine_and_runner(binding, binding.inputs, given)
    arrays = {**arrays_of(binding, machine.graph), **reader.named("given")}
    outputs = _outputs(reader, where, machine, program.options, arrays)
    result = Result(
        outputs,
        run.settings,
        _timing(reader.meta),
        reader.meta.get("remark", ""),
        restarts=_restarts(reader),
        position=_position(reader.meta),
    )
    return program.posterior(machine, arrays, binding, result)


def _integrated(reader: _Reader, model: Model, where: str, found: IntegrationEntry) -> Integrated:
    program, data = program_of(reader.meta["program"], model), _data(reader, model)
    values = {name: reader.array(number) for name, number in found["values"].items()}
    weights = reader.array(found["weights"])
    heavy = check_weights(weights)
    scalars = {name: node.domain for name, node in scalars_of(program).items() if name in values}
    check_values(values, {name: domain.kind for name, domain in scalars.items()}, len(weights))
    seed = found["seed"]
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise ValueError(f"its seed is {seed!r}, which is no whole number")
    plain = cache(partial(program.run, data, seed=seed))
    conditionals = Conditionals(program, data, program.bind(data), tuple(values), seed, plain)
    one = {name: array[0] for name, array in values.items()}
    arrays, options = {**conditionals.arrays, **one}, conditionals.program.options
    outputs = _outputs(reader, where, conditionals.machine, options, arrays, heavy)
    families: Any = {name: reader.family(entry) for name, entry in found["families"].items()}
    axes = {name: int(domain.is_category) for name, domain in scalars.items()}  # the mean has one for its classes
    if {name: np.ndim(family.mean()) for name, family in families.items()} != axes:
        raise ValueError("the marginals of its grid are not those of the scalars that it integrated")
    draws = reader.meta.get("draws")  # whose evidence is that of the file
    evidence = reader.meta["log_evidence"] if draws is None else draws["plain"]
    error, total = (float(reader.array(number)) for number in (found["error"], evidence))
    timing = _timing(reader.meta)
    return Integrated(conditionals, Mixture(values, outputs, families, weights, error, total, timing))


def _reweighted(reader: _Reader, plain: Posterior | Integrated, found: DrawsEntry) -> Reweighted:
    """The posterior of weighted draws of the density that `plain` approximates."""
    from .checks.psis import Smoothed  # here: few files have draws
    from .checks.reference import Reference, functions
    from .density.log_density import density_of
    from .evidence.reweighted import Reweighted

    density = density_of(plain)
    z, weights = reader.array(found["z"]), reader.array(found["weights"])
    check_weights(weights)
    if z.shape != (len(weights), density.dimension) or not np.isfinite(z).all():
        raise ValueError(f"its draws are no {len(weights)} points of {density.dimension} coordinates")
    numbers = found["k"], found["effective"], reader.meta["log_evidence"], found["error"], found["annealed"]
    k, effective, total, error, annealed = (float(reader.array(number)) for number in numbers)
    drawn = Reference(z, Smoothed(weights, k, effective), total, error, bool(annealed))
    return Reweighted(plain, density, functions(density), drawn)


def _outputs(
    reader: _Reader,
    where: str,
    machine: Machine,
    options: Options,
    arrays: Arrays,
    heavy: Bool[np.ndarray, " K"] | None = None,
) -> Any:
    """The outputs in the file, checked against those of the program; stacked where there are several points."""
    with double_precision():
        form = Runner(machine, options, lambda: None).form(arrays)
    places, tree = jax.tree_util.tree_flatten_with_path(form)
    found = reader.named("outputs")
    absent = [key for key in (jax.tree_util.keystr(place) for place, _ in places) if key not in found]
    if absent:
        raise DataError(
            f"{where} was written by another version of cavity, whose runs gave no {absent[0]}. Read it without its "
            "model, cv.load(path), or infer and save again."
        )
    leaves = [found[jax.tree_util.keystr(place)] for place, _ in places]
    check_leaves({jax.tree_util.keystr(place): leaf for place, leaf in places}, leaves, heavy)
    outputs = jax.tree.unflatten(tree, leaves)
    for name, own in outputs["beliefs"].items():
        known = own if heavy is None else tuple(part[heavy] for part in own)
        check_belief(family_of(machine.graph.latent[name]).from_naturals(known))
    return outputs


def _data(reader: _Reader, model: Model) -> dict[str, Any]:
    """The data of the file, as a user would give them, with their names; files of before have none."""
    inputs = {**reader.named("inputs"), **reader.sparse()}
    observed, missing = reader.named("observed"), reader.named("missing")
    if lost := [name for name, array in observed.items() if array.dtype.kind == "f" and np.isnan(array).any()]:
        raise ValueError(f"its observations of '{lost[0]}' are NaN, and not marked as missing")
    names = {plate: tuple(labels) for plate, labels in reader.meta.get("names", {}).items()}
    absent = {name: array.astype(bool) for name, array in missing.items()}
    data = Binding(reader.meta["sizes"], inputs, observed, absent)
    return placed(model, {**inputs, **data.masked()}, names)


def _check_model(meta: Description, model: Model, where: str) -> None:
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
    if meta["constants"] != digest_of_constants(model):
        raise DataError(
            f"{where} is a posterior of a model with the same declarations but other constants (numbers or arrays in "
            "its terms). Load it with the model that made it, or without one: cv.load(path)."
        )
