"""Estimators: scikit-learn's own checks, and that they say what their models say."""

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse
from scipy.integrate import quad
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

import cavity as cv
from cavity import models
from cavity.engine.support.compiled import KEPT
from cavity.engine.values.sparse_rows import Pages
from cavity.models import estimators, fitting

from .scikit_checks import checks

pytestmark = pytest.mark.filterwarnings("ignore:y has values that are no counts")  # scikit-learn's checks have them

ALL = [param for name in estimators.__all__ for param in checks(getattr(estimators, name)(), f"{name}-")]


@pytest.mark.parametrize(("estimator", "check"), ALL)
def test_scikit_learn_accepts(estimator, check):
    check(estimator)


def clusters(seed=0, rows=60):
    rng = np.random.default_rng(seed)
    y = np.arange(rows) % 3
    return np.array([[-2.0, 5.0], [2.0, 5.0], [0.0, 30.0]])[y] + rng.normal(size=(rows, 2)) * [1.0, 8.0], y


@pytest.mark.slow
def test_a_classifier_says_what_its_model_says():
    x, y = clusters()
    labels = np.array(["pear", "apple", "fig"])[y]
    found = estimators.SoftmaxRegression(tolerance=1e-6).fit(x, labels)
    assert found.classes_.tolist() == ["apple", "fig", "pear"]
    place = np.searchsorted(found.classes_, labels)
    mean, sd = x.mean(0), x.std(0)
    model = models.softmax_regression(2, 3, "shared", 10.0)
    posterior = cv.infer(model, {"x": (x - mean) / sd, "y": place}, accuracy="fast")
    assert found.log_evidence_ == pytest.approx(posterior.log_evidence, abs=1e-6)
    new = clusters(1, 12)[0]
    expected = posterior.predict({"x": (new - mean) / sd})["y"].mean
    assert found.predict_proba(new) == pytest.approx(expected, abs=1e-6)
    assert found.predict(new).tolist() == found.classes_[expected.argmax(1)].tolist()
    score = new @ found.coef_.T + found.intercept_
    assert score == pytest.approx((new - mean) / sd @ posterior["weight"].mean.T + posterior["bias"].mean, abs=1e-5)
    assert found.score(x, labels) > 0.85


LINEAR = sorted(set(estimators.__all__) - {"HeteroskedasticGP", "GammaEstimation"})


def sparse_data(name):
    """Features of which most are zero, one column without entries, and outcomes for an estimator."""
    rng = np.random.default_rng(0)
    x = np.where(rng.random((60, 3)) < 0.4, rng.gamma(2.0, [0.8, 0.8, 0.0], size=(60, 3)), 0.0)
    score = x @ [1.0, -1.0, 0.0] + rng.normal(size=60)
    if name == "HeteroskedasticRegression":
        return x, score
    return x, np.digitize(score, [0.0] if name in ("LogisticRegression", "ProbitRegression") else [-0.5, 0.5])


def test_two_classes_keep_their_names():
    x, y = clusters()
    x, y = x[y < 2], np.array(["pear", "apple"])[y[y < 2]]
    found = estimators.LogisticRegression().fit(x, y)
    assert found.classes_.tolist() == ["apple", "pear"]
    probability = found.predict_proba(x)
    assert probability.sum(1) == pytest.approx(np.ones(len(y)))
    assert found.predict(x).tolist() == np.where(probability[:, 1] > 0.5, "pear", "apple").tolist()
    assert found.score(x, y) > 0.85
    model = models.logistic_regression(2, "shared", 10.0)
    posterior = cv.infer(model, {"x": (x - x.mean(0)) / x.std(0), "y": y == "pear"}, accuracy="fast")
    assert found.log_evidence_ == pytest.approx(posterior.log_evidence, abs=1e-6)
    assert found.coef_[0] == pytest.approx(posterior["weight"].mean / x.std(0), rel=1e-4)


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.slow) for name in LINEAR])
def test_sparse_features_give_what_dense_ones_give(name):
    x, y = sparse_data(name)
    dense = getattr(estimators, name)(standardize=False, tolerance=1e-8).fit(x, y)
    found = clone(dense).fit(scipy.sparse.csr_array(x), y)
    assert isinstance(found.posterior_.arrays["x"], Pages)
    assert found.coef_ == pytest.approx(dense.coef_, rel=1e-5, abs=1e-8)
    assert found.log_evidence_ == pytest.approx(dense.log_evidence_, abs=1e-6)
    how = "predict_proba" if hasattr(found, "predict_proba") else "predict"
    assert getattr(found, how)(scipy.sparse.csc_matrix(x)) == pytest.approx(getattr(dense, how)(x), rel=1e-5)


def test_sparse_features_are_scaled_and_not_centred():
    x, y = sparse_data("LogisticRegression")
    x[:, 1] *= 10.0
    found = estimators.LogisticRegression().fit(scipy.sparse.csr_array(x), y)
    scale = np.array([*np.sqrt(np.mean(x[:, :2] ** 2, axis=0)), 1.0])
    dense = estimators.LogisticRegression(standardize=False).fit(x / scale, y)
    assert found.coef_ == pytest.approx(dense.coef_ / scale, rel=1e-5, abs=1e-8)
    assert found.intercept_ == pytest.approx(dense.intercept_, rel=1e-5)
    assert found.predict_proba(x) == pytest.approx(dense.predict_proba(x / scale), rel=1e-5)
    centred = clone(found).fit(x, y)  # reads new sparse features as well
    assert centred.predict_proba(scipy.sparse.csr_array(x)) == pytest.approx(centred.predict_proba(x))


def test_similar_sizes_share_one_program():
    fitting.program.cache_clear()
    x, y = clusters(0, 60)
    x, y = x[y < 2], y[y < 2] == 1  # 40 rows; folds of 30, which are padded to 32
    found = estimators.LogisticRegression(prior_variance=2.0)
    scores = cross_val_score(found, x, y, cv=4)
    assert scores.mean() > 0.85
    for rows in (29, 31, 32):
        found.fit(x[:rows], y[:rows])
    assert found.coef_.shape == (1, 2)
    assert found.intercept_.shape == (1,)
    program = fitting.program(found._made_by, ("y",), found.tolerance, found.max_iter)
    assert fitting.program.cache_info().misses == 1
    assert program.traces == 1
    found.fit(x[:33], y[:33])
    assert program.traces == 2
    assert found.predict_proba(x[:10]).shape == (10, 2)
    kept, predictors = len(KEPT), len(program.predictors)
    for rows in (3, 15, 16):
        assert found.predict_proba(x[:rows]).shape == (rows, 2)
    assert len(program.predictors) == predictors
    assert len(KEPT) == kept  # one forward pass for all of them


def test_a_fit_of_small_data_is_run_by_numpy():
    """A fold of the irises: a first fit takes no machine code."""
    x, y = clusters(0, 120)
    found = estimators.SoftmaxRegression().fit(x, y)
    assert found.posterior_.timing.interpreted
    assert found.predict_proba(x[:30]).sum(1) == pytest.approx(np.ones(30))


@pytest.mark.parametrize("sparse", [False, True])
def test_a_fit_has_the_rows_of_the_data_unless_the_engine_cannot_pad_them(sparse):
    """Sparse features, and rows with a belief each, are padded by hand."""
    x, y = sparse_data("LogisticRegression")
    found = estimators.LogisticRegression(standardize=False).fit(scipy.sparse.csr_array(x) if sparse else x, y)
    assert (found.posterior_.machine.larger is None) == sparse
    assert found.posterior_.binding.sizes["row"] == (64 if sparse else 60)
    assert ("y" in found.posterior_.binding.missing) == sparse
    model = models.logistic_regression(3, "shared", 10.0)
    posterior = cv.infer(model, {"x": x, "y": y == 1}, accuracy="fast")
    assert found.log_evidence_ == pytest.approx(posterior.log_evidence, rel=1e-9)


def noisy_features(seed=0, rows=80, features=12):
    """One feature of twelve tells the classes apart."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, features))
    return x, x[:, 0] + rng.logistic(size=rows) > 0.0


def log_loss(found, x, y):
    return -np.mean(np.log(found.predict_proba(x)[np.arange(len(y)), y.astype(int)]))


def test_the_prior_variance_is_learned_unless_it_is_given():
    """Against the fixed point of its belief, and on rows that were held out."""
    x, y = noisy_features()
    learned = estimators.LogisticRegression(standardize=False).fit(x, y)
    weight, precision = learned.posterior_["weight"], learned.posterior_["precision"]
    square = weight.mean @ weight.mean + np.trace(weight.covariance)
    assert precision.mean == pytest.approx((1.0 + 12 / 2) / (0.1 + square / 2), rel=1e-3)
    assert precision.mean > 3.0
    new, outcome = noisy_features(1, 2000)
    wide = estimators.LogisticRegression(10.0, standardize=False).fit(x, y)
    assert "precision" not in wide.posterior_
    assert log_loss(learned, new, outcome) < log_loss(wide, new, outcome) - 0.03
    same = estimators.LogisticRegression(1.0 / precision.mean, standardize=False).fit(x, y)
    assert same.coef_ == pytest.approx(learned.coef_, rel=1e-3)  # a learned scale is used as one that is given


@pytest.mark.parametrize("name", ["ProbitRegression", "PoissonRegression", "HeteroskedasticRegression"])
def test_every_linear_score_learns_its_scale(name):
    x, y = noisy_features(0, 60, 4)
    found = getattr(estimators, name)().fit(x, y.astype(float))
    learned = [scale for scale in found.posterior_ if scale.endswith("precision") and scale != "log_precision"]
    assert learned == (["weight_precision", "precision_weight_precision"] if name[0] == "H" else ["precision"])
    assert found.converged_


def test_ordered_classes_find_their_cutpoints():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(250, 2)) * [1.0, 10.0] + 3.0
    score = x @ [1.0, -0.05]
    cutpoints = np.array([1.5, 2.8, 4.0])
    y = np.array([10, 20, 30, 40])[(score[:, None] + rng.normal(size=(250, 1)) > cutpoints).sum(1)]
    found = estimators.OrdinalRegression().fit(x, y)
    assert found.coef_ == pytest.approx([1.0, -0.05], rel=0.3)
    assert found.cutpoints_ == pytest.approx(cutpoints, abs=0.6)
    assert np.all(np.diff(found.cutpoints_) > 0)
    assert found.predict_proba(x).sum(1) == pytest.approx(np.ones(250))
    assert set(found.predict(x)) <= {10, 20, 30, 40}


def test_counts_have_wider_predictions_than_their_rate():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(120, 2))
    y = rng.poisson(np.exp(x @ [0.5, -0.3] + 1.0))
    found = estimators.PoissonRegression().fit(x, y)
    assert found.coef_ == pytest.approx([0.5, -0.3], abs=0.15)
    mean, sd = found.predict(x, return_std=True)
    assert np.all(sd**2 > mean)
    assert np.mean(((y - mean) / sd) ** 2) == pytest.approx(1.0, abs=0.3)
    with pytest.raises(ValueError, match="negative value -1"):
        clone(found).fit(x, y - y.min() - 1)


def test_the_noise_of_heteroskedastic_regression_depends_on_the_features():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 1))
    sd = 5.0 * np.exp(0.6 * x[:, 0])
    y = 100.0 + 10.0 * x[:, 0] + sd * rng.normal(size=300)
    found = estimators.HeteroskedasticRegression().fit(x, y)
    assert found.coef_ == pytest.approx([10.0], abs=1.5)
    assert found.intercept_ == pytest.approx(100.0, abs=1.5)
    assert found.precision_coef_ == pytest.approx([-1.2], abs=0.3)
    assert found.precision_intercept_ == pytest.approx(-2.0 * np.log(5.0), abs=0.4)
    mean, spread = found.predict(x, return_std=True)
    assert spread == pytest.approx(sd, rel=0.5)
    assert np.mean(((y - mean) / spread) ** 2) == pytest.approx(1.0, abs=0.2)


@pytest.mark.slow
def test_a_heteroskedastic_process_follows_mean_and_noise():
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(-3, 3, size=(90, 1)), axis=0)
    sd = np.where(x[:, 0] < 0, 0.1, 1.0)
    y = 20.0 + 3.0 * np.sin(2.0 * x[:, 0]) + sd * rng.normal(size=90)
    found = estimators.HeteroskedasticGP().fit(x, y)
    mean, spread = found.predict([[-1.5], [1.5]], return_std=True)
    assert mean == pytest.approx(20.0 + 3.0 * np.sin([-3.0, 3.0]), abs=1.0)
    assert spread[0] < 0.4
    assert 0.6 < spread[1] < 1.7
    assert set(found.hyperparameters_) == {"scale", "variance", "noise_scale", "noise_variance"}


def test_gamma_densities_integrate_to_one_and_keep_units():
    rng = np.random.default_rng(0)
    x = rng.gamma(3.0, 20.0, size=(40, 1))
    found = estimators.GammaEstimation().fit(x)
    mass = quad(lambda v: np.exp(found.score_samples([[v]])[0]), 0.0, 2000.0, limit=200)[0]
    assert mass == pytest.approx(1.0, abs=1e-6)
    assert found.shape_ == pytest.approx([3.0], abs=1.3)
    assert found.shape_ / found.rate_ == pytest.approx(x.mean(0), rel=0.1)
    millimetres = clone(found).fit(1000.0 * x)
    assert millimetres.rate_ == pytest.approx(found.rate_ / 1000.0, rel=1e-9)
    assert millimetres.score_samples(1000.0 * x) + np.log(1000.0) == pytest.approx(found.score_samples(x), abs=1e-9)
    assert millimetres.log_evidence_ == pytest.approx(found.log_evidence_ - 40 * np.log(1000.0), abs=1e-6)
    assert found.score(x) > found.score(x + 200.0)


def test_two_classes_at_least_and_no_more_than_the_model_has():
    x, y = clusters()
    with pytest.raises(ValueError, match="a single class, 0"):
        estimators.SoftmaxRegression().fit(x, 0 * y)
    with pytest.raises(ValueError, match="SoftmaxRegression and MultinomialProbit take more"):
        estimators.ProbitRegression().fit(x, y)


def test_without_scikit_learn_the_models_work_and_the_estimators_say_what_is_missing():
    program = (
        "import sys; sys.modules['sklearn'] = None\n"
        "import cavity.models\n"
        "try:\n    import cavity.models.estimators\n"
        "except ImportError as problem:\n    print(problem)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "pip install 'cavity[sklearn]'" in done.stdout
