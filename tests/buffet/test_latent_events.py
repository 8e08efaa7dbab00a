"""Events that cause events: probabilities by enumeration of all short histories, draws, urns, bad input."""

import collections
import itertools

import numpy as np
import pytest
from poisson_columns import keys
from scipy import stats

from cavity.factors.errors import DataError, ModelError
from cavity.models.buffet.structured import Choice, LatentEvents, matrix_of

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
