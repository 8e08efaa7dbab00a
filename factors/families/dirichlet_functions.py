"""What Beta and Dirichlet share: functions of a concentration vector on the last axis."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp

from ..arrays import Array
from ..special import digamma, trigamma
from .gamma_functions import gamma_entropy, newton, trigamma_minus_reciprocal

_NEWTON_STEPS = 28


def dirichlet_entropy(concentration: Array) -> Array:
    """The entropy as entropies of Gamma variables: no cancellation when the concentration is large."""
    total = jnp.sum(concentration, axis=-1)
    classes = concentration.shape[-1]
    return jnp.sum(gamma_entropy(concentration), axis=-1) - gamma_entropy(total) - (classes - 1) * digamma(total)


def dirichlet_fisher_solve(concentration: Array, tangent: Array) -> Array:
    """Solves (diag(trigamma(c)) - trigamma(sum c) 1 1') u = tangent by the matrix inversion lemma."""
    weight = 1.0 / trigamma(concentration)
    solved = weight * tangent
    # 1 / trigamma(total) - sum(weight), in which the large terms have been cancelled on paper.
    total = jnp.sum(concentration, axis=-1, keepdims=True)
    gap = jnp.sum(_excess(concentration), axis=-1, keepdims=True) - _excess(total)
    return solved + weight * jnp.sum(solved, axis=-1, keepdims=True) / gap


@jax.custom_jvp
@jax.jit
def solve_concentration(log: Array) -> Array:
    """The concentration with E log x = `log`, that is digamma(c_k) - digamma(sum c) = log_k, for c_k from 1e-6 to 1e6.

    Newton's iteration; source minka2000dirichlet. The guess is good for large concentrations; a small one is reached
    from it by dividing by ten, as a step may not go further down: hence the number of steps that it may take.
    """

    def step(concentration: Array) -> Array:
        found = digamma(concentration) - digamma(jnp.sum(concentration, axis=-1, keepdims=True))
        newton = concentration + dirichlet_fisher_solve(concentration, log - found)
        return jnp.maximum(newton, 0.1 * concentration)

    spread = -jnp.expm1(logsumexp(log, axis=-1, keepdims=True))
    total = 0.5 * (log.shape[-1] - 1) / spread
    return newton(step, jnp.exp(log) * total + 0.5, _NEWTON_STEPS)


@solve_concentration.defjvp
def _(primals, tangents):
    found = solve_concentration(*primals)
    return found, dirichlet_fisher_solve(found, *tangents)


def _excess(a: Array) -> Array:
    """a - 1 / trigamma(a), about 1/2 for large a."""
    return a * trigamma_minus_reciprocal(a) / trigamma(a)
