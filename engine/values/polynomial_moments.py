"""Mean and variance of a polynomial in independent random numbers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import jax.numpy as jnp
from jaxtyping import PyTree

from ...compiler.algebra.averages import Polynomial
from ...factors.arrays import Array, Exponent
from ...factors.moments import Real
from ...factors.scalars import covariance, expectation

Powers = dict[tuple, Exponent]  # atoms by key, with their exponents


def polynomial(rule: Polynomial, *found: PyTree) -> Real:
    """Mean and variance in one instance, from the data of the polynomial and then its numbers."""
    count = len(rule.data)
    values, numbers = iter(found[:count]), dict(zip(rule.keys, found[count:], strict=True))
    products = {frozenset(product.items()): product for product in rule.products}
    scales: dict[frozenset, Array | float] = dict.fromkeys(products, 0.0)  # like terms are one
    for size, product in zip(rule.factors, rule.products, strict=True):
        scales[frozenset(product.items())] += math.prod(itertools.islice(values, size), start=1.0)
    mean = sum((scales[p] * _mean(numbers, product) for p, product in products.items()), start=jnp.zeros(()))
    variance = sum(
        (1.0 if p == q else 2.0) * scales[p] * scales[q] * _covariance(numbers, products[p], products[q])
        for p, q in _sharing(products)
    )
    mean = jnp.asarray(mean)
    return Real(mean, variance + jnp.zeros_like(mean))


def _sharing(products: dict[frozenset, Powers]) -> Iterator[tuple[frozenset, frozenset]]:
    """Each product with itself, and the pairs of those that share a number: the only ones with a covariance."""
    holders: dict[tuple, list[frozenset]] = {}
    for p, product in products.items():
        partners = dict.fromkeys(q for key in product for q in holders.get(key, ()))
        yield from ((p, q) for q in partners)
        if product:
            yield p, p
        for key in product:
            holders.setdefault(key, []).append(p)


def _mean(numbers: dict, product: Powers) -> Array | float:
    total = 1.0
    for key, exponent in product.items():
        total = total * expectation(numbers[key], exponent)
    return total


def _covariance(numbers: dict, left: Powers, right: Powers) -> Array | float:
    """Cov of two products of independent numbers, of which they share some."""
    apart, together = 1.0, 0.0  # E l E r and Cov(l, r) of the factors so far
    for key in dict.fromkeys([*left, *right]):
        n, k = left.get(key, 0), right.get(key, 0)
        own = 1.0
        for exponent in (n, k):
            own = own * expectation(numbers[key], exponent) if exponent else own
        cross = covariance(numbers[key], n, k) if n and k else 0.0
        together = together * (own + cross) + apart * cross
        apart = apart * own
    return together
