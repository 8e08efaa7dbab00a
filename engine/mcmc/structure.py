"""Structures: arrays that a model takes as data and that moves change, and the protocol of these moves.

Which features are active, allocations, change points, edges, a tree. To all other moves of a sweep they are data, whose
values stand in the state of the chain.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from ...compiler.data.bind import sizes_of
from ...compiler.language.model import Model
from ...compiler.language.nodes import Input, Plate, Random
from ...factors.arrays import Array, Key
from ...factors.errors import DataError, ModelError
from ..values.scope import Scope

Values: TypeAlias = dict[str, Any]
Structure: TypeAlias = PyTree[Array]  # in a form of the move's own
Score: TypeAlias = Callable[[Structure], Array]
Asked: TypeAlias = "Mapping[str | tuple[str, ...], StructureMove | Sequence[StructureMove]]"


class Place(NamedTuple):
    """An array of data that a move yields.

    Attributes:
        name: of the input or the variable.
        shape: plates, then the axes of one value.
        states: how many values an element of a boolean, category or index has; None of numbers.
        start: the array that the user gives to begin with, if any.
        has_prior: whether it is a variable, whose prior the model has.
    """

    name: str
    shape: tuple[int, ...]
    states: int | None
    start: np.ndarray | None
    has_prior: bool = False


@runtime_checkable
class StructureMove(Protocol):
    """How a structure begins, what its prior is, and how another one is proposed.

    A frozen value. `propose` and all that follows from it is traced by JAX, `init` is not. A structure is a pytree of
    arrays whose shapes stay as they are.

    A move of several arrays may say which, as `names`, a tuple: then it is asked for under the first of them.

    Attributes:
        times: proposals in a sweep.
    """

    @property
    def times(self) -> int: ...

    def init(self, key: Key, places: tuple[Place, ...], data: Mapping[str, Any]) -> Structure:
        """Where a chain begins: `places` are the arrays asked of it, `data` those that the user gives."""
        ...

    def data_of(self, structure: Structure) -> tuple[Array, ...]:
        """The arrays that the model takes, in the order of the places."""
        ...

    def log_prior(self, structure: Structure) -> Array:
        """Its log prior probability or density, up to a constant; zero where the model itself has a prior of it."""
        ...

    def propose(self, key: Key, structure: Structure, score: Score) -> tuple[Structure, Array]:
        """Another structure, and log q(old | new) - log q(new | old).

        `score(structure)` is the log of the joint density of structure and data, up to a constant: of all that is
        collapsed the log evidence, given the other variables, and the log prior. Where the proposal is drawn from the
        scores themselves, the ratio takes them out again.
        """
        ...


@dataclasses.dataclass(frozen=True)
class Structured:
    """Arrays of data that moves change: the first move begins them and has their prior."""

    places: tuple[Place, ...]
    moves: tuple[StructureMove, ...]
    data: Mapping[str, Any]

    @property
    def names(self) -> tuple[str, ...]:
        """Of the arrays."""
        return tuple(place.name for place in self.places)

    @property
    def own(self) -> str:
        """Under which the structure itself stands among the values."""
        return f"structure of {', '.join(self.names)}"

    @property
    def told(self) -> str:
        """Under which stands what each move did in the last sweep: (moves, 2), proposed what is new, and taken."""
        return f"proposals of {', '.join(self.names)}"

    def start(self, key: Key) -> Values:
        """The structure that a chain begins with, its arrays, and that nothing was proposed."""
        nothing = {self.told: jnp.zeros((len(self.moves), 2), int)}
        return self.put(nothing, self.moves[0].init(key, self.places, self.data))

    def log_prior(self, structure: Structure) -> Array:
        """Of the first move: all have one prior."""
        return self.moves[0].log_prior(structure)

    def put(self, values: Values, structure: Structure) -> Values:
        """The values with another structure."""
        return {**values, **dict(zip(self.names, self.moves[0].data_of(structure), strict=True)), self.own: structure}


# what is asked --------------------------------------------------------------------------------------------------------


def structures_of(
    model: Model, data: Mapping[str, Any], sizes: Mapping[str, int] | None, moves: Asked
) -> tuple[Structured, ...]:
    """What `moves=` asks for: by the name of an input or a discrete variable, or by several, a move or several.

    ModelError for what is no move of a structure, or no name of one.
    """
    if not isinstance(moves, Mapping):
        raise ModelError(f"moves= is a dictionary such as {{'active': cv.moves.births()}}; found {moves!r}.")
    found: list[Structured] = []
    for key, asked in moves.items():
        several = _several(key, asked)
        names = _names(key, several)
        if not names:
            raise ModelError("moves= has a move under no name: give that of an input or a discrete variable.")
        if taken := {name for one in found for name in one.names} & set(names):
            raise ModelError(f"moves= names '{min(taken)}' twice. Give the moves of one structure in a list.")
        others = {name: array for name, array in data.items() if name not in names}
        known = sizes_of(model, data, sizes)
        alone = len(names) == 1
        found.append(Structured(tuple(_place(model, name, data, known, alone) for name in names), several, others))
    return tuple(found)


def _names(key: str | tuple[str, ...], moves: Sequence[StructureMove]) -> tuple[str, ...]:
    """Of the arrays that are asked for: those that the first move changes together, where it says so."""
    own = tuple(getattr(moves[0], "names", ()))
    return own if own and key == own[0] else key if isinstance(key, tuple) else (key,)


def _several(key: str | tuple[str, ...], asked: object) -> tuple[StructureMove, ...]:
    several = tuple(asked) if isinstance(asked, (list, tuple)) else (asked,)
    found = tuple(move for move in several if isinstance(move, StructureMove))
    if not several or len(found) < len(several):
        raise ModelError(
            f"moves={{{key!r}: ...}} takes a move of cv.moves, such as cv.moves.flips(), a list of them, or an object "
            f"with the methods of one; found {asked!r}."
        )
    priors = [getattr(move, "prior", None) for move in found]
    if any(prior not in (None, priors[0]) for prior in priors[1:]):
        raise ModelError(f"moves={{{key!r}: ...}}: the first move of a list has the prior of all, a later one another.")
    return found


def _place(model: Model, name: str, data: Mapping[str, Any], sizes: Mapping[str, int], alone: bool) -> Place:
    """An array that a move yields. A continuous variable is one only beside others, such as what times follow from."""
    node = model.inputs.get(name, model.randoms.get(name))
    if node is None or (alone and isinstance(node, Random) and not node.domain.is_discrete):
        there = [*model.inputs, *(n for n, v in model.randoms.items() if v.domain.is_discrete)]
        what = "a continuous variable" if node is not None else "not declared"
        raise ModelError(
            f"moves= names '{name}', which is {what} in model \"{model.name}\": a structure is an input or a discrete "
            f"variable. There are: {', '.join(there) or '(none)'}."
        )
    if absent := [plate.name for plate in node.plates if plate.name not in sizes]:
        raise DataError(f"The size of plate '{absent[0]}' of '{name}' is not known. Give sizes={{'{absent[0]}': ...}}.")
    axes = (*(sizes[plate.name] for plate in node.plates), *_event(node, sizes))
    states = _states(node, sizes)
    start = _checked_start(name, data[name], axes, states) if name in data else None
    return Place(name, axes, states, start, isinstance(node, Random))


def _checked_start(name: str, given: Any, shape: tuple[int, ...], states: int | None) -> np.ndarray:
    """Where a structure begins, as an array; DataError for another shape, missing entries, and what is no state."""
    start = np.asarray(given)
    if start.shape != shape:
        raise DataError(f"'{name}' begins with an array of shape {start.shape}; the model declares {shape}.")
    if start.dtype.kind not in "biuf" or np.ma.is_masked(given) or not np.all(np.isfinite(start.astype(float))):
        raise DataError(
            f"'{name}' begins with an array that has missing entries, or no numbers. A structure moves as a whole: "
            "give all of it, or nothing to begin at random."
        )
    if states is not None and not np.all((start == np.floor(start)) & (start >= 0) & (start < states)):
        raise DataError(f"'{name}' begins with values that are no states: whole numbers from 0 to {states - 1}.")
    return start


def _event(node: Input | Random, sizes: Mapping[str, int]) -> tuple[int, ...]:
    domain = node.domain
    parts = domain.size if domain.is_matrix else [domain.size] * domain.event_ndim
    return tuple(Scope(dict(sizes), {}, {}).size(part) for part in parts)


def _states(node: Input | Random, sizes: Mapping[str, int]) -> int | None:
    domain = node.domain
    if domain.is_boolean:
        return 2
    if not (domain.is_index or domain.is_category):
        return None
    size = domain.plate if domain.is_index else domain.size
    return sizes[size.name] if isinstance(size, Plate) else size


def begun(data: Mapping[str, Any], structures: Sequence[Structured], seed: int) -> dict[str, Any]:
    """The data with a first structure in its place."""
    found = dict(data)
    for i, one in enumerate(structures):
        key = jax.random.fold_in(jax.random.key(seed), i)
        values = one.start(key)
        for move in one.moves:
            _check_form(one, move, key, values[one.own])
        found |= {name: np.asarray(values[name]) for name in one.names}
    return found


def _check_form(one: Structured, move: StructureMove, key: Key, structure: Structure) -> None:
    """ModelError for a move that does not take, or give back, structures in the form of the first move of its list."""
    try:
        found, _ = jax.eval_shape(lambda now: move.propose(key, now, lambda _: jnp.zeros(())), structure)
    except (AttributeError, IndexError, TypeError, ValueError) as problem:
        found, why = None, str(problem).splitlines()[0]
    else:
        why = "it proposes another form"
    form = jax.eval_shape(lambda now: now, structure)
    if (
        found is None
        or jax.tree.structure(found) != jax.tree.structure(form)
        or jax.tree.leaves(found) != jax.tree.leaves(form)
    ):
        first, other = (type(asked).__name__.lower() for asked in (one.moves[0], move))
        raise ModelError(
            f"moves= of {', '.join(one.names)}: {other} does not move the structures that {first} "
            f"begins ({why}). Moves in one list are of one kind of structure."
        )
