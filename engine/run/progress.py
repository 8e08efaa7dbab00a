"""A progress line for long runs: shown on a terminal, nowhere else."""

from __future__ import annotations

import sys
import time

import numpy as np

from .chunks import Watched


class Progress:
    """Watches a run from outside, between chunks of sweeps: no callback inside the compiled loop."""

    def __init__(self, progress: bool | None) -> None:
        """`progress` says whether to show anything; None: when standard error is a terminal."""
        self.wanted = sys.stderr.isatty() if progress is None else progress
        self.started = time.monotonic()
        self.shown = False

    def __call__(self, carry: Watched) -> None:
        """Prints the line once the run takes over a second."""
        seconds = time.monotonic() - self.started
        if not self.wanted or seconds < 1.0:
            return
        iteration, residual = int(np.max(np.asarray(carry.iteration))), float(np.max(np.asarray(carry.residual)))
        sys.stderr.write(f"\rcavity: sweep {iteration}, largest change {residual:.1e} sd, {seconds:.0f} s ")
        sys.stderr.flush()
        self.shown = True

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *problem: object) -> None:
        """Ends the line."""
        if self.shown:
            sys.stderr.write("\n")
