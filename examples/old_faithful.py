"""A mixture of Gaussians on the eruptions of Old Faithful: more components than needed, and restarts."""

import numpy as np
from common import DATA, save, timed, title
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse

import cavity as cv
from cavity.engine.plots import plot_convergence, plot_graph
from cavity.models import mixture

COLOURS = np.array(
    [
        [0.20, 0.40, 0.54],
        [0.82, 0.38, 0.24],
        [0.42, 0.60, 0.31],
        [0.48, 0.37, 0.62],
        [0.72, 0.54, 0.17],
        [0.29, 0.64, 0.64],
    ]
)


def load():
    """Minutes of eruption and minutes to the next, and their means and standard deviations."""
    table = np.loadtxt(DATA / "old_faithful.csv", delimiter=",", skiprows=1)
    return table, table.mean(axis=0), table.std(axis=0)


def ellipse(centre, covariance, deviations=2.0, **style):
    """The ellipse of the points that are `deviations` standard deviations from the centre."""
    variances, axes = np.linalg.eigh(covariance)
    width, height = 2.0 * deviations * np.sqrt(variances)
    return Ellipse(centre, width, height, angle=np.degrees(np.arctan2(axes[1, 0], axes[0, 0])), **style)


def plot_mixture(table, shift, scale, posterior, least=0.02):
    """The eruptions, coloured by component, and the components of weight above `least` at two standard deviations."""
    figure = Figure(figsize=(6.0, 4.6), dpi=150, layout="constrained")
    axes = figure.add_subplot()
    axes.scatter(*table.T, c=posterior["z"].mean @ COLOURS, s=14, alpha=0.8, linewidth=0)
    weight = posterior["weights"].mean
    for k in np.flatnonzero(weight > least):
        centre = posterior["mean"].mean[k] * scale + shift
        covariance = np.linalg.inv(posterior["precision"].mean[k]) * np.outer(scale, scale)
        axes.add_patch(ellipse(centre, covariance, fill=False, edgecolor=COLOURS[k], linewidth=1.8))
        box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 1.5}
        axes.annotate(f"{weight[k]:.0%}", centre, ha="center", va="center", fontsize=10, bbox=box)
    axes.set(xlabel="duration of the eruption (minutes)", ylabel="waiting for the next (minutes)")
    axes.set_title(
        f"Old Faithful: {np.sum(weight > least)} of {len(weight)} components used; ellipses at 2 sd", fontsize=10
    )
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def main():
    """Runs the example. Returns the posterior."""
    table, shift, scale = load()
    title(f"Mixture of Gaussians: {len(table)} eruptions of Old Faithful, 6 components, 8 restarts")
    model, data = mixture(components=6, dimension=2), {"x": (table - shift) / scale}
    posterior = timed(lambda: cv.infer(model, data, restarts=8, seed=0))
    print(posterior.explain(), posterior.summary(), sep="\n\n")

    print("\nlog evidence of the restarts:", np.array2string(np.sort(posterior.restarts)[::-1], precision=3))
    weight = posterior["weights"].mean
    for k in np.argsort(-weight)[: np.sum(weight > 0.02)]:
        duration, waiting = posterior["mean"].mean[k] * scale + shift
        print(f"component {k}: weight {weight[k]:.3f}, eruptions of {duration:.2f} minutes, {waiting:.1f} to the next")

    save(plot_graph(posterior), "old_faithful_graph")
    save(plot_mixture(table, shift, scale, posterior), "old_faithful_mixture")
    save(plot_convergence(posterior), "old_faithful_convergence")
    return posterior
