"""References of the models of this folder by NUTS (NumPyro) on each model's own joint log density.

    python benchmarks/first_hour/by_nuts.py stan bugs [--only NAME ...] [--draws 2500] [--again]

Writes <file>.json beside the models: means and standard deviations of every latent variable, kept only where R-hat is
below 1.01 and the effective size above 2,000 for all; the log evidence by bridge sampling where its standard error is
below 0.02. Where `second_opinions.py` has an independently written program of the model, the two log densities are
compared at draws of the posterior. Models of `by_quadrature.py` are left alone. Models in which NUTS mixes badly as
written get easier coordinates in `EASIER`.
"""

import argparse
import importlib
import json
import sys
import time
from pathlib import Path

import by_quadrature
import jax
import jax.numpy as jnp
import numpy as np
import scipy.optimize
import second_opinions
import truth
from numpyro import diagnostics
from numpyro.infer import MCMC, NUTS, init_to_uniform

import cavity as cv

HERE = Path(__file__).parent
LARGEST_RHAT, FEWEST = 1.01, 2000.0
CHAINS, WARMUP = 4, 1000
DENSE = 60  # coordinates up to which the mass matrix is full
MOST_EVIDENCE, EVIDENCE_ERROR = 150, 0.02


# easier coordinates ---------------------------------------------------------------------------------------------------
#
# Each takes the raw coordinates of a real variable and the values of the others, and returns the variable and the log
# of the Jacobian's determinant.


def away(centre, spread):
    """centre + spread * raw: not centred."""

    def forward(raw, v):
        s = jnp.broadcast_to(spread(v), raw.shape)
        return centre(v) + s * raw, jnp.sum(jnp.log(s))

    return forward


def walk(first, step, coefficient=lambda v: 1.0, centre=lambda v: 0.0):
    """A chain from its standardised innovations; `first` is the mean and the sd of its first element."""

    def forward(raw, v):
        mean, sd = first(v)
        start, c, phi = mean + sd * raw[0], centre(v), coefficient(v)

        def move(last, e):
            new = c + phi * (last - c) + step(v) * e
            return new, new

        rest = jax.lax.scan(move, start, raw[1:])[1]
        return jnp.append(start, rest), jnp.log(sd) + (len(raw) - 1) * jnp.log(step(v))

    return forward


def smoothed(first, step, coefficient, noise, seen="y"):
    """A Gaussian chain seen through Gaussian noise, from standardised coordinates of its conditional given the rest."""

    def forward(raw, v):
        (mean, sd), n = first(v), len(raw)
        scale = jnp.ones(n).at[0].set(1.0 / sd).at[1:].set(1.0 / step(v))
        innovations = jnp.diag(scale) - jnp.diag(coefficient(v) * scale[1:], -1)
        weight = noise(v) ** -2
        lower = jnp.linalg.cholesky(innovations.T @ innovations + weight * jnp.eye(n))
        right = weight * v[seen] + innovations.T @ jnp.zeros(n).at[0].set(mean / sd)
        centre = jax.scipy.linalg.cho_solve((lower, True), right)
        drawn = jax.scipy.linalg.solve_triangular(lower.T, raw, lower=False)
        return centre + drawn, -jnp.log(jnp.diag(lower)).sum()

    return forward


def given_data(precisions):
    """Independent elements from their Gaussian conditionals; `precisions` gives pairs of a precision and a centre."""

    def forward(raw, v):
        pairs = precisions(v)
        total = sum(jnp.broadcast_to(weight, raw.shape) for weight, _ in pairs)
        centre = sum(weight * at for weight, at in pairs) / total
        return centre + raw / jnp.sqrt(total), -0.5 * jnp.log(total).sum()

    return forward


def exposures(v):
    """Of measurement_error: the population, the measurement and the outcome."""
    outcome = (v["y"] - v["intercept"]) / v["slope"]
    return [(v["width"] ** -2, v["centre"]), (4.0, v["seen"]), ((v["slope"] / v["noise"]) ** 2, outcome)]


def batches(v):
    """Of dyes: the population and the five samples."""
    return [(v["between"] ** -2, v["theta"]), (5.0 * v["within"] ** -2, v["y"].mean(1))]


def subjects(v):
    """Of equiv: the population and the two periods."""
    rest = v["y"] - v["mu"] - 0.5 * v["phi"] * v["tablet"] - 0.5 * v["pi"] * v["sign"]
    return [(v["sd_subject"] ** -2, 0.0), (2.0 * v["noise"] ** -2, rest.mean(1))]


def zero(v):
    return 0.0


EASIER = {
    "poisson_row_effects": {"effect": away(zero, lambda v: v["precision"] ** -0.5)},
    "eight_schools": {"theta": away(lambda v: v["mu"], lambda v: v["tau"])},
    "random_intercepts": {"intercept": away(lambda v: v["mu"], lambda v: v["between"])},
    "logistic_random_effects": {"b": away(lambda v: v["mu"], lambda v: v["tau"])},
    "ar1_plus_noise": {
        "x": smoothed(lambda v: (0.0, 2.0), lambda v: v["step"], lambda v: v["phi"], lambda v: v["noise"])
    },
    "stochastic_volatility": {
        "h": walk(lambda v: (v["mu"], 1.0), lambda v: v["sigma"], lambda v: v["phi"], lambda v: v["mu"])
    },
    "volatility_random_walk": {"h": walk(lambda v: (0.0, 1.0), lambda v: v["step"])},
    "poisson_level": {"level": walk(lambda v: (1.0, 1.0), lambda v: v["step"])},
    "dyes": {"mu": given_data(batches)},
    "equiv": {"delta": given_data(subjects)},
    "measurement_error": {"x": given_data(exposures)},
    "seeds": {"b": away(zero, lambda v: v["sigma"])},
    "surgical": {"b": away(lambda v: v["mu"], lambda v: v["tau"] ** -0.5)},
    "salm": {"lambda": away(zero, lambda v: v["tau"] ** -0.5)},
    "epil": {
        "b1": away(zero, lambda v: v["tau.patient"] ** -0.5),
        "b": away(zero, lambda v: v["tau.visit"] ** -0.5),
    },
    "blocker": {"delta": away(lambda v: v["d"], lambda v: v["sigma"])},
    "local_level": {
        "level": smoothed(lambda v: (10.0, 5.0), lambda v: v["step"], lambda v: 1.0, lambda v: v["noise"], "flow")
    },
}


# the density ----------------------------------------------------------------------------------------------------------


class Target:
    """The log density of a model in unconstrained coordinates: easier ones where `EASIER` has them.

    A variable that is missing in part is left out of the data, and its known entries are put back.
    """

    def __init__(self, name, model, data):
        partly = {
            n: np.asarray(a, float) for n, a in data.items() if np.asarray(a).dtype.kind == "f" and n in model.randoms
        }
        self.pinned = {n: a for n, a in partly.items() if np.isnan(a).any()}
        sizes = {plate.name: len(a) for n, a in self.pinned.items() for plate in model.randoms[n].plates[:1]}
        self.density = cv.log_density(model, {n: a for n, a in data.items() if n not in self.pinned}, sizes or None)
        self.easier = EASIER.get(name, {})
        self.data = {n: jnp.asarray(a) for n, a in self.density.contents.data.items()}
        parts = self.density.slices
        free = np.ones(self.density.dimension, bool)
        fixed = np.zeros(self.density.dimension)
        for n, a in self.pinned.items():
            free[parts[n]] = np.isnan(a)
            fixed[parts[n]] = np.nan_to_num(a)
        self.free, self.fixed = np.flatnonzero(free), jnp.asarray(fixed)
        self.dimension = len(self.free)

    def all_coordinates(self, z):
        """Of the density, from those that are free; and the log determinant of the map."""
        z = self.fixed.at[self.free].set(z)
        log_det = 0.0
        for name, forward in self.easier.items():
            part = self.density.slices[name]
            values = {**self.data, **self.density.coordinates.values(z, self.data)}
            new, more = forward(z[part], values)
            z, log_det = z.at[part].set(new), log_det + more
        return z, log_det

    def __call__(self, z):
        full, log_det = self.all_coordinates(z)
        return self.density.height(full, self.data) + log_det

    def values(self, z):
        return self.density.coordinates.values(self.all_coordinates(z)[0], self.data)


def starts(target, steps, seed):
    """Four points, `steps` uphill from random ones, so that the warm-up is not spent on the way."""
    rng = np.random.default_rng(seed)
    call = jax.jit(jax.value_and_grad(lambda z: -target(z)))
    found = []
    while len(found) < CHAINS:
        z = rng.uniform(-1.0, 1.0, target.dimension)
        climbed = scipy.optimize.minimize(
            lambda z: [np.nan_to_num(np.asarray(a), nan=1e10, posinf=1e10) for a in call(z)],
            z,
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": steps},
        ).x
        if np.isfinite(call(climbed)[0]):
            found.append(climbed + 0.05 * rng.normal(size=len(z)))
    return np.array(found)


def sampled(target, draws, steps, seed):
    """Unconstrained draws, chains + draws + coordinates, and the number of divergences."""
    kernel = NUTS(
        potential_fn=lambda z: -target(z),
        dense_mass=target.dimension <= DENSE,
        target_accept_prob=0.9,
        max_tree_depth=9,
    )
    sampler = MCMC(
        kernel, num_warmup=WARMUP, num_samples=draws, num_chains=CHAINS, chain_method="vectorized", progress_bar=False
    )
    sampler.run(jax.random.key(seed), init_params=jnp.asarray(starts(target, steps, seed)), extra_fields=("diverging",))
    diverging = int(np.sum(sampler.get_extra_fields()["diverging"]))
    return np.asarray(sampler.get_samples(group_by_chain=True)), diverging


def log_evidence(target, z, seed):
    """By bridge sampling (Meng and Wong 1996) from a Gaussian fitted to half of the draws, and its standard error."""
    rng = np.random.default_rng(seed)
    z = z.reshape(-1, z.shape[-1])[rng.permutation(z.shape[0] * z.shape[1])]
    fit, used = np.array_split(z, 2)
    used = used[: 10 * 1000]
    mean, lower = fit.mean(0), np.linalg.cholesky(np.atleast_2d(np.cov(fit.T)))
    proposed = mean + rng.normal(size=used.shape) @ lower.T

    def log_q(x):
        e = np.linalg.solve(lower, (x - mean).T)
        return -0.5 * (e**2).sum(0) - np.log(np.diag(lower)).sum() - 0.5 * len(mean) * np.log(2.0 * np.pi)

    heights = jax.jit(lambda x: jax.lax.map(target, x, batch_size=1000))
    own, other = (np.asarray(heights(jnp.asarray(x))) - log_q(x) for x in (used, proposed))
    guess = np.median(own)
    for _ in range(200):
        up, down = np.logaddexp(0.0, guess - other), np.logaddexp(0.0, own - guess)
        guess = guess + np.log(np.mean(np.exp(-up))) - np.log(np.mean(np.exp(-down)))
    up, down = np.exp(-np.logaddexp(0.0, guess - other)), np.exp(-np.logaddexp(0.0, own - guess))
    error = np.sqrt(np.var(up) / np.mean(up) ** 2 / len(up) + 2.0 * np.var(down) / np.mean(down) ** 2 / len(down))
    return float(guess), float(error)


# one model ------------------------------------------------------------------------------------------------------------


def referenced(name, model, data, draws, steps, seed=0):
    """The entry of the json file, and whether NUTS has mixed."""
    if name in second_opinions.ALONE:
        return by_program(name, model, data, draws, seed)
    target = Target(name, model, data)
    z, divergences = sampled(target, draws, steps, seed)
    flat = jnp.asarray(z.reshape(-1, z.shape[-1]))
    values = jax.tree.map(np.asarray, jax.jit(lambda x: jax.lax.map(target.values, x, batch_size=1000))(flat))
    chains = {n: a.reshape(CHAINS, draws, *a.shape[1:]) for n, a in values.items()}
    entry, mixed = summary(chains, divergences, seed)
    if target.dimension <= MOST_EVIDENCE:
        found, error = log_evidence(target, z, seed)
        if error < EVIDENCE_ERROR:
            entry |= {"log_evidence": found, "evidence_how": f"bridge sampling, standard error {error:.4f}"}
    if name in second_opinions.PROGRAMS:
        entry["second_opinion"] = second_opinion(name, target, data, values)
    for variable in target.density.summed:
        entry["parameters"][variable] = {"mean": second_opinions.averaged(name, data, values, variable).tolist()}
    return entry, mixed


def by_program(name, model, data, draws, seed):
    """From the NumPyro program itself, where the model's own density has jumps."""
    program = second_opinions.ALONE[name]
    given = {n: jnp.asarray(a) for n, a in data.items()}
    kernel = NUTS(program, target_accept_prob=0.9, init_strategy=init_to_uniform(radius=0.5))
    sampler = MCMC(
        kernel, num_warmup=WARMUP, num_samples=draws, num_chains=CHAINS, chain_method="vectorized", progress_bar=False
    )
    sampler.run(jax.random.key(seed), given, extra_fields=("diverging",))
    chains = {n: np.asarray(a) for n, a in sampler.get_samples(group_by_chain=True).items() if n in model.randoms}
    entry, mixed = summary(chains, int(np.sum(sampler.get_extra_fields()["diverging"])), seed)
    entry["second_opinion"] = "the NumPyro program itself is what was sampled: the model's own density has jumps"
    return entry, mixed


def summary(chains, divergences, seed):
    """Means and standard deviations of arrays of chains + draws + the variable's shape, and whether they have mixed."""
    parameters, rhat, size = {}, 1.0, np.inf
    for variable, array in chains.items():
        flat = array.reshape(*array.shape[:2], -1)
        moving = flat.std(axis=(0, 1)) > 0  # entries that are known do not move
        mean, sd = flat.mean((0, 1)), np.where(moving, flat.std((0, 1), ddof=1), 0.0)
        parameters[variable] = {key: a.reshape(array.shape[2:]).tolist() for key, a in (("mean", mean), ("sd", sd))}
        rhat = max(rhat, float(np.max(diagnostics.split_gelman_rubin(flat[:, :, moving]))))
        size = min(size, float(np.min(diagnostics.effective_sample_size(flat[:, :, moving]))))
    how = (
        f"NUTS, {CHAINS} chains of {array.shape[1]:,} draws after {WARMUP:,}, seed {seed}, largest R-hat {rhat:.4f}, "
        f"smallest effective size {size:,.0f}, {divergences} divergences"
    )
    entry = {"how": how, "parameters": parameters, "log_evidence": None, "evidence_how": None}
    return entry, rhat < LARGEST_RHAT and size > FEWEST


def second_opinion(name, target, data, values):
    """The largest difference of the model's log density from that of its second program, at fifty draws."""
    some = {n: a[:: len(a) // 50][:50] for n, a in values.items()}
    gaps = []
    for i in range(50):
        at = {n: jnp.asarray(a[i]) for n, a in some.items()}
        gaps.append(float(target.density(at)) - second_opinions.log_density(name, data, at))
    gap = np.abs(gaps).max()
    if gap > 1e-6:
        raise ValueError(f"{name}: its second program has another log density, {np.min(gaps)} to {np.max(gaps)} away.")
    return f"a NumPyro program of its own has the same log density at 50 draws, to {gap:.0e}"


def rounded(tree):
    if isinstance(tree, dict):
        return {name: rounded(branch) for name, branch in tree.items()}
    if isinstance(tree, list):
        return [rounded(branch) for branch in tree]
    return float(f"{tree:.9g}") if isinstance(tree, float) else tree


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--only", nargs="+")
    parser.add_argument("--draws", type=int, default=2500)
    parser.add_argument("--again", action="store_true", help="also those that have a reference")
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", True)  # of this script alone
    for file in options.files:
        path = HERE / f"{file}.json"
        module = importlib.import_module(file)
        for make in (*module.MODELS, *module.WITHOUT_REFERENCE):
            name = make.__name__
            entries = json.loads(path.read_text()) if path.exists() else {}
            kept = name in entries and not options.again
            if (options.only and name not in options.only) or kept or name in by_quadrature.ENTRIES:
                continue
            before = time.perf_counter()
            try:
                entry, mixed = referenced(name, *make()[:2], options.draws, 25)
                if not mixed:  # a mode may be a spike, of no variance and no mass
                    print(f"{name}: once more, {entry['how']}", flush=True)
                    entry, mixed = referenced(name, *make()[:2], 4 * options.draws, 1)
            except (cv.CavityError, ValueError) as error:
                print(f"{name}: {error}", flush=True)
                continue
            said = "kept" if mixed else "NOT MIXED"
            evidence = entry["log_evidence"], entry["evidence_how"]
            print(f"{name}: {time.perf_counter() - before:.0f} s, {said}, {entry['how']}, {evidence}", flush=True)
            if mixed:
                truth.write(path, (json.loads(path.read_text()) if path.exists() else {}) | {name: rounded(entry)})


if __name__ == "__main__":
    sys.exit(main())
