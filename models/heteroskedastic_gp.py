"""Heteroskedastic Gaussian process regression: one process is the mean, another the logarithm of the precision."""

import cavity as cv  # pyright: ignore[reportMissingImports]

from ..factors.calls import call_checked

KERNEL = ("scale", "variance", "noise_scale", "noise_variance")
"""The inputs that `cv.learn` fits by the gradient of the evidence."""


@call_checked
def heteroskedastic_gp(features: int | None = None) -> cv.Model:
    """y_i ~ N(f(x_i), precision = exp(g(x_i))), f ~ GP(0, k_f), g = m + l, m ~ N(-1, 1), l ~ GP(0, k_l).

    Both kernels are squared exponentials, variance exp(-|x - x'|^2 / (2 scale^2)). The exponential is a precision, one
    over the variance of the noise. The offset m lets the noise be small everywhere; it is part of the process g ~
    GP(-1, k_l + 1), so that the posterior of both together has a full covariance. Standardise x and y.
    `features` is the length of each x; None for numbers. Inputs: `x` (row), and the positive numbers `scale` and
    `variance` of k_f, `noise_scale` and `noise_variance` of k_l, which `cv.learn(program, data, KERNEL)` fits. Random:
    `f` (row), `log_precision` (row), which is g, and `y` (row), which is usually observed. Returns the model.
    Source: knowles2012thesis, adams2008product.
    """
    m = cv.Model("heteroskedastic Gaussian process")
    row = m.plate("row")
    x = m.input("x", cv.real if features is None else cv.vector(features), plates=row)
    scale, variance, noise_scale, noise_variance = (m.input(name, cv.positive) for name in KERNEL)
    k_f = cv.kernels.squared_exponential(scale, variance)
    k_l = cv.kernels.squared_exponential(noise_scale, noise_variance)
    f = m.random("f", cv.gaussian_process(x, k_f))
    g = m.random("log_precision", cv.gaussian_process(x, k_l + cv.kernels.constant(1.0), mean=-1.0))
    m.random("y", cv.gaussian(f, precision=cv.exp(g)))
    return m
