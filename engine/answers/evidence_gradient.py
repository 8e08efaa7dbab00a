"""Gradients of the log evidence in the inputs of a model: hyperparameters.

The evidence is a function L(state, data) of messages and data. At a fixed point of EP and VMP it is stationary in the
messages: the Bethe energy under EP, the bound under VMP. By the implicit function theorem dL = dL/ddata +
(dL/dstate) (dstate/ddata), and with dL/dstate = 0 only the first, explicit part remains: no sweep is differentiated.
How well that holds is measured, not assumed: the error of the gradient is of the first order in the distance from the
fixed point. Source: minka2005divergence, seeger2005expectation.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from ...compiler.language.model import Model
from ...compiler.language.nodes import Input
from ...factors.arrays import Array
from ...factors.errors import DataError, UnsupportedError
from ...factors.switches import double_precision
from ..run.log_evidence import evidence_parts
from ..run.machine import Machine
from ..run.start import prepare
from ..support.concrete import as_numpy
from ..values.sparse_rows import Pages
from .outcome import Outcome


def gradient(posterior: Outcome, names: tuple[str, ...]) -> dict[str, np.ndarray]:
    """The gradient of `posterior.log_evidence` in the inputs called `names`; all continuous inputs when none is."""
    names = names or tuple(
        name
        for name, node in posterior.model.inputs.items()
        if node.domain.is_continuous and not isinstance(posterior.arrays[name], Pages)
    )
    _check(posterior, names)
    arrays, outputs = posterior.arrays, posterior.result.outputs
    with double_precision():
        machine = posterior.machine
        function = machine.function("evidence gradient", (), jax.grad(_evidence(machine)))
        chosen = {name: np.asarray(arrays[name], float) for name in names}
        rest = {name: array for name, array in arrays.items() if name not in chosen}
        found = function(chosen, rest, outputs["beliefs"], outputs["messages"], outputs["key"])
        return as_numpy(dict(found))


def hyperparameter(model: Model, name: str, asker: str) -> Input:
    """The input called `name`, or the DataError of what was asked for it."""
    if not isinstance(name, str):
        raise DataError(f"{asker}: inputs are named by text; found {name!r}.")
    if name not in model.inputs:
        kind = "a variable of the model, not an input" if name in {**model.randoms, **model.lets} else "unknown"
        raise DataError(
            f"{asker}: {name!r} is {kind}. Declare a hyperparameter as data, m.input({name!r}, cv.positive). "
            f"The inputs are: {', '.join(model.inputs) or 'none'}."
        )
    return model.inputs[name]


def _check(posterior: Outcome, names: tuple[str, ...]) -> None:
    model = posterior.model
    for name in names:
        node = hyperparameter(model, name, "evidence_gradient")
        if not node.domain.is_continuous:
            raise DataError(f"evidence_gradient: input {name!r} is {node.domain}, which has no derivative.")
        if isinstance(posterior.arrays[name], Pages):
            raise DataError(
                f"evidence_gradient: input {name!r} is a sparse matrix, whose zeros would have derivatives too. Give a "
                "dense array to have them all."
            )
    if not posterior.converged:
        raise UnsupportedError(
            "The gradient of the log evidence holds at a fixed point, and this run did not reach one. "
            f"{posterior.diagnosis}"
        )
    floored = [name for name, count in posterior.floored.items() if count]
    if floored and not np.isfinite(posterior.log_evidence):
        raise UnsupportedError(f"The log evidence is not finite (factor '{floored[0]}'), so it has no gradient.")


def _evidence(machine: Machine) -> Callable[..., Array]:
    def evidence(chosen, rest, beliefs, messages, key):
        data = {**rest, **chosen}
        fixed = prepare(machine, data, jax.random.wrap_key_data(jnp.asarray(key)))
        # Beliefs move with the constant messages; what is iterated stays as it was.
        explicit = machine.with_messages(fixed, messages, fixed.constant)
        beliefs = {
            name: tuple(
                old + (new - jax.lax.stop_gradient(new)) for old, new in zip(beliefs[name], explicit[name], strict=True)
            )
            for name in beliefs
        }
        moments = {name: machine.moments_of(name, naturals) for name, naturals in beliefs.items()}
        parts = evidence_parts(machine, fixed, machine.scope(data), beliefs, moments, messages)
        return sum(parts.values(), jnp.zeros(()))

    return evidence
