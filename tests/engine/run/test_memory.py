"""A model is freed with what was made of it; compiled functions stay, a bounded number of those used last."""

from __future__ import annotations

import copy
import gc
import weakref

import numpy as np
import pytest
from small_models import EARLY, SIZES, dice_model, mean_model, skills

import cavity as cv
from cavity.engine.infer import programs_of
from cavity.engine.program import PROGRAMS, SHAPES
from cavity.engine.support import compiled
from cavity.engine.support.cache import Recent


@pytest.fixture(autouse=True)
def nothing_kept():
    compiled.KEPT.clear()
    yield
    compiled.KEPT.clear()


@pytest.mark.parametrize(
    ("build", "data", "sizes"),
    [(dice_model, {"x": [0, 2, 2]}, {}), (skills, EARLY, SIZES)],
)
def test_a_program_is_freed_with_its_model(build, data, sizes):
    """Exact in one pass; EP with an index. What a user read of the posterior keeps nothing either."""
    model = build()
    posterior = cv.infer(model, data, sizes=sizes)
    posterior.summary(), [marginal.mean for marginal in posterior.values()]
    (program,) = programs_of(model)
    ((machine, run),) = program._runs
    ((function, *_),) = run.runner._made
    things = (model, program, program.plan, machine, machine.larger, run, run.runner)
    watched = [weakref.ref(thing) for thing in things]
    del model, posterior, program, machine, run, function, things
    gc.collect()
    assert [thing() for thing in watched] == [None] * len(watched)


def test_a_posterior_does_not_keep_its_program():
    program = cv.compile(dice_model(), ["x"])
    posterior = program({"x": np.array([0, 2, 2])})
    kept = weakref.ref(program)
    del program
    gc.collect()
    assert kept() is None
    np.testing.assert_allclose(posterior["weights"].mean, np.array([2.0, 2.0, 2.5]) / 6.5)


def test_a_program_keeps_the_shapes_used_last():
    program = cv.compile(dice_model(), ["x"])
    assert program._runs.most == program._plans.most == program.predictors.most == SHAPES
    assert program._padded.most == SHAPES
    program._runs.most = program._plans.most = program._padded.most = 2  # the same with less to compile
    runners = []
    for rows in (1, 17, 21, 25):  # padded to four sizes
        program({"x": np.zeros(rows, int)})
        ((_, run),) = list(program._runs)[-1:]
        runners += [weakref.ref(run), weakref.ref(run.runner)]
    del run
    gc.collect()
    assert len(program._runs) == len(program._plans) == len(program._padded) == 2
    assert [runner() is None for runner in runners] == [True] * 4 + [False] * 4
    program({"x": np.zeros(25, int)})  # still there
    assert program.traces == 4
    program({"x": np.zeros(1, int)})  # the program has forgotten it, the process has not
    assert program.traces == 4
    compiled.KEPT.clear()
    program({"x": np.zeros(17, int)})  # forgotten by both, and compiled again
    assert program.traces == 5


def test_the_process_keeps_the_compiled_functions_used_last(monkeypatch):
    monkeypatch.setattr(compiled.KEPT, "most", 2)
    kept = []
    for rows in (1, 17, 21):  # padded to three sizes
        cv.compile(dice_model(), ["x"])({"x": np.zeros(rows, int)})
        *_, latest = compiled.KEPT
        kept.append(weakref.ref(latest._call))
    del latest
    gc.collect()
    assert [function() is None for function in kept] == [True, False, False]


def test_a_model_keeps_the_programs_used_last():
    model = mean_model()
    for digits in range(PROGRAMS + 2):
        cv.infer(model, {"x": [1.0]}, tolerance=10.0**-digits)
    assert len(programs_of(model)) == PROGRAMS


def test_copies_of_a_model_have_nothing_compiled():
    model = mean_model()
    expected = cv.infer(model, {"x": [1.0]}).log_evidence
    for other in (copy.copy(model), copy.deepcopy(model)):
        assert len(programs_of(other)) == 0
        assert cv.infer(other, {"x": [1.0]}).log_evidence == expected
    assert len(programs_of(model)) == 1


def test_recent_things_are_the_last_that_were_asked_for():
    made, kept = [], Recent(2)
    for key in "abacab":
        assert kept.get(key, lambda key=key: made.append(key) or key) == key
    assert made == ["a", "b", "c", "b"]
    assert list(kept) == ["a", "b"]
