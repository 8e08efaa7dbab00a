"""Integrating a few scalar parameters over a grid, with the rest of the model inferred at every point.

Under VMP a scale parameter is independent of what it scales, which makes both too certain where data are few. Given
the parameter, the rest is often exact; so the posterior is a mixture of conditional posteriors, weighted by their
evidence. All of them are the same compiled program with the parameters as data. rue2009inla made the idea known for
latent Gaussian models; here the inner inference is whatever the compiler chose. Discrete parameters are summed over all
their states: a selector that decides which of two models holds for all data.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import jax
import numpy as np
from jaxtyping import Float

from ...compiler.algebra.known import ungathered
from ...compiler.blocks.base import Block
from ...compiler.blocks.site import SiteBlock
from ...compiler.blocks.table import TableBlock
from ...compiler.blocks.whole import ChainBlock, ProcessBlock
from ...compiler.data.bind import Binding
from ...compiler.discrete.loops import loops_among
from ...compiler.discrete.networks import NetworkBlock
from ...compiler.graph import Plan
from ...compiler.language.nodes import Plate, Random
from ...factors.arrays import Numeric
from ...factors.errors import ModelError, UnsupportedError
from ...factors.families import FOR_DOMAIN, DiscreteFamily, Family
from ..data.missing_and_sparse import arrays_of
from ..distributions.mixed_over_grid import FROM_REAL, LOG_SLOPE, SATURATED, TO_REAL, OnGrid
from ..posterior import Posterior
from ..program import Program
from ..run.result import Outputs
from ..support.asked_arguments import list_of_names
from .grid import STEPS, Grid, explore
from .integrated import Integrated

CHUNKS = {1: 32, 2: 128, 3: 256}  # inferences that run side by side, by number of parameters

NEGLIGIBLE = 1e-13  # mass of the points that are left out: far out, they still count in variances
NOTHING = 25.0  # nats below the peak: the mass there does not count
MOST_STATES = 256  # joint states of discrete parameters
HELD = 2**28  # bytes of inferences that are kept while the grid is explored; what is wanted after that is made again


def integrate(program: Program, data: Mapping[str, Any], over: Sequence[str] | str, seed: int) -> Integrated:
    """The posterior with the scalar variables named in `over` integrated over a grid.

    `program` is that of the plain inference, which gives the starting point; "auto" takes the fewest scalars that leave
    the rest exact (see `approximate_scalars`). Raises ModelError for names that are not unobserved scalars or too many
    of them, and UnsupportedError where no grid can hold what is asked for.
    """
    if not isinstance(over, str):
        over = list_of_names(over, "integrate=")
    start = program.run(data, seed=seed)
    names = _chosen(program, start, over)
    found = _explored(program, data, start, names, seed)
    if found is None:
        raise UnsupportedError(
            f"The evidence as a function of {', '.join(names)} has no single peak that a grid of a few thousand points "
            "can hold. Integrate fewer parameters, or use the plain posterior (leave out integrate=)."
        )
    return found


def approximate_scalars(program: Program, start: Posterior) -> tuple[str, ...]:
    """The fewest scalars, discrete ones and scales first, given which the rest is exact; else all that may matter.

    Nothing where all is exact as it is.
    """
    graph = start.graph
    if is_exact(graph):
        return ()
    moving = {name for block in graph.blocks if not block.constant for name in _touched(block)}
    members = {member.name for joint in graph.joints if joint.variable.name in moving for member in joint.members}
    scalars = _scalars(start)
    apart = tuple(name for name in scalars if name in moving and not _is_discrete(scalars[name]))
    inside = tuple(name for name in scalars if name in members)
    scales_first = sorted((*apart, *inside), key=lambda name: scalars[name].domain.is_real)
    selectors = [name for name in scalars if name in moving and _is_discrete(scalars[name])]
    for size in range(1, max(STEPS) + 1):
        for among in (selectors, scales_first):
            for names in itertools.combinations(among, size):
                if not _decided(program, names) and is_exact(program.conditional(names).plan):
                    return names
    rest = apart or inside
    return () if not 0 < len(rest) <= max(STEPS) or _decided(program, rest) else rest


def is_exact(graph: Plan) -> bool:
    """Whether a plan's answers are exact: conjugate messages, discrete trees, and blocks with variables of their own.

    These are joint tables, chains and processes, and single sites, whose moments EP matches.
    """
    rest = [block for block in graph.blocks if not block.constant and block.latent]
    tables = [block for block in rest if isinstance(block, TableBlock)]
    others = [block for block in rest if not isinstance(block, TableBlock)]
    groups = [set().union(*map(_touched, tables)), *map(_touched, others)]
    apart = sum(map(len, groups)) == len(set().union(*groups))
    return apart and not loops_among(tables) and all(map(_alone, others))


def _alone(block: Block) -> bool:
    """Whether a block with its variables to itself is exact."""
    if isinstance(block, (NetworkBlock, ChainBlock, ProcessBlock)):
        return not block.parameters
    terms = block.form.terms if isinstance(block, SiteBlock) and block.over is None else ()
    return (
        len(terms) == 1 and terms[0].element is terms[0].variable and set(block.plates) == set(terms[0].element.plates)
    )


def _touched(block: Block) -> set[str]:
    return {*block.latent, *(getattr(ungathered(atom), "name", "") for atom in block.atoms)}


def _decided(program: Program, names: tuple[str, ...]) -> list[str]:
    """Constraints and observed expressions that hold or fail by the named variables alone: they have no density."""
    return [name for name in program.conditional(names).fixed if name not in program.fixed]


def _is_discrete(node: Random) -> bool:
    return node.domain.is_discrete


def _scalars(start: Posterior) -> dict[str, Random]:
    return {
        name: node
        for name, node in start.model.randoms.items()
        if not node.plates and node.domain.kind in FROM_REAL and name not in start.observed
    }


def best(program: Program, data: Mapping[str, Any], start: Posterior, seed: int) -> Posterior | Integrated:
    """The posterior integrated over its approximate scalars where they are few enough for a grid, else `start`."""
    names = approximate_scalars(program, start)
    found = _explored(program, data, start, names, seed) if names else None
    return start if found is None else found


def _explored(
    program: Program, data: Mapping[str, Any], start: Posterior, names: tuple[str, ...], seed: int
) -> Integrated | None:
    evaluate = _Evaluation(program.conditional(names), data, start, names, seed)
    grid = evaluate.all_states() if evaluate.discrete else explore(evaluate, *evaluate.first_guess())
    return None if grid is None or evaluate.saturated(grid) else evaluate.posterior(grid)


def _chosen(program: Program, start: Posterior, over: Sequence[str] | str) -> tuple[str, ...]:
    scalars = _scalars(start)
    if over == "auto":
        names = approximate_scalars(program, start)
    else:
        names = (over,) if isinstance(over, str) else tuple(over)
    wrong = [name for name in names if name not in scalars]
    if wrong:
        raise ModelError(
            f"integrate= names {wrong[0]!r}, which is not an unobserved scalar variable without plates. "
            f"This model has: {', '.join(scalars) or 'none'}."
        )
    if not 0 < len(names) <= max(STEPS):
        what = f"{len(names)} ({', '.join(names)})" if names else "none"
        raise ModelError(
            f"integrate= takes one to {max(STEPS)} scalar variables; found {what}. "
            f"Name those that matter most, usually scales: {', '.join(scalars) or 'this model has none'}."
        )
    if len(set(names)) < len(names):
        raise ModelError(f"integrate= names a variable twice: {', '.join(names)}. Name each once.")
    if len({_is_discrete(scalars[name]) for name in names}) > 1:
        raise UnsupportedError(
            f"integrate= names discrete and continuous variables together ({', '.join(names)}). Discrete ones are "
            "summed over their states, continuous ones over a grid, and the two are not combined: name either."
        )
    if decided := _decided(program, names):
        raise UnsupportedError(
            f"integrate= names {', '.join(names)}, which alone decide whether '{decided[0]}' holds, so that its "
            "evidence at a point is zero or one and no grid can hold it. Leave one of them out of integrate=."
        )
    return names


Points: TypeAlias = Float[np.ndarray, "K d"]  # in unconstrained coordinates, one for each parameter


class _Evaluation:
    """The log density of the parameters in unconstrained coordinates, by inference at every point."""

    def __init__(
        self, program: Program, data: Mapping[str, Any], start: Posterior, names: tuple[str, ...], seed: int
    ) -> None:
        self.program, self.start, self.names, self.seed = program, start, names, seed
        nodes: Mapping[str, Random] = start.model.randoms
        self.kinds = [nodes[name].domain.kind for name in names]
        self.discrete = _is_discrete(nodes[names[0]])
        self.binding = program.bind({**data, **{name: 0 if self.discrete else start[name].mean for name in names}})
        with jax.enable_x64(True):
            self.machine, self.runner = program.machine_and_runner(self.binding, self.binding.inputs)
            self.arrays = arrays_of(self.binding, self.machine.graph)
        self.seen: dict[tuple[float, ...], tuple[Outputs, int]] = {}
        self.held = 0

    def all_states(self) -> Grid | None:
        """Every joint state of discrete parameters, None where they are too many."""
        sizes = []
        for name in self.names:
            domain = self.start.model.randoms[name].domain
            known = domain.size if not isinstance(domain.size, Plate) else self.binding.sizes[domain.size.name]
            sizes.append(2 if domain.is_boolean else known)
        if math.prod(sizes) > MOST_STATES:
            return None
        points = np.array(list(itertools.product(*map(range, sizes))), float)
        return Grid(points, self(points), 0.0, np.zeros(len(sizes)), 0.0)

    def saturated(self, grid: Grid) -> bool:
        """Whether there is mass where probabilities are too near one to be told apart."""
        top = grid.log_density.max()
        ends = [grid.points[:, k] > SATURATED for k, kind in enumerate(self.kinds) if kind == "unit"]
        return any(bool(np.any(grid.log_density[end] > top - NOTHING)) for end in ends)

    def first_guess(self) -> tuple[Float[np.ndarray, " d"], Float[np.ndarray, " d"]]:
        """Mean and standard deviation of the parameters' beliefs in unconstrained coordinates."""
        with jax.enable_x64(True):
            draws = [
                np.asarray(TO_REAL[kind](self.start[name].sample(self.seed, (4000,))))
                for name, kind in zip(self.names, self.kinds, strict=True)
            ]
        return np.array([d.mean() for d in draws]), np.clip([d.std() for d in draws], 1e-3, 3.0)

    def values(self, points: Points) -> dict[str, Float[np.ndarray, " K"]]:
        """The parameters at points (K, d)."""
        with jax.enable_x64(True):
            pairs = zip(self.names, self.kinds, points.T, strict=True)
            return {name: np.asarray(FROM_REAL[kind](column)) for name, kind, column in pairs}

    def __call__(self, points: Points) -> Float[np.ndarray, " K"]:
        """Log densities at points (K, d), in chunks of one size so that nothing is compiled twice."""
        found = []
        for chunk, outputs, slopes in self._chunks(points):
            if self.held > HELD:
                self.seen, self.held = {}, 0
            self.held += sum(leaf.nbytes for leaf in jax.tree.leaves(outputs))
            self._keep(chunk, outputs)
            evidence = outputs["evidence"]
            found.append(np.where(np.isfinite(evidence), evidence + slopes, -np.inf)[: len(chunk)])
        return np.concatenate(found)

    def _chunks(self, points: Points) -> Iterator[tuple[Points, Outputs, Float[np.ndarray, " chunk"]]]:
        """Points, what inference finds there, and the log slopes of the parameters, both padded to the chunk's size."""
        size = len(points) if self.discrete else CHUNKS[len(self.names)]
        for at in range(0, len(points), size):
            chunk = points[at : at + size]
            padded = np.concatenate([chunk, np.repeat(chunk[-1:], size - len(chunk), axis=0)])
            with jax.enable_x64(True):
                outputs = self.runner.many_values(self.arrays, self.values(padded), self.seed)
                pairs = zip(self.kinds, padded.T, strict=True)
                slopes = np.sum([np.asarray(LOG_SLOPE[kind](column)) for kind, column in pairs], axis=0)
            yield chunk, outputs, slopes

    def _keep(self, points: Points, outputs: Outputs) -> None:
        """Holds what was inferred, for the mixture."""
        self.seen |= {tuple(point): (outputs, k) for k, point in enumerate(points)}

    def _at(self, points: Points) -> list[Outputs]:
        """What inference finds at each point."""
        forgotten = [point for point in points if tuple(point) not in self.seen]
        for chunk, outputs, _ in self._chunks(np.array(forgotten)) if forgotten else ():
            self._keep(chunk, outputs)
        held = [self.seen[tuple(point)] for point in points]
        return [jax.tree.map(lambda leaf, k=k: leaf[k], chunk) for chunk, k in held]

    def posterior(self, grid: Grid) -> Integrated:
        """The mixture over the grid."""
        weights = np.exp(grid.log_density - grid.log_density.max())
        order = np.argsort(weights)
        negligible = np.cumsum(weights[order]) <= (0.0 if self.discrete else NEGLIGIBLE * weights.sum())
        kept = np.sort(order[~negligible])
        weights, points = weights[kept] / weights[kept].sum(), grid.points[kept]
        outputs = self._at(points)
        values = self.values(points)
        families: dict[str, OnGrid | Family] = {
            name: OnGrid(column, weights, width, kind) if not self.discrete else _states(column, weights, kind)
            for name, kind, column, width in zip(self.names, self.kinds, points.T, grid.widths, strict=True)
        }
        bindings = [self._binding({name: array[k] for name, array in values.items()}) for k in range(len(kept))]
        settings = self.runner.settings
        return Integrated(self.program, self.machine, settings, bindings, outputs, families, weights, grid, self.start)

    def _binding(self, point: Mapping[str, Numeric]) -> Binding:
        """The data with the parameters as they are at one point."""
        given = {name: np.asarray(value) for name, value in point.items()}
        return dataclasses.replace(self.binding, observed={**self.binding.observed, **given})


def _states(column: Float[np.ndarray, " K"], weights: Float[np.ndarray, " K"], kind: str) -> Family:
    """The marginal of a discrete parameter from the weights of joint states."""
    totals = np.bincount(column.astype(int), weights, minlength=2)
    with np.errstate(divide="ignore"):
        logs = np.log(totals)
    family = FOR_DOMAIN[kind]
    assert issubclass(family, DiscreteFamily)
    return family.from_logits(logs)
