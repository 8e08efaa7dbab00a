"""How probable it is that any row has a feature after the first so many sticks of the Indian buffet process.

It bounds how far the law of the data moves where later features are left out: a fourth of the integral of
`|p_K(x) - p(x)|` is at most this probability. The probability itself is a simple integral; two bounds are closed forms.
"""

from __future__ import annotations

import itertools

import numpy as np
from scipy import integrate
from scipy.special import gammaln

from ..checks import positive, whole


def truncation_probability(rows: int, mass: float, places: int) -> float:
    """P(some row has a feature after the first `places`), exactly.

    Given the last stick's product x, `-log x ~ Gamma(places, rate mass)`, the weights of later features are a Poisson
    process on (0, x) of rate `mass / w`, so that none has an owner with probability `exp(-mass sum over j = 1 .. rows
    of (1 - (1 - x)^j) / j)`; integrated over x by quadrature.

    Args:
        rows: their number.
        mass: of the Indian buffet process, positive.
        places: sticks that are kept, at least 1.

    Raises:
        ModelError: a mass that is not positive.
        DataError: numbers that are not whole.

    Source: doshivelez2009variational.
    """
    rows, mass, places = whole("rows", rows), positive("mass", mass), whole("places", places)
    j = np.arange(1, rows + 1)

    def integrand(depth: float) -> float:
        exposed = -np.expm1(j * np.log1p(-np.exp(-depth))) / j if depth > 0.0 else 1.0 / j
        log_density = places * np.log(mass) + (places - 1) * np.log(depth) - mass * depth - gammaln(places)
        return -np.expm1(-mass * exposed.sum()) * np.exp(log_density)

    middle, spread = places / mass, np.sqrt(places) / mass
    ends = [0.0, *(max(middle + step * spread, 0.0) for step in (-8, -4, -2, 0, 2, 4, 8)), middle + 40.0 * spread]
    pieces = [(low, high) for low, high in itertools.pairwise(ends) if high > low]
    return float(sum(integrate.quad(integrand, low, high, epsabs=0.0, epsrel=1e-10)[0] for low, high in pieces))


def truncation_bound(rows: int, mass: float, places: int) -> float:
    """A bound of `truncation_probability`, `1 - exp(-rows mass (mass / (1 + mass))^places)`.

    A row has Poisson(`mass x`) later features given the last stick's product x, rows share them, and the logarithm is
    concave; the mean of x is `(mass / (1 + mass))^places`. Close where it is small.

    Args:
        rows: their number.
        mass: of the Indian buffet process, positive.
        places: sticks that are kept, at least 1.

    Raises:
        ModelError: a mass that is not positive.
        DataError: numbers that are not whole.

    Source: doshivelez2009variational.
    """
    rows, mass, places = whole("rows", rows), positive("mass", mass), whole("places", places)
    return float(-np.expm1(-rows * mass * (mass / (1.0 + mass)) ** places))


def truncation_log_bound(rows: int, mass: float, places: int) -> float:
    """A looser one, `1 - exp(-2 rows (mass + 1) (mass / (1 + mass))^places)`, by the series of the logarithm.

    Its exponent takes the most that the series `sum_r (mass / (mass + r))^(places - 1) mass / r^2` can be.

    Args:
        rows: their number.
        mass: of the Indian buffet process, positive.
        places: sticks that are kept, at least 1.

    Raises:
        ModelError: a mass that is not positive.
        DataError: numbers that are not whole.

    Source: doshivelez2009variational.
    """
    rows, mass, places = whole("rows", rows), positive("mass", mass), whole("places", places)
    return float(-np.expm1(-2.0 * rows * (mass + 1.0) * (mass / (1.0 + mass)) ** places))


def features_needed(rows: int, mass: float, probability: float = 0.01) -> int:
    """The fewest places whose `truncation_bound` is at most this probability.

    Args:
        rows: their number.
        mass: of the Indian buffet process, positive.
        probability: between 0 and 1.

    Raises:
        ModelError: a mass or probability that is not in range.
        DataError: a number of rows that is not whole.
    """
    rows, mass, share = whole("rows", rows), positive("mass", mass), positive("probability", probability)
    wanted = np.log(-np.log1p(-min(share, 1.0 - 1e-15)) / (rows * mass)) / np.log(mass / (1.0 + mass))
    return max(1, int(np.ceil(wanted)))
