"""Softmax regression on Iris: marginals, predictions for held-out rows, and the evidence under each softmax bound."""

import numpy as np
from common import DATA, save, timed, title

import cavity as cv
from cavity.engine.plots import plot_convergence, plot_graph
from cavity.models import softmax_regression

BOUNDS = ("quadratic", "bohning", "log", "tilted", "adaptive", "taylor", "quadrature")


def load(seed=0, held_out=50):
    """Features standardised by the training rows, labels 0 to 2, and the names of species, split at random."""
    table = np.loadtxt(DATA / "iris.csv", delimiter=",", skiprows=1, dtype=str, quotechar='"')
    species, y = np.unique(table[:, 4], return_inverse=True)
    order = np.random.default_rng(seed).permutation(len(y))
    test, train = order[:held_out], order[held_out:]
    x = table[:, :4].astype(float)
    x = (x - x[train].mean(axis=0)) / x[train].std(axis=0)
    return (x[train], y[train]), (x[test], y[test]), species


def main():
    """Runs the example. Returns the posterior."""
    (x, y), (x_test, y_test), species = load()
    data, rows = {"x": x, "y": y}, np.arange(len(y_test))
    model = softmax_regression(features=4, classes=3)

    title(f"Softmax regression: Iris, {len(y)} flowers to learn from, {len(y_test)} held out")
    posterior = timed(lambda: cv.infer(model, data))
    print(posterior.explain(), posterior.summary(), sep="\n\n")

    probability = posterior.predict({"x": x_test})["y"].mean
    print("\nclass probabilities of the first held-out flowers")
    print("  ".join(name.rjust(10) for name in species), " truth")
    for row in rows[:8]:
        print("  ".join(f"{p:10.3f}" for p in probability[row]), f" {species[y_test[row]]}")
    wrong = int((probability.argmax(axis=1) != y_test).sum())
    print(f"held out: {wrong} of {len(y_test)} wrong, log loss {-np.log(probability[rows, y_test]).mean():.4f}")

    print("\nbound         log evidence  held-out log loss  sweeps")
    for bound in BOUNDS:
        other = cv.infer(model, data, method={"y": cv.ncvmp(bound=bound)})
        loss = -np.log(other.predict({"x": x_test})["y"].mean[rows, y_test]).mean()
        note = {"taylor": "  (an expansion, not a bound)", "quadrature": "  (the expectation itself)"}.get(bound, "")
        print(f"{bound:12}  {other.log_evidence:12.4f}  {loss:17.4f}  {other.iterations:6d}{note}")

    save(plot_graph(posterior), "iris_graph")
    save(posterior.plot("weight", "bias"), "iris_marginals")
    save(plot_convergence(posterior), "iris_convergence")
    return posterior
