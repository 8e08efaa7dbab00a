"""The double loop: EP's fixed points as a maximum over beliefs of minima over messages, each of which can be searched.

Let beta be the naturals of the beliefs, theta0 what beliefs are without messages, lambda_i the messages, and G_i(c) the
log of the integral of f_i exp(c . t). Then

    D(lambda, beta) = A(theta0 + sum_i lambda_i) + sum_i (G_i(beta - lambda_i) - A(beta))

is convex in all messages together. At its minimum, the inner problem, every tilted distribution has the moments of the
belief theta = theta0 + sum_i lambda_i. To go from beta to theta raises the minimum, and where both are the same that is
a fixed point of EP. Under power EP the cavity is beta - power * lambda_i and the term is divided by the power. Source:
heskes2002double, hasenclever2017snep.

Alone that step goes a share of the way that falls with the number of factors. So it is the preconditioner of conjugate
gradients in the outer problem; in the inner one that is, for each message, the Fisher information of its own factor:
the step is the naturals of the tilted moments less those of the belief's.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Bool, Float, Int

from ...factors.arrays import Array
from ..blocks.kinds import KINDS
from ..support.descent import Look, descend, nowhere
from ..values.first_beliefs import family_of
from ..values.naturals import Fixed, Naturals
from ..values.scope import Scope
from .bound_plan import BoundPlan, Messages

OUTER, INNER = 10, 100  # steps in one sweep, and for each
SHARE = 1e-4  # of the gap of the outer problem to which an inner one is solved
EXACT = 1e-9  # standard deviations that are no distance
HALVINGS = 40

Vector = Float[jax.Array, " message"]


class Solved(NamedTuple):
    """Messages after some outer steps, what beliefs are without any, the cavities floored, and how far is left."""

    messages: Messages
    own: Naturals
    floored: dict[str, Int[Array, ""]]
    left: Float[Array, ""]


class _Problem:
    """D, by functions of messages as a vector and of beliefs."""

    def __init__(self, plan: BoundPlan, fixed: Fixed, scope: Scope, beliefs: Naturals, messages: Messages) -> None:
        self.plan, self.fixed, self.scope = plan, fixed, scope
        self.own = plan.with_messages(fixed, jax.tree.map(jnp.negative, messages), beliefs)
        self.start, self.unravel = ravel_pytree(messages)

    def beliefs(self, x: Vector) -> Naturals:
        """theta, of the variables with messages."""
        found = self.plan.with_messages(self.fixed, self.unravel(x), self.own)
        return {name: found[name] for name in sorted(self.plan.with_ep)}

    def sums(self, x: Vector) -> Float[Array, ""]:
        """A(theta)."""
        latent = self.plan.graph.latent
        families = (family_of(latent[name]).from_naturals(own) for name, own in self.beliefs(x).items())
        return sum((jnp.sum(family.log_partition()) for family in families), jnp.zeros(()))

    def factors(self, x: Vector, beliefs: Naturals) -> Float[Array, ""]:
        """The sum of G_i(beta - lambda_i) - A(beta)."""
        each = self.unravel(x)
        parts = (
            KINDS[type(block)].evidence(
                block, self.fixed.prepared[number], self.plan.flat(block, beliefs), each[number], self.scope
            )
            for number, block in self.plan.ep_blocks.items()
        )
        return sum(parts, jnp.zeros(()))

    def floored(self, x: Vector, beliefs: Naturals) -> dict[str, Int[Array, ""]]:
        """How many cavities are no distributions, by block."""
        each, still = self.unravel(x), jnp.zeros(())

        def count(number: str) -> Int[Array, ""]:
            block, flat = self.plan.ep_blocks[number], self.plan.flat(self.plan.ep_blocks[number], beliefs)
            kind, prepared = KINDS[type(block)], self.fixed.prepared[number]
            if kind.improper is not None:
                return kind.improper(block, prepared, flat, each[number], self.scope)
            return kind.update(block, prepared, flat, each[number], still, self.scope)[2]

        return {number: count(number) for number in self.plan.ep_blocks}

    def inside(self, x: Vector, beliefs: Naturals) -> Bool[Array, ""]:
        """Whether all cavities and beliefs are distributions."""
        whole = sum(self.floored(x, beliefs).values(), jnp.zeros((), int)) == 0
        return whole & self.plan.all_proper(beliefs, sorted(self.plan.with_ep))

    def naturals(self, stats: Vector) -> Vector:
        """Natural parameters, in the form of messages, of the members with these statistics."""
        each = self.unravel(stats)
        blocks = self.plan.ep_blocks.items()
        return ravel_pytree({n: KINDS[type(block)].naturals_of(block, each[n]) for n, block in blocks})[0]

    def of_messages(self, x: Vector, beliefs: Naturals) -> Look:
        """The inner problem at some messages."""
        whole, of_beliefs = jax.value_and_grad(self.sums)(x)
        part, of_factors = jax.value_and_grad(self.factors)(x, beliefs)
        step = self.naturals(-of_factors) - self.naturals(of_beliefs)
        gradient = of_beliefs + of_factors
        usable = jnp.isfinite(step) & jnp.isfinite(gradient)  # rows that do not count have no moments
        gradient, step = (jnp.where(usable, own, 0.0) for own in (gradient, step))
        return Look(whole + part, gradient, step, self.inside(x, beliefs))

    def solved(self, x: Vector, beliefs: Naturals, enough: Float[Array, ""]) -> tuple[Vector, Look]:
        """The messages at which D is least, begun at `x`, or at a share of it that leaves proper cavities."""
        x = self._shortened(x, beliefs)
        return descend(lambda x, _: self.of_messages(x, beliefs), x, nowhere(x), enough, INNER)

    def _shortened(self, x: Vector, beliefs: Naturals) -> Vector:
        """The messages, or half of them, or a quarter: without any, each cavity is a belief."""

        def outside(carry: tuple[Vector, Int[Array, ""]]) -> Bool[Array, ""]:
            return ~self.inside(carry[0], beliefs) & (carry[1] < HALVINGS)

        return jax.lax.while_loop(outside, lambda carry: (0.5 * carry[0], carry[1] + 1), (x, jnp.zeros((), int)))[0]


def solve(plan: BoundPlan, fixed: Fixed, scope: Scope, beliefs: Naturals, messages: Messages) -> Solved:
    """Some outer steps from beliefs with these messages."""
    problem = _Problem(plan, fixed, scope, beliefs, messages)
    beta, unravel = ravel_pytree({name: beliefs[name] for name in sorted(plan.with_ep)})

    def look(beta: Float[jax.Array, " natural"], x: Vector, gap: Float[Array, ""]) -> Look:
        here = {**beliefs, **unravel(beta)}
        proper = plan.all_proper(here, sorted(plan.with_ep))
        safe = jax.tree.map(lambda new, old: jnp.where(proper, new, old), here, dict(beliefs))
        x, inner = problem.solved(x, safe, jnp.maximum(SHARE * gap, EXACT**2))
        gradient = ravel_pytree(jax.grad(lambda own: problem.factors(x, {**safe, **own}))(unravel(beta)))[0]
        step = ravel_pytree(problem.beliefs(x))[0] - beta
        return Look(-inner.value, -gradient, step, proper & inner.inside, (x, inner.gap))

    def next_to(beta: Float[jax.Array, " natural"], near: Look) -> Look:
        return look(beta, near.found[0], near.gap)

    begun = nowhere(beta, (problem.start, jnp.zeros(())))
    beta, last = descend(next_to, beta, begun, jnp.asarray(EXACT**2), OUTER)
    x, gap = last.found
    left = jnp.where(last.inside, jnp.sqrt(jnp.maximum(jnp.maximum(last.gap, gap), 0.0)), jnp.inf)
    return Solved(problem.unravel(x), problem.own, problem.floored(x, {**beliefs, **unravel(beta)}), left)
