"""What `meta.json` in the file of a posterior holds; a number in place of an array is that of its part, as of 0.npy."""

from __future__ import annotations

from typing import Any, NotRequired, TypeAlias, TypedDict, final

from ...compiler.passes.given import Part
from ..distributions.formula import Tree


class FamilyEntry(TypedDict):
    """A belief: the name of its class, and its fields."""

    family: str
    fields: dict[str, FieldEntry]


class ConditionalEntry(TypedDict):
    """A conditional distribution, by name."""

    conditional: str


class FormulasEntry(TypedDict):
    """The arguments of a compound distribution as expressions (see `engine/distributions/formula.py`)."""

    formulas: tuple[tuple[str, Tree], ...]


class KindEntry(TypedDict):
    """The kind of a domain."""

    kind: str


class TextEntry(TypedDict):
    """What a distribution says of itself; None where it has no part of the name."""

    text: str | None


FieldEntry: TypeAlias = (
    "int | list[FieldEntry] | FamilyEntry | ConditionalEntry | FormulasEntry | KindEntry | TextEntry"
)


class SparseEntry(TypedDict):
    """A matrix in compressed rows: its shape, and the arrays `data`, `indices` and `indptr`."""

    shape: list[int]
    parts: dict[str, int]


class MemberEntry(TypedDict):
    """A variable of a joint belief: its name, kind and size of a value, and the sizes of its plates."""

    name: str
    kind: str
    size: int | None
    plates: dict[str, int]


class CarriedEntry(TypedDict):
    """A carried belief, and the variables of a joint one."""

    part: Part
    family: FamilyEntry
    members: list[MemberEntry]


class PriorEntry(TypedDict):
    """The natural parameters of the prior of a carried part."""

    part: Part
    naturals: list[int]


class MethodFields(TypedDict):
    """Those of a `Method`."""

    name: str
    alpha: float
    bound: str | None


@final
class OneMethod(TypedDict):
    """A method that no word stands for."""

    method: MethodFields


@final
class ManyMethods(TypedDict):
    """Methods by name of the variable."""

    by_name: dict[str, str | OneMethod]


MethodEntry: TypeAlias = str | OneMethod | ManyMethods


class ProgramEntry(TypedDict):
    """What the program was compiled for."""

    observed: list[str]
    method: MethodEntry
    sizes: dict[str, int]
    options: dict[str, Any]  # the fields of `Options`
    given: list[Part]


class IntegrationEntry(TypedDict):
    """What an integrated posterior has beside a plain one; `outputs` are stacked over the points of the grid."""

    seed: int
    values: dict[str, int]
    weights: int
    error: int
    families: dict[str, FamilyEntry]


class DrawsEntry(TypedDict):
    """What a posterior of weighted draws has beside the one that it corrects, whose outputs are those of the file.

    `z` are the draws in unconstrained coordinates, `weights` their probabilities, `k` and `effective` the shape of the
    weights' tail and what they are worth, `error` that of the log evidence, `annealed` one where they came along a
    path, and `plain` the log evidence of what was corrected.
    """

    z: int
    weights: int
    k: int
    effective: int
    error: int
    annealed: int
    plain: int


class VerdictEntry(TypedDict):
    """The fields of a `Verdict`."""

    level: str
    reason: str


class Description(TypedDict):
    """All of it; `baseline` is the reason where the carried variables have no priors of their own."""

    format: str
    version: int
    name: str
    model: str
    constants: str
    program: ProgramEntry
    sizes: dict[str, int]
    names: NotRequired[dict[str, list[Any]]]  # of the elements of plates
    inputs: dict[str, int]
    sparse: dict[str, SparseEntry]
    observed: dict[str, int]
    missing: dict[str, int]
    given: dict[str, int]
    outputs: dict[str, int]
    families: dict[str, FamilyEntry]
    axes: NotRequired[dict[str, list[list[Any]]]]  # of the mean of each family: plate, and whether it is of classes
    without_family: dict[str, str]
    carried: list[CarriedEntry]
    baseline: list[PriorEntry] | str
    log_evidence: int
    evidence: dict[str, int]
    code: str
    iterations: int
    trace: list[int]
    restarts: int  # the log evidence by start
    fixed_points: NotRequired[int]  # by row: log evidence, whether converged, sweeps, starts
    position: NotRequired[int]  # of `Result`
    floored: dict[str, int]
    diagnosis: str
    explanation: str
    timing: NotRequired[list[float] | None]  # as `Timing`; files of earlier versions have none
    remark: NotRequired[str]  # of `Result`
    verdict: NotRequired[VerdictEntry | None]  # None where it was not asked for
    integration: NotRequired[IntegrationEntry | None]
    draws: NotRequired[DrawsEntry | None]
