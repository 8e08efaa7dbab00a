"""The shape and the rate of a Gamma distribution from draws."""

import cavity as cv  # pyright: ignore[reportMissingImports]

from ..factors.calls import call_checked


@call_checked
def gamma_estimation(shape: tuple[float, float] = (1.0, 1.0), rate: tuple[float, float] = (1.0, 1.0)) -> cv.Model:
    """x_i ~ Gamma(shape, rate), density rate^shape x^(shape - 1) exp(-rate x) / gamma(shape), mean shape / rate.

    Priors: shape ~ Gamma(`shape`), rate ~ Gamma(`rate`), each given as (shape, rate), both positive. Random: `shape`,
    `rate`, `x` (n), which is usually observed. Shape and rate are strongly correlated given draws, and independent in
    the plain answer: accurate means, and standard deviations up to five times too small. `infer(..., accuracy="best")`
    keeps them together, q(shape) q(rate | shape): the shape on a grid, the rate exactly at each of its some fifty
    points, which leaves no error. Returns the model. Source: knowles2012thesis.
    """
    m = cv.Model("gamma estimation")
    n = m.plate("n")
    alpha = m.random("shape", cv.gamma(*shape))
    beta = m.random("rate", cv.gamma(*rate))
    m.random("x", cv.gamma(alpha, beta), plates=n)
    return m
