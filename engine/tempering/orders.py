"""The orders of components that are alike: what chains that keep to one of them lack of the evidence.

Beliefs r name the components one way, so a path from them leads to one of J! modes, or to several where components
overlap or are empty. The posterior p knows no names: with the share w(x) = r(x) / sum_s r(s x) of the named among all
orders s, the integral of p w is that of p over J!. So all densities of the path are taken times w, as draws of them are
weighted with it: log Z = log J! + log E_r w + log of the ratio of the integrals of p w and r w.

The sum over orders is a permanent, as log r(s x) is a sum over components k of what they add under the name s(k).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy.special import logsumexp

from ...compiler.language.nodes import Plate, Random, inside, parents
from ...compiler.symmetry import Choice
from ...factors.arrays import Array
from ...factors.errors import UnsupportedError
from ...factors.factor import Term
from ...factors.families.capabilities import DiscreteFamily
from ..sampling.joint import Values
from ..support.compiled import for_now
from .estimators import LogRatio, error_of_mean
from .path import INVERSE, Path

EQUAL = 1e-9  # of log densities that a change of names leaves as they are
MOST = 12  # components: the sum takes 2^J J steps

Named = Float[Array, "component name"]  # what each component adds to log r under each name


class Orders(NamedTuple):
    """What a path from beliefs knows of components that are alike.

    `components` are their names, none where there are none; `named` is what each of them adds to log r under each name,
    a function of values. It is None where that is not known, or the joint density knows the names after all, by the
    probabilities of states: then other orders are modes of other weights.
    """

    components: str = ""
    named: Callable[[Values], Named] | None = None


def orders_of(path: Path, choices: Sequence[Choice]) -> Orders:
    """Of components that these choices are between, which their priors do not tell apart."""
    if not path.beliefs or not choices:
        return Orders()
    axes = {choice.axis for choice in choices}
    own = [name for name, variable in path.variables.items() if axes & set(variable.plates)]
    components = ", ".join(own or dict.fromkeys(name for choice in choices for name in choice.components))
    axis, selectors = next(iter(axes)), [choice.selector for choice in choices]
    few = len(axes) == 1 and axis is not None and path.sizes[axis.name] <= MOST
    simple = few and all(_is_named(path.density.model.randoms, selector) for selector in selectors)
    if axis is None or not simple or not _is_symmetric(path, axis, selectors):
        return Orders(components)
    return Orders(components, lambda values: _named(path, axis, selectors, values))


def _is_named(variables: Mapping[str, Random], selector: Random) -> bool:
    if not isinstance(selector.term, Term) or not selector.domain.is_category:
        return False
    arguments = selector.term.args.values()
    random = [arg for arg in arguments if any(getattr(node, "name", None) in variables for node in inside([arg]))]
    return all(isinstance(arg, Random) and arg.domain.kind == "simplex" for arg in random)


def _is_symmetric(path: Path, axis: Plate, selectors: Sequence[Random]) -> bool:
    """Whether the joint density knows no names: tried with two of them exchanged, and with all of them moved on."""
    try:
        values = path.drawn(jax.random.key(0), path.arrays)
    except UnsupportedError:
        return False
    data, names = {**path.arrays, INVERSE: jnp.ones(())}, np.arange(path.sizes[axis.name])
    total = for_now(lambda values, data: path.total(tuple(path.factors), values, data))
    here = float(total(values, data))
    for order in (np.roll(names, 1), np.concatenate([names[1::-1], names[2:]])):
        there = float(total(_renamed(path, axis, selectors, values, order), data))
        if not abs(there - here) <= EQUAL * (1.0 + abs(here)):
            return False
    return True


def _renamed(path: Path, axis: Plate, selectors: Sequence[Random], values: Values, order: np.ndarray) -> Values:
    """The values where component k is called order[k]."""
    back, found = np.argsort(order), {}
    for name, value in values.items():
        plates = path.variables[name].plates
        if axis in plates:
            found[name] = jnp.take(value, back, axis=plates.index(axis))
        elif name in _above(selectors):
            found[name] = jnp.take(value, back, axis=-1)
        else:
            is_name = any(name == selector.name for selector in selectors)
            found[name] = jnp.asarray(order)[value] if is_name else value
    return found


def _above(selectors: Sequence[Random]) -> set[str]:
    """The simplices that have the probabilities of selectors."""
    return {node.name for selector in selectors for node in parents(selector) if isinstance(node, Random)}


class Shares(NamedTuple):
    """The shares w of draws: their weights, of mean one on each rung, and log J! + log E w, by rung, with its error."""

    weights: LogRatio
    orders: Float[np.ndarray, " rung"]
    error: float  # on the first rung


def shares_of(named: Float[np.ndarray, "sweep copy rung component name"]) -> Shares:
    """What the draws of a path say of the orders."""
    *lead, size, _ = named.shape
    log = np.trace(named, axis1=-2, axis2=-1) - log_permanent(named.reshape(-1, size, size)).reshape(lead)
    mean = np.asarray(logsumexp(log, axis=(0, 1))) - math.log(log[..., 0].size)
    weights = np.exp(log - mean)
    return Shares(weights, math.lgamma(size + 1) + mean, error_of_mean(weights[..., 0]))


def _named(path: Path, axis: Plate, selectors: Sequence[Random], values: Mapping[str, Array]) -> Named:
    size = path.sizes[axis.name]
    found = jnp.zeros((size, size))
    for name, belief in path.beliefs.items():
        value, plates = values[name], path.variables[name].plates
        if axis in plates:
            found = found + _of_elements(belief, value, plates.index(axis), size)
        elif name in _above(selectors):
            # What a Dirichlet belief says of the order of its classes is linear in the logarithms of its values.
            powers = jnp.asarray(belief.naturals()[0]).reshape((-1, size))
            found = found + jnp.log(value.reshape((-1, size))).T @ powers
        elif any(name == selector.name for selector in selectors):
            assert isinstance(belief, DiscreteFamily)
            logits = jax.nn.log_softmax(belief.logits_by_state().reshape((-1, size)), axis=-1)
            found = found + jax.nn.one_hot(value.reshape(-1), size).T @ logits
    return found


def _of_elements(belief: object, value: Array, at: int, size: int) -> Named:
    """Of a variable on the plate of the components, each of which has the density of every belief in turn."""
    found = jnp.zeros((size, size))
    names = jnp.arange(size)
    for shift in range(size):
        log_density = belief.log_density(jnp.roll(value, -shift, axis=at))  # type: ignore[attr-defined]
        by_name = jnp.moveaxis(log_density, at, -1).reshape((-1, size)).sum(0)
        found = found.at[(names + shift) % size, names].add(by_name)
    return found


def log_permanent(tables: Float[np.ndarray, "draw component name"]) -> Float[np.ndarray, " draw"]:
    """log of the sum over orders s of exp sum_k t_(k, s(k)), name by name over the sets of components that have one."""
    size = tables.shape[-1]
    sums = {0: np.zeros(len(tables))}
    for name in range(size):
        longer: dict[int, list[np.ndarray]] = {}
        for taken, log in sums.items():
            for component in range(size):
                if not taken >> component & 1:
                    longer.setdefault(taken | 1 << component, []).append(log + tables[:, component, name])
        sums = {taken: np.asarray(logsumexp(logs, axis=0)) for taken, logs in longer.items()}
    return sums[2**size - 1]
