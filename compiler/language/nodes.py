"""The nodes of the graph and their operators.

A model's graph IS these nodes: frozen, compared by identity, each with `plates` and `domain`. Operators build new nodes
and refuse at once what has no meaning. `==` builds a node, so look nodes up by identity (`is`, dictionaries, sets),
never with `in` on a list.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias, TypeGuard

import numpy as np

from ...factors.domains import Domain
from ...factors.errors import ModelError
from ...factors.factor import Chain, Switch, Term, arguments_of
from .operations import Operation
from .values import UserValue

BUILDERS: dict[str, Callable[..., Any]] = {}
"""What the operators of Python build of nodes, by name: `operators.py`, which makes nodes, enters its functions."""


@dataclasses.dataclass(frozen=True, eq=False)
class Plate:
    """An index set over which variables are repeated; `size` is None when data or `sizes=` give it later."""

    name: str
    size: int | None = None

    def __str__(self) -> str:
        return self.name

    def __getitem__(self, part: slice) -> Plate:
        """The plate of the elements of a slice, `t[1:]`: what is declared on it lines up with `x[1:]` and `x[:-1]`."""
        return BUILDERS["part"](self, part)


class Derived(Plate):
    """A plate whose size follows from those of others, `sources`, or from data on them."""

    @property
    def sources(self) -> tuple[Plate, ...]:
        """The plates that it is made of."""
        raise NotImplementedError


@dataclasses.dataclass(frozen=True, eq=False)
class PlatePart(Derived):
    """The elements of a slice of another plate: `length` many, or as many less than the `whole` has where that is
    not above zero.
    """

    whole: Plate = Plate("")
    length: int = 0

    @property
    def sources(self) -> tuple[Plate, ...]:
        return (self.whole,)


@dataclasses.dataclass(frozen=True, eq=False)
class Places(Derived):
    """The places in the largest of the groups that index data form of `members`; smaller ones leave some empty."""

    members: Plate = Plate("")
    groups: Plate = Plate("")
    by: str = ""  # the name of the index data

    @property
    def sources(self) -> tuple[Plate, ...]:
        return (self.members, self.groups)


@dataclasses.dataclass(frozen=True, eq=False)
class Rows(Plate):
    """The rows of constants that a discrete expression chooses from."""


class Expr:
    """A node of the graph. Arithmetic, comparison, logic and indexing on nodes give new nodes."""

    plates: tuple[Plate, ...]
    domain: Domain

    __hash__ = object.__hash__

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *operands: UserValue, **options: UserValue) -> Expr:
        """NumPy's functions of expressions, and its operators with an array on the left, build expressions."""
        return BUILDERS["of_numpy"](ufunc, method, operands, options)

    def __array_function__(self, function: Callable, types: object, args: tuple, options: Mapping) -> Expr:
        """Those of whole arrays."""
        return BUILDERS["of_numpy_arrays"](function, args, options)

    if not TYPE_CHECKING:  # type checkers know what there is

        def __getattr__(self, name: str) -> NoReturn:
            told = f"'{type(self).__name__}' object has no attribute '{name}'"
            if not name.startswith("_"):
                own = self.__dict__.get("name", "...")
                told += (
                    f". An expression has no value before inference: posterior['{own}'].{name} may be what is meant."
                )
            raise AttributeError(told, name=name, obj=self)

    def __float__(self) -> NoReturn:
        raise ModelError(f"'{self}' is no number while the model is declared: for math.exp(x) write cv.exp(x).")

    __int__ = __complex__ = __trunc__ = __float__

    def __round__(self, *_: UserValue) -> NoReturn:
        raise ModelError(
            f"'{self}' is not rounded while the model is declared: it has no value yet, and whole steps have no slope. "
            "Round the answer, posterior[...].mean.round(2), or the data before they are given."
        )

    __floor__ = __ceil__ = __round__

    def __floordiv__(self, other: UserValue) -> NoReturn:
        raise ModelError(
            f"'{self}' with `//`, `%` or divmod: whole quotients and remainders of expressions are not part of the "
            "language. Of whole-number data compute them before they are given, as a further input; `/` divides."
        )

    __rfloordiv__ = __mod__ = __rmod__ = __divmod__ = __rdivmod__ = __floordiv__

    def __contains__(self, value: UserValue) -> NoReturn:
        raise ModelError(
            f"`in` with '{self}': it has no elements while the model is declared. Of values compare, x == value; of "
            "elements along a plate write cv.any(x == value, over=plate)."
        )

    def __setitem__(self, key: UserValue, value: UserValue) -> NoReturn:
        raise ModelError(
            f"'{self}' is not assigned to: a model is declared once. Values of a variable are data, given by its name: "
            "cv.infer(model, {'x': [1.5, float('nan')]}) observes the first of two elements."
        )

    def __delitem__(self, key: UserValue) -> NoReturn:
        self.__setitem__(key, None)

    def __lshift__(self, other: UserValue) -> NoReturn:
        raise ModelError(
            f"'{self}' with `<<` or `>>`: bits are not shifted, and `~` declares nothing. Write m.random('x', term) "
            "for x ~ term, and x < value to compare."
        )

    __rshift__ = __rlshift__ = __rrshift__ = __lshift__

    def __format__(self, spec: str) -> str:
        if spec.strip("<>=^0123456789s"):
            raise ModelError(
                f"'{self}' is no number while the model is declared, to be written as {spec!r}. Format the answer: "
                "f'{posterior[name].mean:.3f}'."
            )
        return format(str(self), spec)

    def __add__(self, other: UserValue) -> Expr:
        return BUILDERS["add"](self, other)

    def __radd__(self, other: UserValue) -> Expr:
        return BUILDERS["add"](other, self)

    def __sub__(self, other: UserValue) -> Expr:
        return BUILDERS["subtract"](self, other)

    def __rsub__(self, other: UserValue) -> Expr:
        return BUILDERS["subtract"](other, self)

    def __mul__(self, other: UserValue) -> Expr:
        return BUILDERS["multiply"](self, other)

    def __rmul__(self, other: UserValue) -> Expr:
        return BUILDERS["multiply"](other, self)

    def __truediv__(self, other: UserValue) -> Expr:
        return BUILDERS["divide"](self, other)

    def __rtruediv__(self, other: UserValue) -> Expr:
        return BUILDERS["divide"](other, self)

    def __matmul__(self, other: UserValue) -> Expr:
        return BUILDERS["matmul"](self, other)

    def __rmatmul__(self, other: UserValue) -> Expr:
        return BUILDERS["matmul"](other, self)

    def __pow__(self, exponent: UserValue) -> Expr:
        return BUILDERS["power"](self, exponent)

    def __rpow__(self, base: UserValue) -> Expr:
        return BUILDERS["number_to"](base, self)

    def __abs__(self) -> Expr:
        return BUILDERS["absolute"](self)

    def __neg__(self) -> Expr:
        return BUILDERS["negate"](self)

    def __pos__(self) -> Expr:
        return self

    def __gt__(self, other: UserValue) -> Expr:
        return BUILDERS["greater"](self, other)

    def __lt__(self, other: UserValue) -> Expr:
        return BUILDERS["greater"](other, self)

    def __ge__(self, other: UserValue) -> Expr:
        return BUILDERS["at_least"](self, other)

    def __le__(self, other: UserValue) -> Expr:
        return BUILDERS["at_least"](other, self)

    def __eq__(self, other: UserValue) -> Expr:  # type: ignore[override]
        return BUILDERS["equal"](self, other)

    def __ne__(self, other: UserValue) -> Expr:  # type: ignore[override]
        return BUILDERS["not"](BUILDERS["equal"](self, other))

    def __and__(self, other: UserValue) -> Expr:
        return BUILDERS["and"](self, other)

    def __rand__(self, other: UserValue) -> Expr:
        return BUILDERS["and"](other, self)

    def __or__(self, other: UserValue) -> Expr:
        return BUILDERS["or"](self, other)

    def __ror__(self, other: UserValue) -> Expr:
        return BUILDERS["or"](other, self)

    def __xor__(self, other: UserValue) -> Expr:
        return BUILDERS["xor"](self, other)

    def __rxor__(self, other: UserValue) -> Expr:
        return BUILDERS["xor"](other, self)

    def __invert__(self) -> Expr:
        return BUILDERS["invert"](self)

    def __getitem__(self, index: UserValue) -> Expr:
        return BUILDERS["index"](self, index)

    def __array__(self, *_: UserValue, **__: UserValue) -> NoReturn:
        """What NumPy asks of an index, and of what is to become an array."""
        raise NoArray(self)

    def __index__(self) -> NoReturn:
        """What lists ask of an index."""
        raise NoArray(self)

    def __bool__(self) -> NoReturn:
        raise ModelError(
            f"'{self}' has no truth value while the model is declared: it stands for a value that inference finds. "
            "Combine booleans with & | ^ ~ (not `and`, `or`, `not`), use cv.switch(...) instead of `if`, write "
            "`a < b` and `b < c` separately, and look nodes up with `is`, not `in`."
        )

    def __iter__(self) -> NoReturn:
        raise ModelError(
            f"'{self}' cannot be iterated over: {_plates_text(self)} A plate stands for the loop; "
            "index with data of domain cv.index(plate)."
        )

    def __len__(self) -> NoReturn:
        raise ModelError(f"'{self}' has no length: {_plates_text(self)} Keep the plate object and its size instead.")

    def __str__(self) -> str:
        return render(self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self}: {self.domain}{over_text(self.plates)})"


class NoArray(ModelError, TypeError):
    """An expression is used as an array, or as the index of a list or of an array."""

    def __init__(self, expr: Expr) -> None:
        super().__init__(
            f"'{expr}' ({expr.domain}) is used as a number, or as an index of an array or a list, while the model is "
            f"declared, and has no value yet. To let it choose from constants, write cv.table(array)[{expr}]."
        )


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Constant(Expr):
    """A fixed array laid out plates + event; no plates when it is the same everywhere."""

    value: np.ndarray
    plates: tuple[Plate, ...]
    domain: Domain


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Position(Expr):
    """Where an element of a plate is, `x[0]`, or all of a part of it, `x[1:]`: index data that its size tells.

    `start` is that of the first, from the end where it is negative; `written` is the index as its user wrote it.
    """

    start: int
    plates: tuple[Plate, ...]
    domain: Domain
    written: str


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Member(Expr):
    """Who is at each place of each group that index data `by` form: index data over groups and places.

    With `present` one where somebody is, and zero where a place is empty: there the index is that of a member, too.
    """

    by: Expr
    present: bool
    plates: tuple[Plate, ...]
    domain: Domain


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Once(Expr):
    """The coefficients of a sum along the plate `over` whose elements index data choose, each element counted once.

    The first of several equal ones has their total, the others have zero. `gathers` are those that choose along it.
    """

    coefficient: Expr
    gathers: tuple[Gather, ...]
    over: Plate
    plates: tuple[Plate, ...]
    domain: Domain


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Input(Expr):
    """Data that is always given."""

    name: str
    plates: tuple[Plate, ...]
    domain: Domain


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Random(Expr):
    """A random variable generated by `term`, a factor applied to expressions or a switch over such terms."""

    name: str
    term: Term | Switch | Chain
    plates: tuple[Plate, ...]
    domain: Domain


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Previous(Random):
    """The parent of an element of a chain or a tree, inside the term that generates the element; `term` is `first`."""


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Unnamed(Random):
    """The variable of a term inside an expression, until what it is part of is declared; `name` is its argument's."""


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Let(Expr):
    """A named deterministic expression."""

    name: str
    expression: Expr
    plates: tuple[Plate, ...]
    domain: Domain


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Gather(Expr):
    """`source[index]`: the plate `axis` of source is replaced by the plates of index."""

    source: Expr
    index: Expr
    plates: tuple[Plate, ...]
    domain: Domain
    axis: Plate


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Apply(Expr):
    """An operation on expressions; `options` are its fixed settings (an exponent, the plate it runs over)."""

    operation: Operation
    args: tuple[Expr, ...]
    options: tuple[tuple[str, Any], ...]
    plates: tuple[Plate, ...]
    domain: Domain

    @property
    def op(self) -> str:
        """The name of the operation."""
        return self.operation.name

    @property
    def over(self) -> Plate | None:
        """The plate that the operation runs over, if it does."""
        return dict(self.options).get("over")

    def option(self, name: str) -> Any:
        """The value of one option."""
        return dict(self.options)[name]


def applies(expr: object, *operations: Operation) -> TypeGuard[Apply]:
    """Whether an expression is one of these operations on others."""
    return isinstance(expr, Apply) and expr.operation in operations


IsData: TypeAlias = Callable[[Expr], bool]  # like `is_data`, given what is observed


def parents(expr: Expr) -> tuple[Expr, ...]:
    """The direct children of a node: operands, source and index, selector and term arguments."""
    match expr:
        case Previous():
            return ()
        case Random(term=Chain() as chain):
            args = (*arguments_of(chain.first), *arguments_of(chain.then))
            return args if chain.parent is None else (*args, chain.parent)
        case Random(term=Switch() | Term() as term):
            return arguments_of(term)
        case Let(expression=expression):
            return (expression,)
        case Gather(source=source, index=index):
            return (source, index)
        case Apply(args=args):
            return args
        case Member(by=by):
            return (by,)
        case Once(coefficient=coefficient, gathers=gathers):
            return (coefficient, *(gather.index for gather in gathers))
    return ()


def inside(roots: Iterable[Expr]) -> list[Expr]:
    """The nodes that expressions are made of, down to and including random variables, not through their definitions."""
    found, stack = [], list(roots)
    while stack:
        node = stack.pop()
        found.append(node)
        if not isinstance(node, Random):
            stack.extend(parents(node))
    return found


def with_parents(node: Expr, new: Mapping[Expr, Expr]) -> Expr:
    """An operation or a choice of `new` nodes in the place of those it was made of; itself where none is new."""
    if not isinstance(node, (Apply, Gather)) or all(new[parent] is parent for parent in parents(node)):
        return node
    if isinstance(node, Gather):
        return dataclasses.replace(node, source=new[node.source], index=new[node.index])
    return dataclasses.replace(node, args=tuple(new[arg] for arg in node.args))


def counts(node: Expr) -> bool:
    """Whether it is a discrete value made of classes, or of all booleans of a plate, which only a table has."""
    if not isinstance(node, Apply) or not node.domain.is_discrete:
        return False
    return node.operation.aggregate or any(arg.domain.is_category for arg in node.args)


def unnamed(expr: Expr) -> Expr:
    """What a named expression stands for; any other is itself."""
    while isinstance(expr, Let):
        expr = expr.expression
    return expr


def gathers_of(expr: Expr) -> list[Gather]:
    """The gathers that choose an element, the outermost first, through names."""
    found = []
    while isinstance(expr, (Gather, Let)):
        if isinstance(expr, Gather):
            found.append(expr)
        expr = expr.source if isinstance(expr, Gather) else expr.expression
    return found


def moved(element: Expr, variable: Random) -> Expr:
    """The same element of another variable."""
    if isinstance(element, Let):
        return moved(element.expression, variable)
    if isinstance(element, Gather):
        return dataclasses.replace(element, source=moved(element.source, variable), domain=variable.domain)
    return variable


def source_of(expr: Expr) -> Expr:
    """What an element is chosen from, through names."""
    gathers = gathers_of(expr)
    return unnamed(gathers[-1].source if gathers else expr)


def is_data(expr: Expr) -> bool:
    """True when no random variable lies below `expr` (or is it): its value is known before inference.

    Nodes do not change, so the answer is found once and kept with the node.
    """
    stack = [expr]
    while stack:
        node = stack[-1]
        below = () if isinstance(node, Random) else parents(node)
        answers = [parent.__dict__.get("is data") for parent in below]
        if None in answers:
            stack.extend(parent for parent, answer in zip(below, answers, strict=True) if answer is None)
        else:
            node.__dict__["is data"] = not isinstance(node, Random) and all(answers)
            stack.pop()
    return expr.__dict__["is data"]


def union_plates(*groups: Iterable[Plate]) -> tuple[Plate, ...]:
    """All plates in order of first appearance; two different plates of one name are a ModelError."""
    union: dict[str, Plate] = {}
    for plate in (plate for group in groups for plate in group):
        if union.setdefault(plate.name, plate) is not plate:
            raise ModelError(
                f"Two different plates are called '{plate.name}', so their elements do not correspond. "
                "Declare the plate once with m.plate(...) and use that object in all its variables."
            )
    _check_parts(union.values())
    return tuple(union.values())


def _check_parts(plates: Iterable[Plate]) -> None:
    """Raises ModelError for slices of different length, or a slice and the whole: they do not line up."""
    wholes = {plate.whole: plate for plate in plates if isinstance(plate, PlatePart)}
    for plate in plates if wholes else ():
        other = wholes.get(plate.whole if isinstance(plate, PlatePart) else plate)
        if other is not None and other is not plate:
            raise ModelError(
                f"Elements of '{plate.name}' meet elements of '{other.name}', and these are not as many, so that they "
                "do not line up. Take slices of the same length: x[1:] - x[:-1], or y ~ gaussian(x[1:], ...) with all "
                "its arguments on that slice."
            )


def render(expr: Expr, depth: int = 4) -> str:
    """The expression as its user would write it, cut off below `depth` levels."""
    if isinstance(expr, (Input, Random, Let)):
        return expr.name
    if isinstance(expr, Constant):
        return f"{expr.value:g}" if expr.value.ndim == 0 and expr.value.dtype != bool else _array_text(expr.value)
    if isinstance(expr, Position):
        return expr.written
    if depth == 0:
        return "..."
    parts = [render(parent, depth - 1) for parent in parents(expr)]
    if isinstance(expr, Gather):
        return f"{'table' if isinstance(expr.source, Constant) else parts[0]}[{parts[1]}]"
    if isinstance(expr, Member):
        return f"{'present' if expr.present else 'member'}({parts[0]})"
    if isinstance(expr, Once):
        return parts[0]
    assert isinstance(expr, Apply)
    return expr.operation.written(parts, dict(expr.options))


def _array_text(value: np.ndarray) -> str:
    return str(value) if value.ndim == 0 else f"array of shape {value.shape}"


def over_text(plates: tuple[Plate, ...]) -> str:
    """The plates of an error message: " over game, player", or nothing where there are none."""
    return f" over {', '.join(plate.name for plate in plates)}" if plates else ""


def _plates_text(expr: Expr) -> str:
    return f"its plates are ({', '.join(plate.name for plate in expr.plates)})." if expr.plates else "it has no plates."
