"""How the precision of a Gaussian conditional depends on all other variables: what is constant is computed once.

The precision is read off second derivatives, as many as there are numbers, which costs most of a sweep. Often it is the
same wherever the chain is (probit regression given its normal numbers), or affine in a few numbers (the precisions of a
hierarchy). Which it is follows from the traced function: what it reads after all that is not needed is taken out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.extend.core import Jaxpr, Literal, jaxprs_in_params
from jax.flatten_util import ravel_pytree
from jax.interpreters import partial_eval

from ....factors.arrays import Array
from ..joint import Data, Joint, Values

MOST = 50_000  # numbers that are kept of an affine function
# What may be done to the numbers that a precision is affine in. A comparison is none of these: it has no derivative.
LINEAR = (
    *("add", "add_any", "sub", "neg", "mul", "div", "dot_general", "reduce_sum", "scatter-add", "select_n"),
    *("broadcast_in_dim", "concatenate", "convert_element_type", "copy", "dynamic_slice", "expand_dims", "gather"),
    *("pad", "reshape", "rev", "slice", "split", "squeeze", "transpose", "custom_jvp_call", "jit", "pjit", "scan"),
)

Function = Callable[[Values, Data], Any]
Precision = Callable[[Values, Data], Array]


class Curvature(NamedTuple):
    """A precision, and the Cholesky factor of it."""

    precision: Precision
    root: Precision


def curvature_of(joint: Joint, precision: Precision, values: Values) -> Curvature:
    """The precision of a conditional, by the simplest of the ways to compute it; `values` are any of the others."""
    constant, found = simplest(joint, precision, values)
    if constant:
        root = jnp.linalg.cholesky(found({}, {}))
        return Curvature(found, lambda values, data: root)
    return Curvature(found, lambda values, data: jnp.linalg.cholesky(found(values, data)))


def simplest(joint: Joint, function: Function, values: Values) -> tuple[bool, Function]:
    """Whether a function of values and data is constant, and the simplest way to compute it.

    The function returns arrays; `values` are any of those that it may read.
    """
    given = joint.arrays
    inputs = {**values, **{name: given[name] for name in joint.varying}}

    def of(inputs: Mapping[str, Any]) -> Any:
        data = {**given, **{name: inputs[name] for name in joint.varying}}
        return function({name: array for name, array in inputs.items() if name not in joint.varying}, data)

    def flat(inputs: Mapping[str, Any]) -> Array:
        return ravel_pytree(of(inputs))[0]

    reads = _read(of, inputs)
    if not reads:
        kept = jax.jit(of)(inputs)
        return True, lambda values, data: kept
    arrays = all(len(jax.tree.leaves(inputs[name])) == 1 for name in reads)
    few = {name: jnp.asarray(inputs[name]) for name in reads} if arrays else {}
    if not few or not _is_affine(flat, inputs, few):
        return False, function
    base, slopes = jax.jit(_affine(flat, inputs))(few)
    back = ravel_pytree(jax.tree.map(lambda a: jnp.zeros(a.shape, a.dtype), jax.eval_shape(of, inputs)))[1]

    def affine(values: Values, data: Data) -> Any:
        now = {name: data[name] if name in joint.varying else values[name] for name in reads}
        return back(base + _times(slopes, now))

    return False, affine


def _needed(function: Callable[[Any], Any], inputs: Mapping[str, Any]) -> tuple[Jaxpr, tuple[str, ...]]:
    """What a function of a dictionary of arrays does without its dead code, and the names of the inputs of that."""
    traced = jax.make_jaxpr(function)(dict(inputs)).jaxpr
    left, used = partial_eval.dce_jaxpr(traced, [True] * len(traced.outvars))
    names = [name for name in sorted(inputs) for _ in jax.tree.leaves(inputs[name])]  # some structures have several
    return left, tuple(dict.fromkeys(name for name, flag in zip(names, used, strict=True) if flag))


def _read(function: Callable[[Any], Any], inputs: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of those inputs that a function of a dictionary of arrays depends on."""
    return _needed(function, inputs)[1]


def _has_no_jumps(left: Jaxpr) -> bool:
    """Whether the inputs go through linear operations alone."""
    moves = set(left.invars)
    for step in left.eqns:
        flags = [not isinstance(place, Literal) and place in moves for place in step.invars]
        if not any(flags):
            continue
        if step.primitive.name not in LINEAR or (step.primitive.name == "select_n" and flags[0]):
            return False
        if any(not jnp.issubdtype(getattr(place.aval, "dtype", bool), jnp.floating) for place in step.outvars):
            return False
        if not all(map(_has_no_jumps, jaxprs_in_params(step.params))):
            return False
        moves.update(step.outvars)
    return True


def _is_affine(of: Callable, inputs: Mapping[str, Any], few: Mapping[str, Array]) -> bool:
    """Whether it is, with few enough coefficients: linear steps, whose derivative does not read where it is taken."""
    out = jax.eval_shape(of, dict(inputs))
    if not all(jnp.issubdtype(array.dtype, jnp.floating) for array in few.values()):
        return False
    if out.size * sum(array.size for array in few.values()) > MOST:
        return False
    if not _has_no_jumps(_needed(lambda few: of({**inputs, **few}), few)[0]):
        return False

    def derivative(both: Mapping[str, Any]) -> Array:
        at, along = ({name: both[kind + name] for name in few} for kind in ("at ", "to "))
        return jax.jvp(lambda few: of({**inputs, **few}), (at,), (along,))[1]

    both = {kind + name: array for name, array in few.items() for kind in ("at ", "to ")}
    return all(name.startswith("to ") for name in _read(derivative, both))


def _affine(of: Callable, inputs: Mapping[str, Any]) -> Callable[[dict[str, Array]], tuple[Array, dict[str, Array]]]:
    """From any point its value at zero and its derivatives."""

    def found(few: dict[str, Array]) -> tuple[Array, dict[str, Array]]:
        def own(few: dict[str, Array]) -> Array:
            return of({**inputs, **few})

        slopes = jax.jacfwd(own)(few)
        return own(few) - _times(slopes, few), slopes

    return found


def _times(slopes: Mapping[str, Array], few: Mapping[str, Array]) -> Array:
    """The sum of all derivatives times their numbers."""
    total: Any = 0.0
    for name, slope in slopes.items():
        total = total + jnp.tensordot(slope, few[name], axes=jnp.ndim(few[name]))
    return total
