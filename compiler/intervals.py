"""Pass: constraints that bound one linear form from both sides are one interval, whose moments are exact."""

from __future__ import annotations

import dataclasses
import functools
import operator

from .choose import ZERO
from .expressions import Constant, Expr
from .graph import Block, Graph, LinearForm, LinearTerm
from .linear import ONE
from .logic import TRUE
from .polynomial import MINUS_ONE, atom_key


def intervals(graph: Graph) -> Graph:
    """Makes one site over the interval between them of every pair of opposite steps in the same linear form."""
    merged: list[Block] = []
    for block in graph.blocks:
        other = next((number for number, before in enumerate(merged) if _opposite(before, block)), None)
        if other is None:
            merged.append(block)
        else:
            merged[other] = _between(merged[other], block)
    return dataclasses.replace(graph, blocks=tuple(merged))


def _opposite(first: Block, second: Block) -> bool:
    """s + a > 0 and -s + b > 0, of the same instances."""
    if any(block.link != "positive" or block.out is not TRUE or block.form is None for block in (first, second)):
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


def _between(first: Block, second: Block) -> Block:
    """0 < s + a < a + b: an interval site is told the width as its outcome."""
    offsets = [functools.reduce(operator.mul, factors, ONE) for factors in first.form.offsets + second.form.offsets]
    return dataclasses.replace(
        first,
        name=first.name if first.name == second.name else f"{first.name} & {second.name}",
        operator="interval site, closed form",
        reason="a constraint from both sides: infinite divergence under VMP, exact moments under EP",
        out=functools.reduce(operator.add, offsets) if offsets else ZERO,
        link="interval",
    )
