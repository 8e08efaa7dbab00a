"""Mixed regressions under a link, as the command infers them, beside NUTS on the same model written in NumPyro."""

import numpy as np
import pytest

import cavity as cv
from cavity.command_line import EFFORT
from cavity.models.mixed.model import mixed

pandas = pytest.importorskip("pandas")
ROWS, GROUPS = 300, 15


def table():
    random = np.random.default_rng(0)
    g, x = random.integers(0, GROUPS, ROWS), random.normal(size=ROWS)
    levels, slopes = random.normal(0.0, 0.8, GROUPS), random.normal(0.0, 0.5, GROUPS)
    score = 0.3 + 0.7 * x + levels[g] + slopes[g] * x
    return pandas.DataFrame({"y": random.random(ROWS) < 1.0 / (1.0 + np.exp(-score)), "x": x, "g": g})


def by_nuts(frame):
    """Means and sds by NUTS, of the same priors."""
    jax, numpyro = pytest.importorskip("jax"), pytest.importorskip("numpyro")
    law, infer = numpyro.distributions, numpyro.infer
    x, y, g = (frame[name].to_numpy() for name in "xyg")

    def model():
        level = numpyro.sample("intercept", law.Normal(0.0, 2.5))
        slope = numpyro.sample("slope of x", law.Normal(0.0, 2.5 / x.std()))
        first = numpyro.sample("sd of intercept by g", law.HalfNormal(1.0))
        second = numpyro.sample("sd of x by g", law.HalfNormal(1.0 / x.std()))
        z = numpyro.sample("z", law.Normal(np.zeros((2, GROUPS)), 1.0).to_event(2))
        score = level + slope * x + first * z[0][g] + second * z[1][g] * x
        numpyro.sample("y", law.Bernoulli(logits=score), obs=y.astype(int))

    kernel = infer.NUTS(model, target_accept_prob=0.95)
    chains = infer.MCMC(
        kernel, num_warmup=1000, num_samples=2000, num_chains=2, chain_method="vectorized", progress_bar=False
    )
    with jax.enable_x64(True):
        chains.run(jax.random.key(0))
    return {name: (float(np.mean(d)), float(np.std(d))) for name, d in chains.get_samples().items() if name != "z"}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_sds_of_slopes_are_integrated():
    frame = table()
    model, data = mixed("y ~ x + (x || g)", frame, "bernoulli")
    found = cv.infer(model, data, effort=EFFORT)
    for name, (mean, sd) in by_nuts(frame).items():
        assert abs(found[name].mean - mean) < 0.15 * sd, name
        assert abs(found[name].sd / sd - 1.0) < 0.12, name
    assert found.verdict.level == "good"
