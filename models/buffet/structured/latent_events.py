"""Events that cause events: features of one time bring on features of the next, and there is always room for new ones.

Each event that is on makes a Poisson number of choices of what comes next. It chooses what it chose before, or asks an
oracle that all events share: that too repeats itself, or names an event that never was. Both are urns, in which what is
drawn is put back twice.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln

from ....engine.mcmc.keys import generator
from ....factors.errors import DataError
from ..checks import positive, whole


class Choice(NamedTuple):
    """One choice.

    Attributes:
        row: at which the event chosen is on.
        cause: the event of the row before that chose it, or -1 for the beginning.
        event: chosen, numbered in the order in which events are first named.
        asked: whether the oracle was asked.
    """

    row: int
    cause: int
    event: int
    asked: bool


@dataclasses.dataclass(frozen=True)
class LatentEvents:
    """The prior of the infinite latent events model.

    At the first row there are Poisson(rate) choices by the oracle. Then each event i that is on makes Poisson(rate)
    choices of events that are on in the next row: j with probability `C_ij / (C_i + own)`, C_ij counting its choices of
    j so far, or else by the oracle: j with probability `B_j / (B + new)`, B_j counting how often that named j, or an
    event that never was with probability `new / (B + new)`. Causes take turns in the order of their numbers.

    Args:
        rate: positive; choices of an event that is on.
        own: positive; large where events often ask the oracle.
        new: positive; large where the oracle often names new events.

    Raises:
        ModelError: a parameter that is not a finite number above zero.

    Source: wingate2009infinite.
    """

    rate: float
    own: float = 1.0
    new: float = 1.0

    def __post_init__(self) -> None:
        for name in ("rate", "own", "new"):
            object.__setattr__(self, name, positive(name, getattr(self, name)))

    def sample(self, rows: int, key: Any) -> tuple[Choice, ...]:
        """All choices in their order; `matrix_of` says which events are on.

        Args:
            rows: how many rows.
            key: a key of `jax.random`.
        """
        random, urns, found = generator(key), Urns(self), []
        on = [-1]
        for row in range(whole("rows", rows)):
            own = choices_of_row(random, urns, row, on)
            found.extend(own)
            on = sorted({choice.event for choice in own})
        return tuple(found)

    def log_probability(self, choices: tuple[Choice, ...], rows: int) -> float:
        """Log probability of all choices in their order.

        `prod over rows and causes of rate^N exp(-rate) / N! times the probability of each choice`, N choices of a
        cause at a row. Minus infinity where an event chooses that is not on.

        Args:
            choices: in the order in which `sample` gives them.
            rows: how many rows there are.

        Raises:
            DataError: choices out of order, or events that are not numbered in the order of their first naming.
        """
        if any(not 0 <= choice.row < whole("rows", rows) for choice in choices):
            raise DataError(f"Choices are of the rows 0 .. {rows - 1}; found {choices}.")
        if [(choice.row, choice.cause) for choice in choices] != sorted((one.row, one.cause) for one in choices):
            raise DataError("Choices are in the order of rows, and of causes at each row.")
        urns, found, on = Urns(self), 0.0, [-1]
        for row in range(rows):
            own = [choice for choice in choices if choice.row == row]
            if not {choice.cause for choice in own} <= set(on):
                return -np.inf
            for cause in on:
                number = sum(choice.cause == cause for choice in own)
                found += number * np.log(self.rate) - self.rate - gammaln(number + 1.0)
            for choice in own:
                chances = {(event, asked): weight for event, asked, weight in urns.chances(choice.cause)}
                if (choice.event, choice.asked) not in chances:
                    raise DataError(f"An event is named by the oracle first, and numbered then; found {choice}.")
                found += np.log(chances[choice.event, choice.asked])
                urns.put(choice)
            on = sorted({choice.event for choice in own})
        return float(found)


def matrix_of(choices: tuple[Choice, ...], rows: int) -> np.ndarray:
    """(rows, events) booleans: which events are on."""
    matrix = np.zeros((whole("rows", rows), max((choice.event for choice in choices), default=-1) + 1), dtype=bool)
    for choice in choices:
        matrix[choice.row, choice.event] = True
    return matrix


def choices_of_row(random: np.random.Generator, urns: Urns, row: int, on: list[int]) -> list[Choice]:
    """The choices of one row by the events that were on in the row before, which the urns then have."""
    found = []
    for cause in on:
        for _ in range(random.poisson(urns.prior.rate)):
            chances = urns.chances(cause)
            events, asked, weight = zip(*chances, strict=True)
            pick = random.choice(len(chances), p=np.array(weight))
            found.append(Choice(row, cause, events[pick], asked[pick]))
            urns.put(found[-1])
    return found


class Urns:
    """What has been chosen so far."""

    def __init__(self, prior: LatentEvents) -> None:
        self.prior = prior
        self.named: list[int] = []  # how often the oracle named each event
        self.chosen: dict[int, dict[int, int]] = {}  # of each cause, how often each event

    def chances(self, cause: int) -> list[tuple[int, bool, float]]:
        """(event, asked, probability) of all that can be next; the beginning always asks."""
        mine = {} if cause < 0 else self.chosen.get(cause, {})
        total, heard = sum(mine.values()), sum(self.named) + self.prior.new
        ask = 1.0 if cause < 0 else self.prior.own / (total + self.prior.own)
        repeated = [(event, False, count / (total + self.prior.own)) for event, count in sorted(mine.items())]
        named = [(event, True, ask * count / heard) for event, count in enumerate(self.named)]
        return [*repeated, *named, (len(self.named), True, ask * self.prior.new / heard)]

    def put(self, choice: Choice) -> None:
        """Back twice."""
        if choice.asked:
            self.named.extend([0] * (choice.event + 1 - len(self.named)))
            self.named[choice.event] += 1
        if choice.cause >= 0:
            mine = self.chosen.setdefault(choice.cause, {})
            mine[choice.event] = mine.get(choice.event, 0) + 1
