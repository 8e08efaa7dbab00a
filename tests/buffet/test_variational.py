"""Mean field: the bound against draws and enumerated evidence, coordinates at their best, recovery, the language."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
import scipy.stats as st

import cavity as cv
from cavity.engine.support.machine_code import Kernel
from cavity.factors.errors import DataError, ModelError, UnsupportedError
from cavity.models.buffet import BetaBernoulli
from cavity.models.buffet.likelihoods import LinearGaussian, NoisyOr, Rows
from cavity.models.buffet.samplers.law import Law
from cavity.models.buffet.variational import fit, fit_variational
from cavity.models.buffet.variational.gaussian import GaussianField
from cavity.models.buffet.variational.noisy_or import NoisyOrField
from cavity.models.buffet.variational.weights import Separate, Sticks, weights_of

LEARNED = LinearGaussian(noise_precision=(3.0, 2.0), value_precision=(2.0, 2.0))
GIVEN = LinearGaussian(noise_precision=2.0, value_precision=0.7)
NOISY = NoisyOr(quiet=0.9, attenuation=0.3, share=(2.0, 3.0))
FINITE, BUFFET = Law(mass=(4.0, 2.0), features=3), Law(mass=(4.0, 2.0))
CASES = {
    "gaussian, all seen, finite": (GIVEN, FINITE, False),
    "gaussian, missing, buffet": (LEARNED, BUFFET, True),
    "noisy-or, missing, finite": (NOISY, FINITE, True),
}


def tiny(likelihood, missing, rows=4, dimensions=2, seed=1):
    random = np.random.default_rng(seed)
    values = 1.5 * random.normal(size=(rows, dimensions))
    if isinstance(likelihood, NoisyOr):
        values = (values > 0.0) * 1.0
    seen = np.ones(values.shape, bool)
    if missing:
        seen[0, 1] = seen[2, 0] = False
    return fit.cleaned(Rows(values, seen), likelihood)


def parts(case, **shape):
    """Data, beliefs to begin with, and what updates them."""
    likelihood, law, missing = CASES[case]
    rows = tiny(likelihood, missing, **shape)
    field = fit.FIELDS[type(likelihood)](likelihood, not missing)
    weights = weights_of(law, 3)
    with jax.enable_x64(True):
        numbers = likelihood.first_numbers(rows)
    first = fit.start(field, weights)(jax.random.split(jax.random.key(2), 1), rows, numbers)
    return rows, jax.tree.map(lambda array: array[0], first), field, weights


@functools.cache
def kernels(case):
    """Each coordinate's update, of the places given, and the bound."""
    _, _, field, weights = parts(case)

    def of(update):
        return Kernel(lambda rows, now, places: update(rows, now, jnp.ones(()), field, weights, places))

    updates = [of(update) for update in fit.COORDINATES]
    return updates, Kernel(lambda rows, now: fit.bound_of(rows, now, field, weights))


def settled(case, rounds=3, **shape):
    """Data and beliefs after some rounds."""
    rows, now, _, weights = parts(case, **shape)
    updates, _ = kernels(case)
    for _ in range(rounds):
        for update in updates:
            now = update(rows, now, np.arange(weights.places))
    return rows, now


@pytest.mark.parametrize("case", CASES)
def test_no_coordinate_lowers_the_bound(case):
    """Entries and values feature by feature, the other coordinates at once."""
    (updates, bound), (rows, now) = kernels(case), settled(case, 1)
    heights = [bound(rows, now)]
    for _ in range(5):
        for update, own in zip(updates, fit.COORDINATES, strict=True):
            single = own in (fit.entries_updated, fit.values_updated)
            for places in [np.array([k]) for k in range(3)] if single else [np.arange(3)]:
                now = update(rows, now, places)
                heights.append(bound(rows, now))
    assert np.diff(heights).min() > -1e-10, np.diff(heights)
    assert heights[-1] - heights[0] > 1e-3


@pytest.mark.parametrize("case", CASES)
def test_coordinates_are_at_their_best(case):
    """The gradient of the bound in the coordinate just updated is zero, and not in others."""
    _, _, field, weights = parts(case)
    (updates, _), (rows, now) = kernels(case), settled(case, 1)
    slope = Kernel(
        jax.grad(
            lambda z, own, rows, now: fit.bound_of(rows, now._replace(probabilities=z, own=own), field, weights), (0, 1)
        )
    )
    by_update = dict(zip(fit.COORDINATES, updates, strict=True))
    now = by_update[fit.entries_updated](rows, now, np.array([1]))
    z, _ = slope(now.probabilities, now.own, rows, now)
    assert np.abs(z[:, 1]).max() < 1e-9 < np.abs(z[:, 0]).max()
    now = by_update[fit.values_updated](rows, now, np.array([2]))
    z, own = slope(now.probabilities, now.own, rows, now)
    assert np.abs(own.mean[2]).max() < 1e-9 < np.abs(z[:, 1]).max()
    if isinstance(field, GaussianField):
        assert np.abs(own.variance[2]).max() < 1e-9


def log_gamma_ratio(random, given, belief, count):
    """Draws of a number, and log prior minus log belief of each."""
    if not isinstance(given, tuple):
        return np.full(count, float(given)), np.zeros(count)
    own = st.gamma(belief.shape, scale=belief.mean / belief.shape)
    drawn = own.rvs(size=count, random_state=random)
    return drawn, st.gamma(given[0], scale=1.0 / given[1]).logpdf(drawn) - own.logpdf(drawn)


def log_weights_ratio(random, law, weights, now, active, count):
    """Of weights or sticks, of the mass, and of matrices given them: log joint density minus log belief, of draws."""
    mass, ratio = log_gamma_ratio(random, law.mass, now.weights.mass, count)
    own = st.beta(now.weights.first, now.weights.second)
    drawn = own.rvs(size=(count, 3), random_state=random)
    ratio = ratio + (st.beta(weights.unit * mass[:, None], 1.0).logpdf(drawn) - own.logpdf(drawn)).sum(axis=1)
    chance = (np.cumprod(drawn, axis=1) if isinstance(weights, Sticks) else drawn)[:, None]
    z = now.probabilities
    ratio = ratio + np.where(active, np.log(chance), np.log1p(-chance)).sum(axis=(1, 2))
    return ratio - np.where(active, np.log(z), np.log1p(-z)).sum(axis=(1, 2))


def log_gaussian_ratio(random, rows, likelihood, own, active, count):
    noise, ratio = log_gamma_ratio(random, likelihood.noise_precision, own.noise, count)
    precision, more = log_gamma_ratio(random, likelihood.value_precision, own.precision, count)
    law = st.norm(own.mean, np.sqrt(own.variance))
    values = law.rvs(size=(count, *own.mean.shape), random_state=random)
    prior = st.norm(0.0, precision[:, None, None] ** -0.5).logpdf(values)
    cells = st.norm(active @ values, noise[:, None, None] ** -0.5).logpdf(rows.values)
    return ratio + more + (prior - law.logpdf(values)).sum(axis=(1, 2)) + (cells * rows.seen).sum(axis=(1, 2))


def log_noisy_ratio(random, rows, likelihood, own, active, count):
    a, b = likelihood.share
    law = st.beta(a + own.mean.sum(), b + (1.0 - own.mean).sum())
    share = law.rvs(size=(count, 1, 1), random_state=random)
    values = random.random((count, *own.mean.shape)) < own.mean
    prior = np.where(values, np.log(share / own.mean), np.log((1.0 - share) / (1.0 - own.mean)))
    zero = likelihood.quiet * likelihood.attenuation ** (active @ values.astype(float))
    cells = np.log(np.where(rows.values > 0.5, 1.0 - zero, zero))
    ratio = (st.beta(a, b).logpdf(share) - law.logpdf(share))[:, 0, 0]
    return ratio + prior.sum(axis=(1, 2)) + (cells * rows.seen).sum(axis=(1, 2))


@pytest.mark.parametrize("case", CASES)
def test_the_bound_is_the_mean_log_ratio_of_draws_from_the_beliefs(case):
    """Of the joint density to the beliefs', written out in densities; for sticks the bound is below it and closer ones
    meet it."""
    likelihood, law, _ = CASES[case]
    (rows, now), count, random = settled(case), 40_000, np.random.default_rng(5)
    _, _, field, weights = parts(case)
    updates, bound = kernels(case)
    now = updates[fit.COORDINATES.index(fit.numbers_updated)](rows, now, np.arange(3))
    active = random.random((count, *now.probabilities.shape)) < now.probabilities
    own = log_noisy_ratio if isinstance(field, NoisyOrField) else log_gaussian_ratio
    ratios = own(random, rows, likelihood, now.own, active, count)
    ratios = ratios + log_weights_ratio(random, law, weights, now, active, count)
    error = ratios.std() / np.sqrt(count)
    closer, limit = fit.tightened(field, weights)(rows, now)
    assert abs(closer - ratios.mean()) < 4.5 * error + 1e-3
    assert error < 0.05
    if isinstance(weights, Separate):
        assert bound(rows, now) == pytest.approx(closer, abs=1e-10)
        assert limit == closer
    else:
        assert bound(rows, now) < closer
        assert limit < closer


def log_gaussian_evidence(rows, z, likelihood):
    """Values integrated out, each dimension of the rows that show it."""
    found = 0.0
    for d in range(rows.values.shape[1]):
        own = rows.seen[:, d]
        covariance = z[own] @ z[own].T / likelihood.value_precision + np.eye(own.sum()) / likelihood.noise_precision
        found += st.multivariate_normal(np.zeros(own.sum()), covariance).logpdf(rows.values[own, d])
    return found


def matrices(rows, places):
    return np.array(list(itertools.product([0.0, 1.0], repeat=rows * places))).reshape(-1, rows, places)


def log_stick_prior(mass, every, points=200):
    """Log probabilities of matrices of two places under two sticks, by quadrature."""
    nodes, own = np.polynomial.legendre.leggauss(points)
    stick, own = 0.5 * (nodes + 1.0), 0.5 * own
    density = mass * stick ** (mass - 1.0) * own
    kept = np.stack(np.broadcast_arrays(stick[:, None], stick[:, None] * stick))
    cells = density[:, None] * density
    ones = every.sum(axis=1)
    rows = every.shape[1]
    return np.log(
        [(cells * (kept ** m[:, None, None] * (1.0 - kept) ** (rows - m[:, None, None])).prod(0)).sum() for m in ones]
    )


def test_the_bound_is_below_the_evidence_of_the_finite_prior():
    rows, law = tiny(GIVEN, True, rows=3), Law(mass=1.5, features=2)
    every = matrices(3, 2)
    terms = [BetaBernoulli(1.5, 2).log_matrix_probability(z) + log_gaussian_evidence(rows, z, GIVEN) for z in every]
    found = fit_variational(rows, GIVEN, law, jax.random.key(0), restarts=3, tolerance=1e-10)
    exact = scipy.special.logsumexp(terms)
    assert exact - 3.0 < found.bound < exact
    assert found.converged


def test_the_bound_is_below_the_evidence_of_sticks_and_of_the_buffet():
    """The buffet's by the Poisson numbers of columns of each history: all matrices of up to eight columns."""
    rows, mass = tiny(GIVEN, False, rows=3), 1.5
    found = fit_variational(rows, GIVEN, Law(mass=mass), jax.random.key(0), 2, restarts=3, tolerance=1e-10)
    every = matrices(3, 2)
    prior = log_stick_prior(mass, every)
    assert scipy.special.logsumexp(prior) == pytest.approx(0.0, abs=1e-6)
    exact = scipy.special.logsumexp(
        [p + log_gaussian_evidence(rows, z, GIVEN) for p, z in zip(prior, every, strict=True)]
    )
    closer, limit = found.closer_bounds(rows)
    assert exact - 3.5 < found.bound < closer < exact
    histories = np.array(list(itertools.product([0.0, 1.0], repeat=3)))[1:]
    owners = histories.sum(axis=1)
    rate = mass * scipy.special.factorial(owners - 1) * scipy.special.factorial(3 - owners) / 6.0
    terms = []
    for counts in itertools.product(range(5), repeat=7):
        if sum(counts) <= 5:
            z = np.repeat(histories, counts, axis=0).T
            terms.append(st.poisson(rate).logpmf(counts).sum() + log_gaussian_evidence(rows, z, GIVEN))
    whole = scipy.special.logsumexp(terms)
    assert whole - 4.0 < limit < whole


def test_the_bound_of_the_noisy_or_is_below_its_evidence():
    likelihood = NoisyOr(quiet=0.9, attenuation=0.3, share=0.4)
    rows, law = tiny(likelihood, True, rows=3), Law(mass=1.5, features=2)
    z, a = matrices(3, 2), matrices(2, 2)
    zero = 0.9 * 0.3 ** (z[:, None] @ a)
    cells = (np.log(np.where(rows.values > 0.5, 1.0 - zero, zero)) * rows.seen).sum(axis=(2, 3))
    prior = np.array([BetaBernoulli(1.5, 2).log_matrix_probability(each) for each in z])
    share = (a * np.log(0.4) + (1.0 - a) * np.log(0.6)).sum(axis=(1, 2))
    exact = scipy.special.logsumexp(prior[:, None] + share + cells)
    found = fit_variational(rows, likelihood, law, jax.random.key(0), restarts=3, tolerance=1e-10)
    assert exact - 2.0 < found.bound < exact


@pytest.mark.parametrize(("quiet", "attenuation"), [(0.95, 0.2), (0.5, 0.9), (0.999, 0.01)])
def test_expectations_of_the_noisy_or_are_those_of_the_poisson_binomial(quiet, attenuation):
    random = np.random.default_rng(0)
    z, mean = random.random((4, 6)), random.random((6, 3))
    field = NoisyOrField(NoisyOr(quiet, attenuation, 0.3), True)
    zero_terms = np.log(quiet) + z @ mean * np.log(attenuation)
    exact = np.zeros((4, 3))
    for n, d in np.ndindex(4, 3):
        law = np.ones(1)
        for p in z[n] * mean[:, d]:
            law = np.convolve(law, [1.0 - p, p])
        exact[n, d] = law @ np.log1p(-quiet * attenuation ** np.arange(7))
    values = random.random((4, 3)) < 0.6
    rows = Rows(values * 1.0, np.ones((4, 3), bool))
    first = Kernel(lambda key: field.start(key, rows, 6, {}))(jax.random.key(0))
    found = Kernel(field.fit)(rows, z, first._replace(mean=mean))
    assert found == pytest.approx(np.where(values, exact, zero_terms).sum(), rel=1e-11)


def blocks(rows=120, seed=0, noise=0.3):
    """Four blocks of a picture of 6 by 6, which rows have or have not: what rows show, who has which, the pictures."""
    random = np.random.default_rng(seed)
    pictures = np.zeros((4, 6, 6))
    pictures[0, :2, :2] = pictures[1, :2, 3:6] = pictures[2, 3:6, :3] = pictures[3, 4:, 4:] = 1.0
    z = random.random((rows, 4)) < 0.4
    pictures = pictures.reshape(4, 36)
    return z @ pictures + noise * random.normal(size=(rows, 36)), z, pictures


@pytest.mark.slow
def test_features_missing_cells_and_new_rows():
    values, z, pictures = blocks(160)
    seen = np.random.default_rng(1).random(values.shape) < 0.9
    train, cells = Rows(np.where(seen, values, np.nan)[:120], seen[:120]), Rows(values[:120], ~seen[:120])
    found = fit_variational(train, LEARNED, Law(mass=(2.0, 1.0)), jax.random.key(1), 6, restarts=8)
    assert found.converged
    assert found.bounds.shape[0] == 8
    match = np.abs(found.values[0][:, None] - pictures).mean(axis=2).argmin(axis=0)
    assert len(set(match)) == 4
    assert ((found.probabilities[:, match] > 0.5) == z[:120]).mean() > 0.99
    assert np.abs(found.values[0][match] - pictures).max() < 0.3
    assert 0.7 < found.belief.own.noise.mean * 0.3**2 < 1.3
    closer, limit = found.closer_bounds(train)
    assert found.bound < closer < found.bound + 0.01 * abs(found.bound)  # of the whole, the sticks' bound costs little
    assert closer - 5.0 < limit < closer
    new = found.predict(Rows(values[120:], seen[120:]))
    assert ((new.probabilities[:, match] > 0.5) == z[120:]).mean() > 0.99
    assert np.abs(new.expected - z[120:] @ pictures).max() < 0.5
    density = found.log_density(cells, found.probabilities, jax.random.key(3))
    assert np.isnan(density[seen[:120]]).all()
    true = st.norm(z[:120] @ pictures, 0.3).logpdf(values[:120])[~seen[:120]].mean()
    assert true - 0.1 < density[~seen[:120]].mean() < true + 0.02


@pytest.mark.slow
def test_reasons_of_binary_data():
    """Under both priors: the pictures that are reasons, and which rows have them."""
    random, (_, z, pictures) = np.random.default_rng(4), blocks(150)
    values = (random.random((150, 36)) < 1.0 - 0.95 * 0.2 ** (z @ pictures)) * 1.0
    rows = Rows(values, np.ones(values.shape, bool))
    for law in (Law(mass=2.0, features=6), Law(mass=(2.0, 1.0))):
        found = fit_variational(rows, NoisyOr(0.95, 0.2, (1.0, 1.0)), law, jax.random.key(1), 6, restarts=8)
        match = np.abs(found.values[0][:, None] - pictures).mean(axis=2).argmin(axis=0)
        assert len(set(match)) == 4
        assert ((found.probabilities[:, match] > 0.5) == z).mean() > 0.97
        assert ((found.values[0][match] > 0.5) == pictures).mean() > 0.97


def test_rows_seen_again_have_the_same_features():
    rows = tiny(GIVEN, False)
    found = fit_variational(rows, GIVEN, FINITE, jax.random.key(1), restarts=1, tolerance=1e-12)
    again = found.predict(rows, tolerance=1e-12)
    assert np.abs(again.probabilities - found.probabilities).max() < 1e-4
    assert np.abs(again.expected - found.probabilities @ found.values[0]).max() < 1e-4


@pytest.mark.slow
def test_log_densities_of_cells():
    """The noisy-or's are exact in the expected entry: draws come near it."""
    values, _, _ = blocks(30)
    rows = Rows((values > 0.5) * 1.0, np.ones(values.shape, bool))
    found = fit_variational(rows, NOISY, Law(mass=1.0, features=3), jax.random.key(0), restarts=2)
    z = np.full((30, 3), 0.4)
    expected = 1.0 - 0.9 * np.prod(1.0 - z[:, :, None] * found.values[0] * 0.7, axis=1)
    density = found.log_density(rows, z, jax.random.key(0), samples=4000)
    wanted = np.where(rows.values > 0.5, expected, 1.0 - expected)
    assert np.abs(np.exp(density) - wanted).max() < 0.05
    assert abs((np.exp(density) - wanted).mean()) < 2e-3


def test_the_same_key_gives_the_same_fit():
    rows = tiny(GIVEN, False)
    fits = [fit_variational(rows, GIVEN, FINITE, jax.random.key(seed), restarts=1, iterations=25) for seed in (0, 0, 1)]
    assert np.array_equal(fits[0].bounds, fits[1].bounds)
    assert not np.array_equal(fits[0].bounds, fits[2].bounds)


def in_the_language(places, dimensions):
    """The finite model with given precisions, the sum over features written out."""
    m = cv.Model("features")
    row, column, total = m.plate("row"), m.plate("column", dimensions), 0.0
    for k in range(places):
        activity = m.random(f"activity {k}", cv.beta(1.5 / places, 1.0))
        active = m.random(f"active {k}", cv.bernoulli(activity), plates=row)
        value = m.random(f"value {k}", cv.gaussian(0.0, variance=1.0 / GIVEN.value_precision), plates=column)
        total = total + cv.table(np.array([0.0, 1.0]))[active] * value
    m.random("x", cv.gaussian(total, variance=1.0 / GIVEN.noise_precision), plates=(row, column))
    return m


@pytest.mark.slow
def test_the_language_has_the_same_fixed_point_and_bound():
    """Variational message passing factorises the same model the same way: its beliefs give its evidence here, and an
    iteration leaves them."""
    random, places = np.random.default_rng(3), 2
    values = (random.random((10, 2)) < 0.5) @ (2.0 * random.normal(size=(2, 3))) + 0.5 * random.normal(size=(10, 3))
    posterior = cv.infer(in_the_language(places, 3), {"x": values}, method="vmp", tolerance=1e-12)
    rows, law = Rows(values, np.ones(values.shape, bool)), Law(mass=1.5, features=2)
    found = fit_variational(rows, GIVEN, law, jax.random.key(0), restarts=1, iterations=1)
    first, second = (np.array([posterior[f"activity {k}"].parameters[p] for k in range(places)]) for p in "ab")
    own = found.belief.own._replace(
        mean=np.stack([posterior[f"value {k}"].mean for k in range(places)]),
        variance=np.stack([posterior[f"value {k}"].sd ** 2 for k in range(places)]),
    )
    z = np.stack([posterior[f"active {k}"].mean for k in range(places)], axis=1)
    belief = found.belief._replace(
        probabilities=z, weights=found.belief.weights._replace(first=first, second=second), own=own
    )
    field, weights = GaussianField(GIVEN, True), Separate(law, places)
    bound = Kernel(lambda rows, now: fit.bound_of(rows, now, field, weights))(rows, belief)
    assert bound == pytest.approx(posterior.log_evidence, abs=1e-8)
    stacked = jax.tree.map(lambda array: np.asarray(array)[None], belief)
    after = fit.iteration(field, weights)(rows, stacked, np.ones(()))
    assert np.abs(after.belief.probabilities[0] - z).max() < 1e-5
    assert after.bound[0] == pytest.approx(bound, abs=1e-8)


def test_all_iterations_are_one_compiled_call():
    rows = tiny(GIVEN, False, rows=5)
    kernel = fit.iteration(GaussianField(GIVEN, True), weights_of(FINITE, 3))
    before = kernel.traces
    fit_variational(rows, GIVEN, FINITE, jax.random.key(0), restarts=1, iterations=5)
    assert kernel.traces - before == 1


def test_bad_requests():
    rows, key = tiny(GIVEN, False), jax.random.key(0)
    with pytest.raises(ModelError, match="found places=None"):
        fit_variational(rows, GIVEN, Law(mass=1.0), key)
    with pytest.raises(ModelError, match="The prior has 3 features; found places=2"):
        fit_variational(rows, GIVEN, FINITE, key, 2)
    with pytest.raises(UnsupportedError, match="one parameter"):
        fit_variational(rows, GIVEN, Law(mass=1.0, concentration=2.0), key, 2)
    with pytest.raises(UnsupportedError, match="takes quiet= as a number"):
        fit_variational(tiny(NOISY, False), NoisyOr(quiet=(1.0, 1.0)), FINITE, key)
    with pytest.raises(DataError, match="entries 0 and 1"):
        fit_variational(rows, NOISY, FINITE, key)
    with pytest.raises(DataError, match="two arrays of one shape"):
        fit_variational(Rows(np.zeros((3, 2)), np.ones((2, 2), bool)), GIVEN, FINITE, key)
    with pytest.raises(DataError, match="finite numbers"):
        fit_variational(Rows(np.full((3, 2), np.nan), np.ones((3, 2), bool)), GIVEN, FINITE, key)
    with pytest.raises(DataError, match="restarts"):
        fit_variational(rows, GIVEN, FINITE, key, restarts=0)
    found = fit_variational(rows, GIVEN, FINITE, key, restarts=1, iterations=1)
    with pytest.raises(DataError, match="Rows have 2 dimensions; found 5"):
        found.predict(Rows(np.zeros((3, 5)), np.ones((3, 5), bool)))
