"""Geweke's test of sparse factor models: draws of everything from the prior, against chains that start from such draws
and alternate a sweep given the data with new data given the state. Both have one law if the sweep is right.

Every chain starts in the law to be tested, so that means over a chain are independent over chains, and standard errors
need no guess of how chains forget.
"""

import dataclasses
from typing import Any, NamedTuple

import jax
import numpy as np

from cavity.engine.mcmc.keys import generator
from cavity.engine.support.machine_code import Kernel
from cavity.models.sparse.state import Numbers, Observed, State, Switches

KEY = jax.random.key(6)
PLAIN = Switches(precision="fixed", noise="fixed", learn=(), rows=2)
FULL = Switches(learn=("concentration", "mass", "noise_rate", "precision_rate"), rows=2)
KNOWN = ((1.0, 0.0, 0.3), (0.6, 0.5, 0.0))


@dataclasses.dataclass(frozen=True)
class Case:
    """A model with its sizes.

    Args:
        switches: as the sweep takes them.
        rows, samples: D and N.
        factors: their number where it is fixed, known ones included.
        mass, concentration, precision, noise: values, or where they are sampled unused.
        numbers: what differs from `NUMBERS`.
        known: (known, D) prior probabilities.
        missing: rows and samples of missing entries.
        places: P.
        score_mass: of the Dirichlet process of scores, where there is one.
    """

    switches: Switches
    rows: int = 2
    samples: int = 2
    factors: int = 0
    mass: float = 2.0
    concentration: float = 1.0
    precision: float = 1.0
    noise: float = 1.0
    numbers: dict[str, Any] = dataclasses.field(default_factory=dict)
    known: Any = ()
    missing: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())
    places: int = 16
    score_mass: float = 1.0


# Shapes far above 1: moments of all that is compared exist, and few chains have many factors.
NUMBERS = Numbers(
    mass_prior=(8.0, 4.0),
    concentration_prior=(8.0, 4.0),
    precision_prior=(4.0, 4.0),
    precision_rate_prior=(16.0, 4.0),
    noise_prior=(4.0, 4.0),
    noise_rate_prior=(16.0, 4.0),
    element=(4.0, 3.0),
    hierarchy=(10.0, 0.75, 4.0, 0.4),
    multiplier=1.0,
    spike=0.0,
)


def numbers_of(case):
    changed = NUMBERS._replace(score_mass=case.score_mass, **case.numbers)
    return Numbers(*(np.asarray(value, float) for value in changed))


def observed_of(case, values):
    """The data of many chains, zero at missing places."""
    row, sample = (np.asarray(places, np.int32) for places in case.missing)
    with np.errstate(divide="ignore"):
        probability = np.asarray(case.known, float).reshape(case.switches.known, case.rows)
        log_odds = np.log(probability) - np.log1p(-probability)
    seen = values.copy()
    seen[:, row, sample] = 0.0
    return Observed(seen, row, sample, log_odds)


# the prior ------------------------------------------------------------------------------------------------------------


def draw_prior(case, key, draws):
    """`draws` independent states, stacked; their missing values are those of `draw_values`."""
    random, numbers, switches = generator(key), numbers_of(case), case.switches
    places, rows = case.places, case.rows
    learn = switches.learn

    def gamma(law, size):
        return random.gamma(law[0], size=size) / law[1]

    mass = gamma(numbers.mass_prior, draws) if "mass" in learn else np.full(draws, case.mass)
    concentration = np.full(draws, case.concentration)
    if "concentration" in learn:
        concentration = gamma(numbers.concentration_prior, draws)
    rates = {}
    for name in ("precision_rate", "noise_rate"):
        rates[name] = np.full(draws, getattr(numbers, name.removesuffix("_rate") + "_prior")[1])
        if name in learn:
            rates[name] = gamma(getattr(numbers, f"{name}_prior"), draws)
    active, openness, count = draw_active(case, random, mass, concentration)
    used = np.arange(places) < count[:, None]
    precision = spread(
        random, switches.precision, numbers.precision_prior[0], rates["precision_rate"], places, "factor"
    )
    precision = np.where(used, case.precision if precision is None else precision, 1.0)
    noise = spread(random, switches.noise, numbers.noise_prior[0], rates["noise_rate"], rows, "row")
    noise = np.full((draws, rows), case.noise) if noise is None else noise
    element, total = draw_elements(switches.slab, numbers, random, (draws, places, rows)), precision[..., None]
    if element.size:
        total = total * element
    loading = np.where(active, random.standard_normal(active.shape) / np.sqrt(total), 0.0)
    factor = np.where(used[..., None], random.standard_normal((draws, places, case.samples)), 0.0)
    if switches.scores == "dirichlet":
        factor = draw_urns(random, factor, case.score_mass)
    missing = np.zeros((draws, len(case.missing[0])))
    return State(
        loading, factor, count, precision, element, openness, noise, mass, concentration, *rates.values(), missing
    )


def spread(random, word, shape, rate, size, each):
    """Gamma variables: one for each place, one for all of a draw, or None where they are fixed."""
    if word == "fixed":
        return None
    found = random.gamma(shape, size=(len(rate), size if word == each else 1)) / rate[:, None]
    return np.broadcast_to(found, (len(rate), size))


def draw_urns(random, factor, mass):
    """(draws, P, N) scores of Dirichlet processes, one for each factor, from independent ones: some are replaced by
    those of samples before them."""
    found = factor.copy()
    for n in range(1, factor.shape[2]):
        before = random.integers(n, size=factor.shape[:2])
        old = np.take_along_axis(found, before[..., None], axis=2)[..., 0]
        found[..., n] = np.where(random.uniform(size=old.shape) * (mass + n) < n, old, factor[..., n])
    return found


def draw_elements(slab, numbers, random, shape):
    if slab == "student_t":
        return random.gamma(numbers.element[0], size=shape) / numbers.element[1]
    if slab == "laplace":
        return 1.0 / random.exponential(2.0, size=shape)
    if slab == "horseshoe":
        return np.tan(0.5 * np.pi * random.uniform(size=shape)) ** -2.0
    return np.zeros((shape[0], 0, 0))


def draw_active(case, random, mass, concentration):
    """(draws, P, D) which loadings are not zero, (draws, P or 0) openness, (draws,) how many factors."""
    sparsity, known, draws, places, rows = (
        case.switches.sparsity,
        case.switches.known,
        len(mass),
        case.places,
        case.rows,
    )
    active = np.zeros((draws, places, rows), bool)
    openness = np.zeros((draws, 0))
    count = np.full(draws, known)
    if known:
        active[:, :known] = random.uniform(size=(draws, known, rows)) < np.asarray(case.known)
    if sparsity == "buffet":
        for row in range(rows):
            others = active[:, :, :row].sum(2)
            old = random.uniform(size=others.shape) < others / (concentration + row)[:, None]
            new = count + random.poisson(mass * concentration / (concentration + row))
            fresh = (np.arange(places) >= count[:, None]) & (np.arange(places) < new[:, None])
            active[:, known:, row] = (old | fresh)[:, known:]
            count = new
        assert count.max() <= places, "the case needs more places"
        return active, openness, count
    count = np.full(draws, case.factors)
    if sparsity == "finite":
        probability = random.beta((mass / case.factors)[:, None], 1.0, size=(draws, places))
    elif sparsity == "hierarchical":
        _, m, s, r = numbers_of(case).hierarchy
        openness = random.beta(s * r, s * (1.0 - r), size=(draws, places))
        probability = m * openness
    else:
        probability = np.ones((draws, places))
    given = random.uniform(size=active.shape) < probability[..., None]
    active[:, known:] = given[:, known:]
    active[:, case.factors :] = False
    return active, openness, count


def draw_values(state, random):
    """(draws, D, N) data given many states."""
    mean = state.loading.swapaxes(1, 2) @ state.factor
    return mean + random.standard_normal(mean.shape) / np.sqrt(state.noise)[..., None]


# what is compared -----------------------------------------------------------------------------------------------------


def statistics(case, state, values):
    """{name: (draws,)} of many states and their data, missing values filled in: light-tailed functions, blind to the
    order of factors that are not known."""
    switches, places = case.switches, np.arange(case.places)
    used = places < state.count[:, None]
    active = (state.loading != 0.0) & used[..., None]
    free = active & (places >= switches.known)[:, None]
    ones, per_factor = free.sum((1, 2)), free.sum(2)
    own = free & (per_factor == 1)[..., None]
    squares = np.log1p((state.loading**2).sum((1, 2)))
    fit = state.loading.swapaxes(1, 2) @ state.factor
    found = {
        "ones": ones,
        "own": own.sum((1, 2)),
        "first row": free[:, :, 0].sum(1),
        "squares": squares,
        "largest": np.tanh(np.abs(state.loading).max((1, 2))),
        "factors": np.log1p((state.factor**2).sum((1, 2))),
    }
    if switches.sparsity == "buffet":
        count = state.count.astype(float)
        found |= {"count": count, "count squared": count**2, "several own": own[:, :, 0].sum(1) > 1}
    first = last = np.zeros(len(ones))
    if case.samples:
        first, last = np.tanh(np.abs(values[:, 0, 0])), np.tanh(np.abs(values[:, -1, -1]))
        found |= {
            "data": first,
            "same sample": np.tanh(values[:, 0, 0] * values[:, 1, 0]),
            "same row": np.tanh(values[:, 0, 0] * values[:, 0, 1]),
            "data by ones": last * ones,
            "data by own": first * own[:, :, 0].sum(1),
            "fit by data": np.tanh(fit[:, 0, 0]) * np.tanh(values[:, 0, 0]),
            "fit": np.tanh(fit[:, -1, 0] * fit[:, -1, -1]),
        }
    precision, noise = np.where(used, np.log(state.precision), 0.0).sum(1), np.log(state.noise)
    if switches.precision != "fixed":
        precision = precision / np.maximum(state.count, 1)
        found |= {"precision": precision, "precision by ones": precision * ones}
        found |= {"precision by squares": precision * squares, "precision by data": precision * last}
    if switches.noise != "fixed":
        found |= {
            "noise": noise[:, 0],
            "noise of two": noise[:, 0] * noise[:, -1],
            "noise by ones": noise[:, -1] * ones,
        }
        found |= {"noise by data": noise[:, 0] * first, "noise by ones": noise[:, -1] * ones}
    for name in switches.learn:
        log = np.log(getattr(state, name))
        found |= {name: log, f"{name} by ones": log * ones, f"{name} squared": log**2, f"{name} by data": log * last}
        found |= {f"{name} by precision": log * precision, f"{name} by noise": log * noise[:, 0]}
    if switches.slab != "gaussian":
        logs = np.where(active, np.tanh(0.5 * np.log(np.where(active, state.element, 1.0))), 0.0).sum((1, 2))
        found |= {"elements": logs, "elements by squares": logs * squares, "elements by data": logs * last}
    if switches.scores == "dirichlet":
        different = np.array([[len(set(scores)) for scores in each] for each in state.factor])
        different = np.where(used, different, 0).sum(1)
        found |= {"scores": different, "scores squared": different**2, "scores by ones": different * ones}
        found |= {"scores by data": different * last, "scores by fit": different * np.tanh(fit[:, 0, 0] ** 2)}
    if switches.sparsity == "hierarchical":
        rho = np.where(used, state.openness, 0.0)
        found |= {"openness": rho.sum(1), "openness by ones": (rho * per_factor).sum(1)}
    if switches.known:
        known = active[:, : switches.known]
        found |= {f"known {k} {d}": known[:, k, d] for k in range(switches.known) for d in range(case.rows)}
        found |= {"known by data": first * known.sum((1, 2)), "known by ones": known[:, -1, -1] * ones}
        found |= {"known loading": np.tanh(state.loading[:, 0, 0] * state.factor[:, 0, 0]) * np.tanh(values[:, 0, 0])}
    if case.missing[0]:
        row, sample = case.missing[0][-1], case.missing[1][-1]
        found |= {
            "missing": np.tanh(np.abs(state.missing[:, 0])),
            "missing by data": np.tanh(state.missing[:, 0] * values[:, 0, 0]),
            "missing by fit": np.tanh(state.missing[:, -1] * fit[:, row, sample]),
        }
    return {name: np.asarray(value, float) for name, value in found.items()}


# the test -------------------------------------------------------------------------------------------------------------


class Comparison(NamedTuple):
    """Means and their standard errors, by name.

    Attributes:
        expected, error: of draws from the prior.
        found, chain_error: of chains.
    """

    expected: dict[str, float]
    error: dict[str, float]
    found: dict[str, float]
    chain_error: dict[str, float]

    def scores(self):
        """{name: difference of the two means in standard errors}."""
        return {
            name: self.against(name, mean, self.error[name])
            for name, mean in self.expected.items()
            if self.error[name] + self.chain_error[name] > 1e-9 or abs(self.found[name] - mean) > 1e-9  # else constant
        }

    def against(self, name, exact, error=0.0):
        """How far the chains' mean is from a number known otherwise, in standard errors."""
        return float((self.found[name] - exact) / np.hypot(self.chain_error[name], error))


def batched(sweep, switches):
    """`sweep` over many chains, each with its own data: (key, states, observed, numbers) -> outcome."""

    def every(key, states, observed, numbers, bound):
        def one(key, state, values):
            return sweep(key, state, observed._replace(values=values), numbers, bound, switches)

        return jax.vmap(one)(jax.random.split(key, len(states.count)), states, observed.values)

    kernel = Kernel(every)
    return lambda key, states, observed, numbers: kernel(key, states, observed, numbers, states.count.max())


def compare(case, sweep, key, chains, steps, draws=None):
    """The two ways to draw.

    Args:
        case: what to test.
        sweep: `sweep(key, state, observed, numbers, bound, switches)`.
        key: a key of `jax.random`.
        chains: how many chains.
        steps: of each.
        draws: from the prior; as many as steps of all chains by default.
    """
    numbers, step = numbers_of(case), batched(sweep, case.switches)
    of_data, *keys = jax.random.split(key, steps + 3)
    row, sample = (list(places) for places in case.missing)
    random = generator(of_data)

    def start(key, count):
        state = draw_prior(case, key, count)
        return state._replace(missing=draw_values(state, random)[:, row, sample])

    def data(state):  # what is missing belongs to the state, and other data do not show it
        seen = draw_values(state, random)
        full = seen.copy()
        full[:, row, sample] = state.missing
        return seen, statistics(case, state, full)

    _, prior = data(start(keys[0], draws or chains * steps))
    state = start(keys[1], chains)
    values, total = data(state)
    total = dict.fromkeys(total, 0.0)
    for one in keys[2:]:
        outcome = step(one, state, observed_of(case, values), numbers)
        assert outcome.fits.all(), "a chain needed more places than the case gives"
        state = outcome.state
        values, found = data(state)
        total = {name: total[name] + value / steps for name, value in found.items()}
    return Comparison(
        {name: float(value.mean()) for name, value in prior.items()},
        {name: float(value.std() / np.sqrt(len(value))) for name, value in prior.items()},
        {name: float(value.mean()) for name, value in total.items()},
        {name: float(value.std(ddof=1) / np.sqrt(chains)) for name, value in total.items()},
    )


def far(comparison, limit=4.0):
    """What the two ways to draw disagree on."""
    return {name: score for name, score in comparison.scores().items() if not abs(score) < limit}
