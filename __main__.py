"""python -m cavity launch -n 2 script.py: a script as several processes of this machine, which share its rows."""

from __future__ import annotations

import argparse
import sys

from .engine.cluster.launch import join, launch


def main() -> int:
    """Reads the command line, and does what it says."""
    parser = argparse.ArgumentParser(prog="python -m cavity", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    start = commands.add_parser("launch", help="run a script as several processes of this machine")
    start.add_argument("-n", "--processes", type=int, default=2, help="how many (2)")
    for command in (start, commands.add_parser("join", help="what launch has each process do")):
        command.add_argument("script", help="a Python file")
        command.add_argument("arguments", nargs=argparse.REMAINDER, help="what the script is given")
    worker = commands.add_parser("worker", help="what a pool of processes has each of them do")
    worker.add_argument("place", type=int)
    worker.add_argument("workers", type=int)
    asked = parser.parse_args()
    if asked.command == "worker":
        from .engine.cluster.workers import work

        work(asked.place, asked.workers)
        return 0
    if asked.command == "join":
        join(asked.script, asked.arguments)
        return 0
    if asked.processes < 1:
        parser.error(f"-n is a number of processes, at least 1; found {asked.processes}.")
    return launch(asked.script, asked.arguments, asked.processes)


if __name__ == "__main__":
    sys.exit(main())
