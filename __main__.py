"""python -m cavity: the command line, and what it has its own processes do."""

from __future__ import annotations

import argparse
import sys


def main() -> int:
    """Reads the command line, and does what it says."""
    if sys.argv[1:2] not in (["join"], ["worker"]):
        from .command_line import main as command

        return command()
    parser = argparse.ArgumentParser(prog="python -m cavity")
    commands = parser.add_subparsers(dest="command", required=True)
    joined = commands.add_parser("join", help="what launch has each process do")
    joined.add_argument("script", help="a Python file")
    joined.add_argument("arguments", nargs=argparse.REMAINDER, help="what the script is given")
    worker = commands.add_parser("worker", help="what a pool of processes has each of them do")
    worker.add_argument("place", type=int)
    worker.add_argument("workers", type=int)
    asked = parser.parse_args()
    if asked.command == "worker":
        from .engine.cluster.workers import work

        work(asked.place, asked.workers)
    else:
        from .engine.cluster.launch import join

        join(asked.script, asked.arguments)
    return 0


if __name__ == "__main__":
    sys.exit(main())
