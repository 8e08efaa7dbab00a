"""Priors of sparse numbers (figures 1.1 and 1.2 of the report), what shrinkage gains, and how features grow.

Densities and log densities of the normal, Laplace, Cauchy and horseshoe; two independent Student-t numbers of 0.05
degrees of freedom, whose mass is along the axes; the exact risk of James and Stein's estimator; and the number of
features against rows by discount. Prints what the report states beside ours.

    python benchmarks/buffet/prior_figures.py [--quick] [--seed 0] [--out FOLDER]
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import experiments
import harness

# isort: split
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from scipy import integrate, stats
from scipy.special import exp1

from cavity.models.buffet.structured import StableBeta
from cavity.models.sparse.james_stein import risk, shrunk


def horseshoe(x):
    """`exp(u) E1(u) / sqrt(2 pi^3)` with `u = x^2 / 2`: the closed form that the report says there is not."""
    u = 0.5 * np.square(x)
    series = (1.0 - 1.0 / np.maximum(u, 1.0) + 2.0 / np.maximum(u, 1.0) ** 2) / np.maximum(
        u, 1.0
    )  # where exp overflows
    return np.where(u < 500.0, np.exp(np.minimum(u, 500.0)) * exp1(np.minimum(u, 500.0)), series) / np.sqrt(
        2 * np.pi**3
    )


DENSITIES = {
    "normal": stats.norm.pdf, "Laplace": stats.laplace.pdf, "Cauchy": stats.cauchy.pdf, "horseshoe": horseshoe,
}  # fmt: skip


def student(random, size, freedom, scale=1.0):
    """By its mixture: precisions `Gamma(freedom / 2, rate freedom scale^2 / 2)`, in logs since many are near zero.

    Returns signs and log sizes: with 0.05 degrees of freedom sizes overflow.
    """
    shape = 0.5 * freedom
    log_gamma = np.log(random.standard_gamma(shape + 1.0, size)) + np.log(random.random(size)) / shape
    log_precision = log_gamma - np.log(shape * scale**2)
    normal = random.standard_normal(size)
    return np.sign(normal), np.log(np.abs(normal)) - 0.5 * log_precision


def densities():
    """Figure 1.2, and what its tails are."""
    x = np.linspace(-4.0, 4.0, 801)
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.5))
    for name, density in DENSITIES.items():
        with np.errstate(divide="ignore"):
            values = density(x)
        axes[0].plot(x, values, label=name)
        axes[1].plot(x, np.log(values), label=name)
    axes[0].set(ylim=(0.0, 0.8), xlabel="x", ylabel="density")
    axes[1].set(ylim=(-8.0, 1.0), xlabel="x", ylabel="log density")
    axes[0].legend(fontsize=8)
    figure.tight_layout()
    far = np.array([50.0, 100.0])
    rows = []
    for name in ("Cauchy", "horseshoe"):
        slope = np.diff(np.log(DENSITIES[name](far)))[0] / np.log(2.0)
        rows.append([f"slope of the log density of the {name}", "-2", slope])
    total = 2.0 * (integrate.quad(horseshoe, 0.0, 1.0)[0] + integrate.quad(horseshoe, 1.0, np.inf)[0])
    rows.append(["integral of the closed form of the horseshoe", "1", total])
    for at in (0.1, 1.0, 5.0):
        inside = float(horseshoe(at) * np.sqrt(2.0 * np.pi**3))
        rows.append(
            [f"horseshoe at {at:g} over log(1 + 2 / x^2), its upper bound", "about 1", inside / np.log1p(2 / at**2)]
        )
        rows.append(
            [f"  over log(1 + 4 / x^2) / 2, its lower bound, at {at:g}", "above 1", 2 * inside / np.log1p(4 / at**2)]
        )
    return figure, rows


def along_the_axes(random, draws):
    """Figure 1.1: two Student-t numbers, and for comparison two normal ones."""
    sign, log_size = student(random, (draws, 2), 0.05)
    larger, smaller = log_size.max(axis=1), log_size.min(axis=1)
    normal = np.sort(np.log(np.abs(random.standard_normal((draws, 2)))), axis=1)
    figure, axes = plt.subplots(figsize=(4.5, 4.5))
    inside = larger < np.log(5.0)
    axes.plot(*(sign[inside] * np.exp(log_size[inside])).T, ".", ms=2)
    axes.set(xlim=(-5.0, 5.0), ylim=(-5.0, 5.0), xlabel="x", ylabel="y")
    figure.tight_layout()
    shares = [np.mean(larger - smaller > np.log(100.0)), np.mean(normal[:, 1] - normal[:, 0] > np.log(100.0))]
    one = student(random, 10 * draws, 3.0, 0.5)
    distance = stats.kstest(one[0] * np.exp(one[1]), stats.t(3.0, scale=0.5).cdf).pvalue
    return figure, [
        ["one of two t numbers of 0.05 degrees is 100 times the other", "often", shares[0]],
        ["  of two normal numbers", "seldom", shares[1]],
        ["p value of the mixture against the density, 3 degrees", "not small", distance],
    ]


def shrinkage(random, draws):
    """Section 1.4: the risk by the length of the means, exactly and by draws."""
    dimensions, lengths = 10, np.linspace(0.0, 10.0, 41)
    figure, axes = plt.subplots(figsize=(5, 3.5))
    for times, name in ((None, "d - 2: James and Stein"), (9.0, "d - 1, as printed"), (10.0, "d: the likeliest")):
        axes.plot(lengths, [risk(length, dimensions, times) for length in lengths], label=name)
    axes.axhline(dimensions, color="0.6", lw=0.8, label="the values themselves")
    axes.set(xlabel="length of the means", ylabel="expected squared error", ylim=(0.0, 11.0))
    axes.legend(fontsize=8)
    rows = []
    for length in (0.0, 2.0, 5.0, 10.0):
        theta = np.append(np.zeros(dimensions - 1), length)
        x = theta + random.standard_normal((draws, dimensions))
        found = np.mean(np.sum((shrunk(x) - theta) ** 2, axis=1))
        axes.plot(length, found, "k.", ms=5)
        rows.append([f"risk of ten means of length {length:g}, draws {found:.3f}", "< 10", risk(length, dimensions)])
    figure.tight_layout()
    return figure, rows


def growth():
    """How many features so many rows have, by discount: the power law of the process of three parameters."""
    counts = np.unique(np.geomspace(1, 10_000, 60).astype(int))
    figure, axes = plt.subplots(figsize=(5, 3.5))
    rows = []
    for discount in (0.0, 0.3, 0.6, 0.9):
        expected = np.cumsum(StableBeta(2.0, 1.0, discount).new_feature_rates(10_000))
        axes.loglog(counts, expected[counts - 1], label=f"discount {discount:g}")
        slope = np.log(expected[-1] / expected[999]) / np.log(10.0)
        rows.append([f"power of growth from 1000 to 10000 rows, discount {discount:g}", f"{discount:g}", slope])
    axes.set(xlabel="rows", ylabel="expected features")
    axes.legend(fontsize=8)
    figure.tight_layout()
    return figure, rows


def main():
    parser = experiments.options(__doc__)
    parser.add_argument("--seed", type=int, default=0, help="of the random numbers")
    parser.add_argument("--out", type=Path, default=harness.RESULTS / "buffet", help="folder of numbers and pictures")
    arguments = parser.parse_args()
    random, draws = np.random.default_rng(arguments.seed), 2_000 if arguments.quick else 20_000
    parts = {
        "sparse_densities": densities(), "student_axes": along_the_axes(random, draws),
        "james_stein_risk": shrinkage(random, draws), "growth_by_discount": growth(),
    }  # fmt: skip
    rows = [row for _, part in parts.values() for row in part]
    experiments.table("priors of sparse numbers and of features", ["what", "stated", "ours"], rows)
    figures = {name: figure for name, (figure, _) in parts.items()}
    experiments.save(arguments.out, "prior_figures", figures, draws=draws, rows=rows)


if __name__ == "__main__":
    main()
