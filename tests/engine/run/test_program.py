"""Programs and posteriors: what is compiled and when, reproducibility, missing entries, prediction, and honest ends."""

from __future__ import annotations

import functools
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
import scipy.special
import scipy.stats
from small_models import skills

import cavity as cv
from cavity.engine.infer import programs_of

close = np.testing.assert_allclose
NAN = np.nan


@pytest.fixture(scope="module")
def skill_program():
    return cv.compile(skills(), sizes={"player": 4})


GAMES = {"winner": [0, 1, 2, 0, 3], "loser": [1, 2, 3, 2, 1]}
OTHERS = {"winner": [3, 3, 2, 1, 0], "loser": [1, 2, 0, 0, 2]}


def regression(term=None):
    """y ~ N(w'x, 1 / precision) under VMP; `term` replaces the likelihood."""
    m = cv.Model("regression")
    x = m.input("x", cv.vector(2), plates=m.plate("row"))
    w = m.random("w", cv.vector_gaussian(np.zeros(2), covariance=4.0 * np.eye(2)))
    if term is None:
        precision = m.random("precision", cv.gamma(2.0, 2.0))
        m.random("y", cv.gaussian(cv.dot(w, x), precision=precision))
    else:
        m.random("y", term(cv.dot(w, x)))
    return m


X = np.array([[1.0, 0.2], [1.0, -1.0], [1.0, 2.0], [1.0, 0.5]])
Y = np.array([0.3, -1.2, 2.2, 1.0])


@pytest.fixture(scope="module")
def regression_posterior():
    return cv.infer(regression(), {"x": X, "y": Y}, method="vmp", tolerance=1e-9)


# Compilation ---------------------------------------------------------------------------------------------------------


def test_new_data_of_the_same_shape_compile_nothing(skill_program):
    program = skill_program
    first, second = program(GAMES), program(OTHERS)
    assert program.traces == 1
    assert first["skill"].mean[0] > second["skill"].mean[0]
    longer = {name: [*games, *games, *games, *games] for name, games in GAMES.items()}  # 20 are not padded to 16
    program(longer)
    assert program.traces == 2
    program(GAMES)
    program(longer)
    assert program.traces == 2


def test_infer_keeps_its_program_with_the_model():
    m = cv.Model()
    mean = m.random("mean", cv.gaussian(0.0, variance=1.0))
    m.random("x", cv.gaussian(mean, variance=1.0), plates=m.plate("n"))
    for data in ([1.0, 2.0], [3.0, -1.0]):
        cv.infer(m, {"x": data})
        (program,) = programs_of(m)
        assert program.traces == 1


def test_reading_a_posterior_compiles_no_program(skill_program):
    posterior = skill_program(GAMES)
    before = skill_program.traces
    posterior["margin"].mean, posterior.summary(), posterior.explain(), posterior["skill"].interval()
    assert skill_program.traces == before


# Reproducibility -----------------------------------------------------------------------------------------------------


def bits(posterior, name):
    return posterior[name].mean.tobytes(), posterior[name].variance.tobytes(), posterior.log_evidence


def test_same_seed_same_result(skill_program):
    assert bits(skill_program(GAMES, seed=3), "skill") == bits(skill_program(GAMES, seed=3), "skill")
    fresh = cv.compile(skills(), sizes={"player": 4})(GAMES, seed=3)
    assert bits(fresh, "skill") == bits(skill_program(GAMES, seed=3), "skill")


def test_batch_equals_single_calls(skill_program):
    for one, data in zip(skill_program.batch([GAMES, OTHERS]), (GAMES, OTHERS), strict=True):
        single = skill_program(data)
        assert one.converged
        close(one["skill"].mean, single["skill"].mean, rtol=1e-5, atol=1e-6)
        close(one["skill"].variance, single["skill"].variance, rtol=1e-5)
        close(one["margin"].mean, single["margin"].mean, rtol=1e-5, atol=1e-6)
        close(one.log_evidence, single.log_evidence, rtol=1e-7)


def test_batch_refuses_other_shapes_and_nothing(skill_program):
    with pytest.raises(cv.DataError, match=r"Data set 1 has plate sizes .* call batch for each group"):
        skill_program.batch([GAMES, {"winner": [0], "loser": [1]}])
    with pytest.raises(cv.DataError, match="at least one"):
        skill_program.batch([])


# Numbers -------------------------------------------------------------------------------------------------------------


def test_results_are_numpy_float64_outside_the_x64_context(regression_posterior):
    w = regression_posterior["w"]
    arrays = [
        w.mean,
        w.variance,
        w.sd,
        w.covariance,
        w.quantile(0.3),
        *w.interval(),
        w.sample(0),
        w.log_density(np.zeros(2)),
    ]
    arrays += [
        *w.parameters.values(),
        *regression_posterior.trace,
        regression_posterior.restarts.by_start,
        np.asarray(w),
    ]
    for array in arrays:
        assert type(array) is np.ndarray or isinstance(array, np.float64)
        assert array.dtype == np.float64
    assert type(regression_posterior.log_evidence) is float
    assert regression_posterior["precision"].mean.dtype == np.float64


def test_global_configuration_is_untouched():
    code = (
        "import jax; before = dict(jax.config.values); import cavity as cv\n"
        "assert dict(jax.config.values) == before\n"
        "m = cv.Model(); x = m.random('x', cv.gaussian(0.0, variance=1.0))\n"
        "m.random('y', cv.gaussian(x, variance=1.0))\n"
        "p = cv.infer(m, {'y': 1.0}); p['x'].mean, p.summary()\n"
        "assert dict(jax.config.values) == before and not jax.config.jax_enable_x64\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


# Missing entries -----------------------------------------------------------------------------------------------------

MISSING = np.array([0.3, NAN, 2.2, NAN])


@pytest.fixture(scope="module")
def missing_posteriors():
    """NaN, a masked array, and the rows dropped: under VMP, and under EP with a known precision."""

    def known(expression):
        return cv.gaussian(expression, variance=0.5)

    given = {"nan": MISSING, "masked": np.ma.masked_invalid(MISSING)}
    found = {}
    for name, model in (("vmp", regression()), ("ep", regression(known))):
        found[name] = {key: cv.infer(model, {"x": X, "y": y}, method=name, tolerance=1e-9) for key, y in given.items()}
        kept = ~np.isnan(MISSING)
        found[name]["dropped"] = cv.infer(model, {"x": X[kept], "y": MISSING[kept]}, method=name, tolerance=1e-9)
    return found


@pytest.mark.parametrize("method", ["vmp", "ep"])
@pytest.mark.parametrize("form", ["nan", "masked"])
def test_missing_entries_equal_dropping_them(missing_posteriors, method, form):
    one, dropped = missing_posteriors[method][form], missing_posteriors[method]["dropped"]
    assert one.converged
    close(one["w"].mean, dropped["w"].mean, rtol=1e-7)
    close(one["w"].covariance, dropped["w"].covariance, rtol=1e-7)
    close(one.log_evidence, dropped.log_evidence, rtol=1e-9)


@pytest.mark.parametrize("method", ["vmp", "ep"])
def test_missing_entries_are_predicted(missing_posteriors, method):
    posterior, missing = missing_posteriors[method]["nan"], np.isnan(MISSING)
    y, w = posterior["y"], posterior["w"]
    close(y.mean[missing], (X @ w.mean)[missing], rtol=1e-9)
    close(y.mean[~missing], MISSING[~missing], rtol=1e-12)
    if method == "ep":
        signal = np.einsum("ni,ij,nj->n", X, w.covariance, X)
        close(y.variance[missing], (signal + 0.5)[missing], rtol=1e-9)


# Forward marginals and prediction ------------------------------------------------------------------------------------


def test_forward_marginals():
    """Variables below which nothing is observed; and the prior of a model without data."""
    m = cv.Model()
    x = m.random("x", cv.gaussian(1.0, variance=2.0))
    m.random("y", cv.gaussian(x, variance=1.0))
    z = m.random("z", cv.gaussian(2.0 * x + 1.0, variance=0.5))
    m.let("above", z > 0)
    m.random("label", cv.bernoulli(cv.probit(x)))
    prior = cv.infer(m, {})
    close([prior["x"].mean, prior["x"].variance], [1.0, 2.0], rtol=1e-12)
    close([prior["z"].mean, prior["z"].variance], [3.0, 8.5], rtol=1e-12)
    close(prior["above"].mean, scipy.stats.norm.cdf(3 / np.sqrt(8.5)), rtol=1e-10)
    close(prior["label"].mean, scipy.stats.norm.cdf(1 / np.sqrt(3.0)), rtol=1e-10)
    close(prior.log_evidence, 0.0, atol=1e-12)
    posterior = cv.infer(m, {"y": 4.0})
    close([posterior["x"].mean, posterior["x"].variance], [3.0, 2 / 3], rtol=1e-9)
    close([posterior["z"].mean, posterior["z"].variance], [7.0, 8 / 3 + 0.5], rtol=1e-9)


NEW = np.array([[1.0, 0.0], [1.0, -3.0], [1.0, 2.0]])


def linear_predictor(w):
    """Mean and variance of w'x for the new rows."""
    return NEW @ w.mean, np.einsum("ni,ij,nj->n", NEW, w.covariance, NEW)


def average(function, mean, variance):
    def one(m, v):
        density = scipy.stats.norm(m, np.sqrt(v)).pdf
        ends = (m - 12 * np.sqrt(v), m + 12 * np.sqrt(v))
        return scipy.integrate.quad(lambda s: function(s) * density(s), *ends, epsabs=1e-12)[0]

    return [one(m, v) for m, v in zip(mean, variance, strict=True)]


@functools.cache
def binary_posterior(link):
    return cv.infer(regression(lambda s: cv.bernoulli(link(s))), {"x": X, "y": Y > 0})


@pytest.mark.parametrize(("link", "value"), [(cv.logistic, scipy.special.expit), (cv.probit, scipy.special.ndtr)])
def test_predictions_of_binary_regression_average_the_link(link, value):
    posterior = binary_posterior(link)
    prediction = posterior.predict({"x": NEW})
    close(prediction["y"].mean, average(value, *linear_predictor(posterior["w"])), rtol=1e-7)
    assert set(prediction) == {"y"}


def test_predictions_of_gaussian_regression(regression_posterior):
    mean, variance = linear_predictor(regression_posterior["w"])
    prediction = regression_posterior.predict({"x": NEW})["y"]
    gamma = regression_posterior["precision"].parameters
    close(prediction.mean, mean, rtol=1e-10)
    close(prediction.variance, variance + gamma["rate"] / (gamma["shape"] - 1), rtol=1e-9)


def test_predictions_of_softmax_regression():
    m = cv.Model()
    row, cls = m.plate("row"), m.plate("class", 3)
    x = m.input("x", cv.vector(2), plates=row)
    w = m.random("w", cv.vector_gaussian(np.zeros(2), covariance=np.eye(2)), plates=cls)
    m.random("y", cv.categorical(cv.softmax(cv.dot(w, x), over=cls)), plates=row)
    posterior = cv.infer(m, {"x": X, "y": [0, 1, 2, 2]})
    found = posterior.predict({"x": NEW})["y"]
    assert found.shape == (3, 3)
    close(found.mean.sum(-1), 1.0, rtol=1e-9)
    joint = posterior.families["joint of w"]  # of all classes: scores are correlated
    with jax.enable_x64(True):
        mean, covariance = np.asarray(joint.mean()), np.asarray(joint.covariance())
    draws = np.random.default_rng(0).multivariate_normal(mean, covariance, 100_000).reshape(-1, 3, 2)
    expected = scipy.special.softmax(np.einsum("nd,skd->nsk", NEW, draws), axis=-1)
    assert np.all(np.abs(found.mean - expected.mean(1)) < 5 * expected.std(1) / np.sqrt(100_000))


def test_predict_for_new_games(skill_program):
    posterior = skill_program(GAMES)
    prediction = posterior.predict({"winner": [0, 3], "loser": [3, 0]})
    mean = posterior["skill"].mean
    with jax.enable_x64(True):
        covariance = np.asarray(posterior.families["joint of skill"].covariance())
    apart = covariance[0, 0] + covariance[3, 3] - 2.0 * covariance[0, 3]
    close(prediction["margin"].mean, [mean[0] - mean[3], mean[3] - mean[0]], rtol=1e-9)
    close(prediction["margin"].variance, [apart + 1.0] * 2, rtol=1e-9)


def test_predict_names_what_is_wrong(regression_posterior):
    with pytest.raises(cv.DataError, match="takes inputs; 'y' is a variable"):
        regression_posterior.predict({"y": [1.0]})


# The posterior -------------------------------------------------------------------------------------------------------


def test_marginals_speak_scipy(regression_posterior):
    gamma = regression_posterior["precision"]
    reference = scipy.stats.gamma(gamma.parameters["shape"], scale=1 / gamma.parameters["rate"])
    close([gamma.mean, gamma.variance, gamma.sd], [reference.mean(), reference.var(), reference.std()], rtol=1e-9)
    close(gamma.quantile([0.1, 0.9]), reference.ppf([0.1, 0.9]), rtol=1e-9)
    close(gamma.interval(0.8), reference.interval(0.8), rtol=1e-9)
    close(gamma.log_density(1.3), reference.logpdf(1.3), rtol=1e-9)
    w = regression_posterior["w"]
    reference = scipy.stats.multivariate_normal(w.mean, w.covariance)
    close(w.log_density([0.1, 0.2]), reference.logpdf([0.1, 0.2]), rtol=1e-9)
    close(w.quantile(0.25), scipy.stats.norm(w.mean, w.sd).ppf(0.25), rtol=1e-9)
    draws = w.sample(jax.random.key(1), (4000,))
    assert draws.shape == (4000, 2)
    assert np.all(np.abs(draws.mean(0) - w.mean) < 5 * w.sd / np.sqrt(4000))
    assert np.array_equal(w.sample(5, (3,)), w.sample(5, (3,)))
    assert w.shape == (2,)
    assert w[1] == w.mean[1]
    with pytest.raises(ValueError, match="between 0 and 1"):
        w.interval(1.5)


def test_posterior_tells_how_it_went(regression_posterior):
    posterior = regression_posterior
    assert posterior.converged
    assert posterior.code == "converged"
    assert "Converged in" in posterior.diagnosis
    assert len(posterior.trace.evidence) == len(posterior.trace.residual) == posterior.iterations
    # VMP never loses evidence, but for extrapolations that are then dropped (NaN where one left the domain).
    assert np.nanmax(posterior.trace.evidence) <= posterior.log_evidence + 1e-9
    close(posterior.trace.evidence[-1], posterior.log_evidence, rtol=1e-9)
    close(sum(posterior.evidence.values()), posterior.log_evidence, rtol=1e-12)
    assert posterior.restarts.by_start.shape == (1,)
    assert list(posterior) == ["w", "precision", "y"]
    assert np.array_equal(posterior["y"].mean, Y)
    for text in ("w", "VectorGaussian", "precision", "Gamma", "log evidence", "Converged"):
        assert text in posterior.summary()
    for text in ("because", "log evidence", "schedule of a sweep", "Converged"):
        assert text in posterior.explain()
    with pytest.raises(KeyError, match=r"no variable 'v'\. It has: w, precision, y"):
        posterior["v"]


def test_restarts_keep_the_best_evidence():
    m = cv.Model("mixture")
    k, n = m.plate("k", 2), m.plate("n")
    mean = m.random("mean", cv.gaussian(0.0, variance=25.0), plates=k)
    z = m.random("z", cv.categorical([0.5, 0.5]), plates=n)
    m.random("x", cv.gaussian(mean[z], variance=0.25))
    data = np.array([-3.1, -2.9, -3.3, 2.8, 3.2, 3.0])
    posterior = cv.infer(m, {"x": data}, restarts=3, seed=1)
    evidence = posterior.restarts.by_start
    assert evidence.shape == (3,)
    close(posterior.log_evidence, evidence.max(), rtol=1e-12)
    close(np.sort(posterior["mean"].mean), [-3.1, 3.0], atol=0.1)
    assert len(np.unique(evidence)) > 1 or np.ptp(evidence) < 1e-6
    z = posterior["z"].mean
    assert np.all((z[:3] > 0.99) == (z[0] > 0.99))
    assert np.all((z[3:] > 0.99) == (z[3] > 0.99))
    assert z[0].argmax() != z[3].argmax()


# Honest ends ---------------------------------------------------------------------------------------------------------


def test_stopping_early_is_reported():
    program = cv.compile(skills(), sizes={"player": 4}, max_iterations=2, tolerance=1e-12)
    with pytest.warns(cv.CavityWarning, match="Stopped after 2 sweeps"):
        posterior = program(GAMES)
    assert not posterior.converged
    assert posterior.code == "slow"
    assert posterior.iterations == 2
    assert "Stopped after 2 sweeps" in posterior.diagnosis
    assert "max_iterations=" in posterior.diagnosis
    assert np.all(np.isfinite(posterior["skill"].mean))
    assert np.isfinite(posterior.log_evidence)


@pytest.mark.filterwarnings("ignore::cavity.CavityWarning")
@pytest.mark.parametrize("method", ["vmp", "ep"])
def test_impossible_scales_never_give_silent_nan(method):
    """Data 150 prior standard deviations away: finite beliefs, or an honest code."""
    if method == "vmp":
        posterior = cv.infer(regression(), {"x": 1e3 * X, "y": 1e6 * Y}, method="vmp", max_iterations=60)
    else:
        posterior = cv.infer(
            regression(lambda s: cv.bernoulli(cv.logistic(s))),
            {"x": 1e3 * X, "y": Y > 0},
            method="ep",
            max_iterations=60,
        )
    assert np.all(np.isfinite(posterior["w"].mean))
    assert np.all(posterior["w"].variance > 0)
    assert posterior.converged or len(posterior.diagnosis) > 60


def failing(reason):
    return pytest.mark.xfail(strict=True, reason=reason)


@pytest.mark.parametrize(
    "method",
    [
        {"y": cv.ncvmp(bound="tilted")},
        pytest.param({"y": cv.ncvmp(bound="quadrature")}, marks=pytest.mark.slow),
        pytest.param({"y": cv.ncvmp(bound="jaakkola")}, marks=pytest.mark.slow),
        "ep",
    ],
)
def test_rows_of_zeros(method):
    """The score of such a row is zero without doubt: the row says nothing and costs log 2."""
    zero = np.zeros((1, 2))
    model = regression(lambda s: cv.bernoulli(cv.logistic(s)))
    posterior = cv.infer(model, {"x": np.concatenate([X, zero]), "y": [*(Y > 0), True]}, method=method)
    without = cv.infer(model, {"x": X, "y": Y > 0}, method=method)
    assert posterior.converged
    close(posterior["w"].mean, without["w"].mean, rtol=1e-4, atol=1e-6)
    close(posterior.log_evidence, without.log_evidence - np.log(2), rtol=1e-6)


def test_prediction_for_a_row_of_zeros():
    close(binary_posterior(cv.logistic).predict({"x": np.zeros((1, 2))})["y"].mean, 0.5, rtol=1e-9)


def test_softmax_under_a_vague_prior():
    m = cv.Model()
    row, cls = m.plate("row"), m.plate("class", 3)
    x = m.input("x", cv.real, plates=row)
    w = m.random("w", cv.gaussian(0.0, variance=1e4), plates=cls)
    m.random("y", cv.categorical(cv.softmax(w * x, over=cls)))
    posterior = cv.infer(m, {"x": [1.0, 2.0, -6.0, 1.0], "y": [0, 1, 2, 1]})
    assert np.isfinite(posterior.log_evidence)
    assert posterior.converged


def test_arrays_that_jax_has_read_in_32_bits_are_read_in_64():
    """JAX keeps what it made of a NumPy array that a closed function holds, by the identity of the array."""

    def answers(x, y, mean):
        m = cv.Model()
        inputs = m.input("x", cv.vector(2), plates=m.plate("row"))
        w = m.random("w", cv.vector_gaussian(mean, covariance=np.eye(2)))
        m.random("y", cv.gaussian(cv.dot(w, inputs), variance=1.0))
        posterior = cv.infer(m, {"x": x, "y": y})
        prediction = posterior.predict({"x": x})["y"]
        return posterior["w"].mean, posterior.log_evidence, prediction.mean, prediction.log_density(y)

    arrays = X / 3.0, Y / 3.0, X[0] / 3.0
    jax.closure_convert(lambda s: sum(jnp.sum(s * array) for array in arrays), jnp.ones(()))
    for found, fresh in zip(answers(*arrays), answers(*map(np.copy, arrays)), strict=True):
        close(found, fresh, rtol=1e-12)


def test_contradictory_constraints_are_reported():
    """x > 1 and x < -1: no distribution; the run must not say that all is well with NaN in it."""
    m = cv.Model()
    x = m.random("x", cv.gaussian(0.0, variance=1.0))
    m.constrain(x > 1)
    m.constrain(x < -1)
    with pytest.warns(cv.CavityWarning):
        posterior = cv.infer(m, {}, max_iterations=100)
    assert np.all(np.isfinite(posterior["x"].mean))
    assert not posterior.converged


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"max_iterations": 0}, "max_iterations= must be a whole number of at least 1"),
        ({"restarts": 0}, "restarts= must be"),
        ({"tolerance": 0.0}, "tolerance= is in posterior standard deviations"),
        ({"acceleration": -1}, "acceleration= must be"),
    ],
)
def test_options_out_of_range(option, message):
    with pytest.raises(cv.ModelError, match=message):
        cv.infer(regression(), {"x": X, "y": Y}, **option)


def test_unknown_observed_name():
    with pytest.raises(cv.DataError, match=r"names 'z', which the model does not have. It has: x, w, precision, y"):
        cv.compile(regression(), ["z"])


def test_program_names_what_is_lacking():
    program = cv.compile(regression(), ["y"])
    with pytest.raises(cv.DataError, match=r"compiled for observations of y; the data lack y.*compile it again"):
        program({"x": X})
