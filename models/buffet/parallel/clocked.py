"""Workers with a clock of their own, in one process: work, messages and losses take the time they are said to take, so
that many workers are studied on one core.
"""

from __future__ import annotations

import dataclasses
import heapq
from collections.abc import Mapping
from typing import Any

import numpy as np

from ....engine.cluster.workers import Ended
from ....factors.errors import ModelError
from .site import turn
from .tree import depth


@dataclasses.dataclass(frozen=True)
class Costs:
    """What takes how long, in seconds of the simulated clock.

    Args:
        step: one row and feature of a sweep.
        latency: a message, however short.
        number: each number of a message.
        slow: by worker how many times as long its steps take; 1 for others.
        jitter: the standard deviation of the logarithm of what a turn takes, beside that of others.
        lost: the probability that a worker is lost in a turn, which another does again from the shard as it was.
        restart: how long that takes to begin.
        seed: of what is random here.

    Raises:
        ModelError: numbers out of range.
    """

    step: float = 1e-6
    latency: float = 1e-3
    number: float = 1e-8
    slow: Mapping[int, float] = dataclasses.field(default_factory=dict)
    jitter: float = 0.0
    lost: float = 0.0
    restart: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        times = [self.step, self.latency, self.number, self.jitter, self.restart, *self.slow.values()]
        if not all(0.0 <= each < np.inf for each in times):
            raise ModelError(f"Costs: give seconds and factors of at least 0; found {self}.")
        if not 0.0 <= self.lost < 1.0:
            raise ModelError(f"Costs(lost=): give a probability below 1; found {self.lost!r}.")

    def message(self, size: int) -> float:
        """Of so many numbers."""
        return self.latency + size * self.number

    def along_the_tree(self, size: int, workers: int) -> float:
        """Of all messages up to the root and down again, those of one depth at once."""
        return 2.0 * depth(workers) * self.message(size)


class Clocked:
    """What gives turns to workers as pools do, but that it has the time: `now`. Worker `number % workers` does turn
    `number`, whose steps say how long it took. Nothing is sent, and so nothing is written as bytes.
    """

    def __init__(self, workers: int, costs: Costs) -> None:
        self.workers, self.costs = workers, costs
        self.now = 0.0
        self._random = np.random.default_rng(costs.seed)
        self._events: list[tuple[float, int, Ended]] = []

    def take(self, number: int, given: tuple[Any, ...]) -> None:
        """Gives out the turn of these arguments under a number."""
        found = turn(*given)
        worker, costs = number % self.workers, self.costs
        seconds = costs.slow.get(worker, 1.0) * np.exp(costs.jitter * self._random.normal())
        seconds *= costs.step * found.steps
        ended = Ended(number, found)
        if self._random.random() < costs.lost:
            ended, seconds = Ended(number, lost="a worker of the simulation"), self._random.random() * seconds
            seconds += costs.restart
        heapq.heappush(self._events, (self.now + seconds, number, ended))

    def wait(self) -> Ended:
        """Waits for the next to end."""
        when, _, ended = heapq.heappop(self._events)
        self.now = max(self.now, when)
        return ended

    def close(self) -> None:
        """Forgets what is under way."""
        self._events.clear()
