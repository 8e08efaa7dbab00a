"""What beliefs say of games to come: chances of two teams in closed form, orders of several by seeded draws."""

from __future__ import annotations

import numpy as np
from scipy import stats

import cavity as cv  # pyright: ignore[reportMissingImports]

from .games import Name
from .layout import NOISE, Beliefs, Scales


def sums(
    sides: list[list[tuple[list[Name], float]]], home: np.ndarray, beliefs: Beliefs, scales: Scales, times: np.ndarray,
    unseen: str,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """Means and variances of sums of skills of each row, and the noise of their performances.

    `sides` (row) has teams with their signs, `home` (row) the multiple of the advantage of playing at home, `times`
    (row) when; NaN: as after their last games. Raises DataError for unknown players, where `unseen` is "error".
    """
    number = {player: n for n, player in enumerate(beliefs.players)}
    row, who, sign = [], [], []
    noise, more = np.zeros(len(sides)), np.zeros(len(sides))
    for n, teams in enumerate(sides):
        for members, share in teams:
            noise[n] += NOISE * len(members)
            for member in members:
                known = number.get(member)
                if known is None:
                    _check_unseen(member, unseen, beliefs)
                    more[n] += scales.spread**2
                    continue
                row.append(n)
                who.append(known)
                sign.append(share)
                if not np.isnan(times[n]):
                    more[n] += scales.drift**2 * max(times[n] - beliefs.time[known], 0.0)
    rows, players, signs = np.array(row, int), np.array(who, int), np.array(sign)
    mean = np.bincount(rows, signs * beliefs.mean[players], len(sides)) + home * beliefs.mean[-1]
    if beliefs.covariance is None:
        variance = np.bincount(rows, beliefs.variance[players], len(sides)) + home**2 * beliefs.variance[-1]
    else:
        design = np.zeros((len(sides), len(beliefs.mean)))
        np.add.at(design, (rows, players), signs)
        design[:, -1] = home
        variance = np.einsum("ni,ij,nj->n", design, beliefs.covariance, design, optimize=True)
    return mean, variance + more, noise


def _check_unseen(member: Name, unseen: str, beliefs: Beliefs) -> None:
    if unseen == "error":
        some = ", ".join(repr(player) for player in beliefs.players[:5])
        raise cv.DataError(
            f"{member!r} has played no game that was fitted; the {len(beliefs.players)} players are {some}, and so "
            "on. With Skills(unseen='prior') such a player has the skill of someone new."
        )


def chances(mean: np.ndarray, sd: np.ndarray, draw: np.ndarray) -> np.ndarray:
    """P(win), P(draw), P(loss) (row, 3) of a difference N(mean, sd^2) of performances, a draw if within `draw`."""
    win, loss = stats.norm.cdf((mean - draw) / sd), stats.norm.cdf((-mean - draw) / sd)
    return np.stack([win, np.maximum(1.0 - win - loss, 0.0), loss], axis=1)


def orders(
    teams: list[list[Name]], beliefs: Beliefs, scales: Scales, time: float, unseen: str, draws: int, seed: int
) -> np.ndarray:
    """How often (team, place) each team took each place among seeded draws of all performances."""
    covariance = np.zeros((len(teams), len(teams)))
    times, none = np.full(1, time), np.zeros(1)

    def variance(*sides: tuple[list[Name], float]) -> tuple[float, float, float]:
        return tuple(float(value[0]) for value in sums([list(sides)], none, beliefs, scales, times, unseen))  # type: ignore[return-value]

    single = [variance((team, 1.0)) for team in teams]
    for i in range(len(teams)):
        covariance[i, i] = single[i][1] + single[i][2]
        for j in range(i if beliefs.covariance is not None else 0):
            both = variance((teams[i], 1.0), (teams[j], 1.0))[1]
            covariance[i, j] = covariance[j, i] = (both - single[i][1] - single[j][1]) / 2.0
    mean = np.array([each[0] for each in single])
    played = np.random.default_rng(seed).multivariate_normal(mean, covariance, size=draws, method="eigh")
    place = np.argsort(np.argsort(-played, axis=1), axis=1)
    return np.stack([(place == k).mean(axis=0) for k in range(len(teams))], axis=1)
