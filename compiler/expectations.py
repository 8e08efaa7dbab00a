"""What VMP can average: which expressions have moments by the engine's rules, and where EP is the better choice.

The rules themselves are in engine/evaluate.py and engine/polynomials.py; tests hold the two rooms together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..factors import LINKS
from ..factors.errors import UnsupportedError
from ..factors.moments import BY_KIND
from .expressions import Apply, Expr, Gather, Let, Random, parents
from .polynomial import monomials, powers
from .sums import dependent

Known = Callable[[Expr], bool]
_LOGIC = ("and", "or", "not", "xor", "equal")
_CASTS = {("real", "sparse"), ("real", "positive"), ("real", "unit"), ("unit", "boolean")}  # (wanted, found)


def no_moments(exprs: Iterable[tuple[Expr, str]], known: Known) -> Expr | None:
    """The first expression whose moments no rule of VMP gives, each read as the given kind of domain."""
    return next((found for expr, kind in exprs if (found := _silent(expr, kind, known)) is not None), None)


def better_by_ep(exprs: Iterable[Expr], known: Known) -> str:
    """Why EP is tried before VMP where both have a rule; nothing where VMP comes first."""
    stack = list(exprs)
    while stack:
        node = stack.pop()
        if known(node) or isinstance(node, Random):
            continue
        if isinstance(node, Apply):
            below = node.args[-1] if node.op == "divide" else node.args[0]
            inverse = node.op == "divide" or (node.op == "power" and node.option("exponent") < 0)
            if inverse and not known(below) and below.domain.kind == "positive" and _powered(below) is not None:
                return f"{node} has no mean in VMP where the shape of the belief of {_powered(below)} is small"
            if node.op == "max":
                return f"{node} has a kink: EP is exact on both sides of it, where VMP averages over them"
        stack.extend(parents(node))
    return ""


def not_independent(exprs: Iterable[Expr], known: Known) -> str:
    """Why VMP, which takes the arguments of a factor for independent, is poor where two of them use one variable."""
    seen: set[tuple[Random, tuple[int, ...]]] = set()
    for expr in exprs:
        here = {element for element in _elements(expr) if not known(element[0])}
        if shared := seen & here:
            return f"two arguments use {min(v.name for v, _ in shared)}, which VMP would take for independent"
        seen |= here
    return ""


def _variable(expr: Expr) -> Random | None:
    """The variable that an expression is an element of."""
    while isinstance(expr, (Gather, Let)):
        expr = expr.source if isinstance(expr, Gather) else expr.expression
    return expr if isinstance(expr, Random) else None


def _powered(expr: Expr) -> Random | None:
    """The variable that an expression is a power of."""
    while isinstance(expr, Let) or (isinstance(expr, Apply) and expr.op == "power"):
        expr = expr.expression if isinstance(expr, Let) else expr.args[0]
    return _variable(expr)


def _silent(expr: Expr, kind: str, known: Known) -> Expr | None:
    if known(expr) or kind not in BY_KIND:
        return None
    if isinstance(expr, Random):
        return None if expr.domain.kind == kind or (kind, expr.domain.kind) in _CASTS else expr
    if isinstance(expr, Let):
        return _silent(expr.expression, kind, known)
    if isinstance(expr, Gather):
        return _silent(expr.source, kind, known)
    if not isinstance(expr, Apply):
        return None
    if expr.op in LINKS:
        return _silent(expr.args[0], "real", known)
    if kind in ("boolean", "unit"):
        return no_moments(((arg, "boolean") for arg in expr.args), known) if expr.op in _LOGIC else expr
    if kind == "positive":
        return _silent_positive(expr, known)
    if kind == "vector":
        return _silent_vector(expr, known)
    return _silent_real(expr, known) if kind == "real" else expr


def _silent_positive(expr: Apply, known: Known) -> Expr | None:
    """Products, quotients by variables and powers of variables have a mean and a mean logarithm."""
    if expr.op == "power":
        base = expr.args[0]
        fits = base.domain.kind == "positive" and _powered(base) is not None
        return None if fits else expr
    if expr.op not in ("multiply", "divide"):
        return expr
    below = expr.args[1]
    if expr.op == "divide" and not known(below) and _powered(below) is None:
        return expr
    if not (expr.op == "divide" and known(below)) and _shared(expr, known):
        return expr
    return no_moments(((arg, "positive") for arg in expr.args), known)


def _silent_vector(expr: Apply, known: Known) -> Expr | None:
    """Sums, multiples, products with a known matrix, and stacks of numbers have a mean and a covariance."""
    if expr.op in ("add", "subtract"):
        return expr if _shared(expr, known) else no_moments(((arg, "vector") for arg in expr.args), known)
    if expr.op in ("negate", "sum"):
        return _silent(expr.args[0], "vector", known)
    if expr.op == "matvec":
        return _silent(expr.args[1], "vector", known) if known(expr.args[0]) else expr
    if expr.op in ("multiply", "divide"):
        vector, number = expr.args if expr.args[0].domain.kind == "vector" else expr.args[::-1]
        number = 1.0 / number if expr.op == "divide" else number
        return expr if _shared(expr, known) else no_moments(((vector, "vector"), (number, "real")), known)
    if expr.op == "stack" and "over" in dict(expr.options) and dependent(expr.args[0], expr.option("over"), known):
        return expr
    if expr.op == "stack":
        return no_moments(((arg, "real") for arg in expr.args), known)
    return expr


def _silent_real(expr: Apply, known: Known) -> Expr | None:
    """Polynomials in independent atoms that have moments themselves."""
    try:
        parts = monomials(expr, known)
    except UnsupportedError:
        return expr
    atoms = {key: base for _, atoms in parts for key, (base, _) in powers(atoms).items()}
    return next((found for atom in atoms.values() if (found := _silent_atom(atom, known)) is not None), None)


def _silent_atom(atom: Expr, known: Known) -> Expr | None:
    if not isinstance(atom, Apply):
        kind = atom.domain.kind
        return _silent(atom, kind, known) if kind in ("real", "sparse", "positive", "unit") else atom
    if atom.op == "dot":
        return no_moments(((arg, "vector") for arg in atom.args), known)
    if atom.op in ("exp", "sum"):
        return _silent(atom.args[0], "real", known)
    if atom.op == "max":
        left, right = atom.args
        return no_moments(((e, "real") for e in (left, right, left - right)), known)
    if atom.op == "log":
        fits = _variable(atom.args[0]) is not None and atom.args[0].domain.kind in ("positive", "unit")
        return None if fits else atom
    return atom


def _shared(expr: Apply, known: Known) -> bool:
    """Whether two operands use one variable that is not indexed."""
    first, second = (set(filter(lambda v: not known(v), _whole(arg))) for arg in expr.args)
    return bool(first & second)


def _elements(expr: Expr) -> set[tuple[Random, tuple[int, ...]]]:
    """The variables of an expression, each with the nodes of the indices that choose its elements."""
    indices, base = [], expr
    while isinstance(base, Gather):
        indices.append(id(base.index))
        base = base.source
    if isinstance(base, Random):
        return {(base, tuple(indices))}
    return set().union(*map(_elements, parents(expr)))


def _whole(expr: Expr) -> set[Random]:
    if isinstance(expr, Random):
        return {expr}
    return set() if isinstance(expr, Gather) else set().union(*map(_whole, parents(expr)))
