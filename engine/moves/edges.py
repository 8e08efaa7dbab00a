"""Moves of the edges of a graph, as a square array of booleans: symmetric, directed, or directed without cycles."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
from jaxtyping import Bool

from ...factors.arrays import Array, Key
from ...factors.calls import call_checked
from ...factors.errors import ModelError
from ..mcmc.structure import Place, Score
from .asked import check_times
from .booleans import OfBooleans
from .priors import Prior

KINDS = ("undirected", "directed", "acyclic")
Adjacency = Bool[jax.Array, "from to"]


@dataclasses.dataclass(frozen=True)
class Edges(OfBooleans):
    """See `edges`."""

    kind: str

    def check(self, place: Place) -> None:
        if len(place.shape) != 2 or place.shape[0] != place.shape[1] or place.shape[0] < 2:
            raise ModelError(f"moves= of '{place.name}': edges are a square array; it has shape {place.shape}.")
        if place.start is not None and not bool(self.allows(jnp.asarray(place.start, bool))):
            raise ModelError(f"'{place.name}' begins with a graph that is not {self.kind}, or with an edge to itself.")

    def begin(self, key: Key, place: Place) -> Adjacency:
        """Without edges: any kind allows it."""
        return jnp.zeros(place.shape, bool)

    def allows(self, graph: Adjacency) -> Array:
        """Whether a graph is of this kind."""
        loops = jnp.any(jnp.diagonal(graph))
        if self.kind == "undirected":
            return ~loops & jnp.all(graph == graph.T)
        return ~loops if self.kind == "directed" else ~jnp.any(jnp.diagonal(_reached(graph)))

    def log_prior(self, structure: Adjacency) -> Array:
        """Of an undirected edge once."""
        once = jnp.triu(structure) if self.kind == "undirected" else structure
        own = jnp.zeros(()) if self.prior is None else self.prior.log_probability(once)
        return jnp.where(self.allows(structure), own, -jnp.inf)

    def propose(self, key: Key, structure: Adjacency, score: Score) -> tuple[Adjacency, Array]:
        keys = jax.random.split(key)
        a, b = jax.random.choice(keys[0], len(structure), (2,), replace=False)
        flipped = structure.at[a, b].set(~structure[a, b])
        if self.kind == "undirected":
            return flipped.at[b, a].set(flipped[a, b]), jnp.zeros(())
        turned = structure.at[a, b].set(structure[b, a]).at[b, a].set(structure[a, b])
        return jnp.where(jax.random.bernoulli(keys[1]), flipped, turned), jnp.zeros(())


def _reached(graph: Adjacency) -> jax.Array:
    """Which nodes are reached from each along edges, at least one."""
    found = graph
    for _ in range(max(1, (len(graph) - 1).bit_length())):
        found = found | ((found.astype(float) @ found.astype(float)) > 0)
    return found


@call_checked
def edges(kind: str = "undirected", times: int = 10, prior: Prior | None = None) -> Edges:
    """Moves of the edges of a graph, a square array of booleans over two plates of one size: an edge appears or
    vanishes, or turns round.

    `kind`: "undirected" (symmetric), "directed", or "acyclic", where true at [a, b] is an edge from a to b; none goes
    to its own node. `times`: proposals in a sweep; `prior`: of an input, such as `cv.moves.independent(0.1)` for each
    edge. Starts without edges. Returns a move for `cv.sample` and `cv.search`; ModelError for another kind.
    """
    if kind not in KINDS:
        raise ModelError(f"edges(kind={kind!r}): kinds of graphs are {', '.join(KINDS)}.")
    return Edges(check_times("edges", times), prior, kind)
