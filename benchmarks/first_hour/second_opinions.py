"""NumPyro programs of some models of this folder, written from their sources and not from the programs beside them.

`by_nuts.py` holds the log density of each model against that of its second program, so that a reference does not rest
on this library's own densities alone. The sites have the names of the model's variables.
"""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax.scipy.special import expit, gammaln, logsumexp
from jax.scipy.stats import norm
from numpyro import handlers, sample
from numpyro.infer import util


def log_density(name, data, values):
    """The joint log density of a program at `values` of its latent variables."""
    data = {key: jnp.asarray(array) for key, array in data.items()}
    return float(util.log_density(PROGRAMS[name], (data,), {}, values)[0])


def averaged(name, data, values, variable):
    """The mean over draws of what a program calls `variable`: the probabilities of what it sums out."""
    data = {key: jnp.asarray(array) for key, array in data.items()}

    def at(draw):
        program = handlers.substitute(handlers.seed(PROGRAMS[name], 0), draw)
        return handlers.trace(program).get_trace(data)[variable]["value"]

    return np.asarray(jax.jit(lambda draws: jax.lax.map(at, draws, batch_size=1000))(values)).mean(0)


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
    r, y = sample("dispersion", dist.Gamma(2.0, 0.5)), d["y"]
    ways = gammaln(y + r) - gammaln(r) - gammaln(y + 1.0)  # NumPyro's own is of six digits
    numpyro.factor("y", (ways + r * jnp.log(r / (r + mean)) + y * jnp.log(mean / (r + mean))).sum())


def ordinal_probit(d):
    """The score is the quantile of a uniform number between the ends of its interval."""
    mean = normal("slope", 0.0, 2.0) * d["x"]
    cuts = jnp.array([-jnp.inf, normal("first", -0.5, 1.0), normal("second", 0.5, 1.0), jnp.inf])
    y = d["above first"].astype(int) + d["above second"].astype(int)
    low, high = norm.cdf(cuts[y] - mean), norm.cdf(cuts[y + 1] - mean)
    numpyro.factor("y", jnp.where(high > low, jnp.log(jnp.maximum(high - low, 1e-300)), -jnp.inf).sum())
    u = many("u", dist.Uniform(0.0, 1.0), len(mean))
    numpyro.deterministic("score", mean + norm.ppf(low + u * (high - low)))


def censored_measurements(d):
    mu, sigma = normal("mu", 0.0, 5.0), sample("sigma", dist.HalfNormal(2.0))
    normal("y", mu, sigma, obs=d["y"])
    gap = sample("gap", dist.ImproperUniform(dist.constraints.positive, (40 - len(d["y"]),), ()).to_event(1))
    below = numpyro.deterministic("below", 0.5 - gap)
    numpyro.factor("hidden", dist.Normal(mu, sigma).log_prob(below).sum())


def coal_mining(d):
    early, late = sample("early", dist.Gamma(1.0, 1.0)), sample("late", dist.Gamma(1.0, 1.0))
    first = jnp.append(0.0, jnp.cumsum(dist.Poisson(early).log_prob(d["y"])))
    second = jnp.append(0.0, jnp.cumsum(dist.Poisson(late).log_prob(d["y"])))
    each = (first + second[-1] - second)[: len(d["y"])] - jnp.log(len(d["y"]))  # change = 0, 1, ..., 110
    numpyro.factor("y", logsumexp(each))
    numpyro.deterministic("change", jnp.exp(each - logsumexp(each)))


def summed_out(name, first, second):
    """Both cases of a boolean, summed out, and its probability of the first."""
    both = jnp.logaddexp(first, second)
    numpyro.deterministic(name, jnp.exp(first - both))
    numpyro.factor(f"{name} summed out", both.sum())


def zero_inflated_poisson(d):
    theta, rate = sample("theta", dist.Beta(1.0, 1.0)), sample("rate", dist.Gamma(2.0, 0.5))
    none = jnp.log(theta) + dist.Poisson(1e-9).log_prob(d["y"])
    summed_out("zero", none, jnp.log1p(-theta) + dist.Poisson(rate).log_prob(d["y"]))


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
    each = logsumexp(parts, axis=1)
    numpyro.deterministic("z", jnp.exp(parts - each[:, None]))
    numpyro.factor("y", each.sum())


RATS_AGE = jnp.array([-14.0, -7.0, 0.0, 7.0, 14.0])


def rats(d):
    centre = [normal(name, 0.0, 1000.0) for name in ("alpha.c", "beta.c")]
    tau = [sample(f"tau.{name}", dist.Gamma(0.001, 0.001)) for name in ("alpha", "beta", "y")]
    alpha = many("alpha", dist.Normal(centre[0], tau[0] ** -0.5), 30)
    beta = many("beta", dist.Normal(centre[1], tau[1] ** -0.5), 30)
    normal("y", alpha[:, None] + beta[:, None] * RATS_AGE, tau[2] ** -0.5, obs=d["y"])


def dyes(d):
    theta = normal("theta", 1500.0, 1000.0)
    between, within = (sample(name, dist.HalfCauchy(50.0)) for name in ("between", "within"))
    normal("y", many("mu", dist.Normal(theta, between), 6)[:, None], within, obs=d["y"])


def stacks_student(d):
    beta = many("beta", dist.Normal(0.0, 100.0), 4)
    sample("y", dist.StudentT(4.0, d["x"] @ beta, sample("scale", dist.HalfCauchy(5.0))), obs=d["y"])


def pump(d):
    alpha, beta = sample("alpha", dist.Gamma(1.0, 1.0)), sample("beta", dist.Gamma(0.1, 1.0))
    sample("x", dist.Poisson(many("theta", dist.Gamma(alpha, beta), 10) * d["t"]), obs=d["x"])


def seeds(d):
    alpha, sigma = many("alpha", dist.Normal(0.0, 10.0), 4), sample("sigma", dist.HalfNormal(1.0))
    score = d["x"] @ alpha + many("b", dist.Normal(0.0, sigma), 21)
    sample("r", dist.Binomial(d["n"], logits=score), obs=d["r"])


def surgical(d):
    mu, tau = normal("mu", 0.0, 1000.0), sample("tau", dist.Gamma(0.001, 0.001))
    sample("r", dist.Binomial(d["n"], logits=many("b", dist.Normal(mu, tau**-0.5), 12)), obs=d["r"])


def epil(d):
    beta, last = many("beta", dist.Normal(0.0, 100.0), 5), normal("last", 0.0, 100.0)
    tau = [sample(f"tau.{name}", dist.Gamma(0.001, 0.001)) for name in ("patient", "visit")]
    b1, b = many("b1", dist.Normal(0.0, tau[0] ** -0.5), 59), many("b", dist.Normal(0.0, tau[1] ** -0.5), 59, 4)
    sample("y", dist.Poisson(jnp.exp((d["x"] @ beta + b1)[:, None] + last * d["fourth"] + b)), obs=d["y"])


def blocker(d):
    mean, sigma = normal("d", 0.0, 10.0), sample("sigma", dist.HalfNormal(1.0))
    mu, delta = many("mu", dist.Normal(0.0, 10.0), 22), many("delta", dist.Normal(mean, sigma), 22)
    sample("rc", dist.Binomial(d["nc"], logits=mu), obs=d["rc"])
    sample("rt", dist.Binomial(d["nt"], logits=mu + delta), obs=d["rt"])


def hearts(d):
    logit_p, logit_cured = normal("alpha", 0.0, 10.0), normal("delta", 0.0, 10.0)
    none = dist.Binomial(d["t"], 1e-9).log_prob(d["y"]) - jnp.log1p(jnp.exp(-logit_cured))
    some = dist.Binomial(d["t"], logits=logit_p).log_prob(d["y"]) - jnp.log1p(jnp.exp(logit_cured))
    summed_out("cured", none, some)


def mice(d):
    shape = sample("shape", dist.Gamma(1.0, 0.001))
    beta = many("beta", dist.Normal(0.0, 1000.0**0.5), 4)[d["g"]]
    seen = dist.Weibull(jnp.exp(-beta / shape), shape).log_prob(d["t"])
    numpyro.factor("t", jnp.where(d["censored"], -jnp.exp(beta) * d["t"] ** shape, seen).sum())


def eyes(d):
    first, shift = normal("first", 540.0, 30.0), sample("shift", dist.HalfNormal(30.0))
    sigma, p = sample("sigma", dist.HalfNormal(10.0)), sample("p", dist.Beta(1.0, 1.0))
    low, high = (dist.Normal(mean, sigma).log_prob(d["y"]) for mean in (first, first + shift))
    summed_out("second", jnp.log(p) + high, jnp.log1p(-p) + low)


# whose own density has jumps, so that NUTS runs on these
ALONE = {program.__name__: program for program in (ordinal_probit, censored_measurements)}
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
            coal_mining,
            rats,
            dyes,
            stacks_student,
            pump,
            seeds,
            surgical,
            epil,
            blocker,
            hearts,
            mice,
            eyes,
        )
    },
}
