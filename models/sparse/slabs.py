"""Sparse priors of a real number, all as Gaussians whose precision is random: `x ~ N(0, 1 / precision)`.

Each prior draws the precision from its prior and given the value, both exactly and independently of where a chain is,
so that a sampler of `x` given Gaussian data alternates with them; densities, with the precision integrated out, are in
closed form. The kernels of the samplers make the same draws of their own; these are what they are compared with.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Protocol

import jax
import numpy as np
from scipy.special import exp1, gammaln

from ...engine.mcmc.keys import generator
from ...factors.errors import DataError, ModelError
from ..buffet.checks import positive

LEAST = 1e-150  # values below have a square that is no double; at 0 a horseshoe's precision has no proper law
SERIES = 50.0  # from here on the asymptotic series of E1 is exact to rounding


class Slab(Protocol):
    """What every prior of this page can do."""

    def log_density(self, value: Any) -> np.ndarray:
        """The log density at values of any shape."""
        ...

    def sample_precision(self, key: Any, shape: Any = ()) -> np.ndarray:
        """Precisions from their prior; the value given them is Gaussian."""
        ...

    def precision_given(self, value: Any, key: Any) -> np.ndarray:
        """A draw of each value's own precision given the value."""
        ...


def sample_slab(slab: Slab, key: Any, shape: Any = ()) -> np.ndarray:
    """Values from a prior: a precision, and a Gaussian value given it.

    Args:
        slab: the prior.
        key: a key of `jax.random`.
        shape: of the answer.

    Returns:
        Values of that shape; exact zeros where the precision is infinite.
    """
    of_normal, of_precision = jax.random.split(key)
    return generator(of_normal).standard_normal(shape) / np.sqrt(slab.sample_precision(of_precision, shape))


@dataclasses.dataclass(frozen=True)
class GaussianSlab:
    """`x ~ N(0, 1 / precision)`: no sparsity. `precision` is positive, else ModelError."""

    precision: float = 1.0

    def __post_init__(self) -> None:
        _check(self, "precision")

    def log_density(self, value: Any) -> np.ndarray:
        """`log N(x; 0, 1 / precision)`."""
        x = _values(value)
        return 0.5 * (math.log(self.precision / (2.0 * math.pi)) - self.precision * _square(x))

    def sample_precision(self, key: Any, shape: Any = ()) -> np.ndarray:
        """The precision itself."""
        return np.full(shape, self.precision)

    def precision_given(self, value: Any, key: Any) -> np.ndarray:
        """The precision itself."""
        return np.full(np.shape(_values(value)), self.precision)


@dataclasses.dataclass(frozen=True)
class StudentTSlab:
    """Student's t: `precision ~ Gamma(dof / 2, rate dof scale^2 / 2)`; the Cauchy distribution at dof = 1.

    Fokoue's sparse factor analysis, `precision ~ Gamma(shape, rate)`, is `dof = 2 shape`, `scale^2 = rate / shape`.

    Args:
        dof: positive degrees of freedom; small ones put mass on the axes, and tails fall as `|x|^-(dof + 1)`.
        scale: positive.

    Raises:
        ModelError: a parameter that is not a finite number above zero.

    Source: tipping2005student.
    """

    dof: float
    scale: float = 1.0

    def __post_init__(self) -> None:
        _check(self, "dof", "scale")

    def log_density(self, value: Any) -> np.ndarray:
        """`-(a + 1) / 2 log(1 + (x / b)^2 / a)` and its constant, of dof a and scale b."""
        a, b = self.dof, self.scale
        constant = gammaln(0.5 * (a + 1.0)) - gammaln(0.5 * a) - 0.5 * math.log(a * math.pi) - math.log(b)
        return constant - 0.5 * (a + 1.0) * np.logaddexp(0.0, _log_square(_values(value) / b) - math.log(a))

    def sample_precision(self, key: Any, shape: Any = ()) -> np.ndarray:
        """`Gamma(dof / 2, rate dof scale^2 / 2)`."""
        return _gamma(0.5 * self.dof, 0.5 * self.dof * self.scale**2, shape, key)

    def precision_given(self, value: Any, key: Any) -> np.ndarray:
        """`Gamma((dof + 1) / 2, rate (dof scale^2 + x^2) / 2)`."""
        x = _values(value)
        return _gamma(0.5 * (self.dof + 1.0), 0.5 * (self.dof * self.scale**2 + _square(x)), x.shape, key)


@dataclasses.dataclass(frozen=True)
class LaplaceSlab:
    """The Laplace distribution `exp(-|x| / scale) / (2 scale)`: the variance is exponential with mean `2 scale^2`.

    Args:
        scale: positive; the standard deviation is `sqrt(2) scale`.

    Raises:
        ModelError: a scale that is not a finite number above zero.

    Source: park2008bayesian, michael1976generating.
    """

    scale: float = 1.0

    def __post_init__(self) -> None:
        _check(self, "scale")

    def log_density(self, value: Any) -> np.ndarray:
        """`-|x| / scale - log(2 scale)`."""
        return -np.abs(_values(value)) / self.scale - math.log(2.0 * self.scale)

    def sample_precision(self, key: Any, shape: Any = ()) -> np.ndarray:
        """The inverse of an exponential variable of mean `2 scale^2`."""
        return 1.0 / (2.0 * self.scale**2 * generator(key).standard_exponential(shape))

    def precision_given(self, value: Any, key: Any) -> np.ndarray:
        """Inverse Gaussian of mean `1 / (scale |x|)` and shape `1 / scale^2`; at 0 its limit, scaled 1 / chi^2."""
        x, random = np.abs(_values(value)), generator(key)
        r = self.scale * x  # one over the mean, so that 0 is no special case
        q = 0.5 * (self.scale * random.standard_normal(x.shape)) ** 2
        small = 1.0 / (r + q + np.sqrt(q * (q + 2.0 * r)))  # the smaller root of Michael, Schucany and Haas
        lower = random.random(x.shape) * (1.0 + r * small) < 1.0
        return np.where(lower, small, 1.0 / np.where(lower, 1.0, r * (r * small)))


@dataclasses.dataclass(frozen=True)
class HorseshoeSlab:
    """The horseshoe: the standard deviation `1 / sqrt(precision)` is half-Cauchy of the given scale.

    Its density is infinite at zero, where it grows as a logarithm, and its tails fall as `x^-2`.

    Args:
        scale: positive.

    Raises:
        ModelError: a scale that is not a finite number above zero.

    Source: carvalho2010horseshoe.
    """

    scale: float = 1.0

    def __post_init__(self) -> None:
        _check(self, "scale")

    def log_density(self, value: Any) -> np.ndarray:
        """`log [exp(u) E1(u) / (scale sqrt(2 pi^3))]` with `u = x^2 / (2 scale^2)`; infinite at 0."""
        log_u = _log_square(_values(value) / self.scale) - math.log(2.0)
        return _log_scaled_exp1(log_u) - math.log(self.scale) - 0.5 * math.log(2.0 * math.pi**3)

    def sample_precision(self, key: Any, shape: Any = ()) -> np.ndarray:
        """One over the square of a half-Cauchy variable."""
        angle = 0.5 * math.pi * (1.0 - generator(key).random(shape))  # in (0, pi / 2], so that the tangent is not 0
        return 1.0 / (self.scale * np.tan(angle)) ** 2

    def precision_given(self, value: Any, key: Any) -> np.ndarray:
        """Of density proportional to `exp(-precision x^2 / 2) / (1 + scale^2 precision)`, by rejection.

        In `u = b (1 + scale^2 precision)` with `b = x^2 / (2 scale^2)` that is `exp(-u) / u` beyond b. From 1 on
        proposals are exponential, below 1 uniform in log u; at least half of them are accepted. A value below 1e-150
        counts as that: at 0 there is no law to draw from.
        """
        y, random = np.clip(np.abs(_values(value)) / self.scale, LEAST, 1.0 / LEAST), generator(key)
        b = 0.5 * y * y
        start, log_b = np.maximum(b, 1.0), np.minimum(np.log(b), 0.0)
        near = -log_b / (math.exp(-1.0) - log_b)  # the share of proposals in (b, 1)
        excess = np.empty(b.shape)  # u / b - 1
        waiting = np.ones(b.shape, dtype=bool)
        while waiting.any():
            below = random.random(b.shape) < near
            step = random.random(b.shape) * log_b
            far = start - b + random.standard_exponential(b.shape)
            over = np.where(below, b * np.expm1(step - log_b), far)  # u - b, kept apart: b may be large
            accept = np.where(below, np.exp(-(b + over)), start / (b + over))
            good = waiting & (random.random(b.shape) < accept)
            excess = np.where(good, over / b, excess)
            waiting &= ~good
        return excess / self.scale**2


@dataclasses.dataclass(frozen=True)
class SpikeAndSlab:
    """Zero with probability `1 - probability`, else from a slab: as a Gaussian, one of infinite precision at zero.

    Args:
        probability: of the slab, in [0, 1].
        slab: any other prior of this page.

    Raises:
        ModelError: a probability outside [0, 1], or a slab that is none.
    """

    probability: float
    slab: Slab = dataclasses.field(default_factory=GaussianSlab)

    def __post_init__(self) -> None:
        if not isinstance(self.probability, (int, float, np.number)) or not 0.0 <= self.probability <= 1.0:
            raise ModelError(f"The probability of the slab lies in [0, 1]; found {self.probability!r}.")
        if not isinstance(self.slab, (GaussianSlab, StudentTSlab, LaplaceSlab, HorseshoeSlab)):
            raise ModelError(f"slab is a prior with a density, such as GaussianSlab(); found {self.slab!r}.")

    def log_density(self, value: Any) -> np.ndarray:
        """Log of the probability of zero at 0, and of `probability` times the slab's density elsewhere."""
        x = _values(value)
        with np.errstate(divide="ignore"):
            spike, some = np.log1p(-self.probability), np.log(self.probability)
        zero = x == 0.0
        return np.where(zero, spike, some + self.slab.log_density(np.where(zero, 1.0, x)))

    def sample_precision(self, key: Any, shape: Any = ()) -> np.ndarray:
        """The slab's, or infinity with probability `1 - probability`."""
        of_some, of_slab = jax.random.split(key)
        some = generator(of_some).random(shape) < self.probability
        return np.where(some, self.slab.sample_precision(of_slab, shape), np.inf)

    def precision_given(self, value: Any, key: Any) -> np.ndarray:
        """The slab's draw given a value that is not zero; infinity at zero."""
        x = _values(value)
        zero = x == 0.0
        return np.where(zero, np.inf, self.slab.precision_given(np.where(zero, 1.0, x), key))


def _check(prior: Any, *names: str) -> None:
    for name in names:
        object.__setattr__(prior, name, positive(name, getattr(prior, name)))


def _values(value: Any) -> np.ndarray:
    """As float64; DataError where NaN or infinite."""
    try:
        found = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"A sparse prior takes real numbers; found {value!r}.") from None
    if not np.isfinite(found).all():
        raise DataError("A sparse prior takes finite real numbers; found NaN or infinity. Leave out missing entries.")
    return found


def _gamma(shape: float, rate: Any, size: Any, key: Any) -> np.ndarray:
    """Gamma variables, positive also where a small shape makes them round to zero."""
    return np.maximum(generator(key).gamma(shape, size=size) / rate, np.finfo(np.float64).tiny)


def _square(value: np.ndarray) -> np.ndarray:
    """`x^2`, infinite where that is no double."""
    with np.errstate(over="ignore"):
        return value * value


def _log_square(value: np.ndarray) -> np.ndarray:
    """`log(x^2)`, minus infinity at zero; the square itself may overflow."""
    with np.errstate(divide="ignore"):
        return 2.0 * np.log(np.abs(value))


def _log_scaled_exp1(log_u: np.ndarray) -> np.ndarray:
    """`log(exp(u) E1(u))`, of u = exp(log_u) in (0, inf): near 0 `log(-log u - euler_gamma)`, far out `-log u`."""
    u = np.exp(np.clip(log_u, -60.0, math.log(SERIES)))
    inner = np.where(log_u < -60.0, -np.euler_gamma - log_u, np.exp(u) * exp1(u))
    inverse = np.exp(-np.maximum(log_u, math.log(SERIES)))
    series = np.ones_like(inverse)
    for k in range(25, 0, -1):  # sum over k of (-1)^k k! / u^k
        series = 1.0 - k * inverse * series
    return np.where(log_u > math.log(SERIES), np.log(series) - log_u, np.log(inner))
