"""The spike-and-slab factor: zero with probability 1 - `probability`, else N(out; 0, 1/precision)."""

from __future__ import annotations

import jax.numpy as jnp

from ..arrays import Argument
from ..domains import sparse
from ..factor import Factor, Term, register, told_with_name
from ..families import Beta, SpikeAndSlab
from ..moments import Positive, Sparse, Unit
from ..quadrature import HALF_LOG_2PI
from ..quadrature.predictive import unit_mean
from ..roles import Spike
from .gaussian import given_precision

# A probability of exactly zero or one, such as that of a mask: log odds that no data overrule, but finite.
_NEVER = -1e12


def _log_density(out, probability, precision):
    slab = jnp.log(probability) + 0.5 * jnp.log(precision) - HALF_LOG_2PI - 0.5 * precision * out**2
    return jnp.where(out == 0.0, jnp.log1p(-probability), slab)


def _expected_log(out: Sparse, probability: Unit, precision: Positive):
    p = out.probability
    active, idle = jnp.maximum(probability.log, _NEVER), jnp.maximum(probability.log_complement, _NEVER)
    slab = active + 0.5 * precision.log - HALF_LOG_2PI
    return p * slab + (1.0 - p) * idle - 0.5 * precision.mean * (out.mean**2 + out.variance)


def _predict(probability: Unit, precision: Positive) -> SpikeAndSlab:
    # exp of minus the mean logarithm is exact for a known precision; E[1/precision] need not exist.
    zero, variance = jnp.zeros_like(precision.log), jnp.exp(-precision.log)
    return SpikeAndSlab.from_parameters(probability=unit_mean(probability), slab_mean=zero, slab_variance=variance)


factor = register(
    Factor(
        name="spike_and_slab",
        edges={"probability": "unit", "precision": "positive"},
        out=lambda domains: sparse,
        log_density=_log_density,
        expected_log=_expected_log,
        predict=_predict,
        conjugate=frozenset({"out", "probability", "precision"}),
        keeps={"probability": Beta},
        role=Spike(),
        source="titsias2011spike",
    )
)


@told_with_name
def spike_and_slab(
    probability: Argument, *, variance: Argument = None, precision: Argument = None, sd: Argument = None
) -> Term:
    """A number that is exactly zero unless it is active: (1 - probability) delta_0(x) + probability N(x; 0, variance).

    `probability` in [0, 1] of being active, of which 0 and 1 are a mask: a number, an array, an input or a variable,
    such as a `beta`; give exactly one of `variance`, `precision` = 1 / variance and `sd`, as for `gaussian`. Conjugate
    under VMP to Beta probabilities, Gamma precisions and Gaussian likelihoods: the belief keeps the zero, and its
    `probability` is that of being active. Returns a term for `Model.random`, which raises ModelError when none or
    several of the three are given. Source: titsias2011spike.
    """
    given = given_precision("spike_and_slab", variance, precision, sd)
    return Term(factor, {"probability": probability, "precision": given})
