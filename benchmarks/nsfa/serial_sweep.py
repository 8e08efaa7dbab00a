"""The serial sweep, Algorithm 1 of the paper: row after row, activities integrated out, and the births and deaths of a
row straight after it. `sample_posterior(..., sweep=serial)` takes it in place of the package's own, which is faster."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax

from cavity.engine.support.machine_code import native, put, row
from cavity.models.sparse.kernels.births import Born, Proposals, accepted, log_evidence, proposals, propose
from cavity.models.sparse.kernels.bits import normals, seed_of, uniforms
from cavity.models.sparse.kernels.factors import draw_missing, energies, filled, heights, sums_of, used
from cavity.models.sparse.kernels.hyper import Hyper, draw_hyper, rate_of_own
from cavity.models.sparse.kernels.urn import draw_scores
from cavity.models.sparse.state import Numbers, Observed, Outcome, State, Switches


class Births(NamedTuple):
    """What rows propose: the law of their numbers; numbers (D,) and loadings (D, most); precisions and elements
    (D, most), these None with Gaussian slabs; and uniform numbers (D,) for the decisions.
    """

    law: Proposals
    born: Born
    precision: Any
    element: Any
    uniform: Any


class Given(NamedTuple):
    """What the loop over rows only reads.

    Attributes:
        values: (D, N) complete data.
        square, noise: (D,) sums of squares of its rows, and noise precisions.
        odds: (D, P) prior log odds of active loadings where they are given, or None.
        pseudo: () what joins, in all other odds, the number of the other rows without a factor (Indian buffet process)
            or with it (finite).
        threshold: (D, P) logistic random numbers: a loading is active where its log odds exceed its threshold.
        error: (D, P) normal random numbers.
        seed: (2,) of random numbers that are made where they are used.
        births: of an Indian buffet process, or None.
        free: (P,) places of factors that are not known.
    """

    values: Any
    square: Any
    noise: Any
    odds: Any
    pseudo: Any
    threshold: Any
    error: Any
    seed: Any
    births: Births | None = None
    free: Any = None


class Rows(NamedTuple):
    """What the loop over rows changes.

    Attributes:
        loading, cross: (D, P) loadings, and Y X^T.
        element: (D, P), or None with Gaussian slabs.
        factor, gram, power: (P, N) X, (P, P) X X^T and its diagonal.
        precision, ones: (P,) slab precisions and numbers of active loadings.
        count: () places in use, holes among them.
        fits: () whether the places suffice.
        accepted, proposed: () moves that would change or changed something.
    """

    loading: Any
    cross: Any
    element: Any
    factor: Any
    gram: Any
    power: Any
    precision: Any
    ones: Any
    count: Any
    fits: Any
    accepted: Any
    proposed: Any


def serial(key: Any, state: State, observed: Observed, numbers: Numbers, bound: Any, switches: Switches) -> Outcome:
    """One sweep: hyperparameters, rows in their order with births and deaths, factors, missing entries.

    Args:
        key: of `jax.random`; may be batched, with the state.
        state: a point of a chain.
        observed, numbers: data and priors.
        bound: () a number of factors that no chain exceeds, at most P; never batched.
        switches: static.

    Source: knowles2011nonparametric.
    """
    seed = seed_of(key)
    values = filled(observed, state.missing)
    sums = sums_of(values, state.factor)
    every, births = values.shape[0], switches.sparsity == "buffet"
    hyper = draw_hyper(seed, state, energies(sums, state.loading), numbers, switches, every if births else 0)
    state = hyper.state
    places, index = jnp.arange(state.loading.shape[0]), jnp.arange(every)[:, None]
    u = uniforms(seed, "switch", places, index)
    threshold, error = jnp.log(u / (1.0 - u)), normals(seed, "loading", places, index)
    pseudo = state.concentration if births else state.mass / state.count
    odds = _given_odds(hyper, observed, switches)
    given = Given(values, sums.square, state.noise, odds, pseudo, threshold, error, seed)
    if births:
        given = given._replace(births=_births(seed, hyper, numbers, switches))
    element = None if switches.slab == "gaussian" else state.element.T
    rows = Rows(
        loading=state.loading.T,
        cross=sums.cross.T,
        element=element,
        factor=state.factor,
        gram=sums.gram,
        power=jnp.diagonal(sums.gram),
        precision=state.precision,
        ones=(state.loading != 0.0).sum(1).astype(float),
        count=state.count.astype(int),
        fits=None,
        accepted=None,
        proposed=None,
    )
    # The compiler must know neither the number of rows, for it would unroll a loop over few, nor that no factor may be
    # free, for it would leave out what is read only then.
    number, known = jnp.where(bound < 0, 0, every), jnp.where(bound < 0, 0, switches.known)
    rows = _over_rows(switches)(given._replace(free=places >= known), rows, number, bound)
    state = _compact(state, rows, switches) if births else state._replace(loading=rows.loading.T)
    height = heights(state.loading, state.noise, values)
    state = state._replace(factor=draw_scores(seed, state, height, numbers, jnp.maximum(bound, state.count), switches))
    state = state._replace(missing=draw_missing(seed, state, observed))
    return Outcome(state, rows.fits, rows.accepted, rows.proposed)


def _births(seed: Any, hyper: Hyper, numbers: Numbers, switches: Switches) -> Births:
    index, law = jnp.arange(hyper.state.noise.shape[0]), proposals(rate_of_own(hyper.state), numbers, switches)
    born = propose(seed, index, law, hyper)
    element = None if switches.slab == "gaussian" else hyper.born_element.T
    turned = Born(born.number, born.loading.T)
    return Births(law, turned, hyper.born_precision.T, element, uniforms(seed, "birth", 1, index))


def _given_odds(hyper: Hyper, observed: Observed, switches: Switches) -> Any:
    """(D, P) prior log odds of loadings whose odds do not depend on other rows; None where there are no such, or where
    all are infinite."""
    shape = hyper.state.loading.shape
    free = jnp.full(shape, jnp.inf)
    if switches.sparsity == "hierarchical":
        free = jnp.broadcast_to(hyper.log_odds[:, None], shape)
    elif not switches.known:
        return None
    return jnp.concatenate([observed.log_odds, free[switches.known :]]).T


def _over_rows(switches: Switches) -> Any:
    counted, births = switches.sparsity in ("buffet", "finite"), switches.sparsity == "buffet"
    # Only what changes is carried from row to row: an argument that is handed on as it came is as good as unread.
    changing = Rows._fields if births else ("loading", "ones") if counted else ("loading",)

    @native
    def over_rows(given: Given, rows: Rows, number: Any, bound: Any) -> Rows:
        none = jnp.zeros((), int)
        rows = rows._replace(fits=jnp.ones((), bool), accepted=none, proposed=none)

        def body(d: Any, carry: tuple[Any, ...]) -> tuple[Any, ...]:
            now = rows._replace(**dict(zip(changing, carry, strict=True)))
            old = row(now.loading, d)
            others = now.ones - (old != 0.0) if counted else jnp.zeros_like(old)  # XLA fails on unread ones
            odds = jnp.inf if given.odds is None else row(given.odds, d)
            moves = None
            if counted:
                beyond = given.noise.shape[0] - 1.0 - others
                has, has_not = (others, beyond + given.pseudo) if births else (others + given.pseudo, beyond + 1.0)
                odds = jnp.where(given.free, jnp.log(has) - jnp.log(has_not), odds)
            if births:
                moves = (others > 0.0) | ~given.free  # all else belongs to births and deaths
            new = _sites(given, now, d, old, odds, moves, bound)
            now = now._replace(ones=others + (new != 0.0))
            if given.births is None:
                now = now._replace(loading=put(now.loading, d, new))
            else:
                now = _replace_own(given, given.births, now, d, new, given.free)
            return tuple(getattr(now, name) for name in changing)

        last = lax.fori_loop(0, number, body, tuple(getattr(rows, name) for name in changing))
        return rows._replace(**dict(zip(changing, last, strict=True)))

    return over_rows


def _sites(given: Given, rows: Rows, d: Any, old: Any, odds: Any, moves: Any, bound: Any) -> Any:
    """(P,) new loadings of row d, one after another given the others."""
    places = jnp.arange(old.shape[0])
    noise, cross = row(given.noise, d), row(rows.cross, d)
    slab = rows.precision if rows.element is None else rows.precision * row(rows.element, d)
    spread = 1.0 / jnp.sqrt(noise * rows.power + slab)
    gain = odds + jnp.log(jnp.sqrt(slab) * spread) - row(given.threshold, d)
    error = row(given.error, d)

    def body(k: Any, loading: Any) -> Any:
        beside = row(rows.gram, k)
        rest = row(cross, k) - (loading * beside).sum() + row(loading, k) * row(rows.power, k)
        height = noise * rest * row(spread, k)  # in standard deviations
        new = jnp.where(row(gain, k) + 0.5 * height * height > 0.0, (height + row(error, k)) * row(spread, k), 0.0)
        return jnp.where(places == k if moves is None else (places == k) & moves, new, loading)

    # Chains of one batch share the loop over factors that a chain may have had before the sweep; the other is short.
    return lax.fori_loop(bound, rows.count, body, lax.fori_loop(0, bound, body, old))


def _replace_own(given: Given, births: Births, rows: Rows, d: Any, loading: Any, free: Any) -> Rows:
    """The birth and death move of row d; values of X of new factors are drawn at once, for the rows to come."""
    places, samples = jnp.arange(free.shape[0]), given.values.shape[1]
    noise = row(given.noise, d)
    own = (loading != 0.0) & (rows.ones == 1.0) & free
    shared = jnp.where(own, 0.0, loading)
    number, new = own.sum(), row(births.born.number, d)
    sizes = row(births.born.loading, d)
    some = number + new > 0

    def decide() -> Any:
        return _accepts(given, births, rows, d, loading, shared, jnp.stack([number, new]))

    accept = lax.cond(some, decide, lambda: jnp.zeros((), bool))
    enough = (free & (own | (rows.ones == 0.0))).sum() >= new
    fits, accept = rows.fits & (enough | ~accept), accept & enough
    left = jnp.where(own & accept, 0.0, rows.ones)
    rows = rows._replace(ones=left, fits=fits, accepted=rows.accepted + accept, proposed=rows.proposed + some)
    loading = jnp.where(accept, shared, loading)
    element = None if rows.element is None else row(rows.element, d)
    later = jnp.arange(sizes.shape[0])

    def birth(carry: tuple[Any, ...]) -> tuple[Any, ...]:
        """One more factor, at the first free place. Those still to come count as noise, of one variance for all
        samples, so that together they are drawn from their joint law.

        All that is computed here depends on the carry: the compiler would do the rest for rows without births too.
        """
        j, loading, element, rows = carry
        at = places == jnp.where(free & (rows.ones == 0.0), places, places.shape[0]).min()
        size = row(sizes, j)
        tau = noise / (1.0 + noise * jnp.where(later > j, sizes * sizes, 0.0).sum())
        precision = 1.0 + tau * size * size
        rest = row(given.values, d) - (loading[:, None] * rows.factor).sum(0)
        error = normals(given.seed, "factor", d, jnp.arange(samples), j + 1)
        x = size * tau * rest / precision + error / jnp.sqrt(precision)
        factor = jnp.where(at[:, None], x, rows.factor)
        beside, power = (factor * x).sum(1), (x * x).sum()
        rows = rows._replace(
            cross=jnp.where(at, (given.values * x).sum(1)[:, None], rows.cross),
            factor=factor,
            gram=jnp.where(at[:, None], beside, jnp.where(at, beside[:, None], rows.gram)),
            power=jnp.where(at, power, rows.power),
            precision=jnp.where(at, row(row(births.precision, d), j), rows.precision),
            ones=jnp.where(at, 1.0, rows.ones),
            count=jnp.maximum(rows.count, jnp.where(at, places + 1, 0).max()),
        )
        if element is not None:
            element = jnp.where(at, row(row(births.element, d), j), element)
        return j + 1, jnp.where(at, size, loading), element, rows

    number = jnp.where(accept, new, 0)
    start = (jnp.zeros_like(number), loading, element, rows)
    _, loading, element, rows = lax.while_loop(lambda carry: carry[0] < number, birth, start)
    if element is not None:
        rows = rows._replace(element=put(rows.element, d, element))
    return rows._replace(loading=put(rows.loading, d, loading))


def _accepts(given: Given, births: Births, rows: Rows, d: Any, loading: Any, shared: Any, number: Any) -> Any:
    """Whether row d has new factors instead of its own; `shared` are its loadings without these, `number` counts both,
    own and new.
    """
    sizes = row(births.born.loading, d)
    fit = (rows.gram * shared).sum(1) - 2.0 * row(rows.cross, d)
    energy = jnp.maximum(row(given.square, d) + (shared * fit).sum(), 0.0)
    squares = jnp.stack([((loading - shared) ** 2).sum(), (sizes * sizes).sum()])
    evidence = log_evidence(squares, energy, row(given.noise, d), given.values.shape[1])
    return accepted(row(births.uniform, d), births.law, number, evidence)


def _compact(state: State, rows: Rows, switches: Switches) -> State:
    """Factors in use to the front, in their order; X is yet to be drawn."""
    keep = (rows.ones > 0.0) | (jnp.arange(rows.ones.shape[0]) < switches.known)
    order, count = jnp.argsort(~keep, stable=True), keep.sum().astype(state.count.dtype)
    state = state._replace(loading=rows.loading.T[order], precision=rows.precision[order], count=count)
    state = state._replace(precision=jnp.where(used(state), state.precision, 1.0))
    return state if rows.element is None else state._replace(element=rows.element.T[order])
