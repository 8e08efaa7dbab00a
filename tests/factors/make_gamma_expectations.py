"""Write the reference values of `test_gamma_expectations.py`: tests/factors/gamma_expectations.json.

    python tests/factors/make_gamma_expectations.py

Each row is (a, b, F, dF/da, dF/db) for F(a, b) = E log gamma(s), s ~ Gamma(a, rate b): a and b as exact hexadecimal
floats, the rest to 50 digits by mpmath. The integrals are over x = log s, from where the density has fallen below
1e-60, with what vanishes on the left end of the line subtracted in closed form. Source: knowles2012thesis.
"""

from __future__ import annotations

import json
from pathlib import Path

from mpmath import digamma, exp, log, loggamma, mp, mpf, nstr, polygamma, quad, sqrt

TARGET = Path(__file__).with_name("gamma_expectations.json")
DIGITS, SPARE = 50, 15
SHAPES, RATES = (1e-2, 0.1, 1.0, 10.0, 1e3, 1e5), (0.1, 1.0, 10.0)


def expectations(a: mpf, b: mpf) -> tuple[mpf, mpf, mpf]:
    """F and its derivatives: dF/da = E (log(b s) - digamma(a)) log gamma(s), dF/db = -E s digamma(s) / b."""
    constant = a * log(b) - loggamma(a)
    mean = digamma(a) - log(b)  # of x
    square = polygamma(1, a) + mean**2

    def integral(function):
        return quad(lambda x: exp(a * x - b * exp(x) + constant) * function(x), panels(a, b))

    value = integral(lambda x: loggamma(1 + exp(x))) - mean
    crossed = integral(lambda x: x * loggamma(1 + exp(x))) - square
    slope = integral(lambda x: exp(x) * digamma(1 + exp(x))) - 1
    return value, crossed - mean * value, -slope / b


def panels(a: mpf, b: mpf) -> list[mpf]:
    """Panels around the peak of the density in x = log s, none wide where it moves."""
    end = 4 * (DIGITS + SPARE)  # nats below the peak, and beyond
    peak, width = log(a / b), 1 / sqrt(a)
    left = [peak - t * width for t in (0.5, 1, 2, 4, 8, 16)] + [peak - t / a for t in (1, 8, 32, end)]
    right = [log((a + t * sqrt(a) + t * t) / b) for t in (0, 0.5, 1, 2, 4, 8, 16)]
    lowest = min(peak - end / a, peak - 25 * width)
    return sorted({lowest, *(x for x in left if x > lowest), *right})


def main() -> None:
    mp.dps = DIGITS + SPARE
    rows = []
    for a in SHAPES:
        for b in RATES:
            found = expectations(mpf(a), mpf(b))
            rows.append([float.hex(a), float.hex(b), *(nstr(x, DIGITS) for x in found)])
    TARGET.write_text(json.dumps(rows, indent=0) + "\n")


if __name__ == "__main__":
    main()
