"""Small models as data: one description, read as a cavity model and, independently, by plain NumPy.

A description is a list of variables, lets and constraints over expressions. Expressions are tuples: an operation and
its operands, such as ("add", ("ref", "a"), ("mul", ("ref", "x"), ("ref", "b"))).
"""

from __future__ import annotations

import dataclasses
from typing import Any

import densities
import jax.numpy as jnp
import numpy as np
import scipy.special as sp

import cavity as cv

GIVEN = {
    "real": cv.real, "positive": cv.positive, "sharp": cv.positive, "unit": cv.unit, "boolean": cv.boolean,
    "vector": cv.vector(2),
}  # fmt: skip
LINKED = ("chain", "tree")
OVER = {"softmax": "softmax", "sum": "sum", "all": "all", "any": "any", "probit_over": "probit", "stack_over": "stack"}
AXES = {"n": 1, "k": 2, "t": 3}  # every array is (draws or grid points, n, k, t), then the axis of a vector


@dataclasses.dataclass(frozen=True)
class Given:
    """An input: a parameter, a covariate or an index, drawn anew for every data set."""

    name: str
    kind: str  # real, positive, unit, or index
    plates: tuple[str, ...] = ()
    to: str = ""  # of an index


@dataclasses.dataclass(frozen=True)
class Variable:
    """A random variable; `term` is (factor, arguments), ("switch", selector, terms), ("chain", first, then) or
    ("tree", root, then, parent)."""

    name: str
    kind: str
    term: tuple[Any, ...]
    plates: tuple[str, ...] = ()
    observed: bool = False
    size: int = 0  # classes, or dimensions


@dataclasses.dataclass(frozen=True)
class Named:
    """A let."""

    name: str
    kind: str
    expression: Any
    observed: bool = False
    size: int = 0  # classes


@dataclasses.dataclass(frozen=True)
class Constraint:
    """What must be true."""

    expression: Any


@dataclasses.dataclass(frozen=True)
class Small:
    """A structure: sizes of its plates, its inputs and its statements in order."""

    seed: int
    sizes: dict[str, int]
    givens: tuple[Given, ...]
    statements: tuple[Any, ...]

    @property
    def variables(self) -> list[Variable]:
        return [s for s in self.statements if isinstance(s, Variable)]

    @property
    def observed(self) -> list[str]:
        return [s.name for s in self.statements if getattr(s, "observed", False)]

    def shape(self, variable: Variable) -> tuple[int, ...]:
        """Of the variable's array, draws left out."""
        size = variable.size
        event = {"vector": (size,), "simplex": (size,), "posdef": (size, size)}.get(variable.kind, ())
        return (*(self.sizes[p] if p in variable.plates else 1 for p in AXES), *event)

    def __str__(self) -> str:
        lines = [f"sizes {self.sizes}", *(f"  input {g.name}: {g.kind}{list(g.plates)} {g.to}" for g in self.givens)]
        for s in self.statements:
            name = getattr(s, "name", "constrain")
            body = text(getattr(s, "term", None) or getattr(s, "expression", None))
            lines.append(
                f"  {name}{list(getattr(s, 'plates', ()))} = {body}" + " [observed]" * bool(getattr(s, "observed", 0))
            )
        return "\n".join(lines)


def text(e: Any) -> str:
    """An expression or a term on one line."""
    if isinstance(e, tuple) and e and e[0] in ("ref", "number"):
        return str(e[1])
    if isinstance(e, tuple) and e:
        return f"{e[0]}({', '.join(text(x) for x in e[1:])})"
    if isinstance(e, dict):
        return ", ".join(f"{k}={text(v)}" for k, v in e.items())
    return str(e)


# As a cavity model ----------------------------------------------------------------------------------------------------


def build(small: Small) -> cv.Model:
    """The structure in cavity's language."""
    m = cv.Model(f"sweep {small.seed}")
    plates = {name: m.plate(name, size) for name, size in small.sizes.items()}
    nodes: dict[str, Any] = {}
    for g in small.givens:
        domain = cv.index(plates[g.to]) if g.to else GIVEN[g.kind]
        nodes[g.name] = m.input(g.name, domain, plates=[plates[p] for p in g.plates])
    for s in small.statements:
        if isinstance(s, Named):
            nodes[s.name] = m.let(s.name, _lower(s.expression, nodes, plates))
        elif isinstance(s, Constraint):
            m.constrain(_lower(s.expression, nodes, plates))
        elif s.term[0] in LINKED:
            first, then, *parent = s.term[1:]
            over = {"over": plates["t"], "plates": [plates[p] for p in s.plates if p != "t"]}
            start, link = _term(first, nodes, plates), _then(then, nodes, plates)
            if parent:
                nodes[s.name] = m.tree(s.name, parent=nodes[parent[0]], root=start, then=link, **over)
            else:
                nodes[s.name] = m.chain(s.name, first=start, then=link, **over)
        else:
            nodes[s.name] = m.random(s.name, _term(s.term, nodes, plates), plates=[plates[p] for p in s.plates])
    return m


def completed(small: Small, model: cv.Model) -> Small:
    """The structure with the plates that each variable has by its parents."""

    def whole(s: Any) -> Any:
        if not isinstance(s, Variable):
            return s
        return dataclasses.replace(s, plates=tuple(p.name for p in model.randoms[s.name].plates))

    return dataclasses.replace(small, statements=tuple(whole(s) for s in small.statements))


def wide(array: Any, plates: tuple[str, ...]) -> np.ndarray:
    """An array of these plates (and the axes of one value) as (1, n, k, t, ...)."""
    array = np.asarray(array, float)
    order = sorted(range(len(plates)), key=lambda i: AXES[plates[i]])
    array = np.moveaxis(array, order, range(len(plates)))
    return np.expand_dims(array, tuple(i for i in range(4) if i == 0 or list(AXES)[i - 1] not in plates))


def slim(array: np.ndarray, plates: tuple[str, ...]) -> np.ndarray:
    """The opposite: (n, k, t, ...) with axes of length one where the variable has no plate, as the model has it."""
    array = array.reshape((*(array.shape[i] for i in range(3) if list(AXES)[i] in plates), *array.shape[3:]))
    held = sorted(range(len(plates)), key=lambda i: AXES[plates[i]])
    return np.moveaxis(array, range(len(plates)), held)


def _then(term: Any, nodes: dict[str, Any], plates: dict[str, Any]) -> Any:
    return lambda previous: _term(term, {**nodes, "previous": previous}, plates)


def _term(term: tuple[Any, ...], nodes: dict[str, Any], plates: dict[str, Any]) -> Any:
    if term[0] == "switch":
        return cv.switch(_lower(term[1], nodes, plates), *(_term(t, nodes, plates) for t in term[2]))
    name, args = term
    lowered = {edge: _lower(e, nodes, plates) for edge, e in args.items()}
    if name in ("bernoulli", "categorical", "binomial", "multinomial", "poisson"):
        return getattr(cv, name)(*lowered.values())
    return OWN[name](**lowered) if name in OWN else getattr(cv, name)(**lowered)


def _own(name: str, log_density: Any, **domains: Any) -> Any:
    return cv.factor(name, log_density=log_density, **domains)


# Factors of a user's own; `densities.LOG` has them in NumPy.
OWN = {
    "own_logistic": _own(
        "own_logistic",
        lambda out, mean, scale: (mean - out) / scale - jnp.log(scale) - 2.0 * jnp.logaddexp(0.0, (mean - out) / scale),
        out=cv.real, mean=cv.real, scale=cv.positive,
    ),
    "own_waiting": _own("own_waiting", lambda out, rate: jnp.log(rate) - rate * out, out=cv.positive, rate=cv.positive),
    "own_agreement": _own(
        "own_agreement",
        lambda out, other: -jnp.log1p(jnp.exp(jnp.where(out == other, -1.1, 1.1))),
        out=cv.boolean, other=cv.boolean,
    ),
}  # fmt: skip


def _lower(e: Any, nodes: dict[str, Any], plates: dict[str, Any]) -> Any:
    op, *rest = e
    if op == "ref":
        return nodes[rest[0]]
    if op == "number":
        return rest[0]
    if op == "gather":
        return _lower(rest[0], nodes, plates)[_lower(rest[1], nodes, plates)]
    if op == "kernel":
        return getattr(cv.kernels, rest[0])(scale=rest[1], variance=rest[2])
    if op in OVER:
        return getattr(cv, OVER[op])(_lower(rest[0], nodes, plates), over=plates[rest[1]])
    if op in ("element", "subvector"):
        return getattr(cv, op)(_lower(rest[0], nodes, plates), *rest[1:])
    if op == "power":
        return _lower(rest[0], nodes, plates) ** rest[1]
    a, *others = [_lower(x, nodes, plates) for x in rest]
    b = others[0] if others else None
    simple: dict[str, Any] = {
        "add": lambda: a + b, "sub": lambda: a - b, "mul": lambda: a * b, "div": lambda: a / b, "neg": lambda: -a,
        "greater": lambda: a > b, "and": lambda: a & b, "or": lambda: a | b, "xor": lambda: a ^ b, "not": lambda: ~a,
        "equal": lambda: a == b, "square": lambda: a**2, "unequal": lambda: a != b, "less": lambda: a < b,
        "greater_equal": lambda: a >= b, "less_equal": lambda: a <= b, "matmul": lambda: a @ b,
    }  # fmt: skip
    return simple[op]() if op in simple else getattr(cv, op)(a, *others)


# By NumPy -------------------------------------------------------------------------------------------------------------


def evaluate(e: Any, env: dict[str, Any]) -> np.ndarray:
    """The value of an expression at arrays of values by name."""
    op, *rest = e
    if op == "ref":
        return env[rest[0]]
    if op == "number":
        value = np.asarray(rest[0])
        return value.reshape(1, 1, 1, 1, *value.shape)
    if op == "gather":
        source, index = evaluate(rest[0], env), evaluate(rest[1], env).astype(int)
        return _gather(source, index, AXES[rest[2]])
    if op == "kernel":
        return rest  # type: ignore[return-value]
    if op in OVER:
        return _over(op, evaluate(rest[0], env), AXES[rest[1]])
    if op in ("element", "subvector"):
        vector = evaluate(rest[0], env)
        return vector[..., rest[1]] if op == "element" else vector[..., rest[1] : rest[1] + rest[2]]
    if op == "power":
        return evaluate(rest[0], env) ** rest[1]
    if op == "stack":
        return np.stack(np.broadcast_arrays(*[evaluate(x, env) for x in rest]), -1)
    if op == "matmul":
        return np.einsum("...ij,...j->...i", evaluate(rest[0], env), evaluate(rest[1], env))
    a, *others = [evaluate(x, env) for x in rest]
    if op in ("add", "mul"):  # of a vector and a number
        widest = max(a.ndim, others[0].ndim)
        a, others = (
            a.reshape(*a.shape, *[1] * (widest - a.ndim)),
            [b.reshape(*b.shape, *[1] * (widest - b.ndim)) for b in others],
        )
    b: Any = others[0] if others else None
    functions: dict[str, Any] = {
        "add": lambda: a + b, "sub": lambda: a - b, "mul": lambda: a * b, "div": lambda: a / b, "neg": lambda: -a,
        "greater": lambda: a > b, "and": lambda: (a > 0.5) & (b > 0.5), "or": lambda: (a > 0.5) | (b > 0.5),
        "xor": lambda: (a > 0.5) ^ (b > 0.5), "not": lambda: ~(a > 0.5), "equal": lambda: a == b,
        "square": lambda: a**2, "exp": lambda: np.exp(a), "log": lambda: np.log(a), "logistic": lambda: sp.expit(a),
        "probit": lambda: sp.ndtr(a), "max": lambda: np.maximum(a, b), "min": lambda: np.minimum(a, b),
        "dot": lambda: (a * b).sum(-1), "unequal": lambda: a != b, "less": lambda: a < b,
        "greater_equal": lambda: a >= b, "less_equal": lambda: a <= b,
    }  # fmt: skip
    return functions[op]()


def _over(op: str, value: np.ndarray, axis: int) -> np.ndarray:
    if op in ("sum", "all", "any"):
        return getattr(value > 0.5 if op in ("all", "any") else value, op)(axis, keepdims=True)
    last = np.expand_dims(np.moveaxis(value, axis, -1), axis)
    return {
        "softmax": lambda: sp.softmax(last, axis=-1),
        "stack_over": lambda: last,
        "probit_over": lambda: _largest(last),
    }[op]()


def _largest(score: np.ndarray) -> np.ndarray:
    """P(score_k + e_k is the largest), the e independent N(0, 1), by quadrature over e_k."""
    e, w = np.polynomial.hermite_e.hermegauss(40)
    gap = score[..., :, None, None] - score[..., None, :, None] + e
    below = np.where(np.eye(score.shape[-1], dtype=bool)[..., None], 1.0, sp.ndtr(gap)).prod(-2)
    return below @ (w / np.sqrt(2.0 * np.pi))


def _gather(source: np.ndarray, index: np.ndarray, axis: int) -> np.ndarray:
    if source.ndim == 5:
        index = index[..., None]
    shape = [max(a, b) for a, b in zip(source.shape, index.shape, strict=True)]
    wide = list(shape)
    wide[axis] = source.shape[axis]
    narrow = list(shape)
    narrow[axis] = index.shape[axis]
    return np.take_along_axis(np.broadcast_to(source, wide), np.broadcast_to(index, narrow), axis)


def log_terms(small: Small, env: dict[str, Any], missing: dict[str, np.ndarray]) -> np.ndarray:
    """log p of everything in `env`, summed over plates, for each grid point."""
    total: Any = 0.0
    env = dict(env)
    for s in small.statements:
        if isinstance(s, Variable):
            density = log_density(s, s.term, env[s.name], env, small)
            if s.name in missing:
                density = np.where(missing[s.name], 0.0, density)
            full = (density.shape[0], *small.shape(s)[:3])
            total = total + np.broadcast_to(density, np.broadcast_shapes(full, density.shape)).sum((1, 2, 3))
        elif isinstance(s, Named):
            found = evaluate(s.expression, env)
            if s.observed:
                total = total + np.where(found == env[s.name], 0.0, -np.inf).sum((1, 2, 3))
            env[s.name] = found
        else:
            total = total + np.where(evaluate(s.expression, env), 0.0, -np.inf).sum((1, 2, 3))
    return total


def log_density(variable: Variable, term: tuple[Any, ...], out: np.ndarray, env: dict[str, Any], small: Small) -> Any:
    """log p(out | arguments) by element."""
    if term[0] == "switch":
        choice = evaluate(term[1], env).astype(int)
        boolean = len(term[2]) == 2 and _is_boolean(term[1], small)
        each = [log_density(variable, t, out, env, small) for t in term[2]]
        cases = each[::-1] if boolean else each
        return sum(np.where(choice == i, case, 0.0) for i, case in enumerate(cases))
    if term[0] in LINKED:
        parent = _parents(term, env, out.shape[3])
        then = log_density(variable, term[2], out, {**env, "previous": out[:, :, :, parent]}, small)
        first = log_density(variable, term[1], out, env, small)
        return np.where(_roots(term, parent), first, then)
    return densities.LOG[term[0]](out, **{edge: evaluate(e, env) for edge, e in term[1].items()})


def _parents(term: Any, env: dict[str, Any], size: int) -> np.ndarray:
    """The position of each element's parent, which comes before it; a root is its own."""
    return np.maximum(np.arange(size) - 1, 0) if term[0] == "chain" else env[term[3]][0, 0, 0].astype(int)


def _roots(term: Any, parent: np.ndarray) -> np.ndarray:
    return parent == np.arange(len(parent))


def _is_boolean(selector: Any, small: Small) -> bool:
    if selector[0] == "gather":
        return _is_boolean(selector[1], small)
    if selector[0] != "ref":
        return True
    named = [*small.statements, *small.givens]
    return next(s.kind for s in named if getattr(s, "name", "") == selector[1]) == "boolean"


def simulate(small: Small, givens: dict[str, Any], rng: np.random.Generator, draws: int) -> dict[str, Any]:
    """Values of all variables and lets, drawn from the model; constraints are not looked at."""
    env = dict(givens)
    for s in small.statements:
        if isinstance(s, Variable):
            env[s.name] = _draw(s, s.term, env, small, rng, draws)
        elif isinstance(s, Named):
            env[s.name] = evaluate(s.expression, env)
    return env


def satisfied(small: Small, env: dict[str, Any]) -> np.ndarray:
    """Which draws satisfy all constraints."""
    kept = [evaluate(s.expression, env).all((1, 2, 3)) for s in small.statements if isinstance(s, Constraint)]
    return np.logical_and.reduce(kept) if kept else np.ones(1, bool)


def _draw(s: Variable, term: Any, env: dict[str, Any], small: Small, rng: np.random.Generator, draws: int) -> Any:
    if term[0] == "switch":
        choice = evaluate(term[1], env).astype(int)
        each = [_draw(s, t, env, small, rng, draws) for t in term[2]]
        cases = each[::-1] if len(each) == 2 and _is_boolean(term[1], small) else each
        choice = choice[..., None] if s.kind == "vector" else choice
        return sum(np.where(choice == i, case, 0.0) for i, case in enumerate(cases))
    if term[0] in LINKED:
        one = dataclasses.replace(s, plates=tuple(p for p in s.plates if p != "t"))
        parent = _parents(term, env, small.sizes["t"])
        elements: list[Any] = []
        for i, above in enumerate(parent):
            here = {name: a[:, :, :, i : i + 1] if a.shape[3] > 1 else a for name, a in env.items()}
            if _roots(term, parent)[i]:
                elements.append(_draw(one, term[1], here, small, rng, draws))
            else:
                elements.append(_draw(one, term[2], {**here, "previous": elements[above]}, small, rng, draws))
        return np.concatenate(elements, 3)
    args = {edge: evaluate(e, env) for edge, e in term[1].items()}
    return densities.DRAW[term[0]](rng, (draws, *small.shape(s)[:3]), **args)
