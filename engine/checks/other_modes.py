"""What is seen of a posterior that tells of modes beside it: components all alike, other fixed points, other labels.

Draws around a fixed point cannot see what lies many standard deviations away. Three things can be known without them:
components that nothing tells apart sit at a saddle; other starts may have ended almost as well; and the same beliefs
with two classes exchanged are a mode too, whose evidence only the priors of these classes make another one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from ...compiler.algebra.known import ungathered
from ...compiler.language.nodes import Let, Plate, Random, parents
from ...compiler.symmetry import Choice, choices
from ...factors.arrays import Array
from ...factors.moments import Boolean, Category, Simplex, Unit
from ...factors.switches import double_precision
from ..answers.inferred import Inferred
from ..answers.outcome import Outcome
from ..blocks.energy import block_energy
from ..run.bound_plan import BoundPlan, Data, Moments
from ..run.diagnosis import fixed_points
from ..run.fixed_points import SAME
from ..values.naturals import Naturals

WEIGHTY = 3.0  # nats: a mode with that much less evidence has a twentieth of the mass
ALIKE = 1e-3  # standard deviations between components that are the same
APART = 3.0  # standard deviations between those that are not
MANY = 10  # elements from which on one class for all of them is a sign
CERTAIN = 1e-6
MOST = 6  # classes that are exchanged in pairs


def other_modes(posterior: Inferred) -> Iterator[tuple[str, str]]:
    """Remarks, and how bad each is."""
    # The evidence of draws is not that of the beliefs that they begin at.
    gap = posterior.restarts[0].log_evidence - posterior.log_evidence if isinstance(posterior, Outcome) else 0.0
    if gap > SAME:
        yield (
            "poor",
            f"Another start of this run ended at a fixed point with {gap:.2g} nats more evidence, which is "
            "posterior.all_modes()[0].",
        )
    found = fixed_points(np.asarray(posterior.restarts), posterior.log_evidence)
    if len(found) > 1 and (loss := found[0][0] - found[1][0]) < WEIGHTY:
        yield (
            "doubtful",
            f"Other starts ended at a fixed point with {loss:.2g} nats less evidence, so that the posterior has mass "
            "in several modes, of which this is one: see posterior.diagnosis.",
        )
    for choice in choices(posterior.graph):
        if choice.alike and _same_components(posterior, choice):
            yield "poor", all_alike(choice.selector.name)
        elif choice.alike and in_one_class(posterior, choice.selector.name):
            yield "doubtful", one_class(choice.selector.name)
        elif (loss := _exchanged(posterior, choice)) is not None and loss < WEIGHTY:
            yield (
                "doubtful",
                f"With two classes of '{choice.selector.name}' exchanged the evidence is {abs(loss):.2g} nats "
                f"{'less' if loss >= 0.0 else 'more'}: their priors hardly tell which is which, and the posterior has "
                "mass in both modes. This is one of them.",
            )


def in_one_class(posterior: Inferred, name: str) -> bool:
    """Whether all of many elements of a discrete variable are for certain in the same class."""
    found = np.asarray(posterior[name].mean)
    rows = np.stack([found, 1.0 - found], axis=-1) if posterior.model.randoms[name].domain.is_boolean else found
    rows = rows.reshape(-1, rows.shape[-1])
    return len(rows) >= MANY and rows.shape[1] > 1 and bool(np.any(rows.min(0) > 1.0 - CERTAIN))


def all_alike(name: str) -> str:
    """The remark where nothing tells the classes of a discrete variable apart."""
    return (
        f"All classes of '{name}' are alike, a symmetric fixed point: give restarts=5 or priors that tell the classes "
        "apart."
    )


def one_class(name: str) -> str:
    """The remark where all elements are in one class."""
    return f"All elements of '{name}' are in one class: compare with restarts=5."


def _components(posterior: Inferred, choice: Choice) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Means and standard deviations of the components, these along the first axis."""
    joints = {joint.variable.name: [member.name for member in joint.members] for joint in posterior.graph.joints}
    names = [own for name in choice.components for own in joints.get(name, _of_pair(posterior, name))]
    plates = {name: posterior.model.randoms[name].plates for name in names}
    if choice.axis is None:
        cases = [(np.asarray(posterior[name].mean), np.asarray(posterior[name].sd)) for name in names]
        if len({mean.shape for mean, _ in cases}) == 1:
            yield np.stack([mean for mean, _ in cases]), np.stack([sd for _, sd in cases])
        return
    for name, own in plates.items():
        at = own.index(choice.axis)
        yield np.moveaxis(posterior[name].mean, at, 0), np.moveaxis(posterior[name].sd, at, 0)


def _of_pair(posterior: Inferred, name: str) -> list[str]:
    """The mean and the precision that share a belief of this name; any other name as it is."""
    pair = next((pair for pair in posterior.graph.pairs if pair.variable.name == name), None)
    return [name] if pair is None else [pair.mean.name, pair.precision.name]


def _same_components(posterior: Inferred, choice: Choice) -> bool:
    found = list(_components(posterior, choice))
    return bool(found) and all(
        len(mean) > 1 and bool(np.all(np.ptp(mean, axis=0) <= ALIKE * sd.max(0))) for mean, sd in found
    )


def _exchanged(posterior: Inferred, choice: Choice) -> float | None:
    """The least evidence that is lost where two classes change places; None where that makes no other mode.

    The beliefs with exchanged labels have the same entropy, and the expected log density of all but the priors of the
    classes: their bound is that of a mode nearby, which has at least as much evidence.
    """
    machine = posterior.machine
    if choice.axis is None or machine.ep_blocks or not isinstance(posterior, Outcome):
        return None
    size = machine.sizes[choice.axis.name]
    pairs = [(i, j) for i in range(size) for j in range(i) if _are_apart(posterior, choice, i, j)]
    if size > MOST or not pairs or any(joint.variable.name in choice.components for joint in posterior.graph.joints):
        return None
    orders = [_swapped(size, i, j) for i, j in pairs]
    call = machine.function("exchanged", (choice.selector.name,), lambda *now: _energy(machine, choice, *now))
    with double_precision():
        beliefs, arrays = posterior.result.outputs["beliefs"], posterior.arrays
        now, *others = (float(call(beliefs, arrays, order)) for order in [np.arange(size), *orders])
    losses = [now - other for other in others]
    return None if choice.alike and min(map(abs, losses)) < ALIKE else min(losses)


def _are_apart(posterior: Inferred, choice: Choice, i: int, j: int) -> bool:
    """Whether the beliefs of two components tell them apart."""
    return any(
        bool(np.any(np.abs(mean[i] - mean[j]) > APART * (sd[i] + sd[j]))) for mean, sd in _components(posterior, choice)
    )


def _swapped(size: int, i: int, j: int) -> np.ndarray:
    order = np.arange(size)
    order[[i, j]] = j, i
    return order


def _energy(machine: BoundPlan, choice: Choice, beliefs: Naturals, data: Data, order: Array) -> Array:
    """The expected log density of all factors under the beliefs with the classes in another order."""
    scope, axis = machine.scope(data), choice.axis
    assert axis is not None
    moments: Moments = {name: machine.moments_of(name, naturals) for name, naturals in beliefs.items()}
    sized = _sized_by(choice, machine)
    for name in moments:
        node = machine.graph.latent[name]
        moments[name] = _reordered(node, moments[name], axis, order, name in sized)
    inside = scope.with_moments(moments)
    return sum((block_energy(block, inside) for block in machine.energies_of_all), jnp.zeros(()))


def _sized_by(choice: Choice, machine: BoundPlan) -> set[str]:
    """The variables whose events run over the classes: the selector and the probabilities that it is drawn with."""
    above = [getattr(ungathered(node), "name", "") for node in parents(choice.selector)]
    return {choice.selector.name, *(name for name in above if name in machine.graph.latent)}


def _reordered(node: Random | Let, moments: PyTree, axis: Plate, order: Array, event: bool) -> PyTree:
    """Moments with the classes in another order, along the plate and, of an `event` over classes, along that."""
    if axis in node.plates:
        at = node.plates.index(axis)
        moments = jax.tree.map(lambda leaf: jnp.take(leaf, order, axis=at), moments)
    return RENAMED[type(moments)](moments, order) if event and type(moments) in RENAMED else moments


def _states(moments: PyTree, order: Array) -> PyTree:
    return jax.tree.map(lambda leaf: leaf[..., order], moments)


RENAMED: dict[type, Callable[[PyTree, Array], PyTree]] = {
    Category: _states,
    Simplex: _states,
    Boolean: lambda moments, order: Boolean(jnp.where(order[0] == 0, moments.probability, 1.0 - moments.probability)),
    Unit: lambda moments, order: Unit(*(jnp.where(order[0] == 0, *pair) for pair in (moments, moments[::-1]))),
}
