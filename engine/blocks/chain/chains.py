"""Chains and trees in the engine: what `exact_kind` asks of a block, and their marginals where nothing is observed."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Bool, Float

from ....compiler.blocks.whole import ChainBlock
from ....compiler.language.nodes import Expr, Random
from ....factors.arrays import Array, Key
from ....factors.factor import Term
from ....factors.families.base import ExponentialFamily
from ....factors.moments import Boolean, Real, Vector
from ...values.evaluate import value
from ...values.first_beliefs import discrete_family_of, event_size, family_of
from ...values.instances import count
from ...values.naturals import Naturals, Parts
from ...values.plated import Placed, mapped
from ...values.scope import Scope
from ..discrete import tables
from . import discrete_chain, gaussian_chain, trees
from .discrete_chain import LogMessages, Probabilities, SmoothedStates, Transitions
from .gaussian_chain import LinearTransitions, Matrices, Vectors
from .known_elements import KnownElements, cut, in_given_states, invertible, known_elements
from .small_matrices import applied, positive_inverse, product
from .transitions import (
    Axes,
    axes_of,
    chain_of,
    expected_log,
    gaussian_energy,
    gaussians,
    state_count,
    table_energy,
    table_terms,
)
from .trees import RootedTree


class PreparedChain(NamedTuple):
    """What depends on data only: uniform messages, and the tree where it is one."""

    initial: Naturals
    tree: RootedTree | None


def prepare(block: ChainBlock, scope: Scope, key: Key, apart: bool = False) -> PreparedChain:
    """The structure of a tree, and uniform messages; there is nothing random in it."""
    node: Random = block.out
    initial = {}
    if node.name in block.latent:
        uniform = family_of(node).uniform((count(node, scope.sizes),), event_size(node, scope))
        initial = {node.name: uniform.naturals()}
    return PreparedChain(initial, tree_of(node, scope))


def tree_of(node: Random, scope: Scope) -> RootedTree | None:
    parent = chain_of(node).parent
    return None if parent is None else trees.tree_of(jnp.asarray(value(parent, scope).value))


def family(block: ChainBlock, name: str) -> type[ExponentialFamily]:
    """The family of the elements."""
    return family_of(block.out)


def solve(
    block: ChainBlock, prepared: PreparedChain, cavities: Naturals, scope: Scope
) -> tuple[Float[jax.Array, ""], Naturals]:
    """log Z and the naturals of all marginals, given the messages of the other factors: exact.

    `cavities` has the naturals of these messages, by the name of the variable and with all plates in one axis, and so
    has the answer; an observed chain has no marginals.

    The gradient of log Z in parameters' moments and in inputs is that of the expected log density under the pairs'
    marginals; in the cavities it is that of log Z itself.
    """
    node = block.out
    discrete = node.domain.is_discrete
    if node.name not in block.latent:
        return (_observed_discrete if discrete else _observed_gaussian)(node, prepared.tree, scope), {}
    run, cavity = _discrete if discrete else _gaussian, cavities[node.name]
    known = known_elements(node, axes_of(node, scope), scope)
    log_z, energy, marginals = run(node, prepared.tree, cavity, scope, known)
    if known is not None:
        marginals, log_z = known.of(cavity, marginals), log_z + known.normaliser(family_of(node), cavity)
    return log_z + energy - jax.lax.stop_gradient(energy), {node.name: marginals}


# Gaussian -------------------------------------------------------------------------------------------------------------


class SmoothedGaussians(NamedTuple):
    """Means and covariances, log Z by element, and the gains from parents."""

    mean: Vectors
    covariance: Matrices
    log_z: Float[jax.Array, "time lanes"]
    gain: Matrices


def roots_of(axes: Axes, tree: RootedTree | None) -> Bool[jax.Array, " time"]:
    return jnp.arange(axes.sizes[axes.order[0].name]) == 0 if tree is None else tree.root


def parents_of(tree: RootedTree | None, arrays: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
    """Each element's parent; of a root anything that is finite."""
    if tree is not None:
        return tuple(array[tree.parent] for array in arrays)
    return tuple(jnp.concatenate([jnp.zeros_like(array[:1]), array[:-1]]) for array in arrays)


def _gaussian(
    node: Random, tree: RootedTree | None, cavity: tuple[Array, ...], scope: Scope, known: KnownElements | None
) -> tuple[Float[jax.Array, ""], Float[jax.Array, ""], tuple[Array, ...]]:
    """log Z, the expected log density under the pairs' marginals, and the naturals of the marginals."""
    axes = axes_of(node, scope)
    shift, precision = as_information(axes, node, cavity)
    terms = gaussians(node, scope, roots_of(axes, tree))
    fixed = jax.lax.stop_gradient(terms)
    links, of_known = fixed.links, jnp.zeros(())
    if known is not None:
        links, precision, shift, of_known = cut(known, links, fixed.precision, precision, shift)
    mean, covariance, log_z, gain = _smoothed(links, tree, precision, shift)
    log_z = jnp.sum(log_z + of_known + 0.5 * (fixed.log_det - fixed.log_det_mean) + fixed.e0)
    parent_mean, parent_covariance = parents_of(tree, (mean, covariance))
    cross = product(gain, parent_covariance)
    pairs = jax.lax.stop_gradient(((mean, covariance), (parent_mean, parent_covariance), cross))
    belief = positive_inverse(covariance if known is None else invertible(known, covariance))
    return log_z, gaussian_energy(terms, *pairs), as_naturals(axes, node, applied(belief, mean), belief)


def _smoothed(
    links: LinearTransitions, tree: RootedTree | None, precision: Matrices, shift: Vectors
) -> SmoothedGaussians:
    """The marginals, from the messages of all other factors."""
    if tree is None:
        known = gaussian_chain.chain_messages(links, precision, shift)
    else:
        known = trees.gaussian_messages(tree, links, precision, shift)
    above, log_z = gaussian_chain.given_parent(links, *known)
    if tree is None:
        mean, covariance = gaussian_chain.chain_marginals(above)
    else:
        mean, covariance = trees.gaussian_marginals(tree, above)
    return SmoothedGaussians(mean, covariance, log_z, above.gain)


def as_information(axes: Axes, node: Random, naturals: tuple[Array, ...]) -> tuple[Vectors, Matrices]:
    """Shift and precision."""
    shift, half = naturals
    if node.domain.is_real:
        shift, half = shift[:, None], half[:, None, None]
    return axes.from_flat(shift), -2.0 * axes.from_flat(half)


def as_naturals(axes: Axes, node: Random, shift: Vectors, precision: Matrices) -> tuple[jax.Array, ...]:
    """The way back."""
    shift, half = axes.to_flat(shift), -0.5 * axes.to_flat(precision)
    return (shift[:, 0], half[:, 0, 0]) if node.domain.is_real else (shift, half)


def _observed_gaussian(node: Random, tree: RootedTree | None, scope: Scope) -> Float[jax.Array, ""]:
    axes = axes_of(node, scope)
    values = jnp.asarray(value(node, scope).value, float)
    mean = axes.lanes(Placed(values[..., None] if node.domain.is_real else values, node.plates))
    certain = jnp.zeros((mean.shape[0], mean.shape[1], *mean.shape[1:]))
    terms = gaussians(node, scope, roots_of(axes, tree))
    (above,) = parents_of(tree, (mean,))
    return gaussian_energy(terms, (mean, certain), (above, certain), certain)


# discrete -------------------------------------------------------------------------------------------------------------


def _discrete(
    node: Random, tree: RootedTree | None, cavity: tuple[Array, ...], scope: Scope, known: KnownElements | None
) -> tuple[Float[jax.Array, ""], Float[jax.Array, ""], Parts]:
    """log Z, the expected log density under the pairs' marginals, and the naturals of the marginals."""
    axes = axes_of(node, scope)
    states = discrete_family_of(node)
    logits = states.from_naturals(cavity).logits_by_state()
    outside = axes.from_flat(logits) if known is None else in_given_states(known, axes.from_flat(logits))
    terms = table_terms(node, scope, expected_log)
    fixed = jax.lax.stop_gradient(terms)
    smoothed = _summed(fixed.first, fixed.table, tree, outside)
    message = axes.to_flat(smoothed.message - jnp.max(smoothed.message, axis=1, keepdims=True))
    counts = jax.lax.stop_gradient((smoothed.first, smoothed.counts))
    if tree is None and terms.table.shape[0] > 1:
        terms = terms._replace(table=terms.table[1:])
    energy = table_energy(terms, *counts)
    belief = tables.bounded(logits + message, True)
    return jnp.sum(smoothed.log_z), energy, states.from_logits(belief).naturals()


def _summed(first: Probabilities, table: Transitions, tree: RootedTree | None, outside: LogMessages) -> SmoothedStates:
    if tree is not None:
        return trees.smooth(tree, first, table, outside)
    return discrete_chain.smooth(first, table[1:] if table.shape[0] > 1 else table, outside)


def _observed_discrete(node: Random, tree: RootedTree | None, scope: Scope) -> Float[jax.Array, ""]:
    axes = axes_of(node, scope)
    states = state_count(node, scope)
    terms = table_terms(node, scope, expected_log)
    observed = axes.lanes(Placed(jnp.asarray(value(node, scope).value).astype(jnp.int32), node.plates))
    one_hot = jnp.moveaxis(jax.nn.one_hot(observed, states, dtype=float), -1, 1)
    root = roots_of(axes, tree)[:, None, None]
    (above,) = parents_of(tree, (one_hot,))
    pairs = jnp.where(root[..., None], 0.0, above[:, :, None] * one_hot[:, None])
    pairs = pairs if terms.table.shape[0] == pairs.shape[0] else jnp.sum(pairs, axis=0, keepdims=True)
    pairs = pairs if terms.table.shape[-1] == pairs.shape[-1] else jnp.sum(pairs, axis=-1, keepdims=True)
    first = jnp.sum(jnp.where(root, one_hot, 0.0), axis=0)
    return table_energy(terms, first, pairs)


# forward --------------------------------------------------------------------------------------------------------------


def prior(node: Random, scope: Scope, probability: Callable[[Expr, Scope], Placed]) -> Placed:
    """The marginals of a chain or a tree that nothing observed depends on, a new one under the parameters' moments.

    `probability(expr, scope)` gives the mean of an expression that is a probability. Returns a family placed on the
    plates of the variable.
    """
    axes, tree = axes_of(node, scope), tree_of(node, scope)
    if node.domain.is_gaussian:
        terms = gaussians(node, scope, roots_of(axes, tree))
        shape = terms.links.b.shape
        precision, shift = jnp.zeros((*shape[:2], *shape[1:])), jnp.zeros(shape)
        smoothed = _smoothed(terms.links, tree, precision, shift)
        return placed_gaussian(axes, node, smoothed.mean, smoothed.covariance)

    terms = table_terms(node, scope, log_mean(probability))
    outside = jnp.zeros((scope.sizes[axes.order[0].name], *terms.first.shape))
    logits = axes.to_flat(_summed(*terms, tree, outside).message)
    logits = logits.reshape((*(scope.sizes[plate.name] for plate in node.plates), logits.shape[-1]))
    return Placed(discrete_family_of(node).from_logits(logits), node.plates)


def log_mean(probability: Callable[[Expr, Scope], Placed]) -> Callable[[Term, Placed, Scope], Placed]:
    """The log probability of an outcome that a term generates, its parameters averaged out."""

    def log_mean(term: Term, out: Placed, inside: Scope) -> Placed:
        (arg,) = term.args.values()

        def log_probability(out: tuple[jax.Array, ...], p: jax.Array) -> Float[jax.Array, ""]:
            boolean = isinstance(out, Boolean)
            p = jnp.stack([1.0 - p, p]) if boolean else p
            weight = jnp.stack([1.0 - out[0], out[0]]) if boolean else out[0]
            return jnp.log(jnp.sum(weight * p))

        return mapped(log_probability, out, probability(arg, inside))

    return log_mean


def placed_gaussian(axes: Axes, node: Random, mean: Vectors, covariance: Matrices) -> Placed:
    shape = tuple(axes.sizes[plate.name] for plate in node.plates)
    mean, covariance = (axes.to_flat(array) for array in (mean, covariance))
    mean, covariance = (array.reshape((*shape, *array.shape[1:])) for array in (mean, covariance))
    found = Real(mean[..., 0], covariance[..., 0, 0]) if node.domain.is_real else Vector(mean, covariance)
    return Placed(family_of(node).from_moments(found), node.plates)
