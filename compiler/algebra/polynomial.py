"""Real expressions as polynomials that VMP can average: sums of products of data and of independent random atoms."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable

from ...factors import LINKS
from ...factors.arrays import Exponent
from ...factors.domains import real
from ...factors.errors import UnsupportedError
from ..language import operations as op
from ..language.atoms import Monomial, atom_key, base_of, powers, variables
from ..language.monomials import expand
from ..language.nodes import Apply, Expr, Gather, IsData, Random, applies, parents, union_plates

Rewrite = Callable[[list[Monomial]], list[Monomial]]


def monomials(expr: Expr, known: IsData, rewrite: Rewrite | None = None) -> list[Monomial]:
    """`expr` as a list of monomials, those with the same atoms merged only if their data factors are.

    An atom to the power n is n times in its monomial. `known` decides what counts as data. Raises UnsupportedError for
    powers that have no variance, and for atoms that are dependent: of the monomials as `rewrite` leaves them.
    """
    found = with_one_sum(with_one_direction(expand(expr, known), known))
    found = found if rewrite is None else rewrite(found)
    for _, atoms in found:
        for base, exponent in powers(atoms).values():
            _check_power(expr, base, exponent, known)
    _check_independent(expr, found)
    return found


def _check_power(expr: Expr, base: Expr, exponent: Exponent, known: IsData) -> None:
    """Positive variables have all powers in closed form, and probabilities all positive ones; Gaussians squares."""
    if exponent == 1 or applies(base, op.EXP):
        return
    domain, variable = base.domain, not isinstance(base, Apply)
    if variable and (domain.is_positive or (domain.is_unit and exponent > 0)):
        return
    if exponent == 2 and domain.is_real and (variable or is_projection(base, known)):
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


def is_projection(atom: Expr, known: IsData) -> bool:
    """An inner product of a random vector with data, which is Gaussian as the vector is."""
    return vector_of(atom, known) is not None


def vector_of(atom: Expr, known: IsData) -> Expr | None:
    """The random vector of an inner product with data; None for anything else."""
    if not applies(atom, op.DOT) or not any(known(arg) for arg in atom.args):
        return None
    left, right = atom.args
    return right if known(left) else left


def with_one_direction(found: list[Monomial], known: IsData) -> list[Monomial]:
    """Inner products of one random vector with several data as a single one: they are dependent, their sum is not."""
    groups: dict[tuple, list[tuple[tuple[Expr, ...], Expr, Expr]]] = {}
    rest = []
    for coefficients, atoms in found:
        own = vector_of(atoms[0], known) if len(atoms) == 1 else None
        if own is not None:
            data = next(arg for arg in parents(atoms[0]) if arg is not own)
            groups.setdefault(atom_key(own), []).append((coefficients, own, data))
        else:
            rest.append((coefficients, atoms))
    for group in groups.values():
        if len(group) == 1:
            coefficients, own, data = group[0]
        else:
            parts = [functools.reduce(operator.mul, c, d) for c, _, d in group]
            coefficients, own, data = (), group[0][1], functools.reduce(operator.add, parts)
        rest.append((coefficients, (Apply(op.DOT, (own, data), (), union_plates(own.plates, data.plates), real),)))
    return rest


def with_one_sum(found: list[Monomial]) -> list[Monomial]:
    """Sums over one plate that share a variable, one of them of products, as one sum: its terms have a covariance."""
    groups: dict[tuple, list[tuple[int, Expr]]] = {}
    for i, (coefficients, atoms) in enumerate(found):
        if len(atoms) == 1 and not coefficients and applies(own := atoms[0], op.SUM):
            groups.setdefault((own.option("over"), own.plates), []).append((i, own.args[0]))
    merged, gone = [], set()
    for (over, plates), members in groups.items():
        used = [set(variables(term)) for _, term in members]
        shared = len(set().union(*used)) < sum(map(len, used))
        if shared and max(map(len, used)) > 1:
            total = functools.reduce(operator.add, (term for _, term in members))
            merged.append(((), (Apply(op.SUM, (total,), (("over", over),), plates, real),)))
            gone |= {i for i, _ in members}
    return [*(monomial for i, monomial in enumerate(found) if i not in gone), *merged]


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
                    f"whose covariance has no rule. {_instead(other, atom)}"
                )


def _instead(first: Expr, second: Expr) -> str:
    """How to write what uses one variable in two ways."""
    if all(applies(base_of(atom)[0], op.DOT) for atom in (first, second)):
        return "Write it with one cv.dot with the summed vector."
    return "Under EP its integral is by quadrature: use method='ep' for this factor, or write it with one of them."


def curved(exprs: Iterable[Expr], known: IsData) -> list[str]:
    """The parts of expressions whose moments are not linear in the statistics of what is random in them.

    Those are powers, quotients, logarithms and maxima, covariances, positive variables that are read as real numbers,
    and sums over a plate, or vectors made of it, which couple the elements of one variable that are updated together.
    """
    found: dict[str, None] = {}
    stack = list(exprs)
    while stack:
        node = stack.pop()
        if known(node) or isinstance(node, Random):
            continue
        if applies(node, op.INVERSE, op.COVARIANCE):
            found[str(node)] = None
            continue
        if isinstance(node, Apply):
            random = [arg for arg in node.args if not known(arg)]
            couples = applies(node, op.SUM, op.STACK) and node.over is not None
            bends = applies(node, op.POWER, op.LOG, op.MAX) or (applies(node, op.DIVIDE) and not known(node.args[1]))
            if couples or bends:
                found[str(node)] = None
            elif node.domain.is_gaussian:
                found |= {f"{arg} as a real number": None for arg in random if _is_positive(arg)}
        stack.extend(parents(node))
    return list(found)


def _is_positive(expr: Expr) -> bool:
    return expr.domain.is_bounded and not (isinstance(expr, Apply) and expr.op in LINKS)


def _strip(expr: Expr) -> Expr:
    while applies(expr, op.DOT, op.LOG, op.EXP):
        expr = next((arg for arg in expr.args if isinstance(arg, (Gather, Random))), expr.args[0])
    return expr
