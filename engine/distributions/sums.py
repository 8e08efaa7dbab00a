"""Linear arguments of one term that are made of the same Gaussian numbers: what they share, and what each adds.

The mean and the spread of an outcome may come from the same coefficients. Numbers that depend on each other are written
as u_i = mean_i + sum_{j <= i} L_ij r_j with independent r_j around zero: L D L^T is their covariance.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp

from ...compiler.language.atoms import atom_key
from ...compiler.language.nodes import Apply, Expr, Let, Random, inside
from ...factors.arrays import Array
from ...factors.errors import UnsupportedError
from ...factors.moments import Real
from ..values.evaluate import known
from ..values.moments import moments
from ..values.plated import Placed, mapped
from ..values.scope import Scope
from .formula import has_formula

Row = tuple[Placed, list[tuple[tuple, Placed, Placed]]]
_CERTAIN = 1e-13  # the share of a variance that is none


class DependentSums:
    """Those of `exprs`, each linear in Gaussian beliefs, that depend on another one of them."""

    def __init__(self, exprs: Sequence[Expr], scope: Scope) -> None:
        self._scope = scope
        names = [self._variables(expr) for expr in exprs]
        shared = [e for i, e in enumerate(exprs) if any(names[i] & other for other in names[:i] + names[i + 1 :])]
        self._shared = {atom_key(expr) for expr in shared}
        parts = {atom_key(part): part for part in map(self._inner, shared)}
        self._rows: dict[tuple, Row] = {}
        self._unknown: set[tuple] = set()
        if len(parts) > 1:
            try:
                self._rows = self._triangular(parts)
            except UnsupportedError:  # there is no rule for a covariance of them
                self._unknown = set(parts)

    def opened(self, expr: Expr) -> Apply | None:
        """An expression that is shared, as an operation of which one argument alone is random; None for any other."""
        return self._single(expr) if atom_key(expr) in self._shared else None

    def rows(self, expr: Expr) -> Row | None:
        """The mean of an expression and its shares of independent numbers, if it depends on another one."""
        return self._rows.get(atom_key(expr))

    def unknown(self, expr: Expr) -> bool:
        """Whether it depends on another one in a way that no rule tells."""
        return atom_key(expr) in self._unknown

    def _variables(self, expr: Expr) -> set[str]:
        """The variables of an expression; those of a joint belief by its name."""
        found = [node for node in inside([expr]) if isinstance(node, Random) and not known(node, self._scope)]
        joints = [self._scope.joint_of(node) for node in found]
        return {joint.variable.name if joint else node.name for node, joint in zip(found, joints, strict=True)}

    def _single(self, expr: Expr) -> Apply | None:
        if not isinstance(expr, Apply) or expr.op == "power" or not has_formula(expr):
            return None
        return expr if sum(not known(part, self._scope) for part in expr.args) == 1 else None

    def _inner(self, expr: Expr) -> Expr:
        """What is random in an expression that shifts and scales it; itself otherwise."""
        while isinstance(expr, Let) or self._single(expr) is not None:
            random = [expr.expression] if isinstance(expr, Let) else [a for a in expr.args if not known(a, self._scope)]  # type: ignore[attr-defined]
            expr = random[0]
            self._shared.add(atom_key(expr))
        return expr

    def _triangular(self, parts: dict[tuple, Expr]) -> dict[tuple, Row]:
        keys = list(parts)
        mean = {key: mapped(lambda m: m.mean, self._moments(expr)) for key, expr in parts.items()}
        left: dict[tuple[tuple, tuple], Placed] = {}
        for i, a in enumerate(keys):
            for b in keys[: i + 1]:
                left[a, b] = self._covariance(parts[a], parts[b])
        rows: dict[tuple, Row] = {key: (mean[key], []) for key in keys}
        whole = {key: left[key, key] for key in keys}
        for j, b in enumerate(keys):
            pivot = mapped(lambda v, w: jnp.maximum(v, _CERTAIN * w), left[b, b], whole[b])
            # A part without variance, such as an inner product with zeros, shares nothing.
            share = {a: mapped(_ratio, left[a, b], pivot) for a in keys[j + 1 :]}
            one = Placed(jnp.ones(()), ())
            for a in keys[j:]:
                rows[a][1].append((("rest", b), share.get(a, one), pivot))
            for i, a in enumerate(keys[j + 1 :], j + 1):
                for c in keys[j + 1 : i + 1]:
                    left[a, c] = mapped(lambda v, s, t, d: v - s * t * d, left[a, c], share[a], share[c], pivot)
        return rows

    def _moments(self, expr: Expr) -> Placed:
        return moments(expr, self._scope, "real")

    def _covariance(self, a: Expr, b: Expr) -> Placed:
        if a is b:
            return mapped(lambda m: m.variance, self._moments(a))
        if not self._variables(a) & self._variables(b):
            return Placed(jnp.zeros(()), ())
        return mapped(_polarised, self._moments(a + b), self._moments(a - b))


def _polarised(total: Real, difference: Real) -> Array:
    return 0.25 * (total.variance - difference.variance)


def _ratio(covariance: Array, variance: Array) -> Array:
    return jnp.where(variance > 0.0, covariance / jnp.where(variance > 0.0, variance, 1.0), 0.0)
