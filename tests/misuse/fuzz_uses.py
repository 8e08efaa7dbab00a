"""Calls of everything public with arguments that are wrong by chance, and the law that all of them obey.

The functions of `cv.__all__` and the methods of what they return are found, not listed: one that is new is called too.
Its arguments are those of `RIGHT`, where there are any, with one or two in whose place is something else.
"""

from __future__ import annotations

import decimal
import fractions
import functools
import inspect
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st
from of_verbs import DATA, coin, posterior, program

import cavity as cv


class Use(NamedTuple):
    """A call: what it is called, what is called, and its arguments by name that are right."""

    name: str
    function: Callable[..., Any]
    right: dict[str, Any]
    slow: bool = False  # where an argument that is right by chance has it compute for seconds

    @property
    def parameters(self) -> list[inspect.Parameter]:
        return list(inspect.signature(self.function).parameters.values())


def _generator():
    yield 1.0


def _strange():
    """What belongs to another model."""
    m = cv.Model("other")
    n = m.plate("n", 2)
    return n, m.random("s", cv.gaussian(0.0, variance=1.0), plates=n), m.input("x", cv.real, plates=n)


ODD: dict[str, Callable[[], Any]] = {
    "None": lambda: None, "true": lambda: True, "minus one": lambda: -1, "zero": lambda: 0, "three": lambda: 3,
    "half": lambda: 0.5, "nan": lambda: float("nan"), "inf": lambda: float("inf"), "huge": lambda: 10**30,
    "tiny": lambda: 5e-324, "negative zero": lambda: -0.0, "complex": lambda: 1j, "empty text": lambda: "",
    "text": lambda: "nobody", "a name": lambda: "a", "zero byte": lambda: "\0", "long text": lambda: "a" * 5000,
    "bytes": lambda: b"a", "tuple": lambda: (), "list": list, "list of text": lambda: ["a", "p"],
    "list of lists": lambda: [[1.0], [1.0, 2.0]], "list of itself": lambda: [[]], "dictionary": dict,
    "dictionary of text": lambda: {"a": "a"}, "dictionary of numbers": lambda: {1: 2},
    "keys of tuples": lambda: {(): 1},
    "unhashable inside": lambda: {"a": {"b": []}}, "set": lambda: {1.0}, "frozen set": lambda: frozenset("a"),
    "range": lambda: range(3), "generator": _generator, "object": object, "class": lambda: float,
    "function": lambda: abs, "function of none": lambda: lambda: None, "slice": lambda: slice(0, 1),
    "ellipsis": lambda: ..., "not implemented": lambda: NotImplemented, "exception": lambda: ValueError("x"),
    "fraction": lambda: fractions.Fraction(1, 2), "decimal": lambda: decimal.Decimal("0.5"),
    "date": lambda: np.datetime64("2020-01-01"), "no date": lambda: np.datetime64("NaT"),
    "array": lambda: np.ones(2), "array of nan": lambda: np.full(2, np.nan), "empty array": lambda: np.zeros((0, 2)),
    "array of text": lambda: np.array(["a", "b"]), "array of objects": lambda: np.array([None, {}], object),
    "many axes": lambda: np.ones((1,) * 20), "record": lambda: np.zeros(2, [("a", float)]),
    "masked": lambda: np.ma.array([1.0, 2.0], mask=True), "complex array": lambda: np.ones(2, complex),
    "array of integers": lambda: np.array([2**62, -(2**62)]), "numpy text": lambda: np.str_("a"),
    "model": cv.Model, "term": lambda: cv.gaussian(0.0, variance=1.0), "wrong term": lambda: cv.gaussian(0, 1),
    "domain": lambda: cv.real, "plate": lambda: _strange()[0], "variable": lambda: _strange()[1],
    "input": lambda: _strange()[2], "expression": lambda: _strange()[1] > 0, "kernel": lambda: cv.kernels,
    "marginal": lambda: posterior()["a"], "posterior": posterior, "schedule": lambda: cv.Schedule(),
    "method": lambda: cv.power(0.5), "module": lambda: np,
}  # fmt: skip
NEVER = sorted(
    {*ODD} - {"None", "true", "three", "half", "tiny", "zero", "list", "tuple", "dictionary", "negative zero"}
)


def values(slow: bool) -> st.SearchStrategy[Any]:
    """What is put in the place of an argument."""
    odd = st.sampled_from(NEVER if slow else sorted(ODD)).map(lambda name: ODD[name]())
    if slow:
        return odd
    plain = st.one_of(st.integers(), st.floats(), st.text(max_size=5), st.booleans(), st.none())
    nested = st.recursive(
        plain,
        lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)),
    )
    return st.one_of(odd, odd, odd, nested)


FACTORS = {
    "domain": cv.real, "out": cv.real, "log_density": lambda out: -0.5 * out**2, "name": "mine",
}  # fmt: skip
RIGHT: dict[str, dict[str, Any]] = {
    "infer": {"model": coin, "data": DATA},
    "explain": {"model": coin, "data": DATA},
    "compile": {"model": coin, "observed": ["y", "z"]},
    "log_density": {"model": coin, "data": DATA},
    "sample": {"model": coin, "data": DATA, "draws": 4, "warmup": 2, "chains": 1, "progress": False},
    "evidence": {"model": coin, "data": DATA, "sweeps": 4, "progress": False},
    "search": {"model": coin, "data": DATA, "moves": {}, "max_seconds": 0.1, "progress": False},
    "map": {"model": coin, "data": DATA},
    "laplace_approximation": {"model": coin, "data": DATA},
    "learn": {"program": program, "data": DATA, "wrt": ["x"]},
    "evidence_gradient": {"program": program, "data": DATA, "wrt": ["x"]},
    "factor": {"name": "mine", "log_density": FACTORS["log_density"], "out": cv.real},
    "Program.__call__": {"data": DATA},
    "Program.batch": {"datas": [DATA]},
    "Program.map": {"datas": [DATA]},
    "Posterior.predict": {"data": {"x": [1.0]}},
    "Posterior.check": {"draws": 4, "warmup": 2, "chains": 1},
    "Model.simulate": {"data": {"x": [1.0]}},
}
SLOW = {
    "sample", "evidence", "search", "map", "laplace_approximation", "learn", "evidence_gradient", "Program.map",
    "Posterior.check", "Posterior.check_evidence", "Posterior.evidence_gradient", "Posterior.trust",
    "Posterior.stability", "Posterior.report",
}  # fmt: skip
OF_PROGRAM = {"Program.__call__", "Program.batch", "Program.map", "Program.explain"}
"""The methods of a program that users call; the others are called by what runs it, with what that has checked."""
APART = {"cache", "Marginal.__array__", "Marginal.__getitem__", "Marginal.along", "Model.by_parts"}
"""What is set for the process, what NumPy asks and answers, what posteriors tell marginals, and what pickling asks."""


def _is_public(name: str) -> bool:
    return name in OF_PROGRAM or not name.startswith("Program.")


def _small_model() -> cv.Model:
    m = cv.Model("small")
    n = m.plate("n", 2)
    m.random("a", cv.gaussian(0.0, variance=1.0), plates=n)
    m.input("x", cv.real, plates=n)
    return m


@functools.cache
def _samples() -> Any:
    return cv.sample(coin(), DATA, draws=20, warmup=5, chains=2, progress=False)


OWNERS: dict[str, Callable[[], Any]] = {
    "Model": _small_model,
    "Posterior": posterior,
    "Marginal": lambda: posterior()["a"],
    "Program": program,
    "Samples": _samples,
}
OPERATORS = ("__getitem__", "__call__", "__add__", "__sub__", "__contains__", "__eq__", "__array__", "__format__")


def uses() -> dict[str, Use]:
    """All calls by name."""
    functions = {name: getattr(cv, name) for name in cv.__all__ if inspect.isfunction(getattr(cv, name))}
    found = [Use(name, own, RIGHT.get(name, {}), name in SLOW) for name, own in functions.items() if name not in APART]
    for owner, make in OWNERS.items():
        found += [use for use in _methods(owner, make) if use.name not in APART and _is_public(use.name)]
    found += [Use("Model", cv.Model, {}), Use("Schedule", cv.Schedule, {})]
    return {use.name: use for use in found}


def _methods(owner: str, make: Callable[[], Any]) -> list[Use]:
    kind = getattr(cv, owner)
    names = [n for n in dir(kind) if (not n.startswith("_") or n in OPERATORS) and inspect.isfunction(getattr(kind, n))]

    def bound(name: str) -> Callable[..., Any]:
        own = getattr(kind, name)
        parameters = list(inspect.signature(own).parameters.values())[1:]

        def call(*args: Any, **options: Any) -> Any:
            return own(make(), *args, **options)

        call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        call.__doc__ = own.__doc__
        return call

    full = {name: f"{owner}.{name}" for name in names}
    return [Use(full[n], bound(n), RIGHT.get(full[n], {}), full[n] in SLOW) for n in names]


@st.composite
def calls(draw: st.DrawFn, use: Use) -> Callable[[], Any]:
    """A call with one or two arguments that are something else; what is required and has no right value is, too."""
    any_value = values(use.slow)
    named = [p for p in use.parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    several = any(p.kind is p.VAR_POSITIONAL for p in use.parameters)
    changed = (
        draw(st.lists(st.sampled_from(named), min_size=1, max_size=2, unique_by=lambda p: p.name)) if named else []
    )
    given = {
        name: value() if callable(value) and name in ("model", "program") else value
        for name, value in use.right.items()
    }
    for parameter in named:
        if parameter in changed or (parameter.default is parameter.empty and parameter.name not in given):
            given[parameter.name] = draw(any_value)
    operator = use.name.endswith("__") and not use.name.endswith("__call__")  # which Python calls, without names
    if draw(st.integers(0, 19)) == 0 and not operator:
        given["nobody"] = draw(any_value)
    places = [given.pop(p.name) for p in named if p.kind is p.POSITIONAL_ONLY]
    if several:  # those before them go by place
        before = [p for p in named if p.kind is p.POSITIONAL_OR_KEYWORD]
        places = [given.pop(p.name) if p.name in given else p.default for p in before]
        places += draw(st.lists(any_value, max_size=3))
    shown = ", ".join([*map(_shown, places), *(f"{name}={_shown(value)}" for name, value in given.items())])
    return _Call(f"{use.name}({shown})", functools.partial(use.function, *places, **given))


class _Call(NamedTuple):
    """A call and how it reads in a report."""

    text: str
    call: Callable[[], Any]

    def __call__(self) -> Any:
        return self.call()

    def __repr__(self) -> str:
        return self.text


def _shown(value: Any) -> str:
    try:
        return repr(value)[:80]
    except Exception as problem:  # a value whose text is wrong is a wrong value, too
        return f"<{type(value).__name__} without a text: {problem}>"


MAPPINGS = ("Posterior.__getitem__", "Samples.__getitem__", "Samples.mean", "Samples.sd")
OPERANDS = ("unsupported operand type(s)", "did not contain a loop with signature matching types")


def fault(use: Use, call: Callable[[], Any]) -> str | None:
    """What is wrong with how a call ends: it has an answer, an error of ours in a sentence, or a documented one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            repr(call())
        except cv.CavityError as error:
            return None if len(str(error)) > 30 else f"a {type(error).__name__} without a sentence: {error}"
        except Exception as error:
            documented = type(error).__name__ in (use.function.__doc__ or "") and len(str(error)) > 15
            of_python = isinstance(error, TypeError) and any(text in str(error) for text in OPERANDS)
            of_python = of_python or (isinstance(error, KeyError) and use.name in MAPPINGS and len(str(error)) > 30)
            return None if documented or of_python else f"{type(error).__name__}: {str(error)[:300]}"
    return None
