"""The rules by which VMP averages an expression: what each reads the moments of, and what it gives.

`averaging.py` finds the rule of an expression, `engine/values/operations.py` has a formula for every rule.
"""

from __future__ import annotations

import dataclasses

from ...factors.arrays import Exponent
from ..language.nodes import Expr

Read = tuple[Expr, str]  # an expression, and as which kind of domain its moments are read, or one of the next two
NUMBER = "number"  # an atom of a polynomial, of which all moments are wanted that its powers have
POLYNOMIAL = "polynomial"  # a real expression by its monomials, whatever it is itself


@dataclasses.dataclass(frozen=True, eq=False)
class Average:
    """A rule for the moments of `expr`, those of the domain `gives`, from the moments of `parts` and values of `data`.

    Operands that are not said to share variables are independent.
    """

    expr: Expr
    gives: str
    parts: tuple[Read, ...] = ()
    data: tuple[Expr, ...] = ()


class InverseCovariance(Average):
    """The inverse of a covariance matrix of independent scales and partial correlations, which are the parts."""


class ScaledMatrix(Average):
    """A positive definite matrix times an independent positive number: the parts, in this order."""


class Linked(Average):
    """A link of a number, or of all those along a plate."""


class Logical(Average):
    """The probability of a truth value of independent truth values."""


class Product(Average):
    """E ab = E a E b, E log ab = E log a + E log b."""


class KnownQuotient(Average):
    """E a / b and E log a / b, b known."""


@dataclasses.dataclass(frozen=True, eq=False)
class Power(Average):
    """E x^n and E log x^n of a variable, whose family has them."""

    exponent: Exponent = 1


@dataclasses.dataclass(frozen=True, eq=False)
class Quotient(Average):
    """E a x^n and E log a x^n, n < 0, of what is independent of the variable x."""

    exponent: Exponent = -1


class Chosen(Average):
    """The moments of one of two parts, which data choose."""


class VectorSum(Average):
    """a + b: means and covariances add up."""


class VectorDifference(Average):
    """a - b: covariances add up."""


class Opposite(Average):
    """-a."""


class MatrixProduct(Average):
    """A a, A known: mean A E a, covariance A Cov(a) A'."""


class Scaled(Average):
    """s a for a number s: mean E s E a, covariance (E s)^2 Cov(a) + Var(s) E a a'."""


class PlateSum(Average):
    """The sum of independent vectors along a plate."""


class Elements(Average):
    """The vector of independent elements along a plate."""


@dataclasses.dataclass(frozen=True, eq=False)
class Stacked(Average):
    """A vector of numbers: Cov(a, b) = (Var(a + b) - Var(a - b)) / 4 of the `pairs` that share variables.

    The parts are the numbers, then the sum and the difference of each pair.
    """

    pairs: tuple[tuple[int, int], ...] = ()


class JointVector(Average):
    """Variables as one vector, with their covariances where they share a belief."""


@dataclasses.dataclass(frozen=True, eq=False)
class Polynomial(Average):
    """A sum of products of independent numbers, the parts, which have the given `keys`.

    By product the exponents of the numbers by key, and how many of the data are its factors.
    """

    keys: tuple[tuple, ...] = ()
    products: tuple[dict[tuple, Exponent], ...] = ()
    factors: tuple[int, ...] = ()


class Number(Average):
    """A variable, or an element of one."""


class InnerProductWithData(Average):
    """a . x, x known."""


class SquaredLength(Average):
    """a . a."""


class InnerProduct(Average):
    """a . b."""


class Exponential(Average):
    """exp of a Gaussian number."""


class Logarithm(Average):
    """log of a variable."""


class NumberSum(Average):
    """The sum of independent numbers along a plate."""


class Larger(Average):
    """The larger of two Gaussian numbers; the parts are both, and their difference."""
