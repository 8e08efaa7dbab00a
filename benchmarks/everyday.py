"""Eight everyday models, each as programs of cavity, NumPyro, PyMC and statsmodels with the same priors.

    python benchmarks/everyday.py CONTESTANT MODEL

Prints json: CPU seconds of the process with its imports, CPU seconds from after the imports to the means and standard
deviations of the parameters, and these. NUTS is one chain of 1000 draws after 1000 warm-up draws; statsmodels maximises
the likelihood, without priors, and has no program for the hierarchies. No harness here: a process loads what it times.
"""

import json
import resource
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

SCHOOLS = {"y": [28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0], "sigma": [15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0]}
GROUPS = {"trials": [20, 20, 20, 19, 18, 25, 30, 10], "y": [3, 5, 2, 6, 7, 4, 9, 1]}
Data = dict[str, Any]  # arrays by name


class Everyday(NamedTuple):
    """One question: data from a generator of random numbers, the parameters asked for, and the program of each peer."""

    data: Callable[[Any], Data]
    names: tuple[str, ...]
    cavity: Callable[[Any], Any]  # declares the model
    numpyro: Callable[..., None]  # of `sample`, the distributions, and the data by name
    pymc: Callable[..., Any]  # of the package and the data by name, inside a model's context
    statsmodels: Callable[..., dict] | None = None  # fits: of the package and the data by name


# a coin --------------------------------------------------------------------------------------------------------------


def coin_data(random):
    return {"throw": random.random(21) < 0.6}


def coin_cavity(cv):
    m = cv.Model("coin")
    p = m.random("p", cv.beta(1.0, 1.0))
    m.random("throw", cv.bernoulli(p), plates=m.plate("n"))
    return m


def coin_numpyro(sample, dist, throw):
    p = sample("p", dist.Beta(1.0, 1.0))
    sample("throw", dist.Bernoulli(p), obs=throw.astype(int))


def coin_pymc(pm, throw):
    p = pm.Beta("p", 1.0, 1.0)
    pm.Bernoulli("throw", p, observed=throw)


def coin_statsmodels(sm, throw):
    fit = sm.GLM(throw.astype(float), [[1.0]] * len(throw), family=sm.families.Binomial()).fit()
    p = fit.fittedvalues[0]
    return {"p": (p, p * (1.0 - p) * fit.bse[0])}


# mean and precision --------------------------------------------------------------------------------------------------


def location_data(random):
    return {"x": random.normal(3.0, 2.0, size=50)}


def location_cavity(cv):
    m = cv.Model("mean and precision")
    mean = m.random("mean", cv.gaussian(0.0, variance=100.0))
    precision = m.random("precision", cv.gamma(shape=1.0, rate=1.0))
    m.random("x", cv.gaussian(mean, precision=precision), plates=m.plate("n"))
    return m


def location_numpyro(sample, dist, x):
    mean = sample("mean", dist.Normal(0.0, 10.0))
    precision = sample("precision", dist.Gamma(1.0, 1.0))
    sample("x", dist.Normal(mean, precision**-0.5), obs=x)


def location_pymc(pm, x):
    mean = pm.Normal("mean", 0.0, 10.0)
    precision = pm.Gamma("precision", 1.0, 1.0)
    pm.Normal("x", mean, tau=precision, observed=x)


def location_statsmodels(sm, x):
    fit = sm.OLS(x, [1.0] * len(x)).fit()
    return {"mean": (fit.params, fit.bse)}


# straight line -------------------------------------------------------------------------------------------------------


def line_data(random):
    t = random.normal(size=40)
    return {"t": t, "y": 1.0 + 0.5 * t + 0.7 * random.normal(size=40)}


def line_cavity(cv):
    m = cv.Model("straight line")
    t = m.input("t", cv.real, plates=m.plate("n"))
    intercept = m.random("intercept", cv.gaussian(0.0, variance=100.0))
    slope = m.random("slope", cv.gaussian(0.0, variance=100.0))
    precision = m.random("precision", cv.gamma(shape=1.0, rate=1.0))
    m.random("y", cv.gaussian(intercept + slope * t, precision=precision))
    return m


def line_numpyro(sample, dist, t, y):
    intercept, slope = sample("intercept", dist.Normal(0.0, 10.0)), sample("slope", dist.Normal(0.0, 10.0))
    precision = sample("precision", dist.Gamma(1.0, 1.0))
    sample("y", dist.Normal(intercept + slope * t, precision**-0.5), obs=y)


def line_pymc(pm, t, y):
    intercept, slope = pm.Normal("intercept", 0.0, 10.0), pm.Normal("slope", 0.0, 10.0)
    precision = pm.Gamma("precision", 1.0, 1.0)
    pm.Normal("y", intercept + slope * t, tau=precision, observed=y)


def line_statsmodels(sm, t, y):
    fit = sm.OLS(y, sm.add_constant(t)).fit()
    return {"intercept": (fit.params[0], fit.bse[0]), "slope": (fit.params[1], fit.bse[1])}


# logistic regression -------------------------------------------------------------------------------------------------


def logistic_data(random):
    x = random.normal(size=(100, 4))
    return {"x": x, "y": random.logistic(size=100) < x @ [1.0, -0.5, 0.3, 0.0] - 0.2}


def logistic_numpyro(sample, dist, x, y):
    weight = sample("weight", dist.Normal(0.0, 1.0).expand([4]).to_event(1))
    bias = sample("bias", dist.Normal(0.0, 1.0))
    sample("y", dist.Bernoulli(logits=x @ weight + bias), obs=y.astype(int))


def logistic_pymc(pm, x, y):
    weight, bias = pm.Normal("weight", 0.0, 1.0, shape=4), pm.Normal("bias", 0.0, 1.0)
    pm.Bernoulli("y", logit_p=x @ weight + bias, observed=y)


def logistic_statsmodels(sm, x, y):
    return generalised(sm, x, y, sm.families.Binomial())


def generalised(sm, x, y, family):
    fit = sm.GLM(y.astype(float), sm.add_constant(x), family=family).fit()
    return {"bias": (fit.params[0], fit.bse[0]), "weight": (fit.params[1:], fit.bse[1:])}


# Poisson regression --------------------------------------------------------------------------------------------------


def poisson_data(random):
    import numpy as np

    x = random.normal(size=(100, 3))
    return {"x": x, "y": random.poisson(np.exp(x @ [0.5, -0.3, 0.0] + 1.0))}


def poisson_numpyro(sample, dist, x, y):
    import jax.numpy as jnp

    weight = sample("weight", dist.Normal(0.0, 1.0).expand([3]).to_event(1))
    bias = sample("bias", dist.Normal(0.0, 10.0**0.5))
    sample("y", dist.Poisson(jnp.exp(x @ weight + bias)), obs=y)


def poisson_pymc(pm, x, y):
    weight, bias = pm.Normal("weight", 0.0, 1.0, shape=3), pm.Normal("bias", 0.0, 10.0**0.5)
    pm.Poisson("y", pm.math.exp(x @ weight + bias), observed=y)


def poisson_statsmodels(sm, x, y):
    return generalised(sm, x, y, sm.families.Poisson())


# eight schools -------------------------------------------------------------------------------------------------------


def schools_data(_):
    import numpy as np

    return {name: np.array(values) for name, values in SCHOOLS.items()}


def schools_cavity(cv):
    m = cv.Model("eight schools")
    sigma = m.input("sigma", cv.positive, plates=m.plate("school"))
    mu = m.random("mu", cv.gaussian(0.0, sd=5.0))
    tau = m.random("tau", cv.half_cauchy(5.0))
    theta = m.random("theta", cv.gaussian(mu, sd=tau), plates=sigma.plates)
    m.random("y", cv.gaussian(theta, sd=sigma))
    return m


def schools_numpyro(sample, dist, y, sigma):
    from numpyro import deterministic

    mu, tau = sample("mu", dist.Normal(0.0, 5.0)), sample("tau", dist.HalfCauchy(5.0))
    theta = deterministic("theta", mu + tau * sample("raw", dist.Normal(0.0, 1.0).expand([8]).to_event(1)))
    sample("y", dist.Normal(theta, sigma), obs=y)


def schools_pymc(pm, y, sigma):
    mu, tau = pm.Normal("mu", 0.0, 5.0), pm.HalfCauchy("tau", 5.0)
    theta = pm.Deterministic("theta", mu + tau * pm.Normal("raw", 0.0, 1.0, shape=8))
    pm.Normal("y", theta, sigma, observed=y)


# proportions by group ------------------------------------------------------------------------------------------------


def groups_data(_):
    import numpy as np

    return {name: np.array(values) for name, values in GROUPS.items()}


def groups_cavity(cv):
    m = cv.Model("beta-binomial groups")
    trials = m.input("trials", cv.count, plates=m.plate("group"))
    mean = m.random("mean", cv.beta(1.0, 1.0))
    total = m.random("total", cv.gamma(shape=2.0, rate=0.1))
    rate = m.random("rate", cv.beta(mean=mean, total=total), plates=trials.plates)
    m.random("y", cv.binomial(trials, rate))
    return m


def groups_numpyro(sample, dist, trials, y):
    mean, total = sample("mean", dist.Beta(1.0, 1.0)), sample("total", dist.Gamma(2.0, 0.1))
    rate = sample("rate", dist.Beta(mean * total, (1.0 - mean) * total).expand([8]).to_event(1))
    sample("y", dist.Binomial(trials, rate), obs=y)


def groups_pymc(pm, trials, y):
    mean, total = pm.Beta("mean", 1.0, 1.0), pm.Gamma("total", 2.0, 0.1)
    rate = pm.Beta("rate", mean * total, (1.0 - mean) * total, shape=8)
    pm.Binomial("y", trials, rate, observed=y)


# two groups ----------------------------------------------------------------------------------------------------------


def two_data(random):
    return {"a": random.normal(0.0, 1.0, size=25), "b": random.normal(0.6, 1.5, size=30)}


def two_cavity(cv):
    m = cv.Model("two groups")
    means = {}
    for group in ("a", "b"):
        means[group] = m.random(f"mean of {group}", cv.gaussian(0.0, variance=100.0))
        precision = m.random(f"precision of {group}", cv.gamma(shape=1.0, rate=1.0))
        m.random(group, cv.gaussian(means[group], precision=precision), plates=m.plate(f"n of {group}"))
    m.let("difference", means["b"] - means["a"])
    return m


def two_numpyro(sample, dist, a, b):
    from numpyro import deterministic

    means = {}
    for group, values in (("a", a), ("b", b)):
        means[group] = sample(f"mean of {group}", dist.Normal(0.0, 10.0))
        precision = sample(f"precision of {group}", dist.Gamma(1.0, 1.0))
        sample(group, dist.Normal(means[group], precision**-0.5), obs=values)
    deterministic("difference", means["b"] - means["a"])


def two_pymc(pm, a, b):
    means = {}
    for group, values in (("a", a), ("b", b)):
        means[group] = pm.Normal(f"mean of {group}", 0.0, 10.0)
        pm.Normal(group, means[group], tau=pm.Gamma(f"precision of {group}", 1.0, 1.0), observed=values)
    pm.Deterministic("difference", means["b"] - means["a"])


def two_statsmodels(sm, a, b):
    (first, first_sd), (second, second_sd) = (location_statsmodels(sm, values)["mean"] for values in (a, b))
    return {"difference": (second - first, (first_sd**2 + second_sd**2) ** 0.5)}


MODELS = {
    "coin": Everyday(coin_data, ("p",), coin_cavity, coin_numpyro, coin_pymc, coin_statsmodels),
    "mean and precision": Everyday(
        location_data,
        ("mean", "precision"),
        location_cavity,
        location_numpyro,
        location_pymc,
        location_statsmodels,
    ),
    "straight line": Everyday(
        line_data, ("intercept", "slope", "precision"), line_cavity, line_numpyro, line_pymc, line_statsmodels
    ),
    "logistic regression, 100 x 4": Everyday(
        logistic_data,
        ("weight", "bias"),
        lambda cv: cv.models.logistic_regression(4),
        logistic_numpyro,
        logistic_pymc,
        logistic_statsmodels,
    ),
    "Poisson regression, 100 x 3": Everyday(
        poisson_data,
        ("weight", "bias"),
        lambda cv: cv.models.poisson_regression(3),
        poisson_numpyro,
        poisson_pymc,
        poisson_statsmodels,
    ),
    "eight schools": Everyday(schools_data, ("mu", "tau", "theta"), schools_cavity, schools_numpyro, schools_pymc),
    "beta-binomial groups": Everyday(
        groups_data, ("mean", "total", "rate"), groups_cavity, groups_numpyro, groups_pymc
    ),
    "two groups": Everyday(two_data, ("difference",), two_cavity, two_numpyro, two_pymc, two_statsmodels),
}

# the contestants: each imports its package, and returns the function that answers ------------------------------------


def cavity():
    import cavity as cv

    def answer(everyday, data):
        posterior = cv.infer(everyday.cavity(cv), data)
        return {name: (posterior[name].mean, posterior[name].sd) for name in everyday.names}

    return answer


def numpyro():
    import jax
    import numpyro.distributions as dist
    from numpyro import sample
    from numpyro.infer import MCMC, NUTS

    def answer(everyday, data):
        kernel = NUTS(lambda **values: everyday.numpyro(sample, dist, **values))
        chain = MCMC(kernel, num_warmup=1_000, num_samples=1_000, num_chains=1, progress_bar=False)
        chain.run(jax.random.PRNGKey(0), **data)
        draws = chain.get_samples()
        return {name: (draws[name].mean(0), draws[name].std(0)) for name in everyday.names}

    return answer


def pymc():
    import nutpie  # noqa: F401 - PyMC's sampler here, imported with it
    import pymc as pm

    def answer(everyday, data):
        with pm.Model():
            everyday.pymc(pm, **data)
            setting = {"nuts_sampler": "nutpie", "progressbar": False, "random_seed": 0}
            draws = pm.sample(draws=1_000, tune=1_000, chains=1, cores=1, **setting).posterior
        kept = {name: draws[name].values[0] for name in everyday.names}
        return {name: (values.mean(0), values.std(0)) for name, values in kept.items()}

    return answer


def statsmodels():
    import statsmodels.api as sm

    return lambda everyday, data: everyday.statsmodels(sm, **data)


CONTESTANTS = {"cavity": cavity, "NumPyro": numpyro, "PyMC": pymc, "statsmodels": statsmodels}


def cpu_seconds():
    """CPU time since this process began, with that of compilers that it has called."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def main(contestant, name):
    """Prints the answer of one contestant to one question, and what it took."""
    import numpy as np

    everyday, answer = MODELS[name], CONTESTANTS[contestant]()
    data = everyday.data(np.random.default_rng(1))
    imported = cpu_seconds()
    found = answer(everyday, data)
    cpu = cpu_seconds()
    as_lists = {key: [np.atleast_1d(part).astype(float).tolist() for part in pair] for key, pair in found.items()}
    print(json.dumps({"cpu": cpu, "without imports": cpu - imported, "found": as_lists}))


if __name__ == "__main__":
    main(*sys.argv[1:])
