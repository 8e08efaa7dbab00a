"""The rule of observed maxima and minima of Gaussian numbers, exact or with Gaussian noise."""

from __future__ import annotations

from typing import NamedTuple

from ...factors.roles import ScalarGaussian, gaussian_arguments
from ..algebra.known import latent_names
from ..blocks.base import Choice
from ..blocks.energy import EnergyBlock
from ..blocks.whole import MaximumBlock
from ..graph import Draft
from ..language.nodes import Expr, Gather, IsData, Let, Plate, Position, Random, applies, unnamed
from ..language.operations import MAX, NEGATE
from ..methods import EP, Method

OPERATOR = "which of {} numbers it is, by {}"


class Extreme(NamedTuple):
    """The numbers of which an expression is the largest (sign 1) or the smallest (sign -1)."""

    sign: float
    numbers: tuple[Expr, ...]


def extreme(expr: Expr, known: IsData) -> Extreme | None:
    """What an expression is the extreme of; None unless these are elements of Gaussian variables, each another one.

    No two instances may share an element: each has the whole of its numbers.
    """
    whole, sign = unnamed(expr), 1.0
    if applies(whole, NEGATE):
        whole, sign = unnamed(whole.args[0]), -1.0
    if not applies(whole, MAX):
        return None
    stack: list[Expr] = [whole]
    numbers: list[Expr] = []
    while stack:
        node = unnamed(stack.pop())
        if applies(node, MAX):
            stack.extend(reversed(node.args))
            continue
        if sign < 0.0:
            if not applies(node, NEGATE):
                return None
            node = unnamed(node.args[0])
        numbers.append(node)
    keys = [_key(number, expr.plates, known) for number in numbers]
    return Extreme(sign, tuple(numbers)) if None not in keys and len(set(keys)) == len(keys) else None


def _key(number: Expr, plates: tuple[Plate, ...], known: IsData) -> tuple | None:
    """Which element an instance takes of which variable; None where others may take it too."""
    start, source = None, number
    if isinstance(number, Gather):
        if not isinstance(number.index, Position) or number.index.plates:
            return None
        start, source, plates = number.index.start, number.source, (*plates, number.axis)
    if not isinstance(source, Random) or not source.domain.is_real or known(source):
        return None
    return (source.name, start) if set(source.plates) == set(plates) else None


def maximum_block(draft: Draft, node: Let, known: IsData) -> MaximumBlock | None:
    """The block of an observed expression that is an extreme; None for any other."""
    found = extreme(node.expression, known)
    if found is None:
        return None
    return MaximumBlock(
        name=node.name,
        plates=node.plates,
        latent=latent_names(draft, [*found.numbers]),
        choice=_choice(found, "closed form", "exact moments", "an exact observation"),
        out=node,
        numbers=found.numbers,
        sign=found.sign,
    )


def noisy_maximum(draft: Draft, block: EnergyBlock, method: Method, known: IsData) -> MaximumBlock | None:
    """The same for Gaussian noise of known precision about an extreme of three numbers or more.

    That of two is integrated over both by slots.
    """
    if not isinstance(block.factor.role, ScalarGaussian) or block.gates or not known(block.out):
        return None
    mean, precision = gaussian_arguments(block)
    found = extreme(mean, known) if known(precision) and method.name in ("auto", "ep") else None
    if found is None or len(found.numbers) < 3 or set(mean.plates) != set(block.plates):
        return None
    choice = _choice(found, "61 Gauss-Hermite nodes each", "quadrature", "noise of known precision about one")
    return block.remade(MaximumBlock, choice=choice, numbers=found.numbers, sign=found.sign, precision=precision)


def _choice(found: Extreme, rule: str, accuracy: str, why: str) -> Choice:
    what = "the largest" if found.sign > 0.0 else "the smallest"
    reason = f"{what} of Gaussian numbers: {why}"
    return Choice(EP, OPERATOR.format(len(found.numbers), rule), accuracy, reason)
