"""Products and quotients of two positive variables that are observed exactly: EP by one integral along the curve.

c = k a^p b^q with p and q one or minus one leaves one dimension. In u = log a the density is that of both cavities on
the curve, with the Jacobian |db / dc| da = (b / c) a du: exponentials with negative weights and a line, so log-concave.
The tilted means and mean logarithms of both variables are matched, as EP does.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ...compiler.blocks.whole import ProductBlock
from ...factors.arrays import Array, Key
from ...factors.families.base import ExponentialFamily
from ...factors.quadrature import bracketed_newton
from ..values.evaluate import value
from ..values.first_beliefs import family_of, uniform
from ..values.instances import count, flat
from ..values.masks import present
from ..values.naturals import Naturals
from ..values.scope import Scope
from .site.site_data import product

_T = np.linspace(-1.0, 1.0, 241) * np.arcsinh(400.0)
_NODES, _WEIGHTS = np.sinh(_T), np.cosh(_T) * (_T[1] - _T[0])
_REACH = 600.0  # of log a, where the mode is looked for


class PreparedProduct(NamedTuple):
    """log of the observed value over the coefficient by instance, the log of the value, and uniform messages."""

    level: Float[Array, " instances"]
    observed: Float[Array, " instances"]
    initial: Naturals


def prepare(block: ProductBlock, scope: Scope, key: Key, apart: bool = False) -> PreparedProduct:
    """The data by instance; there is nothing random in it."""
    coefficients, powers = block.coefficients, block.powers
    size = count(block, scope.sizes)
    observed = jnp.log(jnp.broadcast_to(flat(value(block.out, scope), block, scope), (size,)))
    scale = jnp.log(jnp.broadcast_to(flat(product(coefficients, scope), block, scope), (size,)))
    initial = {
        variable.name: tuple(part.reshape((size, *part.shape[len(variable.plates) :])) for part in naturals)
        for variable, naturals in ((variable, uniform(variable, scope)) for variable, _ in powers)
    }
    return PreparedProduct(observed - scale, observed, initial)


def solve(
    block: ProductBlock, prepared: PreparedProduct, cavities: Naturals, scope: Scope
) -> tuple[Float[Array, ""], Naturals]:
    """log Z, summed over the instances, and the naturals of the matched marginals, by instance as the cavities."""
    (first, p), (second, q) = block.powers
    families = [family_of(first), family_of(second)]
    naturals = [cavities[first.name], cavities[second.name]]

    def logs(u: Float[Array, "*nodes instances"]) -> tuple[Array, Array]:
        return u, q * (prepared.level - p * u)  # log a, log b on the curve

    def height(u: Float[Array, " instances"]) -> Float[Array, " instances"]:
        total = u + logs(u)[1] - prepared.observed
        for family, natural, log in zip(families, naturals, logs(u), strict=True):
            x = jnp.exp(log)
            total = total + sum(n * s for n, s in zip(natural, family.stats_of(x), strict=True)) + family.log_base(x)
        return total

    ones = jnp.ones_like(prepared.level)

    def slopes(u: Float[Array, " instances"]) -> tuple[Array, Array]:
        """The first and the second derivative of the height."""
        return jax.jvp(lambda x: jax.jvp(height, (x,), (ones,))[1], (u,), (ones,))

    centre = 0.5 * prepared.level
    mode = jax.lax.stop_gradient(bracketed_newton(slopes, centre - _REACH, centre + _REACH, 90))
    spread = 1.0 / jnp.sqrt(-slopes(mode)[1])
    nodes = mode + spread * jnp.asarray(_NODES)[:, None]
    weight = jax.vmap(height)(nodes) + jnp.log(jnp.asarray(_WEIGHTS))[:, None] + jnp.log(spread)
    log_z = jax.scipy.special.logsumexp(weight, axis=0)
    share = jnp.exp(weight - log_z)
    marginals = {}
    for family, variable, log in zip(families, (first, second), logs(nodes), strict=True):
        stats = tuple(jnp.sum(jnp.where(share > 0, share * s, 0.0), axis=0) for s in family.stats_of(jnp.exp(log)))
        marginals[variable.name] = family.from_stats(stats).naturals()
    if (mask := present(block, scope)) is not None:
        here = jnp.broadcast_to(flat(mask, block, scope), log_z.shape) > 0
        apart = (f.from_naturals(own).log_partition() for f, own in zip(families, naturals, strict=True))
        log_z = jnp.where(here, log_z, sum(apart, jnp.zeros(())))
        marginals = {
            name: tuple(jnp.where(here, a, b) for a, b in zip(found, cavities[name], strict=True))
            for name, found in marginals.items()
        }
    return jnp.sum(log_z), marginals


def family(block: ProductBlock, name: str) -> type[ExponentialFamily]:
    """The family of one of the two variables."""
    return family_of(next(variable for variable, _ in block.powers if variable.name == name))
