"""NumPyro programs of some models of this folder, written from their sources and not from the programs beside them.

`by_nuts.py` holds the log density of each model against that of its second program, so that a reference does not rest on
this library's own densities alone. The sites have the names of the model's variables.
"""

import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jax.scipy.special import expit, logsumexp
from jax.scipy.stats import norm
from numpyro import sample
from numpyro.infer import util


def log_density(name, data, values):
    """The joint log density of a program at `values` of its latent variables."""
    data = {key: jnp.asarray(array) for key, array in data.items()}
    return float(util.log_density(PROGRAMS[name], (data,), {}, values)[0])


def normal(name, mean, sd, **options):
    return sample(name, dist.Normal(mean, sd), **options)


def many(name, distribution, *shape):
    return sample(name, distribution.expand(shape).to_event(len(shape)))


def straight_line(prior, to_sd=lambda noise: noise):
    def program(d):
        a, b = normal("intercept", 0.0, 10.0), normal("slope", 0.0, 5.0)
        normal("y", a + b * d["x"], to_sd(sample("noise", prior)), obs=d["y"])

    return program


def robust_line(d, dof=3.0):
    a, b = normal("intercept", 0.0, 10.0), normal("slope", 0.0, 10.0)
    scale = sample("scale", dist.HalfNormal(1.0))
    sample("y", dist.StudentT(dof, a + b * d["x"], scale), obs=d["y"])


def robust_line_unknown_dof(d):
    robust_line(d, sample("dof", dist.Gamma(2.0, 0.1)))


def changing_spread(d):
    a, b = normal("intercept", 0.0, 5.0), normal("slope", 0.0, 5.0)
    c, e = normal("log spread", 0.0, 1.0), normal("trend of spread", 0.0, 1.0)
    normal("y", a + b * d["x"], jnp.exp(c + e * d["x"]), obs=d["y"])


def gamma_shape_and_rate(d):
    shape, rate = sample("shape", dist.Gamma(1.0, 0.1)), sample("rate", dist.Gamma(1.0, 0.1))
    sample("y", dist.Gamma(shape, rate), obs=d["y"])


def gamma_regression(d):
    mean = jnp.exp(normal("intercept", 0.0, 2.0) + normal("slope", 0.0, 2.0) * d["x"])
    shape = sample("shape", dist.Gamma(2.0, 0.5))
    sample("y", dist.Gamma(shape, shape / mean), obs=d["y"])


def poisson_row_effects(d):
    a, b = normal("intercept", 0.0, 3.0), normal("slope", 0.0, 3.0)
    precision = sample("precision", dist.Gamma(2.0, 1.0))
    effect = many("effect", dist.Normal(0.0, 1.0 / jnp.sqrt(precision)), len(d["y"]))
    sample("y", dist.Poisson(jnp.exp(a + b * d["x"] + effect)), obs=d["y"])


def negative_binomial_regression(d):
    mean = jnp.exp(normal("intercept", 0.0, 3.0) + normal("slope", 0.0, 3.0) * d["x"])
    sample("y", dist.NegativeBinomial2(mean, sample("dispersion", dist.Gamma(2.0, 0.5))), obs=d["y"])


def ordinal_probit(d):
    score = normal("slope", 0.0, 2.0) * d["x"]
    first, gap = normal("first", 0.0, 2.0), sample("gap", dist.Gamma(2.0, 1.0))
    ends = jnp.array([norm.cdf(first - score), norm.cdf(first + gap - score)])
    p = jnp.array([ends[0], ends[1] - ends[0], 1.0 - ends[1]])
    numpyro.factor("y", jnp.log(p[d["y"], jnp.arange(len(score))]).sum())


def zero_inflated_poisson(d):
    theta, rate = sample("theta", dist.Beta(1.0, 1.0)), sample("rate", dist.Gamma(2.0, 0.5))
    both = jnp.array(
        [jnp.log(theta) + dist.Poisson(1e-9).log_prob(d["y"]), jnp.log1p(-theta) + dist.Poisson(rate).log_prob(d["y"])]
    )
    numpyro.factor("y", logsumexp(both, axis=0).sum())


def beta_regression(d):
    mean = expit(normal("intercept", 0.0, 2.0) + normal("slope", 0.0, 2.0) * d["x"])
    total = sample("total", dist.Gamma(2.0, 0.1))
    sample("y", dist.Beta(mean * total, (1.0 - mean) * total), obs=d["y"])


def emax(d):
    e0, top = normal("e0", 0.0, 5.0), normal("emax", 10.0, 5.0)
    ed50 = sample("ed50", dist.LogNormal(jnp.log(20.0), 1.0))
    normal("y", e0 + top / (1.0 + ed50 / d["dose"]), sample("sigma", dist.HalfNormal(2.0)), obs=d["y"])


def eight_schools(d):
    mu, tau = normal("mu", 0.0, 5.0), sample("tau", dist.HalfCauchy(5.0))
    normal("y", many("theta", dist.Normal(mu, tau), 8), d["s"], obs=d["y"])


def random_intercepts(d):
    mu, slope = normal("mu", 0.0, 5.0), normal("slope", 0.0, 5.0)
    between, within = sample("between", dist.HalfNormal(1.0)), sample("within", dist.HalfNormal(1.0))
    intercept = many("intercept", dist.Normal(mu, between), 10)
    normal("y", intercept[d["where"]] + slope * d["floor"], within, obs=d["y"])


def two_way_random_effects(d):
    mu = normal("mu", 20.0, 10.0)
    sd = {name: sample(name, dist.HalfNormal(2.0)) for name in ("sd_sample", "sd_dish", "noise")}
    a = many("a", dist.Normal(0.0, sd["sd_sample"]), 6)
    b = many("b", dist.Normal(0.0, sd["sd_dish"]), 8)
    normal("y", mu + a[:, None] + b[None], sd["noise"], obs=d["y"])


def beta_binomial(d):
    mean, total = sample("mean", dist.Beta(1.0, 1.0)), sample("total", dist.Gamma(2.0, 0.02))
    p = many("p", dist.Beta(mean * total, (1.0 - mean) * total), 18)
    sample("hits", dist.Binomial(45, p), obs=d["hits"])


def item_response_2pl(d):
    ability = many("ability", dist.Normal(0.0, 1.0), 40)
    difficulty = many("difficulty", dist.Normal(0.0, 1.0), 6)
    discrimination = many("discrimination", dist.LogNormal(0.0, 0.5), 6)
    score = discrimination * (ability[:, None] - difficulty)
    sample("y", dist.Bernoulli(logits=score), obs=d["y"])


def steps(name, first, then):
    """A latent chain whose density is written out element by element."""
    x = sample(name, dist.ImproperUniform(dist.constraints.real_vector, (), then[1]))
    numpyro.factor(f"{name} chain", first.log_prob(x[0]) + then[0](x[:-1]).log_prob(x[1:]).sum())
    return x


def ar1_plus_noise(d):
    phi = normal("phi", 0.5, 0.3)
    step, noise = sample("step", dist.HalfNormal(1.0)), sample("noise", dist.HalfNormal(1.0))
    x = steps("x", dist.Normal(0.0, 2.0), (lambda last: dist.Normal(phi * last, step), d["y"].shape))
    normal("y", x, noise, obs=d["y"])


def stochastic_volatility(d):
    mu, phi = normal("mu", -1.0, 2.0), normal("phi", 0.9, 0.1)
    sigma = sample("sigma", dist.HalfNormal(0.5))
    h = steps("h", dist.Normal(mu, 1.0), (lambda last: dist.Normal(mu + phi * (last - mu), sigma), d["y"].shape))
    normal("y", 0.0, jnp.exp(h / 2.0), obs=d["y"])


def poisson_level(d):
    step = sample("step", dist.HalfNormal(1.0))
    level = steps("level", dist.Normal(1.0, 1.0), (lambda last: dist.Normal(last, step), d["y"].shape))
    sample("y", dist.Poisson(jnp.exp(level)), obs=d["y"])


def missing_covariates(d):
    centre, width = normal("centre", 0.0, 5.0), sample("width", dist.HalfNormal(2.0))
    x = many("x", dist.Normal(centre, width), len(d["y"]))
    a, b = normal("intercept", 0.0, 5.0), normal("slope", 0.0, 5.0)
    normal("y", a + b * x, sample("noise", dist.HalfNormal(1.0)), obs=d["y"])


def measurement_error(d):
    centre, width = normal("centre", 0.0, 5.0), sample("width", dist.HalfNormal(2.0))
    x = many("x", dist.Normal(centre, width), len(d["y"]))
    normal("seen", x, 0.5, obs=d["seen"])
    a, b = normal("intercept", 0.0, 5.0), normal("slope", 0.0, 5.0)
    normal("y", a + b * x, sample("noise", dist.HalfNormal(1.0)), obs=d["y"])


def weibull_censored(d):
    shape, scale = sample("shape", dist.Gamma(2.0, 1.0)), sample("scale", dist.Gamma(2.0, 0.5))
    seen = dist.Weibull(scale, shape).log_prob(d["time"])
    numpyro.factor("time", jnp.where(d["censored"], -((d["time"] / scale) ** shape), seen).sum())


def gaussian_mixture(d):
    weights = sample("weights", dist.Dirichlet(jnp.array([5.0, 5.0])))
    mu = sample("mu", dist.Normal(jnp.array([-2.0, 2.0]), 1.0).to_event(1))
    sigma = many("sigma", dist.HalfNormal(2.0), 2)
    parts = jnp.log(weights) + dist.Normal(mu, sigma).log_prob(d["y"][:, None])
    numpyro.factor("y", logsumexp(parts, axis=1).sum())


PROGRAMS = {
    "line_half_normal": straight_line(dist.HalfNormal(2.0)),
    "line_half_cauchy": straight_line(dist.HalfCauchy(2.5)),
    "line_log_normal": straight_line(dist.LogNormal(0.0, 1.0)),
    "line_gamma": straight_line(dist.Gamma(2.0, 1.0)),
    "line_variance": straight_line(dist.HalfNormal(5.0), jnp.sqrt),
    **{
        program.__name__: program
        for program in (
            robust_line,
            robust_line_unknown_dof,
            changing_spread,
            gamma_shape_and_rate,
            gamma_regression,
            poisson_row_effects,
            negative_binomial_regression,
            ordinal_probit,
            zero_inflated_poisson,
            beta_regression,
            emax,
            eight_schools,
            random_intercepts,
            two_way_random_effects,
            beta_binomial,
            item_response_2pl,
            ar1_plus_noise,
            stochastic_volatility,
            poisson_level,
            missing_covariates,
            measurement_error,
            weibull_censored,
            gaussian_mixture,
        )
    },
}
