"""The inverse Gaussian factor (Wald): the time until a drifting Brownian motion first reaches a level."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from ..arrays import Argument
from ..calls import call_checked
from ..domains import positive
from ..factor import Factor, Term, register
from ..moments import Positive
from ..quadrature import HALF_LOG_2PI
from ..scalars import power_of
from ..special import TINY, log_ndtr, ndtr


def _log_density(out, mean, shape):
    far = shape * (out - mean) ** 2 / (2.0 * mean**2 * out)
    return 0.5 * jnp.log(shape) - HALF_LOG_2PI - 1.5 * jnp.log(out) - far


def _with_random(random: frozenset[str]):
    """In closed form: E 1 / x of the outcome, E 1 / m and E 1 / m^2 of its mean, each infinite at small shapes."""

    def inverse(name: str, number: Positive, power: int):
        return power_of(number, -power).mean if name in random else number.mean**-power

    def expected(out: Positive, mean: Positive, shape: Positive):
        if random.isdisjoint({"out", "mean"}):  # without cancellation
            far = (out.mean - mean.mean) ** 2 / (2.0 * mean.mean**2 * out.mean)
        else:
            across = 0.5 * out.mean * inverse("mean", mean, 2)
            far = across - inverse("mean", mean, 1) + 0.5 * inverse("out", out, 1)
        return 0.5 * shape.log - HALF_LOG_2PI - 1.5 * out.log - shape.mean * far

    return expected


def _below(x, mean, shape):
    x = jnp.maximum(x, TINY)
    root = jnp.sqrt(shape / x)
    other = jnp.exp(2.0 * shape / mean + log_ndtr(-root * (x / mean + 1.0)))
    return ndtr(root * (x / mean - 1.0)) + other


def _draw(key, mean, shape):
    return shape * jax.random.wald(key, mean / shape)  # whose shape is one


factor = register(
    Factor(
        name="inverse_gaussian",
        joined="0.6.0",
        edges={"mean": "positive", "shape": "positive"},
        out=lambda domains: positive,
        log_density=_log_density,
        expected_log=_with_random(frozenset()),
        with_random=_with_random,
        conjugate=frozenset({"shape"}),
        conditional={
            "mean": lambda mean, shape: mean,
            "variance": lambda mean, shape: mean**3 / shape,
            "below": _below,
            "draw": _draw,
        },
        divides={"mean": 2, "out": 1},
        source="johnson1994continuous",
    )
)


@call_checked
def inverse_gaussian(mean: Argument, shape: Argument) -> Term:
    """An inverse Gaussian (Wald) variable: sqrt(shape / (2 pi x^3)) exp(-shape (x - mean)^2 / (2 mean^2 x)) for x > 0.

    `mean` > 0 and `shape` > 0: numbers, inputs, positive variables or expressions, such as `mean=cv.exp(s)` in a
    regression. The variance is mean^3 / shape; a Gamma prior of the shape is conjugate. Returns a term for
    `Model.random`, which raises ModelError for numbers outside these domains; as data they are a DataError. Source:
    johnson1994continuous.
    """
    return Term(factor, {"mean": mean, "shape": shape})
