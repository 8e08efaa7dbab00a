"""EP sites of a function of a sum of Gaussian numbers, one for each; also where a second sum must be positive."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import jax.numpy as jnp
from jaxtyping import Float

from ....compiler.blocks.slots import Branch, Members
from ....factors.arrays import Array
from ....factors.factor import Site
from ....factors.links.probit import positive_site
from ..site.sites import SMALLEST_VARIANCE

ByEdge: TypeAlias = dict[int, Float[Array, "..."]]  # over instances, states and nodes
Side: TypeAlias = tuple[ByEdge, Float[Array, "..."], Float[Array, "..."]]  # coefficients by edge, mean and variance


def members(branch: Branch) -> Members:
    """The edges that a branch integrates in closed form, each once."""
    both = (*branch.members, *(branch.side.members if branch.side is not None else ()))
    return tuple(dict(both).items())


class Whole(NamedTuple):
    """The site of s = sum of coefficient * edge + noise; `factors` and `parts` are coefficients and variances by edge.

    `mean` is that of s, `variance` the noise and all parts.
    """

    factors: ByEdge
    parts: ByEdge
    noise: Float[Array, "..."]
    mean: Float[Array, "..."]
    variance: Float[Array, "..."]
    site: Site

    def edge(self, number: int) -> Site:
        """The site as an edge sees it: the noise and the other edges blur it."""
        c, site = self.factors.get(number, 0.0), self.site
        others = self.noise + sum(part for n, part in self.parts.items() if n != number)
        return Site(site.log_evidence, c * site.score, c**2 * site.curvature, site.ratio + site.curvature * others)


class Cut(NamedTuple):
    """The positivity of a second sum of the same edges, t, given s: its site, and how t moves with an edge.

    `slopes` are Cov(t, edge | s) / Var edge by edge, `mean` and `variance` those of t given s.
    """

    site: Site
    slopes: ByEdge
    mean: Float[Array, "..."]
    variance: Float[Array, "..."]


def cut_of(whole: Whole, side: Side, spreads: ByEdge) -> Cut:
    """t > 0 given s, which its Gaussian factor pins to its outcome: t is Gaussian, with

        m = E t + Cov(s, t) * score,   v = Var t - Cov(s, t)^2 / Var s.

    `side` are the coefficients, the mean and the variance of t, `spreads` the cavity variances of the edges.
    """
    factors, mean, variance = side
    shared = sum((whole.factors[n] * c * spreads[n] for n, c in factors.items() if n in whole.factors), jnp.zeros(()))
    slope = shared / whole.variance
    left = jnp.maximum(variance - shared * slope, SMALLEST_VARIANCE)
    mean, left = jnp.broadcast_arrays(mean + shared * whole.site.score, left)
    slopes: ByEdge = {n: factors.get(n, 0.0) - slope * whole.factors.get(n, 0.0) for n in spreads}
    return Cut(positive_site(jnp.ones_like(mean), mean, left), slopes, mean, left)


def confined(
    whole: Whole, side: Side, sites: dict[int, Site], spreads: ByEdge
) -> tuple[Float[Array, "..."], dict[int, Site]]:
    """The log evidence and the sites of the edges where a second sum of the same edges, t, is positive.

    `sites` and `spreads` are the edges' sites of s alone and their cavity variances; log Z = log Z_s + log Phi(m /
    sqrt(v)), with m and v as in `cut_of`.
    """
    cut = cut_of(whole, side, spreads)
    found = {}
    for number, site in sites.items():
        g = cut.slopes[number]
        explained = spreads[number] * g**2 / cut.variance  # of the edge's variance by t, at most all that s has left
        found[number] = Site(
            site.log_evidence + cut.site.log_evidence,
            site.score + g * cut.site.score,
            site.curvature + g**2 * cut.site.curvature,
            jnp.maximum(site.ratio - explained, 0.0) + explained * cut.site.ratio,
        )
    return whole.site.log_evidence + cut.site.log_evidence, found
