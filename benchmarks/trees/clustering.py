"""Classes found again by cutting trees: diffusion trees beside merges, an infinite mixture and average linkage.

Rows of known classes (iris, crabs, breast cancer) in units of standard
deviations. A tree is cut into as many clusters as there are classes; where a method has a number of its own, that too.
Adjusted Rand index, 1 where the classes are found and 0 by chance; and dendrogram purity, the mean over pairs of one
class of the share of that class below where they meet.

    python benchmarks/trees/clustering.py --data DIR [--quick] [--beside]
"""

import common

# isort: split
import experiments
import harness
import infinite_mixture
import jax
import merges
import numpy as np
import tables
from scipy.cluster.hierarchy import fcluster, linkage

from cavity.models.trees.likelihoods.table import Data
from cavity.models.trees.prior import TreePrior
from cavity.models.trees.search import search_trees

NOISE = 0.02


def purity(children, classes):
    """Dendrogram purity of a tree whose nodes from the number of rows on have these children, in order of merging."""
    names, place = np.unique(classes, return_inverse=True)
    counts = [np.eye(len(names))[k] for k in place]
    total = pairs = 0.0
    for below in children:
        own = sum(counts[node] for node in below)
        met = own * (own - 1.0) / 2.0 - sum(counts[node] * (counts[node] - 1.0) / 2.0 for node in below)
        total += (met * own / max(own.sum(), 1.0)).sum()
        pairs += met.sum()
        counts.append(own)
    return float(total / pairs)


def children_of(tree):
    """Children of a diffusion tree's branch points, those of few leaves first, numbered as `purity` takes them."""
    order = [n for n in np.argsort(tree.count, kind="stable") if np.isfinite(tree.depth[n])]  # depths may be equal
    number = {node: tree.n_leaves + place for place, node in enumerate(order)}
    number |= {leaf: leaf for leaf in range(tree.n_leaves)}
    return [[number[child] for child in tree.children[node]] for node in order]


def sets(arguments):
    """Standardised rows and their classes."""
    from sklearn.datasets import load_iris

    iris = load_iris(return_X_y=True)
    found = {"iris": iris, "crabs": tables.crabs(arguments), "breast cancer": tables.wdbc(arguments)}
    random = np.random.default_rng(arguments.seed)
    for name, (rows, classes) in found.items():
        rows, classes = np.asarray(rows, float), np.asarray(classes)
        some = random.permutation(len(rows))[: 60 if arguments.quick else 200]
        rows, classes = rows[some], classes[some]
        rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
        if name == "crabs":  # five sizes that all grow together: along the principal axes
            axes = np.linalg.svd(rows, full_matrices=False)[2].T
            rows = rows @ axes
            rows = rows / rows.std(axis=0)
        found[name] = rows, classes
    return found


def methods(rows, classes, arguments):
    """{name: (labels at the number of classes, own labels or None, purity or nan, CPU seconds)}."""
    number, found = len(set(classes)), {}

    def clocked(name, job):
        begun = harness.cpu_seconds()
        result = job()
        found[name] = (*result, harness.cpu_seconds() - begun)

    def tree(prior):
        learn = {"variance", "rate", "noise"} | (set() if prior.binary else {"concentration", "discount"})
        steps = (4 if arguments.quick else 20) * len(rows)
        best = search_trees(
            Data(rows), prior, key=jax.random.key(arguments.seed), steps=steps, variance=np.ones(rows.shape[1]),
            noise=NOISE, learn=learn, backend=arguments.backend,
        ).best.tree  # fmt: skip
        return best.labels(clusters=number), None, purity(children_of(best), classes)

    def by_merges():
        best = merges.best_merge(rows)
        return merges.clusters(best, number), merges.clusters(best), purity(best.children, classes)

    def mixture():
        draws = infinite_mixture.sample(rows, 60 if arguments.quick else 200, arguments.seed)
        together = np.mean([draw.cluster[:, None] == draw.cluster for draw in draws], axis=0)
        upper = (1.0 - together)[np.triu_indices(len(rows), 1)]
        joined = linkage(upper, "average")
        own = min(draws, key=lambda draw: np.sum(((draw.cluster[:, None] == draw.cluster) - together) ** 2)).cluster
        return fcluster(joined, number, "maxclust"), own, np.nan

    def average():
        joined = linkage(rows, "average")
        return fcluster(joined, number, "maxclust"), None, purity(joined[:, :2].astype(int), classes)

    clocked("DDT search", lambda: tree(TreePrior()))
    clocked("PYDT search", lambda: tree(TreePrior(concentration=1.0, discount=0.1)))
    clocked("Bayesian hierarchical clustering", by_merges)
    clocked("infinite mixture by Gibbs", mixture)
    clocked("average linkage", average)
    return found


def main():
    from sklearn.metrics import adjusted_rand_score

    parser = common.options(__doc__)
    arguments = parser.parse_args()
    words = experiments.circumstances(arguments)
    report = harness.Report("trees_clustering", seed=arguments.seed, **words)
    note = (
        "Adjusted Rand index at the number of classes, and at a method's own number of clusters; dendrogram purity; "
        "CPU seconds, compilation included. Binary trees that are cut make as many clusters as there are classes."
    )
    columns = ("", "Rand index", "its own number", "Rand index there", "purity", "CPU s")
    for name, (rows, classes) in sets(arguments).items():
        lines, kept = [], {}
        for method, (labels, own, pure, seconds) in methods(rows, classes, arguments).items():
            at = adjusted_rand_score(classes, labels)
            there = "-" if own is None else f"{adjusted_rand_score(classes, own):.3f}"
            several = "-" if own is None else str(len(set(own)))
            shown = "-" if np.isnan(pure) else f"{pure:.3f}"
            lines.append([method, f"{at:.3f}", several, there, shown, f"{seconds:.2f}"])
            kept[method] = [at, pure, seconds]
        title = f"{name}, {rows.shape[0]} x {rows.shape[1]}, {len(set(classes))} classes"
        report.table(title, note, columns, lines, kept)


if __name__ == "__main__":
    main()
