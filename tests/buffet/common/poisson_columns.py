"""Checks of priors whose numbers of columns of each kind are independent Poisson variables."""

import itertools

import jax
import numpy as np
from scipy import stats


def kinds_of_bits(rows):
    """All columns of zeros and ones that are not empty."""
    return [np.array(column) for column in itertools.product((0, 1), repeat=rows) if any(column)]


def rates_of(prior, kinds):
    """Expected numbers of columns of each kind, from the log probabilities of matrices of one column and of none."""
    rows = len(kinds[0])
    empty = prior.log_probability(np.zeros((rows, 0)))
    return np.exp([prior.log_probability(kind[:, None]) - empty for kind in kinds])


def p_values_of_draws(matrices, kinds, rates):
    """Of the totals of each kind, and of the number of columns, whose variance is its mean where kinds do not depend.

    Kinds that are expected less than five times are one.
    """
    index = {kind.tobytes(): k for k, kind in enumerate(kinds)}
    found = np.zeros((len(matrices), len(kinds) + 1))
    for row, matrix in zip(found, matrices, strict=True):
        for column in np.asarray(matrix).T.astype(kinds[0].dtype):
            row[index.get(np.ascontiguousarray(column).tobytes(), len(kinds))] += 1
    expected = np.append(rates, 0.0) * len(matrices)
    rare = expected < 5.0
    observed = np.append(found[:, ~rare].sum(axis=0), found[:, rare].sum())
    expected = np.append(expected[~rare], expected[rare].sum())
    several = expected > 0.0
    assert not observed[~several].any(), "columns that have no probability"
    square = ((observed - expected)[several] ** 2 / expected[several]).sum()
    number = found.sum(axis=1)
    dispersion = (len(number) - 1) * number.var(ddof=1) / number.mean()
    tail = stats.chi2.sf(dispersion, len(number) - 1)
    return stats.chi2.sf(square, several.sum()), 2.0 * min(tail, 1.0 - tail)


def keys(number, seed=0):
    return jax.random.split(jax.random.key(seed), number)
