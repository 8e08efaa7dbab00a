"""The marginals of named expressions come from the joint distribution of what they are made of.

Every model here is one factor over two variables and their priors, or many of these side by side, so that the tilted
distribution of the factor is the exact posterior: the truth is an integral over a grid, or a sum over all states.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.stats
from scipy.special import expit, ndtr

import cavity as cv
from cavity.engine.expressions import clouds

close = np.testing.assert_allclose

PRIORS = {
    "r": (lambda: cv.gaussian(0.5, variance=1.0), scipy.stats.norm(0.5, 1.0)),
    "p": (lambda: cv.gamma(3.0, 2.0), scipy.stats.gamma(3.0, scale=0.5)),
    "u": (lambda: cv.beta(2.0, 3.0), scipy.stats.beta(2.0, 3.0)),
}
# kinds of x and y, the expression in cavity, in NumPy, and a value that it may have
JOINT = {
    "sum": ("rr", lambda x, y: x + y, np.add, 1.7),
    "maximum": ("rr", lambda x, y: cv.max(x, y), np.maximum, 1.7),
    "minimum": ("rr", lambda x, y: cv.min(x, y), np.minimum, -0.4),
    "product": ("rr", lambda x, y: x * y, np.multiply, 1.7),
    "sum with a gamma": ("rp", lambda x, y: x + y, np.add, 2.7),
    "product with a gamma": ("rp", lambda x, y: x * y, np.multiply, 1.7),
    "quotient": ("rp", lambda x, y: x / y, np.divide, 1.7),
    "square": ("rr", lambda x, y: x**2 + y, lambda x, y: x**2 + y, 1.7),
    "exponential": ("rr", lambda x, y: cv.exp(x) - y, lambda x, y: np.exp(x) - y, 1.2),
    "logarithm": ("pr", lambda x, y: cv.log(x) + y, lambda x, y: np.log(x) + y, 0.7),
    "logistic": ("rr", lambda x, y: cv.logistic(x) * y, lambda x, y: expit(x) * y, 0.4),
    "probit": ("rr", lambda x, y: cv.probit(x) - y, lambda x, y: ndtr(x) - y, 0.4),
    "probability": ("ur", lambda x, y: x - y, np.subtract, 0.1),
    "logarithms": ("pp", lambda x, y: cv.log(x * y), lambda x, y: np.log(x * y), 0.7),
}
# other expressions of the same two variables: in cavity and in NumPy
BESIDE = {
    "larger": (lambda x, y: x > y, lambda x, y: x > y),
    "difference": (lambda x, y: x - y, np.subtract),
    "bounded": (lambda x, y: cv.logistic(x - 2.0 * y), lambda x, y: expit(x - 2.0 * y)),
    "either": (lambda x, y: (x > 1.0) | (y > 0.7), lambda x, y: (x > 1.0) | (y > 0.7)),
}


def pairs(names, sd, beside=()):
    """Models side by side: x, y, z = g(x, y) and z seen with noise, for all of these names."""
    m, data = cv.Model("pairs"), {}
    for number, name in enumerate(names):
        kinds, build, _, seen = JOINT[name]
        x, y = (m.random(f"{letter}{number}", PRIORS[kind][0]()) for letter, kind in zip("xy", kinds, strict=True))
        z = m.let(f"z{number}", build(x, y))
        for other in beside:
            m.let(f"{other}{number}", BESIDE[other][0](x, y))
        m.random(f"seen{number}", cv.gaussian(z, sd=sd))
        data[f"seen{number}"] = seen
    return m, data


def grid(name, sd):
    """x, y and their posterior weights, by the midpoint rule at quantiles of the priors."""
    kinds, _, function, seen = JOINT[name]
    levels = (np.arange(3000) + 0.5) / 3000
    x, y = (PRIORS[kind][1].ppf(levels) for kind in kinds)
    x, y = x[:, None], y[None, :]
    weight = np.exp(-0.5 * ((function(x, y) - seen) / sd) ** 2)
    return x, y, weight / weight.sum()


def on_grid(name, sd, functions):
    """Posterior means and variances of functions of x and y."""
    x, y, weight = grid(name, sd)
    found = []
    for f in functions:
        values = np.asarray(f(x, y), float)
        mean = np.sum(weight * values)
        found.append((mean, np.sum(weight * (values - mean) ** 2)))
    return found


DEFAULT = ("sum", "maximum", "product", "logarithm")


@pytest.mark.parametrize("names", [DEFAULT, pytest.param(tuple(JOINT), marks=pytest.mark.slow)], ids=["some", "all"])
def test_a_sharp_observation_of_an_expression_is_its_marginal(names):
    m, data = pairs(names, 0.01)
    posterior = cv.infer(m, data, method="ep")
    for number, name in enumerate(names):
        z = posterior[f"z{number}"]
        close(z.mean, JOINT[name][3], atol=2e-3, err_msg=name)
        close(z.sd, 0.01, rtol=0.01, err_msg=name)
        assert not z.note, name


# what is seen, made of up to four Gaussian variables, and a value that it may have
PRODUCTS = {
    "three": (lambda a, b, c, d: a * b * c, 1.3),
    "scaled": (lambda a, b, c, d: 3.0 * a * b, 1.3),
    "shifted": (lambda a, b, c, d: 4.0 - a * b, 2.7),
    "beside a variable": (lambda a, b, c, d: a * b + c, 1.3),
    "two": (lambda a, b, c, d: a * b + 2.0 * c * d, 1.3),
    "of a sum": (lambda a, b, c, d: (a + b) * c, 1.3),
    "exponential": (lambda a, b, c, d: cv.exp(0.5 * a) * b, 1.3),
}
SOME = (("product",), ("two",))
ALL = (tuple(JOINT), tuple(PRODUCTS))


@pytest.mark.parametrize(("names", "products"), [SOME, pytest.param(*ALL, marks=pytest.mark.slow)], ids=["some", "all"])
def test_a_sharp_observation_is_the_marginal_where_beliefs_are_kept_apart(names, products):
    """By default products run under VMP, where the noise of both would count; the factor still holds them together.

    VMP is slow along the ridge where a product is as seen: thousands of sweeps.
    """
    m, data = pairs(names, 0.01)
    wanted = {f"z{number}": JOINT[name][3] for number, name in enumerate(names)}
    for number, name in enumerate(products):
        build, seen = PRODUCTS[name]
        z = build(*(m.random(f"{letter}{number}", cv.gaussian(0.5, variance=1.0)) for letter in "abcd"))
        m.let(f"product{number}", z)
        m.random(f"product{number} seen", cv.gaussian(z, sd=0.01))
        data[f"product{number} seen"] = wanted[f"product{number}"] = seen
    posterior = cv.infer(m, data, max_iterations=100_000, accuracy="fast")
    for name, seen in wanted.items():
        z = posterior[name]
        close(z.mean, seen, atol=2e-3, err_msg=name)
        close(z.sd, 0.01, rtol=0.01, err_msg=name)
        assert not z.note, name


@pytest.mark.slow
def test_factors_that_share_a_variable_are_read_one_by_one():
    """The noise of an element is that of its own factor; what the others add is mean field, and named.

    Along the ridge of three sharp products with one factor a sweep of VMP moves by a hair: it stops on the way, and
    says so. The products are as seen wherever that is.
    """
    m = cv.Model()
    n = m.plate("n")
    x = m.random("x", cv.gaussian(0.5, variance=1.0), plates=n)
    mu = m.random("mu", cv.gaussian(0.0, variance=1.0))
    w, v = (m.random(name, cv.gaussian(mu, variance=1.0)) for name in "wv")
    m.let("z", w * x)
    m.let("own", v * x[m.input("i", cv.index(n))])
    m.random("seen", cv.gaussian(w * x, sd=0.01))
    m.random("beside", cv.gaussian(v, variance=1.0))
    seen = np.array([0.5, 1.2, -0.7])
    with pytest.warns(cv.CavityWarning, match="Stopped after"):
        posterior = cv.infer(m, {"seen": seen, "beside": 0.3, "i": 1}, max_iterations=200, accuracy="fast")
    close(posterior["z"].mean, seen, atol=2e-3)
    close(posterior["z"].sd, 0.01, rtol=0.02)
    assert posterior["z"].note == "w, x taken as independent but for seen; from a run that has not converged"
    assert posterior["own"].note == "v, x taken as independent"


@pytest.mark.slow
def test_what_is_read_before_convergence_says_so():
    """One more update of all at once is the run's own only at a fixed point: elsewhere the marginal is of neither.

    The cavities of a lone factor are its priors, wherever the run stops: there is nothing to say.
    """
    m = cv.Model()
    x = m.random("x", cv.gaussian(0.5, precision=m.random("precision", cv.gamma(2.0, 1.0))))
    y, a, b = (m.random(name, cv.gaussian(0.5, variance=1.0)) for name in "yab")
    m.random("seen", cv.gaussian(m.let("product", x * y), sd=0.5))
    m.random("lone seen", cv.gaussian(m.let("lone", a * b), sd=0.5))
    data = {"seen": 1.7, "lone seen": 1.7}
    with pytest.warns(cv.CavityWarning, match="Stopped after"):
        early = cv.infer(m, data, max_iterations=2, accuracy="fast")
    late = cv.infer(m, data, accuracy="fast")
    assert abs(early["product"].mean - late["product"].mean) > 1e-3 * late["product"].sd
    assert early["product"].note == "from a run that has not converged"
    assert "from a run that has not converged" in repr(early["product"])
    assert not late["product"].note
    close(early["lone"].mean, late["lone"].mean, rtol=1e-9)
    assert not early["lone"].note


@pytest.mark.parametrize(
    ("names", "method"),
    [
        (DEFAULT[1:3], "ep"),
        (("product",), "auto"),
        pytest.param(tuple(JOINT), "ep", marks=pytest.mark.slow),
        pytest.param(tuple(JOINT), "auto", marks=pytest.mark.slow),
    ],
    ids=["some", "product", "all", "all by default"],
)
def test_expressions_beside_a_broad_observation_of_one(names, method):
    m, data = pairs(names, 0.8, BESIDE)
    posterior = cv.infer(m, data, method=method, accuracy="fast")
    for number, name in enumerate(names):
        functions = {"z": JOINT[name][2], **{other: f for other, (_, f) in BESIDE.items()}}
        truth = on_grid(name, 0.8, functions.values())
        for (other, _), (mean, variance) in zip(functions.items(), truth, strict=True):
            found = posterior[f"{other}{number}"]
            message = f"{other} beside {name}"
            close(found.mean, mean, rtol=0.005, atol=0.005, err_msg=message)
            if other not in ("larger", "either"):
                close(found.variance, variance, rtol=0.02, err_msg=message)


LEVELS = np.array([0.1, 0.5, 0.9])
SHAPES = {"some": (("product",), ("z",)), "all": (tuple(JOINT), ("z", "difference", "bounded"))}


@pytest.mark.parametrize("which", ["some", pytest.param("all", marks=pytest.mark.slow)])
def test_quantiles_of_expressions_are_those_of_their_distributions(which):
    """The probability below each quantile is its level: with z seen broadly, and before anything is seen."""
    names, others = SHAPES[which]
    m, data = pairs(names, 0.8, [other for other in others if other != "z"])
    seen, before = cv.infer(m, data, method="ep"), cv.infer(m, {})
    for number, name in enumerate(names):
        for posterior, sd in ((seen, 0.8), (before, np.inf)):
            x, y, weight = grid(name, sd)
            for other in others:
                function = JOINT[name][2] if other == "z" else BESIDE[other][1]
                values = function(x, y)
                for level, q in zip(LEVELS, posterior[f"{other}{number}"].quantile(LEVELS), strict=True):
                    message = f"{other} beside {name} seen with sd {sd}"
                    close(np.sum(weight[values <= q]), level, atol=0.01, err_msg=message)


ALONE = {
    "exponential": (lambda r, p, u: cv.exp(0.5 * r), lambda q, *_: np.exp(0.5 * q), 1),
    "logistic": (lambda r, p, u: cv.logistic(1.0 - r), lambda q, *_: expit(1.0 - q), -1),
    "inverse": (lambda r, p, u: 1.0 / p, lambda _, q, *__: 1.0 / q, -1),
    "logarithm": (lambda r, p, u: -cv.log(u), lambda _, __, q: -np.log(q), -1),
}


def test_monotone_functions_of_one_number_push_its_quantiles_through():
    """Far into the tails, with densities, draws and intervals; the square of a Gaussian is a noncentral chi-squared."""
    m = cv.Model()
    numbers = [m.random(name, build()) for name, (build, _) in PRIORS.items()]
    for name, (build, _, _) in ALONE.items():
        m.let(name, build(*numbers))
    m.let("square", numbers[0] ** 2)
    m.let("linear", 2.0 * numbers[0] - 1.0)
    posterior = cv.infer(m, {})
    levels = np.array([1e-4, 0.1, 0.5, 0.9, 0.9999])
    for name, (_, function, sign) in ALONE.items():
        truth = function(*(prior.ppf(levels[::sign]) for _, prior in PRIORS.values()))
        close(posterior[name].quantile(levels), truth, rtol=2e-3, err_msg=name)
    close(posterior["exponential"].interval(0.8), np.exp([0.25 - 0.5 * 1.28155, 0.25 + 0.5 * 1.28155]), rtol=1e-3)
    chi = scipy.stats.ncx2(1, 0.25)
    close(chi.cdf(posterior["square"].quantile(levels)), levels, atol=3e-3)
    log_normal = scipy.stats.lognorm(0.5, scale=np.exp(0.25))
    at = np.array([0.7, 1.3, 2.5, -1.0])
    close(posterior["exponential"].log_density(at), log_normal.logpdf(at), atol=0.02)
    draws = posterior["exponential"].sample(0, (4000,))
    assert scipy.stats.kstest(draws, log_normal.cdf).pvalue > 1e-3
    assert "241 quantiles" in repr(posterior["exponential"])
    assert repr(posterior["linear"]).startswith("Gaussian(")


def test_the_elements_of_a_plate_each_have_their_own_factor():
    m = cv.Model()
    n = m.plate("n", 3)
    x = m.random("x", cv.gaussian(0.5, variance=1.0), plates=n)
    scale = m.input("scale", cv.real, plates=n)
    s = m.random("s", cv.gaussian(0.0, variance=1.0), plates=n)
    z = m.let("z", cv.max(x, scale * s))
    m.let("scaled", scale * z)
    m.random("seen", cv.gaussian(z, sd=0.01))
    seen = np.array([0.3, 1.7, 1.0])
    posterior = cv.infer(m, {"scale": [1.0, 2.0, -1.0], "seen": seen})
    close(posterior["z"].mean, seen, atol=2e-3)
    close(posterior["z"].sd, 0.01, rtol=0.01)
    close(posterior["scaled"].sd, [0.01, 0.02, 0.01], rtol=0.01)


@pytest.mark.slow
def test_many_factors_over_the_same_variables_count_all():
    """x + y seen 20 times, by EP with beliefs apart: the messages run in a loop, the expression does not."""
    m = cv.Model()
    n = m.plate("n")
    x, y = (m.random(name, cv.gaussian(0.5, variance=1.0)) for name in "xy")
    m.let("total", x + y)
    m.let("difference", x - y)
    m.random("seen", cv.gaussian(x + y, variance=0.5), plates=n)
    seen = np.random.default_rng(0).normal(1.4, 0.7, size=20)
    posterior = cv.infer(m, {"seen": seen}, method="ep")
    precision = 1.0 / 2.0 + 20 / 0.5
    close(posterior["total"].mean, (1.0 / 2.0 + seen.sum() / 0.5) / precision, rtol=1e-6)
    close(posterior["total"].variance, 1.0 / precision, rtol=1e-6)
    close(posterior["difference"].variance, 2.0, rtol=1e-6)


def test_functions_of_a_joint_gaussian_belief():
    m = cv.Model()
    n = m.plate("n")
    a, b = (m.random(name, cv.gaussian(0.0, variance=1.0)) for name in "ab")
    t = m.input("t", cv.real, plates=n)
    m.let("product", a * b)
    m.let("larger", cv.max(a, b))
    m.let("exponential", cv.exp(0.5 * (a + b)))
    m.let("probability", cv.logistic(a * b))
    m.let("order", a > b)
    m.let("both", (a > 0.4) & (b > 0.4))
    m.random("seen", cv.gaussian(a + b * t, variance=0.1))
    times, seen = np.array([0.5, 1.0, 1.5]), np.array([0.6, 0.9, 1.6])
    posterior = cv.infer(m, {"t": times, "seen": seen})
    design = np.stack([np.ones(3), times], axis=1)
    covariance = np.linalg.inv(np.eye(2) + design.T @ design / 0.1)
    mean = covariance @ design.T @ seen / 0.1
    draws = np.random.default_rng(1).standard_normal((2_000_000, 2)) @ np.linalg.cholesky(covariance).T + mean
    a, b = draws.T
    for name, values in {
        "product": a * b,
        "larger": np.maximum(a, b),
        "exponential": np.exp(0.5 * (a + b)),
        "probability": expit(a * b),
        "order": a > b,
        "both": (a > 0.4) & (b > 0.4),
    }.items():
        close(posterior[name].mean, values.mean(), rtol=0.01, atol=1e-3, err_msg=name)
        if values.dtype != bool:
            close(posterior[name].variance, values.var(), rtol=0.01, err_msg=name)


@pytest.mark.slow
def test_expressions_of_new_rows_have_their_joint_distribution():
    """Products and maxima of coefficients that were learned together, at new inputs: against draws."""
    m = cv.Model()
    n = m.plate("n")
    a, b = (m.random(name, cv.gaussian(0.0, variance=1.0)) for name in "ab")
    p = m.random("p", cv.gamma(3.0, 2.0))
    t = m.input("t", cv.real, plates=n)
    m.let("line", a + b * t)
    m.let("product", a * b * t)
    m.let("scaled", a + p * t)
    m.random("seen", cv.gaussian(a + b * t, variance=0.1), plates=n)
    times, seen = np.array([0.5, 1.0, 1.5]), np.array([0.6, 0.9, 1.6])
    found = cv.infer(m, {"t": times, "seen": seen}).predict({"t": [2.0, -1.0]})
    design = np.stack([np.ones(3), times], axis=1)
    covariance = np.linalg.inv(np.eye(2) + design.T @ design / 0.1)
    draws = np.random.default_rng(2).standard_normal((400_000, 2)) @ np.linalg.cholesky(covariance).T
    a, b = (draws + covariance @ design.T @ seen / 0.1).T
    scale = np.random.default_rng(3).gamma(3.0, 0.5, size=400_000)
    assert repr(found["line"]).startswith("Gaussian(mean")
    for row, t in enumerate((2.0, -1.0)):
        for name, values in {"product": a * b * t, "scaled": a + scale * t}.items():
            close(found[name].mean[row], values.mean(), atol=0.01, err_msg=name)
            below = np.mean(values[:, None] <= found[name].quantile(LEVELS)[:, row], axis=0)
            close(below, LEVELS, atol=0.01, err_msg=name)


def test_lattices_fill_all_their_dimensions():
    """Points of equal weight at quantiles of independent standard normal numbers: no two go together."""
    for k in range(1, 7):
        nodes, _ = clouds._lattice(k)
        close(nodes.mean(0), 0.0, atol=0.01)
        close(np.cov(nodes.T).reshape(k, k), np.eye(k), atol=0.07)


def test_beliefs_that_are_kept_apart_are_named():
    """Mean field knows no covariance: what several factors make of it is left out, and this is said."""
    m = cv.Model()
    n = m.plate("n", 2)
    x, y = (m.random(name, cv.gaussian(0.5, variance=1.0)) for name in "xy")
    z = m.let("z", x * y)
    m.random("seen", cv.gaussian(z, sd=0.5), plates=n)
    posterior = cv.infer(m, {"seen": [1.6, 1.8]}, accuracy="fast")
    assert posterior["z"].note == "x, y taken as independent"
    assert "x, y taken as independent" in repr(posterior["z"])
    assert "x, y taken as independent" in posterior.summary()
    assert not posterior["x"].note


@pytest.mark.slow
def test_elements_of_a_chain_and_of_a_network_go_together():
    """Pairs of states of a chain and sums of a random walk against dense algebra, booleans in a loop by enumeration."""
    m = cv.Model()
    t, pair = m.plate("t", 4), m.plate("pair")
    first, second = (m.input(name, cv.index(t), plates=pair) for name in ("first", "second"))
    start = cv.gaussian(0.0, variance=1.0)
    state = m.chain("walk", over=t, first=start, then=lambda before: cv.gaussian(before, variance=0.5))
    m.random("seen", cv.gaussian(state, variance=0.3))
    m.let("step", state[second] - state[first])
    m.let("larger", cv.max(state[first], state[second]))
    a, b, c = (m.random(name, cv.bernoulli(p)) for name, p in (("a", 0.3), ("b", 0.6), ("c", 0.5)))
    for number, expr in enumerate((a | b, b | c, a ^ c)):
        m.let(f"l{number}", expr)
    m.let("all", a & b & c)
    m.let("two", a & c)
    seen = np.array([0.5, -0.2, 1.0, 0.4])
    posterior = cv.infer(m, {"seen": seen, "first": [0, 1], "second": [1, 3], "l0": True, "l1": True, "l2": False})
    prior = np.array([[1.0 + 0.5 * min(i, j) for j in range(4)] for i in range(4)])
    covariance = np.linalg.inv(np.linalg.inv(prior) + np.eye(4) / 0.3)
    mean = covariance @ seen / 0.3
    for number, (i, j) in enumerate(((0, 1), (1, 3))):
        close(posterior["step"].mean[number], mean[j] - mean[i], atol=1e-9)
        close(posterior["step"].variance[number], covariance[i, i] + covariance[j, j] - 2 * covariance[i, j], rtol=1e-8)
    draws = np.random.default_rng(0).multivariate_normal(mean, covariance, size=1_000_000)
    close(posterior["larger"].mean, np.maximum(draws[:, [0, 1]], draws[:, [1, 3]]).mean(0), atol=3e-3)
    weight = {
        (x, y, z): (0.3 if x else 0.7) * (0.6 if y else 0.4) * 0.5
        for x, y, z in itertools.product((False, True), repeat=3)
        if (x | y) and (y | z) and x == z
    }
    total = sum(weight.values())
    close(posterior["all"].mean, weight[True, True, True] / total, rtol=1e-6)
    close(posterior["two"].mean, sum(w for (x, _, z), w in weight.items() if x and z) / total, rtol=1e-6)


def test_expressions_beside_a_constraint():
    """a > b is certain where it is constrained; the larger of two standard normals has mean 1 / sqrt(pi)."""
    m = cv.Model()
    a, b = (m.random(name, cv.gaussian(0.0, variance=1.0)) for name in "ab")
    m.constrain(a - b > 0)
    m.let("order", a > b)
    m.let("larger", cv.max(a, b))
    m.let("bounded", cv.exp(b - a))
    posterior = cv.infer(m, {}, method="ep")
    close(posterior["order"].mean, 1.0, atol=1e-6)
    close(posterior["larger"].mean, 1.0 / np.sqrt(np.pi), rtol=1e-3)
    close(posterior["larger"].variance, 1.0 - 1.0 / np.pi, rtol=1e-3)
    close(posterior["bounded"].mean, 2.0 * np.e * ndtr(-np.sqrt(2.0)), rtol=1e-3)  # E exp(-t), t > 0 of variance 2


@pytest.mark.slow
def test_expressions_beside_a_constraint_on_a_joint_belief():
    """The belief of a and b is a Gaussian; what is certain of them is certain all the same: against a grid."""
    m = cv.Model()
    a, b = (m.random(name, cv.gaussian(0.0, variance=1.0)) for name in "ab")
    m.constrain(a > b)
    m.random("seen", cv.gaussian(a + 2.0 * b, variance=0.5))
    functions = {
        "order": (a > b, lambda a, b: a > b),
        "by half": (a > b + 0.5, lambda a, b: a > b + 0.5),
        "larger": (cv.max(a, b), np.maximum),
        "product": (a * b, np.multiply),
    }
    for name, (expr, _) in functions.items():
        m.let(name, expr)
    gap = m.let("gap", a - b)
    posterior = cv.infer(m, {"seen": 1.0})
    levels = scipy.stats.norm.ppf((np.arange(3000) + 0.5) / 3000)
    x, y = levels[:, None], levels[None, :]
    weight = np.exp(-((1.0 - x - 2.0 * y) ** 2)) * (x > y)
    weight /= weight.sum()
    for name, (expr, function) in functions.items():
        values = function(x, y).astype(float)
        mean = np.sum(weight * values)
        close(posterior[name].mean, mean, atol=3e-3, err_msg=name)
        if expr.domain.kind == "real":
            close(posterior[name].variance, np.sum(weight * (values - mean) ** 2), rtol=0.01, err_msg=name)
    close(posterior["order"].mean, 1.0, atol=1e-9)
    for level, q in zip(LEVELS, posterior[gap.name].quantile(LEVELS), strict=True):
        close(np.sum(weight[x - y <= q]), level, atol=0.01)


def test_the_marginal_of_a_vector_of_probabilities_says_what_its_spread_is():
    """Its mean is E softmax(r); its sd is that of a class with these probabilities, and it says so."""
    m = cv.Model()
    k = m.plate("k", 2)
    r = m.random("r", cv.gaussian([0.5, -0.5], variance=1.0), plates=k)
    m.let("p", cv.softmax(r, over=k))
    p = cv.infer(m, {})["p"]
    z = np.linspace(-8, 8, 4001)
    weights = np.exp(-0.5 * z**2)
    mean = np.sum(weights * expit(1.0 + np.sqrt(2.0) * z)) / weights.sum()
    close(p.mean, [mean, 1.0 - mean], atol=2e-3)
    close(p.sd, np.sqrt(p.mean * (1.0 - p.mean)), rtol=1e-9)
    assert "those of a class" in repr(p)
