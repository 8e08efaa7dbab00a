"""Events that cause events: probabilities by enumeration of all short histories, draws, urns, bad input."""

import collections
import itertools

import jax
import numpy as np
import pytest
from poisson_columns import keys
from scipy import stats

from cavity.factors.errors import DataError, ModelError, UnsupportedError
from cavity.models.buffet.likelihoods import LaplaceICA, NoisyOr
from cavity.models.buffet.likelihoods.contract import Rows
from cavity.models.buffet.structured import Choice, LatentEvents, matrix_of, sample_events
from cavity.models.buffet.structured.latent_events_sampler import Events, events_given

PRIOR = LatentEvents(0.5, own=0.7, new=1.6)


def histories(rows, most):
    """All histories in which no cause makes more than so many choices at a row, as lists of choices."""

    def rows_after(before, row, on, events):
        if row == rows:
            yield tuple(before)
            return
        for numbers in itertools.product(range(most + 1), repeat=len(on)):
            causes = [cause for cause, number in zip(on, numbers, strict=True) for _ in range(number)]
            for found, now in ways(before, row, causes, events):
                yield from rows_after(found, row + 1, sorted({one.event for one in found[len(before) :]}), now)

    def ways(before, row, causes, events):
        if not causes:
            yield before, events
            return
        cause = causes[0]
        mine = {one.event for one in before if one.cause == cause} if cause >= 0 else set()
        for event, asked in [*((e, False) for e in sorted(mine)), *((e, True) for e in range(events + 1))]:
            yield from ways([*before, Choice(row, cause, event, asked)], row, causes[1:], max(events, event + 1))

    yield from rows_after([], 0, [-1], 0)


def test_probabilities_of_all_histories_add_up_to_one_and_draws_follow_them():
    probability = {each: np.exp(PRIOR.log_probability(each, 2)) for each in histories(2, 2)}
    few = stats.poisson.cdf(2, PRIOR.rate)  # that a cause makes no more choices than two
    on = {each: matrix_of(each, 1).sum() for each in histories(1, 2)}
    first = {each: np.exp(PRIOR.log_probability(each, 1)) for each in on}
    assert np.isclose(sum(first.values()), few, rtol=1e-12)
    wanted = sum(first[each] * few ** on[each] for each in on)
    assert np.isclose(sum(probability.values()), wanted, rtol=1e-12)
    drawn = collections.Counter(PRIOR.sample(2, key) for key in keys(4000))
    often = [each for each, own in probability.items() if 4000 * own > 10.0]
    assert len(often) > 10
    wanted = np.array([probability[each] for each in often])
    observed = np.array([drawn[each] for each in often])
    wanted, observed = np.append(wanted, 1.0 - wanted.sum()), np.append(observed, 4000 - observed.sum())
    assert stats.chisquare(observed, 4000 * wanted).pvalue > 1e-4


def test_choices_of_one_cause_are_exchangeable():
    start = (Choice(0, -1, 0, True),)
    one = (*start, Choice(1, 0, 0, True), Choice(1, 0, 1, True), Choice(1, 0, 0, False))
    two = (*start, Choice(1, 0, 0, True), Choice(1, 0, 0, False), Choice(1, 0, 1, True))
    assert np.isclose(PRIOR.log_probability(one, 2), PRIOR.log_probability(two, 2), rtol=0, atol=1e-12)


def test_events_are_on_where_they_were_chosen():
    choices = (Choice(0, -1, 0, True), Choice(1, 0, 1, True), Choice(2, 1, 0, True))
    assert np.array_equal(matrix_of(choices, 4), [[1, 0], [0, 1], [1, 0], [0, 0]])
    assert matrix_of((), 2).shape == (2, 0)
    assert PRIOR.log_probability((Choice(1, 0, 0, True),), 2) == -np.inf  # chosen by what is not on


def test_what_is_wrong_is_refused():
    with pytest.raises(ModelError):
        LatentEvents(0.0)
    for choices in (
        (Choice(2, -1, 0, True),), (Choice(0, -1, 1, True),), (Choice(0, -1, 0, False),),
        (Choice(1, 0, 1, True), Choice(0, -1, 0, True)),
    ):  # fmt: skip
        with pytest.raises(DataError):
            PRIOR.log_probability(choices, 2)


BITS = NoisyOr(0.9, 0.2, 0.5)
EVENTS = LatentEvents(rate=1.2, own=0.8, new=1.5)


def choices_of(array):
    return tuple(Choice(int(row), int(cause), int(event), bool(asked)) for row, cause, event, asked in array)


def statistics_of(choices, values):
    active = matrix_of(choices, 3)
    asked = [choice.asked for choice in choices]
    used = values[: active.shape[1]]
    return [
        active.shape[1],
        active.sum(),
        active[-1].sum(),
        len(choices),
        sum(asked),
        used.sum(),
        (active @ used).sum(),
    ]


def scores_of(prior, chains=150, steps=5):
    """z scores of Geweke's test: chains begin at draws of `EVENTS`, and alternate sweeps of `prior` and new data."""
    random, starts, found = np.random.default_rng(0), [], []
    seen = np.ones((3, 2), bool)
    for number in range(chains):
        key = jax.random.key(number)
        choices = EVENTS.sample(3, key)
        values = (random.random((64, 2)) < 0.5).astype(float)
        numbers = {"quiet": np.array(0.9), "attenuation": np.array(0.2), "share": np.array(0.5)}
        array = np.array(choices, dtype=np.int64).reshape(len(choices), 4)
        state, each = Events(array, values, numbers), []
        starts.append(statistics_of(choices, values))
        for step in range(steps):
            matrix = matrix_of(choices_of(state.choices), 3)
            total = matrix @ state.values[: matrix.shape[1]]
            data = (random.random((3, 2)) < 1.0 - 0.9 * 0.2**total).astype(float)
            rows = Rows(data, seen)
            state = events_given(jax.random.fold_in(key, step), rows, state, prior, BITS, 4)
            each.append(statistics_of(choices_of(state.choices), state.values))
        found.append(np.mean(each, axis=0))
    more = [EVENTS.sample(3, jax.random.key(10_000 + number)) for number in range(4 * chains)]
    starts += [statistics_of(choices, (random.random((64, 2)) < 0.5).astype(float)) for choices in more]
    one, other = np.array(starts, float), np.array(found)
    spread = np.sqrt(one.var(axis=0) / len(one) + other.var(axis=0) / len(other))
    return (other.mean(axis=0) - one.mean(axis=0)) / spread


@pytest.mark.slow
def test_sweeps_leave_the_law_of_events_and_data_as_it_is():
    scores = scores_of(EVENTS)
    assert np.abs(scores).max() < 4.0, scores


@pytest.mark.slow
def test_sweeps_of_another_rate_are_found():
    scores = scores_of(LatentEvents(rate=3.0, own=0.8, new=1.5), chains=100, steps=4)
    assert np.abs(scores).max() > 4.0, scores


def test_chains_have_draws_and_refuse_weights():
    data = np.array([[1.0, 0.0], [1.0, np.nan], [0.0, 1.0]])
    found = sample_events(data, jax.random.key(0), 3, EVENTS, BITS, chains=1, particles=3)
    events, count = int(found["number_of_features"][0, -1]), int(found["number_of_choices"][0, -1])
    choices = choices_of(found["choices"][0, -1, :count])
    assert np.array_equal(found["active"][0, -1][:, :events], matrix_of(choices, 3))
    prior = EVENTS.log_probability(choices, 3)
    assert np.isclose(found["log_joint"][0, -1], found["log_likelihood"][0, -1] + prior, rtol=1e-12)
    with pytest.raises(UnsupportedError):
        sample_events(data, jax.random.key(0), 1, EVENTS, LaplaceICA())
    with pytest.raises(ModelError, match="found LatentEvents and str"):
        sample_events(data, jax.random.key(0), 1, EVENTS, "noisy-or")
