"""Skewness and excess kurtosis of the tilted distributions of EP factors: how far they are from Gaussian.

With Z(m) the evidence of a factor under a cavity N(m, v), log Z(m) + m^2 / (2 v) generates the cumulants of the tilted
distribution in m / v; from the third on they are kappa_n = v^n d^n log Z / dm^n. Source: opper2013perturbative.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, PyTree

from ...compiler.blocks.base import Block
from ...compiler.blocks.site import SiteBlock
from ...compiler.rules.logic import TRUE
from ...factors.arrays import Array
from ...factors.switches import double_precision
from ..answers.outcome import Outcome
from ..blocks.site import site_data, sites
from ..data.missing_and_sparse import Arrays
from ..run.machine import Machine
from ..values.evaluate import value
from ..values.naturals import Naturals
from ..values.plated import Placed, mapped, spread
from ..values.scope import Scope

End: TypeAlias = dict[str, Any]  # beliefs and key of the end of a run, and the messages of one block
Instances: TypeAlias = Float[Array, " instance"]


class Shape(NamedTuple):
    """The largest |skewness| and |excess kurtosis| among the tilted distributions of one factor's instances."""

    skewness: float
    kurtosis: float


def tilted_shapes(posterior: Outcome) -> dict[str, Shape]:
    """Skewness and kurtosis by factor, for EP factors of one scalar with a known outcome that are not Gaussian."""
    found = {}
    with double_precision():
        for number, block in posterior.machine.ep_blocks.items():
            if isinstance(block, SiteBlock) and block.link != "identity" and not block.atoms and block.over is None:
                found[block.name] = _block_shape(posterior, number, block)
    return found


def _block_shape(posterior: Outcome, number: str, block: SiteBlock) -> Shape:
    power = block.method.alpha

    def of_all(end, arrays):
        out, m, v = cavity_of_form(posterior.machine, end, arrays, number, block)
        _, third, fourth = log_evidence_derivatives(block, out, m, v, power, 4)
        tilted = v * sites.site_function(block)(out, m, v, power).ratio
        return v**3 * third / tilted**1.5, v**4 * fourth / tilted**2

    found = posterior.machine.function("cumulants", (number,), of_all)
    skewness, kurtosis = found(end_of(posterior, number), posterior.arrays)
    return Shape(float(np.max(np.abs(skewness), initial=0.0)), float(np.max(np.abs(kurtosis), initial=0.0)))


def log_evidence_derivatives(
    block: SiteBlock, out: Array | None, mean: Array, variance: Array, power: float, highest: int
) -> list[Array]:
    """The derivatives of log Z in the cavity mean, from the second to the `highest`, of all instances."""

    def second(mean: Array) -> Array:
        return -sites.site_function(block)(out, mean, variance, power).curvature + jnp.zeros_like(mean)

    found, function = [], second
    for _ in range(2, highest + 1):
        found.append(function(mean))
        function = _slope(function)
    return found


def _slope(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """The derivative of a function that is applied to each element."""
    return lambda x: jax.jvp(function, (x,), (jnp.ones_like(x),))[1]


def end_of(posterior: Outcome, number: str) -> End:
    """Where a run ended, as far as one EP block reads it."""
    outputs = posterior.result.outputs
    return {"key": outputs["key"], "beliefs": outputs["beliefs"], "messages": outputs["messages"][number]}


def site_messages(
    machine: Machine, end: End, arrays: Arrays, number: str, block: SiteBlock
) -> tuple[Array, list[tuple[Array, Array]], sites.Site]:
    """What `sites.read` says of one EP block at the fixed point: evidence, cavities by term, and the site."""
    ready = ready_at_end(machine, end, arrays, number, block)
    return sites.read(block, ready.prepared, ready.naturals, ready.messages, ready.scope)


class Ready(NamedTuple):
    """A block at the end of a run, as the functions of its kind take it."""

    prepared: PyTree
    naturals: Naturals
    messages: PyTree
    scope: Scope


def ready_at_end(machine: Machine, end: End, arrays: Arrays, number: str, block: Block) -> Ready:
    """A block, in the place of the one of that number, with the data in the order of its messages."""
    scope, stored = machine.scope(arrays), machine.graph.blocks[int(number)]
    if block is not stored and stored in scope.rows:  # rows are cut as they were for the stored messages
        scope = dataclasses.replace(scope, rows={**scope.rows, block: scope.rows[stored]})
    key = jax.random.wrap_key_data(jnp.asarray(end["key"]))
    prepared = machine.prepare_block(block, scope, jax.random.fold_in(key, int(number)))
    beliefs = {name: tuple(map(jnp.asarray, n)) for name, n in end["beliefs"].items()}
    return Ready(prepared, machine.flat(block, beliefs), jax.tree.map(jnp.asarray, end["messages"]), scope)


def cavity_of_form(
    machine: Machine, end: End, arrays: Arrays, number: str, block: SiteBlock
) -> tuple[Instances, Instances, Instances]:
    """By instance: the outcome, and mean and variance of the factor's Gaussian argument under the cavities."""
    sizes = machine.sizes
    scope = Scope(sizes, arrays, {})
    _, cavities, _ = site_messages(machine, end, arrays, number, block)
    shape = [sizes[plate.name] for plate in block.plates]
    means, variances = [site_data.form_offset(block.form, scope)], [site_data.form_noise(block.form, scope)]
    for term, (mean, variance) in zip(block.form.terms, cavities, strict=True):
        c = site_data.product(term.coefficients, scope)
        means.append(mapped(jnp.multiply, c, Placed(jnp.reshape(mean, shape), block.plates)))
        variances.append(mapped(lambda c, v: c**2 * v, c, Placed(jnp.reshape(variance, shape), block.plates)))
    total_mean, total = (mapped(lambda *p: sum(p), *parts, order=block.plates) for parts in (means, variances))
    out = Placed(jnp.asarray(1.0), ()) if block.out is TRUE else value(block.out, scope)
    flat = [jnp.ravel(jnp.asarray(spread(placed, block.plates, sizes), float)) for placed in (out, total_mean, total)]
    return flat[0], flat[1], jnp.maximum(flat[2], sites.SMALLEST_VARIANCE)
