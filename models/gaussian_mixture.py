"""A mixture of Gaussians whose covariances are full, diagonal, spherical or shared."""

import numpy as np

import cavity as cv  # pyright: ignore[reportMissingImports]

from ..factors.calls import call_checked

COVARIANCES = ("full", "diag", "spherical", "tied")


@call_checked
def gaussian_mixture(
    components: int,
    dimension: int,
    covariance: str = "full",
    concentration: float = 1.0,
    mean_precision: float = 0.01,
    freedom: float | None = None,
    spread: float | None = None,
) -> cv.Model:
    """x_i ~ N(mean_z, covariance_z) with z = z_i ~ Categorical(weights): centre and scale the data.

    `components` is the number of values of z, `dimension` the length of each x. `covariance` is "full", "diag"
    (diagonal), "spherical" (a multiple of the identity) or "tied" (one full matrix for all). Priors: weights ~
    Dirichlet(`concentration`); given the precision of a component, its mean is N(0, 1 / (`mean_precision` precision));
    a precision matrix is Wishart of `freedom` degrees of freedom (above dimension + 1; dimension + 2 by default) and
    the scale I / `spread`, and that of a number is Gamma(freedom / 2, spread / 2). The default of `spread` is
    components^(-2 / dimension): covariances are expected to shrink with their number. Random: `weights`, `mean`,
    `precision`, `z` (n) and `x` (n, dimension), which is usually observed. Returns the model; ModelError for another
    `covariance`. Source: fraley2007bayesian.
    """
    if covariance not in COVARIANCES:
        raise cv.ModelError(f"covariance= is one of {', '.join(map(repr, COVARIANCES))}; found {covariance!r}.")
    m = cv.Model(f"{covariance} Gaussian mixture")
    k, n = m.plate("component", components), m.plate("n")
    dof = dimension + 2.0 if freedom is None else freedom
    size = components ** (-2.0 / dimension) if spread is None else spread
    weights = m.random("weights", cv.dirichlet(np.full(components, concentration)))
    z = m.random("z", cv.categorical(weights), plates=n)
    number, matrix = cv.gamma(0.5 * dof, 0.5 * size), cv.wishart(dof=dof, scale=np.eye(dimension) / size)
    if covariance in ("diag", "spherical"):
        d = m.plate("dimension", dimension)
        precision = m.random("precision", number, plates=(k, d) if covariance == "diag" else k)
        mean = m.random("mean", cv.gaussian(0.0, precision=mean_precision * precision), plates=(k, d))
        m.random("x", cv.gaussian(mean[z], precision=precision[z]), plates=(n, d))
        return m
    precision = m.random("precision", matrix, plates=() if covariance == "tied" else k)
    prior = cv.vector_gaussian(np.zeros(dimension), precision=mean_precision * precision)
    mean = m.random("mean", prior, plates=k)
    m.random("x", cv.vector_gaussian(mean[z], precision=precision if covariance == "tied" else precision[z]), plates=n)
    return m
