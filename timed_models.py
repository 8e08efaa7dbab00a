"""What a machine takes for a few standard models: the first answer, with compilation, and the next ones."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np


def timed_models(repeats: int) -> Iterator[tuple[str, float, float, int]]:
    """Name, seconds of the first call, seconds of the quickest of `repeats` others, and sweeps, one model at a time.

    Programs that earlier runs left in the cache make the first call shorter. Data are made by seeds, so that machines
    can be compared.
    """
    for name, make in MODELS.items():
        program, data = make()
        start = time.perf_counter()
        posterior = program(data)
        first = time.perf_counter() - start
        again = []
        for _ in range(repeats):
            start = time.perf_counter()
            program(data)
            again.append(time.perf_counter() - start)
        yield name, first, min(again), posterior.iterations


def _skills() -> tuple[Any, dict[str, Any]]:
    import cavity as cv  # pyright: ignore[reportMissingImports]

    from .models import skills

    rng = np.random.default_rng(0)
    winner = rng.integers(1000, size=20_000)
    loser = (winner + rng.integers(1, 1000, size=20_000)) % 1000
    program = cv.compile(skills(), [], method="ep", sizes={"player": 1000}, trace_evidence=False)
    return program, {"winner": winner, "loser": loser}


def _regression() -> tuple[Any, dict[str, Any]]:
    import cavity as cv  # pyright: ignore[reportMissingImports]

    rng = np.random.default_rng(0)
    m = cv.Model("logistic regression")
    row = m.plate("row")
    x = m.input("x", cv.vector(10), plates=row)
    weight = m.random("weight", cv.vector_gaussian(np.zeros(10), covariance=np.eye(10)))
    m.random("y", cv.bernoulli(cv.logistic(cv.dot(weight, x))))
    rows = rng.normal(size=(2000, 10))
    y = rng.random(2000) < 1.0 / (1.0 + np.exp(-rows @ rng.normal(size=10)))
    return cv.compile(m, ["y"], method="ep", trace_evidence=False), {"x": rows, "y": y}


def _mixture() -> tuple[Any, dict[str, Any]]:
    import cavity as cv  # pyright: ignore[reportMissingImports]

    from .models import mixture

    rng = np.random.default_rng(0)
    centres = 6.0 * rng.normal(size=(5, 2))
    points = centres[rng.integers(5, size=2000)] + rng.normal(size=(2000, 2))
    return cv.compile(mixture(5, 2), ["x"], trace_evidence=False), {"x": points}


MODELS: dict[str, Callable[[], tuple[Any, dict[str, Any]]]] = {
    "skills, 20000 games by EP": _skills,
    "logistic regression, 2000 by EP": _regression,
    "mixture of 5, 2000 points by VMP": _mixture,
}
