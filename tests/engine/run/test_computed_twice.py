"""What a sweep has computed for its messages it does not compute again for the evidence."""

from __future__ import annotations

import numpy as np
import pytest

import cavity as cv
from cavity.engine.run import log_evidence
from cavity.models import mixture, softmax_regression


def iris():
    rng = np.random.default_rng(0)
    return softmax_regression(features=2, classes=3), {"x": rng.normal(size=(12, 2)), "y": np.arange(12) % 3}


def heights():
    x = np.random.default_rng(0).normal(size=(12, 2))
    return mixture(components=2, dimension=2), {"x": np.where(np.arange(12)[:, None] % 2, x - 4.0, x + 4.0)}


@pytest.mark.parametrize(("made", "names"), [(iris, {"y"}), (heights, {"x", "z"})])
def test_energies_of_messages_are_those_of_the_evidence(made, names, monkeypatch):
    """The factors of data see the same moments in the update of the first variable that stays in the state."""
    again, computed = set(), log_evidence.block_energy

    def counted(block, scope):
        again.add(block.name)
        return computed(block, scope)

    monkeypatch.setattr(log_evidence, "block_energy", counted)
    model, data = made()
    assert cv.infer(model, data, execution="interpret").converged
    assert again
    assert not names & again
