"""EP over discrete states: sum-product for truth tables and conditional probability tables.

The states of each random variable are treated as a plate, so the table of a factor is its expression evaluated at all
of them.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Bool, Float, Int

from ....compiler.blocks.table import ConditionalTableBlock, TableBlock, TruthTableBlock
from ....compiler.language.atoms import atom_key
from ....compiler.language.nodes import Apply, Expr, Gather, Let, Plate, Random
from ....compiler.rules.logic import TRUE
from ....factors.arrays import Array, Key, Numeric
from ....factors.special import log_sigmoid
from ...values.evaluate import gather, value
from ...values.instances import ScheduleLayout, arranged, count, flattened, layout, positions, root, schedule_shape
from ...values.masks import present
from ...values.naturals import Naturals
from ...values.operations import point_function
from ...values.plated import Placed, arrange, mapped, spread
from ...values.scope import Scope

logsumexp = jax.scipy.special.logsumexp
# Log odds of a certain state: finite, so that removing the message from the belief stays defined, to 1e-11 (rounding),
# and beyond what data say against a state: an outlier of 400 standard deviations has 80,000 nats.
CERTAIN = 1e5


AtomKey: TypeAlias = tuple  # equal for atoms that are the same discrete variable in every instance
Messages: TypeAlias = tuple[Array, ...]  # by atom (batches, width), with a last axis of classes for categories
Logs: TypeAlias = Float[Array, "*width states"]


def bounded(natural: Float[Array, ...], logits: bool) -> Float[Array, ...]:
    """Log odds, or with `logits` those of classes along the last axis, with a finite number for what is certain.

    Finite ones stay: an outlier has thousands of nats in some state, and more in another.
    """
    # Where all states are impossible the difference of two infinities is no number; the evidence is minus infinity.
    natural = jnp.where(jnp.isnan(natural), 0.0, natural)
    if not logits:
        return jnp.where(jnp.isinf(natural), jnp.sign(natural) * CERTAIN, natural)
    lowest = jnp.min(jnp.where(jnp.isneginf(natural), jnp.inf, natural), axis=-1, keepdims=True)
    lowest = jnp.where(jnp.isinf(lowest), 0.0, lowest)
    return jnp.where(jnp.isneginf(natural), lowest - CERTAIN, natural)


class PreparedTable(NamedTuple):
    """A block's data in schedule order, (batches, width), or without these axes for a part of it (see `local_part`).

    `table` is log f over (batches, width, states...) or over states alone; `positions` those of each atom's elements,
    None for a variable of one element; `present` is false for instances that do not count.
    """

    table: Float[Array, "*schedule_and_states"]
    positions: tuple[Int[Array, "*schedule"] | None, ...]
    present: Bool[Array, "*schedule"] | None
    plan: ScheduleLayout | None


def states(expr: Expr, scope: Scope) -> int:
    """Number of states of a discrete expression."""
    return 2 if expr.domain.is_boolean else scope.size(expr.domain.size)


def key_of(atom: Expr) -> AtomKey:
    """Equal for atoms that are the same discrete variable in every instance, however they are written."""
    return ("let", id(atom)) if isinstance(atom, Let) else atom_key(atom)


def evaluate(expr: Expr, scope: Scope, atoms: dict[AtomKey, Placed]) -> Placed:
    """The value of an expression with its random atoms at all their states: `atoms` has these, each on its own plate.

    Placed on the plates of the data and on those of the states.
    """
    if key_of(expr) in atoms:
        return atoms[key_of(expr)]
    if isinstance(expr, (Random, Let)) and expr.name in scope.data:
        return value(expr, scope)
    if isinstance(expr, Let):
        return evaluate(expr.expression, scope, atoms)
    if isinstance(expr, Gather):
        return gather(evaluate(expr.source, scope, atoms), evaluate(expr.index, scope, atoms), expr)
    if isinstance(expr, Apply) and (expr.operation.logical or expr.operation.integer):
        return mapped(point_function(expr), *(evaluate(arg, scope, atoms) for arg in expr.args))
    return value(expr, scope)


def log_table(block: TableBlock, scope: Scope) -> tuple[Placed, tuple[Plate, ...]]:
    """log f, over the data's plates and one plate of states for each atom."""
    axes = tuple(Plate(f"states of {atom}", states(atom, scope)) for atom in block.atoms)
    grids = {}
    for atom, axis in zip(block.atoms, axes, strict=True):
        numbers = jnp.arange(axis.size)
        grids[key_of(atom)] = Placed(numbers > 0 if atom.domain.is_boolean else numbers, (axis,))
    return log_density(block, scope, grids), axes


def log_density(block: TableBlock, scope: Scope, grids: dict[AtomKey, Placed]) -> Placed:
    """log f with the random atoms at the values that `grids` has for them; zero for instances that do not count.

    Placed on the plates of the data and on those of the grids.
    """
    log_f, mask = _log_density(block, scope, grids), present(block, scope)
    return log_f if mask is None else mapped(lambda f, p: jnp.where(p > 0, f, 0.0), log_f, mask)


def _log_density(block: TableBlock, scope: Scope, grids: dict[AtomKey, Placed]) -> Placed:
    outcome = grids.get(key_of(block.out)) if block.out is not TRUE else Placed(jnp.asarray(True), ())
    outcome = value(block.out, scope) if outcome is None else outcome
    if isinstance(block, TruthTableBlock):
        truth = evaluate(block.expression, scope, grids)
        return mapped(lambda a, b: jnp.where(a == b, 0.0, -jnp.inf), truth, outcome)
    assert isinstance(block, ConditionalTableBlock)
    cases = [evaluate(arg, scope, grids) for arg in block.args.values()]
    if block.selector is None:
        (probability,) = cases
    else:  # a switch: its selector chooses among tables
        chosen = evaluate(block.selector, scope, grids)
        probability = mapped(lambda i, *p: jnp.stack(p)[jnp.asarray(i, jnp.int32)], chosen, *cases)
    return mapped(block.factor.role.log_chance, probability, outcome)


def prepare(block: TableBlock, scope: Scope, key: Key, apart: bool = False) -> PreparedTable:
    """The table and the index arrays, evaluated once; `key` is for the order of the instances."""
    plan = layout(block, scope, block.atoms, key)
    table, axes = log_table(block, scope)
    sizes = {**scope.sizes, **{axis.name: axis.size for axis in axes}}
    if any(plate in block.plates for plate in table.plates) or not axes:
        full = spread(table, (*block.plates, *axes), sizes)
        rows = arranged(full.reshape((count(block, scope.sizes), *(sizes[axis.name] for axis in axes))), plan)
    else:
        rows = arrange(table, axes).value
    present = None if plan is None else plan.present
    places = tuple(arranged(positions(atom, block, scope), plan) for atom in block.atoms)
    return PreparedTable(rows, places, present, plan)


def initial(block: TableBlock, prepared: PreparedTable, scope: Scope) -> Messages:
    """Uniform messages in schedule order: log odds of booleans, logits of categories."""
    shape = schedule_shape(prepared.plan, block, scope.sizes)
    return tuple(jnp.zeros(shape if atom.domain.is_boolean else (*shape, states(atom, scope))) for atom in block.atoms)


def _log_probabilities(boolean: bool, natural: Float[Array, ...]) -> Logs:
    if boolean:
        return jnp.stack([log_sigmoid(-natural), log_sigmoid(natural)], axis=-1)
    return jax.nn.log_softmax(natural, axis=-1)


def _along(array: Logs, axis: int, rank: int) -> Array:
    """(width, states) placed on one axis of (width, states of all atoms)."""
    shape = [array.shape[0]] + [1] * rank
    shape[1 + axis] = array.shape[1]
    return array.reshape(shape)


def cavities_of(block: TableBlock, local: PreparedTable, naturals: Naturals, messages: Messages) -> list[Array]:
    """Of each atom, by instance: its belief without the message."""
    cavities = []
    for atom, position, message in zip(block.atoms, local.positions, messages, strict=True):
        belief = naturals[root(atom).name][0]
        cavities.append((belief[0] if position is None else belief[position]) - block.method.alpha * message)
    return cavities


def joint_logs(block: TableBlock, local: PreparedTable, cavities: list[Array]) -> tuple[Array, list[Array]]:
    """log f^power, and the log probabilities of each atom along its axis of states: (width, states of all atoms)."""
    rank = len(block.atoms)
    logs = [
        _log_probabilities(atom.domain.is_boolean, cavity) for atom, cavity in zip(block.atoms, cavities, strict=True)
    ]
    placed = [_along(log, j, rank) for j, log in enumerate(logs)]
    return block.method.alpha * local.table, placed


def _targets(block: TableBlock, local: PreparedTable, cavities: list[Array]) -> Messages:
    """The messages of all instances under these cavities."""
    table, placed = joint_logs(block, local, cavities)
    targets = []
    for j, atom in enumerate(block.atoms):
        total = table
        for i, log in enumerate(placed):
            total = total + (log if i != j else jnp.zeros_like(log))
        axes = tuple(1 + i for i in range(len(placed)) if i != j)
        message = logsumexp(total, axis=axes) if axes else total
        if atom.domain.is_boolean:
            message = message[:, 1] - message[:, 0]
        else:
            message = message - jnp.max(message, axis=-1, keepdims=True)
        targets.append(jnp.clip(message / block.method.alpha, -CERTAIN, CERTAIN))
    return tuple(targets)


def local_part(prepared: PreparedTable, scanned: dict[str, Array]) -> PreparedTable:
    """The data of some instances, of which `scanned` has what differs between these."""
    places = tuple(scanned.get(f"position{j}") for j in range(len(prepared.positions)))
    return PreparedTable(scanned.get("table", prepared.table), places, scanned.get("present"), prepared.plan)


def scanned_parts(block: TableBlock, prepared: PreparedTable) -> dict[str, Array]:
    """What differs between instances, by name, in schedule order: what a scan over the batches reads."""
    named = {f"position{j}": p for j, p in enumerate(prepared.positions) if p is not None}
    if prepared.table.ndim > len(block.atoms):
        named["table"] = prepared.table
    if prepared.present is not None:
        named["present"] = prepared.present
    return named


def _add(naturals: Naturals, block: TableBlock, local: PreparedTable, changes: Messages) -> Naturals:
    naturals = dict(naturals)
    for atom, position, change in zip(block.atoms, local.positions, changes, strict=True):
        name = root(atom).name
        (current,) = naturals[name]
        naturals[name] = (current + change.sum(0) if position is None else current.at[position].add(change),)
    return naturals


def _mask(local: PreparedTable, change: Array) -> Array:
    if local.present is None:
        return change
    return jnp.where(local.present.reshape(local.present.shape + (1,) * (change.ndim - 1)), change, 0.0)


def update(
    block: TableBlock, prepared: PreparedTable, naturals: Naturals, messages: Messages, step: Numeric, scope: Scope
) -> tuple[Naturals, Messages, Int[Array, ""]]:
    """One sweep over the batches: the new naturals and messages, and how many cavities were floored (none)."""

    def batch(naturals: Naturals, scanned: tuple[dict[str, Array], Messages]) -> tuple[Naturals, Messages]:
        data, old = scanned
        local = local_part(prepared, data)
        targets = _targets(block, local, cavities_of(block, local, naturals, old))
        changes = tuple(_mask(local, step * (t - o)) for t, o in zip(targets, old, strict=True))
        return _add(naturals, block, local, changes), tuple(o + c for o, c in zip(old, changes, strict=True))

    data = scanned_parts(block, prepared)
    if messages[0].shape[0] == 1:
        naturals, new = batch(naturals, jax.tree.map(lambda a: a[0], (data, messages)))
        return naturals, tuple(m[None] for m in new), jnp.zeros((), int)
    naturals, new = jax.lax.scan(batch, naturals, (data, messages))
    return naturals, new, jnp.zeros((), int)


def naturals_of(block: TableBlock, stats: Messages) -> Messages:
    """The log odds of these probabilities, or of each class the log of its own."""
    each = zip(block.atoms, stats, strict=True)
    return tuple(jnp.log(own) - jnp.log1p(-own) if atom.domain.is_boolean else jnp.log(own) for atom, own in each)


def _flattened(block: TableBlock, prepared: PreparedTable, messages: Messages) -> tuple[PreparedTable, Messages]:
    """The data and the messages with all batches in one axis."""
    data, flat = flattened((scanned_parts(block, prepared), messages), prepared.plan)
    return local_part(prepared, data), flat


def accumulate(block: TableBlock, prepared: PreparedTable, messages: Messages, naturals: Naturals) -> Naturals:
    """Adds all messages of the block to the naturals, which have all plates in one axis."""
    local, flat = _flattened(block, prepared, messages)
    return _add(naturals, block, local, flat)


def read(
    block: TableBlock, prepared: PreparedTable, naturals: Naturals, messages: Messages, scope: Scope
) -> Float[Array, ""]:
    """The block's evidence: sum of (log sum f^power cavities + sum of A(cavity) - A(belief)) / power."""
    local, flat = _flattened(block, prepared, messages)
    cavities = cavities_of(block, local, naturals, flat)
    table, placed = joint_logs(block, local, cavities)
    evidence = logsumexp(table + sum(placed), axis=tuple(range(1, 1 + len(placed))))
    evidence = jnp.where(evidence < -0.9 * CERTAIN, -jnp.inf, evidence)  # certain states that exclude each other
    for atom, cavity, message in zip(block.atoms, cavities, flat, strict=True):
        boolean = atom.domain.is_boolean
        logs = _log_probabilities(boolean, cavity)
        # A(cavity) - A(belief) = -log E_cavity exp(message).
        message = block.method.alpha * message
        lift = jnp.stack([jnp.zeros_like(message), message], axis=-1) if boolean else message
        evidence = evidence - logsumexp(lift + logs, axis=-1)
    if local.present is not None:
        evidence = jnp.where(local.present, evidence, 0.0)
    return jnp.sum(evidence) / block.method.alpha
