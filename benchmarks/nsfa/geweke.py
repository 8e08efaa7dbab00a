"""Samplers against their own prior: Geweke's test of joint distributions (X-1, F-12; thesis section 3.2.1).

Two rows, two samples, mass 2, noise and slab precisions 1. One way to draw parameters and data is from the prior; the
other is a chain that alternates a sweep given the data with new data given the state, and must give the same means.
The prior has 3 factors on average; the thesis found 3.0034 with its sampler, and 1.21 with one that deletes the factors
that a row has alone before it proposes others. That control, and the odds m / (D - 1 - m) as they are printed, are run
here as well, in NumPy.

    python benchmarks/nsfa/geweke.py [--quick] [--seed 0] [--out DIR]
"""

import common

# isort: split
import time

import jax
import jax.numpy as jnp
import numpy as np
from serial_sweep import serial

from cavity.engine.support.machine_code import Kernel
from cavity.models.sparse.data import Data, numbers_of, switches_of
from cavity.models.sparse.kernels.parallel import parallel
from cavity.models.sparse.settings import Settings
from cavity.models.sparse.state import Observed, State

ROWS, SAMPLES, MASS, PLACES = 2, 2, 2.0, 32
NAMES = ("K", "active", "sum of G^2", "tanh of y1 y2", "log(1 + sum of Y^2)")
VARIANTS = {
    "parallel": {}, "serial": {},
    "parallel, spike 0.1": {"spike": 0.1}, "serial, spike 0.1": {"spike": 0.1},
    "parallel, multiplier 10": {"multiplier": 10.0}, "serial, multiplier 10": {"multiplier": 10.0},
    "parallel, births in one row": {"births": 1},
}  # fmt: skip
PAPERS = {"parallel": "3 by the prior", "serial": "3.0034", "delete own factors first": "1.21"}


def prior(random, chains):
    """States of chains, stacked, and their data (chains, rows, samples)."""
    active, counts = np.zeros((chains, PLACES, ROWS), bool), np.zeros(chains, int)
    for row in range(ROWS):
        old = random.random((chains, PLACES)) < active.sum(axis=2) / (row + 1.0)
        after = counts + random.poisson(MASS / (row + 1.0), chains)
        new = (np.arange(PLACES) >= counts[:, None]) & (np.arange(PLACES) < after[:, None])
        active[:, :, row], counts = old | new, after
    loading = active * random.standard_normal(active.shape)
    factor = random.standard_normal((chains, PLACES, SAMPLES)) * (np.arange(PLACES) < counts[:, None])[:, :, None]
    values = np.einsum("ckd,ckn->cdn", loading, factor) + random.standard_normal((chains, ROWS, SAMPLES))
    one = np.ones(chains)
    return State(
        loading, factor, counts, np.ones((chains, PLACES)), np.zeros((chains, 0, 0)), np.zeros((chains, 0)),
        np.ones((chains, ROWS)), MASS * one, one, one, one, np.zeros((chains, 0)),
    ), values  # fmt: skip


def statistics(loading, values, xp=np):
    """What is compared, of one state and its data."""
    count = (loading != 0.0).any(axis=-1).sum(axis=-1)
    products = xp.tanh(values[..., 0, 0] * values[..., 1, 0])
    squares = [(each**2).sum(axis=(-1, -2)) for each in (loading, values)]
    return xp.stack([count, (loading != 0.0).sum(axis=(-1, -2)), squares[0], products, xp.log1p(squares[1])])


def by_sampler(kernel, changes, seed, chains, steps):
    """(statistics, chains) means over the steps of chains that start from the prior."""
    settings = Settings(precision=1.0, noise=1.0, learn=frozenset(), mass=MASS, **changes)
    plain = Data(np.eye(2))
    switches, numbers = switches_of(settings, plain), numbers_of(settings, ROWS)
    none = np.zeros(0, int)

    def sweep(key, state, values, numbers, bound):
        outcome = kernel(key, state, Observed(values, none, none, np.zeros((0, ROWS))), numbers, bound, switches)
        return jax.tree.map(lambda a, b: a.astype(b.dtype), outcome.state, state), outcome.fits

    def renew(key, loading, factor):
        fit = jnp.einsum("kd,kn->dn", loading, factor)
        values = fit + jax.random.normal(key, fit.shape)
        return values, statistics(loading, values, jnp)

    with jax.enable_x64(True):
        sweeps = Kernel(jax.vmap(sweep, in_axes=(0, 0, 0, None, None)))
        renewals = Kernel(jax.vmap(renew, out_axes=(0, 1)))
        state, values = prior(np.random.default_rng(seed), chains)
        total, fits = 0.0, True
        for key in jax.random.split(jax.random.key(seed), steps):
            keys = jax.random.split(key, 2 * chains)
            state, fit = sweeps(keys[:chains], state, values, numbers, np.max(state.count))
            values, found = renewals(keys[chains:], state.loading, state.factor)
            total, fits = total + np.asarray(found), fits and bool(np.all(fit))
    if not fits:
        raise SystemExit(f"A chain needed more than {PLACES} factors.")
    return total / steps


def by_hand(random, chains, steps, deleting=False, printed=False):
    """The same by a plain sampler, right or with a fault; (statistics, chains) means."""
    means = np.zeros((len(NAMES), chains))
    for chain in range(chains):
        g, x = np.zeros((ROWS, 0)), np.zeros((0, SAMPLES))
        y = random.standard_normal((ROWS, SAMPLES))
        for _ in range(steps):
            for d in range(ROWS):
                g, x = one_row(d, g, x, y, random, deleting, printed)
            precision = np.eye(g.shape[1]) + g.T @ g
            root = np.linalg.cholesky(precision)
            x = np.linalg.solve(precision, g.T @ y) + np.linalg.solve(root.T, random.standard_normal(x.shape))
            y = g @ x + random.standard_normal(y.shape)
            means[:, chain] += statistics(g.T, y)
            if g.shape[1] > 300:
                return np.full_like(means, np.inf)
    return means / steps


def one_row(d, g, x, y, random, deleting, printed):
    """A row's shared loadings, and then its own factors."""
    others = (g != 0.0).sum(axis=0) - (g[d] != 0.0)
    for k in np.flatnonzero(others):
        rest = y[d] - g[d] @ x + g[d, k] * x[k]
        precision = x[k] @ x[k] + 1.0
        mean = x[k] @ rest / precision
        without = ROWS - others[k] - (1 if printed else 0)
        odds = np.inf if without == 0 else others[k] / without / np.sqrt(precision) * np.exp(0.5 * precision * mean**2)
        on = random.random() * (1.0 + odds) < odds if np.isfinite(odds) else True
        g[d, k] = mean + random.standard_normal() / np.sqrt(precision) if on else 0.0
    shared = others > 0
    energy = np.sum((y[d] - g[d, shared] @ x[shared]) ** 2)
    if deleting:
        g, x, shared = g[:, shared], x[shared], np.ones(shared.sum(), bool)
    born = random.standard_normal(random.poisson(MASS / ROWS))
    evidence = [-0.5 * SAMPLES * np.log1p(s) + 0.5 * s * energy / (1.0 + s) for s in (born @ born, g[d] ** 2 @ ~shared)]
    if np.log(random.random()) >= evidence[0] - evidence[1]:
        return g, x
    rest = y[d] - g[d, shared] @ x[shared]
    columns = np.zeros((ROWS, len(born)))
    columns[d] = born
    covariance = np.linalg.inv(np.eye(len(born)) + np.outer(born, born))
    root = np.linalg.cholesky(covariance)
    new = np.outer(covariance @ born, rest) + root @ random.standard_normal((len(born), SAMPLES))
    return np.column_stack([g[:, shared], columns]), np.vstack([x[shared], new])


def main():
    arguments = common.options(__doc__).parse_args()
    chains, steps, plain = (100, 100, 2000) if arguments.quick else (200, 500, 100_000)
    random = np.random.default_rng(arguments.seed)
    draws, values = prior(random, chains * steps)
    independent = statistics(draws.loading, values)
    exact = independent.mean(axis=1)
    exact[:2] = MASS * np.sum(1.0 / np.arange(1, ROWS + 1)), MASS * ROWS
    error = independent.std(axis=1) / np.sqrt(independent.shape[1])
    error[:2] = 0.0

    found, seconds = {}, {}
    for name, changes in VARIANTS.items():
        begun = time.process_time()
        found[name] = by_sampler(
            serial if name.startswith("serial") else parallel, changes, arguments.seed, chains, steps
        )
        seconds[name] = time.process_time() - begun
    controls = {"by hand": {}, "delete own factors first": {"deleting": True}, "odds as printed": {"printed": True}}
    for name, fault in controls.items():
        begun = time.process_time()
        found[name] = by_hand(random, 20, plain // 20, **fault)
        seconds[name] = time.process_time() - begun
    rows, scores = [], {}
    for name, means in found.items():
        with np.errstate(invalid="ignore"):
            mean, spread = means.mean(axis=1), means.std(axis=1, ddof=1) / np.sqrt(means.shape[1])
        scores[name] = (mean - exact) / np.hypot(spread, error)
        worst = float(np.abs(scores[name]).max()) if np.isfinite(mean[0]) else np.inf
        rows.append([name, *mean[:2], spread[0], worst, seconds[name], PAPERS.get(name, "")])
    columns = ["sampler", "E K", "E active", "s.e. of K", "worst of 5 (s.e.)", "CPU s", "papers (K)"]
    common.table(f"{chains * steps} draws; by the prior K = {exact[0]:.4g}, active = {exact[1]:.4g}", columns, rows)
    print("Odds as printed never let a factor go: a mean of inf is that of a chain stopped at 300 factors.")
    common.save(
        arguments, "geweke", names=NAMES, exact=exact, means={name: one.mean(axis=1) for name, one in found.items()},
        scores=scores, seconds=seconds, papers=PAPERS,
    )  # fmt: skip


if __name__ == "__main__":
    main()
