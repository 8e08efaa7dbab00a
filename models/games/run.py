"""From games to beliefs: the program is run, and what the evidence may decide is found by its value alone."""

from __future__ import annotations

import dataclasses
import itertools
import warnings
from typing import Any

import numpy as np
from scipy import optimize, stats

import cavity as cv  # pyright: ignore[reportMissingImports]

from .games import Games
from .layout import (
    LARGEST,
    MOST,
    Beliefs,
    Layout,
    Scales,
    arrays_apart,
    arrays_together,
    layout,
    power_of_two,
)
from .model import MARGIN, program

NEVER = 1e-8  # half the width of a draw where there are none
CLOSE = 0.02  # how near to the best, in the logarithm, a scale is found
TRIES = 80
ARGUMENTS = {"draw": "draw_margin"}  # of `Skills`, where a scale is called otherwise
FLAT = 0.01  # by how much of the log evidence a scale is told from one that is e times as large


@dataclasses.dataclass(frozen=True)
class Fitted:
    """What a fit leaves: means and variances by state, beliefs of all players, and how the run ended."""

    laid: Layout
    scales: Scales
    mean: np.ndarray
    variance: np.ndarray
    beliefs: Beliefs
    log_evidence: float
    posterior: Any


@dataclasses.dataclass(frozen=True)
class Task:
    """Games, what is believed before them, and how to run: `together` is None where their size decides."""

    games: Games
    before: Beliefs | None
    moving: bool
    together: bool | None
    tolerance: float
    iterations: int


def fitted(task: Task, scales: Scales, free: tuple[str, ...]) -> Fitted:
    """Beliefs given the scales, of which those named in `free` are made as probable as they can be.

    Raises DataError where not all covariances can be kept, and that was asked for.
    """
    laid = layout(task.games, task.moving, task.before, everyone=task.together is not False)
    small = laid.fits(LARGEST)
    together = small or (task.before is None and laid.is_of_few and laid.fits(MOST))
    together = together if task.together is None else task.together
    if task.together and not laid.fits(MOST):
        raise cv.DataError(
            f"joint=True keeps the covariances of all {laid.size} skills at their times, for {len(task.games.teams)} "
            f"games; that is done for at most {MOST}. Use joint=None or False: skills then have a belief each."
        )
    if not together and task.together is None:
        laid = layout(task.games, task.moving, task.before, everyone=False)
    if free:
        scales = _learned(
            task, laid, together and small, scales, free
        )  # tens of runs, which large ones are too slow for
    posterior = _ran(task, laid, together, scales)
    if not posterior.converged:
        warnings.warn(posterior.diagnosis, cv.CavityWarning, stacklevel=4)
    found = _read(task, laid, together, scales, posterior)
    if not together and task.before is None:
        _tell_small(found)
    return found


def _tell_small(found: Fitted) -> None:
    """Warns where skills with a belief each are surer than any games can make them.

    Games between teams of one size tell of differences alone, so the mean of all skills keeps its prior variance,
    spread^2 / players, which the variance of each skill has as a part.
    """
    if any(rows.share.sum(1).any() for rows in found.laid.rows.values()):
        return
    players = len(found.beliefs.players)
    least, usual = found.scales.spread / players**0.5, float(np.median(found.beliefs.variance[:-1])) ** 0.5
    if usual < least:
        warnings.warn(
            f"sds of skills are too small: half of them are below {usual:.2g}, and no games between teams of one size "
            f"can bring any below {least:.2g}. Each skill has a belief of its own here, which does not see how good "
            f"all {players} players are together. Differences, and chances of games, are hardly touched. joint=None "
            f"keeps all covariances of few players, up to {MOST} skills at their times.",
            cv.CavityWarning,
            stacklevel=5,
        )


def _ran(task: Task, laid: Layout, together: bool, scales: Scales) -> Any:
    kinds = tuple(laid.rows)
    if together:
        size = max(16, power_of_two(laid.size))
        data = arrays_together(laid, scales, task.before, size)
        shape: tuple = (True, size, kinds)
    else:
        seats = max(rows.state.shape[1] for rows in laid.rows.values())
        data = arrays_apart(laid, scales, task.before, task.moving, seats)
        shape = (False, seats, kinds, task.moving, laid.home)
    return program(shape, task.tolerance, task.iterations)(data)


def _evidence(laid: Layout, scales: Scales, posterior: Any) -> float:
    """The log evidence of the games: of margins in points, not of what they were divided by."""
    rows = laid.rows.get(MARGIN)
    return float(posterior.log_evidence) - (0.0 if rows is None else float(np.log(scales.points * rows.scale).sum()))


def _learned(task: Task, laid: Layout, together: bool, scales: Scales, free: tuple[str, ...]) -> Scales:
    """The free scales at the largest evidence, searched in their logarithms from the ones given."""
    start = np.log([getattr(scales, name) for name in free])

    def at(place: Any) -> Scales:
        return dataclasses.replace(scales, **dict(zip(free, np.exp(np.atleast_1d(place)).tolist(), strict=True)))

    def evidence(place: Any) -> float:
        tried = at(place)
        return _evidence(laid, tried, _ran(task, laid, together, tried))

    def loss(place: Any) -> float:
        if np.abs(np.atleast_1d(place) - start).max() > 7.0:  # a thousandth of the start, or a thousand times
            return 1e12 + float(np.abs(place - start).max())
        value = -evidence(place)
        return value if np.isfinite(value) else 1e12

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cv.CavityWarning)  # that the last run converged is told; of those before, not
        if len(free) == 1:
            bracket = optimize.minimize_scalar(
                loss, bracket=(start[0] - 0.1, start[0] + 0.1), tol=1e-3, options={"maxiter": TRIES // 4}
            )
            best = np.atleast_1d(bracket.x)
        else:
            simplex = start + np.vstack([np.zeros(len(start)), 0.3 * np.eye(len(start))])
            options = {"initial_simplex": simplex, "xatol": CLOSE, "fatol": 1e-2, "maxfev": TRIES}
            best = optimize.minimize(loss, start, method="Nelder-Mead", options=options).x
        rises = np.flatnonzero(best > start)  # a scale that falls to nothing says that there is none of it
        flat = [free[n] for n in rises if evidence(best) - evidence(best + np.eye(len(best))[n]) < FLAT]
    found = at(best)
    for name in flat:
        warnings.warn(
            f"The games hardly tell {ARGUMENTS.get(name, name)}: it was learned as {getattr(found, name):.3g}, and "
            "nearly three times that is about as probable. So it is where results are few, or never against the order "
            f"of skills. Give {ARGUMENTS.get(name, name)}= if you know it.",
            cv.CavityWarning,
            stacklevel=5,
        )
    return found


def ties(games: Games) -> list[bool]:
    """Of all neighbours in the order of a game, whether they are equal."""
    return [one == other for ranks in games.ranks for one, other in itertools.pairwise(ranks)]


def first_scales(
    games: Games, spread: float | None, drift: float | None, draw: float | None, points: float | None
) -> Scales:
    """The scales that are given, and where a search for the others begins."""
    width = 1.0 if spread is None else spread
    sd = float(np.sqrt(1.0 + 2.0 * width**2))
    drawn = min(float(np.mean(ties(games))), 0.99)
    limit, step, worth = NEVER, 0.0, 1.0
    if draw is not None:
        limit = max(draw, NEVER)
    elif games.margins is None and drawn > 0.0:
        limit = float(stats.norm.ppf((1.0 + drawn) / 2.0)) * sd
    if drift is not None:
        step = drift
    elif np.ptp(games.times) > 0.0:
        step = width * 0.3 / float(np.sqrt(np.ptp(games.times)))
    if points is not None:
        worth = points
    elif games.margins is not None and games.margins.any():
        worth = float(np.sqrt(np.mean(games.margins**2))) / sd
    return Scales(width, step, limit, worth)


def _read(task: Task, laid: Layout, together: bool, scales: Scales, posterior: Any) -> Fitted:
    """The beliefs of a posterior, put into the rows of the players."""
    number = len(laid.states.player)
    home_mean, home_variance = (0.0, scales.spread**2) if task.before is None else (
        task.before.mean[-1], task.before.variance[-1])  # fmt: skip
    belief = posterior["skill"]
    covariance = None
    if together:
        mean, whole = np.asarray(belief.mean), np.asarray(belief.covariance)
        variance = np.diag(whole)
    else:
        own = slice(int(task.moving), int(task.moving) + number)
        mean, variance = np.asarray(belief.mean)[own], np.asarray(belief.variance)[own]
        whole = None
    if laid.home:
        told = (mean[number], variance[number]) if together else tuple(
            float(value) for value in (posterior["home"].mean, posterior["home"].variance))  # fmt: skip
        home_mean, home_variance = told
    count, last = len(laid.players), laid.states.last
    means, variances, times = np.zeros(count + 1), np.full(count + 1, scales.spread**2), np.full(count, -np.inf)
    if task.before is not None:
        old = len(task.before.players)
        means[:old], variances[:old], times[:old] = task.before.mean[:-1], task.before.variance[:-1], task.before.time
    whose = laid.states.player[last]
    means[whose], variances[whose], times[whose] = mean[last], variance[last], laid.states.time[last]
    means[-1], variances[-1] = home_mean, home_variance
    if whole is not None:  # every player has a state, in the order of their numbers
        covariance = np.zeros((count + 1, count + 1))
        covariance[:count, :count] = whole[np.ix_(last, last)]
        covariance[-1, -1] = home_variance
        if laid.home:
            covariance[:count, -1] = covariance[-1, :count] = whole[last, number]
    beliefs = Beliefs(laid.players, means, variances, times, covariance)
    evidence = _evidence(laid, scales, posterior)
    return Fitted(laid, scales, mean[:number], variance[:number], beliefs, evidence, posterior)
