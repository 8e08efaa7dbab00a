"""What was compiled is found again, by a model declared again and by the next process, never for another program."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import cavity as cv
from cavity.engine.interpret.work import Expected
from cavity.engine.support import compiled, executables, on_disk

DATA = {"x": [0.5, 1.0, -1.0], "y": [1.0, 2.0, -1.5]}


def line(prior=1.0):
    m = cv.Model()
    row = m.plate("row")
    slope = m.random("slope", cv.gaussian(0.0, variance=prior))
    m.random("y", cv.gaussian(slope * m.input("x", cv.real, row), precision=m.random("noise", cv.gamma(2.0, 1.0))), row)
    return m


@pytest.fixture(autouse=True)
def nothing_kept():
    compiled.KEPT.clear()
    yield
    compiled.KEPT.clear()


def test_a_model_declared_again_compiles_nothing_and_answers_the_same():
    first, second = cv.compile(line(), ["y"]), cv.compile(line(), ["y"])
    answers = first(DATA), second(DATA)
    assert (first.traces, second.traces) == (1, 0)
    assert answers[0].log_evidence == answers[1].log_evidence
    for name in ("slope", "noise"):
        assert answers[0][name].mean == answers[1][name].mean


def test_another_constant_is_another_program():
    narrow, wide = cv.infer(line(0.01), DATA), cv.infer(line(100.0), DATA)
    assert abs(narrow["slope"].mean) < 0.2 < abs(wide["slope"].mean)


def test_posteriors_of_models_that_share_a_program_know_their_own_model():
    first, second = line(), line()
    one, other = cv.infer(first, DATA), cv.infer(second, {**DATA, "y": [0.0, 0.0, 0.0]})
    assert one.model is first
    assert other.model is second
    assert one["slope"].mean != other["slope"].mean


PROGRAM = """
import json, sys, cavity as cv
m = cv.Model()
row = m.plate("row")
slope, noise = m.random("slope", cv.gaussian(0.0, variance=1.0)), m.random("noise", cv.gamma(2.0, 1.0))
m.random("y", cv.gaussian(slope * m.input("x", cv.real, row), precision=noise), row)
program = cv.compile(m, ["y"], execution=sys.argv[1])
posterior = program({"x": [0.5, 1.0, -1.0], "y": [1.0, 2.0, -1.5]})
print(json.dumps([program.traces, float(posterior["slope"].mean), float(posterior["noise"].variance)]))
"""


def in_a_process(folder, execution):
    kept = {name: value for name, value in os.environ.items() if not name.startswith("JAX_COMPILATION_CACHE")}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, execution],
        env={**kept, "CAVITY_CACHE": str(folder)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    "execution", [*(pytest.param(one, marks=pytest.mark.slow) for one in ("compile", "interpret")), "auto"]
)
def test_the_next_process_reads_what_this_one_made(tmp_path, execution):
    """Machine code, or what NumPy runs: neither is traced again, and answers are the same to the last bit."""
    folder = tmp_path / "programs"
    traces, *answers = in_a_process(folder, execution)
    assert traces == 1
    assert in_a_process(folder, execution) == [0, *answers]
    for path in folder.glob("*.program"):
        path.write_bytes(path.read_bytes()[:-7] + b"garbage")
    assert in_a_process(folder, execution) == [1, *answers]  # not what was written: made anew, and written again
    assert in_a_process(folder, execution) == [0, *answers]
    assert in_a_process("off", execution) == [1, *answers]


def test_a_folder_of_others_is_refused(tmp_path):
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    with pytest.raises(cv.DataError, match="others may write to it"):
        cv.cache(open_to_all)
    (tmp_path / "file").write_text("")
    with pytest.raises(cv.DataError, match="cannot be made"):
        cv.cache(tmp_path / "file" / "folder")


def test_the_folder_keeps_what_was_used_last(tmp_path, monkeypatch):
    monkeypatch.setattr(on_disk, "LARGEST", 250)
    monkeypatch.setattr(on_disk, "LEAST", 100)
    for age, name in enumerate("cab"):
        path = tmp_path / f"{name}.program"
        path.write_bytes(bytes(50 if name == "b" else 100))  # counted as the least
        os.utime(path, (1000 - age, 1000 - age))
    (tmp_path / "of somebody else").write_bytes(bytes(1000))
    on_disk._trim(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.program", "c.program", "of somebody else"]


def kept():
    (function,) = [each for each in compiled.KEPT if each.form is not None]  # the run: others have no form
    return function


def test_small_programs_are_run_by_numpy_until_that_has_taken_as_long_as_compiling(monkeypatch):
    """The same calls are run by the same, and a run is never half the one and half the other."""

    def calls():
        compiled.KEPT.clear()
        model, found = line(), []
        for _ in range(5):
            posterior = cv.infer(model, DATA)
            found.append((kept().interpreted, posterior.log_evidence, float(posterior["slope"].mean)))
        return found

    assert all(interpreted for interpreted, *_ in calls())
    work = kept()._by_numpy.meter.done / 5
    monkeypatch.setattr(compiled, "expected", lambda traced: Expected(1, 0.0))
    monkeypatch.setattr(compiled, "COMPILING", 2.5 * work)
    first = calls()
    assert [interpreted for interpreted, *_ in first] == [True, True, False, False, False]
    assert first[2] == first[3] == first[4]
    assert calls() == first
    for posterior in first:
        assert posterior[1:] == pytest.approx(first[0][1:], rel=1e-9)
    monkeypatch.setattr(compiled, "COMPILING", 0.5 * work)
    assert calls()[0] == (False, *first[2][1:])  # from its start, after half of it was done by NumPy


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Programs of NumPy are kept there, as if JAX kept nothing of its own; machine code is not."""
    monkeypatch.setattr(on_disk, "_path", lambda name: tmp_path / f"{name}.program")
    monkeypatch.setattr(executables, "write", lambda *_: None)
    return tmp_path


def test_who_runs_a_program_does_not_depend_on_what_is_on_disk(folder, monkeypatch):
    """What was read is traced when NumPy has worked enough, and compiled."""
    cv.infer(line(), DATA, accuracy="fast")
    work = kept()._by_numpy.meter.done
    for path in folder.iterdir():
        path.unlink()
    monkeypatch.setattr(compiled, "expected", lambda traced: Expected(1, 0.0))
    monkeypatch.setattr(compiled, "COMPILING", 2.5 * work)

    def calls():
        compiled.KEPT.clear()
        program = cv.compile(line(), ["y"], execution="auto")
        posteriors = [program(DATA) for _ in range(4)]
        found = [(each.timing.interpreted, each.log_evidence, float(each["slope"].mean)) for each in posteriors]
        return program.traces, found

    traces, first = calls()
    assert traces == 1
    assert [interpreted for interpreted, *_ in first] == [True, True, False, False]
    written = sorted(path.name for path in folder.iterdir())
    assert any(name.endswith("-listing.program") for name in written)
    assert calls() == (1, first)
    monkeypatch.setattr(compiled, "COMPILING", 100 * work)
    assert calls() == (0, [first[0]] * 4)
    assert sorted(path.name for path in folder.iterdir()) == written


def test_a_function_read_from_disk_keeps_no_model(folder):
    """What could trace it, should NumPy work too long, comes with the call that does."""
    for traces in (1, 0):
        compiled.KEPT.clear()
        model = line()
        program = cv.compile(model, ["y"], execution="interpret")
        program(DATA)
        assert program.traces == traces
    watched = weakref.ref(model), weakref.ref(program)
    assert kept().interpreted
    del model, program
    gc.collect()
    assert [thing() for thing in watched] == [None, None]


def test_what_has_no_text_is_not_kept(folder):
    on_disk.write("name", lambda: (1, lambda: 2))
    assert on_disk.read("name", tuple) is None
    on_disk.write("name", lambda: (1, 2))
    assert on_disk.read("name", list) == [1, 2]
    assert on_disk.read("name", lambda things: things.absent) is None
    assert not list(folder.iterdir())  # what cannot be made of it is forgotten


@pytest.mark.slow
def test_what_takes_longer_than_compiling_is_compiled_at_once():
    m = cv.Model()
    row, slope = m.plate("row"), m.random("slope", cv.gaussian(0.0, variance=1.0))
    m.random("y", cv.bernoulli(cv.probit(slope * m.input("x", cv.real, row))), row)
    x = np.linspace(-1.0, 1.0, 100_000)
    for rows, interpreted in ((100, True), (100_000, False)):
        compiled.KEPT.clear()
        posterior = cv.infer(m, {"x": x[:rows], "y": x[:rows] > 0})
        assert posterior.timing.interpreted == kept().interpreted == interpreted


def test_what_cannot_be_compared_is_compiled_each_time():
    class Strange:
        pass

    for factor in (2.0, 3.0):
        scaled = compiled.compiled("scaled", (Strange(),), lambda x, factor=factor: factor * x)
        assert scaled(np.ones(2)).tolist() == [factor, factor]
    assert len(compiled.KEPT) == 0


def test_a_function_read_from_disk_lets_go_of_what_could_compile_it(monkeypatch):
    """Its maker holds a model and its plan."""

    class Maker:
        def compiled(self):
            raise AssertionError("compiled anew")

    maker = Maker()
    watched = weakref.ref(maker)
    monkeypatch.setattr(executables, "read", lambda name: (lambda x: x + 1.0, None))
    found = compiled._read("name", maker.compiled)
    del maker
    assert watched() is not None
    assert found.call(1.0) == found.call(1.0) == 2.0
    gc.collect()
    assert watched() is None


def test_threads_may_share_a_function_that_is_compiled_meanwhile(monkeypatch):
    model = line()
    alone = cv.infer(model, DATA, accuracy="fast")
    compiled.KEPT.clear()
    monkeypatch.setattr(compiled, "expected", lambda traced: Expected(1, 0.0))
    monkeypatch.setattr(compiled, "COMPILING", 1.0)  # every one of them has NumPy work too long
    program = cv.compile(model, ["y"], execution="auto")
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(program, [DATA] * 4))
    for posterior in found:
        assert not posterior.timing.interpreted
        assert posterior.log_evidence == pytest.approx(alone.log_evidence, rel=1e-9)
