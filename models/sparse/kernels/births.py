"""Births and deaths: the factors that a row has alone are replaced by others, with their values of X integrated out.

Given the factors that rows share, the number kappa that a row has alone is Poisson(rate) under the Indian buffet
process, independently of other rows, with slab loadings g; the data of the row then are Gaussian with covariance
1 / noise + g^T g, the same for every sample. A move proposes another kappa with loadings from their prior.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from scipy.special import gammaln

from ..state import Numbers, Switches
from .bits import normals, uniforms
from .hyper import Hyper


class Proposals(NamedTuple):
    """The laws of a row's number of own factors, 0 ... most.

    Attributes:
        cumulative: (most + 1,) of the proposal, which ends at 1.
        log_weight: (most + 1,) log of prior over proposal, up to a constant.
    """

    cumulative: Any
    log_weight: Any


class Born(NamedTuple):
    """What rows propose. Places beyond a row's proposed number hold zeros.

    Attributes:
        number: (rows,) kappa*.
        loading: (most, rows).
    """

    number: Any
    loading: Any


def proposals(rate: Any, numbers: Numbers, switches: Switches) -> Proposals:
    """(1 - spike) Poisson(multiplier rate) + spike [one], restricted to 0 ... most, beside the prior Poisson(rate)."""
    kappa = np.arange(switches.most + 1.0)
    log_factorial = gammaln(kappa + 1.0)
    log_prior = kappa * jnp.log(rate) - log_factorial
    wide = numbers.multiplier * rate
    poisson = jnp.exp(kappa * jnp.log(wide) - wide - log_factorial)
    weight = (1.0 - numbers.spike) * poisson + (kappa == 1.0) * numbers.spike
    cumulative = (np.tri(switches.most + 1) * weight).sum(1)
    return Proposals(cumulative / cumulative[-1], log_prior - jnp.log(weight))


def propose(seed: Any, rows: Any, law: Proposals, hyper: Hyper) -> Born:
    """Numbers of own factors and their loadings, from the proposal and from the prior.

    Args:
        seed: (2,) from `bits.seed_of`.
        rows: (R,) which rows; draws belong to their place in this list.
        law: from `proposals`.
        hyper: its precisions and elements of factors that may be born, (most, R).
    """
    most, several = hyper.born_precision.shape
    index = jnp.arange(several)
    number = (uniforms(seed, "birth", 0, index)[:, None] > law.cumulative[:-1]).sum(1)
    place = jnp.arange(most)[:, None]
    size = normals(seed, "born loading", place, index) / jnp.sqrt(hyper.born_precision * hyper.born_element)
    return Born(number, jnp.where(place < number, size, 0.0))


def log_evidence(square: Any, energy: Any, noise: Any, samples: int) -> Any:
    """Log density of a row's data with own factors over that without them, those factors integrated out.

    `-N/2 log(1 + noise s) + noise^2 s e / (2 (1 + noise s))`.

    Args:
        square: s, sum of the squared loadings of the own factors.
        energy: e, sum of squared residuals without any of them.
        noise: the row's noise precision.
        samples: N.
    """
    gain = noise * square
    return -0.5 * samples * jnp.log1p(gain) + 0.5 * noise * gain * energy / (1.0 + gain)


def accepted(uniform: Any, law: Proposals, number: Any, evidence: Any) -> Any:
    """(R,) whether rows change their own factors.

    A row that has more of them than can be proposed stays as it is: no move would lead back.

    Args:
        uniform: (R,) random numbers in (0, 1).
        law: from `proposals`.
        number: (2, R) of own factors: now, and proposed.
        evidence: (2, R) from `log_evidence`: now, and proposed.
    """
    most = law.log_weight.shape[0] - 1
    worth = evidence + law.log_weight[jnp.minimum(number, most)]
    return (jnp.log(uniform) < worth[1] - worth[0]) & (number[0] <= most)
