"""Mixtures: terms of which one generates each element, as a switch on a class that is a variable of the model."""

from __future__ import annotations

import numpy as np

from ...factors.discrete.bernoulli import bernoulli
from ...factors.discrete.categorical import categorical
from ...factors.errors import ModelError
from ...factors.factor import Mixture, Term
from ...factors.numbers import ValueProblem, numeric_array
from .nodes import Expr
from .values import UserValue


def class_name(name: str) -> str:
    """The name of the class that chooses the term of the variable called `name`."""
    return f"{name} class"


def class_term(name: str, mixture: Mixture) -> Term:
    """What generates the class of each element of the variable called `name`: true is the first of two terms.

    ModelError where the weights are neither the probability of the first of two terms nor one probability a term.
    """
    weights, number = mixture.weights, len(mixture.terms)
    if number < 2:
        raise ModelError(
            f"Random variable '{name}': a mixture of {number} terms. Give at least two: "
            "cv.mixture(weights, term, term)."
        )
    if isinstance(weights, Expr):
        return _of_expression(name, weights, number)
    if isinstance(weights, (list, tuple)) and any(isinstance(weight, Expr) for weight in weights):
        raise ModelError(
            f"Random variable '{name}': the weights of its mixture are a list of expressions. {_remedy(number)}"
        )
    try:
        array = numeric_array(weights)
    except ValueProblem as problem:
        raise ModelError(f"Random variable '{name}': the weights of its mixture: {problem}") from None
    if array.ndim and array.shape[-1] == number and np.allclose(array.sum(-1), 1.0):
        return categorical(array)
    if number == 2 and not (array.ndim and array.shape[-1] == number):
        return bernoulli(array)
    raise ModelError(
        f"Random variable '{name}': the weights of its mixture of {number} terms have shape {array.shape}, or do not "
        f"sum to one. {_remedy(number)}"
    )


def _of_expression(name: str, weights: Expr, number: int) -> Term:
    if weights.domain.is_simplex:
        return categorical(weights)
    if number == 2 and weights.domain.is_unit:
        return bernoulli(weights)
    raise ModelError(
        f"Random variable '{name}': the weights of its mixture of {number} terms are '{weights}', which is "
        f"{weights.domain}. {_remedy(number)}"
    )


def _remedy(number: int) -> str:
    of_two = "the probability of the first term, such as cv.beta(1, 1), or " if number == 2 else ""
    return (
        f"Give {of_two}one probability a term: {number} numbers that sum to one, or a variable such as "
        f"m.random('weights', cv.dirichlet(np.ones({number})))."
    )


def terms_of(mixture: Mixture) -> list[UserValue]:
    """What the mixture is made of, as its user gave it: expressions or numbers."""
    found = [value for term in mixture.terms if isinstance(term, Term) for value in term.args.values()]
    return [mixture.weights, *found]
