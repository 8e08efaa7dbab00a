"""The flat factor: the improper prior of density one, where the data alone are to decide."""

from __future__ import annotations

from typing import NoReturn

import jax.numpy as jnp

from ..arrays import Array
from ..domains import Domain, positive, real
from ..errors import ModelError, UnsupportedError
from ..factor import Factor, Term, register, told_with_name
from ..numbers import brief


def _none(*args: Array, **arguments: Array) -> NoReturn:
    raise UnsupportedError(
        "A flat prior is no distribution: it has no mean, no draws and no prediction before there are data. Give a "
        "proper prior, such as cv.gaussian(0.0, sd=10.0) or cv.half_normal(10.0), or observe what depends on it."
    )


def _flat(name: str, domain: Domain) -> Factor:
    return register(
        Factor(
            name=name,
            joined="0.6.0",
            edges={},
            out=lambda domains: domain,
            log_density=lambda out: jnp.zeros_like(jnp.asarray(out, float)),
            expected_log=lambda out: jnp.zeros_like(out.mean),
            predict=_none,
            conjugate=frozenset({"out"}),
            conditional={"mean": _none, "variance": _none, "below": _none, "draw": _none},
            improper=True,
            source="gelman2006prior",
        )
    )


_BY_DOMAIN = {domain: _flat(name, domain) for name, domain in (("flat", real), ("flat_positive", positive))}


@told_with_name
def flat(domain: Domain = real) -> Term:
    """An improper variable: density 1 at every real number, or with `cv.flat(cv.positive)` at every positive one.

    `domain` is cv.real or cv.positive. The posterior is the normalised likelihood; a posterior that the data leave
    improper, or of which next to nothing is known, is an UnsupportedError that names the variable. The log evidence is
    that of the density 1, so compare it among models with the same flat variables alone. Returns a term for
    `Model.random`, which raises ModelError for any other domain. Source: gelman2006prior.
    """
    factor = _BY_DOMAIN.get(domain) if isinstance(domain, Domain) else None
    if factor is None:
        raise ModelError(
            f"flat(): there are flat priors on cv.real and on cv.positive; found {brief(domain)}. For a vector declare "
            "a real variable on a plate and read it as cv.stack(x, over=plate); uniform on (0, 1) is cv.beta(1, 1)."
        )
    return Term(factor, {})
