"""Paths that users give: where there is no file, or can be none, a sentence says so and Python's own error is kept."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from ...factors.errors import DataError, ModelError


class FileError(DataError, OSError):
    """A file that cannot be read or written where the path says."""


class MissingFileError(FileError, FileNotFoundError):
    """There is no file, or no folder for it."""


class FolderError(FileError, IsADirectoryError):
    """There is a folder of this name."""


def text_of(path: object) -> str:
    """A path as text. ModelError for what is none."""
    found = os.fspath(path) if isinstance(path, (str, os.PathLike)) else path
    if not isinstance(found, str):
        raise ModelError(f"A file is named by its path, a string or a pathlib.Path; found {path!r}.")
    return found


@contextlib.contextmanager
def told(path: str | os.PathLike[str], doing: str) -> Iterator[None]:
    """Around what opens a file to be `doing`, "read" or "written". ModelError for what is no path, else FileError."""
    where = text_of(path)
    short = where if len(where) <= 80 else f"{where[:40]}...{where[-20:]}"
    head = f"'{short}' cannot be {doing}: "
    try:
        yield
    except FileError:
        raise
    except FileNotFoundError:
        folder = os.path.dirname(where)
        absent = bool(folder) and not os.path.isdir(folder)
        lost = "its folder is not there. Make that first, or correct the path." if absent else "there is no such file."
        raise MissingFileError(head + lost + ("" if absent else " Correct the path.")) from None
    except IsADirectoryError:
        raise FolderError(f"{head}it is a folder. Add the name of a file.") from None
    except OSError as problem:
        raise FileError(f"{head}{problem.strerror or problem}. Give another path.") from None
    except ValueError as problem:  # a zero in it
        raise FileError(f"{head}{problem}. Give another path.") from None
