"""Likelihoods to a power: what every entry tells counts so many times, for samplers as they are.

The power is one of the likelihood's numbers, so that chains at different powers share a compiled sweep. Gaussian noise
to a power is noise of that many times the precision, but for a constant: there the number that samplers see is the
precision times the power, and all that is drawn given it is right as it stands.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, ClassVar

import jax
import jax.numpy as jnp

from ....factors.arrays import Array, Key
from ....factors.errors import UnsupportedError
from .binary_values import update_binary
from .contract import Likelihood, Numbers, Point, Rows, Table, totals
from .detection import Detection
from .exponential_gaussian import ExponentialGaussian
from .gaussian_noise import GaussianNoise
from .learned import beta_given, gamma_given
from .linear_gaussian import LinearGaussian
from .noisy_or import NoisyOr

if TYPE_CHECKING:
    _Noise, _Likelihood = GaussianNoise, Likelihood
else:
    _Noise = _Likelihood = object


class Raised(_Likelihood):
    """What stands before a likelihood in a class of both; its numbers have a "power"."""

    by_sums: ClassVar[bool] = False

    def draw_numbers(self, key: Key) -> Numbers:
        return super().draw_numbers(key) | {"power": jnp.ones(())}

    def first_numbers(self, rows: Rows) -> Numbers:
        return super().first_numbers(rows) | {"power": jnp.ones(())}

    def log_entry(self, value: Array, total: Array, numbers: Numbers) -> Array:
        """The power times the log density."""
        return numbers["power"] * self.log_whole(value, total, numbers)

    def log_whole(self, value: Array, total: Array, numbers: Numbers) -> Array:
        """The log density, whatever the power."""
        return super().log_entry(value, total, numbers)

    def at_power(self, numbers: Numbers, power: float) -> Numbers:
        """The numbers of the same point at another power."""
        return numbers | {"power": jnp.asarray(power)}


class RaisedNoise(Raised, _Noise):
    """The same of Gaussian noise: "noise_precision" is the precision times the power."""

    def log_whole(self, value: Array, total: Array, numbers: Numbers) -> Array:
        own: Numbers = {**numbers, "noise_precision": numbers["noise_precision"] / numbers["power"]}
        return super().log_whole(value, total, own)

    def at_power(self, numbers: Numbers, power: float) -> Numbers:
        times = power / numbers["power"]
        return {**super().at_power(numbers, power), "noise_precision": numbers["noise_precision"] * times}

    def noise_given(self, key: Key, rows: Table, point: Point) -> Numbers:
        """Precision, times the power, and power; each entry counts so many times."""
        power = point.numbers["power"]
        square = jnp.sum(rows.total(jnp.where(rows.seen, (rows.values - totals(point)) ** 2, 0.0)))
        half = 0.5 * power
        noise = gamma_given(key, self.noise_precision, half * jnp.sum(rows.total(rows.seen)), half * square)
        return {"noise_precision": power * noise, "power": power}


@dataclasses.dataclass(frozen=True)
class RaisedGaussian(RaisedNoise, LinearGaussian):
    """`LinearGaussian` to a power; see `raised`."""

    def numbers_given(self, noise_key: Key, value_key: Key, rows: Table, point: Point) -> Numbers:
        return super().numbers_given(noise_key, value_key, rows, point) | self.noise_given(noise_key, rows, point)


@dataclasses.dataclass(frozen=True)
class RaisedExponential(RaisedNoise, ExponentialGaussian):
    """`ExponentialGaussian` to a power; see `raised`."""

    def update(self, key: Key, rows: Table, point: Point) -> Point:
        keys = jax.random.split(key, 3)
        used = rows.total(point.active) > 0
        sizes = jnp.sum(jnp.where(used[:, None], point.values, 0.0))
        rate = gamma_given(keys[1], self.rate, jnp.sum(used) * point.values.shape[1], sizes)
        numbers = self.noise_given(keys[0], rows, point) | {"rate": rate}
        return self.draw_values_given(keys[2], rows, point._replace(numbers=numbers))


@dataclasses.dataclass(frozen=True)
class RaisedNoisyOr(Raised, NoisyOr):
    """`NoisyOr` to a power; see `raised`."""


@dataclasses.dataclass(frozen=True)
class RaisedDetection(Raised, Detection):
    """`Detection` to a power; see `raised`."""

    def update(self, key: Key, rows: Table, point: Point) -> Point:
        keys, power = jax.random.split(key, 4), point.numbers["power"]
        there, one = totals(point) > 0.5, rows.values > 0.5

        def count(which: Array) -> Array:
            return power * jnp.sum(rows.total(which & rows.seen))

        numbers = {
            "miss": beta_given(keys[0], self.miss, count(there & ~one), count(there & one)),
            "false": beta_given(keys[1], self.false, count(~there & one), count(~there & ~one)),
            "share": self.share_given(keys[2], rows.total(point.active) > 0, point.values),
            "power": power,
        }
        return update_binary(keys[3], self, rows, point._replace(numbers=numbers), numbers["share"])


RAISED = {
    Detection: RaisedDetection,
    ExponentialGaussian: RaisedExponential,
    LinearGaussian: RaisedGaussian,
    NoisyOr: RaisedNoisyOr,
}


@functools.cache
def raised(likelihood: Likelihood) -> Raised:
    """The likelihood with one more number, "power", and densities of entries to this power.

    Args:
        likelihood: of `LinearGaussian`, `ExponentialGaussian`, `NoisyOr` or `Detection`.

    Returns:
        A likelihood of the same kind, for any sampler that takes that; its density of an entry is no density.

    Raises:
        UnsupportedError: another likelihood, whose values are not drawn so simply.
    """
    if type(likelihood) not in RAISED:
        names = ", ".join(each.__name__ for each in RAISED)
        raise UnsupportedError(f"Powers are of {names}; found {type(likelihood).__name__}.")
    given = {field.name: getattr(likelihood, field.name) for field in dataclasses.fields(likelihood)}  # pyright: ignore[reportArgumentType]
    return RAISED[type(likelihood)](**given)
