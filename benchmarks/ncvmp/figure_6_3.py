"""Figure 6.3b: the local KL divergence of the factor y = exp(x) in q(x) = N(m, v), with Gamma(2, 1) coming into y.

f(x) = Gamma(exp x; 2, 1) is a density of x up to a constant, so the surface has a lowest point: where b exp(m + v/2) =
a - 1 and v = 1 / (a - 1), that is (-1/2, 1). The thesis shows a picture only. Ours comes from the factor as the models
use it: two observations y = 1 of N(0, precision = exp(x)) say Gamma(2, 1) of the precision, and x has a prior of
variance 1000, whose effect on the lowest point is known.
"""

import common

# isort: split
import jax  # pyright: ignore[reportMissingImports]
import numpy as np
from scipy.optimize import fsolve
from scipy.special import digamma, gammaln
from scipy.stats import norm

import cavity as cv  # pyright: ignore[reportMissingImports]
from cavity.factors.families import Gamma  # pyright: ignore[reportMissingImports]

A, B = 2.0, 1.0
PRIOR = 1000.0


def divergence(m, v):
    """KL(N(m, v) || f / its integral): minus the entropy, minus S of equation 6.38, plus the log integral of f."""
    s = (A - 1.0) * m - B * np.exp(m + 0.5 * v) - gammaln(A) + A * np.log(B)
    return -0.5 * np.log(2.0 * np.pi * np.e * v) - s + gammaln(A - 1.0) - gammaln(A) + np.log(B)


def by_quadrature(m, v):
    """The same on a grid, from the densities alone."""
    x = np.linspace(m - 12.0 * np.sqrt(v), m + 12.0 * np.sqrt(v), 20001)
    step = x[1] - x[0]
    log_p = (A - 1.0) * x - B * np.exp(x) - gammaln(A - 1.0) + (A - 1.0) * np.log(B)
    q = norm.pdf(x, m, np.sqrt(v))
    return float(np.sum(q * (norm.logpdf(x, m, np.sqrt(v)) - log_p)) * step)


def lowest(prior_precision):
    """(m, v) of the lowest KL when x also has the prior N(0, 1 / prior_precision); -1/2, 1 without."""

    def slopes(u):
        e = B * np.exp(u[0] + 0.5 * np.exp(u[1]))
        return [A - 1.0 - e - prior_precision * u[0], np.exp(-u[1]) - e - prior_precision]

    m, log_v = fsolve(slopes, [0.0, 0.0])
    return float(m), float(np.exp(log_v))


def solution():
    """q(x) by NCVMP."""
    m = cv.Model("exponential factor")
    x = m.random("x", cv.gaussian(0.0, variance=PRIOR))
    m.random("y", cv.gaussian(0.0, precision=cv.exp(x)), plates=m.plate("n"))
    return cv.infer(m, {"y": [1.0, 1.0]}, method="ncvmp", tolerance=1e-10)


def outgoing(m, v):
    """The message to y: the Gamma with E y = exp(m + v/2) and E log y = m."""
    with jax.enable_x64(True):
        found = Gamma.from_stats((np.exp(m + 0.5 * v), m))
        return float(found.shape), float(found.rate)


def main():
    common.options(__doc__).parse_args()
    posterior = solution()
    q = posterior["x"]
    m, v = float(q.mean), float(q.variance)
    exact, there = lowest(0.0), lowest(1.0 / PRIOR)
    rows = [
        ["lowest point", *exact, divergence(*exact), by_quadrature(*exact)],
        ["with the prior", *there, divergence(*there), by_quadrature(*there)],
        ["NCVMP, ours", m, v, divergence(m, v), by_quadrature(m, v)],
    ]
    common.table("KL(q || f) of the factor y = exp(x), Gamma(2, 1) into y", ["", "m", "v", "KL", "by quadrature"], rows)
    print(f"distance of ours from the lowest point with the prior: {max(abs(m - there[0]), abs(v - there[1])):.1e}")
    print(f"{posterior.diagnosis}")
    shape, rate = outgoing(m, v)
    left = max(abs(shape / rate - np.exp(m + 0.5 * v)), abs(digamma(shape) - np.log(rate) - m))
    print(f"message to y: Gamma({shape:.6f}, {rate:.6f}), both statistics of q to {left:.1e}")
    m_grid, v_grid = np.meshgrid(np.linspace(-3.0, 2.0, 200), np.linspace(0.05, 4.0, 200))
    surface = divergence(m_grid, v_grid)
    figure, axis = common.plt.subplots(figsize=(5.5, 4.5))
    shape = axis.contourf(m_grid, v_grid, np.log10(surface), 30)
    figure.colorbar(shape, label="log10 KL")
    axis.plot(*exact, "w*", ms=12, label="lowest point")
    axis.plot(m, v, "rx", label="NCVMP")
    axis.set(xlabel="m", ylabel="v", title="y = exp(x), Gamma(2, 1) into y")
    axis.legend()
    common.save("figure_6_3", figure, m=m, v=v, exact=exact, kl=divergence(m, v))


if __name__ == "__main__":
    main()
