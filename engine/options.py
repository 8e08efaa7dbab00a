"""What inference is asked for: the model and the options of a run, and its random key."""

from __future__ import annotations

import dataclasses
import operator
import zlib
from collections.abc import Mapping
from typing import TypeAlias

import jax
import numpy as np
from jax.sharding import Mesh
from jaxtyping import UInt32

from ..compiler.language.model import Model
from ..compiler.methods import Method
from ..compiler.schedules import PLAIN, Schedule, checked_schedule
from ..factors.errors import ModelError

Asked: TypeAlias = str | Method | Mapping[str, str | Method]  # of the whole model, or by name of the variable


ACCURACIES = ("fast", "default", "best")
COUNTS = {"max_iterations": (1, 10**9), "restarts": (1, 10**6), "acceleration": (0, 1000)}  # the least and the most


@dataclasses.dataclass(frozen=True)
class Options:
    """Options of a run: see `infer`."""

    tolerance: float = 1e-6
    max_iterations: int = 1000
    restarts: int | None = None  # None: one, or some by default where there may be several modes
    acceleration: int = 10
    trace_evidence: bool = True
    progress: bool | None = None
    accuracy: str = "default"
    execution: str = "auto"
    damping: float = 0.0
    schedule: str | Schedule = PLAIN  # by name, or one; a Schedule once it is checked
    mesh: Mesh | None = None  # of the devices that rows are dealt to

    @property
    def starts(self) -> int:
        """How many starts a run has."""
        return 1 if self.restarts is None else self.restarts

    @property
    def of_plan(self) -> str:
        """The accuracy that plans are made for: "best", or "default"."""
        return "best" if self.accuracy == "best" else "default"

    @property
    def execution_of_sweeps(self) -> str:
        """Who runs the sweeps: those of a double loop search, so nobody can count what NumPy would take.

        Several devices run what is compiled.
        """
        searching = self.execution == "auto" and self.updates.loop == "double"
        return "compile" if searching or self.mesh is not None else self.execution

    @property
    def updates(self) -> Schedule:
        """The order of updates that was asked for."""
        return checked_schedule(self.schedule)

    def __post_init__(self) -> None:
        object.__setattr__(self, "schedule", checked_schedule(self.schedule))
        if self.mesh is not None and not isinstance(self.mesh, Mesh):
            raise ModelError(
                f"mesh= is a jax.sharding.Mesh, whose devices share the rows of the data; found {self.mesh!r}. "
                "jax.make_mesh((jax.device_count(),), ('rows',)) has all devices."
            )
        if self.mesh is not None and self.updates.loop == "double":
            raise ModelError(
                "schedule='double loop' searches over the messages of all rows at once, and mesh= has each device keep "
                "those of its own. Leave one of them out."
            )
        if not isinstance(self.accuracy, str) or self.accuracy not in ACCURACIES:
            raise ModelError(
                f"accuracy= is 'fast', 'default' or 'best'; found {self.accuracy!r}. 'fast' is one inference with "
                "factorised beliefs; 'default' integrates the scalars that this gets wrong where effort= allows; "
                "'best' treats jointly and exactly what is affordable, also where a method was asked for."
            )
        if not isinstance(self.execution, str) or self.execution not in ("auto", "interpret", "compile"):
            raise ModelError(
                f"execution= is 'auto', 'interpret' or 'compile'; found {self.execution!r}. 'interpret' has NumPy "
                "run the sweeps, which spares the compilation; 'compile' makes machine code, many times as fast."
            )
        for name, (low, high) in COUNTS.items():
            number = getattr(self, name)
            if name == "restarts" and number is None:
                continue
            if not isinstance(number, (int, np.integer)) or isinstance(number, bool) or not low <= number <= high:
                raise ModelError(
                    f"{name}= must be a whole number of at least {low}, and at most {high:,}; found {number!r}."
                )
        for name, allowed in (("trace_evidence", (True, False)), ("progress", (True, False, None))):
            if not isinstance(getattr(self, name), (bool, np.bool_)) and getattr(self, name) is not allowed[-1]:
                raise ModelError(f"{name}= is one of {', '.join(map(str, allowed))}; found {getattr(self, name)!r}.")
        kept = isinstance(self.damping, (int, float, np.number)) and not isinstance(self.damping, bool)
        if not kept or not 0 <= self.damping < 1:
            raise ModelError(
                f"damping= is the share of the old messages that every step keeps, at least 0 and below 1; found "
                f"{self.damping!r}. A run that oscillates may need 0.5; 0 leaves damping to the controller."
            )
        number = isinstance(self.tolerance, (int, float, np.number)) and not isinstance(self.tolerance, bool)
        if not number or not 0 < self.tolerance < np.inf:
            raise ModelError(
                f"tolerance= is in posterior standard deviations, positive and finite; found {self.tolerance!r}. "
                "Try 1e-6."
            )


@dataclasses.dataclass(frozen=True, eq=False)
class Request:
    """What a program is compiled for; a posterior keeps it to say what it is an answer to."""

    model: Model
    observed: frozenset[str]
    method: Asked
    sizes: Mapping[str, int]  # of plates that neither the model nor the data tell
    options: Options


def checked_effort(effort: object) -> float:
    """Seconds of computing; ModelError for anything but a number that is not negative."""
    number = isinstance(effort, (int, float, np.number)) and not isinstance(effort, bool)
    if not number or not effort >= 0:  # type: ignore[operator]
        raise ModelError(
            f"effort= is in seconds of computing beyond the cheapest answer, at least 0; found {effort!r}. The default "
            "is 1; 0 has accuracy='default' do as 'fast'."
        )
    return float(effort)  # type: ignore[arg-type]


def seed_of(seed: object) -> int:
    """A seed as a whole number below 2^63: one that is given as it is, of a key of jax.random one of 31 bits.

    ModelError for anything else. The same seed gives the same result.
    """
    if isinstance(seed, jax.Array) and jax.numpy.issubdtype(seed.dtype, jax.dtypes.prng_key):
        seed = jax.random.key_data(seed)
    if isinstance(seed, (jax.Array, np.ndarray)) and seed.dtype == np.uint32 and seed.ndim == 1:  # words
        return zlib.crc32(np.asarray(seed).tobytes()) >> 1
    try:
        number = operator.index(seed)  # type: ignore[arg-type]
    except TypeError:
        number = -1
    if isinstance(seed, bool) or not 0 <= number < 2**63:
        raise ModelError(
            f"seed= must be a whole number of at least 0, below 2^63, or jax.random.key(number); found {seed!r}. The "
            "same seed gives the same result."
        )
    return number


def key_of(seed: object) -> UInt32[np.ndarray, " 2"]:
    """The data of a random key; ModelError for what is no seed."""
    number = seed_of(seed)
    return np.asarray([number >> 32, number & 0xFFFFFFFF], np.uint32)
