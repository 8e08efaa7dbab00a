"""A function of a sum of Gaussian edges, seen from each edge; alone, or with a second sum confined to be positive."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp

from ..compiler.atoms import Branch, Members
from ..factors.factor import Site
from ..factors.probit import positive_site
from .sites import SMALLEST_VARIANCE


def members(branch: Branch) -> Members:
    """The edges that a branch integrates in closed form, each once."""
    both = (*branch.members, *(branch.side.members if branch.side is not None else ()))
    return tuple(dict(both).items())


class Whole(NamedTuple):
    """The site of s = sum of coefficient * edge + noise; `factors` and `parts` are coefficients and variances by edge.

    `variance` is the noise and all parts.
    """

    factors: dict[int, Any]
    parts: dict[int, Any]
    noise: Any
    variance: Any
    site: Site

    def edge(self, number: int) -> Site:
        """The site as an edge sees it: the noise and the other edges blur it."""
        c, site = self.factors.get(number, 0.0), self.site
        others = self.noise + sum(part for n, part in self.parts.items() if n != number)
        return Site(site.log_evidence, c * site.score, c**2 * site.curvature, site.ratio + site.curvature * others)


def confined(whole: Whole, side: tuple, sites: dict[int, Site], spreads: dict[int, Any]) -> tuple[Any, dict[int, Site]]:
    """The log evidence and the sites of the edges where a second sum of the same edges, t, is positive.

    `side` are the coefficients, the mean and the variance of t, `sites` and `spreads` the edges' sites of s alone and
    their cavity variances. Given s, which its Gaussian factor pins to its outcome, t is Gaussian and is truncated:

        log Z = log Z_s + log Phi(m / sqrt(v)),   m = E t + Cov(s, t) * score,   v = Var t - Cov(s, t)^2 / Var s.
    """
    factors, mean, variance = side
    shared = sum((whole.factors[n] * c * spreads[n] for n, c in factors.items() if n in whole.factors), jnp.zeros(()))
    slope = shared / whole.variance
    left = jnp.maximum(variance - shared * slope, SMALLEST_VARIANCE)
    mean, left = jnp.broadcast_arrays(mean + shared * whole.site.score, left)
    cut = positive_site(jnp.ones_like(mean), mean, left)
    found = {}
    for number, site in sites.items():
        g = factors.get(number, 0.0) - slope * whole.factors.get(number, 0.0)
        explained = spreads[number] * g**2 / left  # of the edge's variance by t, at most all that s has left
        found[number] = Site(
            site.log_evidence + cut.log_evidence,
            site.score + g * cut.score,
            site.curvature + g**2 * cut.curvature,
            jnp.maximum(site.ratio - explained, 0.0) + explained * cut.ratio,
        )
    return whole.site.log_evidence + cut.log_evidence, found
