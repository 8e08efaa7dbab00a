"""The progress line of a long run, by a clock of the test's own."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from cavity.engine.run import progress


@pytest.fixture
def clock(monkeypatch):
    now = SimpleNamespace(seconds=100.0)
    monkeypatch.setattr(progress.time, "monotonic", lambda: now.seconds)
    return now


def lines(clock, capsys, rows, begun=0):
    with progress.Progress(True, rows) as watcher:
        for sweep, seconds in ((begun + 1, 0.5), (begun + 2, 3.0), (begun + 3, 5.0), (begun + 7, 13.0)):
            clock.seconds = 100.0 + seconds
            watcher(SimpleNamespace(iteration=[sweep], residual=[0.25], code=[0]))
    shown = capsys.readouterr().err
    clock.seconds = 100.0
    assert shown.endswith("\n")
    return [line.strip() for line in shown.split("\r") if line.strip()]


def test_many_rows_are_shown_with_their_number_in_a_second(clock, capsys):
    first, second, third = lines(clock, capsys, 2_000_000)
    assert first == "cavity: sweep 2, largest change 2.5e-01 sd, 3 s"  # nothing in the first second
    assert second == "cavity: sweep 3, largest change 2.5e-01 sd, 5 s, 1e+06 rows/s"
    assert third == "cavity: sweep 7, largest change 2.5e-01 sd, 13 s, 1e+06 rows/s"


def test_a_run_that_goes_on_does_not_count_the_sweeps_before_it(clock, capsys):
    assert lines(clock, capsys, 2_000_000, begun=500)[-1].endswith("1e+06 rows/s")


def test_few_rows_are_not_counted(clock, capsys):
    assert all("rows/s" not in line for line in lines(clock, capsys, 500))


def test_nothing_is_shown_where_it_is_not_wanted(clock, capsys):
    with progress.Progress(False, 2_000_000) as watcher:
        clock.seconds += 50.0
        watcher(SimpleNamespace(iteration=[3], residual=[0.25], code=[0]))
    assert capsys.readouterr().err == ""
