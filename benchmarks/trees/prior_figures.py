"""Figures of the prior (thesis 4.2 to 4.6) and its finite approximations: prior_figures.json, and pictures beside it.

    python benchmarks/trees/prior_figures.py [--quick]

Prints what the thesis states, or what can be derived from it, beside ours.
"""

import common

# isort: split
import argparse
import json

import jax
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from imbalance import colless, expected_branch_points, expected_imbalance, unbalanced
from nested import sample_nested, sample_nested_crp
from scipy.optimize import brentq
from scipy.special import gamma

from cavity.models.trees.divergence import Divergence
from cavity.models.trees.plots import plot_tree
from cavity.models.trees.prior import TreePrior, log_prior, log_structure, tables
from cavity.models.trees.shapes.sample import sample_data, sample_tree
from cavity.models.trees.tree import Tree

OUT = common.RESULTS
TABLE = {  # expectations for N = 100, derived by recursion and checked by simulation
    -20: (0.0307, 0.566), -10: (0.0346, 0.572), -5: (0.0411, 0.581), -2: (0.0557, 0.599), -1: (0.0721, 0.616),
    -0.5: (0.0908, 0.632), 0: (0.1328, 0.660), 0.25: (0.1775, 0.686), 0.5: (0.2639, 0.730), 0.75: (0.4574, 0.813),
    0.9: (0.7057, 0.905), 0.99: (0.9632, 0.989),
}  # fmt: skip


def save(figure, name):
    figure.tight_layout()
    figure.savefig(OUT / name, dpi=110)
    plt.close(figure)


def say(what, stated, ours):
    print(f"{what:<62} stated {stated:<14} ours {ours}")
    return {"what": what, "stated": stated, "ours": ours}


def worked_example():
    """Figure 4.2, equation 4.17: its structure with t_a = 0.3, t_b = 0.7."""
    tree = Tree(np.array([5, 4, 5, 4, -1, 4]), np.array([np.inf] * 4 + [-np.log(0.7), -np.log(0.3)]), tuple("1234"))
    figure, axes = plt.subplots(figsize=(4, 3))
    plot_tree(tree, axes=axes)
    save(figure, "figure_4_2.png")
    return [
        say(f"log density of the tree of figure 4.2, theta={p[0]:g}, alpha={p[1]:g}", wanted,
            f"{log_prior(tree, TreePrior(*p), 'time'):.8f}")
        for p, wanted in (((1.0, 0.0), "-3.00170840"), ((0.8, 0.25), "-2.43816033"))
    ]  # fmt: skip


def structures_against_concentration():
    """Figure 4.3: which of two shapes of four leaves the prior prefers."""
    depth = np.full(4, np.inf)
    flat = Tree(np.array([4, 4, 4, 4, -1]), np.append(depth, 1.0))
    binary = Tree(np.array([4, 4, 5, 5, 6, 6, -1]), np.append(depth, [2.0, 2.0, 1.0]))
    theta = np.linspace(0.05, 3.0, 120)
    curves = np.array([[log_structure(tree, TreePrior(t)) for tree in (flat, binary)] for t in theta])
    cross = brentq(lambda t: log_structure(flat, TreePrior(t)) - log_structure(binary, TreePrior(t)), 0.1, 2.0)
    figure, axes = plt.subplots(figsize=(4.5, 3))
    axes.plot(theta, curves, label=["flat", "balanced binary"])
    axes.axvline(cross, color="0.7", lw=0.8)
    axes.set(xlabel="concentration", ylabel="log structure factor")
    axes.legend()
    save(figure, "figure_4_3.png")
    found = [say("4.3: curves of four leaves cross at theta, root of theta Gamma(2+theta) = 1", "0.67", f"{cross:.4f}")]
    assert abs(cross * gamma(2.0 + cross) - 1.0) < 1e-9
    for t, stated in ((0.5, "-3.84, -3.02"), (1.0, "-3.18, -4.56")):
        ours = ", ".join(f"{log_structure(tree, TreePrior(t)):.2f}" for tree in (flat, binary))
        found.append(say(f"4.3: flat and balanced at theta={t:g}", stated, ours))
    return found


def imbalance(draws):
    """Figure 4.4: exact curves, samples, and the printed table."""
    fine = np.concatenate([-np.logspace(np.log10(20), -1, 30), np.linspace(0.0, 0.99, 34)])
    exact = np.array([expected_imbalance(a, 100) for a in fine])
    figure, axes = plt.subplots(1, 2, figsize=(8, 3))
    for panel, values, name in zip(axes, exact.T, ("Colless's I", "Rogers' J"), strict=True):
        panel.plot(fine, values, color="0.3")
        panel.set(xscale="symlog", xlabel="discount", ylabel=name)
    found = []
    for number, (alpha, stated) in enumerate(TABLE.items()):
        prior = TreePrior(-2.0 * alpha, alpha)
        trees = [sample_tree(prior, 100, jax.random.key(1000 * number + i)) for i in range(draws)]
        sampled = np.array([(colless(tree), unbalanced(tree)) for tree in trees])
        for panel, values in zip(axes, sampled.T, strict=True):
            panel.errorbar(alpha, values.mean(), values.std() / np.sqrt(draws), fmt="o", ms=3, color="C0")
        ours = expected_imbalance(alpha, 100)
        found.append(say(
            "4.4: E[I], E[J] at alpha={:g}, N=100 (samples {:.4f}, {:.3f})".format(alpha, *sampled.mean(0)),
            f"{stated[0]:.4f}, {stated[1]:.3f}", f"{ours[0]:.4f}, {ours[1]:.3f}",
        ))  # fmt: skip
    save(figure, "figure_4_4.png")
    rise = exact[-1] - exact[0]
    at_zero = np.array(expected_imbalance(0.0, 100)) - exact[0]
    found.append(say("4.4: both increase with alpha, mostly on [0, 1]", "yes",
                     f"{bool((np.diff(exact, axis=0) > 0).all())}, shares of the rise on [0, 0.99]: "
                     + ", ".join(f"{s:.2f}" for s in 1.0 - at_zero / rise)))  # fmt: skip
    return found


def samples():
    """Figures 4.5 (N = 20) and 4.6 (N = 1000 in two columns)."""
    tree = sample_tree(TreePrior(1.0), 20, jax.random.key(3))
    figure, axes = plt.subplots(figsize=(5, 5))
    plot_tree(tree, axes=axes)
    save(figure, "figure_4_5.png")
    found = [say("4.5: largest number of children, N=20, theta=1", "above 2", str(max(map(len, tree.children))))]
    figure, panels = plt.subplots(2, 2, figsize=(8, 8))
    for panel, (c, theta) in zip(panels.flat, ((1, 0), (1, 0.5), (1, 1), (3, 1.5)), strict=True):
        prior = TreePrior(theta, 0.0, Divergence(c))
        tree, data = sample_data(prior, 1000, 2, jax.random.key(11))
        panel.plot(*data.T, ".", ms=2)
        panel.set_title(f"c = {c}, concentration {theta}", fontsize=9)
        sizes = np.sort([tree.count[child] for child in tree.children[tree.top]])[::-1]
        said = "binary" if theta == 0 else "clusters"
        found.append(
            say(f"4.6: sizes below the first branch point, c={c}, theta={theta}", said, str(sizes[:6].tolist()))
        )
    save(figure, "figure_4_6.png")
    return found


def branch_points(draws):
    """Mean number of branch points of 100 leaves."""
    found = []
    for p, stated in (((0.0, 0.0), "99"), ((0.5, 0.0), "76"), ((1.0, 0.0), "66"), ((2.0, 0.3), "40")):
        number = [sample_tree(TreePrior(*p), 100, jax.random.key(i)).n_nodes - 100 for i in range(draws)]
        exact = expected_branch_points(TreePrior(*p), 100)
        ours = f"{exact:.2f} exactly, draws {np.mean(number):.2f} +- {np.std(number) / np.sqrt(draws):.2f}"
        found.append(say(f"branch points, N=100, theta={p[0]:g}, alpha={p[1]:g}", stated, ours))
    return found


def nested(draws):
    """Nested restaurants of S levels: first divergence time and number of branch points of 20 leaves."""
    n, levels = 20, [3, 10, 30, 100, 300, 1000, 3000, 10000]
    figure, axes = plt.subplots(1, 2, figsize=(8, 3))
    found = []
    cases = {
        "nested CRP": (TreePrior(), lambda s, key: sample_nested_crp(Divergence(), n, s, key)),
        "concentration 1, discount 0.2": (
            TreePrior(1.0, 0.2),
            lambda s, key: sample_nested(TreePrior(1.0, 0.2), n, s, key),
        ),
    }
    for colour, (name, (prior, draw)) in enumerate(cases.items()):
        first = 1.0 / (1.0 + tables(prior, n).harmonic[n - 1])
        points = expected_branch_points(prior, n)
        rows = []
        for s in levels:
            trees = [draw(s, jax.random.key(i)) for i in range(draws)]
            rows.append((np.mean([t.time[t.top] for t in trees]), np.mean([t.n_nodes - n for t in trees])))
            if s in (10, 1000, 10000):
                found.append(say(f"{name}, S={s}: first time, branch points (limit)", f"{first:.4f}, {points:.2f}",
                                 f"{rows[-1][0]:.4f}, {rows[-1][1]:.2f}"))  # fmt: skip
        for panel, values, wanted in zip(axes, np.array(rows).T, (first, points), strict=True):
            panel.semilogx(levels, values, "o-", color=f"C{colour}", label=name, ms=3)
            panel.axhline(wanted, color=f"C{colour}", lw=0.8, ls=":")
    axes[0].set(xlabel="levels", ylabel="mean first divergence time")
    axes[1].set(xlabel="levels", ylabel="mean number of branch points")
    axes[0].legend(fontsize=7)
    save(figure, "nested.png")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer draws")
    draws = 40 if parser.parse_args().quick else 400
    OUT.mkdir(parents=True, exist_ok=True)
    rows = [*worked_example(), *structures_against_concentration(), *imbalance(draws), *samples(),
            *branch_points(draws), *nested(draws)]  # fmt: skip
    (OUT / "prior_figures.json").write_text(json.dumps({"draws": draws, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
