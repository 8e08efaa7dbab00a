"""Real expressions as polynomials: sums of products of data and of random atoms.

An atom is anything random that is not a sum or product: a variable, an element of one, an inner product, an
exponential, a logarithm, a maximum. Quotients and powers are products of atoms with integer exponents.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable

import numpy as np

from ..factors.domains import real
from ..factors.domains import vector as vector_of
from ..factors.errors import UnsupportedError
from .expressions import Apply, Constant, Expr, Gather, Let, Random, parents, union_plates, unnamed

Monomial = tuple[tuple[Expr, ...], tuple[Expr, ...]]  # data factors, random atoms
ONE = Constant(np.array(1.0), (), real)
MINUS_ONE = Constant(np.array(-1.0), (), real)
LONGEST = 64  # terms of a power that is multiplied out


def atom_key(expr: Expr) -> tuple:
    """Equal for atoms that are the same random number in every instance."""
    if isinstance(expr, Let):
        return atom_key(expr.expression)
    if isinstance(expr, (Gather, Apply)):
        head = ("gather",) if isinstance(expr, Gather) else (expr.op, expr.options)
        return (*head, *(atom_key(child) for child in parents(expr)))
    return (id(expr),)


def powers(atoms: tuple[Expr, ...]) -> dict[tuple, tuple[Expr, int]]:
    """The bases of a product of atoms by key, with their exponents; those that cancel are left out."""
    found: dict[tuple, tuple[Expr, int]] = {}
    for atom in atoms:
        base, sign = base_of(atom)
        key = atom_key(base)
        found[key] = (base, found.get(key, (base, 0))[1] + sign)
    return {key: power for key, power in found.items() if power[1] != 0}


def base_of(atom: Expr) -> tuple[Expr, int]:
    """An atom as a base and its exponent, 1 or -1: a reciprocal is an atom."""
    return (atom.args[1], -1) if isinstance(atom, Apply) and atom.op == "divide" else (atom, 1)


def monomials(expr: Expr, known: Callable[[Expr], bool]) -> list[Monomial]:
    """`expr` as a list of monomials, those with the same atoms merged only if their data factors are.

    An atom to the power n is n times in its monomial. `known` tells what counts as data. Raises UnsupportedError for
    powers that have no variance, and for atoms that are dependent.
    """
    found = _with_one_direction(expand(expr, known), known)
    for _, atoms in found:
        for base, exponent in powers(atoms).values():
            _check_power(expr, base, exponent, known)
    _check_independent(expr, found)
    return found


def _check_power(expr: Expr, base: Expr, exponent: int, known: Callable[[Expr], bool]) -> None:
    """Positive variables have all powers in closed form, and probabilities all positive ones; Gaussians squares."""
    if exponent == 1 or (isinstance(base, Apply) and base.op == "exp"):
        return
    kind, variable = base.domain.kind, not isinstance(base, Apply)
    if variable and (kind == "positive" or (kind == "unit" and exponent > 0)):
        return
    if exponent == 2 and kind == "real" and (variable or is_projection(base, known)):
        return
    if exponent < 0:
        raise UnsupportedError(
            f"'{expr}' divides by '{base}', of which 1 / x has no moments: it may be zero, or its distribution is not "
            "known. Divide by a positive variable, such as a gamma, or by cv.exp of a real expression."
        )
    raise UnsupportedError(
        f"'{expr}' has '{base}' to the power {exponent}, whose variance is not known in closed form. Squares of "
        "Gaussian variables are, and all powers of positive ones and of cv.exp: introduce a second variable, or use "
        "cv.exp of a real one."
    )


def is_projection(atom: Expr, known: Callable[[Expr], bool]) -> bool:
    """An inner product of a random vector with data, which is Gaussian as the vector is."""
    return isinstance(atom, Apply) and atom.op == "dot" and any(known(arg) for arg in atom.args)


def expand(expr: Expr, known: Callable[[Expr], bool]) -> list[Monomial]:
    """`expr` as a list of monomials, whatever their powers and however their atoms depend on each other."""
    if known(expr):
        return [((expr,), ())]
    if isinstance(expr, Let):
        return expand(expr.expression, known)
    if not isinstance(expr, Apply):
        return [((), (expr,))]
    left, right = expr.args[0], expr.args[-1]
    match expr.op:
        case "add":
            return expand(left, known) + expand(right, known)
        case "subtract":
            return expand(left, known) + _scaled(MINUS_ONE, expand(right, known))
        case "negate":
            return _scaled(MINUS_ONE, expand(left, known))
        case "divide":
            return _product(expand(left, known), [_reciprocal(right, known)])
        case "multiply":
            return _product(expand(left, known), expand(right, known))
        case "power":
            return _power(expr, known)
        case "log":
            return _logarithm(left, known)
        case "sum":
            return summed(expr, expand(left, known), known)
        case "dot":
            return _stacked(left, right, known) or _stacked(right, left, known) or [((), (expr,))]
    return [((), (expr,))]


def _product(left: list[Monomial], right: list[Monomial]) -> list[Monomial]:
    return [(c + d, a + b) for c, a in left for d, b in right]


def _power(expr: Apply, known: Callable[[Expr], bool]) -> list[Monomial]:
    """Positive powers of sums are multiplied out, as long as they are short."""
    (base,), exponent = expr.args, expr.option("exponent")
    if exponent < 0:
        return functools.reduce(_product, [[_reciprocal(base, known)]] * -exponent)
    parts = expand(base, known)
    if len(parts) ** exponent > LONGEST:
        return [((), (base,) * exponent)]
    return functools.reduce(_product, [parts] * exponent)


def _reciprocal(expr: Expr, known: Callable[[Expr], bool]) -> Monomial:
    """1 / expr as a monomial: the reciprocals of its factors."""
    if known(expr):
        return ((1.0 / expr,), ())
    if isinstance(expr, Let):
        return _reciprocal(expr.expression, known)
    if isinstance(expr, Apply) and expr.op == "multiply":
        (c, a), (d, b) = (_reciprocal(arg, known) for arg in expr.args)
        return c + d, a + b
    if isinstance(expr, Apply) and expr.op == "divide":
        (c, a), numerator = _reciprocal(expr.args[0], known), expand(expr.args[1], known)
        if len(numerator) == 1:
            return c + numerator[0][0], a + numerator[0][1]
    if isinstance(expr, Apply) and expr.op == "exp":
        return (), (Apply("exp", (-expr.args[0],), (), expr.plates, expr.domain),)
    if isinstance(expr, Apply) and expr.op == "power" and expr.option("exponent") > 0:
        c, a = _reciprocal(expr.args[0], known)
        return c * expr.option("exponent"), a * expr.option("exponent")
    return (), (Apply("divide", (ONE, expr), (), expr.plates, expr.domain),)


def _logarithm(expr: Expr, known: Callable[[Expr], bool]) -> list[Monomial]:
    """log of a product is a sum, log of exp(g) is g."""
    if isinstance(expr, Let) and not known(expr):
        return _logarithm(expr.expression, known)
    if isinstance(expr, Apply) and not known(expr):
        if expr.op == "exp":
            return expand(expr.args[0], known)
        if expr.op in ("multiply", "divide") and all(arg.domain.kind in ("positive", "unit") for arg in expr.args):
            first, second = (_logarithm(arg, known) for arg in expr.args)
            return first + (second if expr.op == "multiply" else _scaled(MINUS_ONE, second))
        if expr.op == "power" and expr.args[0].domain.kind in ("positive", "unit"):
            return _scaled(
                Constant(np.array(float(expr.option("exponent"))), (), real), _logarithm(expr.args[0], known)
            )
    node = Apply("log", (expr,), (), expr.plates, real)
    return [((node,), ())] if known(expr) else [((), (node,))]


def _stacked(stack: Expr, other: Expr, known: Callable[[Expr], bool]) -> list[Monomial] | None:
    """The inner product of data with numbers that were stacked: their weighted sum."""
    stack = unnamed(stack)
    if not (isinstance(stack, Apply) and stack.op == "stack" and known(other)) or "over" in dict(stack.options):
        return None
    return [part for i, arg in enumerate(stack.args) for part in _scaled(coordinate(other, i), expand(arg, known))]


def coordinate(vector: Expr, position: int) -> Expr:
    """One coordinate of a vector: its inner product with a unit vector."""
    size = vector.domain.size
    return Apply("dot", (vector, Constant(np.eye(size)[position], (), vector_of(size))), (), vector.plates, real)


def _with_one_direction(found: list[Monomial], known: Callable[[Expr], bool]) -> list[Monomial]:
    """Inner products of one random vector with several data as a single one: they are dependent, their sum is not."""
    groups: dict[tuple, list[tuple[tuple[Expr, ...], Expr, Expr]]] = {}
    rest = []
    for coefficients, atoms in found:
        if len(atoms) == 1 and is_projection(atoms[0], known):
            left, right = parents(atoms[0])
            data, own = (left, right) if known(left) else (right, left)
            groups.setdefault(atom_key(own), []).append((coefficients, own, data))
        else:
            rest.append((coefficients, atoms))
    for group in groups.values():
        if len(group) == 1:
            coefficients, own, data = group[0]
        else:
            parts = [functools.reduce(operator.mul, c, d) for c, _, d in group]
            coefficients, own, data = (), group[0][1], functools.reduce(operator.add, parts)
        rest.append((coefficients, (Apply("dot", (own, data), (), union_plates(own.plates, data.plates), real),)))
    return rest


def _scaled(factor: Expr, terms: list[Monomial]) -> list[Monomial]:
    return [((factor, *coefficients), atoms) for coefficients, atoms in terms]


def variables(expr: Expr) -> set[Random]:
    """All random variables below `expr`, through lets but not through their own definitions."""
    if isinstance(expr, Random):
        return {expr}
    return set().union(*(variables(child) for child in parents(expr))) if parents(expr) else set()


def _check_independent(expr: Expr, found: list[Monomial]) -> None:
    """Atoms with different keys must not share a variable, except as different elements of one plated variable."""
    atoms = {key: base for _, atoms in found for key, (base, _) in powers(atoms).items()}
    owners: dict[Random, Expr] = {}
    for atom in atoms.values():
        for variable in variables(atom):
            other = owners.setdefault(variable, atom)
            elements = isinstance(_strip(other), Gather) and isinstance(_strip(atom), Gather)
            if other is not atom and not elements:
                raise UnsupportedError(
                    f"'{expr}' uses '{variable.name}' in two different ways, '{other}' and '{atom}', "
                    "whose covariance has no rule. Write it with one of them, for example one cv.dot with the summed "
                    "vector."
                )


def curved(exprs: Iterable[Expr], known: Callable[[Expr], bool]) -> list[str]:
    """The parts of expressions whose moments are not linear in the statistics of what is random in them.

    Those are powers, quotients, logarithms and maxima, positive variables that are read as real numbers, and sums over
    a plate, or vectors made of it, which couple the elements of one variable that are updated together.
    """
    found: dict[str, None] = {}
    stack = list(exprs)
    while stack:
        node = stack.pop()
        if known(node) or isinstance(node, Random):
            continue
        if isinstance(node, Apply):
            random = [arg for arg in node.args if not known(arg)]
            couples = node.op == "sum" or (node.op == "stack" and "over" in dict(node.options))
            bends = node.op in ("power", "log", "max") or (node.op == "divide" and not known(node.args[1]))
            if couples or bends:
                found[str(node)] = None
            elif node.domain.kind in ("real", "vector"):
                found |= {f"{arg} as a real number": None for arg in random if _is_positive(arg)}
        stack.extend(parents(node))
    return list(found)


def _is_positive(expr: Expr) -> bool:
    return expr.domain.kind in ("positive", "unit") and not isinstance(expr, Apply)


def _strip(expr: Expr) -> Expr:
    while isinstance(expr, Apply) and expr.op in ("dot", "log", "exp"):
        expr = next((arg for arg in expr.args if isinstance(arg, (Gather, Random))), expr.args[0])
    return expr


from .sums import summed  # noqa: E402 - sums hold polynomials, and polynomials sums
