"""Beliefs: where they start, and how symmetries among them are broken."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jaxtyping import PyTree

from ...compiler.blocks.base import Block
from ...compiler.blocks.energy import EnergyBlock
from ...compiler.graph import Plan
from ...compiler.language.nodes import Apply, Expr, Let, Random, parents
from ...factors.arrays import Key, Numeric
from ...factors.families import FOR_DOMAIN, DiscreteFamily, DivisorFamily, ExponentialFamily, GaussianFamily
from ...factors.families.base import Moments
from ...factors.moments import Boolean, Category, Count, Real, Sparse, Vector
from .naturals import Parts, add, spread
from .scope import Scope

SINGULAR = 1e-8  # a share of the precision of each coordinate without which a proper belief is still one


def family_of(variable: Random | Let) -> type[ExponentialFamily]:
    """The family that a variable's belief belongs to."""
    return FOR_DOMAIN[variable.domain.kind]


def discrete_family_of(variable: Random | Let) -> type[DiscreteFamily]:
    """The same of a variable that has states."""
    family = family_of(variable)
    assert issubclass(family, DiscreteFamily)
    return family


def shape_of(variable: Random | Let, scope: Scope) -> tuple[int, ...]:
    """The sizes of a variable's plates."""
    return tuple(scope.sizes[plate.name] for plate in variable.plates)


def event_size(variable: Random | Let, scope: Scope) -> int | None:
    """Number of classes or dimension, if the domain has one."""
    return None if variable.domain.size is None else scope.size(variable.domain.size)


def uniform(variable: Random | Let, scope: Scope) -> Parts:
    """Zero naturals."""
    return family_of(variable).uniform(shape_of(variable, scope), event_size(variable, scope)).naturals()


def anchor(variable: Random | Let, scope: Scope) -> Parts:
    """The naturals of a proper belief for the given entries of a variable, which nothing moves or reads."""
    return family_of(variable).anchor(event_size(variable, scope)).over(shape_of(variable, scope)).naturals()


def proper(variable: Random | Let, naturals: Parts, scope: Scope) -> Parts:
    """A start for a number: these naturals, and where they are improper (a log-normal prior far from one) an anchor.

    Without a start that has moments no sweep has any. What is told of a vector through a projection is improper but for
    rounding: the anchor is added to it.
    """
    if variable.domain.kind == "vector":
        shift, half = naturals
        less = half * (1.0 - SINGULAR * jnp.eye(half.shape[-1], dtype=half.dtype))
        missing = 1.0 - family_of(variable).from_naturals((shift, less)).is_proper()
        return add(naturals, tuple(spread(missing, a) * a for a in anchor(variable, scope)))
    if variable.domain.kind not in ("real", "sparse", "positive", "unit"):
        return naturals
    sound = family_of(variable).from_naturals(naturals).is_proper()
    return tuple(jnp.where(sound, a, b) for a, b in zip(naturals, anchor(variable, scope), strict=True))


def sharpened(variable: Random | Let, naturals: Parts, times: Numeric) -> Parts:
    """A belief of the same mean and so many times the precision; that of a probability or a state as it is."""
    return family_of(variable).from_naturals(naturals).sharpened(times).naturals()


def on_side(variable: Random | Let, naturals: Parts, sign: Numeric) -> Parts:
    """A Gaussian belief on the side of its mean (1) or on the other (-1), at least one standard deviation from zero."""
    belief = family_of(variable).from_naturals(naturals)
    assert isinstance(belief, GaussianFamily)
    mean = belief.mean()
    size = jnp.maximum(jnp.abs(mean), jnp.sqrt(belief.variance()))
    return belief.moved(jnp.where(mean < 0.0, -1.0, 1.0) * sign * size).naturals()


def scattered(selector: Random | Let, moments: Boolean | Category, key: Key) -> Boolean | Category:
    """Moments of a selector far from those given: log odds move by some units, in part together.

    A mixture's fraction is an unknown that its instances share: it should differ between starts too.
    """
    states, plates = moments.probability, len(selector.plates)
    shared = jax.random.fold_in(key, 1), (1,) * plates + jnp.shape(states)[plates:]
    noise = 3.0 * (jax.random.logistic(key, jnp.shape(states)) + jax.random.logistic(*shared))
    logs = jnp.log(jnp.clip(states, 1e-6, 1.0))
    if isinstance(moments, Boolean):
        return Boolean(jax.nn.sigmoid(logs - jnp.log(jnp.clip(1.0 - states, 1e-6, 1.0)) + noise))
    return Category(jax.nn.softmax(logs + noise, axis=-1))


def divisors(graph: Plan) -> dict[str, int]:
    """Positive variables whose 1 / x^n a factor reads the moments of, as VMP does, with the largest n."""
    found: dict[str, int] = {}
    for block in graph.blocks:
        if block.constant or not (isinstance(block, EnergyBlock) or block.parameters):
            continue
        stack = _powers(block)
        while stack:
            node, n = stack.pop()
            if isinstance(node, Random):
                if node.domain.is_positive and n < 0 and node.name in graph.latent:
                    found[node.name] = max(found.get(node.name, 0), -n)
                continue
            if isinstance(node, Apply) and node.op == "divide":
                stack += [(node.args[0], n), (node.args[1], -n)]
            elif isinstance(node, Apply) and node.op == "power":
                stack.append((node.args[0], n * node.option("exponent")))
            elif isinstance(node, Apply) and node.op == "inverse":
                stack += [(child, -2 * n) for child in parents(node)]
            else:
                stack += [(child, n) for child in parents(node)]
    return found


def _powers(block: Block) -> list[tuple[Expr, int]]:
    """The arguments of a block with the powers in which they enter: a factor says what it divides by."""
    if not isinstance(block, EnergyBlock):
        return [(arg, 1) for arg in block.arguments]
    divides = block.factor.divides
    return [(arg, -divides.get(edge, -1)) for edge, arg in block.args.items()]


def divisible(variable: Random | Let, naturals: Parts, n: int) -> Parts:
    """A belief of this mean about a positive number, from which 1 / x^n has a mean and a variance."""
    belief = family_of(variable).from_naturals(naturals)
    assert isinstance(belief, DivisorFamily)
    return belief.divisible(n).naturals()


def first_moments(variable: Random | Let, scope: Scope) -> Moments:
    """Moments of the right shape before there is a belief: what a gradient starts from that may not depend on them."""
    found = family_of(variable).first_moments(event_size(variable, scope))
    shape = shape_of(variable, scope)
    return jax.tree.map(lambda moment: jnp.broadcast_to(moment, (*shape, *moment.shape)), found)


def jittered(variable: Random | Let, naturals: Parts, key: Key) -> Parts:
    """A Gaussian with its mean moved to a random draw of itself, as likely zero as not where it may be zero."""
    belief = family_of(variable).from_naturals(naturals)
    assert isinstance(belief, GaussianFamily)
    return belief.jittered(key).naturals()


def seeds(selector: Random, scope: Scope, key: Key, data: PyTree = None) -> Boolean | Category:
    """Moments of a selector that give each case one random instance of its own and nothing else.

    The first update of the components from these is their posterior given a single point each: a start that is spread
    like the data. `data` holds the labels of a selector that is partly observed: a case with labels needs no seed.
    """
    shape, k = shape_of(selector, scope), event_size(selector, scope)
    if k is None:
        return Boolean(jax.random.uniform(key, shape))
    instances = math.prod(shape)
    chosen = jax.random.choice(key, instances, (k,), replace=instances < k)
    found = jnp.zeros((instances, k)).at[chosen, jnp.arange(k)].add(1.0)
    if data is not None:  # what labels tell of a case is a better start than one more instance
        labels, given = (scope.data[node.name].reshape(-1) for node in (data.values, data.given))
        labelled = jnp.zeros(k).at[labels.astype(int)].add(jnp.asarray(given, float))
        found = jnp.where(labelled > 0.0, 0.0, found)
    return Category(found.reshape((*shape, k)))


def first_element(naturals: Parts, plates: int) -> Parts:
    """The naturals of the first element."""
    return tuple(n[(0,) * plates] for n in naturals)


def stats_from_moments(moments: Moments) -> Parts:
    """Expected statistics from moments: the same numbers, but for Gaussians, which keep variances, and counts."""
    if isinstance(moments, Real):
        return moments.mean, moments.mean**2 + moments.variance
    if isinstance(moments, Sparse):
        return moments.probability, moments.mean, moments.mean**2 + moments.variance
    if isinstance(moments, Vector):
        return moments.mean, moments.covariance + moments.mean[..., :, None] * moments.mean[..., None, :]
    if isinstance(moments, Count):  # 1 / x! is the base measure, and E log x! no statistic
        return (moments.mean,)
    return tuple(moments)
