"""Draws from shards of rows, by one device, several, or the processes of `jax.distributed`."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from ....engine.mcmc.kernel import Kernel
from ....engine.mcmc.run import Chains, run
from ....engine.support import machine_code
from ....factors.arrays import Array, Key
from ....factors.errors import DataError, ModelError, UnsupportedError
from ....factors.switches import double_precision
from ..likelihoods.contract import Likelihood, Numbers, Rows
from ..likelihoods.linear_gaussian import LinearGaussian
from ..samplers.law import Law
from ..samplers.sampler import SMALLEST
from .exact import exact_iteration
from .given_values import values_iteration
from .in_step import agreed
from .shards import Shards, gathered, shards_of
from .synchronous import Iteration, Own, Shared, iteration

AXIS = "shards"


class Walk(NamedTuple):
    """A state of the chain, as one process has it: the matrices of its shards, and what all share."""

    active: np.ndarray
    shared: Shared


@dataclasses.dataclass(frozen=True, eq=False)
class ShardedChains:
    """Draws of what is shared.

    Attributes:
        chains: draws by name, (1, draws, ...) each: number_of_features, mass, concentration, the numbers of the
            likelihood (noise_precision and value_precision by default), log_likelihood, values (K, dimensions) and
            owners (K,), the rows that have each feature, with zeros where a draw has fewer features than the largest
            one.
        active: (shards, rows, K) booleans, the last matrices of the shards of this process, and `counts` how many rows
            each has.
        counts: (shards,).
    """

    chains: Chains
    active: np.ndarray
    counts: np.ndarray

    def __getitem__(self, name: str) -> np.ndarray:
        return self.chains[name]

    def to_arviz(self) -> Any:
        """For ArviZ: all but values and owners."""
        kept = {name: draws for name, draws in self.chains.draws.items() if name not in ("values", "owners")}
        kept["number_of_features"] = kept["number_of_features"].astype(float)
        kept["log_likelihood_of_data"] = kept.pop("log_likelihood")
        return dataclasses.replace(self.chains, draws=kept).to_arviz()


def sample_in_shards(
    parts: Sequence[Any],
    key: Key,
    draws: int,
    likelihood: Likelihood | None = None,
    law: Law | None = None,
    *,
    exact: bool = False,
    inner: int = 3,
    warmup: int = 0,
    thin: int = 1,
    mesh: Mesh | None = None,
    progress: bool | Callable[[int, int], None] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    every: float = 60.0,
    max_seconds: float | None = None,
) -> ShardedChains:
    """Draws of features of rows in shards, each of which tells of its rows by sums alone: approximate, unless `exact`.

    Every shard goes over its rows `inner` times as if the other shards' rows stayed as they are. Chains of one shard
    are exact; with more the posterior is a little off, by what changes elsewhere in the meantime. With `exact` shards
    draw rows given values and weights of features, and nothing is off; but new features have values from the prior, and
    are found far more slowly. Draws depend on the key and the shards, not on how many processes have them (where the
    likelihood is not of numbers: but for rounding).

    Args:
        parts: as of `shards_of`: arrays or paths, of which each process reads its own alone. Numbers are about zero.
        key: a key of `jax.random`, the same in all processes.
        draws: kept.
        likelihood: of `buffet.likelihoods`, all but `LaplaceICA`; by default `LinearGaussian`.
        law: the prior of the matrix; by default the Indian buffet process, its mass learned under Gamma(1, 1).
        exact: whether shards draw rows given values and weights. For laws without a discount.
        inner: sweeps of each shard between two messages.
        warmup, thin, progress, every, max_seconds: as in `cavity.engine.mcmc.run.run`, counted in messages.
        mesh: devices of one axis, which the shards are dealt to; by default all devices of all processes, or the first
            one where there is one process.
        checkpoint: the beginning of a file's name, with `.0` behind it and so on for each process. The same run goes on
            from there, also where a process was lost: from the latest draw that all have written.

    Returns:
        The draws.

    Raises:
        ModelError: an argument out of range.
        DataError: bad shards, entries that the likelihood gives no probability, or a checkpoint of another run.
        UnsupportedError: `exact` and a law with a discount; a likelihood with weights of rows, or of another kind.

    Source: doshivelez2009large.
    """
    likelihood, law = LinearGaussian() if likelihood is None else likelihood, Law() if law is None else law
    _check(likelihood, law, exact, inner)
    shards = shards_of(parts)
    likelihood.check(*(each.reshape((-1, each.shape[2])) for each in (shards.values, shards.seen)))
    kernel = _Sampler(shards, likelihood, law, inner, mesh_of(mesh, shards), _iteration(likelihood, exact)).kernel()
    own = None if checkpoint is None else f"{os.fspath(checkpoint)}.{jax.process_index()}"
    shown = progress if jax.process_index() == 0 else False
    asked: dict[str, Any] = {"warmup": warmup, "thin": thin, "progress": shown, "every": every, "agree": agreed(own)}
    found = run(kernel, key, draws, chains=1, checkpoint=own, max_seconds=max_seconds, **asked)
    last = found.states[0]
    return ShardedChains(found, last.active[..., last.shared.owners > 0], shards.counts)


def _iteration(likelihood: Likelihood, exact: bool) -> Iteration:
    if exact:
        return exact_iteration
    return iteration if isinstance(likelihood, LinearGaussian) else values_iteration


def _check(likelihood: Any, law: Law, exact: bool, inner: Any) -> None:
    if isinstance(inner, bool) or not isinstance(inner, int) or inner < 1:
        raise ModelError(f"inner= is a whole number of sweeps, at least 1; found {inner!r}.")
    if not isinstance(likelihood, Likelihood):
        raise ModelError(f"likelihood= is one of cavity.models.buffet.likelihoods; found {likelihood!r}.")
    if not likelihood.by_sums:
        has = "weights of rows" if likelihood.weighted else "more than sums over rows"
        raise UnsupportedError(
            f"Shards tell each other sums over rows; {type(likelihood).__name__} needs {has}. Use sample_features, "
            "which has all rows."
        )
    if exact and law.discount:
        raise UnsupportedError(f"exact=True is for laws without a discount; found {law.discount}. Leave exact= out.")


def mesh_of(mesh: Mesh | None, shards: Shards) -> Mesh:
    """The devices that shards are dealt to: those that are given, or all of all processes, or the only one."""
    if mesh is None:
        devices = jax.devices() if jax.process_count() > 1 else jax.devices()[:1]
        mesh = Mesh(np.array(devices), (AXIS,))
    if len(mesh.axis_names) != 1:
        raise ModelError(f"mesh= has one axis, along which shards are dealt; found {mesh.axis_names}.")
    if shards.every % mesh.size:
        raise DataError(f"{shards.every} shards cannot be dealt evenly to {mesh.size} devices. Give a multiple of it.")
    return mesh


@dataclasses.dataclass(frozen=True, eq=False)
class _Sampler:
    """Iterations as a Markov chain for the driver of chains; all processes run it alike."""

    shards: Shards
    likelihood: Likelihood
    law: Law
    inner: int
    mesh: Mesh
    iterate: Iteration

    def kernel(self) -> Kernel:
        return Kernel(self.init, self.step, _record, grows=True, note=_note, identity=self.identity)

    @functools.cached_property
    def identity(self) -> str:
        words = repr((self.likelihood, self.law, self.inner, self.shards.every, self.shards.total)).encode()
        words += self.iterate.__name__.encode()
        return hashlib.sha256(words + self.shards.values.tobytes() + self.shards.seen.tobytes()).hexdigest()

    @functools.cached_property
    def _data(self) -> tuple[Array, ...]:
        first = jax.process_index() * len(self.shards.counts)
        number = first + np.arange(len(self.shards.counts))
        return tuple(map(self._dealt, (self.shards.values, self.shards.seen, self.shards.counts, number)))

    def _dealt(self, local: np.ndarray) -> Array:
        spec = NamedSharding(self.mesh, PartitionSpec(self.mesh.axis_names[0]))
        with double_precision():
            return jax.make_array_from_process_local_data(spec, np.asarray(local))

    def init(self, key: Key) -> Walk:
        """No features, and numbers of the size of the data."""
        shards, places = self.shards, self.law.features or SMALLEST
        with double_precision():
            mass, concentration = (np.asarray(each) for each in self.law.first())
            numbers = self._first_numbers()
        active = np.zeros((*shards.values.shape[:2], places), bool)
        values = np.zeros((places, shards.values.shape[2]))
        nothing = np.zeros(places), np.array(-np.inf), np.array(True)
        return Walk(active, Shared(values, numbers, mass, concentration, *nothing))

    def _first_numbers(self) -> Numbers:
        """Alike in all processes: by the size of all data, or as the first shard has them."""
        shards = self.shards
        if isinstance(self.likelihood, LinearGaussian):
            first = self.likelihood.numbers_of_size(shards.square / shards.entries)
        else:
            first = self.likelihood.first_numbers(Rows(shards.values[0], shards.seen[0]))
        table = gathered(np.array([[float(value) for value in first.values()]]))
        return {name: np.asarray(value) for name, value in zip(first, table[0], strict=True)}

    def step(self, key: Key, walk: Walk) -> Walk:
        """One iteration, repeated with more places where these did not suffice."""
        while True:
            data = jax.random.key_data(key)
            with double_precision():
                active, shared = _compiled(
                    self.iterate, self.likelihood, self.law, self.shards.total, self.inner, self.mesh
                )(np.asarray(data), self._dealt(walk.active), *self._data, walk.shared)
                shared = jax.tree.map(lambda each: np.asarray(each.addressable_data(0)), shared)
            if shared.fits:
                local = sorted(active.addressable_shards, key=lambda each: each.index[0].start or 0)
                return Walk(np.concatenate([np.asarray(each.data) for each in local]), shared)
            walk = _padded(walk)


@functools.cache
def _compiled(
    iterate: Iteration, likelihood: Likelihood, law: Law, total: int, inner: int, mesh: Mesh
) -> Callable[..., Any]:
    axis = mesh.axis_names[0]

    def gather(own: Array) -> Array:
        return jax.lax.all_gather(own, axis, tiled=True)

    def one(
        data: jax.Array, active: Array, values: Array, seen: Array, counts: Array, number: Array, shared: Shared
    ) -> Any:
        own = Own(active, values, seen, counts, number)
        return iterate(jax.random.wrap_key_data(data), own, shared, likelihood, law, total, inner, gather)

    dealt, whole = PartitionSpec(axis), PartitionSpec()
    specs = (whole, dealt, dealt, dealt, dealt, dealt, whole)
    sharded = jax.shard_map(one, mesh=mesh, in_specs=specs, out_specs=(dealt, whole), check_vma=False)
    return jax.jit(sharded, compiler_options=machine_code.OPTIONS)


def _padded(walk: Walk) -> Walk:
    places = walk.active.shape[-1]
    shared = walk.shared._replace(
        values=np.pad(walk.shared.values, [(0, places), (0, 0)]), owners=np.pad(walk.shared.owners, (0, places))
    )
    return Walk(np.pad(walk.active, [(0, 0), (0, 0), (0, places)]), shared)


def _record(walk: Walk) -> dict[str, Any]:
    shared, used = walk.shared, walk.shared.owners > 0
    return dict(shared.numbers) | {
        "mass": shared.mass,
        "concentration": shared.concentration,
        "number_of_features": np.array(used.sum()),
        "log_likelihood": shared.log_likelihood,
        "values": shared.values[used],
        "owners": shared.owners[used],
    }


def _note(walks: list[Walk]) -> str:
    return f"K {int((walks[0].shared.owners > 0).sum())}"
