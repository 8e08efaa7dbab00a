"""Chains of sparse factor models whose rows are spread over processes: exact, the same draws for any number.

Every process reads the rows of its own shards alone. Loadings and factors, which are small beside the data of many
rows, all have; sums over rows are told.
"""

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

from ...engine.mcmc.kernel import Kernel
from ...engine.mcmc.keys import generator
from ...engine.mcmc.run import Chains, run
from ...engine.support import machine_code
from ...factors.errors import ModelError
from ...factors.switches import double_precision
from ..buffet.parallel.chains import mesh_of
from ..buffet.parallel.in_step import agreed
from ..buffet.parallel.shards import Shards, gathered, shards_of
from .data import numbers_of, switches_of
from .kernels.by_shards import Own, Told, sweep
from .settings import Settings
from .start import bucket, padded
from .state import Numbers, State, Switches


class Walk(NamedTuple):
    """A state of a chain, and (shards, rows, samples) complete values of the shards of this process."""

    state: State
    full: np.ndarray


@dataclasses.dataclass(frozen=True, eq=False)
class FactorsOfShards:
    """Draws, by name, (1, draws, ...) each.

    Attributes:
        chains: number_of_factors, mass, concentration, precision_rate, noise_rate; noise (rows,), precision (K,),
            loading (K, rows), factor (K, samples).
        filled: the last complete values of the shards of this process, (rows, samples) each.
    """

    chains: Chains
    filled: list[np.ndarray]

    def __getitem__(self, name: str) -> np.ndarray:
        return self.chains[name]


def sample_in_shards(
    parts: Sequence[Any],
    key: Any,
    draws: int,
    settings: Settings | None = None,
    *,
    integrated: bool = False,
    warmup: int = 0,
    thin: int = 1,
    mesh: Mesh | None = None,
    progress: bool | Callable[[int, int], None] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    every: float = 60.0,
) -> FactorsOfShards:
    """Draws from the posterior of a sparse factor model, the rows of whose data are in shards.

    Exact: the sweep is that of `sample_posterior`. The chain starts from the principal components. The draws depend on
    the key and the shards, not on how many processes of `jax.distributed` have them.

    Args:
        parts: for each shard (rows, samples) numbers about 0, NaN where missing, or the path of a file of them, of
            which each process reads its own alone; see `cavity.models.buffet.parallel.shards_of`.
        key: a key of `jax.random`, the same in all processes.
        draws: kept.
        settings: the model; by default nonparametric sparse factor analysis. Without known factors, `start` as it is.
        integrated: whether the loadings of a row are integrated out while it is drawn which of them are active.
        warmup, thin, progress, every: as in `cavity.engine.mcmc.run.run`.
        mesh: devices of one axis, to which the shards are dealt; by default all devices of all processes, or the first
            one where there is one process.
        checkpoint: the beginning of a file's name, of which each process has its own, with `.0` behind it and so on.

    Returns:
        The draws.

    Raises:
        ModelError: known factors, another start, or an argument out of range.
        DataError: bad shards, or a checkpoint of another run.

    Source: knowles2011nonparametric.
    """
    settings = Settings() if settings is None else settings
    _check(settings, integrated)
    shards = shards_of(parts)
    sampler = _Sampler(shards, settings, integrated, mesh_of(mesh, shards))
    own = None if checkpoint is None else f"{os.fspath(checkpoint)}.{jax.process_index()}"
    shown = progress if jax.process_index() == 0 else False
    asked: dict[str, Any] = {"warmup": warmup, "thin": thin, "progress": shown, "every": every, "agree": agreed(own)}
    found = run(sampler.kernel(), key, draws, chains=1, checkpoint=own, **asked)
    last = found.states[0].full
    return FactorsOfShards(found, [full[:count] for full, count in zip(last, shards.counts, strict=True)])


def _check(settings: Settings, integrated: bool) -> None:
    if not isinstance(settings, Settings) or settings.known is not None:
        raise ModelError("settings= is a Settings without known factors, such as family('nsfa').")
    if settings.start != "components":
        raise ModelError(
            f"Settings(start={settings.start!r}): chains of shards start from the principal components, which sums of "
            "shards give. Leave start= out, or sample all rows in one process by sample_posterior."
        )
    if settings.shared:
        raise ModelError(
            f"shared={settings.shared} asks for births of factors that several rows share, which need all rows of the "
            "data in one place; here they are in shards. Leave it out, or take sample_posterior."
        )
    if not isinstance(integrated, bool):
        raise ModelError(f"integrated= is True or False; found {integrated!r}.")


@dataclasses.dataclass(frozen=True, eq=False)
class _Sampler:
    """Sweeps as a Markov chain for the driver of chains; all processes run it alike."""

    shards: Shards
    settings: Settings
    integrated: bool
    mesh: Mesh

    def kernel(self) -> Kernel:
        return Kernel(self.init, self.step, _record, grows=True, identity=self.identity)

    @functools.cached_property
    def identity(self) -> str:
        words = {f.name: getattr(self.settings, f.name) for f in dataclasses.fields(self.settings)}
        told = repr((words | {"learn": sorted(self.settings.learn)}, self.integrated, self.shards.every)).encode()
        return hashlib.sha256(told + self.shards.values.tobytes() + self.shards.seen.tobytes()).hexdigest()

    @functools.cached_property
    def layout(self) -> _Layout:
        return _layout(self.shards)

    @functools.cached_property
    def switches(self) -> Switches:
        return switches_of(self.settings, self.shards.total)

    @functools.cached_property
    def numbers(self) -> Numbers:
        return numbers_of(self.settings, self.shards.total)

    def dealt(self, local: np.ndarray) -> Any:
        spec = NamedSharding(self.mesh, PartitionSpec(self.mesh.axis_names[0]))
        with double_precision():
            return jax.make_array_from_process_local_data(spec, np.ascontiguousarray(local))

    @functools.cached_property
    def _data(self) -> tuple[Any, ...]:
        there = self.layout.row >= 0
        seen = self.shards.seen | ~there[:, :, None]
        return tuple(map(self.dealt, (self.shards.values, seen, self.layout.row, self.layout.first)))

    def init(self, key: Any) -> Walk:
        return Walk(_first(self, key), self.shards.values.copy())

    def step(self, key: Any, walk: Walk) -> Walk:
        """One sweep, repeated with more places where these did not suffice."""
        state = walk.state
        while True:
            compiled = _compiled(self.switches, self.integrated, self.mesh)
            with double_precision():
                found = compiled(
                    np.asarray(jax.random.key_data(key)), state, self.dealt(walk.full), *self._data,
                    self.layout.place, self.numbers, np.asarray(state.count),
                )  # fmt: skip
                local = sorted(found.full.addressable_shards, key=lambda each: each.index[0].start or 0)
                full = np.concatenate([np.asarray(each.data) for each in local])
                new, fits = jax.tree.map(lambda each: np.asarray(each.addressable_data(0)), (found.state, found.fits))
            if fits:
                return Walk(new, full)
            state = padded(state, 2 * state.loading.shape[0], self.settings)


class _Layout(NamedTuple):
    """(shards, rows) which of all rows, -1 for none; (shards,) missing entries before; (D,) where each row is."""

    row: np.ndarray
    first: np.ndarray
    place: np.ndarray


def _layout(shards: Shards) -> _Layout:
    own, most = shards.values.shape[:2]
    there = np.arange(most) < shards.counts[:, None]
    missing = (~shards.seen & there[:, :, None]).sum(axis=(1, 2))
    told = gathered(np.stack([shards.counts, missing], axis=1).astype(float)).astype(int)
    begins, before = (np.concatenate([[0], np.cumsum(column)]) for column in told.T)
    mine = jax.process_index() * own + np.arange(own)
    row = np.where(there, begins[mine][:, None] + np.arange(most), -1)
    place = np.concatenate([shard * most + np.arange(count) for shard, count in enumerate(told[:, 0])])
    return _Layout(row, before[mine], place)


def _first(sampler: _Sampler, key: Any) -> State:
    """Principal components of all rows, from products of samples that shards tell; sparse where loadings are."""
    shards, settings, layout = sampler.shards, sampler.settings, sampler.layout
    samples, rows = shards.values.shape[2], shards.total
    square = gathered(np.stack([(each.T @ each).ravel() for each in shards.values]))
    power, vectors = np.linalg.eigh(square.sum(axis=0).reshape(samples, samples))
    power, vectors = np.maximum(power[::-1], 0.0), vectors[:, ::-1]
    free = settings.factors if settings.factors is not None else _evident(power, rows, samples)
    some = min(free, samples, rows)
    factor = np.zeros((free, samples))
    factor[:some] = vectors[:, :some].T * np.sqrt(samples)
    mine = np.concatenate([shards.values @ factor.T / samples, (shards.values**2).sum(2)[:, :, None]], axis=2)
    mine[:, :, -1] /= np.maximum(shards.seen.sum(2), 1)
    width = free + 1
    told = gathered(mine.reshape(len(mine), -1)).reshape(-1, width)[layout.place]
    loading, variance = told[:, :-1].T, np.maximum(told[:, -1], 1e-12)
    noise = 1.0 / np.maximum(variance - (loading**2).sum(0), 1e-3 * variance)
    if settings.sparsity != "none":
        loading = np.where(np.abs(loading) * np.sqrt(samples * noise) > np.sqrt(2.0 * np.log(rows)), loading, 0.0)
    if settings.factors is None:
        kept = (loading != 0.0).any(axis=1)
        loading, factor = loading[kept], factor[kept]
    return _state(sampler, loading, factor, noise, generator(key))


def _evident(power: np.ndarray, rows: int, samples: int) -> int:
    """As many components as are above what noise alone would have (Marchenko and Pastur), at most 64."""
    noise = np.median(power[power > 0.0]) / max(rows, samples) if power.any() else 0.0
    edge = noise * (np.sqrt(rows) + np.sqrt(samples)) ** 2
    return int(np.clip((power > edge).sum(), 0, min(64, rows, samples)))


def _state(
    sampler: _Sampler, loading: np.ndarray, factor: np.ndarray, noise: np.ndarray, random: np.random.Generator
) -> State:
    settings, numbers, count = sampler.settings, sampler.numbers, len(loading)
    if sampler.switches.noise != "row":
        one = 1.0 / np.mean(1.0 / noise) if settings.noise == "shared" else float(settings.noise)
        noise = np.full(len(noise), one)
    precision = np.full(count, 1.0 if isinstance(settings.precision, str) else float(settings.precision))
    element = np.ones(loading.shape) if settings.slab != "gaussian" else np.zeros((0, 0))
    openness = np.full(count, numbers.hierarchy[3]) if settings.sparsity == "hierarchical" else np.zeros(0)
    jitter = 1e-3 * random.standard_normal(factor.shape)  # chains of different keys differ from the beginning
    state = State(
        loading=loading, factor=factor + jitter, count=np.array(count), precision=precision, element=element,
        openness=openness, noise=noise, mass=np.array(settings.mass), concentration=np.array(settings.concentration),
        precision_rate=np.array(settings.priors.precision[1]), noise_rate=np.array(settings.priors.noise[1]),
        missing=np.zeros(0),
    )  # fmt: skip
    return padded(state, bucket(count) if settings.factors is None else settings.factors, settings)


@functools.cache
def _compiled(switches: Switches, integrated: bool, mesh: Mesh) -> Callable[..., Any]:
    axis = mesh.axis_names[0]

    def gather(own: Any) -> Any:
        return jax.lax.all_gather(own, axis, tiled=True)

    def one(
        data: Any, state: State, full: Any, values: Any, seen: Any, row: Any, first: Any, place: Any, numbers: Numbers,
        bound: Any,
    ) -> Any:  # fmt: skip
        own = Own(values, full, seen, row, first)
        key = jax.random.wrap_key_data(data)
        told = sweep(key, state, own, place, numbers, bound, switches, integrated, gather)
        same = jax.tree.map(lambda new, old: new.astype(old.dtype), told.state, state)
        return told._replace(state=same)

    dealt, whole = PartitionSpec(axis), PartitionSpec()
    specs = (whole, whole, dealt, dealt, dealt, dealt, dealt, whole, whole, whole)
    outs = Told(dealt, whole, whole)  # pyright: ignore[reportArgumentType]
    sharded = jax.shard_map(one, mesh=mesh, in_specs=specs, out_specs=outs, check_vma=False)
    return jax.jit(sharded, compiler_options=machine_code.OPTIONS)


def _record(walk: Walk) -> dict[str, Any]:
    state, count = walk.state, int(walk.state.count)
    names = ("mass", "concentration", "precision_rate", "noise_rate", "noise")
    return {name: getattr(state, name) for name in names} | {
        "number_of_factors": np.array(count),
        "precision": state.precision[:count],
        "loading": state.loading[:count],
        "factor": state.factor[:count],
    }
