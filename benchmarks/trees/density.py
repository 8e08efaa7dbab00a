"""Held-out density of trees by search and by chains, against kernels and mixtures (thesis sections 4.7.2 and 7.7.3).

The papers use 228 skulls of macaques (10 measurements, three technical repeats, 200 to train on and 28 to test), which
cannot be had. Here are a draw from the Pitman-Yor prior (concentration 2, discount 0.2) with three repeats of noise,
the ten mean features of the Wisconsin breast cancer data, and the five measurements of crabs. Diffusion has no
correlations: the crabs, and the features once, are rotated to their principal axes. Found there: the Pitman-Yor tree
has more evidence and a moderate gain in prediction, concentration 2.3 +- 0.4 and discount 0.23 +- 0.08; search is good
within tens of seconds, chains win in the end; both are far above the kernel density and mostly above an infinite
mixture of Gaussians.

    python benchmarks/trees/density.py --data DIR [--backend jax] [--quick] [--beside] [--sets 4] [--splits 3]
"""

import common

# isort: split
import time

import baselines
import experiments
import harness
import jax
import numpy as np
import tables
from scipy.special import logsumexp

from cavity.engine.plots.runs import plot_evidence
from cavity.models.trees import hybrid
from cavity.models.trees.chains.settings import Settings
from cavity.models.trees.divergence import Divergence
from cavity.models.trees.estimator import DiffusionTree
from cavity.models.trees.fitted_tree import fit_tree
from cavity.models.trees.likelihoods.table import Data
from cavity.models.trees.mcmc import sample_posterior
from cavity.models.trees.predict import log_predictive
from cavity.models.trees.prior import TreePrior, log_prior
from cavity.models.trees.search import search_trees
from cavity.models.trees.shapes.arrays import Leaves
from cavity.models.trees.shapes.sample import sample_data

PRIORS = {"DDT": TreePrior(), "PYDT": TreePrior(concentration=1.0, discount=0.1)}
TEST, NOISE = 28, 0.02
NOTE = (
    "Nats; above kernels: the mean gain over the kernel density, with its standard error over test rows; evidence: of "
    "the data given the best tree, or given drawn trees on average; for the hybrid of data and structure together, "
    "times integrated, which is not beside the others. The data of the papers, skulls of macaques, cannot be had."
)
PAPER = "the thesis, on skulls: concentration 2.3 +- 0.4, discount 0.23 +- 0.08, PYDT above DDT"


def standardised(train, test):
    """Both in units of the training rows' standard deviations, from their means."""
    centre, width = train.mean(axis=0), train.std(axis=0)
    return (train - centre) / width, (test - centre) / width


def rotated(train, test):
    """Principal axes of the training rows, each of variance 1."""
    axes = np.linalg.svd(train - train.mean(axis=0), full_matrices=False)[2].T
    return standardised(train @ axes, test @ axes)


def split(rows, seed, size=TEST, most=228):
    """Rows to train on and rows to test, at random."""
    order = np.random.default_rng(seed).permutation(len(rows))[:most]
    return rows[order[size:]], rows[order[:size]]


def sets(arguments):
    """For each data set its splits, as (train, test)."""
    latent = sample_data(TreePrior(2.0, 0.2), 228, 10, jax.random.key(arguments.seed + 11))[1]
    random = np.random.default_rng(arguments.seed + 12)
    repeats = [latent + np.sqrt(NOISE) * random.standard_normal(latent.shape) for _ in range(3)]
    features, crabs = tables.wdbc(arguments)[0], tables.crabs(arguments)[0]
    return {
        "draw of the prior": [standardised(*split(each, 0)) for each in repeats],
        "breast cancer": [tables.wdbc_split(arguments), *(standardised(*split(features, i)) for i in (1, 2))],
        "breast cancer, rotated": [rotated(*split(features, i)) for i in range(3)],
        "crabs": [rotated(*split(crabs, i)) for i in range(3)],
    }


def by_search(train, test, prior, steps, arguments):
    """Densities of the best trees of a search, its evidence, hyperparameters and CPU seconds."""
    learn = {"variance", "rate", "noise"} | (set() if prior.binary else {"concentration", "discount"})
    begun = time.process_time()
    found = search_trees(
        Data(train), prior, key=jax.random.key(arguments.seed), steps=steps, variance=np.ones(train.shape[1]),
        noise=NOISE, learn=learn, backend=arguments.backend,
    )  # fmt: skip
    seconds = time.process_time() - begun
    trees = [
        fit_tree(
            each.tree, each.state.leaves, each.hyper.prior, scale=np.sqrt(each.hyper.variance),
            noise=each.hyper.noise / each.hyper.variance, backend=arguments.backend,
        )
        for each in found.trees
    ]  # fmt: skip
    weights = np.log(np.maximum([each.weight for each in found.trees], 1e-300))
    return {
        "rows": log_predictive(trees, test, weights), "evidence": found.best.log_evidence, "cpu": seconds,
        "hyper": (found.best.hyper.prior.concentration, found.best.hyper.prior.discount),
    }  # fmt: skip


def by_hybrid(train, test, prior, steps, arguments):
    """The structure of a search with the posterior means of its times, the variance and rate integrated (`hybrid`)."""
    begun = time.process_time()
    found = search_trees(
        Data(train), prior, key=jax.random.key(arguments.seed), steps=steps, variance=np.ones(train.shape[1]),
        noise=NOISE, learn={"variance", "rate"}, backend=arguments.backend,
    ).best  # fmt: skip
    times = hybrid(found.tree, Data(train), prior, noise=NOISE, seed=arguments.seed)
    variance = times.variance[0]
    leaves = Leaves(train / np.sqrt(variance), np.full((len(train), 1), NOISE / variance))
    learned = TreePrior(prior.concentration, prior.discount, Divergence(rate=times.rate.mean))
    fitted = fit_tree(
        times.tree, leaves, learned, scale=np.sqrt(variance), noise=NOISE / variance, backend=arguments.backend
    )
    seconds = time.process_time() - begun
    return {"rows": log_predictive([fitted], test), "evidence": times.log_evidence, "cpu": seconds}


def by_chain(train, test, prior, draws, arguments):
    """The same by one chain, whose first quarter is left out; the density also for each of its beginnings."""
    learn = {"variance", "rate", "noise"} | (set() if prior.binary else {"concentration", "discount"})
    settings = Settings(
        learn=frozenset(learn), prior=prior, noise=NOISE, relative=True, per_column=True, shared_rate=(1.0, 1.0),
        moves=4.0,
    )  # fmt: skip
    key = jax.random.key(arguments.seed)
    found = sample_posterior(Data(train), key, draws, settings, chains=1, backend=arguments.backend)
    chosen = np.unique(np.linspace(0, draws - 1, min(draws, 120)).astype(int))
    each = np.stack([log_predictive(found.fitted(0, draw), test) for draw in chosen])
    states = [found.sampler.state_of(found.chains, 0, draw) for draw in chosen]
    evidence = [
        float(found.chains["log_joint"][0, draw]) - log_prior(found.tree(0, draw), found.sampler.prior(state), "depth")
        for draw, state in zip(chosen, states, strict=True)
    ]
    late, curve = chosen >= draws // 4, []
    for size in (2**i for i in range(2, 20)):
        if size <= len(chosen):
            average = logsumexp(each[size // 4 : size], axis=0) - np.log(size - size // 4)
            curve.append((float(found.chains.seconds[0, chosen[size - 1]]), float(average.mean())))
    names = ("concentration", "discount")
    return {
        "rows": logsumexp(each[late], axis=0) - np.log(late.sum()),
        "evidence": float(np.mean(np.array(evidence)[late])), "cpu": float(found.chains.seconds[0, -1]), "curve": curve,
        "draws": [found.chains[name][0, draws // 4 :] for name in names],
    }  # fmt: skip


def one_split(train, test, arguments):
    """All methods on one split."""
    budgets = (2, 10) if arguments.quick else (2, 10, 40)
    draws = 120 if arguments.quick else arguments.draws
    results = {}
    for name, method in baselines.BASELINES.items():
        begun = time.process_time()
        rows = method(train, test)
        results[name] = {"rows": rows, "cpu": time.process_time() - begun, "evidence": np.nan}
    for name, prior in PRIORS.items():
        runs = [by_search(train, test, prior, size * len(train), arguments) for size in budgets]
        runs[-1]["curve"] = [(run["cpu"], float(run["rows"].mean())) for run in runs]
        results[f"{name} search"] = runs[-1]
        if prior.binary:
            results[f"{name} hybrid"] = by_hybrid(train, test, prior, budgets[1] * len(train), arguments)
        results[f"{name} chain"] = by_chain(train, test, prior, draws, arguments)
    return results


def learned(report, title, runs):
    """The table of concentrations and discounts, of the Pitman-Yor tree's chain and search."""
    lines = []
    for i, run in enumerate(runs):
        by_draws = [f"{each.mean():.2f} +- {each.std():.2f}" for each in run["PYDT chain"]["draws"]]
        lines += [[f"split {i + 1}, chain", *by_draws]]
        lines += [[f"split {i + 1}, search", *(f"{each:.2f}" for each in run["PYDT search"]["hyper"])]]
    lines += [["the thesis, on skulls", "2.3 +- 0.4", "0.23 +- 0.08"]]
    columns = ["", "concentration", "discount"]
    report.table(f"{title}: learned by the PYDT", "Mean and standard deviation of draws.", columns, lines, lines)


def experiment(arguments, report):
    """All data sets; tables, and the curves of the first split of each."""
    figures, kept = {}, {}
    for title, splits in list(sets(arguments).items())[: arguments.sets]:
        splits = splits[: 1 if arguments.quick else arguments.splits]
        runs = [one_split(*pair, arguments) for pair in splits]
        rows = []
        for name in runs[0]:
            gains = [run[name]["rows"] - run["kernel density"]["rows"] for run in runs]
            error = np.concatenate(gains).std(ddof=1) / np.sqrt(sum(len(gain) for gain in gains))
            rows.append(
                [name, *(f"{run[name]['rows'].mean():.3f}" for run in runs), float(np.mean([g.mean() for g in gains])),
                 float(error), *(f"{run[name]['evidence']:.0f}" for run in runs),
                 float(np.median([run[name]["cpu"] for run in runs]))]
            )  # fmt: skip
        several = [f"split {i + 1}" for i in range(len(runs))]
        columns = ["", *several, "above kernels", "error", *(f"evidence {i + 1}" for i in range(len(runs))), "CPU s"]
        shape = splits[0][0].shape
        heading = f"{title}, {shape[0]} x {shape[1]}: held-out log density for each row"
        cells = [[each.replace("nan", "-") if isinstance(each, str) else f"{each:.3f}" for each in row] for row in rows]
        report.table(heading, NOTE, columns, cells, rows)
        learned(report, title, runs)
        base = runs[0]["kernel density"]["rows"].mean()
        curves = {name: np.array(run["curve"]).T for name, run in runs[0].items() if "curve" in run}
        figure = plot_evidence(
            {name: (x, y - base) for name, (x, y) in curves.items()}, title=title,
            label="held-out log density for each row, above kernels",
        )  # fmt: skip
        figures["density_" + title.replace(",", "").replace(" ", "_")] = figure
        kept[title] = rows
    return figures, kept


def estimators(arguments, report):
    """The estimator as anyone would call it, on raw columns, against the best mixture."""
    from sklearn.datasets import load_iris

    kinds = {
        "iris": load_iris(return_X_y=True)[0],
        "breast cancer": tables.wdbc(arguments)[0],
        "crabs": tables.crabs(arguments)[0],
    }
    rows = []
    for name, table in kinds.items():
        for seed in range(1 if arguments.quick else arguments.splits):
            train, test = split(table, seed)
            centre, width = train.mean(axis=0), train.std(axis=0)
            scores = []
            for concentration in (0.0, "learn"):
                begun = time.process_time()
                tree = DiffusionTree(concentration, 0.0, backend=arguments.backend, random_state=seed).fit(train)
                scores += [float(tree.score(test)) + np.log(width).sum(), time.process_time() - begun]
            others = [
                float(method((train - centre) / width, (test - centre) / width).mean())
                for method in baselines.BASELINES.values()
            ]
            rows.append([f"{name}, split {seed + 1}", *scores, *others])
    columns = ["", "DDT", "CPU s", "PYDT", "CPU s", *baselines.BASELINES]
    title = "DiffusionTree().fit(train).score(test), in units of standardised columns"
    experiments.table(title, columns, rows, report, "The estimator with its defaults, on raw columns.")
    return rows


def main():
    parser = common.options(__doc__)
    parser.add_argument("--sets", type=int, default=4, help="how many of the data sets")
    parser.add_argument("--splits", type=int, default=3, help="how many of the splits of each")
    parser.add_argument("--draws", type=int, default=600, help="of each chain")
    arguments = parser.parse_args()
    splits, draws = (1, 120) if arguments.quick else (arguments.splits, arguments.draws)
    words = experiments.circumstances(arguments) | {"splits": splits, "draws": draws}
    report = harness.Report("trees_density", seed=arguments.seed, backend=arguments.backend, **words)
    kernels = split(np.random.default_rng(0).standard_normal((60, 10)), 0, 5)
    by_search(*kernels, PRIORS["PYDT"], 60, arguments)  # compiles what is compiled once
    by_chain(*kernels, PRIORS["PYDT"], 8, arguments)
    figures, kept = experiment(arguments, report)
    common.save("density", figures, held_out=kept, estimators=estimators(arguments, report), paper=PAPER)


if __name__ == "__main__":
    main()
