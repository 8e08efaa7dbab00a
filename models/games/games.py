"""Games as users give them, lists or columns of a frame, and as arrays: who sat in which team, and how it ended."""

from __future__ import annotations

import dataclasses
import datetime
import re
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

import cavity as cv  # pyright: ignore[reportMissingImports]

Name: TypeAlias = str | int
COLUMNS = {  # what a frame is looked through for: the argument, its column, and whether there must be one
    "winners": ("winner", True),
    "losers": ("loser", True),
    "times": ("time", False),
    "draws": ("draw", False),
    "margins": ("margin", False),
    "home": ("home", False),
}
DAY = 86400.0
WRITTEN = re.compile(r"\d{4}(-\d\d(-\d\d([T ].*)?)?)?$")  # a year, month, day or moment


@dataclasses.dataclass(frozen=True)
class Games:
    """Games, each a list of teams with the best first, and their places (`ranks`), equal in a tie."""

    teams: list[list[list[Name]]]
    ranks: list[list[float]]
    times: np.ndarray  # (game): days since 1970 where they were dates
    timed: bool  # whether times were given
    dates: bool
    home: np.ndarray | None  # (game): 1 where the first team was at home, -1 where the second was
    margins: np.ndarray | None  # (game): by how much the first team won


def is_frame(games: Any) -> bool:
    """Whether these are columns with names, of pandas or polars, rather than a list."""
    return hasattr(games, "columns") and hasattr(games, "__getitem__")


def from_frame(frame: Any, asked: dict[str, Any]) -> dict[str, Any]:
    """The arguments of `Skills.fit` out of a frame: each names a column, or several of the members of a team.

    Raises DataError where a column is not there.
    """
    there = [str(name) for name in frame.columns]
    found: dict[str, Any] = {}
    for argument, (usual, needed) in COLUMNS.items():
        named = asked.get(argument)
        if named is None:
            if usual not in there and not needed:
                continue
            named = usual
        names = [named] if isinstance(named, str) else named
        if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
            raise cv.DataError(
                f"Beside a frame {argument}= names a column, or a list of columns; found {_shown(named)}. The frame "
                f"has {', '.join(there)}."
            )
        if lacking := [name for name in names if name not in there]:
            raise cv.DataError(
                f"The games have no column {lacking[0]!r}; their columns are {', '.join(there) or 'none'}. Say which "
                f"one it is: {argument}='...'."
            )
        columns = [np.asarray(frame[name]) for name in names]
        if argument in ("winners", "losers"):
            columns = [_whole_names(column) for column in columns]
        if isinstance(named, str):
            found[argument] = columns[0]
        else:
            found[argument] = [[who for who in team if not _absent(who)] for team in zip(*columns, strict=True)]
    return found


def _whole_names(column: np.ndarray) -> np.ndarray:
    """Numbers of players, which a column has as floats where one is missing."""
    if column.dtype.kind != "f" or not (np.isnan(column) | (column == np.rint(column))).all() or np.isinf(column).any():
        return column
    return np.array([None if np.isnan(number) else int(number) for number in column.tolist()], dtype=object)


def from_pairs(winners: Any, losers: Any, draws: Any) -> tuple[list[list[list[Name]]], list[list[float]]]:
    """Teams and ranks of games between two. Raises DataError for names that are none, and lengths that differ."""
    first, second = _sides(winners, "winners"), _sides(losers, "losers")
    if len(first) != len(second):
        raise cv.DataError(
            f"winners has {len(first)} games and losers {len(second)}: there is one of each for every game."
        )
    drawn = np.zeros(len(first), bool) if draws is None else booleans(draws, "draws", len(first))
    teams = [[_team(a, n), _team(b, n)] for n, (a, b) in enumerate(zip(first, second, strict=True))]
    ranks = [[1.0, 1.0] if tied else [1.0, 2.0] for tied in drawn.tolist()]
    return teams, ranks


def from_orders(games: Any, ranks: Any) -> tuple[list[list[list[Name]]], list[list[float]]]:
    """Teams, the best first, and ranks of games between any number of teams. Raises DataError."""
    if isinstance(games, (str, bytes)) or not isinstance(games, (Sequence, np.ndarray)):
        raise cv.DataError(
            f"Games are a frame, or a list of games, each a list of teams with the best first, such as "
            f"[['ann', 'bob'], [['cy', 'dee'], 'ann']]; found {_shown(games)}."
        )
    if ranks is not None and not hasattr(ranks, "__len__"):
        raise cv.DataError(f"ranks= is a list of the places of teams, for each game; found {_shown(ranks)}.")
    if ranks is not None and len(ranks) != len(games):
        raise cv.DataError(f"There are {len(games)} games and ranks for {len(ranks)} of them.")
    teams, places = [], []
    for n, game in enumerate(games):
        if isinstance(game, (str, bytes)) or not isinstance(game, (Sequence, np.ndarray)) or len(game) < 2:
            raise cv.DataError(f"Game {n} is {_shown(game)}; a game is a list of at least two teams, the best first.")
        sides = [_team(side, n) for side in game]
        own = [float(place) for place in range(len(sides))] if ranks is None else _places(ranks[n], len(sides), n)
        order = np.argsort(own, kind="stable")
        teams.append([sides[i] for i in order])
        places.append([own[i] for i in order])
    return teams, places


def whole(
    teams: list[list[list[Name]]], ranks: list[list[float]], times: Any, home: Any, margins: Any, draws_given: bool
) -> Games:
    """The games with all that is known of each. Raises DataError for none, a player twice in one, and odd numbers."""
    if not teams:
        raise cv.DataError("There are no games: the list, or the file, is empty. One game at least is needed.")
    for n, game in enumerate(teams):
        check_once(game, f"Game {n}")
    several = any(len(game) > 2 for game in teams)
    when, dates = moments(times, len(teams))
    where = None if home is None else at_home(home, len(teams))
    won_by = None if margins is None else amounts(margins, len(teams))
    if several and (where is not None or won_by is not None):
        raise cv.DataError(
            f"{'home' if where is not None else 'margins'} is told of games between two teams; some of these games "
            "have more. Leave it out, or fit games of two teams alone."
        )
    if won_by is not None:
        if draws_given and any((place[0] == place[1]) != (amount == 0.0) for place, amount in zip(ranks, won_by)):  # noqa: B905
            raise cv.DataError("draws and margins disagree: a draw is a game with a margin of 0. Give one of the two.")
        ranks = [[1.0, 1.0] if amount == 0.0 else [1.0, 2.0] for amount in won_by.tolist()]
    return Games(teams, ranks, when, times is not None, dates, where, won_by)


def check_once(teams: list[list[Name]], which: str) -> None:
    """Raises DataError for a player who is twice in one game."""
    seats = [player for team in teams for player in team]
    if len(set(seats)) < len(seats):
        twice = next(player for player in seats if seats.count(player) > 1)
        raise cv.DataError(
            f"{which} has {twice!r} twice. A player who plays against, or beside, the same player says nothing "
            "of a skill; leave the game out, or give the two different names."
        )


def sides_of(values: Any, what: str) -> list[list[Name]]:
    """Teams for a prediction: one name, one team, or a list of either. Raises DataError."""
    if isinstance(values, (str, int, np.integer)):
        values = [values]
    return [_team(side, n) for n, side in enumerate(_sides(values, what))]


def moments(times: Any, number: int) -> tuple[np.ndarray, bool]:
    """When games were: numbers as they are, dates as days since 1970; and whether they were dates. Raises DataError."""
    if times is None:
        return np.zeros(number), False
    array = np.asarray(times)
    if array.ndim != 1 or len(array) != number:
        raise cv.DataError(f"times has the shape {array.shape}; there are {number} games, and one time for each.")
    if array.dtype.kind in "iuf":
        found = array.astype(float)
        if not np.isfinite(found).all():
            raise cv.DataError(f"The time of game {int(np.argmin(np.isfinite(found)))} is not known. Leave it out.")
        if _written_dates(found):
            raise cv.DataError(
                f"times are numbers such as {int(found[0])}, which look like dates. As numbers a new month would be "
                "70 days after the last. Make dates of them, such as pandas.to_datetime(times, format='%Y%m%d')."
            )
        return found, False
    return _days(array), True


def _days(array: np.ndarray) -> np.ndarray:
    wrong = "times are numbers, dates, or text such as '2024-05-31'"
    if array.dtype.kind not in "MUOT":
        raise cv.DataError(f"{wrong}; found {_shown(array[0])}.")
    entries: Any = array
    if array.dtype.kind == "O":
        for n, entry in enumerate(array):
            if not isinstance(entry, (str, datetime.date, np.datetime64)) or _absent(entry):
                raise cv.DataError(f"{wrong}; that of game {n} is {_shown(entry)}.")
        entries = [_plain(entry) for entry in array]
    elif array.dtype.kind == "T":
        entries = array.astype(str)
    for n, entry in enumerate([] if array.dtype.kind == "M" else entries):
        if isinstance(entry, str) and not WRITTEN.match(entry):  # NumPy takes "7" and "20240531" for years, and "now"
            raise cv.DataError(f"{wrong}; that of game {n} is {_shown(str(entry))}. Make dates or numbers of them.")
    try:
        found = np.asarray(entries, "datetime64[ms]")
    except (ValueError, TypeError) as problem:
        raise cv.DataError(f"{wrong} ({problem}). Make dates of them, such as pandas.to_datetime(times).") from None
    if np.isnat(found).any():
        raise cv.DataError(f"The time of game {int(np.argmax(np.isnat(found)))} is not known. Leave the game out.")
    return found.astype(np.int64) / (1000.0 * DAY)


def _plain(entry: Any) -> Any:
    """Moments with a zone in universal time, which NumPy wants to have."""
    if isinstance(entry, datetime.datetime) and entry.tzinfo is not None:
        return entry.astimezone(datetime.UTC).replace(tzinfo=None)
    return entry


def _written_dates(times: np.ndarray) -> bool:
    """Whether all numbers could be dates written as 20240531."""
    if np.any(times != np.floor(times)) or times.min() < 1800_01_01 or times.max() > 2199_12_31:
        return False
    month, day = times // 100 % 100, times % 100
    return bool(np.all((month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)))


def booleans(values: Any, what: str, number: int) -> np.ndarray:
    """One true or false for each game, also as 0 and 1. Raises DataError."""
    array = np.asarray(values)
    if array.shape != (number,):
        raise cv.DataError(f"{what} has the shape {array.shape}; there are {number} games, and one for each.")
    wrong = [value for value in array.tolist() if isinstance(value, str) or _absent(value) or value not in (0, 1)]
    if wrong:
        raise cv.DataError(f"{what} says of each game whether it was one, true or false; found {_shown(wrong[0])}.")
    return array.astype(bool)


def at_home(values: Any, number: int) -> np.ndarray:
    """1 where the first of two teams is at home, -1 the second, 0 neither; booleans say whether it is the first."""
    array = np.broadcast_to(np.asarray(values), (number,)) if np.ndim(values) == 0 else np.asarray(values)
    if array.shape != (number,):
        raise cv.DataError(f"home has the shape {array.shape}; there are {number} games, and one for each.")
    if array.dtype.kind == "b":
        return np.where(array, 1.0, -1.0)
    if array.dtype.kind not in "iuf" or not np.isin(array, (-1, 0, 1)).all():
        raise cv.DataError(
            f"home is 1 where the winner (the first team) was at home, -1 where the loser was, 0 where neither; or "
            f"true and false. Found {_shown(array[0])}."
        )
    return array.astype(float)


def amounts(values: Any, number: int) -> np.ndarray:
    """By how much games were won: finite and not below zero. Raises DataError."""
    array = np.asarray(values)
    if array.shape != (number,):
        raise cv.DataError(f"margins has the shape {array.shape}; there are {number} games, and one for each.")
    if array.dtype.kind not in "iuf" or not np.isfinite(array.astype(float)).all() or (array < 0).any():
        raise cv.DataError(
            "margins are by how many points the winner won: finite numbers, 0 for a draw. A negative one would "
            "have the loser win: let the two change places."
        )
    return array.astype(float)


def _sides(values: Any, what: str) -> list[Any]:
    if isinstance(values, (str, bytes)) or not hasattr(values, "__len__") or not hasattr(values, "__getitem__"):
        raise cv.DataError(
            f"{what} is a list with a player, or a list of players, for each game; found {_shown(values)}."
        )
    return values.tolist() if hasattr(values, "tolist") else list(values)


def _team(side: Any, game: int) -> list[Name]:
    members = list(side) if isinstance(side, (list, tuple, np.ndarray)) else [side]
    if not members:
        raise cv.DataError(f"A team of game {game} has no players.")
    return [_name(member, game) for member in members]


def _name(member: Any, game: int) -> Name:
    if isinstance(member, str) and member:
        return str(member)
    if isinstance(member, (int, np.integer)) and not isinstance(member, (bool, np.bool_)):
        return int(member)
    raise cv.DataError(
        f"A player is text or a whole number; game {game} has {_shown(member)}. Where it is not known who played, "
        "leave the game out."
    )


def _places(given: Any, teams: int, game: int) -> list[float]:
    array = np.asarray(given)
    if array.shape != (teams,) or array.dtype.kind not in "iuf" or not np.isfinite(array).all():
        raise cv.DataError(
            f"ranks of game {game} are {_shown(given)}; they are {teams} numbers, one for each team, equal in a tie."
        )
    return [float(place) for place in array]


def _absent(value: Any) -> bool:
    """None, NaN, NaT, and what pandas writes for a missing entry, which is not even equal to itself."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except TypeError:
        return True


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
