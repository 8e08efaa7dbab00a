"""Posteriors of sparse factor models as chains find them, and by weights of draws from the prior."""

import jax
import numpy as np
from geweke_of_factors import batched, draw_prior, numbers_of, observed_of

KEY = jax.random.key(1)
TWO_ROWS = np.array([[2.5, -1.4, 0.6], [1.9, -0.3, 0.2]])


def log_normal(power, both, noise, values):
    """log p(Y | G) of two rows with X integrated out, up to a constant, from the entries of G G^T."""
    samples, ((a, b), (_, d)) = values.shape[1], values @ values.T
    one, two = (each + 1.0 / noise for each in power)
    determinant = one * two - both**2
    return -0.5 * (samples * np.log(determinant) + (two * a - 2.0 * both * b + one * d) / determinant)


def posterior(case, sweep, values, functions, chains=500, warm=50, steps=60):
    """{name: (mean, standard error)} of functions of loadings (draws, P, D), from independent chains."""
    step, numbers = batched(sweep, case.switches), numbers_of(case)
    of_start, *keys = jax.random.split(KEY, warm + steps + 1)
    state = draw_prior(case, of_start, chains)
    observed = observed_of(case, np.broadcast_to(values, (chains, *values.shape)))
    total = dict.fromkeys(functions, 0.0)
    for i, key in enumerate(keys):
        outcome = step(key, state, observed, numbers)
        assert outcome.fits.all()
        state = outcome.state
        if i >= warm:
            total = {name: total[name] + function(state.loading) / steps for name, function in functions.items()}
    return {name: (each.mean(), each.std(ddof=1) / np.sqrt(chains)) for name, each in total.items()}


def squares(loading):
    return np.minimum((loading**2).sum((1, 2)), 20.0)


def near(found, exact, error=0.0):
    return abs(found[0] - exact) < 3.5 * np.hypot(found[1], error)


def weighted(case, functions, draws=400_000):
    """{name: (mean, standard error)} given TWO_ROWS, by weighting draws from the prior with the likelihood."""
    loading = draw_prior(case, jax.random.key(3), draws).loading
    power, both = (loading**2).sum(1).T, (loading[:, :, 0] * loading[:, :, 1]).sum(1)
    weight = np.exp(log_normal(power, both, case.noise, TWO_ROWS))
    weight /= weight.sum()
    found = {}
    for name, function in functions.items():
        value = function(loading).astype(float)
        mean = weight @ value
        found[name] = mean, np.sqrt((weight**2) @ (value - mean) ** 2)
    return found
