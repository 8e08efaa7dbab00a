"""Columns of data far from zero beside an intercept: what a Gaussian belief about both loses, said before a run.

With a column of mean m and standard deviation s, the precision matrix of an intercept and a slope holds 1 and
1 - (s / m)^2 where it should tell them apart: of sixteen digits 2 log10(m / s) are lost, in every kind of belief and
factor alike.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float

from ...compiler.algebra.known import known_in
from ...compiler.algebra.linear import linear_term
from ...compiler.data.sparse_matrices import is_paged, is_sparse
from ...compiler.graph import Plan
from ...compiler.language.atoms import ONE
from ...compiler.language.monomials import expand
from ...compiler.language.nodes import Expr, Input, Random, inside, parents
from ...factors.arrays import Array
from ...factors.errors import DataError
from ...factors.factor import Switch, Term
from ..support.warn import warn
from ..values.evaluate import known
from ..values.scope import Scope
from ..values.sparse_rows import Pages
from .values_of_data import value_of_data

DIGITS = 16.0
READ = 4096  # rows of a file that are looked at before a run
DOUBTFUL, HOPELESS = 6.0, 3.0  # digits left: fewer than a run needs to converge, and fewer than an answer needs


Form = tuple[str, list[Expr]]  # whose sum it is, and the data that multiply each random number in it


def check_centred(forms: list[Form], data: Mapping[str, Array], sizes: dict[str, int]) -> None:
    """Raises DataError where data beside an intercept are so far from zero that no digit of the slope would be right.

    Warns where few would be. `forms` are those of `linear_forms`, `data` inputs and observations without missing
    entries.
    """
    scope = Scope(sizes, {name: array for name, array in data.items() if not is_paged(array)}, {})
    for name, multipliers in forms:
        columns = [_columns(multiplier, data, scope) for multiplier in multipliers]
        if not any(np.any((sd == 0.0) & (mean > 0.0)) for mean, sd in columns):
            continue  # no intercept
        lost = [_lost(mean, sd) for mean, sd in columns]
        worst = int(np.argmax(lost))
        if DIGITS - lost[worst] < HOPELESS:
            raise DataError(_sentence(name, multipliers[worst], lost[worst]))
        if DIGITS - lost[worst] < DOUBTFUL:
            warn(_sentence(name, multipliers[worst], lost[worst]))


def _columns(multiplier: Expr, data: Mapping[str, Array], scope: Scope) -> tuple[np.ndarray, np.ndarray]:
    """The size of the mean and the standard deviation over rows, by coordinate of a vector."""
    given = (data[leaf.name] for leaf in inside([multiplier]) if isinstance(leaf, Input))
    paged = [array for array in given if is_paged(array)]
    if paged and is_sparse(paged[0]):  # a number that multiplies it changes mean and deviation alike
        return _columns_of_sparse(paged[0])
    if paged:  # rows of a file: the first ones tell
        rows: Any = paged[0]
        return _of_columns(rows.numbers(rows.start, rows.start + READ))
    if not known(multiplier, scope):
        return np.zeros(1), np.zeros(1)
    if isinstance(multiplier, Input) and not isinstance(scope.data[multiplier.name], Pages):
        array = scope.data[multiplier.name]
    else:
        array = np.asarray(value_of_data(multiplier, scope), float)
    return _of_columns(array.reshape(-1, array.shape[-1] if multiplier.domain.is_vector else 1))


def _of_columns(rows: Float[np.ndarray, "row column"]) -> tuple[np.ndarray, np.ndarray]:
    same = rows.min(0) == rows.max(0)  # exactly: the rounding of a mean is no spread
    mean = rows.mean(0, dtype=float)
    parts = np.array_split(rows, max(1, rows.size >> 20))  # so that no other array is as large
    squares = sum(np.square(part - mean).sum(0) for part in parts)
    return np.abs(mean), np.where(same, 0.0, np.sqrt(squares / len(rows)))


def _columns_of_sparse(rows: Any) -> tuple[np.ndarray, np.ndarray]:
    """The same of a matrix in compressed rows, whose zeros are counted and not made."""
    (count, width), mean = rows.shape, np.asarray(rows.mean(axis=0)).ravel()
    stored = np.bincount(rows.indices, minlength=width)
    squares = np.bincount(rows.indices, (rows.data - mean[rows.indices]) ** 2, minlength=width)
    same = rows.min(axis=0).toarray().ravel() == rows.max(axis=0).toarray().ravel()
    sd = np.sqrt((squares + (count - stored) * mean**2) / count)
    return np.abs(mean), np.where(same, 0.0, sd)


def _lost(mean: Float[np.ndarray, " column"], sd: Float[np.ndarray, " column"]) -> float:
    """The digits that the column farthest from zero loses."""
    varies = sd > 0.0
    return float(2.0 * np.log10(np.max(mean[varies] / sd[varies], initial=1.0)))


def _sentence(name: str, multiplier: Expr, lost: float) -> str:
    names = [node.name for node in inside([multiplier]) if isinstance(node, Input)]
    what, x = (f"Input '{names[0]}'", names[0]) if len(set(names)) == 1 else (f"The data '{multiplier}'", "x")
    return (
        f"{what}: its mean is {10.0 ** (0.5 * lost):.0e} of its standard deviations from zero, beside an intercept in "
        f"'{name}'. Their beliefs lose {min(DIGITS, lost):.0f} of the 16 digits of a number, so that a slope would be "
        f"wrong or not converge. Centre it: give {x} - {x}.mean(), which makes the intercept the value at the mean."
    )


def linear_forms(graph: Plan) -> list[Form]:
    """The sums of two or more multiples of random numbers in factors, constraints and observed expressions."""
    is_known, found = known_in(graph), []
    for name, root in _roots(graph):
        stack = [root]
        while stack:
            node = stack.pop()
            if is_known(node) or isinstance(node, Random):
                continue
            if not node.domain.is_real:
                stack.extend(parents(node))
                continue
            multipliers = []
            for coefficients, atoms in expand(node, is_known):
                term = linear_term(atoms[0], coefficients, is_known) if len(atoms) == 1 else None
                if term is None:
                    stack += [child for atom in atoms for child in parents(atom)]
                    continue
                direction = () if term.direction is None else (term.direction,)
                parts = (*term.coefficients, *direction)
                multipliers.append(functools.reduce(operator.mul, parts) if parts else ONE)
            if multipliers and any(isinstance(leaf, Input) for leaf in inside(multipliers)):
                found.append((name, multipliers))
    return found


def _roots(graph: Plan) -> list[tuple[str, Expr]]:
    model = graph.model
    found = list(model.constraints.items())
    found += [(name, node.expression) for name, node in model.lets.items() if name in graph.observed]
    for name, node in model.randoms.items():
        terms = node.term.terms if isinstance(node.term, Switch) else (node.term,)
        found += [(name, arg) for term in terms if isinstance(term, Term) for arg in term.args.values()]
    return found
