"""The row-parallel sweep: exact, and every step of it works on all rows at once."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax

from ..state import Numbers, Observed, Outcome, State, Switches
from .births import Born, accepted, log_evidence, proposals, propose
from .bits import seed_of, uniforms
from .columns import draw_columns
from .factors import Sums, draw_missing, energies, filled, heights, sums_of, used
from .hyper import Hyper, draw_hyper, rate_of_own
from .rows import draw_rows
from .shared_births import born_and_died
from .urn import draw_scores


def parallel(key: Any, state: State, observed: Observed, numbers: Numbers, bound: Any, switches: Switches) -> Outcome:
    """One sweep: hyperparameters, loadings, births and deaths, factors, missing entries, each given all the others.

    Before them, where it is asked for, factors come and go with all rows that they have.

    Loadings are drawn factor by factor, each given the others of its row.

    Activities of factors are drawn with the hyperparameters, so that rows are independent; they are forgotten at the
    end of the sweep.

    Args:
        key: of `jax.random`; may be batched, with the state.
        state: a point of a chain.
        observed, numbers: data and priors.
        bound: () a number of factors that no chain exceeds, at most P; never batched.
        switches: static.

    Source: knowles2011nonparametric.
    """
    return _swept(draw_columns, key, state, observed, numbers, bound, switches)


def collapsed(key: Any, state: State, observed: Observed, numbers: Numbers, bound: Any, switches: Switches) -> Outcome:
    """The sweep of `parallel` with the loadings of each row integrated out while it is drawn which of them are active.

    A sweep costs more, by the number of factors squared for each loading, and moves further: activities of factors that
    explain the same do not wait for each other's loadings. Arguments as of `parallel`.

    Source: knowles2011nonparametric, doshivelez2009accelerated.
    """
    return _swept(draw_rows, key, state, observed, numbers, bound, switches)


def _swept(
    loadings: Any, key: Any, state: State, observed: Observed, numbers: Numbers, bound: Any, switches: Switches
) -> Outcome:
    seed = seed_of(key)
    tried = min(switches.rows, observed.values.shape[0]) if switches.sparsity == "buffet" else 0
    values = filled(observed, state.missing)
    fits, changed, proposed = jnp.bool_(True), jnp.int64(0), jnp.int64(0)
    if switches.shared and tried:
        state, fits, changed = born_and_died(seed, state, values, numbers, switches)
        proposed, bound = jnp.int64(switches.shared), jnp.minimum(bound + switches.shared, state.loading.shape[0])
    sums = sums_of(values, state.factor)
    hyper = draw_hyper(seed, state, energies(sums, state.loading), numbers, switches, tried)
    state = hyper.state
    state = state._replace(loading=loadings(seed, state, sums, hyper.log_odds, observed, bound, switches))
    if tried:
        state, room, *own = replace_own(seed, hyper._replace(state=state), sums, numbers, switches)
        fits, changed, proposed = fits & room, changed + own[0], proposed + own[1]
    height = heights(state.loading, state.noise, values)
    state = state._replace(factor=draw_scores(seed, state, height, numbers, jnp.maximum(bound, state.count), switches))
    state = state._replace(missing=draw_missing(seed, state, observed))
    return Outcome(state, fits, changed, proposed)


class _Tried(NamedTuple):
    """Moves: in which rows (R,), what they propose, and whether it was accepted (R,)."""

    rows: Any
    born: Born
    accept: Any


def replace_own(
    seed: Any, hyper: Hyper, sums: Sums, numbers: Numbers, switches: Switches
) -> tuple[State, Any, Any, Any]:
    """Births and deaths in rows chosen at random: new factors stand last, none is left empty.

    The values of X that belong to the new factors are yet to be drawn.

    Args:
        seed: (2,) from `bits.seed_of`.
        hyper: with the state, and precisions and elements of factors that may be born, (most, R).
        sums: over samples.
        numbers, switches: of the model.

    Returns:
        The state; whether P suffices; how many moves that would change something were accepted, and proposed.
    """
    state = hyper.state
    rows = _rows(seed, state.noise.shape[0], hyper.born_precision.shape[1])
    alone = (state.loading != 0.0).sum(1) == 1
    alone = alone & (jnp.arange(alone.shape[0]) >= switches.known)
    loading = state.loading[:, rows]
    own = alone[:, None] & (loading != 0.0)
    shared = jnp.where(own, 0.0, loading)
    energy = energies(Sums(sums.cross[:, rows], sums.gram, sums.square[rows]), shared)
    law = proposals(rate_of_own(state), numbers, switches)
    born = propose(seed, rows, law, hyper)
    samples, noise = state.factor.shape[1], state.noise[rows]
    square = jnp.stack([(each * each).sum(0) for each in (loading - shared, born.loading)])
    evidence = log_evidence(square, energy, noise, samples)
    u = uniforms(seed, "birth", 1, jnp.arange(rows.shape[0]))
    accept = accepted(u, law, jnp.stack([own.sum(0), born.number]), evidence)
    keep = used(state) & ~(own & accept).any(1)
    some = own.any(0) | (born.number > 0)
    return (*_arranged(hyper, keep, _Tried(rows, born, accept)), (accept & some).sum(), some.sum())


def _rows(seed: Any, every: int, some: int) -> Any:
    """Some different rows, all subsets of the same size equally probable."""
    if some == every:
        return jnp.arange(every)
    return lax.top_k(uniforms(seed, "rows", 0, jnp.arange(every)), some)[1]


def _arranged(hyper: Hyper, keep: Any, tried: _Tried) -> tuple[State, Any]:
    """The state with the factors kept, in their order, and then the born ones; whether they fit."""
    state = hyper.state
    place, every = jnp.arange(keep.shape[0]), jnp.arange(state.noise.shape[0])
    most = tried.born.loading.shape[0]
    alive = (tried.accept & (jnp.arange(most)[:, None] < tried.born.number)).T.ravel()
    kept = keep.sum()
    count = kept + alive.sum()
    old, new = place < kept, (place >= kept) & (place < count)
    came = _first(keep, place.size)
    which = _first(alive, place.size)[jnp.maximum(place - kept, 0)]

    def pick(each: Any) -> Any:
        return jnp.broadcast_to(each, (most, alive.size // most)).T.ravel()[which]

    where = new[:, None] & (every == tried.rows[which // most][:, None])
    loading = jnp.where(old[:, None], state.loading[came], jnp.where(where, pick(tried.born.loading)[:, None], 0.0))
    precision = jnp.where(old, state.precision[came], jnp.where(new, pick(hyper.born_precision), 1.0))
    element = state.element
    if element.shape[0]:
        element = jnp.where(where, pick(hyper.born_element)[:, None], element[came])
    return state._replace(loading=loading, precision=precision, element=element, count=count), count <= place.size


def _first(mask: Any, number: int) -> Any:
    """(number,) the first places where a mask holds, in order; then anything."""
    number = min(number, mask.size)
    return lax.top_k(jnp.where(mask, -jnp.arange(mask.size), -mask.size), number)[1]
