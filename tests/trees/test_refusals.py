"""What searches, chains and the estimator refuse before they start, and what they take to the letter."""

import importlib.util

import jax
import numpy as np
import pytest

from cavity import DataError, ModelError
from cavity.models.trees.chains.settings import Settings
from cavity.models.trees.divergence import Divergence
from cavity.models.trees.likelihoods.leaves import to_leaves
from cavity.models.trees.likelihoods.sites import fit_sites
from cavity.models.trees.likelihoods.table import Data
from cavity.models.trees.likelihoods.times import optimise_times
from cavity.models.trees.mcmc import sample_posterior
from cavity.models.trees.prior import TreePrior, tables
from cavity.models.trees.search import search_trees
from cavity.models.trees.shapes.arrays import pack
from cavity.models.trees.shapes.sample import sample_tree

BACKEND = "numba" if importlib.util.find_spec("numba") else "jax"
ROWS = np.random.default_rng(0).normal(size=(8, 3))
ANSWERS = Data((ROWS > 0.0) * 1.0, binary=True)


def search(data=ROWS, prior=None, **settings):
    return search_trees(data, prior, **({"key": jax.random.key(0), "steps": 20, "backend": BACKEND} | settings))


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"names": ("a", "b")}, DataError, "each of the 8 rows; found 2"),
        ({"variance": [1.0, 2.0]}, DataError, "each of the 3 columns"),
        ({"variance": "columns"}, DataError, "found 'columns'"),
        ({"noise": "learn"}, DataError, "found 'learn'"),
        ({"noise": [0.1, 0.1, 0.1]}, DataError, "one variance"),
        ({"prior": Divergence()}, ModelError, "is a TreePrior"),
        ({"data": ANSWERS, "noise": 0.1}, ModelError, "all columns are binary"),
        ({"prior": TreePrior(divergence=Divergence(1.0, 1.0)), "learn": {"rate"}}, ModelError, "fix the other terms"),
        ({"prior": TreePrior(-0.6, 0.4), "learn": {"discount"}}, ModelError, "not every discount allows"),
    ],
)
def test_a_search_refuses(settings, error, message, monkeypatch):
    monkeypatch.setattr("cavity.models.trees.search.first_state", None)  # nothing is built before
    with pytest.raises(error, match=message):
        search(**settings)


def test_a_search_takes_its_steps_in_equal_parts():
    trace = search(steps=90, restarts=3).steps
    assert trace[-1] == 90
    assert {30, 60} <= set(trace.tolist())


def test_what_is_learned_may_start_at_zero(recwarn):
    found = search(prior=TreePrior(1.0, 0.0), learn={"concentration", "discount"})
    assert np.isfinite([each.log_joint for each in found.trees]).all()
    assert np.isfinite(found.log_joint).all()
    assert not recwarn


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"prior": "Dirichlet"}, "is a TreePrior"),
        ({"learn": {"discount"}, "prior": TreePrior(-0.2, 0.3)}, "not every discount allows"),
        ({"variance": [1.0, 2.0]}, "starts from a positive number"),
        ({"noise": np.inf}, "noise is at least 0"),
        ({"shared_rate": (0.0, 1.0)}, "two positive numbers"),
    ],
)
def test_settings_refuse(settings, message):
    with pytest.raises(ModelError, match=message):
        Settings(**settings)


def test_chains_take_tables_and_refuse_twins():
    key = jax.random.key(0)
    assert Settings(learn="variance").learn == {"variance"}
    assert sample_posterior(ROWS, key, 2, chains=1, backend=BACKEND).tree(0, 1).n_leaves == 8
    with pytest.raises(DataError, match="Rows 0 and 8 are equal"):
        sample_posterior(np.vstack([ROWS, ROWS]), key, 2, backend=BACKEND)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_clusters": 9}, "n_clusters= .* 8; found 9"),
        ({"n_clusters": 2.5}, "found 2.5"),
        ({"n_steps": "many"}, "found 'many'"),
        ({"restarts": 1.5}, "found 1.5"),
        ({"max_seconds": float("nan")}, "max_seconds= is a positive"),
        ({"noise": None}, "number or 'learn'; found None"),
        ({"variance": [1.0, 2.0]}, "each of the 3 columns"),
        ({"inference": "mcmc", "n_sweeps": 10}, "Take n_sweeps=20 or more"),
    ],
)
def test_the_estimator_refuses(settings, message):
    pytest.importorskip("sklearn")
    from cavity.models import DiffusionTree

    with pytest.raises(ValueError, match=message):
        DiffusionTree(backend=BACKEND, **settings).fit(ROWS)


def test_the_estimator_speaks_of_the_data_as_given_and_of_one_cut():
    pytest.importorskip("sklearn")
    from cavity.models import DiffusionTree

    constant = ROWS.copy()
    constant[:, 1] = 3.0
    with pytest.raises(DataError, match="column 1 are 3"):
        DiffusionTree(backend=BACKEND).fit(constant)
    found = DiffusionTree(backend=BACKEND, n_steps=20, random_state=0).fit(ROWS)
    with pytest.raises(DataError, match="one of the two"):
        found.labels(time=0.5, n_clusters=2)
    with pytest.raises(DataError, match="asked: 0"):
        found.labels(n_clusters=0)


def test_the_best_draw_is_the_one_of_largest_mass():
    """Draws of a Pitman-Yor tree differ in their number of depths, so that their densities do not compare."""
    pytest.importorskip("sklearn")
    from cavity.models import DiffusionTree

    model = DiffusionTree(1.0, 0.2, inference="mcmc", n_trees=10, n_sweeps=40, backend=BACKEND, random_state=1)
    found = model.fit(ROWS)
    best = next(k for k, tree in enumerate(found.trees_) if tree is found.tree_)
    assert found.log_joint_ == found.chains_.chains["log_joint"][0, best]
    assert len({tree.n_nodes for tree in found.trees_}) > 1


def test_trees_leaves_and_tables_of_one_size():
    arrays, prior = pack(sample_tree(TreePrior(), 6, jax.random.key(0))), TreePrior()
    leaves, answers = to_leaves(Data(ROWS))[0], to_leaves(ANSWERS)[0]
    with pytest.raises(DataError, match="6 leaves, and 8 rows"):
        optimise_times(arrays, leaves, tables(prior, 8), backend=BACKEND)
    with pytest.raises(DataError, match="those of 5 leaves, and the tree has 6"):
        optimise_times(arrays, to_leaves(Data(ROWS[:6]))[0], tables(prior, 5), backend=BACKEND)
    with pytest.raises(DataError, match="6 leaves, and 8 rows"):
        fit_sites(arrays, ANSWERS, answers)
