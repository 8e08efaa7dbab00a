"""A logistic regression from Parquet by one process and by two, beside reading the file: seconds of a pass, and memory.

    python benchmarks/scale.py --rows 10000000          # writes the file where it is not there, then both, alone
    python benchmarks/scale.py --rows 100000 --columns 10

Every process reads the rows of its own devices in every pass, a block at a time, so a pass is a sweep of NCVMP. Reading
alone is the same rows by the same reader, with nothing done to them.
"""

import os

os.environ.setdefault("XLA_FLAGS", "")  # the module of the model would give XLA one thread

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

GROUP = 100_000  # rows that are written at once


def written(path, rows, columns):
    """The file: outcomes, and a vector of float32 for each row."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    true = np.random.default_rng(0).standard_normal(columns) / np.sqrt(columns)
    kind = pa.list_(pa.float32(), columns)
    schema = pa.schema([("x", kind), ("y", pa.bool_())])
    with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False) as writer:
        for first in range(0, rows, GROUP):
            random = np.random.default_rng([1, first])
            number = min(GROUP, rows - first)
            x = random.standard_normal((number, columns), dtype=np.float32)
            y = x @ true + random.logistic(size=number) > 0
            values = pa.FixedSizeListArray.from_arrays(pa.array(x.ravel()), columns)
            writer.write_table(pa.table([values, pa.array(y)], schema=schema), row_group_size=GROUP)


def run(path, columns, sweeps, stream):
    """In every process: the seconds of a pass, of reading, and the most memory that it had."""
    import jax
    import logistic as benchmark

    import cavity as cv

    mesh = jax.make_mesh((jax.device_count(),), ("rows",), axis_types=(jax.sharding.AxisType.Auto,))
    x, y = cv.rows(path, "x", stream=stream), cv.rows(path, "y")
    share = len(x) // jax.process_count()
    first = share * jax.process_index()
    began = time.perf_counter()
    for start in range(first, first + share, 1310):
        x.read_rows(start, min(start + 1310, first + share)).astype(float)
    reading = time.perf_counter() - began
    program = cv.compile(benchmark.model(cv, columns), observed=["y"], method="ncvmp", max_iterations=sweeps, mesh=mesh)
    posterior = program.run({"x": x, "y": y})
    again = time.perf_counter()
    posterior = program.run({"x": x, "y": y})
    call = time.perf_counter() - again
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    told = {
        "process": jax.process_index(),
        "pass": posterior.timing.run / posterior.iterations,
        "sweeps": posterior.iterations,
        "call": call,
        "reading": reading,
        "memory": peak,
        "evidence": float(posterior.log_evidence),
    }
    os.write(1, f"{json.dumps(told)}\n".encode())  # at once: the lines of two processes must not mix


def measured(processes, cores, arguments):
    """What every process tells, where all of them together have so many cores."""
    command = ["taskset", "-c", f"0-{cores - 1}", sys.executable, "-m", "cavity", "launch", "-n", str(processes)]
    done = subprocess.run([*command, __file__, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--columns", type=int, default=100)
    parser.add_argument("--sweeps", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--memory", action="store_true", help="have the rows in memory, not streamed")
    parser.add_argument("--file", default=None)
    parser.add_argument("--run", action="store_true")
    asked = parser.parse_args()
    path = asked.file or str(Path(tempfile.gettempdir()) / f"logistic-{asked.rows}-{asked.columns}.parquet")
    if asked.run:
        run(path, asked.columns, asked.sweeps, not asked.memory)
        return
    if not Path(path).exists():
        written(path, asked.rows, asked.columns)
    own = ["--run", "--file", path, "--columns", str(asked.columns), "--sweeps", str(asked.sweeps)]
    own += ["--memory"] * asked.memory
    for _ in range(asked.rounds):
        for processes, cores in ((1, 1), (2, 2), (1, 2)):
            for line in sorted(measured(processes, cores, own), key=lambda line: line["process"]):
                print(f"{processes} processes, {cores} cores:", json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
