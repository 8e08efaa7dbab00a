"""The stages of an inference: how long each took, and a progress line for long ones, on a terminal, nowhere else."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from .chunks import Watched

PATIENCE = 1.0  # seconds before anything is shown
MANY = 100_000  # rows whose number in a second is shown


class Timing(NamedTuple):
    """Who ran the sweeps of an inference, and the seconds of its stages: none for what was kept from an earlier one."""

    interpreted: bool
    plan: float
    trace: float
    ready: float  # until there was machine code, or closures
    run: float

    def __str__(self) -> str:
        return (
            f"Run by {'NumPy' if self.interpreted else 'machine code'}: planned in {self.plan:.2g} s, "
            f"traced in {self.trace:.2g} s, made ready in {self.ready:.2g} s, swept in {self.run:.2g} s."
        )


class Progress:
    """Watches an inference from outside, between stages and chunks of sweeps: no callback inside the compiled loop."""

    def __init__(self, progress: bool | None, rows: int = 0) -> None:
        """`progress` says whether to show anything; None: when standard error is a terminal. `rows` a sweep reads."""
        self.wanted = sys.stderr.isatty() if progress is None else progress
        self.started = time.monotonic()
        self.shown = self.interpreted = False
        self.seconds: dict[str, float] = {}
        self.runs = 0.0  # seconds of what `sweeping` was around
        self.rows, self.first = rows, (-1, 0.0)  # sweeps and seconds when a run was first looked at

    @contextlib.contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Measures a stage before the sweeps, and shows what it is called where it is long."""
        began, shows = time.monotonic(), threading.Timer(PATIENCE, self._write, [f"{name} ..."])
        shows.daemon = True
        if self.wanted:
            shows.start()
        try:
            yield
        finally:
            shows.cancel()
            self.seconds[name] = self.seconds.get(name, 0.0) + time.monotonic() - began

    @contextlib.contextmanager
    def sweeping(self) -> Iterator[None]:
        """Measures one of several calls, its stages among them."""
        began = time.monotonic()
        try:
            yield
        finally:
            self.runs += time.monotonic() - began

    def timing(self, interpreted: bool, plan: float) -> Timing:
        """The stages so far."""
        return self._stages(interpreted, plan, time.monotonic() - self.started)

    def timing_of_all(self, plan: float) -> Timing:
        """The stages of all calls together; who ran the sweeps is who ran the last."""
        return self._stages(self.interpreted, plan, self.runs)

    def _stages(self, interpreted: bool, plan: float, whole: float) -> Timing:
        trace, ready = (self.seconds.get(name, 0.0) for name in ("tracing", "compiling"))
        return Timing(interpreted, plan, trace, ready, whole - trace - ready)

    def points(self, number: int) -> None:
        """Prints the line of an integration once it takes over a second: how many points it has looked at."""
        seconds = time.monotonic() - self.started
        if self.wanted and seconds >= PATIENCE:
            self._write(f"integrating: {number} points, {seconds:.0f} s")

    def __call__(self, carry: Watched) -> None:
        """Prints the line once the run takes over a second."""
        seconds = time.monotonic() - self.started
        if not self.wanted or seconds < PATIENCE:
            return
        iteration, residual = int(np.max(np.asarray(carry.iteration))), float(np.max(np.asarray(carry.residual)))
        rate = self._rate(iteration, seconds)
        self._write(f"sweep {iteration}, largest change {residual:.1e} sd, {seconds:.0f} s{rate}")

    def _rate(self, iteration: int, seconds: float) -> str:
        """Rows in a second since the run was first looked at, where there are many."""
        sweeps, begun = self.first
        if not 0 <= sweeps < iteration:
            self.first = iteration, seconds
            return ""
        return f", {self.rows * (iteration - sweeps) / (seconds - begun):.2g} rows/s" if self.rows >= MANY else ""

    def _write(self, words: str) -> None:
        sys.stderr.write(f"\rcavity: {words} ")
        sys.stderr.flush()
        self.shown = True

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *problem: object) -> None:
        """Ends the line."""
        if self.shown:
            sys.stderr.write("\n")
