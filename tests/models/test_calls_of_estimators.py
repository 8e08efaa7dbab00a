"""Calls of estimators that do not fit: each is told as that of any function, and scikit-learn sees no difference."""

import inspect
import pickle

import numpy as np
import pytest
from sklearn.base import clone

import cavity as cv
from cavity import models
from cavity.models import estimators

NAMED = {name: getattr(estimators, name) for name in estimators.__all__}
NAMED |= {
    name: getattr(models, name) for name in ("BinaryFeatures", "DiffusionTree", "GaussianMixture", "NSFA", "Skills")
}
FUNCTIONS = ("factor_analysis", "lars", "lasso", "ridge", "sparse_components")


@pytest.mark.parametrize("name", NAMED)
def test_an_argument_that_there_is_not_is_told(name):
    kind = NAMED[name]
    with pytest.raises(cv.CallError, match=f"^{name}.*there is no nonsense=.*It is called as {name}"):
        kind(nonsense=1)
    with pytest.raises(cv.CallError, match=r"\.fit.*there is no nonsense="):
        kind().fit(nonsense=1)


@pytest.mark.parametrize("name", NAMED)
def test_what_is_not_fitted_says_so(name):
    assert not hasattr(NAMED[name](), "nowhere_")
    with pytest.raises(AttributeError, match=r"found by `(estimator|skills)\.fit"):
        NAMED[name]().nowhere_


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_tables_tell_too(name):
    with pytest.raises(cv.CallError, match="there is no nonsense="):
        getattr(models, name)(np.eye(3), nonsense=1)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: estimators.LogisticRegression(C=1.0), "Here it is prior_variance="),
        (lambda: estimators.SoftmaxRegression(max_iterations=9), "Here it is max_iter="),
        (lambda: models.NSFA(n_components=3), "Here it is n_factors="),
        (lambda: models.GaussianMixture(seed=3), "Here it is random_state="),
        (lambda: models.DiffusionTree(n_iter=3), "Here it is n_sweeps="),
        (lambda: estimators.LogisticRegression().fit(np.eye(2)), "y= must be given"),
    ],
)
def test_what_is_meant_is_named(call, told):
    with pytest.raises(cv.CallError, match=told):
        call()


@pytest.mark.parametrize("name", [name for name in NAMED if name != "Skills"])
def test_arguments_copies_and_pickles_stay(name):
    model = NAMED[name]()
    assert set(model.get_params()) == set(inspect.signature(NAMED[name]).parameters)
    assert clone(model).get_params() == model.get_params()
    assert pickle.loads(pickle.dumps(model)).get_params() == model.get_params()
