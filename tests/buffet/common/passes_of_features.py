"""Small problems for passes over rows, which are functions of arrays: data, a matrix, the prior's tables, chances."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from cavity.models.buffet.samplers.law import Law
from cavity.models.buffet.samplers.passes import Gaps, chances_of, tables_of
from cavity.models.buffet.samplers.state import State

BUFFET = Law(mass=2.0, concentration=1.5)
FINITE = Law(mass=2.0, features=4)


class Problem(NamedTuple):
    """The arguments of a pass."""

    active: Any
    full: Any
    numbers: dict
    tables: Any
    chances: Any
    gaps: Any = None


def problem(law, seed, rows=5, dimensions=2, places=12, features=4, noise=3.0, value=0.7):
    """Data of a matrix of independent entries; under the finite prior there is a place for each feature."""
    random = np.random.default_rng(seed)
    places = places if law.features is None else law.features
    active = np.zeros((rows, places), bool)
    active[:, :features] = random.random((rows, features)) < 0.5
    full = active @ random.normal(size=(places, dimensions)) / np.sqrt(value)
    full += random.normal(size=full.shape) / np.sqrt(noise)
    with jax.enable_x64(True):
        numbers = {"noise_precision": jnp.asarray(noise), "value_precision": jnp.asarray(value)}
        empty = jnp.zeros((0, 0))
        mass, concentration = law.first()
        state = State(active, jnp.zeros((places, dimensions)), empty, numbers, mass, concentration)
        tables = jax.jit(tables_of, static_argnums=(0, 1))(law, rows, state)
        chances = chances_of(jax.random.key(seed), rows, places)
    return Problem(active, full, jax.tree.map(np.asarray, numbers), tables, chances)


def with_gaps(given, seed, share=0.4):
    """The same problem with some entries that are not seen, one row without any."""
    random = np.random.default_rng(seed)
    seen = random.random(given.full.shape) >= share
    seen[-1] = False
    return given._replace(gaps=Gaps(seen, random.normal(size=seen.shape)))


@functools.cache
def _compiled(over_rows):
    return jax.jit(over_rows)


def passed(over_rows, *arguments):
    """What a pass returns, as NumPy arrays."""
    with jax.enable_x64(True):
        return jax.tree.map(np.asarray, _compiled(over_rows)(*arguments))


def assert_alike(one, other, tolerance=1e-9):
    """The same matrix, drawn from the same conditionals."""
    np.testing.assert_array_equal(one.active, other.active)
    np.testing.assert_allclose(one.odds, other.odds, rtol=0.0, atol=tolerance)
    np.testing.assert_allclose(one.births, other.births, rtol=0.0, atol=tolerance)
    assert (one.full is None) == (other.full is None)
    if one.full is not None:
        np.testing.assert_allclose(one.full, other.full, rtol=0.0, atol=tolerance)
    assert one.fits
    assert other.fits
