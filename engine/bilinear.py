"""Inner products of two random vectors under Gaussian noise, summed over plates without a matrix for every pair.

The sum over rows and columns of tau E(y - w.x)^2 is a contraction of the factors' own arrays: E[w w'] is summed over
its plate before it meets E[x x']. What is left per pair is one matrix product with the data. It is the same energy as
the general rule, in another order of summation.
"""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp

from ..compiler.expressions import Apply, Random, unnamed
from ..compiler.graph import Block, Graph
from ..factors.quadrature import HALF_LOG_2PI
from .evaluate import Scope, known, moments
from .placed import Placed


def inner_product(block: Block) -> tuple[Random, Random] | None:
    """The two vectors of a Gaussian block whose mean is nothing but their inner product."""
    if block.kind != "energy" or block.factor.name != "gaussian" or block.gates:
        return None
    mean = unnamed(block.args["mean"])
    if isinstance(mean, Apply) and mean.op == "dot":
        left, right = mean.args
        if isinstance(left, Random) and isinstance(right, Random) and left is not right:
            return left, right
    return None


def bilinear_energy(block: Block, scope: Scope) -> Any | None:
    """The block's energy where the pattern applies and no entry is missing, else None."""
    pair = inner_product(block)
    if (
        pair is None
        or any(known(vector, scope) for vector in pair)
        or block.where
        or f"{block.out.name} present" in scope.data
    ):
        return None
    left, right = (moments(vector, scope, "vector") for vector in pair)
    out, tau = moments(block.out, scope), moments(block.args["precision"], scope, "positive")
    letters = {plate: chr(ord("a") + i) for i, plate in enumerate(block.plates)}

    def total(*operands: tuple[Any, tuple, str]) -> Any:
        spec = ",".join("".join(letters[plate] for plate in plates) + event for _, plates, event in operands)
        seen = set().union(*(plates for _, plates, _ in operands))
        repeats = math.prod(scope.sizes[plate.name] for plate in block.plates if plate not in seen)
        return repeats * jnp.einsum(spec + "->", *(array for array, _, _ in operands), optimize="optimal")

    weight = (tau.value.mean, tau.plates, "")
    square = (out.value.mean**2 + out.value.variance, out.plates, "")
    cross = total(
        weight,
        (out.value.mean, out.plates, ""),
        (left.value.mean, left.plates, "i"),
        (right.value.mean, right.plates, "i"),
    )
    seconds = total(weight, (_second(left), left.plates, "ij"), (_second(right), right.plates, "ij"))
    constant = total((0.5 * tau.value.log - HALF_LOG_2PI, tau.plates, ""))
    return constant - 0.5 * (total(weight, square) - 2.0 * cross + seconds)


def _second(vector: Placed) -> Any:
    mean = vector.value.mean
    return vector.value.covariance + mean[..., :, None] * mean[..., None, :]


def shared_precision(graph: Graph) -> frozenset[str]:
    """Vector variables whose precision is the same for all elements, so that one inverse serves them all."""
    found = set()
    for name, variable in graph.latent.items():
        mine = [block for block in graph.blocks if name in block.latent]
        if (
            variable.domain.kind == "vector"
            and variable.plates
            and name not in graph.partly
            and all(_plain(block, variable, graph) for block in mine)
        ):
            found.add(name)
    return frozenset(found)


def _plain(block: Block, variable: Any, graph: Graph) -> bool:
    """A block whose message to the variable has a precision without plates."""
    if block.out is variable and block.constant:
        return variable.name not in graph.given and not block.args["precision"].plates
    pair = inner_product(block)
    if pair is None or variable not in set(pair) or block.where or block.out.name in graph.missing:
        return False
    return not set(block.args["precision"].plates) & set(variable.plates)
