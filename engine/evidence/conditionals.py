"""The rest of a model inferred at given values of some scalars: their log density, and what was found there.

All inferences are one program with the scalars as data, run side by side in chunks of one size.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import jax
import numpy as np
from jaxtyping import Float

from ...compiler.data.bind import Binding
from ...compiler.language.nodes import Plate, Random
from ...factors.errors import UnsupportedError
from ...factors.switches import double_precision
from ..data.missing_and_sparse import arrays_of
from ..distributions.mixed_over_grid import FROM_REAL, LOG_SLOPE, SATURATED, TO_REAL
from ..posterior import Posterior
from ..program import Program
from ..run.control.result_codes import CONVERGED
from ..run.machine import Machine
from ..run.progress import Progress, Timing
from ..run.result import Outputs
from ..support.compiled import compiled
from .cost import SWEEPS, sweeps

if TYPE_CHECKING:
    from ..apart import PointsApart
    from ..cluster.workers import Workers

# Inferences that run side by side, by number of continuous scalars: where one pass is exact, and where all wait for the
# last of them.
CHUNKS = {True: {1: 32, 2: 128}, False: {1: 8, 2: 16}}
LARGEST_CHUNK = {True: 256, False: 32}
CALLS = 20  # of that size, for one answer
LOOKED_AT = {True: {1: 32, 2: 128}, False: {1: 8, 2: 32}}  # points of a scan, in the same two cases
MOST_LOOKED_AT = {True: 256, False: 64}
MOST_STATES = 256  # joint states of discrete scalars
HELD = 2**28  # bytes of inferences that are kept while a grid is explored; what is wanted after that is made again
NOTHING = 25.0  # nats below the peak: the mass there does not count
# Logarithms, or log odds, on either side of zero that are looked at for a start: where one pass is exact, and if not.
SCANNED = {True: 10.0, False: 5.0}
NEARLY = 0.05  # posterior sd from the fixed point: the evidence of an inference that is farther off means nothing
STARTS = 3  # points that a peak is looked for from: there may be several
SPREAD = 1.5  # in these: the scale of a start that was scanned for

# Run by NumPy: for a few numbers nothing is compiled.
_to_real, _from_real, _log_slope = (
    {kind: compiled("coordinates", (number, kind), own) for kind, own in table.items()}
    for number, table in enumerate((TO_REAL, FROM_REAL, LOG_SLOPE))
)

Start: TypeAlias = tuple[Float[np.ndarray, "... d"], Float[np.ndarray, "... d"]]  # one point and its scale, or several
Points: TypeAlias = Float[
    np.ndarray, "K d"
]  # in unconstrained coordinates, one for each scalar; states of discrete ones


class Conditionals:
    """Inferences given the scalars called `names`, discrete ones first; `plain` infers these too.

    `binding` is that of `data` to the program in which nothing is given.
    """

    def __init__(
        self,
        program: Program,
        data: Mapping[str, Any],
        binding: Binding,
        names: Sequence[str],
        seed: int,
        plain: Callable[[], Posterior],
    ) -> None:
        nodes: Mapping[str, Random] = program.model.randoms
        self.names = tuple(sorted(names, key=lambda name: not nodes[name].domain.is_discrete))
        self.whole, self.plain, self.seed = program, plain, seed
        self.program = program.conditional(self.names)
        self.nodes = [nodes[name] for name in self.names]
        self.kinds = [node.domain.kind for node in self.nodes]
        self.discrete = sum(node.domain.is_discrete for node in self.nodes)
        self.continuous = len(self.names) - self.discrete
        start = {node.name: 0 if node.domain.is_discrete else _LEGAL[node.domain.kind] for node in self.nodes}
        self.data = {**data, **start}
        self.away: PointsApart | None = None
        self.binding = self.program.bind(self.data)
        with double_precision():
            self.machine, self.runner = self.program.machine_and_runner(self.binding, self.binding.inputs)
            self.arrays = arrays_of(self.binding, self.machine.graph)
        self.planning = self.program.planned()
        self.watcher, self.looked_at = Progress(program.options.progress), 0
        self.plain_binding = binding
        self.plain_arrays = arrays_of(self.plain_binding, program.plan_given((), self.plain_binding))
        self.seen: dict[tuple[float, ...], tuple[Outputs, int]] = {}
        self.held = 0

    def states(self) -> Points | None:
        """Every joint state of the discrete scalars; None where they are too many."""
        sizes = []
        for node in self.nodes[: self.discrete]:
            domain = node.domain
            known = domain.size if not isinstance(domain.size, Plate) else self.binding.sizes[domain.size.name]
            sizes.append(2 if domain.is_boolean else known)
        if math.prod(sizes) > MOST_STATES:
            return None
        return np.array(list(itertools.product(*map(range, sizes))), float).reshape(math.prod(sizes), -1)

    @cached_property
    def start(self) -> Start:
        """About where the continuous scalars lie, and on what scale, in unconstrained coordinates.

        A scan spares the plain inference, which would have to be traced; where messages are projected it might not
        settle at the points of a scan that are far from all sense, so that locations are taken from the plain beliefs.
        """
        settles = sweeps(self.machine.graph) < SWEEPS or all(kind != "real" for kind in self.kinds[self.discrete :])
        if not self.discrete and settles and (found := self._scanned()) is not None:
            return found
        if self.away is not None:
            self.away.close()  # the starts of the plain inference may need the workers
        try:
            plain = self.plain()
        except UnsupportedError:  # it met no sound state
            found = None if self.discrete else self._scanned()
            if found is None:
                raise
            return found
        return self._of_beliefs(plain)

    def _of_beliefs(self, plain: Posterior) -> Start:
        """Means and standard deviations of the beliefs of the plain inference."""
        with double_precision():
            draws = [
                np.asarray(_to_real[kind](plain[name].sample(self.seed, (4000,))))
                for name, kind in itertools.islice(zip(self.names, self.kinds, strict=True), self.discrete, None)
            ]
        return np.array([d.mean() for d in draws]), np.clip([d.std() for d in draws], 1e-3, 3.0)

    def _scanned(self) -> Start | None:
        """The best of some points that fill a cube, apart from each other; locations are looked at on all scales."""
        d = self.continuous
        direct = self.machine.direct
        turns = np.arange(LOOKED_AT[direct].get(d, MOST_LOOKED_AT[direct]))[:, None] * _ratios(d)
        cube = SCANNED[direct] * (2.0 * ((turns + 0.5) % 1.0) - 1.0)
        real = np.array([kind == "real" for kind in self.kinds[self.discrete :]])
        points = np.where(real, np.sinh(cube), cube)
        scales = SPREAD * np.where(real, np.cosh(cube), 1.0)
        found, chosen = self(points), []
        for k in np.argsort(-found):
            apart = all(np.any(np.abs(points[k] - points[other]) > scales[other]) for other in chosen)
            if apart and np.isfinite(found[k]) and len(chosen) < STARTS:
                chosen.append(k)
        return (points[chosen], scales[chosen]) if chosen else None

    def saturated(self, points: Points, log_density: Float[np.ndarray, " K"]) -> bool:
        """Whether there is mass where probabilities are too near one to be told apart."""
        top = log_density.max()
        ends = [points[:, k] > SATURATED for k, kind in enumerate(self.kinds) if kind == "unit"]
        return any(bool(np.any(log_density[end] > top - NOTHING)) for end in ends)

    def values(self, points: Points) -> dict[str, Float[np.ndarray, " K"]]:
        """The scalars at points."""
        with double_precision():
            pairs = zip(self.names, self.kinds, points.T, strict=True)
            return {name: np.asarray(_from_real[kind](column)) for name, kind, column in pairs}

    def __call__(self, points: Points) -> Float[np.ndarray, " K"]:
        """Log densities at points, in chunks of one size so that nothing is compiled twice."""
        found = []
        for chunk, outputs, slopes in self._chunks(points):
            if self.held > HELD:
                self.seen, self.held = {}, 0
            self.held += sum(leaf.nbytes for leaf in jax.tree.leaves(outputs))
            self._keep(chunk, outputs)
            settled = (outputs["code"] == CONVERGED) | (outputs["error"] < NEARLY)
            evidence = np.where(settled & np.isfinite(outputs["evidence"]), outputs["evidence"] + slopes, -np.inf)
            found.append(evidence[: len(chunk)])
        return np.concatenate(found)

    def _chunks(self, points: Points) -> Iterator[tuple[Points, Outputs, Float[np.ndarray, " chunk"]]]:
        """Points, what inference finds there, and the log slopes of the scalars, both padded to the chunk's size."""
        chunks = CHUNKS[self.machine.direct]
        size = chunks.get(self.continuous, LARGEST_CHUNK[self.machine.direct])
        size = size if self.continuous and self.away is None else len(points)
        for at in range(0, len(points), size):
            chunk = points[at : at + size]
            padded = np.concatenate([chunk, np.repeat(chunk[-1:], size - len(chunk), axis=0)])
            outputs = self._found(self.values(padded))
            self.looked_at += len(chunk)
            self.watcher.points(self.looked_at)
            with double_precision():
                pairs = zip(self.kinds, padded.T, strict=True)
                slopes = np.sum([np.asarray(_log_slope[kind](column)) for kind, column in pairs], axis=0)
            yield chunk, outputs, slopes

    def _found(self, values: dict[str, Any]) -> Outputs:
        """What inference finds given these values, here or by workers."""
        if self.away is not None:
            with self.watcher.sweeping():
                return self.away(values)
        with double_precision():
            return self.runner.many_values(self.arrays, values, self.seed, CALLS, self.watcher)

    @contextlib.contextmanager
    def by(self, workers: Workers) -> Iterator[None]:
        """While it lasts, points go to workers, where there are any."""
        if workers is None:
            yield
            return
        from ..apart import PointsApart  # few inferences have workers

        self.away = away = PointsApart(self.program, self.data, self.seed, workers)
        try:
            yield
        finally:
            self.away = None
            away.close()

    def _keep(self, points: Points, outputs: Outputs) -> None:
        """Holds what was inferred, for the mixture."""
        self.seen |= {tuple(point): (outputs, k) for k, point in enumerate(points)}

    @property
    def timing(self) -> Timing:
        """The stages of all inferences together."""
        return self.watcher.timing_of_all(self.planning)

    def at(self, points: Points) -> Outputs:
        """What inference finds at each point, stacked."""
        forgotten = [point for point in points if tuple(point) not in self.seen]
        for chunk, outputs, _ in self._chunks(np.array(forgotten)) if forgotten else ():
            self._keep(chunk, outputs)
        held = [self.seen[tuple(point)] for point in points]
        self.seen, self.held = {}, 0  # the posterior keeps these conditionals, and what it needs of their runs
        return _gathered(held)

    @cached_property
    def plain_machine(self) -> Machine:
        """The functions of the plan in which nothing is integrated: no run is needed for priors."""
        with double_precision():
            return self.whole.machine_and_runner(self.plain_binding, self.plain_binding.inputs)[0]


def _gathered(places: Sequence[tuple[Outputs, int]]) -> Outputs:
    """The outputs at these places of chunks, stacked."""
    chunks = list({id(chunk): chunk for chunk, _ in places}.values())
    ends = np.cumsum([len(chunk["code"]) for chunk in chunks])
    start = {id(chunk): end - len(chunk["code"]) for chunk, end in zip(chunks, ends, strict=True)}
    rows = np.array([start[id(chunk)] + k for chunk, k in places])
    return jax.tree.map(lambda *leaves: np.concatenate(leaves)[rows], *chunks)


_LEGAL = {"real": 0.0, "positive": 1.0, "unit": 0.5}  # values that data may have


def _ratios(d: int) -> Float[np.ndarray, " d"]:
    """Steps of a sequence that fills a cube evenly: powers of the number that solves x^(d + 1) = x + 1."""
    golden = 1.5
    for _ in range(60):
        golden = (1.0 + golden) ** (1.0 / (d + 1))
    return golden ** -np.arange(1.0, d + 1)
