"""Models of Stan's manual and case studies and of PyMC's examples, as their users write them.

Each function of `MODELS` returns a model and its data. Small classic data are typed in, others come from a seeded
generator. `Refused` in a docstring says what the language did not take at the first try.
"""

import jax.numpy as jnp
import numpy as np

import cavity as cv


def numbers(text):
    return np.array(text.split(), float)


# straight lines -------------------------------------------------------------------------------------------------------

ANSCOMBE = {
    "x": numbers("10 8 13 9 11 14 6 4 12 7 5"),
    "y": numbers("8.04 6.95 7.58 8.81 8.33 9.96 7.24 4.26 10.84 4.82 5.68"),
}


def straight_line(**noise):
    [(argument, prior)] = noise.items()
    m = cv.Model("straight line")
    x = m.input("x", cv.real, plates=m.plate("row"))
    intercept = m.random("intercept", cv.gaussian(0.0, sd=10.0))
    slope = m.random("slope", cv.gaussian(0.0, sd=5.0))
    spread = m.random("noise", prior)
    m.random("y", cv.gaussian(intercept + slope * x, **{argument: spread}))
    return m, ANSCOMBE


def line_half_normal():
    """Stan's manual, linear regression; Anscombe's first data set."""
    return straight_line(sd=cv.half_normal(2.0))


def line_half_cauchy():
    """The same with the half-Cauchy noise of Gelman (2006)."""
    return straight_line(sd=cv.half_cauchy(2.5))


def line_log_normal():
    """The same with log-normal noise."""
    return straight_line(sd=cv.log_normal(0.0, variance=1.0))


def line_gamma():
    """The same with Gamma noise."""
    return straight_line(sd=cv.gamma(2.0, 1.0))


def line_variance():
    """The same, a half-normal prior of the variance."""
    return straight_line(variance=cv.half_normal(5.0))


def robust_line():
    """PyMC, robust regression: Student noise with unknown scale; a line with three outliers."""
    m = cv.Model("robust line")
    x = m.input("x", cv.real, plates=m.plate("row"))
    intercept = m.random("intercept", cv.gaussian(0.0, sd=10.0))
    slope = m.random("slope", cv.gaussian(0.0, sd=10.0))
    scale = m.random("scale", cv.half_normal(1.0))
    m.random("y", cv.student_t(3.0, intercept + slope * x, scale))
    rng = np.random.default_rng(42)
    x = np.linspace(0.0, 1.0, 50)
    y = 1.0 + 2.0 * x + rng.normal(0.0, 0.3, 50)
    y[[5, 20, 45]] += [4.0, 5.0, 3.0]
    return m, {"x": x, "y": y}


def robust_line_unknown_dof():
    """Stan's manual, robust noise models: degrees of freedom Gamma(2, 0.1) (Juarez and Steel 2010)."""
    _, data = robust_line()
    m = cv.Model("robust line, unknown degrees of freedom")
    x = m.input("x", cv.real, plates=m.plate("row"))
    intercept = m.random("intercept", cv.gaussian(0.0, sd=10.0))
    slope = m.random("slope", cv.gaussian(0.0, sd=10.0))
    scale = m.random("scale", cv.half_normal(1.0))
    dof = m.random("dof", cv.gamma(2.0, 0.1))
    m.random("y", cv.student_t(dof, intercept + slope * x, scale))
    return m, data


def median_regression():
    """Laplace noise, which makes the line that of medians; Anscombe's third set, with its outlier."""
    m = cv.Model("median regression")
    x = m.input("x", cv.real, plates=m.plate("row"))
    intercept = m.random("intercept", cv.gaussian(0.0, sd=10.0))
    slope = m.random("slope", cv.gaussian(0.0, sd=5.0))
    scale = m.random("scale", cv.half_normal(1.0))
    m.random("y", cv.laplace(intercept + slope * x, scale))
    return m, ANSCOMBE | {"y": numbers("7.46 6.77 12.74 7.11 7.81 8.84 6.08 5.39 8.15 6.42 5.73")}


def several_predictors():
    """posteriordb, mesquite, weight of bushes by their measures (logarithms), with the prior of Stan's examples."""
    m = cv.Model("mesquite")
    x = m.input("x", cv.vector(4), plates=m.plate("bush"))
    beta = m.random("beta", cv.vector_gaussian(np.zeros(4), covariance=100.0 * np.eye(4)))
    sigma = m.random("sigma", cv.half_normal(5.0))
    m.random("y", cv.gaussian(beta @ x, sd=sigma))
    diameter = numbers("1.8 1.7 2.8 1.3 3.3 1.4 1.5 3.9 1.8 2.1 0.8 1.3 1.2 1.5 2.8 1.4 1.5 2.4 1.9 2.3 2.1 2.4 1 1.3")
    height = numbers("1 1.33 .6 1.2 1.05 1 .9 1.3 .6 .8 .6 .95 1.2 .7 1.2 1.1 .64 1.2 1.2 1.3 1 .9 1 .5")
    total = numbers("1.3 1.35 2.16 1.8 1.55 1.2 1 1.7 .8 1.2 .9 1.35 1.4 1 1.7 1.5 .65 1.5 1.7 1.7 1.5 1.5 1.2 .7")
    weight = numbers(
        "401.3 513.7 1179.2 308 855.2 268.7 155.5 1253.2 328 614.6 60.2 269.6 448.4 120.4 378.7 266.4 138.9"
        " 1020.8 635.7 621.8 579.8 326.8 66.7 68"
    )
    x = np.stack([np.ones(24), np.log(diameter), np.log(height), np.log(total)], axis=1)
    return m, {"x": x, "y": np.log(weight)}


def two_groups():
    """PyMC, Bayesian estimation supersedes the t test (Kruschke): two means, two scales, common Student tails."""
    m = cv.Model("two groups")
    group = m.plate("group", 2)
    which = m.input("which", cv.index(group), plates=m.plate("person"))
    mean = m.random("mean", cv.gaussian(101.5, sd=10.0), plates=group)
    scale = m.random("scale", cv.half_normal(10.0), plates=group)
    m.random("y", cv.student_t(4.0, mean[which], scale[which]))
    drug = numbers(
        "101 100 102 104 102 97 105 105 98 101 100 123 105 103 100 95 102 106 109 102 82 102 100 102 102 101"
        " 102 102 103 103 97 97 103 101 97 104 96 103 124 101 101 100 101 101 104 100 101"
    )
    placebo = numbers(
        "99 101 100 101 102 100 97 101 104 101 102 102 100 105 88 101 100 104 100 100 100 101 102 103 97 101"
        " 101 100 101 99 101 100 100 101 100 99 101 100 102 99 100 99"
    )
    return m, {"y": np.concatenate([drug, placebo]), "which": np.repeat([0, 1], [len(drug), len(placebo)])}


def changing_spread():
    """Heteroscedastic regression: the logarithm of the standard deviation is a line, too."""
    m = cv.Model("changing spread")
    x = m.input("x", cv.real, plates=m.plate("row"))
    a, b = (m.random(name, cv.gaussian(0.0, sd=5.0)) for name in ("intercept", "slope"))
    c, d = (m.random(name, cv.gaussian(0.0, sd=1.0)) for name in ("log spread", "trend of spread"))
    m.random("y", cv.gaussian(a + b * x, sd=cv.exp(c + d * x)))
    rng = np.random.default_rng(1)
    x = np.linspace(-1.0, 1.0, 40)
    return m, {"x": x, "y": 1.0 + x + np.exp(-0.5 + 0.8 * x) * rng.normal(size=40)}


# links and counts -----------------------------------------------------------------------------------------------------


def gamma_shape_and_rate():
    """Stan's functions reference, gamma: 50 waiting times with unknown shape and rate."""
    m = cv.Model("gamma")
    shape = m.random("shape", cv.gamma(1.0, 0.1))
    rate = m.random("rate", cv.gamma(1.0, 0.1))
    m.random("y", cv.gamma(shape, rate), plates=m.plate("n"))
    return m, {"y": np.random.default_rng(0).gamma(3.0, 0.5, 50)}


def gamma_regression():
    """Gamma regression with a log link and a random shape."""
    m = cv.Model("gamma regression")
    x = m.input("x", cv.real, plates=m.plate("row"))
    a, b = (m.random(name, cv.gaussian(0.0, sd=2.0)) for name in ("intercept", "slope"))
    shape = m.random("shape", cv.gamma(2.0, 0.5))
    m.random("y", cv.gamma(shape, shape * cv.exp(-(a + b * x))))
    rng = np.random.default_rng(2)
    x = rng.normal(size=60)
    return m, {"x": x, "y": rng.gamma(3.0, np.exp(0.5 + 0.7 * x) / 3.0)}


def poisson_row_effects():
    """Poisson regression with an independent effect of each row (overdispersion), unknown precision."""
    m = cv.Model("poisson with row effects")
    x = m.input("x", cv.real, plates=m.plate("row"))
    a, b = (m.random(name, cv.gaussian(0.0, sd=3.0)) for name in ("intercept", "slope"))
    precision = m.random("precision", cv.gamma(2.0, 1.0))
    effect = m.random("effect", cv.gaussian(0.0, precision=precision), plates=x.plates)
    m.random("y", cv.poisson(cv.exp(a + b * x + effect)))
    rng = np.random.default_rng(3)
    x = rng.normal(size=40)
    return m, {"x": x, "y": rng.poisson(np.exp(1.0 + 0.5 * x + 0.6 * rng.normal(size=40)))}


def poisson_regression():
    """Poisson regression: awards of students by mathematics score, as in UCLA's and PyMC's examples (simulated)."""
    m = cv.Model("poisson regression")
    x = m.input("x", cv.vector(3), plates=m.plate("row"))
    beta = m.random("beta", cv.vector_gaussian(np.zeros(3), covariance=4.0 * np.eye(3)))
    m.random("y", cv.poisson(cv.exp(beta @ x)))
    rng = np.random.default_rng(4)
    x = np.column_stack([np.ones(60), rng.normal(size=60), rng.integers(0, 2, 60)])
    return m, {"x": x, "y": rng.poisson(np.exp(x @ [0.3, 0.6, -0.5]))}


def negative_binomial_regression():
    """PyMC and Stan's manual: negative binomial regression with unknown dispersion."""
    m = cv.Model("negative binomial regression")
    x = m.input("x", cv.real, plates=m.plate("row"))
    a, b = (m.random(name, cv.gaussian(0.0, sd=3.0)) for name in ("intercept", "slope"))
    dispersion = m.random("dispersion", cv.gamma(2.0, 0.5))
    m.random("y", cv.negative_binomial(cv.exp(a + b * x), dispersion))
    rng = np.random.default_rng(5)
    x = rng.normal(size=80)
    return m, {"x": x, "y": rng.poisson(np.exp(1.0 + 0.6 * x) * rng.gamma(2.0, 0.5, 80))}


def logistic_regression():
    """Logistic regression: the space shuttle's O-rings (23 launches, distress by temperature)."""
    m = cv.Model("challenger")
    x = m.input("x", cv.real, plates=m.plate("launch"))
    a = m.random("intercept", cv.gaussian(0.0, sd=10.0))
    b = m.random("slope", cv.gaussian(0.0, sd=1.0))
    m.random("y", cv.bernoulli(cv.logistic(a + b * x)))
    fahrenheit = numbers("66 70 69 68 67 72 73 70 57 63 70 78 67 53 67 75 70 81 76 79 75 76 58")
    distress = numbers("0 1 0 0 0 0 0 0 1 1 1 0 0 1 0 0 0 0 0 0 1 0 1") > 0
    return m, {"x": fahrenheit - 70.0, "y": distress}


def bioassay():
    """Gelman et al., Bayesian Data Analysis: four doses, five animals each, with weak normal priors."""
    m = cv.Model("bioassay")
    dose = m.input("dose", cv.real, plates=m.plate("group"))
    alpha = m.random("alpha", cv.gaussian(0.0, sd=2.0))
    beta = m.random("beta", cv.gaussian(10.0, sd=10.0))
    m.random("deaths", cv.binomial(5, cv.logistic(alpha + beta * dose)))
    return m, {"dose": numbers("-0.86 -0.30 -0.05 0.73"), "deaths": [0, 1, 3, 5]}


def ordinal_probit():
    """Stan's manual, ordered probit: a slope and two random cutpoints, by the latent score that exceeds them or not.

    Refused: ordered_probit(slope * x, stack(first, second)), whose score and cutpoints are three random numbers.
    """
    m = cv.Model("ordinal probit")
    x = m.input("x", cv.real, plates=m.plate("row"))
    slope = m.random("slope", cv.gaussian(0.0, sd=2.0))
    first = m.random("first", cv.gaussian(-0.5, sd=1.0))
    second = m.random("second", cv.gaussian(0.5, sd=1.0))
    score = m.random("score", cv.gaussian(slope * x, variance=1.0))
    m.let("above first", score > first)
    m.let("above second", score > second)
    rng = np.random.default_rng(6)
    x = rng.normal(size=80)
    y = np.digitize(x + rng.normal(size=80), [-0.5, 0.8])
    return m, {"x": x, "above first": y > 0, "above second": y > 1}


def zero_inflated_poisson():
    """Stan's manual, zero-inflated counts: each row is a structural zero or Poisson."""
    m = cv.Model("zero-inflated poisson")
    theta = m.random("theta", cv.beta(1.0, 1.0))
    rate = m.random("rate", cv.gamma(2.0, 0.5))
    zero = m.random("zero", cv.bernoulli(theta), plates=m.plate("n"))
    m.random("y", cv.switch(zero, cv.poisson(1e-9), cv.poisson(rate)))
    rng = np.random.default_rng(7)
    return m, {"y": rng.poisson(2.5, 60) * (rng.random(60) > 0.3)}


def beta_regression():
    """Beta regression (Ferrari and Cribari-Neto), logistic link and a random total."""
    m = cv.Model("beta regression")
    x = m.input("x", cv.real, plates=m.plate("row"))
    a, b = (m.random(name, cv.gaussian(0.0, sd=2.0)) for name in ("intercept", "slope"))
    total = m.random("total", cv.gamma(2.0, 0.1))
    m.random("y", cv.beta(mean=cv.logistic(a + b * x), total=total))
    rng = np.random.default_rng(8)
    x = rng.normal(size=50)
    p = 1.0 / (1.0 + np.exp(-(0.3 + 0.8 * x)))
    return m, {"x": x, "y": rng.beta(12.0 * p, 12.0 * (1.0 - p))}


def emax():
    """Dose response, the Emax curve: y = e0 + emax dose / (ed50 + dose) + noise."""
    m = cv.Model("emax")
    dose = m.input("dose", cv.positive, plates=m.plate("patient"))
    e0 = m.random("e0", cv.gaussian(0.0, sd=5.0))
    top = m.random("emax", cv.gaussian(10.0, sd=5.0))
    ed50 = m.random("ed50", cv.log_normal(np.log(20.0), variance=1.0))
    sigma = m.random("sigma", cv.half_normal(2.0))
    m.random("y", cv.gaussian(e0 + top * dose / (ed50 + dose), sd=sigma))
    rng = np.random.default_rng(9)
    dose = np.repeat([0.01, 5.0, 10.0, 25.0, 50.0, 100.0], 8)
    return m, {"dose": dose, "y": 2.0 + 10.0 * dose / (15.0 + dose) + rng.normal(0.0, 1.0, 48)}


# hierarchies ----------------------------------------------------------------------------------------------------------

SCHOOLS = {"s": numbers("15 10 16 11 9 11 10 18"), "y": numbers("28 8 -3 7 -1 1 18 12")}


def eight_schools():
    """Rubin (1981), centred as everybody writes it first; Gelman's half-Cauchy."""
    m = cv.Model("eight schools")
    s = m.input("s", cv.positive, plates=m.plate("school"))
    mu = m.random("mu", cv.gaussian(0.0, sd=5.0))
    tau = m.random("tau", cv.half_cauchy(5.0))
    theta = m.random("theta", cv.gaussian(mu, sd=tau), plates=s.plates)
    m.random("y", cv.gaussian(theta, sd=s))
    return m, SCHOOLS


def eight_schools_noncentred():
    """The same as Stan users write it second."""
    m = cv.Model("eight schools, not centred")
    s = m.input("s", cv.positive, plates=m.plate("school"))
    mu = m.random("mu", cv.gaussian(0.0, sd=5.0))
    tau = m.random("tau", cv.half_cauchy(5.0))
    raw = m.random("raw", cv.gaussian(0.0, sd=1.0), plates=s.plates)
    m.random("y", cv.gaussian(mu + tau * raw, sd=s))
    return m, SCHOOLS


def random_intercepts():
    """Gelman's radon model: varying intercepts of counties, a common slope, two random spreads (simulated)."""
    m = cv.Model("random intercepts")
    county, home = m.plate("county", 10), m.plate("home")
    where = m.input("where", cv.index(county), plates=home)
    floor = m.input("floor", cv.real, plates=home)
    mu = m.random("mu", cv.gaussian(0.0, sd=5.0))
    slope = m.random("slope", cv.gaussian(0.0, sd=5.0))
    between = m.random("between", cv.half_normal(1.0))
    within = m.random("within", cv.half_normal(1.0))
    intercept = m.random("intercept", cv.gaussian(mu, sd=between), plates=county)
    m.random("y", cv.gaussian(intercept[where] + slope * floor, sd=within))
    rng = np.random.default_rng(10)
    where, floor = rng.integers(0, 10, 80), (rng.random(80) < 0.3).astype(float)
    y = 1.3 + rng.normal(0.0, 0.4, 10)[where] - 0.7 * floor + rng.normal(0.0, 0.7, 80)
    return m, {"where": where, "floor": floor, "y": y}


def random_slopes():
    """Varying intercepts and slopes, independent, as in PyMC's multilevel primer (simulated)."""
    m = cv.Model("random slopes")
    group, row = m.plate("group", 8), m.plate("row")
    g = m.input("g", cv.index(group), plates=row)
    x = m.input("x", cv.real, plates=row)
    mean_a, mean_b = (m.random(name, cv.gaussian(0.0, sd=5.0)) for name in ("mean_a", "mean_b"))
    sd_a, sd_b, noise = (m.random(name, cv.half_normal(1.0)) for name in ("sd_a", "sd_b", "noise"))
    a = m.random("a", cv.gaussian(mean_a, sd=sd_a), plates=group)
    b = m.random("b", cv.gaussian(mean_b, sd=sd_b), plates=group)
    m.random("y", cv.gaussian(a[g] + b[g] * x, sd=noise))
    rng = np.random.default_rng(11)
    g, x = np.repeat(np.arange(8), 10), rng.normal(size=80)
    a, b = rng.normal(1.0, 0.8, 8), rng.normal(0.5, 0.4, 8)
    return m, {"g": g, "x": x, "y": a[g] + b[g] * x + rng.normal(0.0, 0.5, 80)}


def two_way_random_effects():
    """Crossed effects of rows and columns: Davies' penicillin by sample and plate, here 6 x 8 (simulated)."""
    m = cv.Model("two-way random effects")
    sample, plate = m.plate("sample"), m.plate("dish")
    mu = m.random("mu", cv.gaussian(20.0, sd=10.0))
    sd_sample, sd_dish, noise = (m.random(name, cv.half_normal(2.0)) for name in ("sd_sample", "sd_dish", "noise"))
    a = m.random("a", cv.gaussian(0.0, sd=sd_sample), plates=sample)
    b = m.random("b", cv.gaussian(0.0, sd=sd_dish), plates=plate)
    m.random("y", cv.gaussian(mu + a + b, sd=noise), plates=(sample, plate))
    rng = np.random.default_rng(12)
    y = 23.0 + rng.normal(0.0, 1.7, 6)[:, None] + rng.normal(0.0, 0.8, 8) + rng.normal(0.0, 0.5, (6, 8))
    return m, {"y": y}


def beta_binomial():
    """Hierarchical beta-binomial: the first 18 batters of Efron and Morris (1975), mean and total random."""
    m = cv.Model("baseball")
    mean = m.random("mean", cv.beta(1.0, 1.0))
    total = m.random("total", cv.gamma(2.0, 0.02))
    p = m.random("p", cv.beta(mean=mean, total=total), plates=m.plate("batter"))
    m.random("hits", cv.binomial(45, p))
    return m, {"hits": [18, 17, 16, 15, 14, 14, 13, 12, 11, 11, 10, 10, 10, 10, 10, 9, 8, 7]}


def logistic_random_effects():
    """A binomial meta-analysis of one arm: logits of groups around a mean (simulated)."""
    m = cv.Model("logistic random effects")
    n = m.input("n", cv.count, plates=m.plate("group"))
    mu = m.random("mu", cv.gaussian(0.0, sd=2.0))
    tau = m.random("tau", cv.half_normal(1.0))
    b = m.random("b", cv.gaussian(mu, sd=tau), plates=n.plates)
    m.random("r", cv.binomial(n, cv.logistic(b)))
    rng = np.random.default_rng(13)
    n = rng.integers(8, 30, 15)
    return m, {"n": n, "r": rng.binomial(n, 1.0 / (1.0 + np.exp(-rng.normal(-0.5, 0.7, 15))))}


def rasch():
    """Stan's manual, item response with one parameter: 30 students, 8 items (simulated)."""
    m = cv.Model("rasch")
    student, item = m.plate("student"), m.plate("item")
    mean = m.random("mean", cv.gaussian(0.0, sd=1.0))
    ability = m.random("ability", cv.gaussian(0.0, sd=1.0), plates=student)
    difficulty = m.random("difficulty", cv.gaussian(0.0, sd=1.0), plates=item)
    m.random("y", cv.bernoulli(cv.logistic(mean + ability - difficulty)), plates=(student, item))
    rng = np.random.default_rng(14)
    score = 0.3 + rng.normal(size=30)[:, None] - rng.normal(size=8)
    return m, {"y": rng.random((30, 8)) < 1.0 / (1.0 + np.exp(-score))}


def item_response_2pl():
    """Stan's manual, item response with two parameters: positive discriminations; 40 students, 6 items (simulated)."""
    m = cv.Model("2PL")
    student, item = m.plate("student"), m.plate("item")
    ability = m.random("ability", cv.gaussian(0.0, sd=1.0), plates=student)
    difficulty = m.random("difficulty", cv.gaussian(0.0, sd=1.0), plates=item)
    discrimination = m.random("discrimination", cv.log_normal(0.0, variance=0.25), plates=item)
    m.random("y", cv.bernoulli(cv.logistic(discrimination * (ability - difficulty))), plates=(student, item))
    rng = np.random.default_rng(15)
    score = np.exp(0.4 * rng.normal(size=6)) * (rng.normal(size=40)[:, None] - rng.normal(size=6))
    return m, {"y": rng.random((40, 6)) < 1.0 / (1.0 + np.exp(-score))}


# time series ----------------------------------------------------------------------------------------------------------


def observed_ar1():
    """Stan's manual, AR(1) observed: intercept, coefficient and noise."""
    m = cv.Model("autoregression")
    before = m.input("before", cv.real, plates=m.plate("t"))
    alpha = m.random("alpha", cv.gaussian(0.0, sd=10.0))
    beta = m.random("beta", cv.gaussian(0.0, sd=1.0))
    sigma = m.random("sigma", cv.half_normal(2.0))
    m.random("y", cv.gaussian(alpha + beta * before, sd=sigma))
    y = latent_ar(np.random.default_rng(16), 60, 0.7, 0.5)
    return m, {"before": y[:-1], "y": y[1:]}


def latent_ar(rng, length, coefficient, sd):
    x = np.zeros(length)
    for t in range(1, length):
        x[t] = coefficient * x[t - 1] + sd * rng.normal()
    return x


def ar1_plus_noise():
    """A latent AR(1) seen through noise: coefficient and both spreads unknown."""
    m = cv.Model("AR(1) plus noise")
    phi = m.random("phi", cv.gaussian(0.5, sd=0.3))
    step = m.random("step", cv.half_normal(1.0))
    noise = m.random("noise", cv.half_normal(1.0))
    x = m.chain(
        "x", over=m.plate("t"), first=cv.gaussian(0.0, sd=2.0), then=lambda last: cv.gaussian(phi * last, sd=step)
    )
    m.random("y", cv.gaussian(x, sd=noise))
    rng = np.random.default_rng(17)
    return m, {"y": latent_ar(rng, 60, 0.8, 0.7) + rng.normal(0.0, 0.4, 60)}


def stochastic_volatility():
    """Stan's manual (Kim, Shephard and Chib 1998): returns whose log variance is a latent AR(1)."""
    m = cv.Model("stochastic volatility")
    mu = m.random("mu", cv.gaussian(-1.0, sd=2.0))
    phi = m.random("phi", cv.gaussian(0.9, sd=0.1))
    sigma = m.random("sigma", cv.half_normal(0.5))
    h = m.chain(
        "h",
        over=m.plate("t"),
        first=cv.gaussian(mu, sd=1.0),
        then=lambda last: cv.gaussian(mu + phi * (last - mu), sd=sigma),
    )
    m.random("y", cv.gaussian(0.0, sd=cv.exp(0.5 * h)))
    rng = np.random.default_rng(18)
    return m, {"y": np.exp(0.5 * (-1.0 + latent_ar(rng, 100, 0.9, 0.4))) * rng.normal(size=100)}


def volatility_random_walk():
    """PyMC, stochastic volatility: the log volatility is a random walk with unknown step."""
    m = cv.Model("volatility as a random walk")
    step = m.random("step", cv.half_normal(0.5))
    h = m.chain("h", over=m.plate("t"), first=cv.gaussian(0.0, sd=1.0), then=lambda last: cv.gaussian(last, sd=step))
    m.random("y", cv.gaussian(0.0, sd=cv.exp(h)))
    rng = np.random.default_rng(19)
    return m, {"y": np.exp(-0.5 + np.cumsum(0.2 * rng.normal(size=80))) * rng.normal(size=80)}


def poisson_level():
    """A local level of counts: the log rate is a random walk with unknown step."""
    m = cv.Model("poisson level")
    step = m.random("step", cv.half_normal(1.0))
    level = m.chain(
        "level", over=m.plate("t"), first=cv.gaussian(1.0, sd=1.0), then=lambda last: cv.gaussian(last, sd=step)
    )
    m.random("y", cv.poisson(cv.exp(level)))
    rng = np.random.default_rng(20)
    return m, {"y": rng.poisson(np.exp(1.5 + np.cumsum(0.25 * rng.normal(size=60))))}


def local_level():
    """Durbin and Koopman: the first 50 years of the Nile's flow (in 100), level and noise of unknown spread."""
    m = cv.Model("local level")
    step = m.random("step", cv.half_normal(1.0))
    noise = m.random("noise", cv.half_normal(2.0))
    level = m.chain(
        "level", over=m.plate("year"), first=cv.gaussian(10.0, sd=5.0), then=lambda last: cv.gaussian(last, sd=step)
    )
    m.random("flow", cv.gaussian(level, sd=noise))
    flow = numbers(
        "1120 1160 963 1210 1160 1160 813 1230 1370 1140 995 935 1110 994 1020 960 1180 799 958 1140 1100"
        " 1210 1150 1250 1260 1220 1030 1100 774 840 874 694 940 833 701 916 692 1020 1050 969 831 726 456"
        " 824 702 1120 1100 832 764 821"
    )
    return m, {"flow": flow / 100.0}


def seasonal_counts():
    """Poisson regression on a trend and a yearly wave: monthly counts (simulated)."""
    m = cv.Model("seasonal counts")
    t = m.input("t", cv.real, plates=m.plate("month"))
    wave = m.input("wave", cv.vector(2), plates=t.plates)
    level = m.random("level", cv.gaussian(2.0, sd=2.0))
    trend = m.random("trend", cv.gaussian(0.0, sd=1.0))
    season = m.random("season", cv.vector_gaussian(np.zeros(2), covariance=np.eye(2)))
    m.random("y", cv.poisson(cv.exp(level + trend * t + season @ wave)))
    rng = np.random.default_rng(21)
    month = np.arange(36)
    wave = np.column_stack([np.sin(2 * np.pi * month / 12), np.cos(2 * np.pi * month / 12)])
    return m, {"t": month / 12, "wave": wave, "y": rng.poisson(np.exp(1.8 + 0.1 * month / 12 + wave @ [0.5, -0.2]))}


DISASTERS = numbers(
    "4 5 4 0 1 4 3 4 0 6 3 3 4 0 2 6 3 3 5 4 5 3 1 4 4 1 5 5 3 4 2 5 2 2 3 4 2 1 3 2 2 1 1 1 1 3 0 0 1"
    " 0 1 1 0 0 3 1 0 3 2 2 0 1 1 1 0 1 0 1 0 0 0 2 1 0 0 0 1 1 0 2 3 3 1 1 2 1 1 1 1 2 4 2 0 0 1 4 0 0 0"
    " 1 0 0 0 0 0 1 0 0 1 0 1"
).astype(int)


def coal_mining():
    """PyMC's first example and Stan's manual, change point: disasters in British coal mines, 1851 to 1961.

    Refused: cv.switch(year < change, ...) without the let, a comparison with numbers as a selector.
    """
    m = cv.Model("coal mining")
    year = m.input("year", cv.count, plates=m.plate("t"))
    early, late = (m.random(name, cv.gamma(1.0, 1.0)) for name in ("early", "late"))
    change = m.random("change", cv.discrete_uniform(len(DISASTERS)))
    before = m.let("before", year < change)
    m.random("y", cv.switch(before, cv.poisson(early), cv.poisson(late)))
    return m, {"year": np.arange(len(DISASTERS)), "y": DISASTERS}


# missing, measured badly, censored ------------------------------------------------------------------------------------


def missing_covariates():
    """PyMC, missing values: a straight line whose covariate is missing in a fifth of the rows."""
    m = cv.Model("missing covariates")
    row = m.plate("row")
    centre = m.random("centre", cv.gaussian(0.0, sd=5.0))
    width = m.random("width", cv.half_normal(2.0))
    x = m.random("x", cv.gaussian(centre, sd=width), plates=row)
    a, b = (m.random(name, cv.gaussian(0.0, sd=5.0)) for name in ("intercept", "slope"))
    noise = m.random("noise", cv.half_normal(1.0))
    m.random("y", cv.gaussian(a + b * x, sd=noise))
    rng = np.random.default_rng(22)
    x = rng.normal(1.0, 1.0, 40)
    y = 0.5 + 1.2 * x + rng.normal(0.0, 0.5, 40)
    x[::5] = np.nan
    return m, {"x": x, "y": y}


def measurement_error():
    """Stan's manual, Bayesian measurement error: the covariate is seen with noise of known spread."""
    m = cv.Model("measurement error")
    row = m.plate("row")
    centre = m.random("centre", cv.gaussian(0.0, sd=5.0))
    width = m.random("width", cv.half_normal(2.0))
    x = m.random("x", cv.gaussian(centre, sd=width), plates=row)
    m.random("seen", cv.gaussian(x, sd=0.5))
    a, b = (m.random(name, cv.gaussian(0.0, sd=5.0)) for name in ("intercept", "slope"))
    noise = m.random("noise", cv.half_normal(1.0))
    m.random("y", cv.gaussian(a + b * x, sd=noise))
    rng = np.random.default_rng(23)
    x = rng.normal(1.0, 1.0, 40)
    return m, {"seen": x + rng.normal(0.0, 0.5, 40), "y": 0.5 + 1.2 * x + rng.normal(0.0, 0.4, 40)}


def weibull_density(out, shape, scale, censored):
    log_hazard = jnp.log(shape) - jnp.log(scale) + (shape - 1.0) * (jnp.log(out) - jnp.log(scale))
    return jnp.where(censored, 0.0, log_hazard) - (out / scale) ** shape


def weibull_censored():
    """PyMC, censored survival: a Weibull lifetime with right censoring, by a factor of one's own."""
    lifetime = cv.factor(
        "censored weibull",
        out=cv.positive,
        shape=cv.positive,
        scale=cv.positive,
        censored=cv.boolean,
        log_density=weibull_density,
    )
    m = cv.Model("censored weibull")
    censored = m.input("censored", cv.boolean, plates=m.plate("n"))
    shape = m.random("shape", cv.gamma(2.0, 1.0))
    scale = m.random("scale", cv.gamma(2.0, 0.5))
    m.random("time", lifetime(shape, scale, censored))
    time = 2.0 * np.random.default_rng(24).weibull(1.5, 60)
    return m, {"time": np.minimum(time, 2.5), "censored": time > 2.5}


def weibull_regression():
    """Weibull lifetimes with a log link of the scale and a random shape, all observed."""
    m = cv.Model("weibull regression")
    x = m.input("x", cv.real, plates=m.plate("n"))
    a, b = (m.random(name, cv.gaussian(0.0, sd=2.0)) for name in ("intercept", "slope"))
    shape = m.random("shape", cv.gamma(2.0, 1.0))
    m.random("time", cv.weibull(shape, cv.exp(a + b * x)))
    rng = np.random.default_rng(25)
    x = rng.normal(size=60)
    return m, {"x": x, "time": np.exp(0.5 + 0.4 * x) * rng.weibull(1.6, 60)}


def censored_measurements():
    """Stan's manual, censored data: values below the limit of detection are parameters, known to lie there (tobit)."""
    m = cv.Model("tobit")
    mu = m.random("mu", cv.gaussian(0.0, sd=5.0))
    sigma = m.random("sigma", cv.half_normal(2.0))
    y = np.random.default_rng(26).normal(1.0, 1.0, 40)
    hidden = m.plate("hidden", int(np.sum(y < 0.5)))
    m.random("y", cv.gaussian(mu, sd=sigma), plates=m.plate("seen"))
    below = m.random("below", cv.gaussian(mu, sd=sigma), plates=hidden)
    m.constrain(below < 0.5)
    return m, {"y": y[y >= 0.5]}


def gaussian_mixture():
    """posteriordb, low_dim_gauss_mix with 100 points; the priors of the means tell the components apart."""
    m = cv.Model("two Gaussians")
    component, n = m.plate("component", 2), m.plate("n")
    weights = m.random("weights", cv.dirichlet([5.0, 5.0]))
    mu = m.random("mu", cv.gaussian([-2.0, 2.0], sd=1.0), plates=component)
    sigma = m.random("sigma", cv.half_normal(2.0), plates=component)
    z = m.random("z", cv.categorical(weights), plates=n)
    m.random("y", cv.gaussian(mu[z], sd=sigma[z]))
    rng = np.random.default_rng(27)
    second = rng.random(100) < 0.4
    return m, {"y": np.where(second, rng.normal(2.0, 1.2, 100), rng.normal(-1.5, 0.8, 100))}


MODELS = (
    line_half_normal,
    line_half_cauchy,
    line_log_normal,
    line_gamma,
    line_variance,
    robust_line,
    robust_line_unknown_dof,
    median_regression,
    several_predictors,
    two_groups,
    changing_spread,
    gamma_shape_and_rate,
    gamma_regression,
    poisson_row_effects,
    poisson_regression,
    negative_binomial_regression,
    logistic_regression,
    bioassay,
    ordinal_probit,
    zero_inflated_poisson,
    beta_regression,
    emax,
    eight_schools,
    eight_schools_noncentred,
    random_intercepts,
    random_slopes,
    two_way_random_effects,
    beta_binomial,
    logistic_random_effects,
    rasch,
    item_response_2pl,
    observed_ar1,
    stochastic_volatility,
    volatility_random_walk,
    poisson_level,
    coal_mining,
    missing_covariates,
    measurement_error,
    weibull_censored,
    censored_measurements,
    gaussian_mixture,
    ar1_plus_noise,
    local_level,
    seasonal_counts,
    weibull_regression,
)

# of which no reference is known; `by_nuts.py` and `by_quadrature.py` take them too
WITHOUT_REFERENCE = ()
