"""Marginals of latent counts as tables: the belief is a Poisson, whose mean is right and whose variance need not be.

A message of EP is the projection of what a factor says. In the marginal that is shown each is replaced by what it is
the projection of, the factor under the cavities of its other variables, at every value of the count. That is exact
where what the others say is; where several instances of factors say something it is done only if no other variable is
random in them.
"""

from __future__ import annotations

from typing import TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from ...compiler.blocks.base import Block
from ...compiler.blocks.energy import EnergyBlock
from ...compiler.blocks.slots import SlotsBlock
from ...compiler.graph import Plan
from ...factors.arrays import Array
from ...factors.families import Family
from ..distributions.cases import Projected
from ..distributions.count_table import CountTable
from ..expressions.after import Run
from ..expressions.meetings import CELLS, in_parts
from ..expressions.parts import keys_of
from ..expressions.tilted_clouds import Source
from ..values.instances import count, positions

Instances: TypeAlias = Int[np.ndarray, " instance"]
Nodes: TypeAlias = Float[Array, "instance value"]

_VALUES = 200  # as many as the nodes of a tilted distribution
_NEVER = -1e30  # log of a probability of zero that may be interpolated


def says_more(plan: Plan, name: str) -> bool:
    """Whether the marginal of a variable with a belief may say more than the belief: of latent counts."""
    variable = plan.latent.get(name)
    return variable is not None and variable.domain.is_count and name not in plan.partly


def shown(name: str, belief: Family, run: Run) -> Family:
    """The marginal of a latent count: a table where it can be summed, else its belief, called a projection."""
    blocks = {n: b for n, b in run.machine.ep_blocks.items() if name in b.latent}
    if not blocks:
        return belief
    taken = (b for b in run.graph.blocks if isinstance(b, EnergyBlock) and not b.constant)
    if any(name in block.latent for block in taken):  # taken apart by VMP
        return Projected(belief)
    sources = {number: run.source(number) for number in blocks}
    if not all(_speaks_of(block, name, run) for block in blocks.values()):
        return Projected(belief)
    elements = count(run.graph.latent[name], run.scope.sizes)
    touching, heard = [], np.zeros(elements, int)
    for source in sources.values():
        rows, places = _instances(source, run)
        touching.append((source, rows, places))
        heard += np.bincount(places, minlength=elements)
    alone = all(len(block.latent) == 1 and not block.atoms for block in blocks.values())
    if (heard.max(initial=0) > 1 and not alone) or elements * _VALUES > CELLS:
        return Projected(belief)
    return _table(belief, touching, elements)


def _speaks_of(block: Block, name: str, run: Run) -> bool:
    """Whether its tilted distribution has the count as its only numbers that are summed, one element in an instance."""
    if not isinstance(block, SlotsBlock) or block.method.alpha != 1.0:
        return False
    if run.machine.rows.get(block) is not None or block.discrete or block.selector is not None:
        return False
    own = [edge for edge in block.edges if edge.variable.name == name]
    branches = block.branches
    return len(own) == 1 and len(branches) == 1 and len(branches[0].slots) == 1 and branches[0].link != "vector"


def _instances(source: Source, run: Run) -> tuple[Instances, Instances]:
    """The instances of a block that count, and the elements of the count that they touch."""
    block = source.block
    assert isinstance(block, SlotsBlock)
    (edge,) = (edge for edge in block.edges if edge.variable.domain.is_count)
    every = np.arange(count(block, run.scope.sizes))
    place = positions(edge.element, block, run.scope)
    here = np.asarray(source.present(jnp.asarray(every)))
    places = np.zeros_like(every) if place is None else np.asarray(place)
    return every[here], places[here]


def _table(belief: Family, touching: list[tuple[Source, Instances, Instances]], elements: int) -> CountTable:
    flat = jax.tree.map(lambda a: jnp.reshape(jnp.asarray(a), (elements,)), belief)
    said = [(places, *_nodes(source, rows)) for source, rows, places in touching]
    first, last = _ends(flat, said, elements)
    stride = np.maximum(1.0, np.ceil((last - first) / (_VALUES - 1)))
    values = first[:, None] + stride[:, None] * np.arange(_VALUES)
    own = jax.vmap(flat.log_density, in_axes=1, out_axes=1)(jnp.asarray(values))
    total = own
    for places, nodes, logs in said:
        here = jax.tree.map(lambda a, places=places: a[places], flat)
        at_nodes = jax.vmap(lambda q, x: q.log_density(x))(here, nodes)
        ratio = jnp.where(logs > -jnp.inf, logs - at_nodes, _NEVER)
        more = jax.vmap(jnp.interp)(jnp.asarray(values[places]), nodes, ratio)
        total = total.at[places].add(more)
    total = jnp.where((total > _NEVER / 2) & (values <= last[:, None]), total, -jnp.inf)
    shape = jnp.shape(belief.mean())
    logs = jnp.reshape(jax.nn.log_softmax(total, axis=-1), (*shape, _VALUES))
    return CountTable(np.reshape(first, shape), np.reshape(stride, shape), logs)


def _nodes(source: Source, rows: Instances) -> tuple[Nodes, Nodes]:
    """Values of the count, and the logarithm of the tilted probability of each, by instance."""
    (key, number), *_ = ((k, j) for k, j in keys_of(source.block).items() if j >= 0 and _is_count(source.block, j))
    given = jnp.asarray(rows)

    def one(at: Array) -> tuple[Array, Array]:
        cloud = source.cloud({key: number}, given[at])
        each = cloud.cases // _VALUES
        values = cloud.points[key][:, ::each]
        logs = jax.scipy.special.logsumexp(cloud.log_weights.reshape((-1, _VALUES, each)), axis=-1)
        return values, logs - jnp.log(values[:, 1:2] - values[:, :1])

    return in_parts(one, len(rows), max(1, CELLS // (50 * _VALUES)))


def _is_count(block: Block, number: int) -> bool:
    return isinstance(block, SlotsBlock) and block.edges[number].variable.domain.is_count


def _ends(belief: Family, said: list[tuple[Instances, Nodes, Nodes]], elements: int) -> tuple[np.ndarray, np.ndarray]:
    """The values between which all that is said of an element has its mass; those of its belief if nothing is said."""
    mean, sd = np.asarray(belief.mean()), np.sqrt(np.asarray(belief.variance()))
    first, last, heard = np.zeros(elements), np.full(elements, np.inf), np.zeros(elements, bool)
    for places, nodes, _ in said:
        np.maximum.at(first, places, np.asarray(nodes[:, 0]))
        np.minimum.at(last, places, np.asarray(nodes[:, -1]))
        heard[places] = True
    wide = np.maximum(np.ceil(mean + 12.0 * sd) + 20.0, _VALUES - 1)
    return np.where(heard, first, np.maximum(np.floor(mean - 12.0 * sd), 0.0)), np.where(heard, last, wide)
