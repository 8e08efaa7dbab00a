"""Marginals of variables that were integrated out inside a factor, recovered from its cavities and site."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from ...compiler.blocks.mixture import MixtureBlock
from ...compiler.blocks.site import Absorbed, LinearTerm, SiteBlock
from ...compiler.passes.join import Direction, merged
from ...factors.arrays import Array
from ...factors.families import FOR_DOMAIN, ExponentialFamily, Family
from ...factors.moments import Real
from ..blocks import mixture, mixture_data
from ..blocks.site import site_data, sites
from ..data.missing_and_sparse import Arrays
from ..run.machine import Machine
from ..run.padded import Padding
from ..run.result import Outputs
from ..values.evaluate import value
from ..values.first_beliefs import discrete_family_of
from ..values.instances import count, flat, positions, restored
from ..values.naturals import Naturals
from ..values.plated import Placed, mapped
from ..values.scope import Scope


def recover(machine: Machine, outputs: Outputs, arrays: Arrays, number: str) -> dict[str, ExponentialFamily]:
    """The marginals of all variables that block `number` absorbed, from the outputs of a run."""
    read = {"key": outputs["key"], "beliefs": outputs["beliefs"], "messages": outputs["messages"][number]}
    if machine.larger is None:
        return machine.function("integrated out", (number,), partial(_recovered, machine, number))(read, arrays)
    larger, padding = machine.larger, Padding(machine, machine.larger)
    read["messages"] = padding.grown(number, read["messages"])
    recovered = larger.function("integrated out", (number,), partial(_recovered, larger, number))
    found = recovered(read, padding.data(arrays))
    return {name: padding.first_rows(name, family) for name, family in found.items()}


def _recovered(machine: Machine, number: str, outputs: dict[str, Any], arrays: Arrays) -> dict[str, ExponentialFamily]:
    block = machine.ep_blocks[number]
    scope = machine.scope(arrays)
    key = jax.random.wrap_key_data(jnp.asarray(outputs["key"]))
    prepared = machine.prepare_block(block, scope, jax.random.fold_in(key, int(number)))
    naturals = {name: tuple(map(jnp.asarray, n)) for name, n in outputs["beliefs"].items()}
    messages = jax.tree.map(jnp.asarray, outputs["messages"])
    beliefs = machine.flat(block, naturals)
    if isinstance(block, MixtureBlock):
        return {
            block.selector.name: _selector(machine, block, mixture.states(block, prepared, beliefs, messages), prepared)
        }
    assert isinstance(block, SiteBlock)
    _, cavities, site = sites.read(block, prepared, beliefs, messages, scope)
    shape = [machine.sizes[plate.name] for plate in block.plates]

    def placed(array: Array) -> Placed:
        return Placed(jnp.reshape(array, shape), block.plates)

    by_term = {
        (id(t.element), id(t.direction)): tuple(map(placed, c)) for t, c in zip(block.form.terms, cavities, strict=True)
    }
    joint = next((j for j, t in enumerate(block.form.terms) if isinstance(t.direction, Direction)), None)
    families: dict[str, ExponentialFamily] = {}
    for record in block.absorbed:
        own, shared = _split(record, machine)
        coefficient = site_data.product(record.coefficients, scope)
        means, variances = [site_data.form_offset(record.form, scope)], [site_data.form_noise(record.form, scope)]
        for term in own:
            c = site_data.product(term.coefficients, scope)
            mean, variance = by_term[(id(term.element), id(term.direction))]
            means.append(mapped(jnp.multiply, c, mean))
            variances.append(mapped(lambda c, v: c**2 * v, c, variance))
        covariances = [mapped(lambda c, *v: c * sum(v), coefficient, *variances)]
        if shared is not None and joint is not None:
            message = restored(messages.terms[..., joint, :], prepared.plan, count(block, machine.sizes))
            across = _along(block, joint, shared, beliefs, message, scope)
            for parts, found in zip((means, variances, covariances), across, strict=True):
                parts.append(placed(found))
        families[record.variable.name] = mapped(
            _posterior,
            placed(site.score),
            placed(site.curvature),
            _total(means),
            _total(variances),
            _total(covariances),
            order=record.variable.plates,
        ).value
    return families


def _selector(
    machine: Machine, block: MixtureBlock, states: Array, prepared: mixture_data.Prepared
) -> ExponentialFamily:
    """The belief about the selector, from the log probabilities of its states by row in schedule order."""
    shape = [machine.sizes[plate.name] for plate in block.plates]
    width = 1 if prepared.plan is None else len(prepared.plan.order)
    logs = restored(states.reshape((width, -1, states.shape[-1])), prepared.plan, count(block, machine.sizes))
    logs = logs.reshape((*shape, -1))
    return discrete_family_of(block.selector).from_logits(logs)


def _split(record: Absorbed, machine: Machine) -> tuple[list[LinearTerm], Direction | None]:
    """The terms of the variable's own mean: those with beliefs of their own, and the direction of the joint ones."""
    terms = merged(record.form.terms, machine.graph.joints)
    own = [term for term in terms if not isinstance(term.direction, Direction)]
    return own, next((term.direction for term in terms if isinstance(term.direction, Direction)), None)


def _total(parts: list[Placed]) -> Placed:
    return mapped(lambda *p: sum(p), *parts)


def _posterior(score: Array, curvature: Array, mean: Array, variance: Array, covariance: Array) -> Family:
    own = Real(mean + covariance * score, variance - covariance**2 * curvature)
    return FOR_DOMAIN["real"].from_moments(own)


def _along(
    block: SiteBlock, joint: int, own: Direction, beliefs: Naturals, message: Array, scope: Scope
) -> tuple[Array, Array, Array]:
    """Cavity mean and variance along the direction `own` and its covariance with the site's argument, by instance."""
    term = block.form.terms[joint]
    assert term.direction is not None
    here = flat(value(term.direction, scope), block, scope)
    there = flat(value(own, scope), block, scope)
    (means, covariances) = sites.readable(term.variable, beliefs[term.variable.name])
    position = positions(term.element, block, scope)
    mean, covariance = (means[0], covariances[0]) if position is None else (means[position], covariances[position])
    shift, precision = message[..., 0], message[..., 1]

    def spread(a: Array, b: Array) -> Array:
        return jnp.einsum("ni,ij,nj->n" if position is None else "ni,nij,nj->n", a, covariance, b)

    variance, between = spread(here, here), spread(here, there)
    left = 1.0 - precision * variance
    centre = jnp.sum(here * mean, axis=-1)
    found_mean = jnp.sum(there * mean, axis=-1) + between * (precision * centre - shift) / left
    found_variance = spread(there, there) + between**2 * precision / left
    return found_mean, found_variance, between / left
