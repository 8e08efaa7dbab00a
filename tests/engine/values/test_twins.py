"""Twin graphs: two ways to write one model, which must give one answer; and graphs whose answer is known exactly."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.special
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

import cavity as cv

close = np.testing.assert_allclose


def infer(model, data, **options):
    posterior = cv.infer(model, data, **{"tolerance": 1e-10, **options})
    assert posterior.converged, posterior.diagnosis
    parts = sum(posterior.evidence.values())
    close(parts, posterior.log_evidence, rtol=1e-12, atol=1e-12, err_msg="parts of the evidence sum to the total")
    return posterior


def same(one, other, **tolerance):
    close(one.mean, other.mean, **{"rtol": 1e-7, "atol": 1e-9, **tolerance})
    close(one.variance, other.variance, **{"rtol": 1e-7, "atol": 1e-9, **tolerance})


def same_evidence(one, other, tolerance=1e-8):
    close(one.log_evidence, other.log_evidence, rtol=0, atol=tolerance)


# Plate and unrolled --------------------------------------------------------------------------------------------------

DATA = [1.3, -0.4, 2.2]


@pytest.mark.parametrize("method", ["vmp", "auto"])
def test_plate_and_unrolled_scalars_vmp(method):
    def model(plated):
        m = cv.Model()
        mean = m.random("mean", cv.gaussian(0.0, variance=10.0))
        precision = m.random("precision", cv.gamma(2.0, 1.0))
        if plated:
            m.random("x", cv.gaussian(mean, precision=precision), plates=m.plate("n"))
        else:
            for i in range(3):
                m.random(f"x{i}", cv.gaussian(mean, precision=precision))
        return m

    plate = infer(model(True), {"x": DATA}, method=method)
    unrolled = infer(model(False), {f"x{i}": x for i, x in enumerate(DATA)}, method=method)
    for name in ("mean", "precision"):
        same(plate[name], unrolled[name])
    same_evidence(plate, unrolled)


def test_plate_and_unrolled_scalars_ep():
    labels = [True, True, False]

    def model(plated):
        m = cv.Model()
        w = m.random("w", cv.gaussian(0.3, variance=2.0))
        if plated:
            m.random("y", cv.bernoulli(cv.probit(w)), plates=m.plate("n"))
        else:
            for i in range(3):
                m.random(f"y{i}", cv.bernoulli(cv.probit(w)))
        return m

    plate = infer(model(True), {"y": labels})
    unrolled = infer(model(False), {f"y{i}": y for i, y in enumerate(labels)})
    same(plate["w"], unrolled["w"])
    same_evidence(plate, unrolled)


# Gates ---------------------------------------------------------------------------------------------------------------

CLASS = [0, 1, 1, 0]
POINTS = [-2.0, 1.5, 2.5, -1.0]


def mixture(selector):
    """Two components; `selector` random, or an input that gathers."""
    m = cv.Model()
    k, n = m.plate("k", 2), m.plate("n")
    mean = m.random("mean", cv.gaussian(0.0, variance=10.0), plates=k)
    precision = m.random("precision", cv.gamma(2.0, 2.0), plates=k)
    if selector == "gate":
        z = m.random("z", cv.categorical([0.3, 0.7]), plates=n)
    else:
        z = m.input("z", cv.index(k), plates=n)
    m.random("x", cv.gaussian(mean[z], precision=precision[z]))
    return m


def test_gate_with_observed_selector_is_a_gather():
    data = {"x": POINTS, "z": CLASS}
    gate, gather = (infer(mixture(kind), data, method="vmp") for kind in ("gate", "gather"))
    for name in ("mean", "precision"):
        same(gate[name], gather[name])
    prior = np.sum(np.log([0.3, 0.7, 0.7, 0.3]))
    close(gate.log_evidence, gather.log_evidence + prior, atol=1e-8)


def test_switch_is_an_index_gate():
    """cv.switch over terms, and indexing of a plate by the same boolean."""
    means = np.array([0.5, -1.0])
    one = cv.Model()
    n = one.plate("n")
    shift = one.random("shift", cv.gaussian(0.0, variance=4.0))
    clean = one.random("clean", cv.bernoulli(0.4), plates=n)
    one.random("x", cv.switch(clean, cv.gaussian(shift - 1.0, variance=1.0), cv.gaussian(shift + 0.5, variance=1.0)))
    other = cv.Model()
    n, k = other.plate("n"), other.plate("k", 2)
    shift = other.random("shift", cv.gaussian(0.0, variance=4.0))
    clean = other.random("clean", cv.bernoulli(0.4), plates=n)
    offset = other.input("offset", cv.real, plates=k)
    other.random("x", cv.gaussian((shift + offset)[clean], variance=1.0))
    data = {"x": [0.3, -2.0, 0.9]}
    first = infer(one, data, method="vmp")
    second = infer(other, {**data, "offset": means}, method="vmp")
    same(first["shift"], second["shift"])
    close(first["clean"].mean, second["clean"].mean, rtol=1e-8)
    same_evidence(first, second)


def test_gate_over_known_components_is_enumeration():
    """Nothing random but the selector: VMP is exact."""
    m = cv.Model()
    n = m.plate("n")
    z = m.random("z", cv.categorical([0.2, 0.5, 0.3]), plates=n)
    cases = [cv.gaussian(mean, variance=variance) for mean, variance in ((0.0, 1.0), (2.0, 0.5), (-1.0, 4.0))]
    m.random("x", cv.switch(z, *cases))
    x = np.array([0.4, 1.9, -3.0])
    posterior = infer(m, {"x": x})
    mean, variance = np.array([0.0, 2.0, -1.0]), np.array([1.0, 0.5, 4.0])
    joint = np.log([0.2, 0.5, 0.3]) - 0.5 * np.log(2 * np.pi * variance) - 0.5 * (x[:, None] - mean) ** 2 / variance
    close(posterior["z"].mean, scipy.special.softmax(joint, axis=1), rtol=1e-9)
    close(posterior.log_evidence, scipy.special.logsumexp(joint, axis=1).sum(), rtol=1e-10)


# Gather and dense ----------------------------------------------------------------------------------------------------


def test_gather_and_dense():
    """effect[group] and a dot product with indicators."""
    group, y = np.array([0, 2, 2, 1]), np.array([0.5, 1.0, 2.0, -1.0])
    gather = cv.Model()
    g, n = gather.plate("g", 3), gather.plate("n")
    index = gather.input("group", cv.index(g), plates=n)
    effect = gather.random("effect", cv.gaussian(0.0, variance=2.0), plates=g)
    gather.random("y", cv.gaussian(effect[index] + 0.3, variance=0.7))
    dense = cv.Model()
    n = dense.plate("n")
    indicator = dense.input("indicator", cv.vector(3), plates=n)
    effect = dense.random("effect", cv.vector_gaussian(np.zeros(3), covariance=2.0 * np.eye(3)))
    dense.random("y", cv.gaussian(cv.dot(effect, indicator) + 0.3, variance=0.7))
    one = infer(gather, {"group": group, "y": y})
    other = infer(dense, {"indicator": np.eye(3)[group], "y": y})
    same(one["effect"], other["effect"])
    same_evidence(one, other)
    expected = multivariate_normal(0.3 * np.ones(4), 2.0 * (group[:, None] == group) + 0.7 * np.eye(4)).logpdf(y)
    close(one.log_evidence, expected, rtol=1e-10)


# Sums, margins, comparisons ------------------------------------------------------------------------------------------


def test_chain_of_sums_is_the_closed_form():
    """x3 = x0 + three steps, observed with noise; every step is a variable."""
    m = cv.Model()
    x = m.random("x0", cv.gaussian(1.0, variance=2.0))
    for i in range(1, 4):
        x = m.random(f"x{i}", cv.gaussian(0.5 * x + 1.0, variance=0.3))
    m.random("y", cv.gaussian(2.0 * x, variance=0.5))
    posterior = infer(m, {"y": 4.0})
    mean, variance = [1.0], [2.0]
    for _ in range(3):
        mean, variance = [*mean, 0.5 * mean[-1] + 1.0], [*variance, 0.25 * variance[-1] + 0.3]
    total = 4 * variance[-1] + 0.5
    close(
        posterior.log_evidence, -0.5 * np.log(2 * np.pi * total) - 0.5 * (4.0 - 2 * mean[-1]) ** 2 / total, rtol=1e-10
    )
    for i in range(4):
        gain = 2.0 * 0.5 ** (3 - i) * variance[i] / total
        close(posterior[f"x{i}"].mean, mean[i] + gain * (4.0 - 2 * mean[-1]), rtol=1e-9)
        close(posterior[f"x{i}"].variance, variance[i] - gain**2 * total, rtol=1e-9)


def margin_model(private):
    m = cv.Model()
    n = m.plate("n", 2)
    skill = m.random("skill", cv.gaussian(0.0, variance=1.0), plates=n)
    ability = m.random("ability", cv.gaussian(0.5, variance=0.5))
    margin = m.random("margin", cv.gaussian(skill - ability, variance=0.8))
    m.constrain(margin > 0)
    if not private:  # a second consumer that says nothing: the margin must be a variable of its own
        m.random("vague", cv.gaussian(margin, variance=1e12))
    return m


def test_absorbed_margin_is_an_explicit_one():
    absorbed = infer(margin_model(True), {})
    explicit = infer(margin_model(False), {"vague": [0.0, 0.0]})
    assert "integrated out" in absorbed.explain()
    assert "recovered afterwards: margin" not in explicit.explain()
    for name in ("skill", "ability", "margin"):
        same(absorbed[name], explicit[name], rtol=1e-6)
    vague = 2 * multivariate_normal(0.0, 1e12).logpdf(0.0)
    close(absorbed.log_evidence, explicit.log_evidence - vague, atol=1e-6)


def test_difference_above_zero_is_a_comparison():
    def model(compare):
        m = cv.Model()
        x = m.random("x", cv.gaussian(0.2, variance=1.0))
        y = m.random("y", cv.gaussian(1.0, variance=2.0))
        m.constrain(compare(x, y))
        return infer(m, {})

    one, *others = (
        model(c) for c in (lambda x, y: x - y > 0, lambda x, y: y < x, lambda x, y: x > y, lambda x, y: x - y > 0)
    )
    for other in others:
        same(one["x"], other["x"], rtol=1e-12)
        same(one["y"], other["y"], rtol=1e-12)
        same_evidence(one, other, 1e-12)
    close(one.log_evidence, scipy.special.log_ndtr(-0.8 / np.sqrt(3.0)), rtol=1e-10)


def test_observed_comparison_is_a_constraint():
    def base():
        m = cv.Model()
        return m, m.random("x", cv.gaussian(0.2, variance=1.0))

    m, x = base()
    m.constrain(x < 0.5)
    constrained = infer(m, {})
    m, x = base()
    m.let("low", x < 0.5)
    observed = infer(m, {"low": True})
    same(constrained["x"], observed["x"])
    same_evidence(constrained, observed)


def test_let_is_transparent():
    def model(named):
        m = cv.Model()
        a, b = m.random("a", cv.gaussian(0.0, variance=1.0)), m.random("b", cv.gaussian(1.0, variance=2.0))
        total = a + 2.0 * b
        m.random("y", cv.gaussian(m.let("total", total) if named else total, variance=0.5))
        return infer(m, {"y": 3.0})

    one, other = model(True), model(False)
    same(one["a"], other["a"])
    same_evidence(one, other, 1e-12)


def test_a_variable_twice_in_a_sum():
    """x + x is 2 x."""

    def model(double):
        m = cv.Model()
        x = m.random("x", cv.gaussian(1.0, variance=1.0))
        m.random("y", cv.gaussian(double(x), variance=1.0))
        return infer(m, {"y": 0.0})

    one, other = model(lambda x: x + x), model(lambda x: 2.0 * x)
    same(one["x"], other["x"])
    same_evidence(one, other)


def test_an_element_twice_in_a_sum():
    """x[i] + x[j] where the data have i = j."""
    m = cv.Model()
    k, n = m.plate("k", 2), m.plate("n")
    i, j = (m.input(name, cv.index(k), plates=n) for name in "ij")
    x = m.random("x", cv.gaussian(1.0, variance=1.0), plates=k)
    m.random("y", cv.gaussian(x[i] + x[j], variance=1.0))
    posterior = infer(m, {"i": [0], "j": [0], "y": [0.0]})
    close(posterior["x"].mean, [0.2, 1.0], rtol=1e-7)
    close(posterior["x"].variance, [0.2, 1.0], rtol=1e-7)
    close(posterior.log_evidence, multivariate_normal(2.0, 5.0).logpdf(0.0), rtol=1e-8)


def test_sum_over_a_plate_is_a_dot_product():
    x, y = np.array([[1.0, 0.5], [-1.0, 2.0], [0.3, 0.0]]), np.array([1.0, 0.2, -0.5])
    m = cv.Model()
    n, d = m.plate("n"), m.plate("d")
    inputs = m.input("x", cv.real, plates=(n, d))
    w = m.random("w", cv.gaussian(0.0, variance=2.0), plates=d)
    m.random("y", cv.gaussian(cv.sum(w * inputs, over=d), variance=0.5))
    posterior = infer(m, {"x": x, "y": y})
    expected = np.linalg.solve(np.eye(2) / 2.0 + x.T @ x / 0.5, x.T @ y / 0.5)
    close(posterior["w"].mean, expected, rtol=1e-7)  # the means of Gaussian belief propagation are exact


def test_power_ep_of_a_gaussian_factor():
    """w ~ N(0, 2), v ~ N(w, 1), two observations of v: power 1/2 solved by hand, precisions a and b of the messages.

    f^(1/2) is a normal of noise 2; half of the message comes from it and the cavity, which keeps the other half.
    """
    m = cv.Model()
    w = m.random("w", cv.gaussian(0.0, variance=2.0))
    v = m.random("v", cv.gaussian(w, variance=1.0))
    m.random("y", cv.gaussian(v, variance=0.5), plates=m.plate("n"))
    posterior = infer(m, {"y": [1.0, 2.0]}, method=cv.power(0.5))
    a = b = 0.5
    for _ in range(100):
        a, b = 2 / (2 + 1 / (4 + b / 2)), 2 / (2 + 1 / (0.5 + a / 2))
    close(posterior["w"].variance, 1 / (0.5 + a), rtol=1e-8)
    close(posterior["v"].variance, 1 / (4 + b), rtol=1e-8)


def test_gate_on_a_comparison():
    """x > 0 decides the mean of y: half and half a priori."""
    m = cv.Model()
    x = m.random("x", cv.gaussian(0.0, variance=1.0))
    side = m.let("side", x > 0)
    m.random("y", cv.switch(side, cv.gaussian(2.0, variance=1.0), cv.gaussian(-2.0, variance=1.0)))
    posterior = infer(m, {"y": 1.0})
    close(posterior["side"].mean, scipy.special.expit(4.0), rtol=1e-7)


@pytest.mark.parametrize("bound", [pytest.param("tilted", marks=pytest.mark.slow), "quadrature"])
@pytest.mark.parametrize("variance", [1.0, pytest.param(100.0, marks=pytest.mark.slow)])
def test_softmax_with_a_pinned_class_is_logistic(bound, variance):
    """Two classes, the score of the first fixed at zero."""
    y, x = np.array([1, 0, 1, 1]), np.array([1.0, 2.0, 0.5, 0.0])
    m = cv.Model()
    n, k = m.plate("n"), m.plate("k", 2)
    inputs, free = m.input("x", cv.real, plates=n), m.input("free", cv.real, plates=k)
    w = m.random("w", cv.gaussian(0.0, variance=variance), plates=k)
    m.random("y", cv.categorical(cv.softmax(w * free * inputs, over=k)))
    softmax = infer(m, {"x": x, "free": [0.0, 1.0], "y": y}, method={"y": cv.ncvmp(bound=bound)})
    m = cv.Model()
    inputs = m.input("x", cv.real, plates=m.plate("n"))
    w = m.random("w", cv.gaussian(0.0, variance=variance))
    m.random("y", cv.bernoulli(cv.logistic(w * inputs)))
    logistic = infer(m, {"x": x, "y": y == 1}, method={"y": cv.ncvmp(bound=bound)})
    close(softmax["w"].mean[1], logistic["w"].mean, rtol=1e-5)
    close(softmax["w"].variance[1], logistic["w"].variance, rtol=1e-5)
    same_evidence(softmax, logistic, 1e-6)


# Exact evidence on trees ---------------------------------------------------------------------------------------------

few = settings(max_examples=3, deadline=None, derandomize=True, database=None)


def numbers(low, high):
    """A grid: subnormal numbers test floating point rather than graphs."""
    return st.integers(0, 100).map(lambda i: low + (high - low) * i / 100)


@st.composite
def trees(draw):
    """Parents of nodes 1, 2, ...; coefficients, offsets and variances; which are observed, and where."""
    size = draw(st.integers(2, 5))
    parents = [0, *(draw(st.integers(0, i - 1)) for i in range(1, size))]
    coefficients = [draw(numbers(-2.0, 2.0)) for _ in range(size)]
    offsets = [draw(numbers(-1.0, 1.0)) for _ in range(size)]
    variances = [draw(numbers(0.1, 3.0)) for _ in range(size)]
    observed = [draw(st.booleans()) for _ in range(size)]
    observed[-1] = True
    observed[0] = False
    for i in range(size - 1, 0, -1):  # factors without unknowns: see test_factors_whose_variables_are_all_observed
        observed[parents[i]] &= not observed[i]
    values = [draw(numbers(-3.0, 3.0)) for _ in range(size)]
    return parents, coefficients, offsets, variances, observed, values


@few
@given(trees())
def test_linear_gaussian_trees_are_exact(tree):
    parents, coefficients, offsets, variances, observed, values = tree
    size = len(parents)
    m, nodes = cv.Model(), []
    mean, covariance = np.zeros(size), np.zeros((size, size))
    for i in range(size):
        centre = offsets[i] if i == 0 else coefficients[i] * nodes[parents[i]] + offsets[i]
        nodes.append(m.random(f"x{i}", cv.gaussian(centre, variance=variances[i])))
        slope = np.zeros(size)
        slope[parents[i]] = coefficients[i] if i else 0.0
        mean[i] = slope @ mean + offsets[i]
        covariance[i] = covariance[:, i] = slope @ covariance
        covariance[i, i] = slope @ covariance @ slope + variances[i] if i else variances[i]
    data = {f"x{i}": values[i] for i in range(size) if observed[i]}
    posterior = infer(m, data)
    seen = np.flatnonzero(observed)
    hidden = [i for i in range(size) if not observed[i]]
    y = np.array(values)[seen] - mean[seen]
    expected = multivariate_normal(np.zeros(len(seen)), covariance[np.ix_(seen, seen)]).logpdf(y)
    close(posterior.log_evidence, expected, rtol=1e-8, atol=1e-8)
    gain = covariance[np.ix_(hidden, seen)] @ np.linalg.inv(covariance[np.ix_(seen, seen)])
    after = covariance[np.ix_(hidden, hidden)] - gain @ covariance[np.ix_(seen, hidden)]
    for j, i in enumerate(hidden):
        close(posterior[f"x{i}"].mean, (mean[hidden] + gain @ y)[j], rtol=1e-7, atol=1e-7)
        close(posterior[f"x{i}"].variance, after[j, j], rtol=1e-7)


@pytest.mark.parametrize("link", [None, cv.probit, pytest.param(cv.logistic, marks=pytest.mark.slow)])
def test_factors_whose_variables_are_all_observed(link):
    """The evidence is the density of the data."""
    m = cv.Model()
    x = m.random("x", cv.gaussian(0.0, variance=1.0))
    m.random("y", cv.gaussian(x, variance=1.0) if link is None else cv.bernoulli(link(x)))
    posterior = infer(m, {"x": 0.5, "y": 1.5 if link is None else True})
    prior = multivariate_normal(0.0, 1.0).logpdf(0.5)
    like = {
        None: -0.5 * np.log(2 * np.pi) - 0.5,
        cv.probit: scipy.special.log_ndtr(0.5),
        cv.logistic: -np.log1p(np.exp(-0.5)),
    }
    close(posterior.log_evidence, prior + like[link], rtol=1e-10)


def test_an_observed_root():
    m = cv.Model()
    x = m.random("x", cv.gaussian(0.0, variance=1.0))
    z = m.random("z", cv.gaussian(x, variance=2.0))
    m.random("y", cv.gaussian(z, variance=1.0))
    posterior = infer(m, {"x": 0.5, "y": 2.0})
    close([posterior["z"].mean, posterior["z"].variance], [1.5, 2 / 3], rtol=1e-9)


@st.composite
def discrete_trees(draw):
    size = draw(st.integers(2, 4))
    classes = [draw(st.integers(2, 3)) for _ in range(size)]
    parents = [0, *(draw(st.integers(0, i - 1)) for i in range(1, size))]
    seed = draw(st.integers(0, 1000))
    return classes, parents, seed, draw(st.integers(0, 1))


@few
@given(discrete_trees())
def test_discrete_trees_are_exact(tree):
    classes, parents, seed, value = tree
    rng, size = np.random.default_rng(seed), len(parents)
    tables = [rng.dirichlet(np.ones(classes[i]), None if i == 0 else classes[parents[i]]) for i in range(size)]
    m, nodes, data = cv.Model(), [], {}
    for i in range(size):
        if i == 0:
            nodes.append(m.random("x0", cv.categorical(tables[0])))
            continue
        plate = m.plate(f"states {i}", classes[parents[i]])
        table = m.input(f"table {i}", cv.simplex(classes[i]), plates=plate)
        nodes.append(m.random(f"x{i}", cv.categorical(table[nodes[parents[i]]])))
        data[f"table {i}"] = tables[i]
    last = size - 1
    posterior = infer(m, {**data, f"x{last}": value})
    joint = np.zeros(classes)
    for states in itertools.product(*map(range, classes)):
        p = tables[0][states[0]] * np.prod([tables[i][states[parents[i]], states[i]] for i in range(1, size)])
        joint[states] = p * (states[last] == value)
    close(posterior.log_evidence, np.log(joint.sum()), rtol=1e-9)
    for i in range(size - 1):
        marginal = joint.sum(tuple(j for j in range(size) if j != i)) / joint.sum()
        close(posterior[f"x{i}"].mean, marginal, rtol=1e-8, atol=1e-12)


def test_truth_tables_are_enumerated():
    """Three causes; all of and, or, not, xor, ==."""
    priors = (0.3, 0.6, 0.2)
    m = cv.Model()
    a, b, c = (m.random(name, cv.bernoulli(p)) for name, p in zip("abc", priors, strict=True))
    m.let("d", (a & ~b) | (b ^ c))
    m.let("e", a == c)
    posterior = infer(m, {"d": True})
    joint = np.zeros((2, 2, 2))
    for x, y, z in itertools.product((0, 1), repeat=3):
        weight = np.prod([p if on else 1 - p for p, on in zip(priors, (x, y, z), strict=True)])
        joint[x, y, z] = weight * bool((x and not y) or (y != z))
    close(posterior.log_evidence, np.log(joint.sum()), rtol=1e-10)
    for i, name in enumerate("abc"):
        close(posterior[name].mean, joint.sum(tuple(j for j in range(3) if j != i))[1] / joint.sum(), rtol=1e-9)


def test_mixed_tree_of_discrete_and_gaussian_comparisons():
    """won = (x > y); lucky flips it: exact, as one comparison and one table form a tree."""
    m = cv.Model()
    x = m.random("x", cv.gaussian(0.5, variance=1.0))
    better = m.let("better", x > 0)
    lucky = m.random("lucky", cv.bernoulli(0.1))
    m.let("won", better ^ lucky)
    posterior = infer(m, {"won": True})
    p = scipy.special.ndtr(0.5)
    evidence = 0.9 * p + 0.1 * (1 - p)
    close(posterior.log_evidence, np.log(evidence), rtol=1e-9)
    close(posterior["lucky"].mean, 0.1 * (1 - p) / evidence, rtol=1e-8)
    close(posterior["better"].mean, 0.9 * p / evidence, rtol=1e-8)
