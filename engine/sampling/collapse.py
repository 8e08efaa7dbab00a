"""Variables integrated out of the conditionals of all others, and drawn from their own afterwards.

What is left when a variable with an exact conditional is integrated out follows from the conditional:
log p(others) = log p(x, others) - log p(x | others), at any x. Source: chib1995marginal, liu1994collapsed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from ...factors.arrays import Array, Key
from ...factors.errors import ModelError, UnsupportedError
from ..density.log_density import LogDensity
from ..density.tables import Between, Factor
from .conditionals import gaussian
from .conditionals.conjugate import Fit, conjugate, fitting, slope_of
from .joint import Data, Gathers, Integral, Joint, SomeJoint, Values
from .move import Move

LOG_2PI = math.log(2.0 * math.pi)
SUMMED = "discrete variables summed out"
SINGULAR = 1e-6  # squared distance from the peak in sds that a step of Newton's leaves at most


def collapsed(joint: Joint, names: Sequence[str], starts: list[Values], key: Key) -> tuple[Joint, list[Move]]:
    """The joint density of all other variables, and the moves that draw these in the end.

    ModelError for a name that is no latent variable, UnsupportedError for one without an exact conditional.
    """
    _check_names(joint, names)
    moves, left = [], joint
    reals = tuple(name for name in names if joint.variables[name].domain.is_gaussian)
    if reals:
        if sum(gaussian.size_of(joint, n) for n in reals) > gaussian.DENSE or not gaussian.is_gaussian(
            joint, reals, starts, key
        ):
            raise UnsupportedError(_refused(names, reals))
        moves.append(gaussian.jointly(joint, reals, starts[0]))
        left = without(left, reals, _of_quadratic(joint, reals))
    for name in names:
        if name not in reals:
            gathers = left.gathers(name)
            fit = None if gathers is None else fitting(left, name, starts)
            if gathers is None or fit is None:
                raise UnsupportedError(_refused(names, (name,)))
            moves.append(conjugate(left, name, gathers, fit))
            left = without(left, (name,), _of_fit(left, name, gathers, fit))
    return left, moves[::-1]  # the last was integrated out of what those before it had left


def _check_names(joint: Joint, names: Sequence[str]) -> None:
    if isinstance(names, str) or len(set(names)) < len(names):
        raise ModelError(f"collapse={names!r} is a list of different names, such as collapse=['weights'].")
    for name in names:
        if name not in joint.variables:
            there = ", ".join(joint.variables)
            raise ModelError(f"collapse={list(names)!r}: '{name}' is no latent variable here. There are: {there}.")
        if name in joint.contents.holes:
            raise UnsupportedError(
                f"collapse={list(names)!r}: some elements of '{name}' are given. Collapse what is wholly latent."
            )


def _refused(names: Sequence[str], which: Sequence[str]) -> str:
    return (
        f"collapse={list(names)!r}: {', '.join(which)} has no conditional of its own family given what is left, so it "
        "cannot be integrated out. Collapse what explain() draws from such a conditional: Gaussian variables together, "
        f"up to {gaussian.DENSE} numbers, and others that share no factor."
    )


def without(joint: SomeJoint, names: Sequence[str], integral: Integral, called: str = "") -> SomeJoint:
    """The joint density with the factors that read these variables replaced by the logarithm of their integral."""
    gone, out = set(joint.touching(names)), {id(joint.variables[name]) for name in names}
    roots = [root for factor in gone for root in joint.factors[factor].roots if id(root) not in out]
    own = called or f"{', '.join(names)} integrated out"
    factors = {name: factor for name, factor in joint.factors.items() if name not in gone}
    return joint.replaced(
        {**factors, own: Factor(tuple(roots), ())},
        {name: variable for name, variable in joint.variables.items() if name not in set(names)},
        {**joint.integrals, own: integral},
    )


def without_states(joint: SomeJoint, names: Sequence[str]) -> SomeJoint:
    """The joint density with discrete variables summed out."""
    if not names:
        return joint
    density = LogDensity(joint.density.model, joint.density.binding)
    given = {name: density.contents.data[name] for name in names if name in density.contents.data}

    def integral(values: Mapping[str, Array], data: Data, points: Between | None = None) -> Array:
        return density.terms.sum_of_states(values, {**given, **data}, points)

    return without(joint, names, integral, SUMMED)


def _of_quadratic(joint: Joint, names: Sequence[str]) -> Integral:
    """The integral of a quadratic form, from its peak and its curvature."""
    factors = joint.touching(names)
    shapes = {name: jnp.zeros(joint.contents.shape(joint.variables[name])) for name in names}
    start, back = ravel_pytree(shapes)
    solve = jax.scipy.linalg.solve_triangular

    def integral(values: Mapping[str, Array], data: Data, points: Between | None = None) -> Array:
        own = joint.between(points)

        def log_density(x: jax.Array) -> Array:
            return own.total(factors, {**values, **back(x)}, data)

        root = jnp.linalg.cholesky(-jax.hessian(log_density)(start))
        peak = solve(root.T, solve(root, jax.grad(log_density)(start), lower=True), lower=False)
        # At zero a sharp form is a difference of numbers that are far larger than what is left of it.
        height, slope = jax.value_and_grad(log_density)(peak)
        rest = solve(root, slope, lower=True)
        total = height - jnp.sum(jnp.log(jnp.diagonal(root))) + 0.5 * len(start) * LOG_2PI
        # Far from the peak after Newton's step the matrix is singular to rounding, and its determinant means nothing.
        return jnp.where(rest @ rest < SINGULAR, total + 0.5 * rest @ rest, -jnp.inf)

    return integral


def _of_fit(joint: Joint, name: str, gathers: Gathers, fit: Fit) -> Integral:
    """The log density less that of the conditional, at a point in the middle of the domain."""
    factors, variable = tuple(gathers), joint.variables[name]

    def integral(values: Mapping[str, Array], data: Data, points: Between | None = None) -> Array:
        own = joint.between(points)
        at = fit.middle(joint.contents.shape(variable))
        slope = slope_of(own, name, dict(values), data, factors)
        log_density = jnp.sum(fit.log_density(fit.read(slope, at), at))
        return own.total(factors, {**values, name: at}, data) - log_density

    return integral
