"""Features that are related: weights of an Indian buffet's features diffuse along a genealogy of the features.

Which rows have which features is an Indian buffet; how much of a feature a row has are real numbers, which for related
features are alike. The features' genealogy is Kingman's coalescent: back in time, each two lines meet at rate one. It
is of the features that there are: this prior is not of infinitely many.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import jax
import numpy as np

from ....engine.mcmc.keys import generator
from ....factors.errors import DataError
from ..checks import binary, positive, whole
from ..prior import IndianBuffet
from ..sample import sample_restaurant

LOG_2PI = float(np.log(2.0 * np.pi))


class Genealogy(NamedTuple):
    """Who met when: nodes 0 .. n - 1 are the leaves, node n + i comes of meeting i.

    Attributes:
        pairs: (n - 1, 2) the two nodes that meet, in the order of time back from the leaves.
        ages: (n - 1,) how long before the leaves they do, increasing.
    """

    pairs: np.ndarray
    ages: np.ndarray


class RelatedFeatures(NamedTuple):
    """A draw.

    Attributes:
        matrix: (rows, features) booleans.
        weights: (rows, features) real numbers, also where the matrix has none; a row shows `matrix * weights`.
        genealogy: of the features.
    """

    matrix: np.ndarray
    weights: np.ndarray
    genealogy: Genealogy


def sample_coalescent(leaves: int, key: Any) -> Genealogy:
    """Kingman's coalescent: of i lines, two at random meet after an exponential time of rate `i (i - 1) / 2`.

    Args:
        leaves: at least 1.
        key: a key of `jax.random`.

    Source: kingman1982coalescent.
    """
    random, lines = generator(key), list(range(whole("leaves", leaves)))
    several = np.arange(leaves, 1, -1)
    ages = np.cumsum(random.standard_exponential(leaves - 1) / (0.5 * several * (several - 1.0)))
    pairs = np.zeros((leaves - 1, 2), dtype=np.int64)
    for meeting, pair in enumerate(pairs):
        pair[:] = sorted(lines.pop(random.integers(len(lines))) for _ in range(2))
        lines.append(leaves + meeting)
    return Genealogy(pairs, ages)


def log_coalescent(genealogy: Genealogy) -> float:
    """Log density of a genealogy, `- sum over i of i (i - 1) / 2 times how long there are i lines`.

    Args:
        genealogy: its leaves are told apart.

    Raises:
        DataError: ages that do not increase from 0.

    Source: kingman1982coalescent.
    """
    spans = np.diff(genealogy.ages, prepend=0.0)
    if (spans < 0.0).any():
        raise DataError(f"Ages of meetings increase from 0; found {genealogy.ages}.")
    several = np.arange(len(spans) + 1, 1, -1)
    return -float(np.sum(0.5 * several * (several - 1.0) * spans))


def shared_time(genealogy: Genealogy) -> np.ndarray:
    """(leaves, leaves): how long two leaves were one line since the last meeting of all, the covariance of what
    diffuses at rate one from there."""
    leaves = len(genealogy.ages) + 1
    below = [np.eye(leaves, dtype=bool)[leaf] for leaf in range(leaves)]
    age = np.zeros((leaves, leaves))
    for pair, when in zip(genealogy.pairs, genealogy.ages, strict=True):
        one, two = (below[node] for node in pair)
        age[np.ix_(one, two)] = age[np.ix_(two, one)] = when
        below.append(one | two)
    return (genealogy.ages[-1] if leaves > 1 else 0.0) - age


@dataclasses.dataclass(frozen=True)
class CoalescentWeights:
    """`matrix ~ IndianBuffet`, a coalescent over its features, and for each row weights that diffuse along it.

    The weights of a row are `N(0, first variance + rate shared_time)` given the genealogy, rows independent.

    Args:
        buffet: the prior of the matrix.
        first_variance: positive; of the weight at the features' last common ancestor.
        rate: positive; variance for each unit of time.

    Raises:
        ModelError: a parameter that is not a finite number above zero.

    Source: rai2008infinite, kingman1982coalescent.
    """

    buffet: IndianBuffet
    first_variance: float = 1.0
    rate: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "first_variance", positive("first_variance", self.first_variance))
        object.__setattr__(self, "rate", positive("rate", self.rate))

    def covariance(self, genealogy: Genealogy) -> np.ndarray:
        """(features, features) of one row's weights given the genealogy."""
        return self.first_variance + self.rate * shared_time(genealogy)

    def expected_covariance(self, features: int) -> tuple[float, float]:
        """Of a weight with itself, `first + rate 2 (1 - 1 / K)`, and with that of another feature: less by `rate`, as
        two lines meet after an exponential time of mean one, however many others there are."""
        own = self.first_variance + 2.0 * self.rate * (1.0 - 1.0 / whole("features", features))
        return own, own - self.rate

    def sample(self, rows: int, key: Any) -> RelatedFeatures:
        """Matrix, genealogy and weights; no column of the matrix is empty.

        Args:
            rows: how many rows.
            key: a key of `jax.random`.
        """
        keys = jax.random.split(key, 3)
        matrix = sample_restaurant(self.buffet, rows, keys[0])
        features = matrix.shape[1]
        if not features:
            return RelatedFeatures(matrix, np.zeros((rows, 0)), Genealogy(np.zeros((0, 2), np.int64), np.zeros(0)))
        genealogy = sample_coalescent(features, keys[1])
        weights = np.zeros((2 * features - 1, rows))
        random = generator(keys[2])
        weights[-1] = np.sqrt(self.first_variance) * random.standard_normal(rows)
        ages = np.append(np.zeros(features), genealogy.ages)
        for node in range(2 * features - 2, features - 1, -1):
            for child in genealogy.pairs[node - features]:
                spread = np.sqrt(self.rate * (ages[node] - ages[child]))
                weights[child] = weights[node] + spread * random.standard_normal(rows)
        return RelatedFeatures(matrix, weights[:features].T, genealogy)

    def log_probability(self, draw: RelatedFeatures) -> float:
        """Log density of all three, with features in their left order and those that are alike in an order at random.

        Args:
            draw: of one or more features, none of them empty.

        Raises:
            DataError: entries other than 0 and 1, or shapes that do not agree.
        """
        matrix, weights = binary(draw.matrix), np.asarray(draw.weights, dtype=np.float64)
        features = matrix.shape[1]
        if weights.shape != matrix.shape or len(draw.genealogy.ages) != max(features - 1, 0):
            raise DataError(
                f"Weights are shaped as the matrix, and a genealogy of K features has K - 1 meetings; found the shapes "
                f"{matrix.shape} and {weights.shape}, and {len(draw.genealogy.ages)} meetings."
            )
        found = self.buffet.log_probability(matrix)
        if not features:
            return found
        root = np.linalg.cholesky(self.covariance(draw.genealogy))
        white = np.linalg.solve(root, weights.T)
        normal = 0.5 * (white**2).sum() + len(matrix) * (np.log(np.diag(root)).sum() + 0.5 * features * LOG_2PI)
        return found + log_coalescent(draw.genealogy) - float(normal)
