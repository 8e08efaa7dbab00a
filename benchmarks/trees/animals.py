"""33 animals with 102 yes-or-no properties (thesis sections 4.7.3 and 7.7.5, figures 4.11 and 7.6).

The leaves are probit, all hyperparameters have the thesis' priors. The thesis finds land mammals, aquatic mammals,
birds, insects and reptiles as clades, but for the penguin, which is with the aquatic animals; it takes 30 s for the
binary tree, and Bayesian hierarchical clustering 3 s. It learns no diffusion variance in its search: ours is shown with
variance 1 and with a learned one. Then chains, and the consensus of their trees.

    python benchmarks/trees/animals.py --data DIR [--backend jax] [--quick]
"""

import common

# isort: split
import time

import jax
import numpy as np
import tables

from cavity.models.trees.chains.settings import Settings
from cavity.models.trees.likelihoods.table import Data
from cavity.models.trees.mcmc import sample_posterior
from cavity.models.trees.plots import plot_tree
from cavity.models.trees.prior import TreePrior
from cavity.models.trees.search import search_trees
from cavity.models.trees.shapes.consensus import clade_probabilities, consensus

BINARY, MANY = TreePrior(), TreePrior(concentration=1.0, discount=0.1)
RATE, SHAPE = {"rate"}, {"concentration", "discount"}
SEARCHES = {
    "DDT, variance 1": (BINARY, RATE),
    "DDT, variance learned": (BINARY, RATE | {"variance"}),
    "PYDT, variance learned": (MANY, RATE | SHAPE | {"variance"}),
}
PAPER = {"DDT, variance 1": "30 s (BHC 3 s)"}
WATER = ("Seal", "Dolphin", "Whale", "Salmon", "Trout")


def members(names):
    """The numbers of the animals of each group."""
    return {group: frozenset(names.index(animal) for animal in text.split()) for group, text in tables.GROUPS.items()}


def verdict(tree, names, group):
    """Whether a group is a clade; if not, the clade nearest to it and how the two differ."""
    clade = max(tree.clades, key=lambda each: len(each & group) / len(each | group))
    extra, missing = (sorted(names[i] for i in which) for which in (clade - group, group - clade))
    words = ["clade"] if not extra and not missing else []
    words += ["with " + ", ".join(extra)] if extra else []
    words += ["without " + ", ".join(missing)] if missing else []
    return "; ".join(words)


def nearest(tree, names, animal):
    """The smallest clade with an animal."""
    clade = min((each for each in tree.clades if names.index(animal) in each), key=len)
    return ", ".join(sorted(names[i] for i in clade if names[i] != animal))


def swims(tree, names):
    """Whether the penguin parts later from some animal that lives in water than from any other bird."""
    shared = tree.shared_time[names.index("Penguin")]
    birds = [bird for bird in tables.GROUPS["birds"].split() if bird != "Penguin"]
    return max(shared[names.index(each)] for each in WATER) > max(shared[names.index(each)] for each in birds)


def searches(arguments, data, names, steps):
    """The best tree of each prior, and the CPU seconds of runs of so many steps."""
    rows, found, shown = [], {}, []
    for name, (prior, learn) in SEARCHES.items():
        options = {"prior": prior, "steps": steps, "learn": learn, "backend": arguments.backend, "names": names}
        seconds, results = [], []
        for run in range(2 if arguments.quick else 6):  # the first compiles
            begun = time.process_time()
            results.append(search_trees(data, key=jax.random.key(arguments.seed + run), **options))
            seconds.append(time.process_time() - begun)
        best = found[name] = max((result.best for result in results), key=lambda each: each.log_mass)
        times = best.tree.time[best.tree.n_leaves :]
        evidences = [result.best.log_evidence for result in results]
        rows.append(
            [name, seconds[0], float(np.median(seconds[1:])), best.log_evidence, float(np.mean(evidences)),
             best.log_mass, float(best.hyper.variance[0]), best.hyper.prior.divergence.rate,
             best.hyper.prior.concentration, best.hyper.prior.discount, str(len(times)), float(times.max()),
             float(np.mean(times > 0.99)), PAPER.get(name, "")]
        )  # fmt: skip
        shown.append(
            (name, best.tree, {group: verdict(best.tree, names, who) for group, who in members(names).items()})
        )
    columns = [
        "", "cold s", "warm s", "evidence", "mean of runs", "mass", "variance", "rate", "conc.", "discount", "points",
        "latest", "> .99", "paper",
    ]  # fmt: skip
    common.table(f"Build, {steps} search steps, times and hyperparameters (CPU seconds)", columns, rows)
    gain = found["DDT, variance learned"].log_evidence - found["DDT, variance 1"].log_evidence
    print(f"learned variance above variance 1: {gain:.1f} nats of evidence (a prototype: 4 above 1 by 145)")
    for name, tree, verdicts in shown:
        print(f"\n{name}: penguin with {nearest(tree, names, 'Penguin')}")
        for group, words in verdicts.items():
            print(f"    {group}: {words}")
    return found, rows


def chains(arguments, data, names):
    """Draws of trees and hyperparameters; the consensus of each prior."""
    draws, warmup = (40, 40) if arguments.quick else (400, 400)
    rows, agreed, tallies = [], {}, {}
    for name, prior, learn in (("DDT", BINARY, RATE), ("PYDT", MANY, RATE | SHAPE)):
        settings = Settings(learn=frozenset(learn | {"variance"}), prior=prior, variance=4.0, moves=4.0)
        begun = time.process_time()
        found = sample_posterior(
            data, jax.random.key(arguments.seed), draws, settings, chains=2, warmup=warmup, thin=2,
            backend=arguments.backend,
        )  # fmt: skip
        seconds = time.process_time() - begun
        trees = [found.tree(chain, draw).renamed(names) for chain in range(2) for draw in range(draws)]
        agreed[name], tally = consensus(trees), clade_probabilities(trees)
        tallies[name] = {group: tally.get(who, 0.0) for group, who in members(names).items()}
        times = np.concatenate([tree.time[tree.n_leaves :] for tree in trees])
        numbers = [found.chains[key] for key in ("variance", "concentration", "discount")]
        rate = found.chains["coefficients"][..., 1]
        rows.append(
            [name, seconds, found.chains["log_joint"].mean(), *(f"{x.mean():.3g} ({x.std():.2g})" for x in numbers),
             f"{rate.mean():.3g} ({rate.std():.2g})", float(np.mean([len(tree.clades) for tree in trees])),
             float(np.mean(times > 0.99)), float(np.mean([swims(tree, names) for tree in trees])),
             "  ".join(f"{each.mean():.1f}" for each in found.chains["log_joint"])]
        )  # fmt: skip
    columns = [
        "", "CPU s", "log joint", "variance", "concentration", "discount", "rate", "points", "> .99", "penguin swims",
        "log joint of chains",
    ]  # fmt: skip
    common.table(f"Chains: 2 of {draws} draws, 8 moves of each animal apart (posterior mean, sd)", columns, rows)
    groups = list(tables.GROUPS)
    common.table(
        "Posterior probability that a group is a clade",
        ["", *groups],
        [[name, *(tally[group] for group in groups)] for name, tally in tallies.items()],
    )
    return agreed, rows, tallies


def main():
    arguments = common.options(__doc__).parse_args()
    names, values, groups = tables.animals(arguments)
    data = Data(values, True)
    found, searched = searches(arguments, data, names, 500)
    agreed, sampled, tallies = chains(arguments, data, names)
    pictures = {f"animals_{name.split(',')[0].lower()}": found[name] for name in list(SEARCHES)[1:]}
    figures = {name: plot_tree(one.tree, groups, title="best tree found") for name, one in pictures.items()}
    for name, each in agreed.items():
        title = f"{name}: clades of more than half of the drawn trees"
        figures[f"animals_{name.lower()}_consensus"] = plot_tree(each.tree, groups, support=each.support, title=title)
    common.save("animals", figures, searches=searched, chains=sampled, clades=tallies)


if __name__ == "__main__":
    main()
