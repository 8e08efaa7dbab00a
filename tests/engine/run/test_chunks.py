"""A run in chunks of sweeps: cut anywhere it gives the same answer, and an interrupt stops it."""

from __future__ import annotations

import signal
import subprocess
import sys

import jax
import numpy as np
import pytest

import cavity as cv
from cavity.engine.run import chunks

POINTS = np.random.default_rng(0).normal([[-2.0], [1.5]], 1.0, (2, 12)).ravel()


def mixture_and_games():
    """Beliefs that move, of which one is seeded, and messages of EP beside them."""
    m = cv.Model("mixture and games")
    component, point, game = m.plate("component", 2), m.plate("point"), m.plate("game")
    mean = m.random("mean", cv.gaussian(0.0, variance=9.0), component)
    choice = m.random("choice", cv.categorical(m.random("weights", cv.dirichlet(np.ones(2)))), point)
    m.random("x", cv.gaussian(mean[choice], variance=1.0), point)
    skill = m.random("skill", cv.gaussian(0.0, variance=0.5), m.plate("player", 3))
    winner, loser = (m.input(name, cv.index(skill.plates[0]), game) for name in ("winner", "loser"))
    m.constrain(m.random("margin", cv.gaussian(skill[winner] - skill[loser], variance=1.0)) > 0)
    return m


DATA = {"x": POINTS, "winner": [0, 1, 2, 0], "loser": [1, 2, 0, 2]}


def leaves(posterior):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(posterior.result.outputs)]


@pytest.mark.parametrize("restarts", [1, pytest.param(3, marks=pytest.mark.slow)])
def test_a_run_gives_the_same_bits_wherever_it_is_cut(monkeypatch, restarts):
    program = cv.compile(mixture_and_games(), ["x"], restarts=restarts, tolerance=1e-9)
    whole, cuts = program(DATA), set()
    assert whole.iterations > 8
    for size in (1, 3, 7):
        monkeypatch.setattr(chunks, "first_chunk", lambda numbers, size=size: size)
        monkeypatch.setattr(chunks, "next_chunk", lambda sweeps, seconds, size=size: cuts.add(size) or size)
        for ours, theirs in zip(leaves(program(DATA)), leaves(whole), strict=True):
            np.testing.assert_array_equal(ours, theirs)
    assert cuts == {1, 3, 7}
    assert program.traces == 1


def test_chunks_are_as_long_as_half_a_second_and_as_the_data_allow():
    assert chunks.first_chunk(10) == chunks.FIRST
    assert chunks.first_chunk(10**9) == chunks.FEWEST
    assert chunks.next_chunk(64, 3.2) == 10
    assert chunks.next_chunk(64, 0.0005) == 64_000
    assert chunks.next_chunk(4, 100.0) == chunks.FEWEST


LONG_RUN = """
import os, signal, sys, threading, time
import numpy as np

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell that started the tests may have it ignored
import cavity as cv
from cavity.engine.run import chunks, runner

m = cv.Model()
component, point = m.plate("component", 3), m.plate("point")
mean = m.random("mean", cv.gaussian(0.0, variance=100.0), component)
choice = m.random("choice", cv.categorical(m.random("weights", cv.dirichlet(np.ones(3)))), point)
m.random("x", cv.gaussian(mean[choice], variance=1.0), point)
program = cv.compile(m, ["x"], tolerance=1e-300, max_iterations=100_000)
began = threading.Event()
where, name = {"sweeps": (chunks, "first_chunk"), "compiler": (runner, "compiled")}[sys.argv[1]]
inner = getattr(where, name)
setattr(where, name, lambda *a: began.set() or inner(*a))


def interrupt():
    began.wait()
    time.sleep(0.3)
    os.kill(os.getpid(), signal.SIGINT)


threading.Thread(target=interrupt, daemon=True).start()
program({"x": np.random.default_rng(0).normal(size=100_000)})
print("never stopped")
"""


@pytest.mark.parametrize("stage", ["sweeps", pytest.param("compiler", marks=pytest.mark.slow)])
def test_an_interrupt_ends_a_long_run_and_leaves_nothing_that_crashes(stage):
    """Uninterrupted it takes an hour; the time limit is for one that does not stop."""
    found = subprocess.run([sys.executable, "-c", LONG_RUN, stage], capture_output=True, text=True, timeout=200)
    assert found.returncode == -signal.SIGINT, found.stderr
    assert found.stdout == ""
    assert found.stderr.rstrip().endswith("KeyboardInterrupt")
