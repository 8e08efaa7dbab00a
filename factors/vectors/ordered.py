"""Independent draws in increasing order, one after the other: the first, and each gap above the one before.

Of n independent draws with density p and survival function S the smallest has the density n p(x) S(x)^(n - 1), and the
next one above c that of the smallest of the n - 1 draws that are left, given that they lie above c.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping

import jax
import jax.numpy as jnp
import numpy as np

from ..arrays import Argument, Array
from ..calls import call_checked
from ..domains import positive, real
from ..errors import ModelError
from ..factor import Factor, Nameless, Term
from ..real.gaussian import factor as gaussian
from ..real.student_t import factor as student_t
from ..special import TINY, log_ndtr


def _gaussian_survival(x: Array, mean: Array, precision: Array) -> Array:
    return log_ndtr((mean - x) * jnp.sqrt(precision))


def _student_survival(x: Array, dof: Array, mean: Array, scale: Array) -> Array:
    z = (x - mean) / scale
    tail = 0.5 * jax.scipy.special.betainc(0.5 * dof, 0.5, dof / (dof + z**2))
    return jnp.log(jnp.maximum(jnp.where(z > 0, tail, 1.0 - tail), TINY))


SURVIVAL: Mapping[Factor, Callable[..., Array]] = {gaussian: _gaussian_survival, student_t: _student_survival}
"""The logarithm of P(X > x) of the terms whose draws can be ordered."""


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Ordered(Nameless):
    """`size` independent draws of a term in increasing order: `Model.random` makes a vector of them."""

    called = "ordered vector"
    term: Term
    size: int

    def first(self) -> Term:
        """The smallest of all draws."""
        base = self.term.factor
        density = functools.partial(_log_first, base, self.size)
        name = f"smallest of {self.size} {base.name} draws"
        made = Factor(name, base.edges, lambda _: real, density, rules=base.rules, source=base.source)
        return Term(made, self.term.args)

    def gap(self, previous: Argument, left: int) -> Term:
        """The distance from the entry `previous` to the next one, the smallest of the `left` draws above it."""
        base = self.term.factor
        edges = {"previous": "real", **base.edges}
        density = functools.partial(_log_gap, base, left)
        name = f"gap to the smallest of {left} {base.name} draws"
        made = Factor(name, edges, lambda _: positive, density, rules=base.rules, source=base.source)
        return Term(made, {"previous": previous, **self.term.args})


@call_checked
def ordered(term: Argument, size: int) -> Ordered:
    """An increasing vector: `size` independent draws of a real term in order, with the density size! prod_k p(x_k).

    `term`: cv.gaussian(...) or cv.student_t(...); `size`: a positive integer. Returns what `Model.random` declares as
    an expression of domain vector(size), such as random cutpoints: its first entry is the variable "name[0]", the gaps
    are the positive variables "name[1] - name[0]" and so on. ModelError for another term, or a size that is no positive
    integer. Source: mccullagh1980ordinal.
    """
    if isinstance(term, Term) and "problem" in term.options:
        raise ModelError(term.options["problem"])
    if not isinstance(term, Term) or term.factor not in SURVIVAL:
        found = term.factor.name if isinstance(term, Term) else repr(term)
        raise ModelError(
            f"ordered() takes a term whose draws it can order; found {found}. Write cv.ordered(cv.gaussian(0.0, "
            "sd=5.0), size=4), or with cv.student_t(dof, mean, scale)."
        )
    if isinstance(size, bool) or not isinstance(size, (int, np.integer)) or size < 1:
        raise ModelError(f"ordered(): size={size!r} is no positive integer. Give the number of entries: size=4.")
    return Ordered(term, int(size))


def _log_first(base: Factor, count: int, out: Array, **arguments: Array) -> Array:
    density = base.log_density(out, **arguments)
    return jnp.log(count) + density + (count - 1) * SURVIVAL[base](out, **arguments)


def _log_gap(base: Factor, left: int, out: Array, previous: Array, **arguments: Array) -> Array:
    return _log_first(base, left, previous + out, **arguments) - left * SURVIVAL[base](previous, **arguments)
