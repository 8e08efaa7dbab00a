"""Blocks of EP for a scalar function of a linear form of Gaussian variables."""

from __future__ import annotations

import dataclasses
from typing import Any

from ..language.nodes import Expr, Plate, Random
from .base import Block


@dataclasses.dataclass(frozen=True, eq=False)
class LinearTerm:
    """coefficient * element, or coefficient * <direction, element> for a vector variable.

    `element` is the variable, or a gather of it by index data: topology is data. `coefficients` are multiplied. With
    `over` it is the sum along that plate, for variables that share one belief over all of their elements.
    """

    variable: Random
    element: Expr
    coefficients: tuple[Expr, ...] = ()
    direction: Expr | None = None
    over: Plate | None = None


@dataclasses.dataclass(frozen=True, eq=False)
class LinearForm:
    """sum of terms + sum of products of data + independent noise: the Gaussian argument of a scalar factor.

    `noise` holds (coefficients, precision) pairs: each adds coefficient^2 / precision to the variance.
    """

    terms: tuple[LinearTerm, ...]
    offsets: tuple[tuple[Expr, ...], ...] = ()
    noise: tuple[tuple[tuple[Expr, ...], Expr], ...] = ()


@dataclasses.dataclass(frozen=True, eq=False)
class Absorbed:
    """A Gaussian variable integrated out inside a block: it has one consumer, so nothing is lost.

    `form` is its own mean.
    """

    variable: Random
    coefficients: tuple[Expr, ...]
    form: LinearForm
    precision: Expr


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class SiteBlock(Block):
    """f(form) for the scalar function `link`; `atoms` holds a random outcome.

    `factor` is that of the term that it comes from; a constraint and an observed expression have none.
    """

    form: LinearForm
    link: str = "identity"
    factor: Any = None
    atoms: tuple[Expr, ...] = ()
    absorbed: tuple[Absorbed, ...] = ()
    over: Plate | None = None

    @property
    def elements(self) -> tuple[Expr, ...]:
        return (*(term.element for term in self.form.terms), *self.atoms)

    @property
    def projects(self) -> bool:
        return self.link != "identity"
