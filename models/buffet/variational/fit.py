"""Mean field of a binary matrix, its features' values and weights: restarts side by side, coordinates in turn.

Each coordinate is set to its best given all others, so that the bound never falls once the likelihood has its full
power. Iterations are one compiled call for all restarts; between calls stands the rule to stop.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ....engine.support import machine_code
from ....factors import draws
from ....factors.arrays import Array, Key
from ....factors.errors import DataError, ModelError, UnsupportedError
from ....factors.switches import double_precision
from ..checks import whole
from ..likelihoods.contract import Likelihood, Numbers, Rows
from ..likelihoods.linear_gaussian import LinearGaussian
from ..likelihoods.noisy_or import NoisyOr
from ..samplers.law import Law
from . import beliefs, contract
from .contract import Field, Probabilities
from .gaussian import GaussianField
from .noisy_or import NoisyOrField
from .weights import Beliefs, Weights, weights_of

FIELDS: dict[type, type[Field]] = {LinearGaussian: GaussianField, NoisyOr: NoisyOrField}
COLDEST = 0.3  # the power of the likelihood in the first tempered iteration


class Belief(NamedTuple):
    """About everything.

    Attributes:
        probabilities: (rows, places) that a row has a feature.
        weights: of the prior.
        own: of the likelihood.
    """

    probabilities: Probabilities
    weights: Beliefs
    own: contract.Belief


class Step(NamedTuple):
    """An iteration's result: the beliefs, and the bound of the log evidence that they give."""

    belief: Belief
    bound: Array


class Prediction(NamedTuple):
    """Of rows given what is believed of features.

    Attributes:
        probabilities: (rows, places) that a row has a feature.
        expected: (rows, dimensions), the expected entries, seen or not.
    """

    probabilities: np.ndarray
    expected: np.ndarray


def entries_updated(rows: Rows, belief: Belief, power: Array, field: Field, weights: Weights, places: Array) -> Belief:
    """Which rows have each of these features."""
    on, off = weights.logs(belief.weights)
    found = field.entries(rows, belief.probabilities, belief.own, on - off, power, places)
    return belief._replace(probabilities=found)


def values_updated(rows: Rows, belief: Belief, power: Array, field: Field, weights: Weights, places: Array) -> Belief:
    """The values of each of these features."""
    return belief._replace(own=field.values(rows, belief.probabilities, belief.own, power, places))


def numbers_updated(rows: Rows, belief: Belief, power: Array, field: Field, weights: Weights, places: Array) -> Belief:
    """The likelihood's numbers."""
    return belief._replace(own=field.numbers(rows, belief.probabilities, belief.own, power))


def weights_updated(rows: Rows, belief: Belief, power: Array, field: Field, weights: Weights, places: Array) -> Belief:
    """The weights, with the features in another order where that raises the bound."""
    z = belief.probabilities
    found, order = weights.ordered(belief.weights, jnp.sum(z, axis=0), z.shape[0])
    return Belief(z[:, order], found, field.reordered(belief.own, order))


def mass_updated(rows: Rows, belief: Belief, power: Array, field: Field, weights: Weights, places: Array) -> Belief:
    """The mass."""
    return belief._replace(weights=weights.massed(belief.weights))


COORDINATES = (weights_updated, mass_updated, entries_updated, values_updated, numbers_updated)


def bound_of(rows: Rows, belief: Belief, field: Field, weights: Weights, power: float = 1.0) -> Array:
    """The bound of the log evidence: expected log joint density and entropy."""
    z = belief.probabilities
    prior = weights.bound(belief.weights, jnp.sum(z, axis=0), z.shape[0]) + beliefs.entropy(z)
    return power * field.fit(rows, z, belief.own) - field.divergence(belief.own) + prior


@functools.cache
def iteration(field: Field, weights: Weights) -> machine_code.Kernel:
    """`(rows, beliefs of all restarts, power) -> Step`."""

    def one(rows: Rows, belief: Belief, power: Array) -> Step:
        for update in COORDINATES:
            belief = update(rows, belief, power, field, weights, jnp.arange(weights.places))
        return Step(belief, bound_of(rows, belief, field, weights))

    return machine_code.Kernel(jax.vmap(one, in_axes=(None, 0, None)))


@functools.cache
def start(field: Field, weights: Weights) -> machine_code.Kernel:
    """`(keys of restarts, rows, first numbers) -> beliefs`: rows at random for values, features undecided."""

    def one(key: Key, rows: Rows, numbers: Numbers) -> Belief:
        keys = jax.random.split(key)
        own = field.start(keys[0], rows, weights.places, numbers)
        z = 0.25 + 0.5 * draws.uniform(keys[1], (weights.places, rows.values.shape[0])).T
        return Belief(z, weights.start(), own)

    return machine_code.Kernel(jax.vmap(one, in_axes=(0, None, None)))


@functools.cache
def tightened(field: Field, weights: Weights) -> machine_code.Kernel:
    """`(rows, belief) -> two bounds`: with the prior's part evaluated closer, of so many places and of the limit."""

    def both(rows: Rows, belief: Belief) -> tuple[Array, Array]:
        z = belief.probabilities
        rest = field.fit(rows, z, belief.own) - field.divergence(belief.own) + beliefs.entropy(z)
        found = weights.evaluated(belief.weights, jnp.sum(z, axis=0), z.shape[0])
        return rest + found[0], rest + found[1]

    return machine_code.Kernel(both)


@functools.cache
def features_of_rows(field: Field, weights: Weights) -> machine_code.Kernel:
    """`(rows, probabilities, belief) -> (probabilities, expected entries)`, after one pass over the features."""

    def one(rows: Rows, z: Array, belief: Belief) -> tuple[Array, Array]:
        now = belief._replace(probabilities=z)
        now = entries_updated(rows, now, jnp.ones(()), field, weights, jnp.arange(weights.places))
        return now.probabilities, field.expected(now.probabilities, belief.own)

    return machine_code.Kernel(one)


@functools.cache
def densities(field: Field) -> machine_code.Kernel:
    """`(keys, cells, probabilities, belief of values) -> log of the mean density of each cell` over draws."""

    def one(keys: Key, cells: Rows, z: Array, own: contract.Belief) -> Array:
        def add(i: Array, sums: Array) -> Array:
            key = jax.random.split(keys[i])
            values, numbers = field.draw(key[0], own)
            active = z > draws.uniform(key[1], z.T.shape).T
            return jnp.logaddexp(sums, field.likelihood.log_entry(cells.values, active @ values, numbers))

        every = jax.lax.fori_loop(0, len(keys), add, jnp.full(cells.values.shape, -jnp.inf))
        return every - jnp.log(len(keys))

    return machine_code.Kernel(one)


@dataclasses.dataclass(frozen=True, eq=False)
class Fitted:
    """The best of the restarts.

    Attributes:
        likelihood, law: of the model.
        places: number of features that beliefs are about.
        belief: about everything; arrays.
        bounds: (restarts, iterations) of the log evidence; the first iterations may be tempered.
        converged: whether the last change was within the tolerance.
    """

    likelihood: Likelihood
    law: Law
    places: int
    belief: Belief
    bounds: np.ndarray
    converged: bool

    @property
    def bound(self) -> float:
        """Of the log evidence; under the Indian buffet process of that of its first `places` sticks."""
        return float(self.bounds[:, -1].max())

    @property
    def probabilities(self) -> np.ndarray:
        """(rows, places) that a row has a feature."""
        return np.asarray(self.belief.probabilities)

    @property
    def values(self) -> tuple[np.ndarray, np.ndarray]:
        """Means and sds, (places, dimensions) each."""
        mean, sd = self._field(True).moments(jax.tree.map(jnp.asarray, self.belief.own))
        return np.asarray(mean), np.asarray(sd)

    @property
    def weights(self) -> tuple[np.ndarray, np.ndarray]:
        """(places,) twice, the parameters of the beta beliefs of weights or, under the buffet, of sticks."""
        return np.asarray(self.belief.weights.first), np.asarray(self.belief.weights.second)

    @property
    def mass(self) -> float:
        """Its mean."""
        return float(self.belief.weights.mass.mean)

    def closer_bounds(self, rows: Rows) -> tuple[float, float]:
        """Bounds of the log evidence by the same beliefs, closer: of the prior with so many places, and of the buffet.

        Args:
            rows: the data that the fit was to.
        """
        rows = cleaned(rows, self.likelihood)
        found = tightened(self._field(bool(rows.seen.all())), weights_of(self.law, self.places))(rows, self.belief)
        return float(found[0]), float(found[1])

    def predict(self, rows: Rows, iterations: int = 100, tolerance: float = 1e-8) -> Prediction:
        """What other rows have and show, given what is believed of features.

        Args:
            rows: values and which of them are seen; what is not seen is predicted.
            iterations: at most so many passes over the features.
            tolerance: of the largest change of a probability.

        Raises:
            DataError: entries that the likelihood does not give.
        """
        rows = cleaned(rows, self.likelihood)
        if rows.values.shape[1] != self.values[0].shape[1]:
            raise DataError(f"Rows have {self.values[0].shape[1]} dimensions; found {rows.values.shape[1]}.")
        kernel = features_of_rows(self._field(bool(rows.seen.all())), weights_of(self.law, self.places))
        belief = self.belief._replace(probabilities=np.zeros(0))
        z, expected = np.full((len(rows.values), self.places), 0.5), np.zeros(rows.values.shape)
        for _ in range(whole("iterations", iterations)):
            before = z
            z, expected = kernel(rows, z, belief)
            if np.abs(z - before).max(initial=0.0) < tolerance:
                break
        return Prediction(z, expected)

    def log_density(self, cells: Rows, probabilities: np.ndarray, key: Key, samples: int = 100) -> np.ndarray:
        """Log predictive density of each cell by itself, the mean of densities over draws from the beliefs.

        Args:
            cells: the cells asked for, as `seen`.
            probabilities: (rows, places) of these rows, of this fit or a prediction.
            key: of the draws.
            samples: their number.

        Returns:
            (rows, dimensions), NaN where not asked for.
        """
        cells = cleaned(cells, self.likelihood)
        keys = jax.random.split(key, whole("samples", samples))
        return np.where(cells.seen, densities(self._field(True))(keys, cells, probabilities, self.belief.own), np.nan)

    def draw(self, key: Key) -> tuple[np.ndarray, np.ndarray, Numbers]:
        """The matrix, values and numbers, from the beliefs."""
        keys = jax.random.split(key)
        with double_precision():
            own = jax.tree.map(jnp.asarray, self.belief.own)
            values, numbers = jax.tree.map(np.asarray, self._field(True).draw(keys[0], own))
            u = np.asarray(draws.uniform(keys[1], self.probabilities.T.shape)).T
        return u < self.probabilities, values, numbers

    def _field(self, complete: bool) -> Field:
        return FIELDS[type(self.likelihood)](self.likelihood, complete)


def fit_variational(
    rows: Rows,
    likelihood: Likelihood,
    law: Law,
    key: Key,
    places: int | None = None,
    restarts: int = 4,
    tempered: int = 20,
    iterations: int = 500,
    tolerance: float = 1e-6,
) -> Fitted:
    """Mean field: independent beliefs of entries, values, weights and numbers that maximise a bound of the evidence.

    Args:
        rows: the data.
        likelihood: `LinearGaussian`, or `NoisyOr` of given quiet and attenuation.
        law: the finite prior, or the Indian buffet process of one parameter, of which the first `places` sticks may
            have features.
        key: of the starts.
        places: the number of features; that of the finite prior.
        restarts: from rows at random; the one with the highest bound is kept.
        tempered: so many first iterations raise the likelihood to a power, from 0.3 to one; 0 for none.
        iterations: at most so many in all.
        tolerance: stop where no restart's bound changes by more than this fraction, and tempering has ended.

    Raises:
        ModelError: a number of places that is not the prior's, or none.
        DataError: entries that the likelihood does not give; counts that are no whole numbers.
        UnsupportedError: another likelihood, or a buffet of two parameters.

    Source: doshivelez2009variational.
    """
    if type(likelihood) not in FIELDS:
        names = ", ".join(each.__name__ for each in FIELDS)
        raise UnsupportedError(f"Mean field is for {names}; found {type(likelihood).__name__}. Run a sampler.")
    rows = cleaned(rows, likelihood)
    field = FIELDS[type(likelihood)](likelihood, bool(rows.seen.all()))
    weights = weights_of(law, places_of(law, places))
    tempered, iterations = whole("tempered iterations", tempered, 0), whole("iterations", iterations)
    with double_precision():
        numbers = likelihood.first_numbers(rows)
    belief = start(field, weights)(jax.random.split(key, whole("restarts", restarts)), rows, numbers)
    step, resident, bounds, converged = iteration(field, weights), machine_code.resident(rows), [], False
    for i in range(iterations):
        power = COLDEST ** (1.0 - i / tempered) if i < tempered else 1.0
        belief, bound = step(resident, belief, np.asarray(power))
        bounds.append(bound)
        if i > tempered and np.all(np.abs(bound - bounds[-2]) <= tolerance * (1.0 + np.abs(bound))):
            converged = True
            break
    best = int(np.argmax(bounds[-1]))
    chosen = jax.tree.map(lambda array: np.asarray(array[best]), belief)
    return Fitted(likelihood, law, weights.places, chosen, np.stack(bounds, axis=1), converged)


def places_of(law: Law, places: int | None) -> int:
    """How many features beliefs are about."""
    if law.features is not None and places not in (None, law.features):
        raise ModelError(f"The prior has {law.features} features; found places={places}. Leave places= out.")
    if law.features is None and places is None:
        raise ModelError("The buffet has no number of features; found places=None. Give how many there may be.")
    return whole("places", law.features if places is None else places)


def cleaned(rows: Rows, likelihood: Likelihood) -> Rows:
    """The data with zeros where not seen; DataError for shapes that differ or entries that the likelihood lacks."""
    values, seen = np.asarray(rows.values, float), np.asarray(rows.seen, bool)
    if values.ndim != 2 or values.shape != seen.shape or 0 in values.shape:
        raise DataError(
            f"Rows are two arrays of one shape, (rows, dimensions), none zero; found {values.shape} and {seen.shape}."
        )
    if not np.isfinite(values[seen]).all():
        raise DataError("Cells that are seen are finite numbers; found one that is not. Mark it as not seen.")
    likelihood.check(values, seen)
    return Rows(np.where(seen, values, 0.0), seen)
