"""Games as the arrays of a model: states, which are players at times, and the rows that see sums of them."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

import cavity as cv  # pyright: ignore[reportMissingImports]

from .games import Games, Name
from .model import MARGIN, ORDER, OUTCOMES, RESULT

NOISE = 0.5  # the variance of what one player adds by chance in a game, so that two who play have a variance of one
LARGEST = 256  # numbers of which all covariances are kept without a question
MOST = 1024  # and where it is asked for, or few players need it
ENTRIES = 4_000_000  # of the rows of a design, in numbers


@dataclasses.dataclass(frozen=True)
class Scales:
    """What the evidence may decide: sds of first skills and of a step of time one, half the width of a draw, points."""

    spread: float
    drift: float
    draw: float
    points: float


@dataclasses.dataclass(frozen=True)
class Beliefs:
    """What is believed of players after their last games, and of the advantage of playing at home, which is last."""

    players: list[Name]
    mean: np.ndarray  # (player + 1)
    variance: np.ndarray  # (player + 1)
    time: np.ndarray  # (player)
    covariance: np.ndarray | None = None  # (player + 1, player + 1) where all skills are one belief


@dataclasses.dataclass(frozen=True)
class States:
    """Players at times: whose a state is, when, which was before it (-1: none), and whose belief is known (else -1)."""

    player: np.ndarray
    time: np.ndarray
    before: np.ndarray
    known: np.ndarray

    @property
    def last(self) -> np.ndarray:
        """The last state of each player that has one."""
        return np.flatnonzero(np.append(self.player[1:] != self.player[:-1], True))


@dataclasses.dataclass(frozen=True)
class Rows:
    """Sums that games see: states (row, seat), -1 where a seat is empty; their shares; and what is said of each row."""

    state: np.ndarray
    share: np.ndarray
    scale: np.ndarray  # (row): the sd of the noise that shares and limits are divided by, or stand beside
    value: np.ndarray  # (row): the outcome, the margin, or whether it was a tie
    home: np.ndarray  # (row)
    teams: np.ndarray  # (row, 2): the teams whose luck is seen


@dataclasses.dataclass(frozen=True)
class Layout:
    """All of it: the players by number, their states, the rows of each kind, and variances of the luck of teams."""

    players: list[Name]
    states: States
    rows: dict[str, Rows]
    luck: np.ndarray
    home: bool

    @property
    def size(self) -> int:
        """How many numbers are unknown."""
        return len(self.states.player) + self.home + len(self.luck)

    @property
    def is_of_few(self) -> bool:
        """Whether players meet so often that most of the variance of a skill may be that of the mean of all."""
        seats = sum(int((rows.state >= 0).sum()) for rows in self.rows.values())
        return seats > len(self.players) ** 2 / 2

    def fits(self, most: int) -> bool:
        """Whether all covariances can be kept of at most so many numbers."""
        seen = sum(len(rows.scale) for rows in self.rows.values())
        return self.size <= most and seen * self.size <= ENTRIES


def layout(games: Games, moving: bool, before: Beliefs | None, everyone: bool) -> Layout:
    """The arrays of games, after what is believed already; `everyone` has a state, or only those who play.

    Raises DataError for a game before the last one of a player.
    """
    number = {} if before is None else {player: n for n, player in enumerate(before.players)}
    carried = len(number)
    who, when, rows, luck = _seats(games, number)
    roots = np.arange(carried) if everyone else np.unique(who[who < carried])
    root_times = before.time[roots] if before is not None else np.zeros(0)
    if before is not None and moving:
        _check_order(games, who, when, before)
    players = np.concatenate([roots, who]).astype(int)
    times = np.concatenate([root_times, when])
    keys = times if moving else np.zeros(len(times))
    order = np.lexsort((keys, players))
    new = np.append(True, (np.diff(players[order]) != 0) | (np.diff(keys[order]) != 0))
    state = np.empty(len(order), int)
    state[order] = np.cumsum(new) - 1
    time = np.full(new.sum(), -np.inf)
    np.maximum.at(time, state, times)
    player = players[order][new]
    earlier = np.append(False, player[1:] == player[:-1])
    known = np.full(len(player), -1)
    known[state[: len(roots)]] = roots
    states = States(player, time, np.where(earlier, np.arange(len(player)) - 1, -1), known)
    seat_state = np.append(state[len(roots) :], -1)  # an empty seat is number -1, the last
    placed = {kind: dataclasses.replace(each, state=seat_state[each.state]) for kind, each in rows.items()}
    return Layout(list(number), states, placed, luck, games.home is not None)


def _check_order(games: Games, who: np.ndarray, when: np.ndarray, before: Beliefs) -> None:
    old = who < len(before.players)
    early = np.flatnonzero(when[old] < before.time[who[old]])
    if len(early):
        player = before.players[who[old][early[0]]]
        raise cv.DataError(
            f"{player!r} has a game at {when[old][early[0]]:.6g}, before the last one that was learned, at "
            f"{before.time[who[old][early[0]]]:.6g}. Beliefs are carried forwards only: fit all games anew."
        )


def _seats(games: Games, number: dict[Name, int]) -> tuple[np.ndarray, np.ndarray, dict[str, Rows], np.ndarray]:
    """Players and times of seats, the rows of each kind with numbers of seats, and the variances of luck."""
    who: list[int] = []
    when: list[float] = []
    found: dict[str, _Draft] = {}
    luck: list[float] = []
    home = np.zeros(len(games.teams)) if games.home is None else games.home
    for n, (teams, ranks) in enumerate(zip(games.teams, games.ranks, strict=True)):
        seats = []
        for team in teams:
            seats.append(list(range(len(who), len(who) + len(team))))
            who.extend(number.setdefault(player, len(number)) for player in team)
            when.extend([float(games.times[n])] * len(team))
        if len(teams) == 2:
            kind = RESULT if games.margins is None else MARGIN
            outcome = OUTCOMES["won"] if ranks[0] < ranks[1] else OUTCOMES["drawn"]
            value = outcome if games.margins is None else games.margins[n]
            found.setdefault(kind, _Draft()).add(seats[0], seats[1], value, home[n], (0, 0))
            continue
        first = len(luck)
        luck.extend(NOISE * len(team) for team in teams)
        for k in range(len(teams) - 1):
            tie = ranks[k] == ranks[k + 1]
            found.setdefault(ORDER, _Draft()).add(seats[k], seats[k + 1], tie, 0.0, (first + k, first + k + 1))
    rows = {kind: draft.rows() for kind, draft in found.items()}
    return np.array(who), np.array(when), dict(sorted(rows.items())), np.array(luck)


class _Draft:
    """Rows while they are collected."""

    def __init__(self) -> None:
        self.sides: list[tuple[list[int], list[int]]] = []
        self.values: list[float] = []
        self.homes: list[float] = []
        self.teams: list[tuple[int, int]] = []

    def add(self, first: list[int], second: list[int], value: float, home: float, teams: tuple[int, int]) -> None:
        """One row: the seats of both sides, what was seen, who was at home, and whose luck it is."""
        self.sides.append((first, second))
        self.values.append(value)
        self.homes.append(home)
        self.teams.append(teams)

    def rows(self) -> Rows:
        """The rows in arrays of a power of two of seats."""
        seats = np.array([(len(first), len(second)) for first, second in self.sides])
        width = power_of_two(int(seats.sum(1).max()))
        state = np.full((len(seats), width), -1)
        share = np.zeros((len(seats), width))
        for n, (first, second) in enumerate(self.sides):
            state[n, : len(first) + len(second)] = first + second
            share[n, : len(first)] = 1.0
            share[n, len(first) : len(first) + len(second)] = -1.0
        scale = np.sqrt(NOISE * seats.sum(1))
        return Rows(state, share, scale, np.array(self.values, float), np.array(self.homes), np.array(self.teams))


def power_of_two(number: int) -> int:
    """The least power of two that is no smaller, at least 2."""
    return max(2, 1 << (number - 1).bit_length())


# The arrays of the two models -----------------------------------------------------------------------------------------


def arrays_together(laid: Layout, scales: Scales, before: Beliefs | None, size: int) -> dict[str, Any]:
    """The data of `model.together` with so many numbers; those beyond what is unknown are of no game."""
    states = len(laid.states.player)
    mean, covariance = np.zeros(size), np.eye(size)
    _prior(mean, covariance, laid, scales, before)
    first = states + laid.home
    covariance[range(first, first + len(laid.luck)), range(first, first + len(laid.luck))] = laid.luck
    found: dict[str, Any] = {"prior_mean": mean, "prior_covariance": covariance}
    for kind, rows in laid.rows.items():
        design = np.zeros((len(rows.scale), size))
        row, seat = np.nonzero(rows.state >= 0)
        np.add.at(design, (row, rows.state[row, seat]), rows.share[row, seat])
        if laid.home:
            design[:, states] = rows.home
        if kind == ORDER:
            each = np.arange(len(design))
            design[each, first + rows.teams[:, 0]] = 1.0
            design[each, first + rows.teams[:, 1]] = -1.0
        else:
            design /= rows.scale[:, None]
        found[{RESULT: "x", ORDER: "y", MARGIN: "z"}[kind]] = design
    return found | _said(laid, scales)


def _prior(mean: np.ndarray, covariance: np.ndarray, laid: Layout, scales: Scales, before: Beliefs | None) -> None:
    """Fills in what is believed of states, and of the advantage of home, before the games."""
    states = laid.states
    home = len(states.player)
    if laid.home:
        covariance[home, home] = scales.spread**2
    if before is not None:
        roots = np.flatnonzero(states.known >= 0)
        there, source = (np.append(roots, home), np.append(states.known[roots], -1)) if laid.home else (
            roots, states.known[roots])  # fmt: skip
        mean[there] = before.mean[source]
        covariance[there, there] = before.variance[source]
        if before.covariance is not None:
            covariance[np.ix_(there, there)] = before.covariance[np.ix_(source, source)]
    for state in np.flatnonzero((states.known < 0) & (states.before < 0)):
        covariance[state, state] = scales.spread**2
    if states.before.max(initial=-1) < 0:
        return
    unknown = np.flatnonzero(states.before >= 0)
    for state, above in zip(unknown, states.before[unknown], strict=True):
        mean[state] = mean[above]
        variance = covariance[above, above] + scales.drift**2 * (states.time[state] - states.time[above])
        covariance[state], covariance[:, state] = covariance[above], covariance[above]
        covariance[state, state] = variance


def arrays_apart(laid: Layout, scales: Scales, before: Beliefs | None, moving: bool, seats: int) -> dict[str, Any]:
    """The data of `model.apart`. Sizes are powers of two, so that other games seldom compile anew."""
    states, moved = laid.states, int(moving)
    number = len(states.player)
    size = power_of_two(number + moved + seats)
    shift, step = np.zeros(size), np.ones(size)
    own = slice(moved, moved + number)
    step[own] = scales.spread**2
    if before is not None:
        known = np.flatnonzero(states.known >= 0)
        shift[known + moved], step[known + moved] = (
            values[states.known[known]] for values in (before.mean, before.variance)
        )
    found: dict[str, Any] = {"shift": shift, "step": step}
    if moving:
        parent = np.zeros(size, int)
        parent[own] = states.before + 1
        later = np.flatnonzero(states.before >= 0)
        step[later + 1] = scales.drift**2 * (states.time[later] - states.time[states.before[later]])
        found["parent"] = parent
    if laid.home:
        known_home = (0.0, scales.spread**2) if before is None else (before.mean[-1], before.variance[-1])
        found |= {"home_mean": known_home[0], "home_variance": known_home[1]}
    for kind, rows in laid.rows.items():
        scale = np.ones_like(rows.scale) if kind == ORDER else rows.scale
        for k in range(seats):
            there = rows.state[:, k] >= 0 if k < rows.state.shape[1] else np.zeros(len(scale), bool)
            column = min(k, rows.state.shape[1] - 1)
            # An empty seat is of a state that no other seat of the row has, and with no share in it.
            found[f"{kind}_who_{k}"] = np.where(there, rows.state[:, column] + moved, size - 1 - k)
            found[f"{kind}_share_{k}"] = np.where(there, rows.share[:, column], 0.0) / scale
        if laid.home and kind != ORDER:
            found[f"{kind}_home"] = rows.home / scale
        if kind == ORDER:
            more = power_of_two(len(laid.luck)) - len(laid.luck)
            found |= {"luck_variance": np.append(laid.luck, np.ones(more))}
            found |= {"up": rows.teams[:, 0], "down": rows.teams[:, 1]}
    return found | _said(laid, scales)


def _said(laid: Layout, scales: Scales) -> dict[str, Any]:
    """What was seen, and the limits that it is compared with."""
    found: dict[str, Any] = {}
    for kind, rows in laid.rows.items():
        if kind == RESULT:
            found |= {RESULT: rows.value.astype(int), "draw": scales.draw}
        elif kind == MARGIN:
            found[MARGIN] = rows.value / (scales.points * rows.scale)
        else:
            tie, limit = rows.value > 0, scales.draw * rows.scale
            found |= {ORDER: np.ones(len(tie), bool), "low": np.where(tie, -limit, limit)}
            found["high"] = np.where(tie, limit, np.inf)
    return found
