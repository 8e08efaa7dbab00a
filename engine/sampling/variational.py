"""Variational transition kernels: a step of variational message passing, from where the chain is, as its proposal.

Some variables x are integrated out of the density: discrete ones, and those of `collapse=`. Of another one,
q(new | now) is proportional to exp E log p(x, new, rest), the mean under p(x | now, rest); the rule of Metropolis and
Hastings corrects it. Source: paquet2007thesis, hastings1970monte.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ...factors import draws
from ...factors.arrays import Array, Key
from ...factors.calls import methods_checked
from ...factors.errors import ModelError, UnsupportedError
from ...factors.families.slopes import Fit
from ..answers.inferred import Inferred
from ..density.tables import Between
from ..density.terms import is_whole
from .choose import in_each_state, moves_among, start
from .collapse import collapsed, without_states
from .conditionals import gaussian
from .conditionals.conjugate import fitting
from .conditionals.lanes import Lanes, lanes_of
from .joint import Data, Joint, Values
from .move import Move, Stage
from .references import beliefs_of

TRIED = 3  # points at which conditionals are tried
ACCEPTED = 0.3  # of the steps of a random walk, to which its width is tuned
LOG_WEIGHT, LOG_PROPOSAL = "log weight", "log density of what was proposed"


@methods_checked("kernel")
@dataclasses.dataclass(frozen=True)
class VariationalKernel:
    """How `cv.sample(..., kernel=VariationalKernel(...))` proposes; `kernel="variational"` is VariationalKernel().

    Each variable in turn is drawn from q(new | now) proportional to exp E log p(x, new, rest), the mean under
    p(x | now, rest) of what is integrated out: discrete variables, and those of `collapse=`. Where nothing is, this is
    Gibbs sampling, and everything is accepted.

    Args:
        random_walk: whether each proposal is followed by one of a random walk in unconstrained coordinates, whose width
            is tuned while chains warm up. Without it chains that begin far out in a tail hardly leave it.
        reference: a posterior, whose beliefs are proposed instead, wherever the chain is.
        weighted: whether nothing is rejected and draws have weights: `Samples.log_weights`, whose variance may be
            infinite where much is integrated out. A random walk has no place there.

    Raises ModelError for a combination that has no meaning. Source: paquet2007thesis.
    """

    random_walk: bool = True
    reference: Inferred | None = None
    weighted: bool = False

    def __post_init__(self) -> None:
        if self.reference is not None and not isinstance(self.reference, Inferred):
            raise ModelError(
                f"VariationalKernel(reference={self.reference!r}) is a posterior of cv.infer, or None for a step of "
                "variational message passing from where the chain is."
            )

    @property
    def identity(self) -> tuple:
        """What it is made of, by value."""
        beliefs = {} if self.reference is None else self.reference.beliefs
        arrays = [(name, *map(np.asarray, jax.tree.leaves(family))) for name, family in beliefs.items()]
        return self.random_walk, self.weighted, self.reference is None, arrays


class Planned(NamedTuple):
    """The density of what is proposed, by names what is proposed of it, and the moves of all that is integrated out."""

    left: Joint
    proposals: Mapping[tuple[str, ...], Proposal]
    last: tuple[Move, ...]


def planned(joint: Joint, kernel: VariationalKernel, seed: int, collapse: Sequence[str]) -> Planned:
    """What is proposed; `joint` is bare of auxiliary variables. UnsupportedError where a proposal is not closed."""
    key = jax.random.key(seed)
    starts = [start(joint, jax.random.fold_in(key, i)) for i in range(TRIED)]
    starts += in_each_state(joint, starts[0], key)
    states = {name: variable for name, variable in joint.variables.items() if variable.domain.is_discrete}
    left, last = collapsed(without_states(joint, tuple(states)), collapse, starts, key)
    names = tuple(left.variables)
    if kernel.reference is not None:
        proposals = {names: _believed(left, kernel.reference)} if names else {}
    else:
        proposals = {(name,): _step_of(joint, left, name, starts, key) for name in names}
    return Planned(left, proposals, (*last, *(moves_among(joint, states, starts, key) if states else ())))


def variational_moves(joint: Joint, kernel: VariationalKernel, seed: int, collapse: Sequence[str]) -> tuple[Move, ...]:
    """The moves of a sweep."""
    left, proposals, last = planned(joint, kernel, seed, collapse)
    moves: list[Move] = []
    for which, proposal in proposals.items():
        moves.append(_weighted(which, proposal) if kernel.weighted else _accepted(left, which, proposal))
        if kernel.random_walk and not kernel.weighted:
            moves += [_walk(left, name) for name in which]
    if kernel.weighted and moves:
        moves[0] = _opens(moves[0])
        moves[-1] = _closes(left, moves[-1])
    return (*moves, *last)


# proposals ------------------------------------------------------------------------------------------------------------


class Proposal(NamedTuple):
    """What is proposed of some variables: `of(values, data)` its parameters, from all values of now."""

    how: str
    of: Callable[[Values, Data], Any]
    draw: Callable[[Key, Any], Values]
    log_density: Callable[[Any, Values], Array]


def _step_of(joint: Joint, left: Joint, name: str, starts: list[Values], key: Key) -> Proposal:
    """A step of variational message passing; conditionals given all that is integrated out tell of which family."""
    variable, factors = left.variables[name], left.touching([name])
    if name in joint.contents.holes or variable.domain.is_sparse or is_whole(variable):
        raise UnsupportedError(_refused(name))
    if variable.domain.is_gaussian and gaussian.is_gaussian(joint, (name,), starts, key):
        lanes = lanes_of(joint, name)
        if gaussian.size_of(joint, name) > gaussian.DENSE * lanes.count:
            raise UnsupportedError(_refused(name))
        return _gaussian_step(left, factors, name, lanes)
    gathers = joint.gathers(name)
    fit = None if gathers is None else fitting(joint, name, starts)
    if fit is None:
        raise UnsupportedError(_refused(name))
    return _fitted_step(left, factors, name, fit)


def _refused(name: str) -> str:
    return (
        f"kernel='variational': '{name}' has no closed step of variational message passing (no conditional of its own "
        "family given all that is integrated out), so there is nothing to propose it from. kernel='gibbs' draws it; or "
        "give a reference: VariationalKernel(reference=posterior) proposes from the beliefs of cv.infer."
    )


def mean_log_density(
    left: Joint, factors: tuple[str, ...], name: str, values: Values, data: Data
) -> Callable[[Array], Array]:
    """E log p(x, new, rest) as a function of `new`, under p(x | now, rest) of what is integrated out."""

    def found(new: Array) -> Array:
        def at(share: Array) -> Array:
            points = Between({name: values[name]}, {name: new}, share)
            return left.between(points).total(factors, values, data)

        return jax.jvp(at, (jnp.zeros(()),), (jnp.ones(()),))[1]

    return found


def _gaussian_step(left: Joint, factors: tuple[str, ...], name: str, lanes: Lanes) -> Proposal:
    solve = jax.scipy.linalg.solve_triangular
    around = jnp.vectorize(lambda root, x: solve(root.T, x, lower=False), signature="(d,d),(d)->(d)")
    mean_of = jnp.vectorize(
        lambda root, x: solve(root.T, solve(root, x, lower=True), lower=False), signature="(d,d),(d)->(d)"
    )

    def of(values: Values, data: Data) -> tuple[Array, Array]:
        log_density = mean_log_density(left, factors, name, values, data)
        now = lanes.rows(values[name])
        root = jnp.linalg.cholesky(lanes.precision(lambda rows: log_density(lanes.back(rows)), now))
        slope = jax.grad(lambda rows: log_density(lanes.back(rows)))(now)
        return now + mean_of(root, slope), root

    def draw(key: Key, found: tuple[Array, Array]) -> Values:
        mean, root = found
        return {name: lanes.back(mean + around(root, draws.normal(key, mean.shape)))}

    def log_density(found: tuple[Array, Array], values: Values) -> Array:
        mean, root = found
        away = jnp.einsum("nij,ni->nj", root, lanes.rows(values[name]) - mean)
        log_det = jnp.sum(jnp.log(jnp.diagonal(root, axis1=-2, axis2=-1)))
        return log_det - 0.5 * jnp.sum(away**2) - 0.5 * mean.size * jnp.log(2.0 * jnp.pi)

    return Proposal("from a Gaussian that a step of variational message passing gives", of, draw, log_density)


def _fitted_step(left: Joint, factors: tuple[str, ...], name: str, fit: Fit) -> Proposal:
    symmetric = left.variables[name].domain.kind == "posdef"

    def of(values: Values, data: Data) -> Any:
        gradient = jax.grad(mean_log_density(left, factors, name, values, data))

        def slope(x: Array) -> Array:
            found = gradient(x)
            return 0.5 * (found + jnp.swapaxes(found, -1, -2)) if symmetric else found

        return fit.read(slope, values[name])

    return Proposal(
        f"from a {fit.name} that a step of variational message passing gives",
        of,
        lambda key, found: {name: fit.draw(key, found)},
        lambda found, values: jnp.sum(fit.log_density(found, values[name])),
    )


def _believed(left: Joint, posterior: Inferred) -> Proposal:
    families: dict[str, Any] = dict(beliefs_of(left, posterior, 1.0))
    lacking = [name for name in left.variables if name not in families]
    if lacking:
        there = ", ".join(families) or "none"
        raise UnsupportedError(
            f"VariationalKernel(reference=...): that posterior has no belief about {lacking[0]!r}, which is to be "
            f"proposed, that could be drawn from and has a density. It has: {there}. Infer all that is sampled, or "
            "integrate it out with collapse=."
        )

    def draw(key: Key, found: Any) -> Values:
        return {name: family.sample(jax.random.fold_in(key, i)) for i, (name, family) in enumerate(families.items())}

    def log_density(found: Any, values: Values) -> Array:
        return sum((jnp.sum(own.log_density(values[name])) for name, own in families.items()), jnp.zeros(()))

    return Proposal("from the beliefs of the reference", lambda values, data: (), draw, log_density)


# moves ----------------------------------------------------------------------------------------------------------------


def log_ratio(left: Joint, names: tuple[str, ...], proposal: Proposal, now: Values, new: Values, data: Data) -> Array:
    """By which logarithm the density of `new`, and of the way back, exceeds that of `now` and of the way there."""
    factors = left.touching(names)
    there, back = proposal.of(now, data), proposal.of(new, data)
    gain = left.total(factors, new, data) - left.total(factors, now, data)
    return gain + proposal.log_density(back, now) - proposal.log_density(there, new)


def _accepted(left: Joint, names: tuple[str, ...], proposal: Proposal) -> Move:
    """A proposal, accepted by the rule of Metropolis and Hastings."""
    record = _record(names, "variational")

    def step(key: Key, values: Values, state: Any, data: Data, stage: Stage) -> tuple[Values, Any]:
        keys = jax.random.split(key)
        new = {**values, **proposal.draw(keys[0], proposal.of(values, data))}
        gain = log_ratio(left, names, proposal, values, new, data)
        return _chosen(names, record, keys[1], gain, new, values), state

    move = Move(names, proposal.how, False, lambda values, data: (), step)
    return move._replace(records=(record,), proposes="variational")


def _record(names: tuple[str, ...], kind: str) -> str:
    return f"{kind} proposal of {', '.join(names)} taken"


def _chosen(names: tuple[str, ...], record: str, key: Key, gain: Array, new: Values, values: Values) -> Values:
    """The new values or the old ones, and which it was."""
    taken = -draws.exponential(key) < jnp.where(jnp.isnan(gain), -jnp.inf, gain)
    chosen = {name: jnp.where(taken, new[name], values[name]) for name in names}
    return {**values, **chosen, record: taken.astype(float)}


def _walk(left: Joint, name: str) -> Move:
    """A step of a random walk in unconstrained coordinates, whose width is tuned to its share of accepted steps."""
    variable, factors = left.variables[name], left.touching([name])
    shape, record = left.density.contents.shape(variable), _record((name,), "random walk")

    def step(key: Key, values: Values, state: Any, data: Data, stage: Stage) -> tuple[Values, Any]:
        bijection = left.density.coordinates.bijection(variable, left.density.contents.data)
        log_width, done = state

        def log_density(z: Array) -> Array:
            return left.total(factors, {**values, name: bijection.forward(z).reshape(shape)}, data)

        keys = jax.random.split(key)
        now = bijection.backward(values[name])
        z = now + jnp.exp(log_width) * draws.normal(keys[0], now.shape)
        gain = log_density(z) - left.total(factors, values, data)
        gain += bijection.log_jacobian(z) - bijection.log_jacobian(now)
        new = {**values, name: bijection.forward(z).reshape(shape)}
        found = _chosen((name,), record, keys[1], gain, new, values)
        learned = log_width + (found[record] - ACCEPTED) / jnp.sqrt(done + 1.0)
        return found, (jnp.where(stage.warming, learned, log_width), done + 1.0)

    move = Move((name,), "by a random walk", False, lambda values, data: (jnp.zeros(()), jnp.zeros(())), step)
    return move._replace(records=(record,), proposes="random walk")


def _weighted(names: tuple[str, ...], proposal: Proposal) -> Move:
    """A proposal that is always taken; its log density is told."""

    def step(key: Key, values: Values, state: Any, data: Data, stage: Stage) -> tuple[Values, Any]:
        found = proposal.of(values, data)
        new = {**values, **proposal.draw(key, found)}
        return {**new, LOG_PROPOSAL: values[LOG_PROPOSAL] + proposal.log_density(found, new)}, state

    move = Move(names, f"{proposal.how}, weighted", False, lambda values, data: (), step)
    return move._replace(records=(LOG_PROPOSAL, LOG_WEIGHT))


def _opens(move: Move) -> Move:
    def step(key: Key, values: Values, state: Any, data: Data, stage: Stage) -> tuple[Values, Any]:
        return move.step(key, {**values, LOG_PROPOSAL: jnp.zeros(())}, state, data, stage)

    return move._replace(step=step)


def _closes(left: Joint, move: Move) -> Move:
    factors = tuple(left.factors)

    def step(key: Key, values: Values, state: Any, data: Data, stage: Stage) -> tuple[Values, Any]:
        values, state = move.step(key, values, state, data, stage)
        return {**values, LOG_WEIGHT: left.total(factors, values, data) - values[LOG_PROPOSAL]}, state

    return move._replace(step=step)


def shares_taken(moves: Sequence[Move], told: Mapping[str, np.ndarray]) -> dict[str, dict[str, float]]:
    """By variable and kind of proposal the share that was taken; `told` are what moves recorded, by name."""
    found: dict[str, dict[str, float]] = {}
    for move in moves:
        if move.proposes:
            found.setdefault(", ".join(move.names), {})[move.proposes] = float(np.mean(told[move.records[0]]))
    return found
