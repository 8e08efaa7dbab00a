"""Copies of the ladder by workers: the answer does not depend on which, and is within its error of the truth."""

from __future__ import annotations

import dealt_models
import numpy as np
import pytest

import cavity as cv
from cavity.engine.tempering.apart import _mean
from cavity.engine.tempering.estimators import Estimate

from .known_evidences import MODELS


@pytest.fixture(scope="module")
def here():
    m, data, truth = MODELS["coin"]()
    return m, data, truth, cv.evidence(m, data, sweeps=128, copies=3, workers=cv.workers.here())


@pytest.mark.parametrize("pool", [cv.workers.simulated(7), cv.workers.simulated(31), 2], ids=["7", "31", "processes"])
def test_any_workers_find_the_same(here, pool):
    m, data, _, expected = here
    found = cv.evidence(m, data, sweeps=128, copies=3, workers=pool)
    assert found.estimates == expected.estimates
    assert found.copies == 3
    assert [move.names for move in found.moves] == [move.names for move in expected.moves]
    assert "copies" in found.explain()


def test_it_is_within_its_error_of_the_truth(here):
    truth, found = here[2:]
    assert abs(found.log_evidence - truth) < 3.5 * found.standard_error
    assert found.standard_error < 0.15


def test_a_posterior_is_the_reference_of_all_copies():
    """With all orders of components, which the first process counts from the model."""
    m, data, _ = dealt_models.mixture(16)
    posterior = cv.infer(m, data)
    one, other = (
        cv.evidence(m, data, reference=posterior, sweeps=128, copies=2, workers=pool)
        for pool in (None, cv.workers.here())
    )
    assert other.orders == pytest.approx(np.log(2.0))
    assert other.ordered == one.ordered == "centre"
    assert abs(one.log_evidence - other.log_evidence) < 4.0 * np.hypot(one.standard_error, other.standard_error)


def test_the_error_is_the_larger_of_what_copies_tell_and_how_far_they_differ():
    assert _mean([Estimate(1.0, 0.3), Estimate(1.0, 0.4)]) == Estimate(1.0, 0.25)
    assert _mean([Estimate(0.0, 0.01), Estimate(2.0, 0.01)]) == Estimate(1.0, pytest.approx(1.0))


def test_particles_have_no_copies():
    m, data, _ = MODELS["coin"]()
    with pytest.raises(cv.ModelError, match="particles have none"):
        cv.evidence(m, data, method="annealing", workers=2)
