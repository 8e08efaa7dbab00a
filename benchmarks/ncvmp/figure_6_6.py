"""Figure 6.6: mean and variance of sigma(x) N(x; mean, variance) by three bounds under NCVMP and VMP, and by EP.

Left, the prior mean varies at a prior variance of 10; right, the prior variance at a prior mean of 0. The thesis gives
no numbers but says: the quadratic bound has the largest errors in the mean and underestimates the variance severely;
quadrature is much more accurate; the tilted bound's variance is more robust than the quadratic's as the mean changes;
both underestimate it as the prior variance grows. The points of the reference were computed independently.
"""

import common

# isort: split
import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit

import cavity as cv

METHODS = {
    "quadratic": {"y": cv.ncvmp(bound="jaakkola")},
    "tilted": {"y": cv.ncvmp(bound="tilted")},
    "quadrature": {"y": cv.ncvmp(bound="quadrature")},
    "EP": "ep",
}
LOOK = {"quadratic": "C3--", "tilted": "C1-.", "quadrature": "C0-", "EP": "C2:"}
# (prior mean, prior variance) -> (mean, variance) by each of NAMES
NAMES = ("true", "quadrature", "tilted", "quadratic")
REFERENCE = {
    (0.0, 10.0): ((2.206, 5.134), (2.187, 4.900), (2.245, 3.648), (1.922, 3.844)),
    (5.0, 10.0): ((5.461, 8.031), (5.487, 7.699), (5.593, 6.419), (5.430, 5.430)),
    (-5.0, 10.0): ((0.0, 4.055), (0.0, 3.972), (0.0, 2.857), (0.0, 3.361)),
    (0.0, 1.0): ((0.413, 0.829), (0.413, 0.829), (0.414, 0.805), (0.406, 0.812)),
    (0.0, 50.0): ((5.468, 20.10), (5.422, 16.07), (5.444, 8.545), (4.439, 8.879)),
}


def model():
    m = cv.Model("one logistic factor")
    row = m.plate("row")
    mean, variance = m.input("mean", cv.real, plates=row), m.input("variance", cv.positive, plates=row)
    x = m.random("x", cv.gaussian(mean, variance=variance))
    m.random("y", cv.bernoulli(cv.logistic(x)))
    return m


def truth(mean, variance):
    """Mean and variance by a fine equidistant rule, exact for what is smooth and vanishes at both ends."""
    z = np.linspace(-12.0, 12.0, 20_001)
    x = mean[:, None] + np.sqrt(variance)[:, None] * z
    weight = expit(x) * np.exp(-0.5 * z**2)
    weight /= weight.sum(1, keepdims=True)
    first = np.sum(weight * x, 1)
    return np.stack([first, np.sum(weight * (x - first[:, None]) ** 2, 1)])


def estimates(mean, variance):
    """Name -> (means, variances), each method one inference over all priors."""
    data, found = {"mean": mean, "variance": variance, "y": np.ones(len(mean), bool)}, {"true": truth(mean, variance)}
    for name, method in METHODS.items():
        posterior = cv.infer(model(), data, method=method)
        if not posterior.converged:
            raise SystemExit(f"{name}: {posterior.diagnosis}")
        found[name] = np.stack([posterior["x"].mean, posterior["x"].variance])
    return found


def compare():
    """Our fixed points at the points of the reference."""
    found, rows = estimates(*np.array(list(REFERENCE)).T), []
    for i, ((mean, variance), expected) in enumerate(REFERENCE.items()):
        for name in ("true", *METHODS):
            given = expected[NAMES.index("true" if name == "EP" else name)]  # one factor: EP is exact
            rows.append([f"N({mean:g}, {variance:g}) {name}", *found[name][:, i], *given])
    common.table("Fixed points", ["", "mean", "variance", "reference mean", "variance"], rows)
    return rows


def statement(title, found):
    """The largest errors over a panel, and the smallest ratio of the variance to the true one."""
    mean, variance = found["true"]
    rows = []
    for name in METHODS:
        ratio = found[name][1] / variance
        rows.append([name, np.abs(found[name][0] - mean).max(), ratio.min(), ratio.max()])
    common.table(title, ["", "largest error of the mean", "variance over true: least", "most"], rows)
    return rows


def main():
    arguments = common.options(__doc__).parse_args()
    points = 21 if arguments.quick else 101
    prior_mean, prior_variance = np.linspace(-10.0, 10.0, points), np.geomspace(0.1, 100.0, points)
    panels = {
        "prior mean (prior variance 10)": (prior_mean, estimates(prior_mean, np.full(points, 10.0))),
        "prior variance (prior mean 0)": (prior_variance, estimates(np.zeros(points), prior_variance)),
    }
    figure, axes = plt.subplots(2, 2, figsize=(10, 7), sharex="col")
    for column, (label, (prior, found)) in zip(axes.T, panels.items(), strict=True):
        for axis, part, quantity in zip(column, (0, 1), ("posterior mean", "posterior variance"), strict=True):
            axis.plot(prior, found["true"][part], "k", lw=3, alpha=0.4, label="true")
            for name in METHODS:
                axis.plot(prior, found[name][part], LOOK[name], label=name)
            axis.set(ylabel=quantity)
        column[1].set(xlabel=label)
    axes[1, 1].set(xscale="log")
    axes[0, 0].legend()
    rows = compare()
    statements = {label: statement(f"Varying the {label}", found) for label, (_, found) in panels.items()}
    common.save("figure_6_6", figure, fixed_points=rows, statements=statements)


if __name__ == "__main__":
    main()
