"""Runs the sweep: random structures, several data sets each, the default call of each judged by the oracle.

    python tests/sweep/run.py --structures 400 --data 5 --workers 2 --seconds 2400 --out sweep.jsonl

Results are appended, a line for each run; structures that the file has already are left out, so that a run which was
stopped goes on, and files of several runs may be joined. `report.py` prints the tables.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import multiprocessing.connection
import os
import pathlib
import resource
import sys
import time
from collections.abc import Iterator
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent
LIMIT = 4.0e9  # bytes after which a worker is replaced


def serve(connection: Any, draws: int) -> None:
    """A worker: structures by seed, until None comes."""
    sys.path.insert(0, str(HERE))
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    while (seed := connection.recv()) is not None:
        for row in rows_of(seed, draws):
            connection.send(row)
        fat = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 > LIMIT
        connection.send({"seed": seed, "kind": "done", "leaves": fat})
        if fat:
            return


def rows_of(seed: int, draws: int) -> Iterator[dict[str, Any]]:
    import verdicts

    try:
        structure = verdicts.Structure(seed)
    except verdicts.cv.CavityError as error:
        yield {"seed": seed, "draw": 0, "kind": "refused", "text": f"{type(error).__name__}: {error}", "features": []}
        return
    except Exception as error:  # while the model is declared
        yield {"seed": seed, "draw": 0, "kind": "crashed", "text": f"declared: {error!r}", "features": []}
        return
    start, about = time.monotonic(), {"features": structure.features}
    try:
        for row in structure.rows(draws):
            yield {**row, **about, "seconds": round(time.monotonic() - start, 1)}
    except Exception as error:  # of the sweep's own
        yield {"seed": seed, "draw": draws, "kind": "unsettled", "text": f"the sweep failed: {error!r}", **about}
    verdicts.clear()


class Worker:
    """A process, what it works at, and since when."""

    def __init__(self, draws: int) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, there = context.Pipe()
        self.process = context.Process(target=serve, args=(there, draws), daemon=True)
        self.process.start()
        self.seed: int | None = None
        self.since = time.monotonic()

    def give(self, seed: int) -> None:
        self.seed, self.since = seed, time.monotonic()
        self.connection.send(seed)

    def stop(self) -> None:
        self.process.kill()
        self.process.join()


def sweep(seeds: list[int], draws: int, workers: int, seconds: float, each: float, out: pathlib.Path) -> None:
    """Structure after structure on `workers` processes; one that takes longer than `each` seconds is a crash."""
    begun, left = time.monotonic(), list(reversed(seeds))
    pool = [Worker(draws) for _ in range(min(workers, len(left)))]
    with out.open("a") as file:

        def write(row: dict[str, Any]) -> None:
            file.write(json.dumps(row, default=float) + "\n")
            file.flush()

        while True:
            for i, worker in enumerate(pool):
                if worker.seed is None and left and time.monotonic() - begun < seconds:
                    if not worker.process.is_alive():
                        pool[i] = worker = Worker(draws)
                    worker.give(left.pop())
            busy = [w for w in pool if w.seed is not None]
            if not busy:
                break
            for connection in multiprocessing.connection.wait([w.connection for w in busy], timeout=1.0):
                worker = next(w for w in busy if w.connection is connection)
                try:
                    row = worker.connection.recv()
                except EOFError:
                    row = None
                if row is None:
                    write(
                        {"seed": worker.seed, "draw": 0, "kind": "crashed", "text": "the process died", "features": []}
                    )
                    write({"seed": worker.seed, "kind": "done"})
                elif row["kind"] == "done":
                    write({"seed": row["seed"], "kind": "done"})
                else:
                    write(row)
                    continue
                worker.seed = None
                if row is None or row["leaves"]:
                    worker.stop()
                    pool[pool.index(worker)] = Worker(draws)
            for i, worker in enumerate(pool):
                if worker.seed is not None and time.monotonic() - worker.since > each:
                    write(
                        {
                            "seed": worker.seed,
                            "draw": 0,
                            "kind": "crashed",
                            "text": f"no answer in {each:.0f} s",
                            "features": [],
                        }
                    )
                    write({"seed": worker.seed, "kind": "done"})
                    worker.stop()
                    pool[i] = Worker(draws)
    for worker in pool:
        worker.stop()


def finished(out: pathlib.Path) -> set[int]:
    if not out.exists():
        return set()
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    return {row["seed"] for row in rows if row["kind"] == "done"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--structures", type=int, default=400)
    parser.add_argument("--first", type=int, default=0, help="the seed of the first structure")
    parser.add_argument("--data", type=int, default=5, help="data sets of each structure")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=2400, help="no structure is begun after these")
    parser.add_argument("--each", type=float, default=600, help="seconds after which a structure is a crash")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    args = parser.parse_args()
    done = finished(args.out)
    seeds = [seed for seed in range(args.first, args.first + args.structures) if seed not in done]
    sweep(seeds, args.data, args.workers, args.seconds, args.each, args.out)


if __name__ == "__main__":
    main()
