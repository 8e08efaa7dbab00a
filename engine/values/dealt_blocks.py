"""Blocks of rows on several devices: each goes through its own rows, and their sums cross devices once at the end."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec
from jaxtyping import PyTree

from ...factors.arrays import Array, Numeric
from .dealt import WHOLE
from .row_blocks import Rows, Window, windowed
from .scope import Scope
from .streamed_rows import StreamedRows

Energy = Callable[[Scope], Array]  # of the data and the moments of its scope


def summed(energy: Energy, rows: Rows, scope: Scope) -> Array:
    """The sum of a function of windowed scopes over all rows; its gradient too holds one block at a time."""

    def own(inside: Scope, windows: Callable[[Numeric], Window], number: int) -> Array:
        one = jax.checkpoint(lambda i: energy(windowed(inside, windows(i))), prevent_cse=False)
        return jnp.sum(jax.lax.map(one, jnp.arange(number)))

    return _over_devices(own, rows, scope)


def summed_with_gradient(energy: Energy, rows: Rows, scope: Scope, name: str, here: PyTree) -> tuple[Array, PyTree]:
    """The sum over all rows, and its gradient in the moments of the variable `name`, where these are `here`."""

    def own(inside: Scope, windows: Callable[[Numeric], Window], number: int) -> tuple[Array, PyTree]:
        at = inside.moments[name]

        def one(total: PyTree, i: Array) -> tuple[PyTree, None]:
            def of(moments: PyTree) -> Array:
                return energy(windowed(inside.with_moments({**inside.moments, name: moments}), windows(i)))

            return jax.tree.map(jnp.add, total, jax.value_and_grad(of)(at)), None

        start = (jnp.zeros(()), jax.tree.map(jnp.zeros_like, at))
        return jax.lax.scan(jax.checkpoint(one, prevent_cse=False), start, jnp.arange(number))[0]

    return _over_devices(own, rows, scope.with_moments({**scope.moments, name: here}))


def _over_devices(own: Callable[..., PyTree], rows: Rows, scope: Scope) -> PyTree:
    """The sum over devices of what each makes of its own rows.

    `own(scope, windows, number)` has a scope with these rows alone, and the number of blocks that they are cut into.
    """
    dealt, plate = scope.dealt, rows.plate
    assert dealt is not None
    names = dealt.mesh.axis_names
    each = dealt.each(plate)
    mine = Rows(plate, each, min(rows.size, each))
    streamed = {name: array for name, array in scope.data.items() if isinstance(array, StreamedRows)}
    data = {n: (array, dealt.axes[n]) for n, array in scope.data.items() if n in dealt.axes and n not in streamed}
    cut = {name: dealt.even(array, axis) for name, (array, axis) in data.items() if axis != WHOLE}
    rest = {name: array for name, (array, axis) in data.items() if axis == WHOLE}
    moments = {name: own for name, own in scope.moments.items() if dealt.axes.get(name) == WHOLE}

    def one(cut: dict[str, Array], rest: dict[str, Any], moments: PyTree) -> PyTree:
        sizes, before = {**scope.sizes, plate.name: each}, jax.lax.axis_index(names) * each
        files = {name: dataclasses.replace(array, first=array.first + before) for name, array in streamed.items()}
        inside = dataclasses.replace(
            scope, data={**rest, **cut, **files}, moments=moments, sizes=sizes, dealt=None, rows={}
        )
        stop = rows.total - before
        return jax.lax.psum(own(inside, lambda i: mine.window(i)._replace(stop=stop), mine.number), names)

    whole = PartitionSpec()
    specs = {name: dealt.spec(dealt.axes[name]) for name in cut}
    return jax.shard_map(one, mesh=dealt.mesh, in_specs=(specs, whole, whole), out_specs=whole, check_vma=False)(
        cut, rest, moments
    )
