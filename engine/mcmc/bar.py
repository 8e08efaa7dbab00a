"""Progress of long runs: a bar of tqdm or rich where one of them is installed, a line on the terminal otherwise."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

import numpy as np

from ...factors.errors import ModelError

Show = Callable[..., None]  # show(done, total) or show(done, total, note)


@contextlib.contextmanager
def progress_bar(progress: bool | Show | None, unit: str) -> Iterator[Show]:
    """What to call after each step of a run, with how much is done, how much there is, and a note that may be empty.

    Args:
        progress: True shows a bar, False none, None one on a terminal; a function is called as it is.
        unit: what is counted.

    Raises:
        ModelError: anything else.
    """
    if callable(progress):
        yield progress
        return
    if progress is not None and not isinstance(progress, (bool, np.bool_)):
        raise ModelError(
            f"progress= is True (a bar), False (none), None (one on a terminal), or a function that is called with how "
            f"much is done and how much there is; found {progress!r}."
        )
    if not (sys.stderr.isatty() if progress is None else progress):
        yield lambda done, total, note="": None
        return
    for make in (_tqdm, _rich):
        with contextlib.suppress(ImportError), make(unit) as show:
            yield show
            return
    start = time.monotonic()
    yield lambda done, total, note="": _line(done, total, unit, f"{_rate(done, start)} {note}")


@contextlib.contextmanager
def _tqdm(unit: str) -> Iterator[Show]:
    from tqdm import tqdm  # pyright: ignore[reportMissingModuleSource]

    with tqdm(unit=unit) as bar:

        def show(done: int, total: int, note: str = "") -> None:
            bar.total = total
            if note:
                bar.set_postfix_str(note, refresh=False)
            bar.update(done - bar.n)

        yield show


@contextlib.contextmanager
def _rich(unit: str) -> Iterator[Show]:
    from rich.progress import Progress  # pyright: ignore[reportMissingImports]

    with Progress() as bar:
        task, start = bar.add_task(unit), time.monotonic()

        def show(done: int, total: int, note: str = "") -> None:
            bar.update(task, completed=done, total=total, description=f"{unit} {_rate(done, start)} {note}")

        yield show


def _rate(done: int, start: float) -> str:
    return f"{done / max(time.monotonic() - start, 1e-9):.3g}/s"


def _line(done: int, total: int, unit: str, note: str) -> None:
    if done % max(total // 50, 1) == 0 or done >= total:
        sys.stderr.write(f"\rcavity: {unit} {done} of {total} {note}" + ("\n" if done >= total else ""))
        sys.stderr.flush()
