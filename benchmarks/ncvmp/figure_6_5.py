"""Figure 6.5: the KL divergence of the Bernoulli-from-log-odds factor sigma(x) in q(x) = N(m, v).

sigma(x) alone has no integral: the prior of x is N(0, 10), as in Figure 6.6. The surface is convex in (m, sd) (Lemma 3
of the thesis); on it stand the lowest point by a direct search, NCVMP by quadrature, the two bounds, and the exact
mean and variance. The thesis shows a picture only; beside ours are an independent program's numbers.
"""

import common

# isort: split
import numpy as np
from scipy.optimize import minimize
from scipy.stats import norm

import cavity as cv  # pyright: ignore[reportMissingImports]

PRIOR = 10.0
BOUNDS = {"NCVMP, quadrature": "quadrature", "tilted bound": "tilted", "quadratic bound": "jaakkola"}
KNOWN = {
    "exact moments": (2.206, 5.134),
    "NCVMP, quadrature": (2.187, 4.900),
    "tilted bound": (2.245, 3.648),
    "quadratic bound": (1.922, 3.844),
}
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(150)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


def log_joint(x):
    return -np.logaddexp(0.0, -x) + norm.logpdf(x, 0.0, np.sqrt(PRIOR))


LINE = np.linspace(-30.0, 60.0, 200_001)
MASS = np.exp(log_joint(LINE))
LOG_Z = np.log(MASS.sum() * (LINE[1] - LINE[0]))


def divergence(m, v):
    """KL(N(m, v) || sigma(x) N(x; 0, 10) / Z)."""
    x = np.asarray(m)[..., None] + np.sqrt(np.asarray(v))[..., None] * NODES
    return -0.5 * np.log(2.0 * np.pi * np.e * v) - log_joint(x) @ WEIGHTS + LOG_Z


def solution(bound):
    """q(x) by NCVMP with this bound, and the bound on log Z."""
    m = cv.Model("Bernoulli from log odds")
    x = m.random("x", cv.gaussian(0.0, variance=PRIOR))
    m.random("y", cv.bernoulli(cv.logistic(x)))
    posterior = cv.infer(m, {"y": True}, method=cv.ncvmp(bound=bound), tolerance=1e-10)
    return float(posterior["x"].mean), float(posterior["x"].variance), posterior.log_evidence


def main():
    common.options(__doc__).parse_args()
    best = minimize(lambda u: divergence(u[0], np.exp(u[1])), [0.0, 0.0], method="Nelder-Mead", tol=1e-13).x
    mean = float(LINE @ MASS / MASS.sum())
    points = {"exact moments": (mean, float((LINE - mean) ** 2 @ MASS / MASS.sum()), LOG_Z)}
    points["lowest KL, direct search"] = best[0], np.exp(best[1]), LOG_Z - divergence(best[0], np.exp(best[1]))
    points |= {name: solution(bound) for name, bound in BOUNDS.items()}
    rows = [
        [name, m, v, float(divergence(m, v)), evidence, "{} {}".format(*KNOWN.get(name, ("", "")))]
        for name, (m, v, evidence) in points.items()
    ]
    columns = ["", "m", "v", "KL", "log Z or bound", "known m, v"]
    common.table("sigma(x) N(x; 0, 10)", columns, rows)
    ours, lowest = points["NCVMP, quadrature"], points["lowest KL, direct search"]
    print(f"ours from the lowest point: {max(abs(a - b) for a, b in zip(ours[:2], lowest[:2], strict=True)):.1e}")
    m, sd = np.meshgrid(np.linspace(-4.0, 8.0, 60), np.linspace(0.2, 4.5, 60))
    surface = divergence(m, sd**2)
    print(
        f"convex in (m, sd) at all of {surface[1:-1, 1:-1].size} points: {'yes' if _convex(surface, m, sd) else 'no'}"
    )
    figure, axis = common.plt.subplots(figsize=(6, 4.5))
    figure.colorbar(axis.contourf(m, sd**2, np.log10(np.maximum(surface, 1e-3)), 30), label="log10 KL")
    for name, (at, variance, _) in points.items():
        axis.plot(at, variance, "*" if "lowest" in name else "o", ms=9 if "lowest" in name else 5, label=name)
    axis.set(xlabel="m", ylabel="v", title="sigma(x) with prior N(0, 10)")
    axis.legend(fontsize=7)
    common.save("figure_6_5", figure, points=points)


def _convex(z, m, sd):
    """Whether the Hessian by differences is positive definite inside the grid."""
    h, k = m[0, 1] - m[0, 0], sd[1, 0] - sd[0, 0]
    mm = (z[1:-1, 2:] - 2.0 * z[1:-1, 1:-1] + z[1:-1, :-2]) / h**2
    ss = (z[2:, 1:-1] - 2.0 * z[1:-1, 1:-1] + z[:-2, 1:-1]) / k**2
    ms = (z[2:, 2:] - z[2:, :-2] - z[:-2, 2:] + z[:-2, :-2]) / (4.0 * h * k)
    return bool(np.all(mm > 0.0) and np.all(mm * ss - ms**2 > 0.0))


if __name__ == "__main__":
    main()
