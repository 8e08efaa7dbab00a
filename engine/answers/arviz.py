"""A posterior in the form that ArviZ reads: independent draws from the marginals, and the data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from ...compiler.graph import Joint
from ...compiler.language.nodes import Input, Let, Random
from ...factors.arrays import Array
from ...factors.errors import UnsupportedError
from ...factors.families import ExponentialFamily, Point
from ...factors.switches import double_precision
from ..options import seed_of
from ..values.joint_beliefs import member_values
from .inferred import Inferred

ArvizData: TypeAlias = Any  # what the installed ArviZ reads: a DataTree of xarray, or an InferenceData
Groups = dict[str, dict[str, np.ndarray]]
Drawing: TypeAlias = Callable[[Any, int, int], dict[str, np.ndarray]]  # of a posterior, so many, with a seed

NOTE = "independent draws from the approximate marginals of each variable"


def to_arviz(posterior: Inferred, draws: int = 1000, seed: int = 0) -> ArvizData:
    """A DataTree (ArviZ 1) or an InferenceData (before) of `groups`; UnsupportedError where ArviZ is not installed."""
    return as_arviz(*groups(posterior, draws, seed_of(seed)), NOTE, posterior.binding.names)


def independent_draws(posterior: Inferred, draws: int, seed: int) -> dict[str, np.ndarray]:
    """Draws by name, shaped (draws,) + plates + event, each variable's own whichever others there are."""
    found = {}
    for name in posterior:
        try:
            marginal = posterior[name]
        except UnsupportedError:  # an expression without a family, such as a probability
            continue
        if not isinstance(marginal.family, Point):
            with double_precision():  # for seeds of more than 32 bits
                key = jax.random.fold_in(jax.random.key(seed), hash_of(name))
            found[name] = marginal.sample(key, (draws,))
    return found


def joint_belief_draws(posterior: Inferred, draws: int, seed: int) -> dict[str, np.ndarray]:
    """Draws by name, shaped as those, of what shares a belief with others: the same position belongs together.

    What is observed in part is left out, and so is a belief that is not that of one family.
    """
    found = {}
    for joint in posterior.graph.joints:
        family = posterior.families.get(joint.variable.name)
        if not isinstance(family, ExponentialFamily):
            continue
        with double_precision():
            key = jax.random.fold_in(jax.random.key(seed), hash_of(joint.variable.name))
            found |= drawn_members(posterior, joint, jnp.asarray(family.sample(key, (draws,))))
    return found


def drawn_members(posterior: Inferred, joint: Joint, values: Array) -> dict[str, np.ndarray]:
    """Draws of a joint belief as those of its members, by name, but for what is observed in part."""
    sizes, partly = posterior.machine.sizes, posterior.graph.partly
    members = [member for member in joint.members if member.name not in partly]
    return {member.name: np.asarray(member_values(member, joint, values, sizes)) for member in members}


def as_arviz(
    found: Groups, dims: dict[str, list[str]], note: str, names: Mapping[str, Sequence[object]] | None = None
) -> ArvizData:
    """Groups of arrays, shaped (chain, draw, ...) in the posterior, as ArviZ takes them; errors as `to_arviz`.

    `names` are those of the elements of plates.
    """
    try:
        import arviz  # pyright: ignore[reportMissingImports]
    except ImportError as problem:
        raise UnsupportedError(
            f"to_arviz() needs ArviZ, which is not installed here ({problem}). Install the extra: "
            "pip install 'cavity[arviz]'."
        ) from problem
    used = {dim for own in dims.values() for dim in own}
    coords = {plate: list(labels) for plate, labels in (names or {}).items() if plate in used}
    if int(arviz.__version__.split(".")[0]) < 1:
        kept = "warmup_posterior" in found
        tree: ArvizData = arviz.from_dict(**found, dims=dims, coords=coords, save_warmup=kept)  # pyright: ignore[reportArgumentType]
        tree.posterior.attrs.update(inference_library="cavity", note=note)
    else:
        tree = arviz.from_dict(found, dims=dims, coords=coords)
        tree["posterior"].attrs.update(inference_library="cavity", note=note)
    return tree


def groups(
    posterior: Inferred, draws: int, seed: int, drawing: Drawing = independent_draws
) -> tuple[Groups, dict[str, list[str]]]:
    """Arrays by group and name, and the dimensions of each array after those of chain and draw.

    The draws, shaped (1, draws) + plates + event, are of every variable that is not wholly observed and has a family;
    a partly observed one has its data where they were given. Missing entries of observed_data are NaN. `seed` decides
    all draws, which `drawing` makes.
    """
    if not isinstance(draws, (int, np.integer)) or isinstance(draws, bool) or draws < 1:
        raise ValueError(f"to_arviz() takes a number of draws of at least 1; found {draws!r}.")
    model = posterior.model
    dims: dict[str, list[str]] = {}
    drawn = {name: array[None] for name, array in drawing(posterior, int(draws), seed).items()}
    for name, array in drawn.items():
        dims[name] = _dims({**model.randoms, **model.lets}[name], array.ndim - 2)
    observed = {name: _with_gaps(posterior, name, array) for name, array in posterior.observed.items()}
    inputs = dict(posterior.binding.inputs)
    for name, array in (*observed.items(), *inputs.items()):
        dims[name] = _dims({**model.inputs, **model.randoms, **model.lets}[name], array.ndim)
    found = {"posterior": drawn, "observed_data": observed, "constant_data": inputs}
    return {group: arrays for group, arrays in found.items() if arrays}, dims


def hash_of(name: str) -> int:
    """A number of 32 bits that is the same in every process, unlike `hash`."""
    return int.from_bytes(name.encode(), "little") % 4294967291


def _with_gaps(posterior: Inferred, name: str, array: np.ndarray) -> np.ndarray:
    missing = posterior.binding.missing.get(name)
    if missing is None:
        return np.asarray(array)
    return np.where(missing.reshape(missing.shape + (1,) * (array.ndim - missing.ndim)), np.nan, array)


def _dims(node: Input | Random | Let, ndim: int) -> list[str]:
    """The names of the plates, then one for each axis of a value."""
    plates = [plate.name for plate in node.plates]
    return plates + [f"{node.name}_axis_{i}" for i in range(ndim - len(plates))]
