"""Chains and trees whose steps are not linear: linear steps that tilted pairs agree with, found by iteration.

The first steps come of one pass along the chain, each fitted to what is known before it and to the messages at its own
element; then all are fitted at once to the smoothed pairs, again and again. `docs/decisions/0026-curved-chains.md` has
the reasons.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Bool, Float, Int, PyTree

from ....compiler.blocks.whole import CurvedChainBlock
from ....compiler.language.nodes import Expr, Random
from ....compiler.rules.chain import is_curved
from ...support.concrete import all_finite
from ...values.evaluate import value
from ...values.naturals import Naturals
from ...values.plated import Placed
from ...values.scope import Scope
from . import chains, gaussian_chain, trees
from .chains import PreparedChain, as_information, as_naturals, parents_of, placed_gaussian, roots_of
from .gaussian_chain import LinearTransitions, Matrices, Vectors, down, given_parent
from .small_matrices import applied, cholesky, eye, inverse, product, symmetric, transposed
from .steps import Known, Pair, Pairs, Steps, fitted, in_time, side_by_side, steps_of
from .transitions import axes_of
from .trees import RootedTree

TOLERANCE = 1e-6  # standard deviations that tilted pairs may be away from their beliefs
ROUNDED = 1e-4  # where that is nearer, and a fit does not help, rounding errors are what is left
MOST, LEAST = 100, 1e-3  # fits, and the smallest share of a change that is made


class Smoothed(NamedTuple):
    """Means and covariances of all elements and of their parents, what is known below each, log Z by element."""

    mean: Vectors
    covariance: Matrices
    parent: tuple[Vectors, Matrices]
    known: Known
    log_z: Float[jax.Array, "time lanes"]


class Found(NamedTuple):
    """Linear steps, and how far in standard deviations tilted pairs are from their beliefs: zero where they agree."""

    links: LinearTransitions
    distance: Float[jax.Array, ""]


def solve(
    block: CurvedChainBlock, prepared: PreparedChain, cavities: Naturals, scope: Scope
) -> tuple[Float[jax.Array, ""], Naturals]:
    """log Z and the naturals of all marginals: as `chains.solve`, by quadrature."""
    log_z, marginals, _ = watched(block, prepared, cavities, scope)
    return log_z, marginals


def watched(
    block: CurvedChainBlock, prepared: PreparedChain, cavities: Naturals, scope: Scope
) -> tuple[Float[jax.Array, ""], Naturals, Float[jax.Array, ""]]:
    """The same, and how far in standard deviations the search is from its end: zero where it found it."""
    node, tree = block.out, prepared.tree
    if node.name not in block.latent:
        return _observed(node, tree, scope), {}, jnp.zeros(())
    axes = axes_of(node, scope)
    shift, precision = as_information(axes, node, cavities[node.name])
    own, root = Known(precision, shift), roots_of(axes, tree)
    found = jax.lax.stop_gradient(_settled(node, tree, jax.lax.stop_gradient(own), _fixed(scope), root))
    smoothed = _smoothed(found.links, tree, own, root)
    pairs = side_by_side(jax.lax.stop_gradient((found.links, smoothed.parent, smoothed.known)))
    energy = jnp.sum(steps_of(node, scope, root).tilted(*pairs).log_ratio)
    belief = symmetric(inverse(smoothed.covariance))
    log_z, marginals = jnp.sum(smoothed.log_z) + energy, as_naturals(axes, node, applied(belief, smoothed.mean), belief)
    # Of steps that no belief agrees with nothing is told: a run takes a smaller step then.
    log_z, marginals = jax.tree.map(lambda a: jnp.where(found.distance < jnp.inf, a, jnp.nan), (log_z, marginals))
    return log_z, {node.name: marginals}, found.distance


def prior(node: Random, scope: Scope, probability: Callable[[Expr, Scope], Placed]) -> Placed:
    """The marginals of a chain or a tree that nothing observed depends on: as `chains.prior`, for all of them."""
    if not is_curved(node):
        return chains.prior(node, scope, probability)
    axes, tree = axes_of(node, scope), chains.tree_of(node, scope)
    root = roots_of(axes, tree)
    mean, covariance = steps_of(node, scope, root).first()
    nothing = jnp.zeros((root.shape[0], *covariance.shape)), jnp.zeros((root.shape[0], *mean.shape))
    found = _settled(node, tree, Known(*nothing), scope, root)
    smoothed = _smoothed(found.links, tree, Known(*nothing), root)
    return placed_gaussian(axes, node, smoothed.mean, smoothed.covariance)


def _fixed(scope: Scope) -> Scope:
    """The scope as constants: what is searched for has no derivative."""
    data, moments = (_constant(tree) for tree in (scope.data, scope.moments))
    return scope.with_data(data).with_moments(moments)


def _constant(tree: PyTree) -> PyTree:
    return jax.tree.map(lambda leaf: jax.lax.stop_gradient(leaf) if isinstance(leaf, jax.Array) else leaf, tree)


def _smoothed(
    links: LinearTransitions, tree: RootedTree | None, own: Known, root: Bool[jax.Array, " time"]
) -> Smoothed:
    if tree is None:
        known = gaussian_chain.chain_messages(links, *own)
    else:
        known = trees.gaussian_messages(tree, links, *own)
    above, log_z = given_parent(links, *known)
    marginals = gaussian_chain.chain_marginals(above) if tree is None else trees.gaussian_marginals(tree, above)
    # A root has no parent; where one is looked at, it is itself, which is an ordinary value.
    parent = tuple(
        jnp.where(root.reshape((-1,) + (1,) * (here.ndim - 1)), here, there)
        for here, there in zip(marginals, parents_of(tree, marginals), strict=True)
    )
    return Smoothed(*marginals, (parent[0], parent[1]), Known(*known), log_z)


# the search -----------------------------------------------------------------------------------------------------------


class _Search(NamedTuple):
    """The best steps so far and what they are fitted to next, how far they are, and the share that is tried next."""

    fits: Int[jax.Array, ""]
    best: LinearTransitions
    target: LinearTransitions
    distance: Float[jax.Array, ""]
    share: Float[jax.Array, ""]


def _settled(node: Random, tree: RootedTree | None, own: Known, scope: Scope, root: Bool[jax.Array, " time"]) -> Found:
    """Linear steps whose pairs have the means and covariances of the tilted pairs."""
    steps = steps_of(node, scope, root)

    def fit(links: LinearTransitions) -> tuple[LinearTransitions, Float[jax.Array, ""]]:
        smoothed = _smoothed(links, tree, own, root)
        pairs = side_by_side((links, smoothed.parent, smoothed.known))
        made, tilted = fitted(steps.tilted(*pairs), *pairs)
        return _without_parents(in_time(made, root.shape[0]), root), _distance(tilted, smoothed)

    def another(search: _Search) -> _Search:
        tried = _between(search.best, search.target, search.share)
        target, distance = fit(tried)
        better = distance < search.distance
        taken = better | (distance < 2.0 * search.distance) & (search.share <= 0.25)
        best, target = (
            jax.tree.map(lambda new, old: jnp.where(taken, new, old), new, old)
            for new, old in ((tried, search.best), (target, search.target))
        )
        share = jnp.where(better, jnp.minimum(1.0, 1.5 * search.share), 0.5 * search.share)
        return _Search(search.fits + 1, best, target, jnp.where(taken, distance, search.distance), share)

    def going(search: _Search) -> Bool[jax.Array, ""]:
        stalled = (search.share < 1.0) & (search.distance < ROUNDED)
        return (search.distance > TOLERANCE) & ~stalled & (search.fits < MOST) & (search.share > LEAST)

    begin = _first(steps, tree, own, root)
    search = _Search(jnp.zeros((), int), begin, begin, jnp.full((), jnp.inf), jnp.ones(()))
    search = jax.lax.while_loop(going, another, another(search))
    last = search.distance < ROUNDED  # one step more is sound there, and nearer
    links = jax.tree.map(lambda new, old: jnp.where(last, new, old), search.target, search.best)
    return Found(links, jnp.where(last, 0.0, search.distance))


def _without_parents(links: LinearTransitions, root: Bool[jax.Array, " time"]) -> LinearTransitions:
    """The same, of elements without a parent with no part of it."""

    def cut(array: jax.Array) -> jax.Array:
        return jnp.where(root.reshape((-1,) + (1,) * (array.ndim - 1)), 0.0, array)

    return links._replace(a=cut(links.a), e_matrix=cut(links.e_matrix), e=cut(links.e))


def _distance(pairs: Pairs, smoothed: Smoothed) -> Float[jax.Array, ""]:
    """Of the worst pair, in standard deviations; infinite where a belief or a tilted pair cannot be."""
    beliefs = side_by_side((smoothed.parent, (smoothed.mean, smoothed.covariance)))
    far = jnp.zeros(())
    for (mean, spread), (tilted, own) in zip(beliefs, (pairs[:2], pairs[2:]), strict=True):
        variance, wanted = _diagonal(spread), _diagonal(own)
        here = jnp.max(jnp.abs(tilted - mean) / jnp.sqrt(variance)), jnp.max(jnp.abs(jnp.log(wanted / variance)))
        sound = jnp.all(jnp.isfinite(cholesky(spread))) & all_finite(here)
        far = jnp.where(sound, jnp.maximum(far, jnp.maximum(*here)), jnp.inf)
    return far


def _diagonal(a: Matrices) -> Vectors:
    return jnp.moveaxis(jnp.diagonal(a, axis1=-3, axis2=-2), -1, -2)


def _between(old: LinearTransitions, new: LinearTransitions, share: Float[jax.Array, ""]) -> LinearTransitions:
    """Steps so far on the way, in natural parameters."""

    w, wa, wb, j, h = (a + share * (b - a) for a, b in zip(_naturals(old), _naturals(new), strict=True))
    q = inverse(w)
    a, b = product(q, wa), applied(q, wb)
    mixed = LinearTransitions(a, b, q, j - product(transposed(wa), a), h + applied(transposed(wa), b))
    return jax.tree.map(lambda whole, some: jnp.where(share == 1.0, whole, some), new, mixed)


def _naturals(links: LinearTransitions) -> tuple[jax.Array, ...]:
    a, b, q, e_matrix, e = links
    w = inverse(q)
    wa, wb = product(w, a), applied(w, b)
    return w, wa, wb, e_matrix + product(transposed(a), wa), e - applied(transposed(a), wb)


# the first pass -------------------------------------------------------------------------------------------------------


def _first(steps: Steps, tree: RootedTree | None, own: Known, root: Bool[jax.Array, " time"]) -> LinearTransitions:
    """Steps fitted along the chain, each to what is known of its parent from above and by messages to that."""
    size = root.shape[0]
    order = jnp.arange(size) if tree is None else tree.order
    parent = jnp.maximum(order - 1, 0) if tree is None else tree.parent
    begin = steps.first()

    def element(filtered: Pair, i: Int[jax.Array, ""]) -> tuple[Pair, LinearTransitions]:
        above = tuple(jnp.where(root[i], first, array[parent[i]]) for first, array in zip(begin, filtered, strict=True))
        link = steps.predicted((above[0], above[1]), i)
        link = link._replace(a=jnp.where(root[i], 0.0, link.a))
        child = _after(link, (above[0], above[1]), Known(own.precision[i], own.shift[i]))
        moved = tuple(array.at[i].set(new) for array, new in zip(filtered, child, strict=True))
        return (moved[0], moved[1]), link

    start = tuple(jnp.broadcast_to(array, (size, *array.shape)) for array in begin)
    _, found = jax.lax.scan(element, (start[0], start[1]), order)
    return found if tree is None else jax.tree.map(lambda array: jnp.zeros_like(array).at[order].set(array), found)


def _after(link: LinearTransitions, parent: Pair, own: Known) -> Pair:
    """An element after a linear step from its parent, with the messages to it where these leave both proper."""
    blind = down(given_parent(link, *jax.tree.map(jnp.zeros_like, own))[0], *parent)
    seen = _with_message(blind, own)
    sound = all_finite(cholesky(seen[1]))
    return jnp.where(sound, seen[0], blind[0]), jnp.where(sound, seen[1], blind[1])


def _with_message(belief: Pair, message: Known) -> Pair:
    """A belief times a message in information form."""
    (mean, covariance), (precision, shift) = belief, message
    tightened = symmetric(product(inverse(eye(mean.shape[-2]) + product(covariance, precision)), covariance))
    return mean + applied(tightened, shift - applied(precision, mean)), tightened


def _observed(node: Random, tree: RootedTree | None, scope: Scope) -> Float[jax.Array, ""]:
    """The log density of a chain that is given, expected over its parameters."""
    axes = axes_of(node, scope)
    values = jnp.asarray(value(node, scope).value, float)
    own = axes.lanes(Placed(values[..., None] if node.domain.is_real else values, node.plates))
    root = roots_of(axes, tree)
    (parent,) = parents_of(tree, (own,))
    parent = jnp.where(root[:, None, None], own, parent)
    pair = side_by_side((parent, own))
    return jnp.sum(steps_of(node, scope, root).log_density(pair[0][None], pair[1][None, None]))
