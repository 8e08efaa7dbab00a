"""Models of posteriordb and of the BUGS manual, as a statistician would write them.

Each function takes the data of the data base and returns the model, its data, and where each reference parameter is
found: a variable and an index, or a function of the posterior that gives its mean and standard deviation.
"""

from __future__ import annotations

import jax
import numpy as np
from scipy.special import gammaln

import cavity as cv

FLAT = 1e8  # the standard deviation of a prior that the data base leaves flat


def regression(x, y, sigma, beta_sd=FLAT):
    """y ~ N(beta . x, sigma^2); `sigma` is the term of its prior."""
    x = np.stack([np.asarray(column, float) for column in np.broadcast_arrays(*x)], axis=-1)
    d = x.shape[-1]
    m = cv.Model("regression")
    features = m.input("x", cv.vector(d), plates=m.plate("row"))
    beta = m.random("beta", cv.vector_gaussian(np.zeros(d), covariance=beta_sd**2 * np.eye(d)))
    noise = m.random("sigma", sigma)
    m.random("y", cv.gaussian(cv.dot(beta, features), sd=noise))
    where = {f"beta[{k + 1}]": ("beta", k) for k in range(d)} | {"sigma": ("sigma", ())}
    return m, {"x": x, "y": np.asarray(y, float)}, where


def flat_positive(y):
    """A proper prior of a standard deviation that is flat to four digits over all that data of this spread allow."""
    return cv.half_cauchy(100.0 * np.std(y))


def arrays(data):
    return {name: np.asarray(value, float) if isinstance(value, list) else value for name, value in data.items()}


def kidscore(columns, prior=None):
    """`columns(data)` gives the features; the prior of sigma is Cauchy(2.5) where none is given."""

    def program(data):
        d = arrays(data)
        return regression(columns(d), d["kid_score"], cv.half_cauchy(2.5) if prior is None else prior(d["kid_score"]))

    return program


def interaction_c(d):
    hs, iq = d["mom_hs"] - d["mom_hs"].mean(), d["mom_iq"] - d["mom_iq"].mean()
    return 1.0, hs, iq, hs * iq


def interaction_c2(d):
    hs, iq = d["mom_hs"] - 0.5, d["mom_iq"] - 100.0
    return 1.0, hs, iq, hs * iq


def interaction_z(d):
    hs, iq = ((v - v.mean()) / (2.0 * v.std(ddof=1)) for v in (d["mom_hs"], d["mom_iq"]))
    return 1.0, hs, iq, hs * iq


def mom_work(d):
    return 1.0, d["mom_work"] == 2, d["mom_work"] == 3, d["mom_work"] == 4


def earnings(columns, response):
    def program(data):
        d = arrays(data)
        return regression(columns(d), response(d["earn"]), flat_positive(response(d["earn"])))

    return program


def earnings_z(d):
    z = (d["height"] - d["height"].mean()) / d["height"].std(ddof=1)
    return 1.0, z, d["male"], z * d["male"]


def mesquite(data):
    d = arrays(data)
    names = ("diam1", "diam2", "canopy_height", "total_height", "density", "group")
    return regression((1.0, *(d[name] for name in names)), d["weight"], flat_positive(d["weight"]))


def logmesquite(*names):
    def program(data):
        d = arrays(data)
        log = {name: np.log(d[name]) for name in ("diam1", "diam2", "canopy_height", "total_height", "density")}
        columns = log | {
            "volume": log["diam1"] + log["diam2"] + log["canopy_height"],
            "area": log["diam1"] + log["diam2"],
            "shape": log["diam1"] - log["diam2"],
            "group": d["group"],
        }
        return regression(
            (1.0, *(columns[name] for name in names)), np.log(d["weight"]), flat_positive(np.log(d["weight"]))
        )

    return program


def nes(data):
    d = arrays(data)
    ages = (d["age_discrete"] == k for k in (2, 3, 4))
    columns = (1.0, d["real_ideo"], d["race_adj"], *ages, d["educ1"], d["gender"], d["income"])
    return regression(columns, d["partyid7"], flat_positive(d["partyid7"]))


def blr(data):
    d = arrays(data)
    return regression(d["X"].T, d["y"], cv.half_normal(10.0), beta_sd=10.0)


def arK(data):
    y, k = np.asarray(data["y"]), data["K"]
    lags = [y[k - i - 1 : len(y) - i - 1] for i in range(k)]
    m, given, _ = regression((1.0, *lags), y[k:], cv.half_cauchy(2.5), beta_sd=10.0)
    where = {"alpha": ("beta", 0), "sigma": ("sigma", ())} | {f"beta[{i + 1}]": ("beta", i + 1) for i in range(k)}
    return m, given, where


def eight_schools_centred(data):
    m = cv.Model("eight schools, centred")
    s = m.input("s", cv.positive, plates=m.plate("school"))
    mu = m.random("mu", cv.gaussian(0.0, sd=5.0))
    tau = m.random("tau", cv.half_cauchy(5.0))
    theta = m.random("theta", cv.gaussian(mu, sd=tau), plates=s.plates)
    m.random("y", cv.gaussian(theta, sd=s))
    return m, {"s": np.asarray(data["sigma"], float), "y": np.asarray(data["y"], float)}, schools()


def eight_schools_noncentred(data):
    m = cv.Model("eight schools, not centred")
    s = m.input("s", cv.positive, plates=m.plate("school"))
    mu = m.random("mu", cv.gaussian(0.0, sd=5.0))
    tau = m.random("tau", cv.half_cauchy(5.0))
    raw = m.random("raw", cv.gaussian(0.0, variance=1.0), plates=s.plates)
    theta = m.let("theta", mu + tau * raw)
    m.random("y", cv.gaussian(theta, sd=s))
    return m, {"s": np.asarray(data["sigma"], float), "y": np.asarray(data["y"], float)}, schools()


def schools():
    return {"mu": ("mu", ()), "tau": ("tau", ())} | {f"theta[{j + 1}]": ("theta", j) for j in range(8)}


def low_dim_gauss_mix(data):
    """Labels may come out in either order: the components are told apart by their means."""
    m = cv.Model("two Gaussians")
    k, n = m.plate("component", 2), m.plate("n")
    weights = m.random("weights", cv.dirichlet([5.0, 5.0]))
    mu = m.random("mu", cv.gaussian(0.0, sd=2.0), plates=k)
    sigma = m.random("sigma", cv.half_normal(2.0), plates=k)
    z = m.random("z", cv.categorical(weights), plates=n)
    m.random("y", cv.gaussian(mu[z], sd=sigma[z]))

    def part(name, rank):
        def find(posterior):
            i = np.argsort(posterior["mu"].mean)[rank]
            return posterior[name].mean[i], posterior[name].sd[i]

        return find

    where = {f"{name}[{rank + 1}]": part(name, rank) for name in ("mu", "sigma") for rank in (0, 1)}
    return m, {"y": np.asarray(data["y"])}, where | {"theta": part("weights", 0)}


def hmm_example(data):
    m = cv.Model("hidden Markov")
    k, t = m.plate("state", 2), m.plate("t")
    theta = m.random("theta", cv.dirichlet([1.0, 1.0]), plates=k)
    mu = m.random("mu", cv.gaussian([3.0, 10.0], variance=1.0), plates=k)
    z = m.chain("z", over=t, first=cv.categorical([0.5, 0.5]), then=lambda previous: cv.categorical(theta[previous]))
    m.random("y", cv.gaussian(mu[z], variance=1.0))
    where = {f"theta{i + 1}[{j + 1}]": ("theta", (i, j)) for i in (0, 1) for j in (0, 1)}
    return m, {"y": np.asarray(data["y"])}, where | {"mu[1]": ("mu", 0), "mu[2]": ("mu", 1)}


def sd_of(name):
    """Mean and standard deviation of 1 / sqrt(precision), for a precision that is Gamma, on a grid or draws."""

    def find(posterior):
        if name in getattr(posterior, "points", ()):
            sd, weights = posterior.points[name] ** -0.5, posterior.weights
            return weights @ sd, np.sqrt(weights @ sd**2 - (weights @ sd) ** 2)
        if "shape" not in posterior[name].parameters:
            sd = np.asarray(posterior[name].sample(jax.random.key(0), (100_000,))) ** -0.5
            return sd.mean(axis=0), sd.std(axis=0)
        shape, rate = (np.asarray(posterior[name].parameters[p]) for p in ("shape", "rate"))
        mean = np.exp(0.5 * np.log(rate) + gammaln(shape - 0.5) - gammaln(shape))
        return mean, np.sqrt(rate / (shape - 1.0) - mean**2)

    return find


def rats(data):
    m = cv.Model("rats")
    rat, week = m.plate("rat"), m.plate("week")
    age = m.input("age", cv.real, plates=week)
    alpha_c = m.random("alpha.c", cv.gaussian(0.0, precision=1e-6))
    beta_c = m.random("beta.c", cv.gaussian(0.0, precision=1e-6))
    tau_alpha, tau_beta, tau = (m.random(f"tau.{name}", cv.gamma(0.001, 0.001)) for name in ("alpha", "beta", "y"))
    alpha = m.random("alpha", cv.gaussian(alpha_c, precision=tau_alpha), plates=rat)
    beta = m.random("beta", cv.gaussian(beta_c, precision=tau_beta), plates=rat)
    m.random("y", cv.gaussian(alpha + beta * age, precision=tau), plates=(rat, week))
    m.let("alpha0", alpha_c - data["xbar"] * beta_c)
    where = {name: (name, ()) for name in ("alpha.c", "beta.c", "alpha0")}
    where |= {"sigma": sd_of("tau.y"), "sa": sd_of("tau.alpha"), "sb": sd_of("tau.beta")}
    where |= {f"{name}[{i + 1}]": (name, i) for name in ("alpha", "beta") for i in range(30)}
    return m, {"age": np.asarray(data["x"], float) - data["xbar"], "y": np.asarray(data["y"], float)}, where


def seeds(data):
    m = cv.Model("seeds")
    plate = m.plate("plate")
    n = m.input("n", cv.count, plates=plate)
    x = m.input("x", cv.vector(4), plates=plate)
    alpha = m.random("alpha", cv.vector_gaussian(np.zeros(4), precision=1e-6 * np.eye(4)))
    tau = m.random("tau", cv.gamma(0.001, 0.001))
    b = m.random("b", cv.gaussian(0.0, precision=tau), plates=plate)
    m.random("r", cv.binomial(n, cv.logistic(cv.dot(alpha, x) + b)))
    x1, x2 = (np.asarray(data[name], float) for name in ("x1", "x2"))
    given = {"n": data["N"], "r": data["n"], "x": np.stack([np.ones_like(x1), x1, x2, x1 * x2], axis=-1)}
    where = {name: ("alpha", i) for i, name in enumerate(("alpha0", "alpha1", "alpha2", "alpha12"))}
    return m, given, where | {"sigma": sd_of("tau")}


def surgical(data):
    m = cv.Model("surgical")
    n = m.input("n", cv.count, plates=m.plate("hospital"))
    mu = m.random("mu", cv.gaussian(0.0, precision=1e-6))
    tau = m.random("tau", cv.gamma(0.001, 0.001))
    b = m.random("b", cv.gaussian(mu, precision=tau), plates=n.plates)
    p = m.let("p", cv.logistic(b))
    m.let("pop.mean", cv.logistic(mu))
    m.random("r", cv.binomial(n, p))
    where = {"mu": ("mu", ()), "pop.mean": ("pop.mean", ()), "sigma": sd_of("tau")}
    return m, {"n": data["n"], "r": data["r"]}, where | {f"p[{i + 1}]": ("p", i) for i in range(12)}


def pump(data):
    m = cv.Model("pumps")
    t = m.input("t", cv.positive, plates=m.plate("pump"))
    alpha = m.random("alpha", cv.gamma(1.0, 1.0))
    beta = m.random("beta", cv.gamma(0.1, 1.0))
    theta = m.random("theta", cv.gamma(alpha, beta), plates=t.plates)
    m.random("x", cv.poisson(theta * t))
    where = {name: (name, ()) for name in ("alpha", "beta")}
    return m, {"t": data["t"], "x": data["x"]}, where | {f"theta[{i + 1}]": ("theta", i) for i in range(10)}


YEARS = range(1972, 2001, 4)
POSTERIORS = {
    "arK-arK": arK,
    "eight_schools-eight_schools_centered": eight_schools_centred,
    "eight_schools-eight_schools_noncentered": eight_schools_noncentred,
    "kidiq-kidscore_momiq": kidscore(lambda d: (1.0, d["mom_iq"])),
    "kidiq-kidscore_momhs": kidscore(lambda d: (1.0, d["mom_hs"])),
    "kidiq-kidscore_momhsiq": kidscore(lambda d: (1.0, d["mom_hs"], d["mom_iq"])),
    "kidiq-kidscore_interaction": kidscore(lambda d: (1.0, d["mom_hs"], d["mom_iq"], d["mom_hs"] * d["mom_iq"])),
    "kidiq_with_mom_work-kidscore_interaction_c": kidscore(interaction_c, flat_positive),
    "kidiq_with_mom_work-kidscore_interaction_c2": kidscore(interaction_c2, flat_positive),
    "kidiq_with_mom_work-kidscore_interaction_z": kidscore(interaction_z, flat_positive),
    "kidiq_with_mom_work-kidscore_mom_work": kidscore(mom_work, flat_positive),
    "mesquite-mesquite": mesquite,
    "mesquite-logmesquite": logmesquite("diam1", "diam2", "canopy_height", "total_height", "density", "group"),
    "mesquite-logmesquite_logva": logmesquite("volume", "area", "group"),
    "mesquite-logmesquite_logvas": logmesquite("volume", "area", "shape", "total_height", "density", "group"),
    "mesquite-logmesquite_logvash": logmesquite("volume", "area", "shape", "total_height", "group"),
    "mesquite-logmesquite_logvolume": logmesquite("volume"),
    **{f"nes{year}-nes": nes for year in YEARS},
    "earnings-earn_height": earnings(lambda d: (1.0, d["height"]), lambda earn: earn),
    "earnings-log10earn_height": earnings(lambda d: (1.0, d["height"]), np.log10),
    "earnings-logearn_height": earnings(lambda d: (1.0, d["height"]), np.log),
    "earnings-logearn_height_male": earnings(lambda d: (1.0, d["height"], d["male"]), np.log),
    "earnings-logearn_interaction": earnings(lambda d: (1.0, d["height"], d["male"], d["height"] * d["male"]), np.log),
    "earnings-logearn_interaction_z": earnings(earnings_z, np.log),
    "earnings-logearn_logheight_male": earnings(lambda d: (1.0, np.log(d["height"]), d["male"]), np.log),
    "sblri-blr": blr,
    "sblrc-blr": blr,
    "low_dim_gauss_mix-low_dim_gauss_mix": low_dim_gauss_mix,
    "hmm_example-hmm_example": hmm_example,
}
BUGS = {"rats": rats, "seeds": seeds, "surgical": surgical, "pump": pump}
