"""Derive the polynomials of `factors/special/__init__.py` and write `factors/special/coefficients.py`.

    python tests/factors/make_special_coefficients.py

Each smooth function is mapped to [-1, 1], interpolated at Chebyshev nodes with 80 digits, truncated where the remaining
Chebyshev coefficients are below the rounding error of the target precision, and rewritten in powers for Horner's rule.
Powers are safe here because every series converges faster than (1 + sqrt 2)^-n; the printed amplification, the largest
factor by which rounding errors can grow, confirms it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from mpmath import atanh, cos, erfc, exp, log, loggamma, mp, mpf, pi, psi, sqrt

Function = Callable[[mpf], mpf]

TARGET = Path(__file__).parents[2] / "factors" / "special" / "coefficients.py"
TOLERANCES = (mpf("3e-17"), mpf("1e-8"))  # float64, float32
NODES = 60
PIVOT = mpf(4)  # t = PIVOT (1 + u) / (1 - u) takes [-1, 1) to [0, infinity); 4 needs the fewest terms
SHIFT = mpf(4)  # the gamma family is expanded in 1 / z for z >= SHIFT

mp.dps = 80


def chebyshev(function: Function) -> list[mpf]:
    """Chebyshev coefficients of the interpolant on [-1, 1]."""
    angles = [(2 * j + 1) * pi / (2 * NODES) for j in range(NODES)]
    values = [function(cos(angle)) for angle in angles]
    series = [2 * sum(v * cos(k * a) for v, a in zip(values, angles, strict=True)) / NODES for k in range(NODES)]
    return [series[0] / 2, *series[1:]]


def truncate(series: list[mpf], tolerance: mpf) -> list[mpf]:
    """Shortest head whose dropped tail is below `tolerance` relative to the leading coefficient."""
    tail, keep = mpf(0), len(series)
    while tail + abs(series[keep - 1]) < tolerance * abs(series[0]):
        keep -= 1
        tail += abs(series[keep])
    return series[:keep]


def to_powers(series: list[mpf]) -> list[mpf]:
    """Coefficients of 1, u, u^2, ... of a Chebyshev series."""
    size = len(series)
    previous, current = [mpf(1)] + [mpf(0)] * size, [mpf(0), mpf(1)] + [mpf(0)] * (size - 1)
    total = [mpf(0)] * (size + 1)
    for coefficient in series:
        total = [a + coefficient * b for a, b in zip(total, previous, strict=True)]
        following = [2 * a - b for a, b in zip([mpf(0), *current[:-1]], previous, strict=True)]
        previous, current = current, following
    return total[:size]


def on_half_line(function: Function) -> Function:
    return lambda u: function(PIVOT * (1 + u) / (1 - u))


def on_tail(function: Function) -> Function:
    """u in [-1, 1) to z = 2 SHIFT / (1 - u) in [SHIFT, infinity)."""
    return lambda u: function(2 * SHIFT / (1 - u))


def on_interval(function: Function, top: mpf) -> Function:
    return lambda u: function(top * (1 + u) / 2)


def inverse_mills(t: mpf) -> mpf:
    """Normal density over upper tail probability."""
    return sqrt(2 / pi) * exp(-t * t / 2) / erfc(t / sqrt(mpf(2)))


def excess(t: mpf) -> mpf:
    return (inverse_mills(t) - t) * (t + PIVOT)


def residual_variance(t: mpf) -> mpf:
    h = inverse_mills(t)
    return (1 - h * (h - t)) * (t + PIVOT) ** 2


def binet(z: mpf) -> mpf:
    return (loggamma(z) - (z - mpf(1) / 2) * log(z) + z - log(2 * pi) / 2) * z


def atanh_remainder(z: mpf) -> mpf:
    """(2 atanh(s) - 2 s) / s^3 at z = s^2, so that log((1 + s) / (1 - s)) = 2 s + s z P(z)."""
    s = sqrt(z)
    return 2 * (atanh(s) / s - 1) / z


LOG_TOP = (3 - 2 * sqrt(mpf(2))) ** 2  # s^2 for a mantissa in [sqrt 1/2, sqrt 2]
LOG1P_TOP = mpf(1) / 9  # s^2 for log(1 + y), 0 <= y <= 1

POLYNOMIALS: dict[str, tuple[str, Function]] = {
    "EXCESS": ("(h(t) - t) (t + 4), h = normal density / upper tail; u = 1 - 8 / (t + 4)", on_half_line(excess)),
    "VARIANCE": ("(1 - h (h - t)) (t + 4)^2; u = 1 - 8 / (t + 4)", on_half_line(residual_variance)),
    "LGAMMA": ("(lgamma(z) - Stirling's leading terms) z; u = 1 - 8 / z, z >= 4", on_tail(binet)),
    "DIGAMMA": ("(log z - digamma(z)) z; u = 1 - 8 / z, z >= 4", on_tail(lambda z: (log(z) - psi(0, z)) * z)),
    "TRIGAMMA": ("trigamma(z) z; u = 1 - 8 / z, z >= 4", on_tail(lambda z: psi(1, z) * z)),
    "TETRAGAMMA": ("-tetragamma(z) z^2; u = 1 - 8 / z, z >= 4", on_tail(lambda z: -psi(2, z) * z * z)),
    "LOG": (
        "(2 atanh(s) / s - 2) / s^2, |s| <= 3 - 2 sqrt 2; u = 2 s^2 / (3 - 2 sqrt 2)^2 - 1",
        on_interval(atanh_remainder, LOG_TOP),
    ),
    "LOG1P": ("(2 atanh(s) / s - 2) / s^2, 0 <= s <= 1/3; u = 18 s^2 - 1", on_interval(atanh_remainder, LOG1P_TOP)),
}


def rows(values: list[float]) -> str:
    cells = [repr(value) for value in values]
    return "".join(f"        {', '.join(cells[i : i + 4])},\n" for i in range(0, len(cells), 4))


def block(name: str, meaning: str, function: Function) -> str:
    series = chebyshev(function)
    tables = []
    for tolerance in TOLERANCES:
        powers = to_powers(truncate(series, tolerance))
        amplification = sum(abs(c) for c in powers) / min(abs(function(mpf(u))) for u in (-0.999, 0, 0.999))
        print(f"{name:12s} degree {len(powers) - 1:3d}  amplification {float(amplification):.2f}")
        tables.append("    (\n" + rows([float(c) for c in reversed(powers)]) + "    ),\n")
    return f"# {meaning}\n{name}: Table = (\n{''.join(tables)})\n"


def main() -> None:
    head = (
        '"""Polynomial coefficients of `factors/special/__init__.py`, highest power first, as (float64, float32) '
        "tables.\n\n"
        'Generated by tests/factors/make_special_coefficients.py: edit that script, not this file.\n"""\n\n'
        "# fmt: off\n\n"
        "Table = tuple[tuple[float, ...], tuple[float, ...]]\n\n"
    )
    TARGET.write_text(head + "\n".join(block(name, *entry) for name, entry in POLYNOMIALS.items()))


if __name__ == "__main__":
    main()
