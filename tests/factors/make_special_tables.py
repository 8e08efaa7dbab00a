"""Write the reference values of `test_special.py`: tests/factors/special_tables.json.

    python tests/factors/make_special_tables.py

Each row is (argument as an exact hexadecimal float, value, derivative), the latter two to 45 digits, computed by mpmath
with enough digits that no cancellation reaches them.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

from mpmath import diff, erfc, exp, findroot, log, log1p, loggamma, mp, mpf, nstr, pi, psi, sqrt

TARGET = Path(__file__).with_name("special_tables.json")
Function = Callable[[mpf], mpf]

mp.dps = 120


def tail(t: mpf) -> mpf:
    return erfc(t / sqrt(mpf(2))) / 2


def hazard(x: mpf) -> mpf:
    return exp(-x * x / 2) / sqrt(2 * pi) / tail(-x)


def log_ndtr(x: mpf) -> mpf:
    return log(tail(-x)) if x < 0 else log1p(-tail(x))


def softplus(x: mpf) -> mpf:
    return log1p(exp(x))


def inverse_digamma(y: mpf) -> mpf:
    start = exp(y) + mpf(1) / 2 if y > -2 else -1 / (y + mp.euler)
    return findroot(lambda x: psi(0, x) - y, start)


def logarithmic(low: float, high: float, count: int) -> list[float]:
    return [10.0 ** random.uniform(low, high) for _ in range(count)]


def uniform(low: float, high: float, count: int) -> list[float]:
    return [random.uniform(low, high) for _ in range(count)]


def arguments() -> dict[str, list[float]]:
    random.seed(1)
    far = [-x for x in logarithmic(-6, 8, 25)] + [-1e8]
    near = uniform(-37, 37, 30) + uniform(-1, 1, 10) + [0.0, 37.5]
    logits = [s * x for x in logarithmic(-6, 2.8, 20) for s in (1, -1)] + [0.0]
    positive = [*logarithmic(-6, 12, 35), *uniform(0.1, 12, 20), 1e-6, 1e12, 1.0, 2.0, 1.4616321449683622, 4.0]
    return {
        "log": logarithmic(-300, 300, 20) + uniform(0.4, 3, 20),
        "sigmoid": logits,
        "softplus": logits,
        "log_sigmoid": logits,
        "ndtr": near,
        "log_ndtr": far + near,
        "hazard": far + near,
        "truncated_mean": far + near,
        "truncated_variance": far + near,
        "erfcx": [-x for x in far] + uniform(-26, 3, 30) + [0.0],
        "lgamma": positive,
        "digamma": positive,
        "trigamma": positive,
        "tetragamma": positive,
        "inverse_digamma": [-x for x in logarithmic(-1, 6, 15)] + uniform(-5, 5, 20) + uniform(5, 30, 8) + [-1e6, 30.0],
    }


# Value and derivative; the derivative in closed form where a numerical one would be slow or inexact.
FUNCTIONS: dict[str, tuple[Function, Function]] = {
    "log": (log, lambda x: 1 / x),
    "sigmoid": (lambda x: 1 / (1 + exp(-x)), lambda x: 1 / (2 + exp(x) + exp(-x))),
    "softplus": (softplus, lambda x: 1 / (1 + exp(-x))),
    "log_sigmoid": (lambda x: -softplus(-x), lambda x: 1 / (1 + exp(x))),
    "ndtr": (lambda x: tail(-x), lambda x: exp(-x * x / 2) / sqrt(2 * pi)),
    "log_ndtr": (log_ndtr, hazard),
    "hazard": (hazard, lambda x: -hazard(x) * (x + hazard(x))),
    "truncated_mean": (lambda x: x + hazard(x), lambda x: 1 - hazard(x) * (x + hazard(x))),
    "truncated_variance": (
        lambda x: 1 - hazard(x) * (x + hazard(x)),
        lambda x: hazard(x) * ((x + hazard(x)) * (x + 2 * hazard(x)) - 1),
    ),
    "erfcx": (lambda x: exp(x * x) * erfc(x), lambda x: 2 * x * exp(x * x) * erfc(x) - 2 / sqrt(pi)),
    "lgamma": (loggamma, lambda x: psi(0, x)),
    "digamma": (lambda x: psi(0, x), lambda x: psi(1, x)),
    "trigamma": (lambda x: psi(1, x), lambda x: psi(2, x)),
    "tetragamma": (lambda x: psi(2, x), lambda x: psi(3, x)),
    "inverse_digamma": (inverse_digamma, lambda y: 1 / psi(1, inverse_digamma(y))),
}


def check() -> None:
    """The closed derivatives against numerical ones, once each."""
    for name, (value, slope) in FUNCTIONS.items():
        numerical, closed = diff(value, mpf("1.25")), slope(mpf("1.25"))
        assert abs(numerical / closed - 1) < mpf("1e-20"), name


def main() -> None:
    check()
    tables = {
        name: [[x.hex(), *(nstr(f(mpf(x)), 45) for f in FUNCTIONS[name])] for x in xs]
        for name, xs in arguments().items()
    }
    lines = [f'"{name}": [\n' + ",\n".join(json.dumps(row) for row in rows) + "\n]" for name, rows in tables.items()]
    TARGET.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
