"""When undamped EP converges: the criterion of the thesis (section 5.5) and the corrected one, on pairs of factors.

Two factors f1(x) f2(x), q Gaussian. At a fixed point the message of a factor moves with its cavity by
G' = cov_q(u)^-1 cov_tilted(u) - I; for a tilted distribution with skewness s and excess kurtosis k (mean 0, variance 1)
that is [[0, -s/2], [-s, k/2]]. The thesis asks for |det G'| < 1, that is |s| < sqrt(2). What decides is the spectral
radius of G2' G1': |k| + s^2 < 2 where both factors are the same, |s| < sqrt(2) and |k| < 2 + s^2 where one mirrors the
other. Checked by running EP, undamped, from a small step beside the fixed point, on random mixtures of two Gaussians.
"""

import common

# isort: split
import matplotlib.pyplot as plt
import numpy as np

STATED = [(0.5, 2.5, -0.125, 1.34), (1.3, 0.5, -0.845, 1.053)]  # s, k, the determinant and the eigenvalue of the errata
FIXED = np.array([0.0, 0.5])  # natural parameters of either message: each N(0, 2), and q their product, N(0, 1)
STEP, FAR, NEAR = 1e-4, 1e-2, 1e-7  # of the start from the fixed point; what counts as gone, and as arrived
MARGIN = 0.02  # spectral radii nearer to one than this decide too slowly to be run


def mixture(rng):
    """Weights, means and variances of two Gaussians whose mixture has mean 0 and variance 1."""
    weights = rng.dirichlet([1.0, 1.0])
    means, variances = rng.normal(size=2) * rng.choice([0.3, 2.0]), np.exp(2.0 * rng.normal(size=2))
    means -= weights @ means
    scale = weights @ (variances + means**2)
    return weights, means / np.sqrt(scale), variances / scale


def shape(weights, means, variances):
    """Skewness and excess kurtosis."""
    third = weights @ (means**3 + 3.0 * means * variances)
    fourth = weights @ (means**4 + 6.0 * means**2 * variances + 3.0 * variances**2)
    return third, fourth - 3.0


def slope(s, k):
    """G' in the statistics (x, x^2), in which it is similar to the matrix above."""
    tilted = np.array([[1.0, s], [s, k + 2.0]])  # of x and x^2
    return np.linalg.solve(np.diag([1.0, 2.0]), tilted) - np.eye(2)


def message(tilted, cavity):
    """The message of the factor tilted / N(0, 2) given a cavity, natural parameters (mean over variance, precision).

    None where the tilted distribution has no moments.
    """
    weights, means, variances = tilted
    change = cavity - FIXED
    precision = 1.0 / variances + change[1]
    if precision.min() <= 0:
        return None
    linear = means / variances + change[0]
    logs = np.log(weights) - 0.5 * np.log(variances * precision) + 0.5 * (linear**2 / precision - means**2 / variances)
    weights = np.exp(logs - logs.max()) / np.exp(logs - logs.max()).sum()
    mean = weights @ (linear / precision)
    variance = weights @ (1.0 / precision + (linear / precision - mean) ** 2)
    return np.array([mean / variance, 1.0 / variance]) - cavity


def runs_home(first, second, most=20_000):
    """Whether undamped EP comes back to the fixed point from a small step beside it; None if it is not decided."""
    here = FIXED + STEP * np.array([0.6, 0.8])
    for _ in range(most):
        there = message(first, here)
        here = None if there is None else message(second, there)
        if here is None or np.linalg.norm(here - FIXED) > FAR:
            return False
        if np.linalg.norm(here - FIXED) < NEAR:
            return True
    return None


def mirrored(tilted):
    weights, means, variances = tilted
    return weights, -means, variances


def radius(matrix):
    return np.abs(np.linalg.eigvals(matrix)).max()


def experiment(count):
    """For both kinds of pair: skewness, excess kurtosis, spectral radius, determinant, and whether EP came back."""
    rng = np.random.default_rng(0)
    found = {"the same": [], "mirrored": []}
    while min(map(len, found.values())) < count:
        tilted = mixture(rng)
        s, k = shape(*tilted)
        for kind, other in (("the same", tilted), ("mirrored", mirrored(tilted))):
            both = slope(*shape(*other)) @ slope(s, k)
            if len(found[kind]) == count or abs(radius(both) - 1.0) < MARGIN:
                continue
            back = runs_home(tilted, other)
            if back is not None:
                found[kind].append((s, k, radius(both), abs(np.linalg.det(slope(s, k))), back))
    return {kind: np.array(rows, float) for kind, rows in found.items()}


def closed_form(kind, s, k):
    """The corrected criterion in skewness and kurtosis."""
    return np.abs(k) + s**2 < 2 if kind == "the same" else (np.abs(s) < np.sqrt(2)) & (np.abs(k) < 2 + s**2)


def picture(found):
    """Runs in the plane of skewness and kurtosis, over the region where they should come back."""
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.5), sharey=True)
    s, k = np.meshgrid(np.linspace(-3, 3, 400), np.linspace(-2.2, 8, 400))
    for axis, (kind, rows) in zip(axes, found.items(), strict=True):
        axis.contourf(s, k, closed_form(kind, s, k), [0.5, 1.5], colors=["#cfe3f5"])
        axis.fill_between(s[0], -2.2, s[0] ** 2 - 2, color="0.85")  # no distribution is there
        for edge in (-np.sqrt(2), np.sqrt(2)):
            axis.axvline(edge, color="C3", linestyle="--", label="thesis: |s| < sqrt 2" if edge > 0 else None)
        back = rows[:, 4] > 0
        axis.plot(*rows[back, :2].T, "k.", markersize=4, label="EP converged")
        axis.plot(*rows[~back, :2].T, "x", color="C1", markersize=4, label="EP went away")
        axis.set(title=f"two factors, {kind}", xlabel="skewness", xlim=(-3, 3), ylim=(-2.2, 8))
        axis.legend(fontsize=8, loc="upper right")
    axes[0].set_ylabel("excess kurtosis")
    return figure


def main():
    arguments = common.options(__doc__).parse_args()
    found = experiment(60 if arguments.quick else 500)
    common.table(
        "Points of the errata: |det G'| < 1 would promise convergence, and an eigenvalue is larger than one",
        ["s, k", "det, stated", "ours", "eigenvalue, stated", "ours"],
        [(f"{s:g}, {k:g}", det, np.linalg.det(slope(s, k)), value, radius(slope(s, k))) for s, k, det, value in STATED],
    )
    rows, wrong = [], 0
    for kind, runs in found.items():
        s, k, size, det, back = runs.T
        back = back > 0
        mistakes = [np.sum((det < 1) != back), np.sum((size < 1) != back), np.sum(closed_form(kind, s, k) != back)]
        wrong += sum(mistakes[1:])
        rows.append((kind, str(len(runs)), f"{back.sum()}", *map(str, mistakes)))
    columns = ["factors", "pairs", "converged", "thesis wrong", "spectral radius wrong", "closed form wrong"]
    common.table("Undamped EP near a fixed point, and what the criteria foretell", columns, rows)
    common.save("ep_convergence", picture(found), columns=["s", "k", "radius", "determinant", "converged"], **found)
    if wrong:
        raise SystemExit(f"The spectral radius, or its closed form, was wrong on {wrong} pairs.")


if __name__ == "__main__":
    main()
