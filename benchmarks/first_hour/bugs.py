"""Models of the BUGS volumes, with the data of their examples, as their users write them.

Each function of `MODELS` returns a model and its data. Precisions have BUGS's Gamma(0.001, 0.001) where the data say
enough about them; where they do not, so that its moments are those of the prior's tail, the standard deviation has the
half-normal or half-Cauchy prior which is advised since Gelman (2006). `Refused` in a docstring says what the language
did not take at the first try.
"""

import jax.numpy as jnp
import numpy as np

import cavity as cv


def numbers(text):
    return np.array(text.split(), float)


def vague(m, name, **options):
    return m.random(name, cv.gaussian(0.0, precision=1e-6), **options)


# normal hierarchies ---------------------------------------------------------------------------------------------------

RATS = {
    "age": numbers("8 15 22 29 36") - 22.0,
    "y": numbers(
        "151 199 246 283 320 145 199 249 293 354 147 214 263 312 328 155 200 237 272 297 135 188 230 280 323"
        " 159 210 252 298 331 141 189 231 275 305 159 201 248 297 338 177 236 285 350 376 134 182 220 260 296"
        " 160 208 261 313 352 143 188 220 273 314 154 200 244 289 325 171 221 270 326 358 163 216 242 281 312"
        " 160 207 248 288 324 142 187 234 280 316 156 203 243 283 317 157 212 259 307 336 152 203 246 286 321"
        " 154 205 253 298 334 139 190 225 267 302 146 191 229 272 302 157 211 250 285 323 132 185 237 286 331"
        " 160 207 257 303 345 169 216 261 295 333 157 205 248 289 316 137 180 219 258 291 153 200 244 286 324"
    ).reshape(30, 5),
}


def rats():
    """Volume I: growth curves of 30 rats."""
    m = cv.Model("rats")
    rat, week = m.plate("rat"), m.plate("week")
    age = m.input("age", cv.real, plates=week)
    alpha_c, beta_c = vague(m, "alpha.c"), vague(m, "beta.c")
    tau_alpha, tau_beta, tau = (m.random(f"tau.{name}", cv.gamma(0.001, 0.001)) for name in ("alpha", "beta", "y"))
    alpha = m.random("alpha", cv.gaussian(alpha_c, precision=tau_alpha), plates=rat)
    beta = m.random("beta", cv.gaussian(beta_c, precision=tau_beta), plates=rat)
    m.random("y", cv.gaussian(alpha + beta * age, precision=tau), plates=(rat, week))
    return m, RATS


def birats():
    """Volume II: the same with correlated intercepts and slopes."""
    m = cv.Model("birats")
    rat, week = m.plate("rat"), m.plate("week")
    x = m.input("x", cv.vector(2), plates=week)
    mu = m.random("mu", cv.vector_gaussian(np.zeros(2), precision=1e-6 * np.eye(2)))
    precision = m.random("precision", cv.wishart(dof=2.0, scale=np.diag([1 / 200.0, 1 / 0.2])))
    beta = m.random("beta", cv.vector_gaussian(mu, precision=precision), plates=rat)
    tau = m.random("tau", cv.gamma(0.001, 0.001))
    m.random("y", cv.gaussian(cv.dot(beta, x), precision=tau), plates=(rat, week))
    return m, {"x": np.stack([np.ones(5), RATS["age"]], axis=1), "y": RATS["y"]}


def dyes():
    """Volume I: variance components of the yield of six batches."""
    m = cv.Model("dyes")
    batch, draw = m.plate("batch"), m.plate("sample")
    theta = m.random("theta", cv.gaussian(1500.0, sd=1000.0))
    between = m.random("between", cv.half_cauchy(50.0))
    within = m.random("within", cv.half_cauchy(50.0))
    mu = m.random("mu", cv.gaussian(theta, sd=between), plates=batch)
    m.random("y", cv.gaussian(mu, sd=within), plates=(batch, draw))
    y = numbers(
        "1545 1440 1440 1520 1580 1540 1555 1490 1560 1495 1595 1550 1605 1510 1560 1445 1440 1595 1465 1545"
        " 1595 1630 1515 1635 1625 1520 1455 1450 1480 1445"
    )
    return m, {"y": y.reshape(6, 5)}


def equiv():
    """Volume I: a crossover trial of two tablets, with a random effect of each subject."""
    m = cv.Model("equiv")
    subject, period = m.plate("subject"), m.plate("period")
    tablet = m.input("tablet", cv.real, plates=(subject, period))
    sign = m.input("sign", cv.real, plates=period)
    mu, phi, pi = (vague(m, name) for name in ("mu", "phi", "pi"))
    sd_subject, noise = m.random("sd_subject", cv.half_normal(1.0)), m.random("noise", cv.half_normal(1.0))
    delta = m.random("delta", cv.gaussian(0.0, sd=sd_subject), plates=subject)
    m.random("y", cv.gaussian(mu + 0.5 * phi * tablet + 0.5 * pi * sign + delta, sd=noise))
    sign = np.array([1.0, -1.0])
    y = numbers("1.4 1.65 1.64 1.57 1.44 1.58 1.36 1.68 1.65 1.69 1.08 1.31 1.09 1.43 1.25 1.44 1.25 1.39 1.3 1.52")
    group = numbers("1 1 -1 -1 -1 1 1 1 -1 -1")
    return m, {"sign": sign, "tablet": group[:, None] * sign, "y": y.reshape(10, 2)}


def jaws():
    """Volume II: growth of jaws, a line through four ages with an unrestricted covariance."""
    m = cv.Model("jaws")
    boy = m.plate("boy")
    beta = m.random("beta", cv.vector_gaussian(np.zeros(2), precision=1e-3 * np.eye(2)))
    precision = m.random("precision", cv.wishart(dof=4.0, scale=np.eye(4)))
    ages = np.stack([np.ones(4), numbers("8 8.5 9 9.5") - 8.75], axis=1)
    m.random("y", cv.vector_gaussian(ages @ beta, precision=precision), plates=boy)
    y = numbers(
        "47.8 48.8 49 49.7 46.4 47.3 47.7 48.4 46.3 46.8 47.8 48.5 45.1 45.3 46.1 47.2 47.6 48.5 48.9 49.3"
        " 52.5 53.2 53.3 53.7 51.2 53 54.3 54.5 49.8 50 50.3 52.7 48.1 50.8 52.3 54.4 45 47 47.3 48.3 51.2"
        " 51.4 51.6 51.9 48.5 49.2 53 55.5 52.1 52.8 53.7 55 48.2 48.9 49.3 49.8 49.6 50.4 51.2 51.8 50.7"
        " 51.7 52.7 53.3 47.2 47.7 48.4 49.5 53.3 54.6 55.1 55.3 46.2 47.5 48.1 48.4 46.3 47.6 51.3 51.8"
    )
    return m, {"y": y.reshape(20, 4)}


# lines and curves -----------------------------------------------------------------------------------------------------


def five_points():
    """The manual's first example: five points."""
    m = cv.Model("line")
    x = m.input("x", cv.real, plates=m.plate("n"))
    alpha, beta = vague(m, "alpha"), vague(m, "beta")
    tau = m.random("tau", cv.gamma(0.001, 0.001))
    m.random("y", cv.gaussian(alpha + beta * x, precision=tau))
    return m, {"x": numbers("-2 -1 0 1 2"), "y": numbers("1 3 3 3 5")}


STACKS = np.stack(
    [
        numbers("80 80 75 62 62 62 62 62 58 58 58 58 58 58 50 50 50 50 50 56 70"),
        numbers("27 27 25 24 22 23 24 24 23 18 18 17 18 19 18 18 19 19 20 20 20"),
        numbers("89 88 90 87 87 87 93 93 87 80 89 88 82 93 89 86 72 79 80 82 91"),
    ],
    axis=1,
)


def stacks(noise):
    m = cv.Model("stacks")
    x = m.input("x", cv.vector(4), plates=m.plate("day"))
    beta = m.random("beta", cv.vector_gaussian(np.zeros(4), covariance=1e4 * np.eye(4)))
    scale = m.random("scale", cv.half_cauchy(5.0))
    m.random("y", noise(beta @ x, scale))
    z = (STACKS - STACKS.mean(0)) / STACKS.std(0, ddof=1)
    y = numbers("42 37 37 28 18 18 19 20 15 14 14 13 11 12 8 7 8 8 9 15 15")
    return m, {"x": np.column_stack([np.ones(21), z]), "y": y}


def stacks_laplace():
    """Volume I: stack loss, robust regression with double exponential errors."""
    return stacks(cv.laplace)


def stacks_student():
    """Volume I: stack loss with Student errors of four degrees of freedom."""
    return stacks(lambda mean, scale: cv.student_t(4.0, mean, scale))


def dugongs():
    """Volume II: a growth curve alpha - beta gamma^age.

    Refused: gamma**age (a power whose exponent is data), so exp(age * log(gamma)); and uniform(0.5, 1), of which the
    language knows no logarithm, so a beta distribution there.
    """
    m = cv.Model("dugongs")
    age = m.input("age", cv.real, plates=m.plate("dugong"))
    alpha = m.random("alpha", cv.gaussian(0.0, sd=10.0))
    beta = m.random("beta", cv.gaussian(0.0, sd=10.0))
    gamma = m.random("gamma", cv.beta(7.0, 2.0))
    tau = m.random("tau", cv.gamma(0.001, 0.001))
    m.random("y", cv.gaussian(alpha - beta * cv.exp(age * cv.log(gamma)), precision=tau))
    return m, {
        "age": numbers("1 1.5 1.5 1.5 2.5 4 5 5 7 8 8.5 9 9.5 9.5 10 12 12 13 13 14.5 15.5 15.5 16.5 17 22.5 29 31.5"),
        "y": numbers(
            "1.8 1.85 1.87 1.77 2.02 2.27 2.15 2.26 2.47 2.19 2.26 2.4 2.39 2.41 2.5 2.32 2.32 2.43 2.47 2.56"
            " 2.65 2.47 2.64 2.56 2.7 2.72 2.57"
        ),
    }


def stagnant():
    """Volume II: two lines that meet at an unknown point."""
    m = cv.Model("stagnant")
    x = m.input("x", cv.real, plates=m.plate("row"))
    alpha = m.random("alpha", cv.gaussian(0.0, sd=10.0))
    before = m.random("before", cv.gaussian(0.0, sd=10.0))
    after = m.random("after", cv.gaussian(0.0, sd=10.0))
    knot = m.random("knot", cv.gaussian(0.0, sd=0.5))
    tau = m.random("tau", cv.gamma(0.001, 0.001))
    m.random("y", cv.gaussian(alpha + before * cv.min(x - knot, 0.0) + after * cv.max(x - knot, 0.0), precision=tau))
    return m, {
        "x": numbers(
            "-1.39 -1.39 -1.08 -1.08 -0.94 -0.8 -0.63 -0.63 -0.25 -0.25 -0.12 -0.12 0.01 0.11 0.11 0.11 0.25 0.25"
            " 0.34 0.34 0.44 0.59 0.7 0.7 0.85 0.85 0.99 0.99 1.19"
        ),
        "y": numbers(
            "1.12 1.12 0.99 1.03 0.92 0.9 0.81 0.83 0.65 0.67 0.6 0.59 0.51 0.44 0.43 0.43 0.33 0.3 0.25 0.24"
            " 0.13 -0.01 -0.13 -0.14 -0.3 -0.33 -0.46 -0.43 -0.65"
        ),
    }


# counts and proportions -----------------------------------------------------------------------------------------------


def pump():
    """Volume I: failures of ten pumps, a conjugate hierarchy."""
    m = cv.Model("pumps")
    t = m.input("t", cv.positive, plates=m.plate("pump"))
    alpha = m.random("alpha", cv.gamma(1.0, 1.0))
    beta = m.random("beta", cv.gamma(0.1, 1.0))
    theta = m.random("theta", cv.gamma(alpha, beta), plates=t.plates)
    m.random("x", cv.poisson(theta * t))
    return m, {"t": numbers("94.3 15.7 62.9 126 5.24 31.4 1.05 1.05 2.1 10.5"), "x": [5, 1, 5, 14, 3, 19, 1, 1, 4, 22]}


def seeds():
    """Volume I: germination, a factorial layout with a random effect of each plate."""
    m = cv.Model("seeds")
    plate = m.plate("plate")
    n = m.input("n", cv.count, plates=plate)
    x = m.input("x", cv.vector(4), plates=plate)
    alpha = m.random("alpha", cv.vector_gaussian(np.zeros(4), precision=1e-2 * np.eye(4)))
    sigma = m.random("sigma", cv.half_normal(1.0))
    b = m.random("b", cv.gaussian(0.0, sd=sigma), plates=plate)
    m.random("r", cv.binomial(n, cv.logistic(cv.dot(alpha, x) + b)))
    x1, x2 = numbers("0 " * 11 + "1 " * 10), numbers("0 0 0 0 0 1 1 1 1 1 1 0 0 0 0 0 1 1 1 1 1")
    return m, {
        "x": np.stack([np.ones(21), x1, x2, x1 * x2], axis=-1),
        "n": [39, 62, 81, 51, 39, 6, 74, 72, 51, 79, 13, 16, 30, 28, 45, 4, 12, 41, 30, 51, 7],
        "r": [10, 23, 23, 26, 17, 5, 53, 55, 32, 46, 10, 8, 10, 8, 23, 0, 3, 22, 15, 32, 3],
    }


def surgical():
    """Volume I: death rates of twelve hospitals."""
    m = cv.Model("surgical")
    n = m.input("n", cv.count, plates=m.plate("hospital"))
    mu = vague(m, "mu")
    tau = m.random("tau", cv.gamma(0.001, 0.001))
    b = m.random("b", cv.gaussian(mu, precision=tau), plates=n.plates)
    m.random("r", cv.binomial(n, cv.logistic(b)))
    return m, {
        "n": [47, 148, 119, 810, 211, 196, 148, 215, 207, 97, 256, 360],
        "r": [0, 18, 8, 46, 8, 13, 9, 31, 14, 8, 29, 24],
    }


def salm():
    """Volume I: mutagenicity, Poisson regression with an effect of each plate."""
    m = cv.Model("salm")
    dose, plate = m.plate("dose"), m.plate("plate")
    x = m.input("x", cv.real, plates=dose)
    log_x = m.input("log_x", cv.real, plates=dose)
    alpha, beta, gamma = (m.random(name, cv.gaussian(0.0, sd=10.0)) for name in ("alpha", "beta", "gamma"))
    tau = m.random("tau", cv.gamma(0.001, 0.001))
    effect = m.random("lambda", cv.gaussian(0.0, precision=tau), plates=(dose, plate))
    m.random("y", cv.poisson(cv.exp(alpha + beta * log_x + gamma * x + effect)))
    x = numbers("0 10 33 100 333 1000")
    y = [[15, 21, 29], [16, 18, 21], [16, 26, 33], [27, 41, 60], [33, 38, 41], [20, 27, 42]]
    return m, {"x": x / 1000.0, "log_x": np.log(x + 10.0), "y": y}


EPIL = numbers(
    "5 3 3 3 3 5 3 3 2 4 0 5 4 4 1 4 7 18 9 21 5 2 8 7 6 4 0 2 40 20 21 12 5 6 6 5 14 13 6 0 26 12 6 22"
    " 12 6 8 4 4 4 6 2 7 9 12 14 16 24 10 9 11 0 0 5 0 0 3 3 37 29 28 29 3 5 2 5 3 0 6 7 3 4 3 4 3 4 3 4"
    " 2 3 3 5 8 12 2 8 18 24 76 25 2 1 2 1 3 1 4 2 13 15 13 12 11 14 9 8 8 7 9 4 0 4 3 0 3 6 1 3 2 6 7 4"
    " 4 3 1 3 22 17 19 16 5 4 7 4 2 4 0 4 3 7 7 7 4 18 2 5 2 1 1 0 0 2 4 0 5 4 0 3 11 14 25 15 10 5 3 8"
    " 19 7 6 7 1 1 2 3 6 10 8 8 2 1 0 0 102 65 72 63 4 3 2 4 8 6 5 7 1 3 1 5 18 11 28 13 6 3 4 0 3 5 4 3"
    " 1 23 19 8 2 3 0 1 0 0 0 0 1 4 3 2"
).astype(int)


def epil():
    """Volume I: seizures of 59 patients at four visits, effects of patients and of visits (Breslow and Clayton)."""
    m = cv.Model("epil")
    patient, visit = m.plate("patient"), m.plate("visit")
    x = m.input("x", cv.vector(5), plates=patient)
    fourth = m.input("fourth", cv.real, plates=visit)
    beta = m.random("beta", cv.vector_gaussian(np.zeros(5), precision=1e-4 * np.eye(5)))
    last = m.random("last", cv.gaussian(0.0, precision=1e-4))
    tau_patient, tau_visit = (m.random(f"tau.{name}", cv.gamma(0.001, 0.001)) for name in ("patient", "visit"))
    b1 = m.random("b1", cv.gaussian(0.0, precision=tau_patient), plates=patient)
    b = m.random("b", cv.gaussian(0.0, precision=tau_visit), plates=(patient, visit))
    m.random("y", cv.poisson(cv.exp(cv.dot(beta, x) + last * fourth + b1 + b)))
    base = numbers(
        "11 11 6 8 66 27 12 52 23 10 52 33 18 42 87 50 18 111 18 20 12 9 17 28 55 9 10 47 76 38 19 10 19 24"
        " 31 14 11 67 41 7 22 13 46 36 38 7 36 11 151 22 41 32 56 24 16 22 25 13 12"
    )
    age = numbers(
        "31 30 25 36 22 29 31 42 37 28 36 24 23 36 26 26 28 31 32 21 29 21 32 25 30 40 19 22 18 32 20 30 18"
        " 24 30 35 27 20 22 28 23 40 33 21 35 25 26 25 22 32 25 35 21 41 32 26 21 36 37"
    )
    treated = np.repeat([0.0, 1.0], [28, 31])
    x = np.stack([np.log(base / 4), treated, treated * np.log(base / 4), np.log(age)], axis=1)
    return m, {
        "x": np.column_stack([np.ones(59), x - x.mean(0)]),
        "fourth": np.array([-0.25, -0.25, -0.25, 0.75]),
        "y": EPIL.reshape(59, 4),
    }


def blocker():
    """Volume I: a meta-analysis of 22 trials of beta blockers."""
    m = cv.Model("blocker")
    trial = m.plate("trial")
    nc, nt = (m.input(name, cv.count, plates=trial) for name in ("nc", "nt"))
    d = m.random("d", cv.gaussian(0.0, sd=10.0))
    sigma = m.random("sigma", cv.half_normal(1.0))
    mu = m.random("mu", cv.gaussian(0.0, sd=10.0), plates=trial)
    delta = m.random("delta", cv.gaussian(d, sd=sigma), plates=trial)
    m.random("rc", cv.binomial(nc, cv.logistic(mu)))
    m.random("rt", cv.binomial(nt, cv.logistic(mu + delta)))
    return m, {
        "nc": [
            39,
            116,
            93,
            1520,
            365,
            52,
            939,
            471,
            282,
            1921,
            583,
            266,
            293,
            883,
            147,
            213,
            122,
            154,
            134,
            218,
            364,
            674,
        ],
        "rc": [3, 14, 11, 127, 27, 6, 152, 48, 37, 188, 52, 47, 16, 45, 31, 38, 12, 6, 3, 40, 43, 39],
        "nt": [
            38,
            114,
            69,
            1533,
            355,
            59,
            945,
            632,
            278,
            1916,
            873,
            263,
            291,
            858,
            154,
            207,
            251,
            151,
            174,
            209,
            391,
            680,
        ],
        "rt": [3, 7, 5, 102, 28, 4, 98, 60, 25, 138, 64, 45, 9, 57, 25, 33, 28, 8, 6, 32, 27, 22],
    }


BEETLES = {
    "x": numbers("1.6907 1.7242 1.7552 1.7842 1.8113 1.8369 1.8610 1.8839"),
    "n": np.array([59, 60, 62, 56, 63, 59, 62, 60]),
    "r": np.array([6, 13, 18, 28, 52, 53, 61, 60]),
}


def beetles(link):
    m = cv.Model("beetles")
    dose = m.plate("dose")
    x = m.input("x", cv.real, plates=dose)
    n = m.input("n", cv.count, plates=dose)
    alpha = m.random("alpha", cv.gaussian(0.0, precision=0.001))
    beta = m.random("beta", cv.gaussian(0.0, precision=0.001))
    m.random("r", cv.binomial(n, link(alpha + beta * x)))
    return m, BEETLES | {"x": BEETLES["x"] - BEETLES["x"].mean()}


def beetles_logit():
    """Volume II: deaths by dose, logistic link."""
    return beetles(cv.logistic)


def beetles_probit():
    """Volume II: deaths by dose, probit link."""
    return beetles(cv.probit)


def litters():
    """Volume I: survival of pups in two groups of 16 litters, a beta-binomial hierarchy by mean and total."""
    m = cv.Model("litters")
    group, litter = m.plate("group"), m.plate("litter")
    n = m.input("n", cv.count, plates=(group, litter))
    mean = m.random("mean", cv.beta(1.0, 1.0), plates=group)
    total = m.random("total", cv.gamma(2.0, 0.1), plates=group)
    p = m.random("p", cv.beta(mean=mean, total=total), plates=(group, litter))
    m.random("r", cv.binomial(n, p))
    n = "13 12 9 9 8 8 13 12 10 10 9 13 5 7 10 10 12 11 10 9 11 10 10 9 9 5 9 7 10 6 10 7"
    r = "13 12 9 9 8 8 12 11 9 9 8 11 4 5 7 7 12 11 10 9 10 9 9 8 8 4 7 4 5 3 3 0"
    return m, {"n": numbers(n).astype(int).reshape(2, 16), "r": numbers(r).astype(int).reshape(2, 16)}


def hearts():
    """Volume I: premature beats after a drug, which cures some patients (Berry): a mixture of binomials."""
    m = cv.Model("hearts")
    t = m.input("t", cv.count, plates=m.plate("patient"))
    alpha = m.random("alpha", cv.gaussian(0.0, sd=10.0))
    delta = m.random("delta", cv.gaussian(0.0, sd=10.0))
    cured = m.random("cured", cv.bernoulli(cv.logistic(delta)), plates=t.plates)
    m.random("y", cv.switch(cured, cv.binomial(t, 1e-9), cv.binomial(t, cv.logistic(alpha))))
    return m, {"t": [11, 11, 17, 22, 9, 6, 5, 14, 9, 7, 22, 51], "y": [5, 2, 0, 0, 2, 1, 0, 0, 0, 0, 13, 0]}


def air():
    """Volume II: respiratory illness by exposure to NO2, of which only bedrooms' measurements are known."""
    m = cv.Model("air")
    house = m.plate("house")
    z = m.input("z", cv.real, plates=house)
    n = m.input("n", cv.count, plates=house)
    x = m.random("x", cv.gaussian(4.48 + 0.76 * z, variance=81.14))
    level = m.random("level", cv.gaussian(0.0, sd=5.0))
    slope = m.random("slope", cv.gaussian(0.0, sd=0.5))
    m.random("y", cv.binomial(n, cv.logistic(level + slope * x)))
    return m, {"z": [10.0, 30.0, 50.0], "n": [48, 34, 21], "y": [21, 20, 15]}


# lifetimes and mixtures -----------------------------------------------------------------------------------------------


def censored_lifetime(out, shape, score, censored):
    """Weibull in BUGS's form, hazard shape exp(score) t^(shape - 1), or only its survival where censored."""
    hazard = jnp.log(shape) + score + (shape - 1.0) * jnp.log(out)
    return jnp.where(censored, 0.0, hazard) - jnp.exp(score) * out**shape


def mice():
    """Volume I: photocarcinogenicity, Weibull lifetimes of four groups with censoring, by a factor of one's own."""
    lifetime = cv.factor(
        "censored lifetime",
        out=cv.positive,
        shape=cv.positive,
        score=cv.real,
        censored=cv.boolean,
        log_density=censored_lifetime,
    )
    m = cv.Model("mice")
    group, mouse = m.plate("group", 4), m.plate("mouse")
    g = m.input("g", cv.index(group), plates=mouse)
    censored = m.input("censored", cv.boolean, plates=mouse)
    shape = m.random("shape", cv.gamma(1.0, 0.001))
    beta = m.random("beta", cv.gaussian(0.0, precision=0.001), plates=group)
    m.random("t", lifetime(shape, beta[g], censored))
    t = numbers(
        "12 17 21 25 11 26 27 30 13 12 21 20 23 25 23 29 35 31 36 32 27 23 12 18 38 29 30 32 25 30 37 27 22"
        " 26 28 19 15 12 35 35 10 22 18 12 31 24 37 29 27 18 22 13 18 29 28 16 22 26 19 17 28 26 12 17 26"
        " 40 40 40 40 40 40 40 40 10 24 40 40 20 29 10"
    )
    g = np.concatenate([np.repeat([0, 1, 2, 3], [19, 13, 16, 17]), np.repeat([0, 1, 2, 3], [1, 7, 4, 3])])
    return m, {"t": t, "g": g, "censored": np.arange(80) >= 65}


def eyes():
    """Volume II: peak sensitivities of monkeys' eyes, two Gaussians a positive shift apart."""
    m = cv.Model("eyes")
    first = m.random("first", cv.gaussian(540.0, sd=30.0))
    shift = m.random("shift", cv.half_normal(30.0))
    sigma = m.random("sigma", cv.half_normal(10.0))
    p = m.random("p", cv.beta(1.0, 1.0))
    second = m.random("second", cv.bernoulli(p), plates=m.plate("n"))
    m.random("y", cv.switch(second, cv.gaussian(first + shift, sd=sigma), cv.gaussian(first, sd=sigma)))
    return m, {
        "y": numbers(
            "529 530 532 533.1 533.4 533.6 533.7 534.1 534.8 535.3 535.4 535.9 536.1 536.3 536.4 536.6 537 537.4"
            " 537.5 538.3 538.5 538.6 539.4 539.6 540.4 540.8 542 542.8 543 543.5 543.8 543.9 545.3 546.2 548.8"
            " 548.7 548.9 549 549.4 549.9 550.6 551.2 551.4 551.5 551.6 552.8 552.9 553.2"
        )
    }


MODELS = (
    birats,
    jaws,
    five_points,
    stacks_laplace,
    stacks_student,
    dugongs,
    stagnant,
    pump,
    seeds,
    surgical,
    salm,
    beetles_logit,
    beetles_probit,
    litters,
    hearts,
    air,
    mice,
    rats,
    dyes,
    equiv,
    blocker,
    eyes,
    epil,
)

# of which no reference is known; `by_nuts.py` and `by_quadrature.py` take them too
WITHOUT_REFERENCE = ()
