"""The demonstration runs from start to end; its data are complete."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
PICTURES = ["iris_graph", "iris_marginals", "iris_convergence", "tennis_graph", "tennis_ranking", "tennis_convergence"]
PICTURES += ["old_faithful_graph", "old_faithful_mixture", "old_faithful_convergence"]


@pytest.mark.parametrize("name", ["iris.py", "tennis.py", "old_faithful.py", "demo.py", "common.py"])
def test_examples_are_short(name):
    assert len((EXAMPLES / name).read_text().splitlines()) < 120


def test_data_are_complete_and_their_sources_named():
    games = np.loadtxt(EXAMPLES / "data" / "tennis_games.csv", delimiter=",", skiprows=1, dtype=int)
    assert games.shape == (1801, 2)
    assert games.min() == 1
    assert games.max() == len((EXAMPLES / "data" / "tennis_players.csv").read_text().splitlines()) == 107
    assert len((EXAMPLES / "data" / "iris.csv").read_text().splitlines()) == 151
    assert len((EXAMPLES / "data" / "old_faithful.csv").read_text().splitlines()) == 273
    sources = (EXAMPLES / "data" / "SOURCES.md").read_text()
    assert all(path.name in sources for path in (EXAMPLES / "data").glob("*.csv"))


@pytest.mark.slow
def test_the_demo_prints_and_writes_its_pictures():
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, EXAMPLES / "demo.py"], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    for text in (
        "categorical expected log density (softmax: quadrature)",
        "Novak Djokovic",
        "log evidence of the restarts",
        "time: compile",
    ):
        assert text in done.stdout
    assert all((EXAMPLES.parent / "demo" / f"{name}.png").stat().st_size > 5000 for name in PICTURES)
