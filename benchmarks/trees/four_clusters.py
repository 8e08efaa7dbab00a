"""Four clusters (thesis section 4.7.1, figure 4.9): where branch points with many children are wanted.

100 points of four Gaussians at (+-1, +-1) with variance 1/8. The thesis shows one tree of each kind: the Pitman-Yor
diffusion tree splits the equidistant clusters at one branch point, the Dirichlet one is forced into pairs. One tree
says little about the number of children, since densities of trees with different numbers of branch points do not
compare; the posterior over that number comes from Markov chains here. The noise variance is 0, as in the thesis.
"""

import common

# isort: split
import time

import jax
import numpy as np
from baselines import BASELINES

from cavity.engine.plots.figure import BLUE, ORANGE, clean, new_figure
from cavity.models.trees.chains.settings import Settings
from cavity.models.trees.fitted_tree import fit_tree
from cavity.models.trees.likelihoods.table import Data
from cavity.models.trees.mcmc import sample_posterior
from cavity.models.trees.plots import plot_density, plot_tree, plot_tree_on_scatter
from cavity.models.trees.predict import log_predictive
from cavity.models.trees.prior import TreePrior
from cavity.models.trees.search import search_trees

LARGE = 10  # leaves of a child that counts as a cluster
DDT, PYDT = "Dirichlet", "Pitman-Yor"
PRIORS = {DDT: TreePrior(), PYDT: TreePrior(1.0, 0.2)}
LEARN = {DDT: {"variance", "rate"}, PYDT: {"variance", "rate", "concentration", "discount"}}


def four_clusters(n, random):
    """(n, 2) points and the cluster of each."""
    cluster = np.arange(n) % 4
    centre = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    return centre[cluster] + np.sqrt(1 / 8) * random.standard_normal((n, 2)), cluster


def degrees(tree):
    """Children of the top, and the most large children that any branch point has."""
    large = [sum(tree.count[child] >= LARGE for child in tree.children[v]) for v in range(tree.n_leaves, tree.n_nodes)]
    return len(tree.children[tree.top]), max(large)


def log_likelihood(fitted, n):
    """Log density of the data given the tree of a draw, its divergence times and diffusion variance."""
    columns = fitted.columns
    scale = np.broadcast_to(np.log(fitted.scale), columns).sum()
    return float(fitted.messages.log_evidence) - n * scale


def main():
    parser = common.options(__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=1000, help="of each of two chains")
    arguments = parser.parse_args()
    draws = 100 if arguments.quick else arguments.draws
    random = np.random.default_rng(arguments.seed)
    data, cluster = four_clusters(100, random)
    new, _ = four_clusters(1000, random)
    key = jax.random.key(arguments.seed)

    rows, pictures, histogram = [], {}, {}
    for name, prior in PRIORS.items():
        begun = time.process_time()
        best = search_trees(
            Data(data), prior, key=key, steps=200 if arguments.quick else 2000, variance=1.0,
            learn={"variance"}, backend=arguments.backend, keep=1,
        ).best  # fmt: skip
        searched = time.process_time() - begun
        state = best.state
        sd = np.sqrt(best.hyper.variance)
        fitted = fit_tree(state.arrays, state.leaves, best.hyper.prior, scale=sd, backend=arguments.backend)
        begun = time.process_time()
        settings = Settings(learn=frozenset(LEARN[name]), prior=prior)
        found = sample_posterior(
            Data(data), key, draws, settings, chains=2, warmup=draws // 2, backend=arguments.backend
        )
        sampled = time.process_time() - begun
        kept = [(chain, draw) for chain in range(2) for draw in range(0, draws, max(1, draws // 50))]
        trees = [found.fitted(*one) for one in kept]
        each = np.array([degrees(found.tree(chain, draw)) for chain in range(2) for draw in range(draws)])
        likelihood = np.array([log_likelihood(one, len(data)) for one in trees])
        held_out = log_predictive(trees, new)
        rows.append(
            [name, best.log_mass, degrees(best.tree)[0], degrees(best.tree)[1], log_predictive(fitted, new).mean(),
             likelihood.mean(), held_out.mean(), np.mean(each[:, 0] >= 4), np.mean(each[:, 1] >= 4), searched, sampled]
        )  # fmt: skip
        histogram[name] = each
        pictures[f"four_clusters_{name}_tree"] = plot_tree(best.tree, cluster, title=f"{name} diffusion tree")
        pictures[f"four_clusters_{name}"] = plot_tree_on_scatter(
            best.tree, fitted.locations, cluster, title=f"{name} diffusion tree, best of a search"
        )
        pictures[f"four_clusters_{name}_density"] = plot_density(
            trees[::4], data, groups=cluster, title=f"{name} diffusion tree, predictive density"
        )

    columns = [
        "best tree: log mass", "children of the top", "most large children at a branch point",
        "best tree: held-out log density", "chains: mean log density of the data", "chains: held-out log density",
        "P(top has 4 children or more)", "P(4 large children at a branch point)", "seconds of search",
        "seconds of chains",
    ]  # fmt: skip
    table = [[label, *(row[1 + i] for row in rows)] for i, label in enumerate(columns)]
    common.table(f"four clusters, 100 points; large: {LARGE} leaves or more", ["", *PRIORS], table)
    print("thesis: one split into four by the Pitman-Yor tree, pairs by the Dirichlet one")
    others = {name: float(fit(data, new).mean()) for name, fit in BASELINES.items()}
    common.table("held-out log density of others", ["", "nats per point"], [[*one] for one in others.items()])

    figure = new_figure(5.5, 3.2)
    axes = clean(figure.add_subplot())
    most = np.arange(1, max(each[:, 0].max() for each in histogram.values()) + 1)
    for shift, colour, (name, each) in zip((-0.2, 0.2), (BLUE, ORANGE), histogram.items(), strict=True):
        axes.bar(most + shift, [np.mean(each[:, 0] == k) for k in most], 0.4, color=colour, label=name)
    axes.set(xlabel="children of the top", ylabel="posterior probability", xticks=most)
    axes.legend(frameon=False, fontsize=8)
    pictures["four_clusters_degree"] = figure
    common.save("four_clusters", pictures, columns=columns, rows=rows, baselines=others, degrees=histogram)


if __name__ == "__main__":
    main()
