"""Data of several processes that do not fit each other: every process says so, from the same few numbers."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from jax.experimental import multihost_utils

import cavity as cv
from cavity.engine.cluster.own_rows import own_rows


def model():
    m = cv.Model("regression")
    row, group = m.plate("row"), m.plate("group")
    place, scale = m.input("place", cv.index(group), plates=row), m.input("scale", cv.positive)
    effect = m.random("effect", cv.gaussian(0.0, sd=scale), plates=group)
    m.random("y", cv.gaussian(effect[place], sd=1.0), plates=row)
    return m


def of(rows, scale=1.0, groups=2, missing=False):
    m = model()
    y = np.arange(float(rows))
    y[0] = np.nan if missing else 0.5
    data = {"place": np.zeros(rows, int), "scale": scale, "y": y}
    program = cv.compile(m, observed=["y"], sizes={"group": groups})
    binding = program.bind(data)
    return binding, program.plan_given((), binding)


def exchanged(monkeypatch, one, other, marked=False):
    """What the first of two processes finds, which has `one` where the other has `other`."""
    told = []
    monkeypatch.setattr(jax, "process_count", lambda: 2)
    monkeypatch.setattr(multihost_utils, "process_allgather", lambda own: told.append(own) or np.stack([own, own]))
    own_rows(*other, 2, marked)
    theirs = told.pop()
    monkeypatch.setattr(multihost_utils, "process_allgather", lambda own: np.stack([own, theirs]))
    return own_rows(*one, 2, marked)


def test_the_same_data_in_both_are_all_of_it(monkeypatch):
    assert exchanged(monkeypatch, of(5), of(5)) is None


def test_marked_rows_are_own_ones_even_where_they_are_the_same(monkeypatch):
    assert exchanged(monkeypatch, of(5), of(5), marked=True).counts == {"row": (5, 5)}


def test_other_rows_are_own_ones(monkeypatch):
    found = exchanged(monkeypatch, of(5), of(8))
    assert found.counts == {"row": (5, 8)}
    assert found.sizes()["row"] == 13
    assert found.first("row") == 0


def test_entries_that_another_process_lacks_are_missing_here_too(monkeypatch):
    found = exchanged(monkeypatch, of(5), of(5, missing=True))
    assert not found.binding.missing["y"].any()
    assert found.binding.missing["y"].shape == (5,)


@pytest.mark.parametrize(("other", "told"), [({"scale": 2.0}, "'scale'"), ({"groups": 3}, "plate 'group' has 2, 3")])
def test_what_all_rows_share_must_be_the_same(monkeypatch, other, told):
    with pytest.raises(cv.DataError, match=told):
        exchanged(monkeypatch, of(5), of(6, **other))
