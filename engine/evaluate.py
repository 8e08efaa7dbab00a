"""Values and moments of expressions.

`value(expr, scope)` evaluates an expression of data. `moments(expr, scope)` propagates the moments of its random
variables: this is all of VMP and NCVMP, since a message is the gradient of an expected log density in the moments that
went in.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp

from ..compiler.expressions import Apply, Constant, Expr, Gather, Input, Let, Plate, Previous, Random, parents
from ..compiler.graph import Block, Joint
from ..compiler.join import Direction
from ..factors import LINKS
from ..factors.errors import UnsupportedError
from ..factors.factor import VECTOR_LINKS
from ..factors.families import FOR_DOMAIN
from ..factors.moments import BY_KIND, Boolean, Positive, Real, Sparse, Unit, Vector
from ..factors.scalars import as_real, power_of
from .joint import direction_value, member_moments, together
from .pages import Pages
from .placed import Placed, mapped, to_event
from .rows import Rows, Window


@dataclasses.dataclass(frozen=True)
class Scope:
    """What an expression may look up: plate sizes, data by name, moments by name, and the bound for its links.

    `rows` says how large factors are cut into blocks of rows, `window` which of these is seen, if any (see `rows.py`).
    """

    sizes: dict[str, int]
    data: dict[str, Any]
    moments: dict[str, Any]
    bound: str | None = None
    joints: tuple[Joint, ...] = ()
    rows: Mapping[Block, Rows] = dataclasses.field(default_factory=dict)
    window: Window | None = None

    def seen(self, found: Any, plates: tuple[Plate, ...]) -> Placed:
        """What was looked up, as far as it is inside the window."""
        if isinstance(found, Pages):
            return found.seen(self.window, plates)
        placed = found if isinstance(found, Placed) else Placed(found, plates)
        return placed if self.window is None else self.window.seen(placed)

    def with_data(self, extra: dict[str, Any]) -> Scope:
        """The same scope with more data."""
        return dataclasses.replace(self, data={**self.data, **extra})

    def with_moments(self, moments: dict[str, Any]) -> Scope:
        """The same scope with other moments."""
        return dataclasses.replace(self, moments=moments)

    def joint_of(self, variable: Any) -> Joint | None:
        """The joint belief that a variable is a member of, if its moments are there."""
        held = (joint for joint in self.joints if joint.variable.name in self.moments)
        return next((joint for joint in held if variable in set(joint.members)), None)

    def size(self, size: Any) -> int:
        """A number of classes, where it may be a plate."""
        return self.sizes[size.name] if isinstance(size, Plate) else size


_BINARY = {
    "add": jnp.add,
    "subtract": jnp.subtract,
    "multiply": jnp.multiply,
    "divide": jnp.divide,
    "and": jnp.logical_and,
    "or": jnp.logical_or,
    "xor": jnp.logical_xor,
    "equal": jnp.equal,
    "greater": jnp.greater,
    "max": jnp.maximum,
}
_OVER = {"sum": jnp.sum, "all": jnp.all, "any": jnp.any}
_UNARY = {"negate": jnp.negative, "not": jnp.logical_not, "log": jnp.log}


def value(expr: Expr, scope: Scope) -> Placed:
    """The value of an expression without random variables, or with observed ones only."""
    if isinstance(expr, Constant):
        return scope.seen(jnp.asarray(expr.value), expr.plates)
    if isinstance(expr, (Input, Random, Let)) and expr.name in scope.data:
        return scope.seen(scope.data[expr.name], expr.plates)
    if isinstance(expr, Direction):
        return direction_value(expr, lambda e, extra: value(e, scope.with_data(extra)), scope.sizes)
    if isinstance(expr, Let):
        return value(expr.expression, scope)
    if isinstance(expr, Gather):
        return gather(value(expr.source, scope), value(expr.index, scope), expr)
    assert isinstance(expr, Apply), f"{expr} has no value without inference"
    if expr.op in VECTOR_LINKS:
        argument = to_event(value(expr.args[0], scope), expr.option("over"))
        return mapped(LINKS[expr.op].value, argument, order=expr.plates)
    if expr.op in _OVER:
        return _over(expr, value(expr.args[0], scope), scope)
    args = [value(arg, scope) for arg in expr.args]
    if expr.op == "stack" and "over" in dict(expr.options):
        return along(args[0], expr, scope)
    return mapped(point_function(expr), *args, order=expr.plates)


def _over(expr: Apply, found: Placed, scope: Scope) -> Placed:
    """A sum, or all or any of it, over a plate; what is the same along the plate is counted."""
    over = expr.option("over")
    if over in set(found.plates):
        return mapped(_OVER[expr.op], to_event(found, over), order=expr.plates)
    times = scope.sizes[over.name] if expr.op == "sum" else 1
    return mapped(lambda x: times * x if expr.op == "sum" else x, found, order=expr.plates)


def along(found: Placed, expr: Apply, scope: Scope) -> Placed:
    """The elements along a plate as an event; what is the same along the plate is repeated."""
    over = expr.option("over")
    if over in set(found.plates):
        return to_event(found, over)
    return mapped(lambda x: jax.tree.map(lambda a: jnp.broadcast_to(a, (scope.sizes[over.name],)), x), found)


def point_function(expr: Apply) -> Any:
    """The function of one scalar instance that `expr` applies."""
    if expr.op == "power":
        exponent = expr.option("exponent")
        return lambda x: x**exponent
    if expr.op == "stack":
        return lambda *numbers: jnp.stack(numbers)
    if expr.op in ("dot", "matvec"):
        return jnp.matmul if max(arg.domain.event_ndim for arg in expr.args) > 1 else jnp.dot
    if expr.domain.kind == "category":  # truth values are added as 0 and 1
        function = _BINARY[expr.op]
        return lambda *numbers: function(*(jnp.asarray(number, jnp.int32) for number in numbers))
    return _BINARY.get(expr.op) or _UNARY.get(expr.op) or LINKS[expr.op].value


def gather(source: Placed, index: Placed, expr: Gather) -> Placed:
    """source[index] on placed values; a source that is the same along the axis stays."""
    if expr.axis not in set(source.plates):
        return source
    position = jnp.asarray(index.value).astype(jnp.int32)
    return mapped(
        lambda s, i: jax.tree.map(lambda a: a[i], s),
        to_event(source, expr.axis),
        Placed(position, index.plates),
        order=expr.plates,
    )


def point(kind: str, placed: Placed, size: int | None = None) -> Placed:
    """The moments of known values read as the given kind of domain."""
    if kind in ("concentration", "vector"):
        zeros = jnp.zeros((*placed.value.shape, placed.value.shape[-1]))
        return Placed(Vector(placed.value, zeros), placed.plates)
    if kind == "natural":  # parameters of a given belief, which are no values of a variable
        return placed
    family: Any = FOR_DOMAIN[kind]
    if kind == "category":
        return Placed(family.moments_at(placed.value, size), placed.plates)
    values = placed.value if kind == "boolean" else jnp.asarray(placed.value, float)
    return Placed(family.moments_at(values), placed.plates)


def moments(expr: Expr, scope: Scope, kind: str | None = None) -> Placed:
    """The moments of `expr`, read as `kind` (its own domain's by default).

    A gather by a random index keeps the plate it chooses from.
    """
    kind = kind or expr.domain.kind
    if isinstance(expr, Random) and (joint := scope.joint_of(expr)) is not None:
        own = member_moments(expr, joint, scope.moments[joint.variable.name], scope.sizes)
        return Placed(_cast(own, kind, expr), expr.plates)
    if isinstance(expr, (Random, Let)) and expr.name in scope.moments:
        return _cast_placed(scope.seen(scope.moments[expr.name], expr.plates), kind, expr)
    if known(expr, scope):
        return point(kind, value(expr, scope), None if kind != "category" else scope.size(expr.domain.size))
    if isinstance(expr, Let):
        return moments(expr.expression, scope, kind)
    if isinstance(expr, Gather):
        source = moments(expr.source, scope, kind)
        return gather(source, value(expr.index, scope), expr) if known(expr.index, scope) else source
    assert isinstance(expr, Apply), f"{expr} has no belief yet"
    return _cast_placed(_applied(expr, scope, kind), kind, expr)


def known(expr: Expr, scope: Scope) -> bool:
    """True when the value of `expr` follows from the data."""
    if isinstance(expr, (Input, Random, Let)) and expr.name in scope.data:
        return True
    if isinstance(expr, Random):
        return False
    return all(known(child, scope) for child in parents(expr))


def _cast(found: Any, kind: str, expr: Expr) -> Any:
    if isinstance(found, BY_KIND.get(kind, Vector)):
        return found
    if kind == "unit" and isinstance(found, Boolean):
        return found
    if kind == "real" and isinstance(found, Sparse):
        return Real(found.mean, found.variance)
    if kind == "real" and isinstance(found, (Positive, Unit)):
        return as_real(found)
    raise UnsupportedError(
        f"'{expr}' is {expr.domain} and is used where a {kind} value is needed. "
        f"Its distribution gives no {kind} moments: "
        "map it with cv.exp, cv.log, cv.logistic or declare it in the domain that the factor needs."
    )


def _cast_placed(placed: Placed, kind: str, expr: Expr) -> Placed:
    return Placed(_cast(placed.value, kind, expr), placed.plates)


def _applied(expr: Apply, scope: Scope, kind: str) -> Placed:
    if expr.op in LINKS:
        return _linked(expr, scope)
    if kind in ("boolean", "unit") and expr.op in ("and", "or", "not", "xor", "equal"):
        return _logical(expr, scope)
    if kind == "positive":
        return _positive(expr, scope)
    if kind == "vector":
        return _vector(expr, scope)
    return real_moments(expr, scope)


def _linked(expr: Apply, scope: Scope) -> Placed:
    link = LINKS[expr.op]
    bound = scope.bound if scope.bound in link.bounds else next(iter(link.bounds))
    argument = moments(expr.args[0], scope, "real")
    if expr.op in VECTOR_LINKS:
        argument = to_event(argument, expr.option("over"))
    return Placed(link.moments(argument.value, bound), argument.plates)


def _logical(expr: Apply, scope: Scope) -> Placed:
    args = [moments(arg, scope, "boolean") for arg in expr.args]

    def probability(*ps: Boolean) -> Boolean:
        p = [q.probability for q in ps]
        rules = {
            "not": lambda: 1 - p[0],
            "and": lambda: p[0] * p[1],
            "or": lambda: 1 - (1 - p[0]) * (1 - p[1]),
            "xor": lambda: p[0] + p[1] - 2 * p[0] * p[1],
            "equal": lambda: 1 - p[0] - p[1] + 2 * p[0] * p[1],
        }
        return Boolean(rules[expr.op]())

    return mapped(probability, *args, order=expr.plates)


def _positive(expr: Apply, scope: Scope) -> Placed:
    if expr.op == "multiply":
        _check_apart(expr, scope)
        args = [moments(arg, scope, "positive") for arg in expr.args]
        return mapped(lambda a, b: Positive(a.mean * b.mean, a.log + b.log), *args, order=expr.plates)
    if expr.op == "divide":
        args = [moments(arg, scope, "positive") for arg in expr.args]
        if known(expr.args[1], scope):
            return mapped(lambda a, b: Positive(a.mean / b.mean, a.log - b.log), *args, order=expr.plates)
        _check_apart(expr, scope)
        below = _power(expr.args[1], -1, expr, scope)
        return mapped(lambda a, b: Positive(a.mean * b.mean, a.log + b.log), args[0], below, order=expr.plates)
    if expr.op == "power" and expr.args[0].domain.kind == "positive":
        return _power(expr.args[0], expr.option("exponent"), expr, scope)
    raise UnsupportedError(
        f"The expression '{expr}' needs E log of a {expr.op}, which its arguments do not give. "
        "Positive expressions are products, quotients and powers of positive variables, and cv.exp of a real "
        "expression."
    )


def _power(base: Expr, exponent: int, expr: Expr, scope: Scope) -> Placed:
    """A power of a variable; powers of powers, such as the precision 1 / sd^2 that sd= is read as, are one."""
    while isinstance(base, Let) or (isinstance(base, Apply) and base.op == "power"):
        if isinstance(base, Apply):
            exponent = exponent * base.option("exponent")
        base = base.expression if isinstance(base, Let) else base.args[0]
    return mapped(lambda b: power_of(b, exponent), _variable(base, moments(base, scope, "positive"), expr))


def _variable(base: Expr, found: Placed, expr: Expr) -> Placed:
    """The moments of a variable, whose family tells those of its powers."""
    while isinstance(base, (Gather, Let)):
        base = base.source if isinstance(base, Gather) else base.expression
    if isinstance(base, Random):
        return found
    raise UnsupportedError(
        f"'{expr}' needs the moments of a power of '{base}', whose distribution is not known. Write it with powers and "
        "quotients of single positive variables, or with cv.exp of a real expression."
    )


def _vector(expr: Apply, scope: Scope) -> Placed:
    signs = {"add": 1.0, "subtract": -1.0}
    if expr.op in signs:
        _check_apart(expr, scope)
    if expr.op in signs and all(arg.domain.kind == "vector" for arg in expr.args):
        a, b = (moments(arg, scope, "vector") for arg in expr.args)
        return mapped(
            lambda a, b: Vector(a.mean + signs[expr.op] * b.mean, a.covariance + b.covariance), a, b, order=expr.plates
        )
    if expr.op == "negate":
        return mapped(lambda a: Vector(-a.mean, a.covariance), moments(expr.args[0], scope, "vector"))
    if expr.op == "matvec":
        matrix, vector = value(expr.args[0], scope), moments(expr.args[1], scope, "vector")
        return mapped(lambda a, v: Vector(a @ v.mean, a @ v.covariance @ a.T), matrix, vector, order=expr.plates)
    if expr.op in ("multiply", "divide"):
        return _scaled_vector(expr, scope)
    if expr.op == "sum":
        own = to_event(moments(expr.args[0], scope, "vector"), expr.option("over"))
        return mapped(lambda v: Vector(v.mean.sum(0), v.covariance.sum(0)), own, order=expr.plates)
    if expr.op == "stack":
        return stack_moments(expr, scope)
    if expr.op == "together":
        return together(expr.args, expr.plates, scope.moments, scope.joints, scope.sizes)
    raise UnsupportedError(
        f"The vector expression '{expr}' ({expr.op}) has no rule; sums, differences, multiples by a number, "
        "matrix @ vector and cv.dot of vectors do."
    )


def _scaled_vector(expr: Apply, scope: Scope) -> Placed:
    """A vector times an independent number, or over a known one."""
    _check_apart(expr, scope)
    vector, scale = expr.args if expr.args[0].domain.kind == "vector" else expr.args[::-1]
    number = moments(1.0 / scale if expr.op == "divide" else scale, scope, "real")

    def scaled(v: Vector, s: Real) -> Vector:
        second = v.covariance + jnp.outer(v.mean, v.mean)
        return Vector(s.mean * v.mean, s.mean**2 * v.covariance + s.variance * second)

    return mapped(scaled, moments(vector, scope, "vector"), number, order=expr.plates)


def _check_apart(expr: Apply, scope: Scope) -> None:
    """Operands must not share a random variable: the covariance between them has no rule.

    Elements chosen by index data are taken for different ones, and a point has no covariance.
    """
    found = [{v for v in _whole(arg) if not known(v, scope) and not isinstance(v, Previous)} for arg in expr.args]
    for variable in set.intersection(*found):
        raise UnsupportedError(
            f"'{expr}' uses '{variable.name}' in both of its operands, whose covariance has no rule. Write it with one "
            "of them, for example one matrix @ vector with the summed matrix."
        )


def _whole(expr: Expr) -> set[Random]:
    """The random variables below `expr` that are not indexed."""
    if isinstance(expr, Random):
        return {expr}
    return set() if isinstance(expr, Gather) else set().union(*map(_whole, parents(expr)))


from .polynomials import real_moments, stack_moments  # noqa: E402 - expressions hold polynomials, and these expressions
