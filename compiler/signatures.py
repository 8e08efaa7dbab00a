"""Which domain an operation gives, from the domains of its operands."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..factors import domains
from ..factors.domains import Domain
from ..factors.errors import ModelError

NUMERIC = frozenset({"real", "sparse", "positive", "unit", "count"})
ARITHMETIC = frozenset(
    {
        "add",
        "subtract",
        "multiply",
        "divide",
        "negate",
        "power",
        "greater",
        "exp",
        "logistic",
        "probit",
        "sum",
        "max",
        "stack",
    }
)
CLASSES = frozenset({"category", "boolean"})
_ABOVE_ZERO = frozenset({"positive", "unit"})
_ANY_SIGN = frozenset({"real", "sparse"})

Refuse = Callable[..., ModelError]
"""Makes the error: `refuse(what the operation takes, hint)`."""


def result_domain(op: str, operands: Sequence[Domain], refuse: Refuse) -> Domain:
    """The domain of `op` applied to operands of these domains; raises the error that `refuse` makes where it has no
    meaning.
    """
    return _RULES[op](operands, refuse)


def _kinds(operands: Sequence[Domain]) -> set[str]:
    return {domain.kind for domain in operands}


def _scalars(operands: Sequence[Domain], refuse: Refuse, hint: str = "") -> None:
    if not _kinds(operands) <= NUMERIC:
        raise refuse("numbers", hint or _numeric_hint(operands))


def _numeric_hint(operands: Sequence[Domain]) -> str:
    kinds = _kinds(operands)
    if "boolean" in kinds or "category" in kinds:
        return "To let a discrete variable choose between values, index with it (`mean[z]`) or use cv.switch(...)."
    if "vector" in kinds:
        return "Two vectors are added with `+` and multiplied with cv.dot(a, b); a number scales a vector with `*`."
    return "Only real, positive, unit and count expressions are numbers."


def _add(operands: Sequence[Domain], refuse: Refuse) -> Domain:
    kinds = _kinds(operands)
    if kinds == {"vector"}:
        return _same_vector(operands, refuse)
    if kinds <= CLASSES:
        return domains.category(1 + sum(classes(operand, refuse) - 1 for operand in operands))
    _scalars(operands, refuse)
    if kinds == {"count"}:
        return domains.count
    return domains.positive if kinds & _ABOVE_ZERO and not kinds & _ANY_SIGN else domains.real


def classes(domain: Domain, refuse: Refuse) -> int:
    """Number of values of a category or a boolean, as far as it is declared."""
    size = 2 if domain.kind == "boolean" else domain.size
    size = size if isinstance(size, int) else getattr(size, "size", None)
    if size is None:
        raise refuse(
            "categories whose number of classes is declared", "Give the plate of the classes a size: m.plate(name, 8)."
        )
    return size


def _subtract(operands: Sequence[Domain], refuse: Refuse) -> Domain:
    if _kinds(operands) == {"vector"}:
        return _same_vector(operands, refuse)
    if _kinds(operands) == {"category"}:
        return domains.category(classes(operands[0], refuse))
    _scalars(operands, refuse)
    return domains.real


def _same_vector(operands: Sequence[Domain], refuse: Refuse) -> Domain:
    if operands[0].size != operands[1].size:
        raise refuse("vectors of one dimension", "Give both the same dimension.")
    return operands[0]


def _multiply(operands: Sequence[Domain], refuse: Refuse) -> Domain:
    kinds = [domain.kind for domain in operands]
    if kinds.count("vector") == 1 and set(kinds) - {"vector"} <= NUMERIC:
        return operands[kinds.index("vector")]
    _scalars(operands, refuse)
    if len(set(kinds)) == 1 and kinds[0] in ("unit", "count"):
        return operands[0]
    return domains.positive if set(kinds) <= _ABOVE_ZERO else domains.real


def _divide(operands: Sequence[Domain], refuse: Refuse) -> Domain:
    if operands[0].kind == "vector" and operands[1].kind in NUMERIC:
        return operands[0]
    _scalars(operands, refuse)
    return domains.positive if _kinds(operands) <= _ABOVE_ZERO else domains.real


def _negate(operands: Sequence[Domain], refuse: Refuse) -> Domain:
    if operands[0].kind == "vector":
        return operands[0]
    _scalars(operands, refuse, "The opposite of a boolean is `~x`." if operands[0].kind == "boolean" else "")
    return domains.real


def _power(operands: Sequence[Domain], refuse: Refuse) -> Domain:
    _scalars(operands, refuse)
    return domains.positive if operands[0].kind in _ABOVE_ZERO else domains.real


def _dot(operands: Sequence[Domain], refuse: Refuse) -> Domain:
    if _kinds(operands) != {"vector"}:
        raise refuse(
            "two vectors",
            "Declare vectors with cv.vector(d) or cv.vector_gaussian(...); numbers are multiplied with `*`.",
        )
    _same_vector(operands, refuse)
    return domains.real


def _matvec(operands: Sequence[Domain], refuse: Refuse) -> Domain:
    matrix, found = operands
    rows, columns = matrix.size if matrix.kind == "matrix" else (matrix.size, matrix.size)
    if found.size != columns:
        raise refuse(f"a matrix of {found.size} columns and a vector", "Give as many columns as coordinates.")
    return domains.vector(rows)


def _sum(operands: Sequence[Domain], refuse: Refuse) -> Domain:
    if operands[0].kind == "vector":
        return operands[0]
    _scalars(operands, refuse)
    if operands[0].kind in _ABOVE_ZERO:
        return domains.positive
    return domains.real if operands[0].kind == "sparse" else operands[0]


def _log(operands: Sequence[Domain], refuse: Refuse) -> Domain:
    if operands[0].kind not in _ABOVE_ZERO:
        raise refuse(
            "positive numbers", "The logarithm of a negative number has no meaning: use a positive expression."
        )
    return domains.real


def _max(operands: Sequence[Domain], refuse: Refuse) -> Domain:
    _scalars(operands, refuse)
    return domains.real


def _stack(operands: Sequence[Domain], refuse: Refuse) -> Domain:
    _scalars(operands, refuse, "Vectors are not joined: stack numbers.")
    return domains.vector(len(operands))


def _scalar_map(out: Domain) -> Callable[[Sequence[Domain], Refuse], Domain]:
    def rule(operands: Sequence[Domain], refuse: Refuse) -> Domain:
        _scalars(operands, refuse, _map_hint(operands[0]))
        return out

    return rule


def _map_hint(domain: Domain) -> str:
    return "Reduce the vector to a number first, e.g. with cv.dot(weight, x)." if domain.kind == "vector" else ""


def _logical(operands: Sequence[Domain], refuse: Refuse) -> Domain:
    if _kinds(operands) != {"boolean"}:
        raise refuse("booleans", "Make booleans by comparing (`a > b`, `z == 2`) or with cv.bernoulli(p).")
    return domains.boolean


def _equal(operands: Sequence[Domain], refuse: Refuse) -> Domain:
    kinds = _kinds(operands)
    if len(kinds) != 1 or not kinds <= {"boolean", "category", "count", "index"}:
        hint = (
            "A continuous variable equals a number with probability zero: give the number as data, or compare with `>`."
        )
        raise refuse("two discrete expressions of one kind", hint if kinds & NUMERIC else "")
    return domains.boolean


def _greater(operands: Sequence[Domain], refuse: Refuse) -> Domain:
    if "category" not in _kinds(operands) or not _kinds(operands) <= NUMERIC | {"category"}:
        _scalars(operands, refuse, "Compare discrete expressions with `==` and `!=`.")
    return domains.boolean


_RULES: dict[str, Callable[[Sequence[Domain], Refuse], Domain]] = {
    "add": _add,
    "subtract": _subtract,
    "multiply": _multiply,
    "divide": _divide,
    "negate": _negate,
    "power": _power,
    "dot": _dot,
    "matvec": _matvec,
    "sum": _sum,
    "max": _max,
    "stack": _stack,
    "exp": _scalar_map(domains.positive),
    "log": _log,
    "logistic": _scalar_map(domains.unit),
    "probit": _scalar_map(domains.unit),
    "and": _logical,
    "or": _logical,
    "xor": _logical,
    "not": _logical,
    "equal": _equal,
    "greater": _greater,
}
