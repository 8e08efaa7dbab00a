"""The fractal data set (thesis section 7.7.1, figure 7.2): 63 points in the plane, in groups of groups.

Four groups of four groups of four points, one point left out; the offsets shrink fourfold from level to level. The
thesis builds a tree and searches for 100 steps in 7 s, and finds the hierarchy but for the lowest level.
"""

import common

# isort: split
import time

import jax
import numpy as np

from cavity.models.trees.fitted_tree import fit_tree
from cavity.models.trees.likelihoods.table import Data
from cavity.models.trees.plots import plot_tree, plot_tree_on_scatter
from cavity.models.trees.search import search_trees


def fractal(seed):
    """(63, 2) points, and for each the group and the group of groups that it belongs to."""
    random = np.random.default_rng(seed)
    corners = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    index = np.stack(np.meshgrid(*[np.arange(4)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    points = sum(size * corners[index[:, level]] for level, size in enumerate((1.0, 0.25, 0.0625)))
    points = points + 0.015 * random.standard_normal(points.shape)
    return points[:-1], 4 * index[:-1, 0] + index[:-1, 1], index[:-1, 0]


def recovered(tree, labels):
    """How many groups are clades of the tree."""
    clades = {row.tobytes() for row in tree.members}
    return sum((labels == label).tobytes() in clades for label in np.unique(labels))


def locations(fitted, backend):
    """(nodes, D) posterior means of all locations."""
    state, sd = fitted.state, np.sqrt(fitted.hyper.variance)
    return fit_tree(state.arrays, state.leaves, fitted.hyper.prior, scale=sd, backend=backend).locations


def run(data, steps, seed, backend, learn=()):
    """The best tree, and the seconds of CPU that it took."""
    begun = time.process_time()
    found = search_trees(
        Data(data), key=jax.random.key(seed), steps=steps, variance=1.0, learn=learn, backend=backend, keep=1
    )
    return found.best, time.process_time() - begun


def main():
    arguments = common.options(__doc__.splitlines()[0]).parse_args()
    data, small, large = fractal(arguments.seed)
    _, cold = run(data, 100, 0, arguments.backend)
    kept, best = {}, None
    for steps, learn in ((100, ()), (500, ()), (500, ("variance",))):
        rows = []
        for seed in range(2 if arguments.quick else 8):
            fitted, seconds = run(data, steps, seed, arguments.backend, learn)
            rows.append([seconds, recovered(fitted.tree, large), recovered(fitted.tree, small), fitted.log_joint])
            best = fitted if best is None or fitted.log_joint > best.log_joint else best
        rows = np.array(rows, dtype=float)
        common.table(
            f"63 points, build and {steps} steps of search, variance {'learned' if learn else 1}, {len(rows)} orders",
            ["", "median", "smallest", "largest", "thesis"],
            [
                [name, np.median(column), column.min(), column.max(), theirs]
                for name, column, theirs in zip(
                    ("seconds of CPU, warm", "groups of 16, of 4", "groups of 4, of 16", "log joint density"),
                    rows.T,
                    ("7", "4", "most", "-"),
                    strict=True,
                )
            ],
        )
        kept[f"{steps} {' '.join(learn)}"] = rows
    print(f"\nseconds of CPU the first time, compilation or its cache included: {cold:.3g}")
    tree = best.tree.renamed([f"{one}.{two}" for one, two in zip(large, small % 4, strict=True)])
    common.save(
        "fractal",
        {
            "fractal_tree": plot_tree(tree, large, title="fractal: leaves are named by group and subgroup"),
            "fractal_scatter": plot_tree_on_scatter(
                tree, locations(best, arguments.backend), large, title="fractal: the tree over its data"
            ),
        },
        columns=["seconds", "groups of 16", "groups of 4", "log joint"],
        runs=kept,
        cold=cold,
        backend=arguments.backend,
    )


if __name__ == "__main__":
    main()
