"""A mixture of Gaussians with unknown weights, means and precisions."""

import numpy as np

import cavity as cv  # pyright: ignore[reportMissingImports]

from ..factors.calls import call_checked


@call_checked
def mixture(components: int, dimension: int) -> cv.Model:
    """x_i ~ N(mean_z, precision_z^-1) with z = z_i ~ Categorical(weights): standardise the data.

    `components` is the number of values of z, `dimension` the length of each x. Priors: weights ~ Dirichlet(1), mean_k
    ~ N(0, 10 I), precision_k ~ Wishart with E = I and dimension + 2 degrees of freedom. Random: `weights`, `mean`
    (component, dimension), `precision` (component, dimension, dimension), `z` (n), `x` (n, dimension), which is usually
    observed. Components that the data do not need keep their priors. Infer with `restarts=`. Returns the model.
    Source: attias2000variational.
    """
    m = cv.Model("mixture")
    k, n = m.plate("component", components), m.plate("n")
    identity, dof = np.eye(dimension), dimension + 2.0
    weights = m.random("weights", cv.dirichlet(np.ones(components)))
    mean = m.random("mean", cv.vector_gaussian(np.zeros(dimension), covariance=10.0 * identity), plates=k)
    precision = m.random("precision", cv.wishart(dof=dof, scale=identity / dof), plates=k)
    z = m.random("z", cv.categorical(weights), plates=n)
    m.random("x", cv.vector_gaussian(mean[z], precision=precision[z]))
    return m
