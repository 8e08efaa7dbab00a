"""Geweke's test of joint distributions: draws of parameters and data from the prior, against a chain that updates
parameters given data and then draws data given parameters. Both have the same law if the updates are right."""

import jax
import numpy as np

from cavity.engine.mcmc.keys import generator
from cavity.models.trees.divergence import Divergence
from cavity.models.trees.prior import TreePrior
from cavity.models.trees.shapes.arrays import pack, unpack
from cavity.models.trees.shapes.sample import sample_locations, sample_tree


def _prior_state(sampler, key):
    """Hyperparameters and a tree from their priors, data still to be drawn."""
    settings = sampler.settings
    learn, priors, random = settings.learn, settings.priors, generator(key)

    def gamma(name, start, law):
        shape, rate = law
        return random.gamma(shape) / rate if name in learn else start

    given = settings.prior
    divergence = Divergence(
        **{name: gamma(name, getattr(given.divergence, name), priors.rate) for name in ("constant", "rate", "square")}
    )
    prior = TreePrior(
        gamma("concentration", given.concentration, priors.concentration),
        random.beta(*priors.discount) if "discount" in learn else given.discount,
        divergence,
    )
    rate = priors.precision[1]
    if settings.shared_rate is not None:
        rate = random.gamma(settings.shared_rate[0]) / settings.shared_rate[1]
    precision = np.full(sampler.columns, 1.0 / settings.variance)
    if "variance" in learn:
        precision = random.gamma(priors.precision[0], size=sampler.columns) / rate
    noise = 1.0 / (random.gamma(priors.noise[0]) / priors.noise[1]) if "noise" in learn else settings.noise
    state = sampler.init(key)
    return state._replace(
        arrays=pack(sample_tree(prior, len(state.values), key)),
        coefficients=divergence.coefficients,
        concentration=np.array(prior.concentration),
        discount=np.array(prior.discount),
        precision=precision,
        precision_rate=np.array(rate),
        noise=np.array(noise),
    )


def with_data(sampler, state, key):
    """The state with data drawn given its parameters, and the sampler that has seen them.

    Gaps stay where they are; latent values of binary columns are drawn too, and their signs are the data.
    """
    tree, (n, columns) = unpack(state.arrays), state.values.shape
    variance = np.broadcast_to(1.0 / state.precision, columns)
    location = sample_locations(tree, columns, key, variance)[:n]
    random = np.random.default_rng(np.append(jax.random.key_data(key), 1))
    sd = np.sqrt(sampler.leaf_variance(np.broadcast_to(state.precision, columns), state.noise) * variance)
    values = location + sd * random.standard_normal(location.shape)
    sampler.signs = np.where(sampler.data.binary & sampler.data.seen, np.sign(values), 0.0)
    return state._replace(values=np.where(sampler.gaps, 0.0, values))


def features(sampler, state):
    """Bounded or light-tailed functions of parameters and data."""
    n = len(state.values)
    depth = state.arrays.depth[: 2 * n - 1]
    points = np.isfinite(depth) & (state.arrays.parent[: 2 * n - 1] >= 0)
    top = depth[points & (state.arrays.parent[: 2 * n - 1] == 2 * n - 1)][0]
    parent = state.arrays.parent
    values = np.where(sampler.gaps, 0.0, state.values)
    found = {
        "points": points.sum(),
        "top": np.exp(-top),
        "mean left": np.exp(-depth[points]).mean(),
        "siblings": float(parent[0] == parent[1]),
        "pairs": np.mean([parent[i] == parent[j] for i in range(n) for j in range(i)]),
        "top by points": np.exp(-top) * points.sum(),
        "largest": np.tanh(np.abs(values[:, 0]).max()),
        "spread": np.log(0.01 + (values[:, -1] ** 2).mean()),
        "product": np.tanh(values[0, 0] * values[1, 0]),
        "product by siblings": np.tanh(values[0, 0] * values[1, 0]) * (parent[0] == parent[1]),
        "last by top": np.tanh(np.abs(values[-1, -1])) * np.exp(-top),
    }
    learn = sampler.settings.learn
    if "variance" in learn:
        found["precision"] = np.log(state.precision[-1])
        found["precision by top"] = np.log(state.precision[0]) * np.exp(-top)
    if sampler.settings.shared_rate is not None:
        found["rate of precisions"] = np.log(state.precision_rate)
    if "noise" in learn:
        found["noise"] = np.log(state.noise)
    for i, name in enumerate(("constant", "rate", "square")):
        if name in learn:
            found[name] = np.log(state.coefficients[i])
    if "concentration" in learn:
        found["concentration"] = np.log(state.concentration)
        found["concentration by points"] = state.concentration * points.sum()
    if "discount" in learn:
        found["discount"] = state.discount
    return found


def scores(sampler, key, draws, chain=None):
    """{feature: difference of the two means in standard errors}, the chain's by batches.

    Args:
        chain: how many steps of the chain; as many as draws by default.
    """
    chain = chain or draws
    keys = list(jax.random.split(key, 2 * (draws + chain)))
    independent, dependent = [], []
    for _ in range(draws):
        state = with_data(sampler, _prior_state(sampler, keys.pop()), keys.pop())
        independent.append(features(sampler, state))
    for _ in range(chain):
        state = with_data(sampler, sampler.step(keys.pop(), state), keys.pop())
        dependent.append(features(sampler, state))
    result = {}
    for name in independent[0]:
        first, second = (np.array([found[name] for found in side], float) for side in (independent, dependent))
        if np.ptp(np.append(first, second)) == 0.0:
            continue
        batches = second[: len(second) // 40 * 40].reshape(40, -1).mean(axis=1)
        error = np.sqrt(first.var() / len(first) + batches.var(ddof=1) / 40)
        result[name] = float((first.mean() - second.mean()) / error)
    return result
