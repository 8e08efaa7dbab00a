"""Chains and trees of Gaussian numbers, integrated out of a log density by messages from the last element to the first.

What sees such a chain sees one element at a time, as the mean of a Gaussian. So what tells of it is a quadratic form,
whose derivatives at zero are the messages from below, and the integral is one sweep towards the roots. Its derivatives
in the parameters of steps and of noise go the way back. Source: rauch1965smoothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp

from ...compiler.algebra.degree import degree_in
from ...compiler.language.nodes import Expr, Random, inside
from ...compiler.rules.chain import is_curved
from ...factors.arrays import Array
from ...factors.errors import ModelError, UnsupportedError
from ...factors.factor import Chain, Term
from ...factors.roles import LinearGaussian
from ..blocks.chain import gaussian_chain, trees
from ..blocks.chain.chains import roots_of, tree_of
from ..blocks.chain.transitions import axes_of, gaussians
from ..values.plated import Placed
from ..values.scope import Scope
from .order import gathers_of
from .sum_out import eliminate
from .tables import Factor, InstanceDensity, Read


class IntegratedChain(NamedTuple):
    """A chain or a tree that is integrated out, and how the factors that tell of it read its elements."""

    node: Random
    reads: tuple[Read, ...]

    @property
    def factors(self) -> tuple[str, ...]:
        """The factors that the integral stands for."""
        return (self.node.name, *(read.name for read in self.reads))


def integrated_chain(
    name: str, variables: Mapping[str, Random], factors: Mapping[str, Factor], data: Collection[str]
) -> IntegratedChain:
    """The chain called `name` with all that reads it.

    ModelError for what is no latent variable, UnsupportedError for what messages do not integrate exactly.
    """
    if name not in variables:
        there = ", ".join(variables) or "(none)"
        raise ModelError(f"integrate= names '{name}', which is no latent continuous variable. There are: {there}.")
    node = variables[name]
    if not isinstance(node.term, Chain) or not node.domain.is_real or is_curved(node):
        raise UnsupportedError(
            f"integrate= names '{name}', which is no chain or tree of numbers with linear Gaussian steps: only these "
            "are integrated out by messages. cv.sample(..., collapse=[...]) integrates other Gaussian variables."
        )
    readers = {other: factor for other, factor in factors.items() if other != name and _holds(factor.roots, node)}
    reads = []
    for other, factor in readers.items():
        gathers = gathers_of(other, factor.roots, {name}, set(data))
        reads.append(Read(other, factor.plates, {name: gathers[name]}))
    return IntegratedChain(node, tuple(reads))


def check_readers(chain: IntegratedChain, randoms: Mapping[str, Random]) -> None:
    """UnsupportedError where a factor is not Gaussian about a mean that is linear in the chain."""
    for read in chain.reads:
        gather = read.gathers[chain.node.name]
        if read.name not in randoms or not _is_linear(
            randoms[read.name].term, chain.node if gather is None else gather
        ):
            raise UnsupportedError(
                f"integrate= names '{chain.node.name}', of which '{read.name}' tells otherwise than as a Gaussian "
                "about a mean that is linear in it. Leave it among the variables, or put a Gaussian variable between."
            )


def _is_linear(term: object, seen: Expr) -> bool:
    """Whether a term is a Gaussian about a mean that is linear in what it sees, and sees it nowhere else."""
    if not isinstance(term, Term) or not isinstance(term.factor.role, LinearGaussian):
        return False
    return all(degree_in(arg, seen) == int(edge == term.factor.role.mean) for edge, arg in term.args.items())


def _holds(roots: tuple[Expr, ...], node: Random) -> bool:
    return any(other is node for other in inside(roots))


def log_integral(chain: IntegratedChain, table: Callable[[str, Scope], Placed], scope: Scope) -> Array:
    """log of the integral over the chain of its own density and of the factors that read it, given all else."""
    node = chain.node

    def told(x: Array) -> Array:
        at = scope.with_data({node.name: x})
        return eliminate([InstanceDensity(Read(r.name, r.plates, {}), table(r.name, at)) for r in chain.reads], (), at)

    origin = jnp.zeros(tuple(scope.sizes[plate.name] for plate in node.plates))
    height = told(origin)
    shift, turn = jax.jvp(jax.grad(told), (origin,), (jnp.ones_like(origin),))  # each instance reads one element
    axes, tree = axes_of(node, scope), tree_of(node, scope)
    own_shift = axes.lanes(Placed(shift[..., None], node.plates))
    own_precision = axes.lanes(Placed(-turn[..., None, None], node.plates))
    terms = gaussians(node, scope, roots_of(axes, tree))
    if tree is None:
        known = gaussian_chain.chain_messages(terms.links, own_precision, own_shift)
    else:
        known = trees.gaussian_messages(tree, terms.links, own_precision, own_shift)
    return height + jnp.sum(gaussian_chain.given_parent(terms.links, *known)[1])
