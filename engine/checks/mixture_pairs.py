"""Pairs of rows of a mixture under EP: what they add to the log evidence, in closed form.

The tilted distribution of a row over the belief is a sum over its states of members of the family, whose naturals are
those of the belief eta, less the row's message, with what the row says in that state. So E_q (q_m / q) (q_n / q) is a
sum over pairs of states of exp A(eta - lambda_m - lambda_n + t_mj + t_nk) exp A(eta) / (C_m C_n), where A is the log
normaliser and C_m the sum over j of exp A(eta - lambda_m + t_mj). Source: paquet2007thesis, which shows
a figure of it alone.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ...compiler.blocks.mixture import MixtureBlock, Parent
from ...factors.arrays import Array
from ...factors.errors import UnsupportedError
from ...factors.switches import double_precision
from ..answers.outcome import Outcome
from ..blocks.mixture import Messages, all_rows, tilted
from ..blocks.mixture_data import Local
from ..data.missing_and_sparse import Arrays
from ..values.first_beliefs import family_of
from ..values.naturals import Naturals, Parts
from .skewness import End, end_of, ready_at_end

MOST = 20_000_000  # pairs of rows in pairs of states

logsumexp = jax.scipy.special.logsumexp


def mixture_pairs(posterior: Outcome, number: str) -> tuple[float, float, str]:
    """log R to second order, the sum of the sizes of pairs, and what makes it no number."""
    machine = posterior.machine
    block = machine.ep_blocks[number]
    assert isinstance(block, MixtureBlock)

    def read(end: End, arrays: Arrays) -> Array:
        ready = ready_at_end(machine, end, arrays, number, block)
        local, messages = all_rows(ready.prepared, ready.messages)
        _check(local, messages)
        return _pairs(block, local, ready.naturals, messages)

    with double_precision():
        found = np.asarray(machine.function("pairs", (number,), read)(end_of(posterior, number), posterior.arrays))
    total, size, improper = (float(own) for own in found)
    if improper:
        pairs = f"For {improper / 2:.0f} pairs of rows the correction is an integral that does not exist"
        return 0.0, math.inf, f"{pairs}: beliefs without both of them are no distributions."
    if total <= -1.0:
        return 0.0, size, "The pairs add up to a factor that is not positive."
    return math.log1p(total), size, ""


def _check(local: Local, messages: Messages) -> None:
    """UnsupportedError for rows of which each has elements of its own, and for too many pairs."""
    rows, states = messages[0][0].shape[0], local["log"].shape[-1]
    if (rows * states) ** 2 > MOST:
        raise UnsupportedError(
            f"posterior.corrected_evidence looks at all pairs of rows in all pairs of states, and of {rows} rows of "
            f"{states} states there are more than {MOST:,}. posterior.check_evidence() measures the evidence."
        )
    if any(len(local[f"position{number}"]) > 1 for number in range(len(messages))):
        raise UnsupportedError(
            "posterior.corrected_evidence is known for mixtures whose rows all read the same elements, and those of "
            "this one do not. posterior.check_evidence() measures the evidence of any model."
        )


class _Reads(NamedTuple):
    """What all rows say to a parent: eta at its (own, state) elements, and by row lambda and t."""

    parent: Parent
    belief: Parts
    messages: Parts
    naturals: Parts

    def log_partition(self, naturals: Parts) -> Array:
        """A, by element."""
        return jnp.asarray(family_of(self.parent.variable).from_naturals(naturals).log_partition())

    def is_proper(self, naturals: Parts) -> Array:
        """Whether all elements are distributions."""
        return jnp.all(jnp.asarray(family_of(self.parent.variable).from_naturals(naturals).is_proper()))


def _pairs(block: MixtureBlock, local: Local, naturals: Naturals, messages: Messages) -> Array:
    """The sum of E e_m e_n over pairs, that of its sizes, and twice the number of pairs of which it does not exist."""
    reads = []
    for number, (parent, own) in enumerate(zip(block.parents, messages, strict=True)):
        belief = tuple(part[local[f"position{number}"][0]] for part in naturals[parent.variable.name])
        reads.append(_Reads(parent, belief, own, _for_each(local[f"natural{number}"], own[0].shape[0])))
    count = messages[0][0].shape[0]
    log = jnp.broadcast_to(local["log"], (count, local["log"].shape[-1]))
    present = local.get("present", jnp.ones(count, bool))
    whole = sum(read.log_partition(read.belief).sum() for read in reads)
    alone = tilted(block, local, naturals, messages)
    own = logsumexp(alone.states, axis=-1)
    for read, cavity in zip(reads, alone.cavities, strict=True):
        own = own + read.log_partition(cavity).sum(axis=(1, 2))

    def of_row(m: Array) -> Array:
        def with_row(n: Array) -> Array:
            scores, proper = _together(reads, log, m, n)
            counts = present[m] & present[n] & (m != n)
            found = jnp.expm1(logsumexp(scores) + whole - own[m] - own[n])
            found = jnp.where(counts & proper, found, 0.0)
            return jnp.stack([found, jnp.abs(found), counts & ~proper])

        return jax.vmap(with_row)(jnp.arange(count)).sum(axis=0)

    return jax.lax.map(of_row, jnp.arange(count)).sum(axis=0) * jnp.asarray([0.5, 0.5, 1.0])


def _for_each(parts: Parts, count: int) -> Parts:
    """What is the same for all rows, for each."""
    return tuple(jnp.broadcast_to(part, (count, *part.shape[1:])) for part in parts)


def _together(reads: list[_Reads], log: Array, m: Array, n: Array) -> tuple[Array, Array]:
    """log of the integral of two rows' terms over beliefs without both, by pair of states; whether it exists."""
    total, proper = log[m][:, None] + log[n], jnp.asarray(True)
    for read in reads:
        parts = zip(read.belief, read.messages, strict=True)
        base = tuple(b - own[m] - own[n] for b, own in parts)
        one, other = (tuple(own[row] for own in read.naturals) for row in (m, n))
        if read.parent.chosen:
            each = base, _plus(base, one), _plus(base, other), _plus(base, one, other)
            neither, first, second, both = (read.log_partition(own).sum(axis=0) for own in each)
            apart = (first - neither)[:, None] + (second - neither)
            states = jnp.arange(len(neither))
            total = total + neither.sum() + apart.at[states, states].set(both - neither)
        else:
            pairs = tuple(b[:, :, None] + x[:, :, None] + y[:, None] for b, x, y in zip(base, one, other, strict=True))
            each = (pairs,)
            total = total + read.log_partition(pairs).sum(axis=0)
        for naturals in each:
            proper = proper & read.is_proper(naturals)
    return total, proper


def _plus(*naturals: Parts) -> Parts:
    return tuple(sum(parts) for parts in zip(*naturals, strict=True))
