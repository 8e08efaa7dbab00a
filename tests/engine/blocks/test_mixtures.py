"""EP and power EP of mixtures of conjugate terms, beside a projection by brute force: integrals on a grid."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize, special, stats

import cavity as cv

close = np.testing.assert_allclose
U = np.linspace(-45.0, 30.0, 6001)  # the trapezoidal rule there is exact to rounding for what decays in it


class Parent:
    """A family of one parameter by two statistics, on a grid: nothing of the engine's closed forms."""

    def __init__(self, kind: str, first: float, second: float) -> None:
        self.kind, self.prior = kind, np.array([first, second])
        theta, log_slope = {
            "real": (U, np.zeros_like(U)),
            "positive": (np.exp(U), U),
            "unit": (special.expit(U), special.log_expit(U) + special.log_expit(-U)),
        }[kind]
        self.theta, self.log_measure = theta, log_slope + np.log(U[1] - U[0])
        with np.errstate(over="ignore"):
            self.t = {
                "real": (U, U**2),
                "positive": (theta, U),
                "unit": (special.log_expit(U), special.log_expit(-U)),
            }[kind]

    def log_density(self, naturals):
        """Of the member with these naturals, with no normaliser."""
        return naturals[0] * self.t[0] + naturals[1] * self.t[1] + self.log_measure

    def log_norm(self, naturals, log_likelihood=0.0):
        return special.logsumexp(self.log_density(naturals) + log_likelihood)

    def stats(self, naturals, log_likelihood=0.0):
        log = self.log_density(naturals) + log_likelihood
        weight = np.exp(log - special.logsumexp(log))
        return np.array([np.sum(np.where(weight > 0, weight * t, 0.0)) for t in self.t])

    def project(self, stats):
        """The naturals of the member with these expected statistics."""
        if self.kind == "real":
            variance = stats[1] - stats[0] ** 2
            return np.array([stats[0] / variance, -0.5 / variance])
        if self.kind == "positive":
            gap = np.log(stats[0]) - stats[1]
            log_shape = optimize.brentq(lambda s: s - special.digamma(np.exp(s)) - gap, -12.0, 25.0, xtol=1e-15)
            shape = np.exp(log_shape)
            return np.array([-shape / stats[0], shape - 1.0])
        return dirichlet(stats) - 1.0


def dirichlet(expected_logs):
    """The concentration with these expected logarithms."""

    def total(digamma_of_sum):
        """Of the concentration, where the digamma function of its sum is this."""
        return np.sum([_inverse_digamma(e + digamma_of_sum) for e in expected_logs])

    found = optimize.brentq(lambda y: special.digamma(total(y)) - y, -20.0, 20.0, xtol=1e-15)
    return np.array([_inverse_digamma(e + found) for e in expected_logs])


def _inverse_digamma(y):
    x = np.exp(y) + 0.5 if y > -2.2 else -1.0 / (y + np.euler_gamma)
    for _ in range(8):
        x -= (special.digamma(x) - y) / special.polygamma(1, x)
    return x


def brute_force(parents, concentration, log_likelihood, data, begin, power, sweeps=60):
    """The fixed point of (power) EP, row after row: beliefs about parents, about the weights, and the log evidence."""
    number, rows = len(parents), len(data)
    messages = np.zeros((rows, number, 2))
    of_weights = np.zeros((rows, number))
    for row, chances in enumerate(begin):  # a row as if it were known with which chance it is of which state
        of_weights[row] = chances
        for state, parent in enumerate(parents):
            posterior = parent.project(parent.stats(parent.prior, log_likelihood(data[row], parent.theta)))
            messages[row, state] = chances[state] * (posterior - parent.prior)
    log_prior = [np.asarray(parent.prior) for parent in parents]
    for _ in range(sweeps):
        before = messages.copy()
        for n in range(rows):
            cavities = [log_prior[k] + messages[:, k].sum(0) - power * messages[n, k] for k in range(number)]
            weights = concentration + of_weights.sum(0) - power * of_weights[n]
            logs = [power * log_likelihood(data[n], parent.theta) for parent in parents]
            log_z = np.array(
                [p.log_norm(c, own) - p.log_norm(c) for p, c, own in zip(parents, cavities, logs, strict=True)]
            )
            log_z += special.gammaln(weights + power) - special.gammaln(weights)
            log_z += special.gammaln(weights.sum()) - special.gammaln(weights.sum() + power)
            chance = special.softmax(log_z / power)
            for k, parent in enumerate(parents):
                mixed = (1 - chance[k]) * parent.stats(cavities[k]) + chance[k] * parent.stats(cavities[k], logs[k])
                messages[n, k] = (parent.project(mixed) - cavities[k]) / power
            digammas = special.digamma(weights + power * np.eye(number)) - special.digamma(weights.sum() + power)
            of_weights[n] = (dirichlet(chance @ digammas) - weights) / power
        if np.max(np.abs(messages - before)) < 1e-11:
            break
    beliefs = [log_prior[k] + messages[:, k].sum(0) for k in range(number)]
    weights = concentration + of_weights.sum(0)

    def log_beta(a):
        return special.gammaln(a).sum() - special.gammaln(a.sum())

    total = log_beta(weights) - log_beta(concentration)
    total += sum(p.log_norm(b) - p.log_norm(p.prior) for p, b in zip(parents, beliefs, strict=True))
    for n in range(rows):
        cavities = [b - power * messages[n, k] for k, b in enumerate(beliefs)]
        without = weights - power * of_weights[n]
        logs = [power * log_likelihood(data[n], parent.theta) for parent in parents]
        log_z = np.array(
            [p.log_norm(c, own) - p.log_norm(c) for p, c, own in zip(parents, cavities, logs, strict=True)]
        )
        log_z += [log_beta(without + power * one) - log_beta(without) for one in np.eye(number)]
        total += special.logsumexp(log_z / power)
        change = sum(p.log_norm(c) - p.log_norm(b) for p, c, b in zip(parents, cavities, beliefs, strict=True))
        total += (change + log_beta(without) - log_beta(weights)) / power
    return np.array([p.stats(b) for p, b in zip(parents, beliefs, strict=True)]), weights, total


def mixture(number, parent, term):
    m = cv.Model("mixture")
    k, n = m.plate("k", number), m.plate("n")
    weights = m.random("weights", cv.dirichlet(np.full(number, 1.5)))
    theta = m.random("theta", parent, plates=k)
    z = m.random("z", cv.categorical(weights), plates=n)
    m.random("x", term(theta[z]), plates=n)
    return m


CASES = {
    "gaussian mean": (
        cv.gaussian(0.5, variance=9.0),
        lambda t: cv.gaussian(t, precision=1.5),
        Parent("real", 0.5 / 9.0, -0.5 / 9.0),
        lambda x, t: stats.norm.logpdf(x, t, 1.5**-0.5),
        [-2.1, -1.4, -2.6, 1.9, 2.8, 1.6, 2.0],
    ),
    "gaussian precision": (
        cv.gamma(1.5, 0.7),
        lambda t: cv.gaussian(0.2, precision=t),
        Parent("positive", -0.7, 0.5),
        lambda x, t: 0.5 * np.log(t / (2 * np.pi)) - 0.5 * t * (x - 0.2) ** 2,
        [0.1, 0.3, 0.25, 3.5, -4.0, 5.0, 0.15],
    ),
    "poisson rate": (
        cv.gamma(1.2, 0.3),
        cv.poisson,
        Parent("positive", -0.3, 0.2),
        lambda x, t: x * np.log(t) - t - special.gammaln(x + 1),
        [0.0, 1.0, 1.0, 9.0, 12.0, 8.0],
    ),
    "exponential rate": (
        cv.gamma(2.0, 1.0),
        lambda t: cv.gamma(3.0, t),
        Parent("positive", -1.0, 1.0),
        lambda x, t: 3 * np.log(t) + 2 * np.log(x) - t * x - special.gammaln(3.0),
        [0.5, 0.7, 0.4, 12.0, 20.0, 9.0],
    ),
}


THIRD = {  # rows of a third component
    "gaussian mean": [8.0],
    "gaussian precision": [60.0, -45.0, 52.0],
    "poisson rate": [60.0],
    "exponential rate": [300.0, 250.0, 410.0],
}


@pytest.mark.parametrize("power", [1.0, 0.5])
@pytest.mark.parametrize("number", [2, 3])
@pytest.mark.parametrize("case", CASES)
def test_against_a_projection_by_brute_force(case, number, power):
    prior, term, parent, log_likelihood, data = CASES[case]
    data = [*data, *THIRD[case]] if number == 3 else data
    found = cv.infer(mixture(number, prior, term), {"x": data}, method=cv.power(power), tolerance=1e-10)
    assert found.converged
    with np.errstate(all="ignore"):
        wanted, weights, evidence = brute_force(
            [parent] * number, np.full(number, 1.5), log_likelihood, data, found["z"].mean, power
        )
    ours = [np.array(own) for own in zip(*found.naturals_of("theta"), strict=True)]
    close(found.log_evidence, evidence, rtol=1e-8)
    close([parent.stats(own) for own in ours], wanted, rtol=1e-8, atol=1e-8)
    close(found["weights"].parameters["concentration"], weights, rtol=1e-8)


def test_a_state_with_an_improper_cavity_is_not_called_converged():
    """A component of one row: without that row's message its precision would have no distribution."""
    prior, term, _, _, data = CASES["exponential rate"]
    with pytest.warns(cv.CavityWarning, match="no fixed point"):
        found = cv.infer(mixture(3, prior, term), {"x": [*data, 300.0]}, method="ep")
    assert not found.converged
    assert found.floored["x"] > 0


X = np.array([-2.1, -1.7, -2.4, 1.9, 2.3, 1.6, 2.0])


def test_towards_power_zero_it_meets_vmp():
    model = mixture(2, cv.gaussian(0.0, variance=10.0), lambda t: cv.gaussian(t, precision=1.0))
    vmp = cv.infer(model, {"x": X}, method="vmp", tolerance=1e-9)
    evidence = [cv.infer(model, {"x": X}, method=cv.power(a)).log_evidence for a in (1e-4, 0.1, 0.5, 1.0)]
    close(evidence[0], vmp.log_evidence, atol=1e-5)
    assert np.all(np.diff(evidence) > 0.0)


def latent_classes(weights, probability):
    m = cv.Model("classes")
    k, n, item = m.plate("k", 2), m.plate("n"), m.plate("item")
    w = m.random("w", weights)
    p = m.random("p", probability, plates=(k, item))
    z = m.random("z", cv.categorical(w), plates=n)
    m.random("x", cv.bernoulli(p[z]), plates=(n, item))
    return m


def test_missing_items_are_left_out():
    """A person without any answer says nothing, and an item that nobody answered keeps its prior."""
    model = latent_classes(cv.dirichlet(np.ones(2)), cv.beta(1.0, 1.0))
    x = np.array([[1.0, 1, 0], [1, 1, 0], [0, 0, 1], [0, 1, 1], [1, 1, 0]])
    whole = cv.infer(model, {"x": x}, method="ep", tolerance=1e-10)
    more = np.full((6, 4), np.nan)
    more[:5, :3] = x
    found = cv.infer(model, {"x": more}, method="ep", tolerance=1e-10)
    close(found.log_evidence, whole.log_evidence, rtol=1e-9)
    close(found["p"].mean[:, 3], 0.5)
    close(np.sort(found["z"].mean[5]), np.sort(whole["w"].mean), rtol=1e-8)


def conjugate(multiple, size=0):
    m = cv.Model("conjugate")
    n = m.plate("n")
    if size:
        precision = m.random("precision", cv.wishart(dof=size + 2.0, scale=np.eye(size) / (size + 2.0)))
        mean = m.random("mean", cv.vector_gaussian(np.full(size, 0.3), precision=multiple * precision))
        m.random("x", cv.vector_gaussian(mean, precision=precision), plates=n)
    else:
        precision = m.random("precision", cv.gamma(2.0, 1.5))
        mean = m.random("mean", cv.gaussian(0.3, precision=multiple * precision))
        m.random("x", cv.gaussian(mean, precision=precision), plates=n)
    return m


@pytest.mark.parametrize("method", ["auto", "vmp", "ep"])
def test_a_mean_and_its_precision_share_an_exact_belief(method):
    x = np.array([1.0, 2.0, 0.5, 3.0])
    found = cv.infer(conjugate(0.5), {"x": x}, method=method)
    v, a = 0.5 + len(x), 2.0 + 0.5 * len(x)
    b = 1.5 + 0.5 * np.sum((x - x.mean()) ** 2) + 0.5 * 0.5 * len(x) / v * (x.mean() - 0.3) ** 2
    evidence = special.gammaln(a) - special.gammaln(2.0) + 2.0 * np.log(1.5) - a * np.log(b)
    evidence += 0.5 * np.log(0.5 / v) - 0.5 * len(x) * np.log(2.0 * np.pi)
    close(found.log_evidence, evidence, rtol=1e-12)
    marginal = stats.t(2.0 * a, loc=(0.5 * 0.3 + x.sum()) / v, scale=np.sqrt(b / (a * v)))
    close(found["mean"].mean, marginal.mean(), rtol=1e-12)
    close(found["mean"].variance, marginal.var(), rtol=1e-9)
    close(found["mean"].quantile([0.025, 0.975]), marginal.ppf([0.025, 0.975]), rtol=1e-6)
    close(found["precision"].mean, a / b, rtol=1e-12)


def test_a_vector_and_its_precision_matrix_share_an_exact_belief():
    """Beside the predictive densities of one row after the other, which are Student's t."""
    x = np.random.default_rng(0).normal(size=(6, 2))
    found = cv.infer(conjugate(0.5, 2), {"x": x})
    mean, v, dof, inverse = np.full(2, 0.3), 0.5, 4.0, 4.0 * np.eye(2)
    evidence = 0.0
    for row in x:
        free = dof - 1.0
        evidence += stats.multivariate_t(mean, inverse * (v + 1.0) / (v * free), df=free).logpdf(row)
        inverse = inverse + v / (v + 1.0) * np.outer(row - mean, row - mean)
        mean, v, dof = (v * mean + row) / (v + 1.0), v + 1.0, dof + 1.0
    close(found.log_evidence, evidence, rtol=1e-12)
    close(found["mean"].mean, mean, rtol=1e-10)
    close(found["precision"].mean, dof * np.linalg.inv(inverse), rtol=1e-10)
