"""Everything but loadings and factors, given them: activities, precisions, noise, and the priors' own numbers."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax
from jax.scipy.special import digamma, gammaln

from ..state import Numbers, State, Switches
from .bits import ROUNDS, uniforms
from .elements import draw_elements, prior_elements
from .factors import used
from .gamma import log_gammas

WIDTH = 4.0  # of the slice sampler's interval, in log c


class Hyper(NamedTuple):
    """What `draw_hyper` draws.

    Attributes:
        state: with new hyperparameters.
        log_odds: (P,) prior log odds of the loadings of each factor being active, activities drawn; those of known
            factors, and of unused places, have no meaning, nor have any with sparsity "none".
        born_precision, born_element: (most, rows) of factors that may be born, from their priors: of the ith factor
            that row j would have alone. Elements are (1, 1) ones with Gaussian slabs; both are (0, 0) without births.
    """

    state: State
    log_odds: Any
    born_precision: Any
    born_element: Any


def rate_of_own(state: State) -> Any:
    """The mean number of factors that a row has alone, given those it shares: `mass c / (c + D - 1)`."""
    rows = state.noise.shape[0]
    return state.mass * state.concentration / (state.concentration + rows - 1.0)


def draw_hyper(seed: Any, state: State, energy: Any, numbers: Numbers, switches: Switches, rows: int) -> Hyper:
    """All hyperparameters given loadings and factors, by Gibbs steps with one loop for all their gamma variables.

    Args:
        seed: (2,) from `bits.seed_of`.
        state: a point of a chain.
        energy: (D,) sums of squared residuals.
        numbers, switches: of the model.
        rows: for how many rows the precisions of factors that may be born are drawn from their prior.
    """
    every, exist = state.loading.shape[1], used(state)
    free = exist & (jnp.arange(state.loading.shape[0]) >= switches.known)
    active = state.loading != 0.0
    ones = active.sum(1).astype(jnp.float64)
    number = (state.count - switches.known).astype(jnp.float64)
    concentration = state.concentration
    if "concentration" in switches.learn:
        concentration = _draw_concentration(seed, state, ones, free, number, numbers, switches)
    born = (switches.most, rows)
    shapes = _activity_shapes(seed, state, active, ones, free, concentration, numbers, switches)
    if "mass" in switches.learn:
        shapes["mass"] = (numbers.mass_prior[0] + number)[None]
    shapes |= _noise_shapes(state, numbers, switches) | _slab_shapes(state, active, exist, born, numbers, switches)
    logs = log_gammas(seed, shapes)

    state = state._replace(concentration=concentration)
    log_odds, log_activities = _activities(logs, numbers, switches)
    if switches.sparsity == "hierarchical":
        state = state._replace(openness=jnp.where(free, jnp.exp(log_activities), 0.0))
    if "mass" in switches.learn:
        if switches.sparsity == "buffet":
            rate = numbers.mass_prior[1] + harmonic(concentration, every)
        else:
            # Given activities pi ~ Beta(mass / K, 1), a gamma variable.
            rate = numbers.mass_prior[1] - jnp.where(free, log_activities, 0.0).sum() / state.count
        state = state._replace(mass=jnp.exp(logs["mass"][0]) / rate)
    state = _draw_noise(state, logs, energy, numbers, switches)
    state = _draw_precision(state, logs, exist, numbers, switches)
    if switches.slab != "gaussian":
        state = state._replace(element=draw_elements(seed, state, logs.get("element"), numbers, switches))
    return Hyper(state, log_odds, *_newborn(seed, state, logs, born, numbers, switches))


def harmonic(concentration: Any, rows: int) -> Any:
    """`sum of c / (c + j)` over j = 0 ... D - 1: the expected number of factors for a mass of 1."""
    return concentration * (digamma(concentration + rows) - digamma(concentration))


def _noise_shapes(state: State, numbers: Numbers, switches: Switches) -> dict[str, Any]:
    """Shapes of the gamma distributions of noise precisions, and of the rate that they share."""
    every, samples, shapes = state.loading.shape[1], state.factor.shape[1], {}
    own = 1.0 if switches.noise == "shared" else float(every)
    if switches.noise != "fixed":
        data = 0.5 * samples * every / own
        shapes["noise"] = jnp.full((1, int(own)), numbers.noise_prior[0] + data)
    if "noise_rate" in switches.learn:
        shapes["noise_rate"] = (numbers.noise_rate_prior[0] + own * numbers.noise_prior[0])[None]
    return shapes


def _slab_shapes(
    state: State, active: Any, exist: Any, born: tuple[int, int], numbers: Numbers, switches: Switches
) -> dict[str, Any]:
    """Shapes of the gamma distributions of slab precisions and elements, also of factors that may be born."""
    ones, first, shapes = active.sum(1).astype(jnp.float64), numbers.precision_prior[0], {}
    if switches.precision == "factor":
        shapes["precision"] = first + jnp.where(exist, 0.5 * ones, 0.0)
    elif switches.precision == "shared":
        shapes["precision"] = (first + 0.5 * ones.sum())[None]
    if "precision_rate" in switches.learn:
        several = state.count if switches.precision == "factor" else 1.0
        shapes["precision_rate"] = (numbers.precision_rate_prior[0] + first * several)[None]
    births = switches.sparsity == "buffet"
    if births and switches.precision == "factor":
        shapes["born"] = jnp.full(born, first)
    if switches.slab == "student_t":
        shapes["element"] = numbers.element[0] + 0.5 * active
        if births:
            shapes["born element"] = jnp.full(born, numbers.element[0])
    return shapes


def _activity_shapes(
    seed: Any, state: State, active: Any, ones: Any, free: Any, concentration: Any, numbers: Numbers, switches: Switches
) -> dict[str, Any]:
    """Shapes of the two gamma variables behind the activity of each factor, or behind its openness."""
    rows = active.shape[1]
    if switches.sparsity == "none":
        return {}
    if switches.sparsity == "buffet":
        one, other = ones, rows - ones + concentration
    elif switches.sparsity == "finite":
        one, other = ones + state.mass / state.count, rows - ones + 1.0
    else:
        _, mean, size, share = numbers.hierarchy
        closed = (1.0 - state.openness) / (1.0 - mean * state.openness)  # the probability where a loading is zero
        u = uniforms(seed, "open", jnp.arange(active.shape[0])[:, None], jnp.arange(rows))
        number = (active | (u >= closed[:, None])).sum(1)
        one, other = size * share + number, size * (1.0 - share) + rows - number
    return {"active": jnp.where(free, one, 1.0), "inactive": jnp.where(free, other, 1.0)}


def _activities(logs: dict[str, Any], numbers: Numbers, switches: Switches) -> tuple[Any, Any]:
    """Log odds of active loadings; the logarithm of the activity, or of the openness, of each factor."""
    if switches.sparsity == "none":
        return None, None
    one, other = logs["active"], logs["inactive"]
    log_share = -jnp.logaddexp(0.0, other - one)
    if switches.sparsity != "hierarchical":
        return one - other, log_share
    log_active = jnp.log(numbers.hierarchy[1]) + log_share
    return log_active - jnp.log1p(-jnp.exp(log_active)), log_share


def _draw_noise(state: State, logs: dict[str, Any], energy: Any, numbers: Numbers, switches: Switches) -> State:
    if switches.noise != "fixed":
        total = energy.sum() if switches.noise == "shared" else energy
        noise = jnp.exp(logs["noise"][0]) / (state.noise_rate + 0.5 * total)
        state = state._replace(noise=jnp.broadcast_to(noise, energy.shape))
    if "noise_rate" in switches.learn:
        total = state.noise[0] if switches.noise == "shared" else state.noise.sum()
        state = state._replace(noise_rate=jnp.exp(logs["noise_rate"][0]) / (numbers.noise_rate_prior[1] + total))
    return state


def _draw_precision(state: State, logs: dict[str, Any], exist: Any, numbers: Numbers, switches: Switches) -> State:
    if switches.precision == "fixed":
        return state
    squares = state.loading * state.loading
    if switches.slab != "gaussian":
        squares = squares * state.element
    total = squares.sum() if switches.precision == "shared" else squares.sum(1)
    drawn = jnp.exp(logs["precision"]) / (state.precision_rate + 0.5 * total)
    if "precision_rate" in switches.learn:
        own = drawn[0] if switches.precision == "shared" else jnp.where(exist, drawn, 0.0).sum()
        rate = jnp.exp(logs["precision_rate"][0]) / (numbers.precision_rate_prior[1] + own)
        state = state._replace(precision_rate=rate)
    # A shared precision fills unused places too, where births find it.
    filling = drawn if switches.precision == "shared" else 1.0
    return state._replace(precision=jnp.where(exist, drawn, filling))


def _newborn(
    seed: Any, state: State, logs: dict[str, Any], born: tuple[int, int], numbers: Numbers, switches: Switches
) -> tuple[Any, Any]:
    """Precisions and elements, from their priors, of factors that may be born."""
    if switches.sparsity != "buffet":
        return jnp.zeros((0, 0)), jnp.zeros((0, 0))
    if switches.precision == "factor":
        precision = jnp.exp(logs["born"]) / state.precision_rate
    elif switches.precision == "shared":
        precision = jnp.broadcast_to(state.precision[0], born)
    else:
        precision = jnp.broadcast_to(numbers.precision_prior[0] / numbers.precision_prior[1], born)
    if switches.slab == "gaussian":
        return precision, jnp.ones((1, 1))
    if switches.slab == "student_t":
        return precision, jnp.exp(logs["born element"]) / numbers.element[1]
    u = uniforms(seed, "born element", jnp.arange(born[0])[:, None], jnp.arange(born[1]))
    return precision, prior_elements(u, switches)


def _draw_concentration(
    seed: Any, state: State, ones: Any, free: Any, number: Any, numbers: Numbers, switches: Switches
) -> Any:
    """A slice sampler's step for log c, with activities integrated out, and the mass if it is sampled."""
    rows = state.noise.shape[0]
    shape, rate = numbers.concentration_prior

    def log_density(log_c: Any) -> Any:
        c = jnp.exp(log_c)
        columns = jnp.where(free, gammaln(rows - ones + c) - gammaln(rows + c), 0.0).sum()
        if "mass" in switches.learn:
            mass = -(numbers.mass_prior[0] + number) * jnp.log(numbers.mass_prior[1] + harmonic(c, rows))
        else:
            mass = -state.mass * harmonic(c, rows)
        return number * log_c + columns + mass + shape * log_c - rate * c

    start = jnp.log(state.concentration)
    u = uniforms(seed, "concentration", 0, jnp.arange(2))
    level = log_density(start) + jnp.log(u[0])
    low = start - WIDTH * u[1]

    def body(carry: Any) -> Any:
        again, low, high, _, _ = carry
        found = low + (high - low) * uniforms(seed, "concentration", 0, 0, again)
        above = found >= start
        good = log_density(found) > level
        return again + 1, jnp.where(above, low, found), jnp.where(above, found, high), found, good

    begin = (1, low, low + WIDTH, start, jnp.bool_(False))
    # The interval shrinks towards the start: the limit is far beyond where it is that to rounding.
    *_, found, good = lax.while_loop(lambda carry: ~carry[-1] & (carry[0] < ROUNDS), body, begin)
    return jnp.exp(jnp.where(good, found, start))
