"""Pass: constraints that bound one linear form from both sides are one interval, whose moments are exact."""

from __future__ import annotations

import dataclasses
import functools
import operator

from ..blocks.base import Block
from ..blocks.site import LinearForm, LinearTerm, SiteBlock
from ..graph import Draft
from ..language.atoms import MINUS_ONE, atom_key, product
from ..language.nodes import Constant, Expr
from ..rules.logic import TRUE
from .choose_operators import ZERO


def intervals(draft: Draft) -> Draft:
    """Makes one site over the interval between them of every pair of opposite steps in the same linear form."""
    merged: list[Block] = []
    for block in draft.blocks:
        for number, before in enumerate(merged):
            if (both := _interval(before, block)) is not None:
                merged[number] = both
                break
        else:
            merged.append(block)
    return dataclasses.replace(draft, blocks=tuple(merged))


def _interval(first: Block, second: Block) -> SiteBlock | None:
    """The interval between two opposite steps, None for any other pair of blocks."""
    if not isinstance(first, SiteBlock) or not isinstance(second, SiteBlock) or not _opposite(first, second):
        return None
    return _between(first, second)


def _opposite(first: SiteBlock, second: SiteBlock) -> bool:
    """s + a > 0 and -s + b > 0, of the same instances."""
    if any(block.link != "positive" or block.out is not TRUE for block in (first, second)):
        return False
    same = set(first.plates) == set(second.plates) and first.method == second.method
    return same and _shape(first.form, 1) == _shape(second.form, -1)


def _shape(form: LinearForm, sign: int) -> frozenset:
    """What equal forms have in common, whatever the order of their terms and factors; offsets aside."""
    return frozenset(_term_shape(term, sign) for term in form.terms)


def _term_shape(term: LinearTerm, sign: int) -> tuple:
    flips = sum(factor is MINUS_ONE for factor in term.coefficients)
    others = sorted(map(_factor_key, (factor for factor in term.coefficients if factor is not MINUS_ONE)), key=repr)
    direction = None if term.direction is None else atom_key(term.direction)
    return sign * (-1) ** flips, tuple(others), atom_key(term.element), direction


def _factor_key(factor: Expr) -> tuple:
    if isinstance(factor, Constant) and factor.value.ndim == 0:
        return ("constant", float(factor.value))
    return atom_key(factor)


def _between(first: SiteBlock, second: SiteBlock) -> SiteBlock:
    """0 < s + a < a + b: the outcome of an interval site is its width."""
    offsets = [product(factors) for factors in first.form.offsets + second.form.offsets]
    reason = "a constraint from both sides: infinite divergence under VMP, exact moments under EP"
    return dataclasses.replace(
        first.chosen(operator="interval site, closed form", reason=reason),
        name=first.name if first.name == second.name else f"{first.name} & {second.name}",
        out=functools.reduce(operator.add, offsets) if offsets else ZERO,
        link="interval",
    )
