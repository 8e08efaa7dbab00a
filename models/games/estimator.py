"""`Skills`, ratings of players from games."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import stats

import cavity as cv  # pyright: ignore[reportMissingImports]

from ...factors.calls import methods_checked
from .files import read, write
from .games import (
    Games,
    Name,
    at_home,
    check_once,
    from_frame,
    from_orders,
    from_pairs,
    is_frame,
    moments,
    sides_of,
    whole,
)
from .layout import Beliefs, Scales
from .predict import chances, orders, sums
from .run import NEVER, Fitted, Task, first_scales, fitted, ties


class Standing(NamedTuple):
    """A line of a table of players: mean and sd of the skill, an interval, and how many games were played."""

    place: int
    player: Name
    mean: float
    sd: float
    low: float
    high: float
    games: int


class Curve(NamedTuple):
    """The skill of one player at the times of their games: days since 1970 where these were dates, made dates again."""

    times: np.ndarray
    mean: np.ndarray
    sd: np.ndarray


@methods_checked("skills")
class Skills:
    """Ratings of players from who beat whom: alone or in teams, with draws, in any order of several, through time.

    skill_i(0) ~ N(0, spread^2), skill_i(t) - skill_i(s) ~ N(0, drift^2 (t - s)); in a game each player performs as
    skill + N(0, 1/2), a team as the sum of its members, and the better performance wins: two who differ by one in
    skill, one against one, win with probability .84 and .16. It is a draw where performances differ by less than
    `draw_margin` times the sd of their noise. Margins of victory are `points` times the difference.

    `spread`, `drift` (for a unit of time, a day where times are dates; 0 keeps skills as they are), `draw_margin` and
    `points` are numbers, or None to have the evidence choose, which takes some tens of runs. `draw_margin` is zero
    where there are no draws. `joint` keeps the covariances of all skills, by which sds are those of the exact posterior
    to a percent or so; None does so for up to 256 skills at their times, and for up to 1,024 of few players who meet
    often. Beyond, skills have a belief each: means are about as good, but sds of few players who all play each other
    often are too small, as what all of them share is not seen; sds of differences less so. `unseen` is "prior", by
    which a player without games is someone new, or "error". `tolerance` and `iterations` are those of `cv.infer`.

    Fitted attributes: `players_` (names), `mean_`, `sd_` (player, after the last games), `home_advantage_` (mean, sd),
    `spread_`, `drift_`, `draw_margin_`, `points_`, `log_evidence_`, `converged_`.
    Source: herbrich2006trueskill, dangauthier2007ttt.
    """

    def __init__(
        self,
        *,
        spread: float | None = 1.0,
        drift: float | None = 0.0,
        draw_margin: float | None = None,
        points: float | None = None,
        joint: bool | None = None,
        unseen: str = "prior",
        tolerance: float = 1e-4,
        iterations: int = 200,
    ) -> None:
        self.spread = _positive(spread, "spread")
        self.drift = _positive(drift, "drift", zero=True)
        self.draw_margin = _positive(draw_margin, "draw_margin", zero=True)
        self.points = _positive(points, "points")
        if joint not in (None, True, False):
            raise cv.ModelError(f"joint= is None, True or False; found {joint!r}.")
        if unseen not in ("prior", "error"):
            raise cv.ModelError(f"unseen= is 'prior', who is someone new, or 'error'; found {unseen!r}.")
        self.joint, self.unseen = joint, unseen
        self.tolerance, self.iterations = _positive(tolerance, "tolerance"), iterations
        if isinstance(iterations, bool) or not isinstance(iterations, int) or iterations < 1:
            raise cv.ModelError(f"iterations= is a number of sweeps, at least 1; found {iterations!r}.")

    def __repr__(self) -> str:
        """The settings, and after a fit the number of players."""
        given = ", ".join(f"{name}={getattr(self, name)!r}" for name in SETTINGS)
        return f"Skills({given})" + (f" of {len(self._beliefs.players)} players" if hasattr(self, "_beliefs") else "")

    # Learning ---------------------------------------------------------------------------------------------------------

    def fit(
        self,
        games: Any = None,
        *,
        winners: Any = None,
        losers: Any = None,
        times: Any = None,
        draws: Any = None,
        margins: Any = None,
        home: Any = None,
        ranks: Any = None,
    ) -> Self:
        """Learns from games, in one of three forms.

        `winners` and `losers` (game): a player each, or a list of those of a team; or `games`, a frame of pandas or
        polars with these columns (winner, loser, time, draw, margin, home; other names are given as winners="...",
        and several columns are a team: winners=["w1", "w2"]); or `games`, a list with a list of teams for each, the
        best first, where `ranks` may give places, equal in a tie. Players are text or whole numbers.

        `times` (game): numbers, dates, or text such as "2024-05-31"; games at one time see one skill. `draws` (game):
        whether it was one. `margins` (game): by how many points it was won, 0 for a draw. `home` (game): 1 where the
        winner (of a draw, the first named) was at home, -1 where the loser was, 0 where neither.

        Returns self. Raises DataError for games that are not of these forms, and where they cannot tell what is to be
        learned. Warns where the run did not converge, games hardly tell a scale, or sds are too small (`joint`).
        """
        arguments = _told(winners=winners, losers=losers, times=times, draws=draws, margins=margins, home=home)
        given = _games(games, arguments, ranks)
        scales = first_scales(given, self.spread, self.drift, self.draw_margin, self.points)
        free = [name for name in ("spread", "drift") if getattr(self, name) is None]
        if self.drift is None and np.ptp(given.times) == 0.0:
            raise cv.DataError("drift=None learns how skills move in time, but all games are at one. Give times.")
        _check_timed(given, scales.drift)
        _check_draws(given, self.draw_margin)
        if self.draw_margin is None and given.margins is None and scales.draw > NEVER:
            free.append("draw")
        if self.points is None and given.margins is not None:
            if not given.margins.any():
                raise cv.DataError("All margins are 0, so there are no points to measure. Give draws instead.")
            free.append("points")
        task = Task(given, None, scales.drift > 0.0, self.joint, self.tolerance, self.iterations)
        found = fitted(task, scales, tuple(free))
        self._history: dict[Name, np.ndarray] = {}
        self._played: dict[Name, int] = {}
        self._dates, self._with_margins = given.dates, given.margins is not None
        self._keep(found, given)
        return self

    def partial_fit(
        self,
        games: Any = None,
        *,
        winners: Any = None,
        losers: Any = None,
        times: Any = None,
        draws: Any = None,
        margins: Any = None,
        home: Any = None,
        ranks: Any = None,
    ) -> Self:
        """Learns from later games, given as to `fit`, beginning at what is believed; the first call is `fit`.

        Skills at earlier times stay as they were, and so do spread, drift, draw margin and points. Returns self. Raises
        DataError for a game before the last one of a player, for times of another kind, or margins now but not then.
        """
        arguments = _told(winners=winners, losers=losers, times=times, draws=draws, margins=margins, home=home)
        if not hasattr(self, "_beliefs"):
            return self.fit(games, ranks=ranks, **arguments)
        given = _games(games, arguments, ranks)
        if given.dates != self._dates and self.drift_ > 0.0:
            kinds = ("dates", "numbers") if self._dates else ("numbers", "dates")
            raise cv.DataError(f"The times of the games so far are {kinds[0]}, those of the new ones {kinds[1]}.")
        if (given.margins is not None) != self._with_margins:
            raise cv.DataError("Games with margins and games without cannot be learned in turns. Fit one of the two.")
        scales = self._scales
        _check_timed(given, scales.drift)
        if scales.draw <= NEVER and given.margins is None and any(ties(given)):
            raise cv.DataError(
                "The games so far had no draws, so none was thought possible; the new ones have. Give draw_margin=, or "
                "fit all games anew."
            )
        task = Task(given, self._beliefs, scales.drift > 0.0, self.joint, self.tolerance, self.iterations)
        self._keep(fitted(task, scales, ()), given)
        return self

    def _keep(self, found: Fitted, games: Games) -> None:
        self._scales, self._beliefs = found.scales, found.beliefs
        states = found.laid.states
        rows = np.stack([states.time, found.mean, found.variance], axis=1)
        starts = np.flatnonzero(np.append(True, states.player[1:] != states.player[:-1]))
        for start, end in zip(starts, [*starts[1:].tolist(), len(rows)], strict=True):
            player = found.laid.players[states.player[start]]
            # The first state of a player who was known is the last one of the curve, as it is seen now.
            earlier = self._history[player][:-1] if states.known[start] >= 0 else np.zeros((0, 3))
            self._history[player] = np.concatenate([earlier, rows[start:end]])
        for teams in games.teams:
            for player in (player for team in teams for player in team):
                self._played[player] = self._played.get(player, 0) + 1
        self.log_evidence_, self.converged_ = found.log_evidence, bool(found.posterior.converged)
        self._tell()

    def _tell(self) -> None:
        """The attributes that users read."""
        beliefs, scales = self._beliefs, self._scales
        self.players_ = list(beliefs.players)
        self.mean_, self.sd_ = beliefs.mean[:-1].copy(), np.sqrt(beliefs.variance[:-1])
        self.home_advantage_ = float(beliefs.mean[-1]), float(np.sqrt(beliefs.variance[-1]))
        self.spread_, self.drift_, self.points_ = scales.spread, scales.drift, scales.points
        self.draw_margin_ = 0.0 if scales.draw <= NEVER else scales.draw

    # Answers ----------------------------------------------------------------------------------------------------------

    def predict_proba(self, first: Any, second: Any, *, times: Any = None, home: Any = 0) -> np.ndarray:
        """Chances of games between two teams, in closed form: (game, 2) of win and loss of the first, or (game, 3).

        `first`, `second` (game): as winners and losers of `fit`; one name is one game. `times` (game): when; by
        default, and for any earlier time, right after the last games of each player. `home`: 1 where the first is at
        home, -1 the second, 0 neither. Where draws are possible the columns are P(win), P(draw), P(loss).
        The skills have their uncertainty, and players without games that of someone new. Raises DataError for unknown
        players where unseen="error", and before a fit.
        """
        mean, variance, noise = self._difference(first, second, times, home)
        found = chances(mean, np.sqrt(variance + noise), self.draw_margin_ * np.sqrt(noise))
        return found if self.draw_margin_ > 0.0 else found[:, [0, 2]]

    def predict_margin(self, first: Any, second: Any, *, times: Any = None, home: Any = 0) -> tuple[Any, Any]:
        """Mean and sd (game) of the points by which the first team wins, after a fit with margins.

        `first`, `second`, `times`, `home`: as in `predict_proba`. Raises DataError where the fit had no margins.
        """
        mean, variance, noise = self._difference(first, second, times, home)
        if not self._with_margins:
            raise cv.DataError("predict_margin needs a fit with margins= of the games; this one knew who won only.")
        return self.points_ * mean, self.points_ * np.sqrt(variance + noise)

    def _difference(self, first: Any, second: Any, times: Any, home: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        self._check_fitted()
        one, other = sides_of(first, "the first teams"), sides_of(second, "the second teams")
        if len(one) != len(other):
            raise cv.DataError(
                f"There are {len(one)} first teams and {len(other)} second ones; a game has one of each."
            )
        when = self._when(times, len(one))
        for n, game in enumerate(zip(one, other, strict=True)):
            check_once(list(game), f"Game {n}")
        sides = [[(a, 1.0), (b, -1.0)] for a, b in zip(one, other, strict=True)]
        where = at_home(home, len(one))
        return sums(sides, where, self._beliefs, self._scales, when, self.unseen)

    def predict_order(self, *teams: Any, time: Any = None, draws: int = 100_000, seed: int = 0) -> np.ndarray:
        """Chances (team, place) that each of the teams takes each place, by Monte Carlo.

        `teams`: a player or a list of players each, at least two; none twice. `time`: when. `draws` performances are
        drawn with the `seed`; the standard error of a chance p is sqrt(p (1 - p) / draws), .0016 at most for the
        default. Ties are not counted. Raises DataError for unknown players where unseen="error", and before a fit.
        """
        self._check_fitted()
        if len(teams) < 2:
            raise cv.DataError("An order is of at least two teams: predict_order('ann', 'bob', ['cy', 'dee']).")
        if isinstance(draws, bool) or not isinstance(draws, int) or not 1 <= draws <= 10_000_000:
            raise cv.ModelError(f"draws= is a whole number from 1 to 10 million; found {draws!r}.")
        if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
            raise cv.ModelError(f"seed= is a whole number that is not negative; found {seed!r}.")
        sides = sides_of(list(teams), "the teams")
        check_once(sides, "The order")
        when = float(self._when(None if time is None else [time], 1)[0])
        return orders(sides, self._beliefs, self._scales, when, self.unseen, draws, seed)

    def _when(self, times: Any, number: int) -> np.ndarray:
        if times is None:
            return np.full(number, np.nan)
        when, dates = moments([times] * number if np.ndim(times) == 0 else times, number)
        if dates != self._dates and self.drift_ > 0.0:
            raise cv.DataError(f"The games had {'dates' if self._dates else 'numbers'} for times; give such here.")
        return when

    def leaderboard(self, number: int | None = None, *, least: int = 1, interval: float = 0.9) -> list[Standing]:
        """The players by their mean skill after their last games, the best first.

        `number`: how many, all by default. `least`: only those with so many games. `interval`: the probability between
        `low` and `high`. Returns a list of `Standing`. Raises DataError before a fit.
        """
        self._check_fitted()
        for name, count in (("number", number), ("least", least)):
            counts = isinstance(count, (int, np.integer)) and not isinstance(count, bool) and count >= 1
            if count is not None and not counts:
                raise cv.ModelError(f"{name}= is a whole number, at least 1; found {count!r}.")
        if not isinstance(interval, (int, float)) or not 0.0 < interval < 1.0:
            raise cv.ModelError(f"interval= is a probability between 0 and 1; found {interval!r}.")
        width = float(stats.norm.ppf((1.0 + interval) / 2.0))
        found: list[Standing] = []
        for n in np.argsort(-self.mean_, kind="stable").tolist():
            player, mean, sd = self.players_[n], float(self.mean_[n]), float(self.sd_[n])
            if (played := self._played.get(player, 0)) >= (least or 1) and (number is None or len(found) < number):
                found.append(Standing(len(found) + 1, player, mean, sd, mean - width * sd, mean + width * sd, played))
        return found

    def to_frame(self) -> Any:
        """The whole `leaderboard` as a frame of pandas. Raises ModelError where pandas is absent."""
        try:
            import pandas  # pyright: ignore[reportMissingImports]
        except ImportError:
            raise cv.ModelError("to_frame needs pandas: pip install 'cavity[frames]'.") from None
        return pandas.DataFrame(self.leaderboard(), columns=np.array(Standing._fields))

    def curve(self, player: Name) -> Curve:
        """Mean and sd of a player's skill at the times of their games, one row for each time.

        After `fit` a row knows of all games, earlier and later; rows of `partial_fit` know of those before. Without
        drift it is one row. Raises DataError for a player without games, and before a fit.
        """
        self._check_fitted()
        if not isinstance(player, (str, int, np.integer)) or player not in self._history:
            raise cv.DataError(f"{player!r} has played no game that was fitted, so there is no curve.")
        times, mean, variance = self._history[player].T
        when = (times * 86_400_000.0).round().astype("datetime64[ms]") if self._dates else times.copy()
        return Curve(when, mean.copy(), np.sqrt(variance))

    # Files ------------------------------------------------------------------------------------------------------------

    def save(self, path: Any) -> None:
        """Writes all that was learned to a file without pickle, for `Skills.load`. Raises FileError where it cannot."""
        self._check_fitted()
        settings = {name: getattr(self, name) for name in SETTINGS}
        told = {"log_evidence": self.log_evidence_, "converged": self.converged_}
        told |= {"dates": self._dates, "with_margins": self._with_margins, "scales": dataclasses.asdict(self._scales)}
        write(path, settings, told, self._beliefs, self._history, self._played)

    @classmethod
    def load(cls, path: Any) -> Skills:
        """What `save` wrote. Raises DataError for a file that is none of it, or damaged, or cannot be read."""
        settings, told, beliefs, history, played = read(path)
        made = cls(**settings)
        made._scales, made._beliefs, made._history, made._played = Scales(**told["scales"]), beliefs, history, played
        made._dates, made._with_margins = told["dates"], told["with_margins"]
        made.log_evidence_, made.converged_ = told["log_evidence"], told["converged"]
        made._tell()
        return made

    def _check_fitted(self) -> None:
        if not hasattr(self, "_beliefs"):
            raise cv.DataError("There are no games yet, so there is nothing to tell of players. Call fit first.")

    _beliefs: Beliefs
    _scales: Scales


SETTINGS = ("spread", "drift", "draw_margin", "points", "joint", "unseen", "tolerance", "iterations")


def _told(**arguments: Any) -> dict[str, Any]:
    """What a call says of its games, by name."""
    return arguments


def _games(games: Any, arguments: dict[str, Any], ranks: Any) -> Games:
    """The games of a call of `fit`, in whichever form they are."""
    if is_frame(games):
        arguments = {"draws": None, "margins": None, "home": None, "times": None} | from_frame(games, arguments)
    elif games is not None:
        if any(arguments[name] is not None for name in ("winners", "losers", "draws")):
            raise cv.DataError("Give games, or winners and losers; a tie of a list of games is told by its ranks=.")
        teams, places = from_orders(games, ranks)
        return whole(teams, places, arguments["times"], arguments["home"], arguments["margins"], ranks is not None)
    if ranks is not None:
        raise cv.DataError("ranks= goes with a list of games; of winners and losers draws= says which were ties.")
    if arguments["winners"] is None or arguments["losers"] is None:
        raise cv.DataError(
            "There are no games. Give fit(winners=[...], losers=[...]), a frame with columns winner and loser, or a "
            "list of games, each a list of teams with the best first."
        )
    teams, places = from_pairs(arguments["winners"], arguments["losers"], arguments["draws"])
    told = arguments["draws"] is not None
    return whole(teams, places, arguments["times"], arguments["home"], arguments["margins"], told)


def _check_timed(games: Games, drift: float) -> None:
    """Raises DataError for games without times, where skills move in it."""
    if drift > 0.0 and not games.timed:
        raise cv.DataError(f"drift={drift:.3g} has skills move in time, but the games have no times. Give times=.")


def _check_draws(games: Games, draw_margin: float | None) -> None:
    """Raises DataError for draws where there can be none, and where nothing else says how close a draw is."""
    if games.margins is not None:
        return
    tied = ties(games)
    if draw_margin == 0.0 and any(tied):
        raise cv.DataError("draw_margin=0 has no game end in a draw, but some did. Leave it out to have it learned.")
    if draw_margin is None and all(tied):
        raise cv.DataError(
            "All games are draws, which any larger draw_margin makes more probable still, so it cannot be learned. "
            "Give draw_margin=: how close performances are in a draw, in sds of their noise."
        )


def _positive(value: Any, name: str, zero: bool = False) -> Any:
    """A setting that is None or a positive number. Raises ModelError."""
    if value is None and name != "tolerance":
        return None
    if isinstance(value, (int, float, np.floating, np.integer)) and not isinstance(value, bool):
        found = float(value)
        if np.isfinite(found) and (found > 0.0 or (zero and found == 0.0)):
            return found
    least = "not below 0" if zero else "above 0"
    or_none = "" if name == "tolerance" else ", or None to have it learned"
    raise cv.ModelError(f"{name}= is a number {least}{or_none}; found {value!r}.")
