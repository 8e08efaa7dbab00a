"""What posteriors, programs, samples and the verbs around them make of other kinds of values: 65 places, 18 values."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from misuse_judge import Case
from of_verbs import DATA, coin, posterior, program

import cavity as cv

ODD: dict[str, Any] = {
    "None": None, "text": "zz", "nan": float("nan"), "list": [1], "dict": {"q": 1}, "obj": object(), "neg": -3,
    "huge": 10**20, "cls": int, "fn": len, "bytes": b"a", "arr": np.zeros((2, 2)), "complex": 1j, "tuple": (1, 2),
    "set": {1}, "true": True, "fraction": 0.5, "empty": [],
}  # fmt: skip
NEW = {"x": [1.0]}
QUIET = {"progress": False, "draws": 3, "warmup": 1}


@functools.cache
def samples() -> Any:
    return cv.sample(coin(), DATA, draws=20, warmup=5, chains=2, progress=False)


@functools.cache
def batch() -> Any:
    return program().batch([DATA, DATA])


def _model() -> tuple[Any, ...]:
    m = cv.Model()
    n = m.plate("n", 3)
    return m, n, m.random("a", cv.gaussian(0.0, sd=1.0), plates=n), m.random("b", cv.bernoulli(0.5), plates=n)


def _two(chosen: Callable[..., Any]) -> Any:
    """A variable that one of two terms generates."""
    m = cv.Model()
    return m.random("x", chosen(cv.gaussian(0.0, sd=1.0), cv.gaussian(1.0, sd=1.0)))


def _tree(over: Any) -> Any:
    return _model()[0].tree("x", over=over, parent=1, root=cv.gaussian(0.0, sd=1.0), then=lambda s: s)


def _long(frame: Any, rows: Any = "u") -> Any:
    return cv.long(frame, rows=rows, columns="i", value="s")


def _constrained(name: Any) -> Any:
    m, _, a, _ = _model()
    return m.constrain(a > 0, name=name)


FRAME, DRAWS = {"u": ["a"], "i": ["b"], "s": [1.0]}, {"a": np.zeros((3, 2))}
USES: dict[str, Callable[[Any], Any]] = {
    "hdi": lambda o: posterior()["a"].hdi(o),
    "interval": lambda o: posterior()["a"].interval(o),
    "prob": lambda o: posterior()["a"].prob(o),
    "sel": lambda o: posterior()["level"].sel(n=o),
    "sel plate": lambda o: posterior()["level"].sel(q=o),
    "place": lambda o: posterior()["level"][o],
    "sample n": lambda o: posterior().sample(o),
    "sample seed": lambda o: posterior().sample(5, o),
    "predictive n": lambda o: posterior().predictive(o),
    "predictive data": lambda o: posterior().predictive(5, o),
    "predictive new": lambda o: posterior().predictive(5, NEW, new=o),
    "predict unseen": lambda o: posterior().predict(NEW, unseen=o),
    "predict new": lambda o: posterior().predict(NEW, new=o),
    "covariance": lambda o: posterior().covariance(o),
    "covariance with": lambda o: posterior().covariance("a", o),
    "posterior.compare": lambda o: posterior().compare(o),
    "compare": lambda o: cv.compare(o),
    "to_frame": lambda o: posterior().to_frame(o),
    "plot": lambda o: posterior().plot(o),
    "plot ax": lambda o: posterior().plot("a", ax=o),
    "plot_draws": lambda o: cv.plot_draws(o),
    "plot_draws data": lambda o: cv.plot_draws(DRAWS, o),
    "plot_draws names": lambda o: cv.plot_draws(DRAWS, names=o),
    "plot_draws ax": lambda o: cv.plot_draws(DRAWS, ax=o),
    "importance": lambda o: posterior().importance(draws=o),
    "stability": lambda o: posterior().stability(count=o),
    "check_evidence": lambda o: posterior().check_evidence(by=o),
    "evidence_gradient": lambda o: posterior().evidence_gradient(o),
    "batch": lambda o: batch()[o],
    "samples": lambda o: samples()[o],
    "map workers": lambda o: program().map([DATA], workers=o),
    "learn wrt": lambda o: cv.learn(program(), DATA, o),
    "infer schedule": lambda o: cv.infer(coin(), DATA, schedule=o),
    "infer damping": lambda o: cv.infer(coin(), DATA, damping=o),
    "infer execution": lambda o: cv.infer(coin(), DATA, execution=o),
    "infer start": lambda o: cv.infer(coin(), DATA, start=o),
    "infer effort": lambda o: cv.infer(coin(), DATA, effort=o),
    "explain sizes": lambda o: cv.explain(coin(), sizes=o),
    "laplace data": lambda o: cv.laplace_approximation(coin(), o),
    "map model": lambda o: cv.map(o, DATA),
    "sample kernel": lambda o: cv.sample(coin(), DATA, chains=1, kernel=o, **QUIET),
    "sample collapse": lambda o: cv.sample(coin(), DATA, chains=1, collapse=o, **QUIET),
    "sample moves": lambda o: cv.sample(coin(), DATA, chains=1, moves=o, **QUIET),
    "simulate n": lambda o: coin().simulate(o, NEW),
    "simulate data": lambda o: coin().simulate(3, o),
    "load": lambda o: cv.load("/nowhere", o),
    "resume": lambda o: cv.resume(o),
    "rows": lambda o: cv.rows(o),
    "long": lambda o: _long(o),
    "long rows": lambda o: _long(FRAME, o),
    "plate names": lambda o: cv.Model().plate("n", names=o),
    "constrain name": _constrained,
    "index": lambda o: cv.Model().input("q", cv.index(o)),
    "sum by": lambda o: cv.sum(_model()[2], by=o),
    "slice": lambda o: _model()[2][o:],
    "element": lambda o: _model()[2][o],
    "table": lambda o: cv.table(o),
    "where": lambda o: cv.where(o, 1.0, 2.0),
    "cumprod": lambda o: cv.cumprod(_model()[2], over=o),
    "any": lambda o: cv.any(_model()[3], over=o),
    "kernel scale": lambda o: cv.kernels.matern32(o),
    "switch": lambda o: _two(lambda *terms: cv.switch(o, *terms)),
    "mixture": lambda o: _two(lambda *terms: cv.mixture(o, *terms)),
    "ordered": lambda o: _model()[0].random("x", cv.ordered(o)),
    "tree": _tree,
}
SLOW = ("importance", "map workers", "laplace data", "sample kernel", "sample collapse", "sample moves", "samples")
# What has a meaning after all.
FINE = {
    "None": "predictive data, predictive new, predict new, covariance with, to_frame, plot ax, plot_draws data, "
    "plot_draws ax, infer start, sample moves, explain sizes, plate names, constrain name, slice, map workers, place",
    "text": "constrain name",
    "list": "plate names, table, kernel scale, place",
    "dict": "plot_draws data, plate names",
    "neg": "slice, element",
    "huge": "infer effort, map workers, kernel scale",
    "arr": "rows, table",
    "tuple": "plot_draws names, plate names, table, kernel scale",
    "true": "batch, place, kernel scale, mixture",
    "fraction": "hdi, interval, kernel scale, mixture, infer damping, infer effort",
    "empty": "place, plot_draws names, sample collapse, predict new, predictive new, sample moves, learn wrt",
}


def of_answers(kinds: tuple[str, ...], slow: bool) -> Iterator[Case]:
    """Each use with each of these kinds of values; the slow ones only where asked for."""
    for kind in kinds:
        fine = FINE.get(kind, "").split(", ")
        for name, use in USES.items():
            if slow or name not in SLOW:
                yield Case(
                    f"{name} {kind}", functools.partial(use, ODD[kind]), (lambda _: True) if name in fine else None
                )
