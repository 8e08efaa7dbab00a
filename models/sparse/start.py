"""Where chains of sparse factor models start: principal components, a draw from the prior, or no factors."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import numpy as np

from ...engine.mcmc.keys import generator
from ..buffet.prior import BetaBernoulli, IndianBuffet
from ..buffet.sample import sample_finite, sample_restaurant
from .components import Components
from .data import Data
from .settings import Settings
from .state import Numbers, State, Switches

SMALLEST = 16  # places for factors


class _Hyper(NamedTuple):
    mass: float
    concentration: float
    precision_rate: float
    noise_rate: float


def first_state(
    data: Data, settings: Settings, switches: Switches, numbers: Numbers, principal: Components | None, key: Any
) -> State:
    """A state to start a chain from, as `settings.start` says.

    "components": principal components; factors are drawn given these loadings, by which chains differ. "prior":
    everything is drawn from the prior. "empty": no loading.

    Args:
        data, settings: the problem.
        switches, numbers: of `data.py`.
        principal: of `components`, where chains start from there.
        key: a key of `jax.random`.

    Returns:
        A state, with as many places for factors as there are factors where their number is fixed, and otherwise with
        the least of 16, 32, 64, ... that is enough.
    """
    of_matrix, rest = jax.random.split(key)
    random = generator(rest)
    hyper = _Hyper(settings.mass, settings.concentration, settings.priors.precision[1], settings.priors.noise[1])
    if settings.start == "prior":
        hyper = _drawn_hyper(settings, switches, hyper, random)
    openness = np.zeros(0)
    if principal is not None:
        loading, noise = principal
    else:
        noise = np.ones(data.shape[0]) / np.mean(data.filled[data.seen] ** 2)
        free = 0 if settings.factors is None else settings.factors - switches.known
        loading = np.zeros((switches.known + free, data.shape[0]))
    active = loading != 0.0
    if settings.start == "prior":
        active, openness = _drawn_active(data, settings, switches, numbers, hyper, of_matrix, random)
    count = len(active)
    if settings.sparsity == "hierarchical" and not openness.size:
        openness = np.full(count, numbers.hierarchy[3])
    precision, element = _slab(settings, numbers, hyper, active, random)
    if settings.start == "prior":
        slab = precision[:, None] * (element if element.size else 1.0)
        loading = active * random.standard_normal(active.shape) / np.sqrt(slab)
        noise = _drawn_noise(data, settings, hyper, random)
    elif not isinstance(settings.precision, float | int) and count:
        precision = _precisions(settings, loading)
    if not isinstance(settings.noise, str):
        noise = np.full(data.shape[0], float(settings.noise))
    elif settings.noise == "shared":
        noise = np.full(data.shape[0], 1.0 / np.mean(1.0 / noise))
    factor = _drawn_factors(data, loading, noise, random)
    state = State(
        loading=loading, factor=factor, count=np.array(count), precision=precision, element=element,
        openness=openness, noise=noise, mass=np.array(hyper.mass), concentration=np.array(hyper.concentration),
        precision_rate=np.array(hyper.precision_rate), noise_rate=np.array(hyper.noise_rate),
        missing=_fit(loading, factor, *np.nonzero(~data.seen)),
    )  # fmt: skip
    return padded(state, bucket(count) if settings.factors is None else settings.factors, settings)


def bucket(count: int) -> int:
    """The least of 16, 32, 64, ... that is not below the count."""
    return max(SMALLEST, 1 << max(int(count) - 1, 0).bit_length())


def padded(state: State, places: int, settings: Settings) -> State:
    """The same state with another number of places for factors, none of which may be in use if they are left out.

    A precision that all factors share, or that is fixed, fills unused places too.
    """
    now = np.shape(state.loading)[-2]
    if places <= now:
        return state._replace(
            loading=state.loading[..., :places, :], factor=state.factor[..., :places, :],
            precision=state.precision[..., :places], element=_first(state.element, places, 2),
            openness=_first(state.openness, places, 1),
        )  # fmt: skip
    more = places - now
    one = settings.precision if isinstance(settings.precision, float | int) else 1.0
    filling = state.precision[..., :1] if settings.precision == "shared" and now else one
    return state._replace(
        loading=_more(state.loading, more, 2), factor=_more(state.factor, more, 2),
        precision=np.concatenate(
            [state.precision, np.broadcast_to(filling, (*np.shape(state.precision)[:-1], more))], axis=-1
        ),
        element=_more(state.element, more, 2) if settings.slab != "gaussian" else state.element,
        openness=_more(state.openness, more, 1) if settings.sparsity == "hierarchical" else state.openness,
    )  # fmt: skip


def _more(array: Any, more: int, axes: int) -> np.ndarray:
    """Zeros after the factors, which are the first of the last `axes` axes."""
    width = [(0, 0)] * np.ndim(array)
    width[-axes] = (0, more)
    return np.pad(array, width)


def _first(array: Any, places: int, axes: int) -> np.ndarray:
    return array[..., :places, :] if axes == 2 else array[..., :places]


def _fit(loading: np.ndarray, factor: np.ndarray, row: np.ndarray, sample: np.ndarray) -> np.ndarray:
    """G X at some entries."""
    return np.einsum("km,km->m", loading[:, row], factor[:, sample])


def _precisions(settings: Settings, loading: np.ndarray) -> np.ndarray:
    """Conditional means of the slab precisions, elements at 1."""
    shape, rate = settings.priors.precision
    ones, squares = (loading != 0.0).sum(axis=1), (loading**2).sum(axis=1)
    if settings.precision == "shared":
        ones, squares = ones.sum(), squares.sum()
    return np.broadcast_to((shape + 0.5 * ones) / (rate + 0.5 * squares), len(loading)).copy()


def _drawn_factors(data: Data, loading: np.ndarray, noise: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """(factors, samples) given loadings and noise, missing entries taken at 0 of their rows."""
    weighted = loading * noise
    root = np.linalg.cholesky(np.eye(len(loading)) + weighted @ loading.T)
    whitened = np.linalg.solve(root, weighted @ data.filled)
    return np.linalg.solve(root.T, whitened + random.standard_normal(whitened.shape))


# the prior ------------------------------------------------------------------------------------------------------------


def _drawn_hyper(settings: Settings, switches: Switches, hyper: _Hyper, random: np.random.Generator) -> _Hyper:
    drawn = {}
    for name in switches.learn:
        shape, rate = getattr(settings.priors, name)
        drawn[name] = max(random.gamma(shape) / rate, 1e-6)
    return hyper._replace(**drawn)


def _drawn_active(
    data: Data, settings: Settings, switches: Switches, numbers: Numbers, hyper: _Hyper, key: Any,
    random: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """(factors, rows) booleans, and openness where there is any."""
    rows = data.shape[0]
    free = 0 if settings.factors is None else settings.factors - switches.known
    known = np.zeros((rows, 0)) if settings.known is None else settings.known
    first, openness = random.random(known.shape) < known, np.zeros(0)
    if settings.sparsity == "buffet":
        matrix = sample_restaurant(IndianBuffet(hyper.mass, hyper.concentration), rows, key)
    elif settings.sparsity == "finite" and free:
        matrix = sample_finite(BetaBernoulli(hyper.mass, switches.known + free), rows, key).matrix[:, :free]
    elif settings.sparsity == "hierarchical":
        a, mean, size, share = numbers.hierarchy
        openness = random.beta(size * share, size * (1.0 - share), switches.known + free)
        matrix = random.random((rows, free)) < openness[switches.known :] * random.beta(
            a * mean, a * (1.0 - mean), (rows, free)
        )
    else:
        matrix = np.ones((rows, free), bool)
    return np.concatenate([first, matrix], axis=1).T, openness


def _slab(
    settings: Settings, numbers: Numbers, hyper: _Hyper, active: np.ndarray, random: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """(factors,) precisions and (factors, rows) elements, or (0, 0): of the prior, or 1 at another start."""
    count = len(active)
    if isinstance(settings.precision, float | int):
        precision = np.full(count, float(settings.precision))
    else:
        shape = settings.priors.precision[0]
        drawn = random.gamma(shape, size=1 if settings.precision == "shared" else count) / hyper.precision_rate
        precision = np.broadcast_to(np.maximum(drawn, 1e-6), count).copy()
    if settings.slab == "gaussian":
        return precision, np.zeros((0, 0))
    if settings.start != "prior":
        return precision, np.ones(active.shape)
    if settings.slab == "student_t":
        element = random.gamma(numbers.element[0], size=active.shape) / numbers.element[1]
    elif settings.slab == "laplace":
        element = 0.5 / random.standard_exponential(active.shape)
    else:
        element = np.tan(0.5 * np.pi * (1.0 - random.random(active.shape))) ** -2.0
    return precision, np.maximum(element, 1e-100)


def _drawn_noise(data: Data, settings: Settings, hyper: _Hyper, random: np.random.Generator) -> np.ndarray:
    shape = settings.priors.noise[0]
    drawn = random.gamma(shape, size=1 if settings.noise == "shared" else data.shape[0]) / hyper.noise_rate
    return np.broadcast_to(np.maximum(drawn, 1e-6), data.shape[0]).copy()
