"""Inference without iteration, which is exact where no two blocks with messages share a variable and none is VMP's."""

from __future__ import annotations

import jax.numpy as jnp

from ...factors.arrays import Key
from ..blocks.kinds import KINDS
from ..values.naturals import all_finite, subtract
from .bound_plan import Data
from .control.carry import Settings
from .control.result_codes import CONTRADICTION, CONVERGED, DIVERGED
from .log_evidence import evidence_parts, with_contradictions
from .machine import Machine
from .result import Ended
from .start import prepare


def direct(machine: Machine, settings: Settings, data: Data, key: Key) -> Ended:
    """The outputs of a run from a single solution of every block, evidence included."""
    data = machine.completed(data)
    fixed, scope = prepare(machine, data, key), machine.scope(data)
    beliefs, messages, log_z = dict(fixed.constant), {}, {}
    for number, block in machine.ep_blocks.items():
        outside = machine.flat(block, beliefs)
        solve = KINDS[type(block)].solve
        assert solve is not None
        log_z[number], found = solve(block, fixed.prepared[number], outside, scope)
        messages[number] = {name: subtract(naturals, outside[name]) for name, naturals in found.items()}
        beliefs |= {name: machine.shaped(name, naturals) for name, naturals in found.items()}
    proper = machine.all_proper(beliefs, beliefs)
    moments = {name: machine.moments_of(name, naturals) for name, naturals in beliefs.items()}
    parts = with_contradictions(evidence_parts(machine, fixed, scope, beliefs, moments, messages, log_z))
    evidence = sum(parts.values(), jnp.zeros(()))
    sound = proper & all_finite(moments) & (evidence < jnp.inf)
    code = jnp.where(sound, CONVERGED, DIVERGED)
    zero, trace = jnp.zeros((), jnp.int32), jnp.full(settings.trace, jnp.nan)
    return {
        "beliefs": beliefs,
        "messages": messages,
        "parts": parts,
        "iteration": zero + 1,
        "code": jnp.where(jnp.isneginf(evidence), CONTRADICTION, code).astype(jnp.int32),
        "error": jnp.zeros(()),
        "residuals": trace.at[0].set(0.0),
        "evidences": trace.at[0].set(evidence),
        "rejected": zero,
        "damped": zero,
        "floored": {number: jnp.zeros((), int) for number in machine.ep_blocks},
        "step": jnp.ones(()),
        "evidence": evidence,
        "found": sound,
    }
