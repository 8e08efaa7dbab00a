"""A progress line for long runs: shown on a terminal, silent elsewhere."""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np

from .controller import RUNNING

ENOUGH = 20_000  # numbers in the data


class Progress:
    """Watches a run from outside, between chunks of sweeps: no callback inside the compiled loop."""

    def __init__(self) -> None:
        self.started = time.monotonic()
        self.last = self.started
        self.shown = False

    @staticmethod
    def wanted(progress: bool | None, numbers: int) -> Progress | None:
        """A watcher when asked for; or when standard error is a terminal, nobody said no, and there are enough data.

        A run in chunks compiles three functions instead of one: a small problem is done before the line would show.
        """
        if progress is None:
            progress = numbers >= ENOUGH and sys.stderr.isatty()
        return Progress() if progress else None

    def running(self, carry: Any) -> bool:
        """True while any restart goes on."""
        return bool(np.any(np.asarray(carry.code) == RUNNING))

    def show(self, carry: Any, chunk: int) -> int:
        """Prints the line once the run takes over a second.

        Returns the size of the next chunk, about half a second of sweeps.
        """
        iteration, residual = int(np.max(np.asarray(carry.iteration))), float(np.max(np.asarray(carry.good_residual)))
        now = time.monotonic()
        spent, self.last = now - self.last, now
        if now - self.started > 1.0:
            sys.stderr.write(
                f"\rcavity: sweep {iteration}, largest change {residual:.1e} sd, {now - self.started:.0f} s "
            )
            sys.stderr.flush()
            self.shown = True
        return int(np.clip(chunk * 0.5 / max(spent, 1e-3), 1, 4096))

    def close(self) -> None:
        """Ends the line."""
        if self.shown:
            sys.stderr.write("\n")
