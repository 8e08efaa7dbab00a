"""What comes of a wrong use: refused by name, answered rightly, a raw error from below, or silent nonsense."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import cavity as cv

# What Python's own protocols say to whom misses them, with the name of what is asked for.
OF_PYTHON = (
    "has no variable", "here. There are:", "was not sampled. There are:", "there is no such attribute. ",
    "data sets. Give the number of one", "is no place of it", "expected str, bytes or os.PathLike object",
    "unsupported operand type(s) for +: 'Beliefs'", "unsupported operand type(s) for -: 'Beliefs'",
)  # fmt: skip


class Case(NamedTuple):
    """One use. `right(result)` says whether an answer is right, where there is one; None: none is."""

    name: str
    call: Callable[[], Any]
    right: Callable[[Any], bool] | None = None


def verdict(case: Case) -> str:
    """One of refused, right, raw, silent, with the first words of an error."""
    try:
        found = case.call()
    except cv.CavityError as error:
        return "refused" if len(str(error)) > 30 else f"raw: a {type(error).__name__} without a sentence: {error}"
    except (FileNotFoundError, IsADirectoryError):
        return "refused"
    except Exception as error:
        of_python = any(text in str(error) for text in OF_PYTHON)
        return "refused" if of_python else f"raw: {type(error).__name__} {str(error)[:150]}"
    return "right" if case.right is not None and case.right(found) else "silent"


def judged(cases: Iterable[Case]) -> tuple[Counter[str], list[str]]:
    """How many of each, and the lines of those that are raw or silent."""
    counts, faults = Counter(), []
    for case in cases:
        found = verdict(case)
        counts[found.split(":")[0]] += 1
        if found not in ("refused", "right"):
            faults.append(f"{case.name}: {found}")
    return counts, faults
