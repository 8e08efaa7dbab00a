"""Gaussian draws of a few numbers and of many elements that are independent given these, all together.

Effects of groups with their mean, intercepts beside common slopes: the precision is an arrow, (core, core), (row, core)
and one small matrix for each row, nothing between rows. Rows are eliminated first, so that the cost grows with their
number and not with its cube.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from ....compiler.language.atoms import atom_key
from ....factors import draws
from ....factors.arrays import Array, Key
from ...density.order import gathers_of
from ..joint import Data, Joint, Values
from ..move import Move, stateless
from .curvature import simplest
from .lanes import all_apart

FEWEST = 16  # rows for which this pays
MOST = 10**6  # numbers of rows times those of the core


class Blocks(NamedTuple):
    """The parts of an arrow: (core, core), (row, own, core) and (row, own, own)."""

    core: Array
    cross: Array
    rows: Array


def eliminated(precision: Blocks) -> Blocks:
    """The Cholesky factor, rows first: of each row, of what the core meets there, and of what is left of the core."""
    rows = jnp.linalg.cholesky(precision.rows)
    cross = jax.vmap(lambda root, b: jax.scipy.linalg.solve_triangular(root, b, lower=True))(rows, precision.cross)
    return Blocks(jnp.linalg.cholesky(precision.core - jnp.einsum("nia,nib->ab", cross, cross)), cross, rows)


def around(root: Blocks, slope: tuple[Array, Array], noise: tuple[Array, Array]) -> tuple[Array, Array]:
    """precision^-1 slope plus noise of that covariance, of the core and of the rows."""
    solve = jax.scipy.linalg.solve_triangular
    done = jax.vmap(lambda own, b: solve(own, b, lower=True))(root.rows, slope[1])
    shift = slope[0] - jnp.einsum("nia,ni->a", root.cross, done)
    core = solve(root.core.T, solve(root.core, shift, lower=True) + noise[0], lower=False)
    rest = done + noise[1] - root.cross @ core
    return core, jax.vmap(lambda own, b: solve(own.T, b, lower=False))(root.rows, rest)


def rows_apart(joint: Joint, names: tuple[str, ...]) -> tuple[str, ...]:
    """Those of the variables whose elements are independent given all others: most numbers first, on the same plates.

    An instance of a factor reads one element of each; where it reads several variables, the element of the same number.
    """
    sizes = {name: joint.contents.shape(joint.variables[name]) for name in names}
    wide = [name for name in names if joint.variables[name].plates and joint.gathers(name) is not None]
    found: tuple[str, ...] = ()
    for name in sorted(wide, key=lambda name: -all_apart(joint, name).count):
        alike = not found or joint.variables[name].plates == joint.variables[found[0]].plates
        if alike and sizes[name] and _read_alike(joint, (*found, name)):
            found = (*found, name)
    return found if found and all_apart(joint, found[0]).count >= FEWEST else ()


def _read_alike(joint: Joint, names: tuple[str, ...]) -> bool:
    for factor in joint.touching(names):
        read = gathers_of(factor, joint.factors[factor].roots, set(names), set(joint.data))
        places = {None if gather is None else atom_key(gather.index) for gather in read.values()}
        if len(places) > 1:
            return False
    return True


def affordable(joint: Joint, core: int, wide: tuple[str, ...]) -> bool:
    """Whether the rows and a core of so many numbers are not too much."""
    lanes = [all_apart(joint, name) for name in wide]
    return core * sum(lane.count * lane.size for lane in lanes) <= MOST


def with_core(joint: Joint, core: tuple[str, ...], wide: tuple[str, ...], values: Values) -> Move:
    """All numbers of the core and of the rows together; `values` are any of all variables."""
    factors = joint.touching((*core, *wide))
    lanes = {name: all_apart(joint, name) for name in wide}
    _, of_core = ravel_pytree({name: values[name] for name in core})
    splits = jnp.cumsum(jnp.asarray([lanes[name].size for name in wide]))[:-1].tolist()

    def of_rows(rows: Array) -> Values:
        parts = jnp.split(rows, splits, axis=1)
        return {name: lanes[name].back(part) for name, part in zip(wide, parts, strict=True)}

    def at(values: Values) -> tuple[Array, Array]:
        rows = jnp.concatenate([lanes[name].rows(values[name]) for name in wide], axis=1)
        return ravel_pytree({name: values[name] for name in core})[0], rows

    def slope_of(values: Values, data: Data) -> Callable[[tuple[Array, Array]], tuple[Array, Array]]:
        return jax.grad(lambda x: joint.finite(factors, {**values, **of_core(x[0]), **of_rows(x[1])}, data))

    start = at(values)

    def precision(others: Values, data: Data) -> Blocks:
        slope = slope_of({**values, **others}, data)

        def along(core: Array, row: Array) -> tuple[Array, Array]:
            return jax.jvp(slope, (start,), ((core, jnp.broadcast_to(row, start[1].shape)),))[1]

        count, own = len(start[0]), start[1].shape[1]
        below, cross = jax.lax.map(lambda unit: along(unit, jnp.zeros(own)), jnp.eye(count), batch_size=64)
        _, rows = jax.lax.map(lambda unit: along(jnp.zeros(count), unit), jnp.eye(own), batch_size=64)
        return Blocks(-below, -jnp.moveaxis(cross, 0, -1), -jnp.moveaxis(rows, 0, -1))

    others = {name: array for name, array in values.items() if name not in {*core, *wide}}
    constant, precision_of = simplest(joint, precision, others)
    kept = eliminated(precision_of({}, {})) if constant else None

    def draw(key: Key, values: Values, data: Data) -> Values:
        now = at(values)
        left = {name: values[name] for name in others}
        noise = tuple(draws.normal(jax.random.fold_in(key, i), x.shape) for i, x in enumerate(now))
        root = eliminated(precision_of(left, data)) if kept is None else kept
        moved = around(root, slope_of(values, data)(now), (noise[0], noise[1]))
        fine = jnp.all(jnp.isfinite(moved[0])) & jnp.all(jnp.isfinite(moved[1]))  # else it is singular to rounding
        core_now, rows_now = (jnp.where(fine, x + step, x) for x, step in zip(now, moved, strict=True))
        return {**of_core(core_now), **of_rows(rows_now)}

    plates = ", ".join(plate.name for plate in lanes[wide[0]].plates)
    how = f"jointly, from the Gaussian that the rest gives: each {plates} on its own, given {', '.join(core)}"
    return stateless((*core, *wide), how, draw)
