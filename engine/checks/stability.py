"""The stability of a fixed point: the largest eigenvalues of the Jacobian of one undamped sweep there.

A sweep maps the messages x to F(x). Near its fixed point a distance d becomes J d, J being the Jacobian of F, so plain
sweeps converge where all eigenvalues of J are within the unit circle, by their largest modulus in each. One at or below
-1 is an oscillation, which damping by a share s cures: eigenvalues become s + (1 - s) J's. One beyond 1 is no damping's
to cure: the run would leave this fixed point for another. Few messages make a matrix; of many Arnoldi's method finds
the largest eigenvalues from products with J. Source: paquet2007thesis.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Complex, Float
from scipy.sparse.linalg import LinearOperator, eigs

from ...compiler.data.keys import STARTS
from ...factors.errors import UnsupportedError
from ...factors.switches import double_precision
from ..answers.inferred import Inferred
from ..answers.outcome import Outcome
from ..answers.start_from import start_from
from ..run.control.carry import Settings
from ..run.in_sweeps import Sweeping
from ..run.padded import Padding
from ..run.start import Lane
from ..support.asked_arguments import check_counts
from ..values.first_beliefs import stats_from_moments

DENSE = 300  # messages of which a matrix is made
STEP = 1e-5  # of central differences, relative to the messages
SHOWN = 3  # variables that an eigenvalue names


@dataclasses.dataclass(frozen=True, eq=False)
class Stability:
    """How undamped sweeps behave near a fixed point.

    Attributes:
        eigenvalues: the largest of the Jacobian of a sweep, by modulus, from the largest down; empty where a single
            pass is exact.
        variables: for each the share of the change of beliefs along its eigenvector that each variable has, in its
            standard deviations, from the largest down.
    """

    eigenvalues: Complex[np.ndarray, " found"]
    variables: tuple[dict[str, float], ...]

    @property
    def rate(self) -> float:
        """What is left of a small distance after an undamped sweep, in the long run; zero where one pass is exact."""
        return float(np.abs(self.eigenvalues).max(initial=0.0))

    @property
    def stable(self) -> bool:
        """Whether undamped sweeps from nearby come back."""
        return self.rate < 1.0

    def __str__(self) -> str:
        if not len(self.eigenvalues):
            return "One pass is exact: there are no sweeps that could be unstable."
        head = f"{'Stable' if self.stable else 'Unstable'}: a plain sweep leaves {self.rate:.4g} of a small distance."
        lines = []
        for value, shares in zip(self.eigenvalues, self.variables, strict=True):
            number = f"{value.real:.4g}" if abs(value.imag) < 1e-12 else f"{value.real:.4g}{value.imag:+.4g}i"
            lines.append(f"  {number}: " + ", ".join(f"{n} ({s:.0%})" for n, s in list(shares.items())[:SHOWN]))
        return "\n".join([head, *lines])


class _Map(NamedTuple):
    """A sweep at its fixed point, and how beliefs move with messages."""

    x: Float[np.ndarray, " message"]
    sweep: Callable[[np.ndarray], np.ndarray]
    along: Callable[[np.ndarray], np.ndarray]  # the Jacobian times a vector
    moved: Callable[[np.ndarray], dict[str, tuple]]  # by belief the change of naturals and of statistics


def stability(posterior: Inferred, count: int = 5) -> Stability:
    """The `count` largest eigenvalues at the fixed point of `posterior`: see `Posterior.stability`."""
    check_counts("posterior.stability", count=count)
    if not isinstance(posterior, Outcome):
        raise UnsupportedError(
            "posterior.stability() is that of the fixed point of one run, and this posterior is made of several runs "
            "or of weighted draws. Infer with accuracy='fast', or ask that of posterior.plain where there is one."
        )
    if not posterior.converged:
        raise UnsupportedError(
            f"posterior.stability() is that of a fixed point, and this run is {posterior.code}. Infer with damping= or "
            "more sweeps (max_iterations=) until it has converged."
        )
    if posterior.machine.direct:
        return Stability(np.zeros(0, complex), ())
    with double_precision():
        own = _map(posterior)
        free = _free(own)
        values, vectors = _largest(own, free, count)
        return Stability(values, tuple(_shares(posterior, own, vector) for vector in vectors))


def _map(posterior: Outcome) -> _Map:
    """The sweep of a posterior's machine, begun at its own messages."""
    machine, larger = posterior.machine, posterior.machine.larger
    given, _ = start_from(machine, posterior.binding, posterior)
    data = {**posterior.arrays, STARTS: given}
    if larger is not None:
        data, machine = Padding(machine, larger).data(data), larger
    data = jax.tree.map(jnp.asarray, data)  # what a traced function holds on to must be JAX's own
    key = jax.random.wrap_key_data(jnp.asarray(posterior.result.outputs["key"]))
    task = Sweeping(machine, Settings(), data, Lane(key, None, jnp.ones(())), True)
    x, rest, join = task.split(task.state)

    def sweep(x: jax.Array) -> jax.Array:
        found = machine.sweep(task.fixed, task.data, join(x, rest), jnp.ones(()), False, {}, jnp.asarray(False))
        return task.split(found.state)[0]

    def beliefs(x: jax.Array) -> dict[str, tuple]:
        naturals = machine.beliefs(task.fixed, join(x, rest))
        live = [name for name in naturals if name not in machine.transient]
        return {n: (naturals[n], tuple(stats_from_moments(machine.moments_of(n, naturals[n])))) for n in live}

    def tangent(function: Callable) -> Callable:
        at = jax.jit(lambda v: jax.jvp(function, (x,), (v,))[1])
        return lambda v: jax.tree.map(np.asarray, at(jnp.asarray(v)))

    plain, along = jax.jit(sweep), tangent(sweep)
    if not _has_derivative(along(np.ones(x.shape))):
        size = STEP * max(1.0, float(np.abs(x).max()))
        along = partial(_difference, plain, np.asarray(x), size=size)
    return _Map(np.asarray(x), lambda z: np.asarray(plain(jnp.asarray(z))), along, tangent(beliefs))


def _has_derivative(probe: np.ndarray) -> bool:
    """Whether a product with the Jacobian is of numbers."""
    return bool(np.isfinite(probe).all())


def _difference(sweep: Callable[[np.ndarray], np.ndarray], x: np.ndarray, v: np.ndarray, size: float) -> np.ndarray:
    """The Jacobian times a vector by central differences, where a sweep has no derivative."""
    length = float(np.abs(v).max())
    if not length:
        return np.zeros_like(v)
    h = size / length
    return (np.asarray(sweep(x + h * v)) - np.asarray(sweep(x - h * v))) / (2.0 * h)


def _free(own: _Map) -> np.ndarray:
    """Which messages a sweep moves: places that only fill up a batch stay exactly where they are."""
    near = own.x * (1.0 + 1e-6 * np.random.default_rng(0).normal(size=own.x.shape)) + 1e-9
    return own.sweep(near) != near


def _largest(own: _Map, free: np.ndarray, count: int) -> tuple[np.ndarray, list[np.ndarray]]:
    """The largest eigenvalues, and their eigenvectors over all messages."""
    size = int(free.sum())

    def product(v: np.ndarray) -> np.ndarray:
        whole = np.zeros(own.x.shape)
        whole[free] = np.ravel(v)
        return own.along(whole)[free]

    if size <= max(DENSE, count + 2):
        matrix = np.stack([product(v) for v in np.eye(size)], axis=1)
        values, vectors = np.linalg.eig(matrix)
    else:
        operator = LinearOperator((size, size), matvec=product, dtype=float)  # pyright: ignore
        values, vectors = _pair(eigs(operator, k=count, which="LM", v0=np.random.default_rng(0).normal(size=size)))
    order = np.argsort(-np.abs(values))[:count]
    found = []
    for i in order:
        whole = np.zeros(own.x.shape, complex)
        whole[free] = vectors[:, i]
        found.append(whole)
    return np.asarray(values[order], complex), found


def _pair(found: Any) -> tuple[np.ndarray, np.ndarray]:
    """What SciPy returns, of which its types tell less."""
    values, vectors = found
    return values, vectors


def _shares(posterior: Outcome, own: _Map, vector: np.ndarray) -> dict[str, float]:
    """The part that each variable has in an eigenvector: (change of naturals) . (change of statistics)."""
    total: dict[str, float] = {}
    for part in (np.real(vector), np.imag(vector)):
        for name, (naturals, stats) in own.moved(part).items():
            change = sum(float(np.sum(n * s)) for n, s in zip(naturals, stats, strict=True))
            total[name] = total.get(name, 0.0) + abs(change)
    members = {joint.variable.name: ", ".join(m.name for m in joint.members) for joint in posterior.graph.joints}
    whole = sum(total.values()) or 1.0
    ranked = sorted(total.items(), key=lambda item: -item[1])
    return {members.get(name, name): change / whole for name, change in ranked}
