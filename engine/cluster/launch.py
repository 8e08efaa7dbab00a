"""Starting a script as several processes on one machine, which JAX joins: python -m cavity launch -n 2 script.py."""

from __future__ import annotations

import os
import runpy
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence

NOTE = "CAVITY_LAST_CHECKPOINT"  # the variable that says where the last checkpoint is written down
ADDRESS, NUMBER, RANK = "CAVITY_COORDINATOR", "CAVITY_PROCESSES", "CAVITY_PROCESS"
HEARTBEAT = 20  # seconds without a sign of life, after which a process is taken for lost
GRACE = 5.0  # seconds that the others have to end of their own, once a process has failed


def launch(script: str, arguments: Sequence[str], processes: int) -> int:
    """Runs a script as so many processes of this machine: their exit status, of the first that failed.

    Each calls `join` before the script. Where one fails the others are stopped, with a line that names it.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    running = []
    handle, note = tempfile.mkstemp(prefix="cavity-")
    os.close(handle)
    for rank in range(processes):
        environment = {**os.environ, ADDRESS: f"127.0.0.1:{port}", NUMBER: str(processes), RANK: str(rank)}
        environment[NOTE] = note
        command = [sys.executable, "-m", "cavity", "join", script, *arguments]
        running.append(subprocess.Popen(command, env=environment))
    try:
        return _watch(running, note)
    finally:
        os.remove(note)
        for process in running:
            if process.poll() is None:
                process.kill()
                process.wait()


def _watch(running: list[subprocess.Popen], note: str) -> int:
    """Waits for all; the status of the first that failed, and a line on it, once the others have had their time."""
    while True:
        states = [process.poll() for process in running]
        failed = next(((rank, state) for rank, state in enumerate(states) if state), None)
        if failed is not None:
            rank, state = failed
            ended = f"was killed by signal {-state}" if state < 0 else f"ended with {state}"
            with open(note, encoding="utf-8") as file:
                last = file.read()
            go_on = f" The last checkpoint is {last}: cv.resume goes on from it." if last else ""
            print(f"cavity: process {rank} of {len(running)} {ended}; the others are stopped.{go_on}", file=sys.stderr)
            until = time.monotonic() + GRACE
            while time.monotonic() < until and any(process.poll() is None for process in running):
                time.sleep(0.05)
            return abs(state)
        if all(state == 0 for state in states):
            return 0
        time.sleep(0.05)


def join(script: str, arguments: Sequence[str]) -> None:
    """Joins the other processes of a launch, and runs the script as the main module.

    Each has cores of its own, as far as there are enough: threads of several processes on one core wait for each other.
    """
    number, rank = int(os.environ[NUMBER]), int(os.environ[RANK])
    own_cores(rank, number)
    import jax  # which counts the cores

    jax.distributed.initialize(os.environ[ADDRESS], number, rank, heartbeat_timeout_seconds=HEARTBEAT)
    sys.argv = [script, *arguments]
    sys.path.insert(0, os.path.dirname(os.path.abspath(script)))
    runpy.run_path(script, run_name="__main__")


def own_cores(rank: int, number: int) -> None:
    """Keeps this process, one of so many, to its share of the cores that all of them have."""
    if hasattr(os, "sched_setaffinity") and len(cores := sorted(os.sched_getaffinity(0))) >= number:
        each = len(cores) // number
        os.sched_setaffinity(0, cores[rank * each : (rank + 1) * each])
