"""Booleans whose probabilities are products of sticks: bounds, quadrature, the mean field of binary features."""

import jax
import numpy as np
import pytest
import scipy.special

import cavity as cv
from cavity.engine.support.machine_code import Kernel
from cavity.models.buffet.likelihoods import LinearGaussian, Rows
from cavity.models.buffet.samplers.law import Law
from cavity.models.buffet.variational import fit, fit_variational
from cavity.models.buffet.variational.gaussian import GaussianField
from cavity.models.buffet.variational.weights import Sticks

SEEN = np.array([[1, 1, 0], [1, 0, 0], [0, 0, 0], [1, 1, 1], [1, 0, 0]], bool)
TAYLOR = cv.ncvmp(bound="taylor")


def passing(sticks=3, confusion=None, by_number=False):
    """Rows pass sticks up to one; with `confusion` they are seen through noise."""
    m = cv.Model("sticks")
    row, level = m.plate("row"), m.plate("level", sticks)
    stick = m.random("stick", cv.beta(2.0, 1.0), plates=level)
    reached = m.let("reached", cv.cumprod(stick, over=level))
    if by_number:
        for k in range(sticks):
            m.random(f"passes {k}", cv.bernoulli(reached[k]), plates=row)
        return m
    passes = m.random("passes", cv.bernoulli(reached), plates=(row, level))
    if confusion is not None:
        m.random("seen", cv.bernoulli(cv.table(np.array([confusion, 1.0 - confusion]))[passes]))
    return m


def integrated(confusion=0.0):
    """Log evidence and posterior means of sticks and of their products, by Gauss and Legendre's rule over three."""
    x, w = np.polynomial.legendre.leggauss(60)
    x, w = (x + 1.0) / 2.0, w / 2.0
    stick = np.stack(np.meshgrid(x, x, x, indexing="ij"), axis=-1)
    reached, ones = np.cumprod(stick, axis=-1), SEEN.sum(axis=0)
    chance = confusion + (1.0 - 2.0 * confusion) * reached
    logs = ones * np.log(chance) + (len(SEEN) - ones) * np.log1p(-chance) + np.log(2.0 * stick)
    weight = np.exp(logs.sum(axis=-1)) * w[:, None, None] * w[:, None] * w
    means = (np.tensordot(weight, each, 3) / weight.sum() for each in (stick, reached))
    return np.log(weight.sum()), *means


def test_the_bound_rises_to_less_than_the_evidence():
    """The series of the logarithm is closer than the bound with updates in closed form, which alone never falls."""
    evidence, sticks, reached = integrated()
    found = cv.infer(passing(), {"passes": SEEN}, method="vmp", tolerance=1e-10)
    closer = cv.infer(passing(), {"passes": SEEN}, method=TAYLOR, tolerance=1e-10)
    assert found.converged
    assert closer.converged
    assert (np.diff(found.trace.evidence) > -1e-10).all()
    assert evidence - 1.2 < found.log_evidence < closer.log_evidence < evidence
    assert closer.log_evidence > evidence - 0.2
    for posterior, far in ((found, 0.06), (closer, 0.02)):
        assert np.abs(posterior["stick"].mean - sticks).max() < far
        assert np.abs(posterior["reached"].mean - reached).max() < far
        assert posterior["reached"].mean == pytest.approx(np.cumprod(posterior["stick"].mean), abs=1e-6)


def test_the_beliefs_are_at_their_best():
    """Each stick counts the rows that pass it and those that it stops, by the belief of which stick stops a row."""
    stick = cv.infer(passing(), {"passes": SEEN}, method="vmp", tolerance=1e-12)["stick"].parameters
    ones, lack = SEEN.sum(axis=0), (~SEEN).sum(axis=0)
    both = scipy.special.digamma(stick["a"] + stick["b"])
    on, off = (scipy.special.digamma(stick[p]) - both for p in "ab")
    weight = np.exp(off + np.cumsum(on) - on)
    share = np.tril(np.ones((3, 3))) * weight / np.cumsum(weight)[:, None]  # [k, i]: stick i stops a row before k
    later = np.array([[share[k, i + 1 :].sum() for i in range(3)] for k in range(3)])
    assert stick["a"] == pytest.approx(2.0 + ones[::-1].cumsum()[::-1] + lack @ later, abs=1e-6)
    assert stick["b"] == pytest.approx(1.0 + lack @ share, abs=1e-6)
    assert stick["b"] != pytest.approx(1.0 + lack, abs=0.1)  # what sticks that stop all that lack them would count


def test_rows_seen_through_noise():
    evidence, sticks, _ = integrated(confusion=0.1)
    posterior = cv.infer(passing(confusion=0.1), {"seen": SEEN}, method="vmp", tolerance=1e-10)
    assert posterior.converged
    assert evidence - 1.5 < posterior.log_evidence < evidence
    assert np.abs(posterior["stick"].mean - sticks).max() < 0.06


def test_elements_by_number_are_those_of_the_plate():
    found = cv.infer(passing(), {"passes": SEEN}, method="vmp", tolerance=1e-12)
    data = {f"passes {k}": SEEN[:, k] for k in range(3)}
    apart = cv.infer(passing(by_number=True), data, method="vmp", tolerance=1e-12)
    assert apart.log_evidence == pytest.approx(found.log_evidence, abs=1e-8)
    assert apart["stick"].mean == pytest.approx(found["stick"].mean, abs=1e-6)


def test_what_is_not_seen_is_predicted_by_the_mean():
    gaps = np.concatenate([SEEN.astype(float), np.full((1, 3), np.nan)])
    posterior = cv.infer(passing(), {"passes": gaps}, method="vmp", tolerance=1e-10)
    assert posterior["passes"].mean[-1] == pytest.approx(np.cumprod(posterior["stick"].mean), abs=1e-6)


def test_the_density_of_all_that_is_declared():
    stick = np.array([0.7, 0.5, 0.4])
    reached, ones = np.cumprod(stick), SEEN.sum(axis=0)
    wanted = (ones * np.log(reached) + (len(SEEN) - ones) * np.log1p(-reached) + np.log(2.0 * stick)).sum()
    assert cv.log_density(passing(), {"passes": SEEN})({"stick": stick}) == pytest.approx(wanted, abs=1e-9)


def test_why_it_is_served_so():
    text = str(cv.explain(passing(), {"passes": SEEN}))
    assert "cumprod: multinomial" in text
    assert "a product along a plate: NCVMP" in text
    assert "cumprod: taylor" in str(cv.explain(passing(), {"passes": SEEN}, method=TAYLOR))
    with pytest.raises(cv.UnsupportedError, match="multiplies random numbers along a plate"):
        cv.infer(passing(), {"passes": SEEN}, method="ep")


def test_products_of_other_numbers_are_refused():
    m = cv.Model()
    level, other = m.plate("level", 3), m.plate("other", 2)
    number = m.random("number", cv.gamma(1.0, 1.0), plates=level)
    with pytest.raises(cv.ModelError, match="`cumprod` takes probabilities"):
        cv.cumprod(number, over=level)
    with pytest.raises(cv.ModelError, match="`cumprod` of 'stick' over plate 'other'"):
        cv.cumprod(m.random("stick", cv.beta(1.0, 1.0), plates=level), over=other)


@pytest.mark.slow
def test_the_default_and_sampling_are_right():
    evidence, sticks, reached = integrated()
    found = cv.infer(passing(), {"passes": SEEN})
    assert abs(found.log_evidence - evidence) < 0.1
    assert np.abs(found["reached"].mean - reached).max() < 0.03
    drawn = cv.sample(passing(), {"passes": SEEN}, seed=0)
    assert np.abs(np.asarray(drawn["stick"]).reshape(-1, 3).mean(axis=0) - sticks).max() < 0.03


GIVEN = LinearGaussian(noise_precision=2.0, value_precision=0.7)


def linear_gaussian(features, dimensions):
    """Rows are sums of the values of features, which they have by sticks; the sum is written out."""
    m = cv.Model("features")
    row, column, feature = m.plate("row"), m.plate("column", dimensions), m.plate("feature", features)
    activity, total = cv.cumprod(m.random("stick", cv.beta(1.5, 1.0), plates=feature), over=feature), 0.0
    for k in range(features):
        active = m.random(f"active {k}", cv.bernoulli(activity[k]), plates=row)
        value = m.random(f"value {k}", cv.gaussian(0.0, variance=1.0 / GIVEN.value_precision), plates=column)
        total = total + cv.table(np.array([0.0, 1.0]))[active] * value
    m.random("x", cv.gaussian(total, variance=1.0 / GIVEN.noise_precision), plates=(row, column))
    return m


@pytest.mark.slow
def test_mean_field_of_binary_features_is_that_of_the_language():
    """Its bound at the language's beliefs is the language's evidence, and an iteration leaves them."""
    random, features = np.random.default_rng(5), 2
    shown = random.random((12, features)) < np.array([0.8, 0.3])
    x = shown @ (2.0 * random.normal(size=(features, 3))) + 0.5 * random.normal(size=(12, 3))
    posterior = cv.infer(linear_gaussian(features, 3), {"x": x}, method="vmp", tolerance=1e-12)
    rows, law = Rows(x, np.ones(x.shape, bool)), Law(mass=1.5)
    found = fit_variational(rows, GIVEN, law, jax.random.key(0), places=features, restarts=1, iterations=1)
    each = {name: [posterior[f"{name} {k}"] for k in range(features)] for name in ("active", "value")}
    own = found.belief.own._replace(
        mean=np.stack([value.mean for value in each["value"]]),
        variance=np.stack([value.sd**2 for value in each["value"]]),
    )
    sticks = dict(zip(("first", "second"), posterior["stick"].parameters.values(), strict=True))
    z = np.stack([active.mean for active in each["active"]], axis=1)
    belief = found.belief._replace(probabilities=z, weights=found.belief.weights._replace(**sticks), own=own)
    field, weights = GaussianField(GIVEN, True), Sticks(law, features)
    bound = Kernel(lambda rows, now: fit.bound_of(rows, now, field, weights))(rows, belief)
    assert bound == pytest.approx(posterior.log_evidence, abs=1e-8)
    after = fit.iteration(field, weights)(
        rows, jax.tree.map(lambda array: np.asarray(array)[None], belief), np.ones(())
    )
    assert np.abs(after.belief.probabilities[0] - z).max() < 1e-5
    assert np.abs(after.belief.weights.first[0] - sticks["first"]).max() < 1e-4
    assert after.bound[0] == pytest.approx(bound, abs=1e-8)
