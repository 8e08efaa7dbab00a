"""Ridge and LASSO as most probable weights: the picture of contours (figure 1.3 of the report), and the whole path.

Two correlated features. Contours of the squared error, and those of `|w_1|^p + |w_2|^p` for p of 2, 1 and 1/2 that
touch them at the most probable weights: with p <= 1 these have corners on the axes, and a weight there is exactly zero.
Below, weights against the penalty by least angle regression, and against the prior precision of ridge regression.

    python benchmarks/nsfa/contours.py [--quick] [--seed 0] [--out FOLDER]
"""

import common

# isort: split
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from cavity.models import lars, lasso, ridge

PENALTY = 12.0


def problem(seed, samples=40):
    """Two features of which the second explains little, centred."""
    random = np.random.default_rng(seed)
    features = random.normal(size=(samples, 2)) @ np.array([[1.0, 0.5], [0.0, 0.8]])
    outcomes = features @ [1.2, 0.1] + 0.5 * random.normal(size=samples)
    return features - features.mean(axis=0), outcomes - outcomes.mean()


def most_probable(features, outcomes):
    """{p: weights} of the least of `|y - X w|^2 / 2 + PENALTY sum |w|^p`; for 1/2, not convex, on a fine grid."""
    one, two = np.meshgrid(*[np.linspace(-0.5, 2.0, 1001)] * 2, indexing="ij")
    loss = loss_of(features, outcomes, one, two) + PENALTY * (np.abs(one) ** 0.5 + np.abs(two) ** 0.5)
    place = np.unravel_index(loss.argmin(), loss.shape)
    return {
        2.0: ridge(features, outcomes, prior_precision=2.0 * PENALTY),
        1.0: lasso(features, outcomes, prior_scale=1.0 / PENALTY),
        0.5: np.array([one[place], two[place]]),
    }


def loss_of(features, outcomes, one, two):
    gram, height = features.T @ features, features.T @ outcomes
    square = gram[0, 0] * one**2 + 2.0 * gram[0, 1] * one * two + gram[1, 1] * two**2
    return 0.5 * (square + outcomes @ outcomes) - height[0] * one - height[1] * two


def picture(features, outcomes, found):
    figure, axes = plt.subplots(1, 3, figsize=(12, 4), sharex=True, sharey=True)
    one, two = np.meshgrid(np.linspace(-0.5, 1.6, 200), np.linspace(-0.6, 1.0, 200), indexing="ij")
    loss, best = loss_of(features, outcomes, one, two), np.linalg.lstsq(features, outcomes, rcond=None)[0]
    for ax, (p, weights) in zip(axes, found.items(), strict=True):
        touching = loss_of(features, outcomes, *weights)
        least = loss.min()
        levels = np.sort([least + share * (touching - least) for share in (0.1, 0.4, 1.0, 2.0, 4.0)])
        ax.contour(one, two, loss, levels=levels, colors="C0", linewidths=0.8)
        ax.contour(one, two, np.abs(one) ** p + np.abs(two) ** p, levels=[(np.abs(weights) ** p).sum()], colors="C1")
        ax.plot(*best, "C0x")
        ax.plot(*weights, "C1o")
        ax.axhline(0.0, color="0.7", linewidth=0.6)
        ax.axvline(0.0, color="0.7", linewidth=0.6)
        ax.set_title(f"p = {p:g}: weights {weights[0]:.2f}, {weights[1]:.2f}")
    return figure


def paths(seed, samples=60, features=8):
    """The path of LASSO solutions, and ridge regression's, of more features."""
    random = np.random.default_rng(seed + 1)
    x = random.normal(size=(samples, features)) + 0.7 * random.normal(size=(samples, 1))
    y = x @ (random.normal(size=features) * (random.random(features) < 0.4)) + random.normal(size=samples)
    path = lars(x, y)
    precision = np.geomspace(1e-2, 1e4, 60)
    smooth = np.array([ridge(x, y, prior_precision=one) for one in precision])
    figure, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True)
    axes[0].plot(path.penalty, path.weights)
    axes[0].set(xlabel="penalty", ylabel="weight", title="LASSO, by its corners")
    axes[1].semilogx(precision, smooth)
    axes[1].set(xlabel="prior precision", title="ridge")
    return figure, path


def main():
    arguments = common.options(__doc__).parse_args()
    features, outcomes = problem(arguments.seed)
    found = most_probable(features, outcomes)
    rows = [[f"p = {p:g}", *map(float, weights)] for p, weights in found.items()]
    common.table("most probable weights of two features", ["", "first", "second"], rows)
    figure, path = paths(arguments.seed)
    print(f"corners of the path: {len(path.penalty)}, from penalty {path.penalty[0]:.3g}")
    common.save(arguments, "contours", {"contours": picture(features, outcomes, found), "paths": figure}, weights=rows)


if __name__ == "__main__":
    main()
