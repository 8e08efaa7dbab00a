"""Inner products as a Gaussian's mean: of two vectors, or of elements along a plate that are vectors together.

Where a side is a plate of scalars, its elements meet in one factor: mean-field VMP is conjugate for each of them given
the others, so they are updated one after the other, each time all plates but that one at once
(`engine/blocks/inner_product_elements.py`).
"""

from __future__ import annotations

from typing import NamedTuple

from ...factors.roles import ScalarGaussian, gaussian_arguments
from ..blocks.base import Block
from ..blocks.energy import EnergyBlock
from ..language.nodes import Expr, Plate, Random, applies, inside, unnamed
from ..language.operations import DOT, MULTIPLY, STACK, SUM


class Side(NamedTuple):
    """One of the vectors: `expr` itself, or the elements of `expr` along the plate `over`."""

    expr: Expr
    over: Plate | None


def sides(block: Block) -> tuple[Side, Side] | None:
    """The two vectors of a Gaussian block whose mean is nothing but their inner product.

    Each is a random variable as a whole or data, and not both are data.
    """
    if not isinstance(block, EnergyBlock) or block.gates:
        return None
    if not isinstance(block.factor.role, ScalarGaussian):
        return None
    centre, precision = gaussian_arguments(block)
    mean = unnamed(centre)
    if applies(mean, DOT):
        found = [_vector(arg, block) for arg in mean.args]
    elif applies(mean, SUM) and applies(product := unnamed(mean.args[0]), MULTIPLY):
        found = [_along(arg, mean.option("over"), block) for arg in product.args]
    else:
        return None
    left, right = found
    if left is None or right is None or left.expr is right.expr:
        return None
    own = {side.expr for side in (left, right) if is_latent(side.expr, block)}
    others = inside([precision, *([block.out] if isinstance(block.out, Expr) else [])])
    return (left, right) if own and not own & set(others) else None


def in_turn(block: Block) -> dict[str, Plate]:
    """The variables of a block whose elements are updated one after the other, with the plate of these elements."""
    pair = sides(block) or ()
    plated = [(side.expr, side.over) for side in pair if side.over is not None and is_latent(side.expr, block)]
    return {expr.name: over for expr, over in plated if isinstance(expr, Random)}


def is_latent(expr: Expr, block: Block) -> bool:
    """Whether an expression is a variable with a belief."""
    return isinstance(expr, Random) and expr.name in block.latent


def _vector(expr: Expr, block: Block) -> Side | None:
    expr = unnamed(expr)
    if applies(expr, STACK) and expr.over is not None:
        return _along(expr.args[0], expr.over, block)
    return Side(expr, None) if is_latent(expr, block) or _is_data(expr, block) else None


def _along(expr: Expr, over: Plate, block: Block) -> Side | None:
    expr = unnamed(expr)
    if _is_data(expr, block):
        return Side(expr, over)
    squared = expr.domain.is_real or expr.domain.is_sparse  # whose families have x and x^2 among their statistics
    whole = is_latent(expr, block) and over in set(expr.plates) and squared
    return Side(expr, over) if whole else None


def _is_data(expr: Expr, block: Block) -> bool:
    return not any(is_latent(node, block) for node in inside([expr]))
