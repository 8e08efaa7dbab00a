"""The models in NumPyro, discrete variables summed out, sampled by NUTS."""

import cases
import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax.scipy.special import logsumexp
from numpyro.infer import MCMC, NUTS


def hierarchical(y):
    centre = numpyro.sample("centre", dist.Normal(0.0, 10.0))
    between = numpyro.sample("between", dist.Gamma(2.0, 1.0))
    within = numpyro.sample("within", dist.Gamma(2.0, 1.0))
    with numpyro.plate("group", y.shape[0]):
        effect = numpyro.sample("effect", dist.Normal(centre, between**-0.5))
    numpyro.sample("y", dist.Normal(effect[:, None], within**-0.5), obs=y)


def probit(x, y):
    w = numpyro.sample("w", dist.Normal(0.0, 2.0).expand([x.shape[1]]).to_event(1))
    score = jnp.where(y == 1, 1.0, -1.0) * (x @ w)
    numpyro.factor("y", jax.scipy.special.log_ndtr(score).sum())


def logistic(x, y):
    w = numpyro.sample("w", dist.Normal(0.0, 2.0).expand([x.shape[1]]).to_event(1))
    numpyro.sample("y", dist.Bernoulli(logits=x @ w), obs=y)


def mixture(y):
    share = numpyro.sample("share", dist.Dirichlet(jnp.ones(3)))
    centre = numpyro.sample("centre", dist.Normal(0.0, 5.0).expand([3]).to_event(1))
    precision = numpyro.sample("precision", dist.Gamma(2.0, 1.0).expand([3]).to_event(1))
    each = jnp.log(share) + dist.Normal(centre, precision**-0.5).log_prob(y[:, None])
    numpyro.factor("y", logsumexp(each, axis=-1).sum())


def factors(y):
    k = cases.FACTORS
    loading = numpyro.sample("loading", dist.Normal(0.0, 1.0).expand([len(y), k]).to_event(2))
    score = numpyro.sample("score", dist.Normal(0.0, 1.0).expand([k, y.shape[1]]).to_event(2))
    noise = numpyro.sample("noise", dist.Gamma(2.0, 1.0).expand([len(y)]).to_event(1))
    numpyro.sample("y", dist.Normal(loading @ score, noise[:, None] ** -0.5), obs=y)


def hmm(y):
    centre = numpyro.sample("centre", dist.Normal(0.0, 5.0).expand([3]).to_event(1))
    precision = numpyro.sample("precision", dist.Gamma(2.0, 1.0))
    change = numpyro.sample("change", dist.Dirichlet(jnp.ones(3)).expand([3]).to_event(1))
    each = dist.Normal(centre, precision**-0.5).log_prob(y[:, None])
    moves = jnp.log(change)

    def forward(before, own):
        return logsumexp(before[:, None] + moves, axis=0) + own, None

    end, _ = jax.lax.scan(forward, each[0] - jnp.log(3.0), each[1:])
    numpyro.factor("y", logsumexp(end))


def topics(document, word):
    theta = numpyro.sample("theta", dist.Dirichlet(jnp.full(cases.TOPICS, 0.5)).expand([cases.DOCUMENTS]).to_event(1))
    phi = numpyro.sample("phi", dist.Dirichlet(jnp.full(cases.WORDS, 0.1)).expand([cases.TOPICS]).to_event(1))
    numpyro.factor("words", jnp.log((theta @ phi)[document, word]).sum())


MODELS = {
    "hierarchical normal": hierarchical,
    "probit regression": probit,
    "logistic regression": logistic,
    "mixture of normals": mixture,
    "factor model": factors,
    "hidden Markov model": hmm,
    "topics": topics,
}


def sampler(case):
    """Draws of all that is watched; a second call compiles nothing and warms up anew."""
    data, kept = {name: jnp.asarray(array) for name, array in cases.DATA[case].items()}, {}

    def sample(draws, warmup, seed):
        if (draws, warmup) not in kept:
            kernel = NUTS(MODELS[case])
            kept[draws, warmup] = MCMC(kernel, num_warmup=warmup, num_samples=draws, progress_bar=False)
        chain = kept[draws, warmup]
        chain.run(jax.random.key(seed), **data)
        return {name: np.asarray(array)[None] for name, array in chain.get_samples().items()}

    return sample
