"""The data of an EP site block in schedule order: everything about its instances that does not change in a run."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int

from ....compiler.blocks.site import LinearForm, SiteBlock
from ....compiler.language.nodes import Expr, Gather, Input, Random
from ....compiler.rules.logic import TRUE
from ....factors.arrays import Array, Key
from ...values.evaluate import value
from ...values.instances import ScheduleLayout, arranged, count, flat, layout, positions
from ...values.masks import present
from ...values.plated import Placed, mapped
from ...values.row_blocks import Rows, beginning_at
from ...values.scope import Scope


class Term(NamedTuple):
    """One term of the linear form in schedule order: which elements, with which coefficient, along which direction."""

    position: Int[Array, "*rows"] | None
    coefficient: Float[Array, "*rows"]
    direction: Float[Array, "*rows dim"] | None


class Prepared(NamedTuple):
    """A block's data in schedule order.

    Where it is cut into blocks of rows, `row` holds the row of every instance, and directions are not kept:
    `directions(first)` makes those of the block of rows that begins with `first`.
    """

    terms: tuple[Term, ...]
    offset: Float[Array, "*rows"]
    noise: Float[Array, "*rows"]
    out: Float[Array, "*rows"] | None
    out_position: Int[Array, "*rows"] | None
    present: Bool[Array, "*rows"] | None
    plan: ScheduleLayout | None
    row: Int[Array, "*rows"] | None = None
    directions: Callable[[Int[Array, ""]], list[Float[Array, "row dim"] | None]] | None = None

    @property
    def blocks(self) -> int:
        """Number of blocks of rows."""
        return 1 if self.directions is None else self.plan.order.shape[0] * self.plan.blocks  # pyright: ignore


def product(coefficients: tuple[Expr, ...], scope: Scope, square: bool = False) -> Placed:
    """The product of data expressions, or its square."""
    factors = [value(c, scope) for c in coefficients]
    product = mapped(lambda *c: _prod(c), *factors) if factors else Placed(jnp.asarray(1.0), ())
    return Placed(product.value**2, product.plates) if square else product


def _prod(factors):
    total = 1.0
    for factor in factors:
        total = total * factor
    return total


def _sum(parts: list[Placed]) -> Placed:
    return mapped(lambda *p: sum(p), *parts) if parts else Placed(jnp.asarray(0.0), ())


def form_noise(form: LinearForm, scope: Scope) -> Placed:
    """The variance of the independent noise of a form."""
    return _sum([mapped(jnp.divide, product(c, scope, square=True), value(p, scope)) for c, p in form.noise])


def form_offset(form: LinearForm, scope: Scope) -> Placed:
    """The fixed part of a form."""
    return _sum([product(c, scope) for c in form.offsets])


def prepare(block: SiteBlock, scope: Scope, key: Key, apart: bool = False) -> Prepared:
    """Evaluates everything about the block that depends only on data."""
    form = block.form
    edges = tuple(term.element for term in form.terms) + block.atoms
    plan, rows = layout(block, scope, edges, key), scope.rows.get(block)
    if plan is not None and plan.shares is not None:
        rows = None  # each device has the directions of its own rows, in their order

    def place(placed: Placed) -> Array:
        return arranged(flat(placed, block, scope), plan)

    terms = tuple(
        Term(
            arranged(positions(term.element, block, scope), plan),
            place(product(term.coefficients, scope)),
            None if term.direction is None or rows is not None else place(value(term.direction, scope)),
        )
        for term in form.terms
    )
    if not apart:
        terms = _apart(terms, tuple(term.variable for term in form.terms))
    out, out_position = None, None
    if block.atoms:
        out_position = arranged(positions(block.atoms[0], block, scope), plan)
    else:
        observed = jnp.asarray(True) if block.out is TRUE else value(block.out, scope)
        out = place(observed if isinstance(observed, Placed) else Placed(observed, ())).astype(float)
    counted = None if plan is None else plan.present
    if (mask := present(block, scope)) is not None:
        here = place(mask) > 0
        counted = here if counted is None else counted & here
    noise = form_noise(form, scope)
    if block.link == "identity":  # a power of a Gaussian factor is one of larger noise, up to a constant
        noise = Placed(noise.value / block.method.alpha, noise.plates)
    row, directions = None, None
    if rows is not None and plan is not None:
        row = plan.order // (count(block, scope.sizes) // rows.total)
        directions = functools.partial(_directions, block, scope, rows)
    offset = place(form_offset(form, scope))
    return Prepared(terms, offset, place(noise), out, out_position, counted, plan, row, directions)


def _directions(
    block: SiteBlock, scope: Scope, rows: Rows, first: Int[Array, ""]
) -> list[Float[Array, "row dim"] | None]:
    """The directions of a block's terms for the instances of the rows from `first` on."""
    inside = beginning_at(scope, rows, first)
    return [
        None if term.direction is None else flat(value(term.direction, inside), block, inside)
        for term in block.form.terms
    ]


def all_apart(block: SiteBlock, inputs: Mapping[str, Any]) -> bool:
    """True when the index data show that no instance meets one element in two of its terms."""
    for first, second in itertools.combinations(block.form.terms, 2):
        if first.variable is not second.variable:
            continue
        indices = [term.element.index for term in (first, second) if isinstance(term.element, Gather)]
        arrays = [inputs[index.name] for index in indices if isinstance(index, Input)]
        if len(arrays) < 2 or arrays[0].shape != arrays[1].shape or np.any(arrays[0] == arrays[1]):
            return False
    return True


def _apart(terms: tuple[Term, ...], variables: tuple[Random, ...]) -> tuple[Term, ...]:
    """Where two terms of an instance meet in one element, the first takes over the second's coefficient.

    One element has one cavity.
    """
    merged = list(terms)
    for j, later in enumerate(variables):
        for i in range(j):
            if variables[i] is not later or merged[i].position is None or merged[j].position is None:
                continue
            same = merged[i].position == merged[j].position
            first, second = merged[i], merged[j]
            if first.direction is None:
                merged[i] = first._replace(coefficient=first.coefficient + jnp.where(same, second.coefficient, 0.0))
                merged[j] = second._replace(coefficient=jnp.where(same, 0.0, second.coefficient))
            else:
                total = _scaled(first) + jnp.where(same[..., None], _scaled(second), 0.0)
                merged[i] = first._replace(coefficient=jnp.ones(()), direction=total)
                merged[j] = second._replace(
                    coefficient=jnp.ones(()), direction=jnp.where(same[..., None], 0.0, _scaled(second))
                )
    return tuple(merged)


def _scaled(term: Term) -> Float[Array, "*rows dim"]:
    coefficient = term.coefficient
    assert term.direction is not None
    return term.direction * (coefficient[..., None] if jnp.ndim(coefficient) else coefficient)


SCANNED = ("offset", "noise", "out", "out_position", "present", "row")


def per_batch(prepared: Prepared, scanned: dict[str, Array]) -> Prepared:
    """The prepared data with the scanned parts of one batch, or of one block of rows of it, in place."""
    terms = tuple(
        term._replace(**{field: scanned[f"{field}{j}"] for field in Term._fields if f"{field}{j}" in scanned})
        for j, term in enumerate(prepared.terms)
    )
    if prepared.directions is not None:
        made = prepared.directions(scanned["row"][0])
        terms = tuple(term._replace(direction=own) for term, own in zip(terms, made, strict=True))
    return prepared._replace(terms=terms, **{name: scanned[name] for name in SCANNED if name in scanned})


def scanned_parts(prepared: Prepared) -> dict[str, Array]:
    """The parts of the data that differ between instances; scalars stay outside the scan."""
    named = {f"{field}{j}": getattr(term, field) for j, term in enumerate(prepared.terms) for field in Term._fields}
    named |= {name: getattr(prepared, name) for name in SCANNED}
    return {name: array for name, array in named.items() if array is not None and jnp.ndim(array) > 0}
