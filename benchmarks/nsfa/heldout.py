"""Held-out entries: the same entries hidden from several models, and how densely each predicts them (F-14, K-25)."""

import common
import experiments
import jax
import numpy as np

from cavity.models.sparse.data import held_out_mask

NOTE = (
    "Means over masks (standard errors); differences are paired by masks; single draw: with the logarithm inside the "
    "average over draws; zeros: the share of loadings that are exactly zero."
)


def masks(shape, number, seed, share=0.1):
    """(number, rows, samples) booleans: entries to hold out, at random."""
    return np.array([held_out_mask(shape, share, jax.random.fold_in(jax.random.key(seed), i)) for i in range(number)])


def compare(values, models, hidden, seed, sweeps, last=100, keep="all"):
    """{model: {what: (splits,)}} of the last sweeps of a chain: score, single, factors, zeros, warm, cpu."""
    found = {}
    for name, settings in models.items():
        runs = []
        for number, mask in enumerate(hidden):
            run = common.sample(values, settings, seed + number, sweeps, last, held_out=mask, keep=keep)
            runs.append(
                {
                    "score": run.score, "single": run.single, "factors": float(run.factors.mean()),
                    "zeros": run.zeros, "warm": run.warm, "cpu": run.cpu,
                }
            )  # fmt: skip
        found[name] = {what: np.array([run[what] for run in runs]) for what in runs[0]}
        show_one(name, found[name])
    return found


def show_one(name, found):
    score, factors = common.middle(found["score"]), np.median(found["factors"])
    print(f"{name}: {score}, K {factors:.1f}, {np.median(found['warm']):.3f} ms/sweep", flush=True)


def show(title, found, base, papers, page=None):
    """A table, the best model first; differences to the model `base` are paired by splits."""
    rows = []
    for name, one in sorted(found.items(), key=lambda item: -item[1]["score"].mean()):
        gain = common.middle(found[base]["score"] - one["score"]) if name != base else ""
        rows.append(
            [
                name, common.middle(one["score"]), gain, one["single"].mean(), np.median(one["factors"]),
                one["zeros"].mean(), np.median(one["warm"]), one["cpu"].sum(), papers.get(name, ""),
            ]
        )  # fmt: skip
    columns = ["model", "score (s.e.)", f"{base} above", "single draw", "median K", "zeros", "ms/sweep", "CPU s"]
    experiments.table(title, [*columns, "papers"], rows, page, NOTE)


def best(found, start):
    """Of the models whose name starts so, the one with the largest mean score."""
    return max((name for name in found if name.startswith(start)), key=lambda name: found[name]["score"].mean())
