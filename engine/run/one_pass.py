"""Inference without iteration, which is exact where no two blocks with messages share a variable and none is VMP's."""

from __future__ import annotations

import jax.numpy as jnp

from ...factors.arrays import Key
from ..blocks.kinds import KINDS
from ..support.concrete import all_finite
from ..values.naturals import subtract
from .bound_plan import Data
from .control.carry import Settings
from .control.result_codes import CONTRADICTION, CONVERGED, DIVERGED, SLOW
from .log_evidence import evidence_parts, with_contradictions
from .machine import Machine
from .result import Ended
from .start import prepare


def direct(machine: Machine, settings: Settings, data: Data, key: Key) -> Ended:
    """The outputs of a run from a single solution of every block, evidence included.

    A block that searches for its solution tells how far from it it stopped, in standard deviations.
    """
    data = machine.completed(data)
    fixed, scope = prepare(machine, data, key), machine.scope(data)
    beliefs, messages, log_z, error = dict(fixed.constant), {}, {}, jnp.zeros(())
    for number, block in machine.ep_blocks.items():
        outside = machine.flat(block, beliefs)
        kind, prepared = KINDS[type(block)], fixed.prepared[number]
        assert kind.solve is not None
        if kind.watched is None:
            log_z[number], found = kind.solve(block, prepared, outside, scope)
        else:
            log_z[number], found, left = kind.watched(block, prepared, outside, scope)
            error = jnp.maximum(error, left)
        messages[number] = {name: subtract(naturals, outside[name]) for name, naturals in found.items()}
        beliefs |= {name: machine.shaped(name, naturals) for name, naturals in found.items()}
    proper = machine.all_proper(beliefs, beliefs)
    moments = {name: machine.moments_of(name, naturals) for name, naturals in beliefs.items()}
    parts = with_contradictions(evidence_parts(machine, fixed, scope, beliefs, moments, messages, log_z))
    evidence = sum(parts.values(), jnp.zeros(()))
    sound = proper & all_finite(moments) & (evidence < jnp.inf)
    code = jnp.where(sound, jnp.where(error > 0.0, SLOW, CONVERGED), DIVERGED)
    zero, trace = jnp.zeros((), jnp.int32), jnp.full(settings.trace, jnp.nan)
    return {
        **machine.shown(fixed, beliefs, messages),
        "parts": parts,
        "iteration": zero + 1,
        "code": jnp.where(jnp.isneginf(evidence), CONTRADICTION, code).astype(jnp.int32),
        "error": error,
        "residuals": trace.at[0].set(0.0),
        "evidences": trace.at[0].set(evidence),
        "rejected": zero,
        "damped": zero,
        "floored": {number: jnp.zeros((), int) for number in machine.ep_blocks},
        "improper": jnp.zeros((), int),
        "step": jnp.ones(()),
        "evidence": evidence,
        "found": sound,
    }
