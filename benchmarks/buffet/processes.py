"""Shards in one process and in two: seconds of an iteration by the clock (asked: 1.7 times as fast).

Four shards of one data set lie in files; `cavity launch` starts the processes, each of which reads its own. A run is
made twice in its processes: the first compiles, and the second, which makes the same draws, is timed.

    python benchmarks/buffet/processes.py [--quick] [--rows 20000] [--rounds 5]
"""

import common

# isort: split
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import jax
import numpy as np
import sets

from cavity.models.buffet.likelihoods import LinearGaussian, NoisyOr
from cavity.models.buffet.parallel import sample_in_shards

SHARDS = 4
LIKELIHOODS = {"numbers, linear Gaussian": LinearGaussian(), "tags, noisy-or": NoisyOr(share=(1.0, 4.0))}


def write_parts(place, rows, seed):
    """Files of both data sets: block images about their means, and tags."""
    images = sets.images(rows, seed)[0]
    data = {"numbers": images - images.mean(axis=0), "tags": sets.tags(rows, 100, 8, seed)[0].astype(float)}
    for what, values in data.items():
        for number, part in enumerate(np.array_split(values, SHARDS)):
            np.save(Path(place, f"{what}-{number}.npy"), part)


def run(place, name, warmup, draws):
    """What each process does: median seconds of an iteration after `warmup` of them, printed by the first."""
    parts = [os.path.join(place, f"{name.split(',')[0]}-{number}.npy") for number in range(SHARDS)]
    for _ in range(2):
        times = []
        found = sample_in_shards(
            parts, jax.random.key(0), warmup + draws, LIKELIHOODS[name], inner=2,
            progress=lambda *_, times=times: times.append(time.perf_counter()),
        )  # fmt: skip
    if jax.process_index() == 0:
        gaps = np.diff(times)[-draws:]
        print(json.dumps([float(np.median(gaps)), int(found["number_of_features"][0, -1])]), flush=True)


def measured(place, name, processes, arguments):
    """Seconds of an iteration, and features at the end, of one launch."""
    command = [sys.executable, "-m", "cavity", "launch", "-n", str(processes), __file__, "--child", place, name]
    command += [str(arguments.warmup), str(arguments.draws)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.strip().splitlines()[-1])


def main():
    parser = common.options(__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--warmup", type=int, default=30, help="iterations before those that are timed")
    parser.add_argument("--draws", type=int, default=10, help="iterations that are timed")
    parser.add_argument("--rounds", type=int, default=5, help="launches of each")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.rows, arguments.rounds = 2000, 2
    report = common.report("processes", arguments, rows=arguments.rows, shards=SHARDS, rounds=arguments.rounds)
    found = {name: {1: [], 2: []} for name in LIKELIHOODS}
    with tempfile.TemporaryDirectory() as place:
        write_parts(place, arguments.rows, arguments.seed)
        for _ in range(arguments.rounds):
            for name, each in found.items():
                for processes, runs in each.items():
                    runs.append(measured(place, name, processes, arguments))
    lines = []
    for name, each in found.items():
        one, two = (np.array([seconds for seconds, _ in each[processes]]) for processes in (1, 2))
        ratio = one / two
        shown = f"{np.median(ratio):.2f} ({ratio.min():.2f}, {ratio.max():.2f})"
        lines.append([name, *(common.shown(1e3 * np.median(times)) for times in (one, two)), shown, str(each[1][0][1])])
    note = (
        f"{arguments.rows} rows, two sweeps of each shard an iteration: milliseconds of an iteration by the clock, the "
        f"median over {arguments.draws} of each of {arguments.rounds} launches; how many times as fast two are, by "
        "launches, median (least, most); features at the end."
    )
    report.table("One process and two", note, ("", "one", "two", "times as fast", "features"), lines, found)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        run(sys.argv[2], sys.argv[3], *map(int, sys.argv[4:6]))
    else:
        main()
