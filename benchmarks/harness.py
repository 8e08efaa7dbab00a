"""Peers and cavity in turns in one process: CPU and wall time, cold and warm, ratios with their spread.

Import this module before NumPy and JAX: it pins the threads of BLAS and of XLA to one, for every contestant alike.
"""

import os

for _pool in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[_pool] = "1"
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")
os.environ["CAVITY_CACHE"] = "off"  # cold is without what an earlier run compiled
os.environ.pop("JAX_COMPILATION_CACHE_DIR", None)

import argparse
import dataclasses
import datetime
import importlib.metadata
import json
import platform
import resource
import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

RESULTS = Path(__file__).parent / "results"
SHORTEST = 5e-3  # seconds: a warm measurement repeats short calls until it is at least this long


def _forget():
    """What an earlier check of the same model compiled, so that the first call is one."""
    from cavity.engine.support import compiled  # after JAX has been given its threads

    compiled.KEPT.clear()


def cpu_seconds():
    """CPU time of this process, all threads, and of the children that it has waited for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


@dataclasses.dataclass
class Contestant:
    """`run()` does the whole job once; when it returns an integer, times are given per so many units (iterations)."""

    name: str
    run: Callable
    calls: int = 1
    cold: dict = dataclasses.field(default_factory=dict)
    rounds: dict = dataclasses.field(default_factory=dict)
    spent: float = 0.0

    def measure(self):
        cpu, wall = cpu_seconds(), time.perf_counter()
        units = 0
        for _ in range(self.calls):
            done = self.run()
            units += done if isinstance(done, int) else 1
        cpu, wall = cpu_seconds() - cpu, time.perf_counter() - wall
        self.spent += wall
        return {"cpu": cpu / units, "wall": wall / units, "units": units / self.calls, "call": wall / self.calls}

    def start(self):
        """The first call, with whatever compilation it needs, and one more to see how long a warm call takes."""
        _forget()
        self.cold = self.measure()
        if self.cold["call"] < 1.0:
            self.calls = max(1, min(1000, round(SHORTEST / max(self.measure()["call"], 1e-7))))


def spread(values):
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def compare(title, runs, repeats=5, budget=30.0):
    """Cold calls first, then rounds A B C, A B C, ...; a contestant that has used its `budget` of seconds drops out."""
    contestants = [Contestant(name, run) for name, run in runs.items()]
    for contestant in contestants:
        contestant.start()
        contestant.spent = 0.0
    for number in range(repeats):
        for contestant in contestants:
            if contestant.spent < budget:
                contestant.rounds[number] = contestant.measure()
    return {"title": title, "rows": [row(contestant, contestants[-1]) for contestant in contestants]}


def row(contestant, base):
    """Times of one contestant, and its CPU time over that of `base` in the rounds in which both took part."""
    shared = [number for number in contestant.rounds if number in base.rounds]
    ratios = [contestant.rounds[number]["cpu"] / max(base.rounds[number]["cpu"], 1e-12) for number in shared]
    warm = list(contestant.rounds.values())
    return {
        "name": contestant.name,
        "cold_cpu": contestant.cold["cpu"] * contestant.cold["units"],
        "cold_wall": contestant.cold["wall"] * contestant.cold["units"],
        "cpu": spread([one["cpu"] for one in warm]),
        "wall": spread([one["wall"] for one in warm]),
        "units": statistics.median(one["units"] for one in warm),
        "rounds": len(warm),
        "ratio": spread(ratios),
    }


def show(result):
    base = result["rows"][-1]["name"]
    print(f"\n{result['title']}   (milliseconds; ratio: CPU time over that of {base}, median (min, max))")
    print(f"{'':26}{'cold cpu':>10}{'cold wall':>11}{'warm cpu':>11}{'warm wall':>11}{'units':>7}{'rounds':>7}  ratio")
    for entry in result["rows"]:
        ratio = "{median:.3g} ({min:.3g}, {max:.3g})".format(**entry["ratio"])
        times = [entry["cold_cpu"], entry["cold_wall"], entry["cpu"]["median"], entry["wall"]["median"]]
        cells = "".join(f"{1e3 * value:>{width}.4g}" for value, width in zip(times, (10, 11, 11, 11), strict=True))
        print(f"{entry['name']:26}{cells}{entry['units']:>7.4g}{entry['rounds']:>7}  {ratio}")
    for name, value in result.get("facts", {}).items():
        print(f"    {name}: {value}")


def commit():
    """The commit that is measured, marked where the working tree differs from it."""
    try:
        command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
        return subprocess.run(command, cwd=RESULTS.parent, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def processor():
    """The name of the processor, where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def machine():
    packages = ["numpy", "scipy", "jax", "numba", "numpyro", "scikit-learn", "bayespy", "trueskillthroughtime"]
    packages += ["pymc", "nutpie", "statsmodels"]
    versions = {}
    for name in packages:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = None
    return {
        "date": datetime.date.today().isoformat(),
        "commit": commit(),
        "processor": processor(),
        "python": platform.python_version(),
        "system": platform.platform(),
        "cores": os.cpu_count(),
        "load": os.getloadavg(),
        "versions": versions,
    }


class Report:
    """Prints each comparison as it comes and keeps all of them in `benchmarks/results/<name>.json`.

    `benchmarks/pages.py` makes the tables of docs/benchmarks from these files.
    """

    def __init__(self, name, **settings):
        self.path = RESULTS / f"{name}.json"
        self.content = {"name": name, "machine": machine(), "settings": settings, "comparisons": []}

    def add(self, result, **facts):
        show(result | {"facts": facts})
        self.keep(result | {"facts": facts})

    def facts(self, title, **facts):
        """Numbers without contestants."""
        print(f"\n{title}")
        for name, value in facts.items():
            print(f"    {name}: {value:.4g}")
        self.keep({"title": title, "rows": [], "facts": facts})

    def table(self, title, note, columns, lines, measured):
        """A table of another form than that of `compare`; `measured` are the numbers that its cells are made of."""
        print(f"\n{title}\n{note}")
        cells = [list(map(str, columns)), *lines]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        for line in cells:
            print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
        table = {"note": note, "columns": columns, "lines": lines, "measured": measured}
        self.keep({"title": title, "rows": [], "table": table})

    def keep(self, entry):
        self.content["comparisons"].append(entry)
        RESULTS.mkdir(exist_ok=True)
        self.path.write_text(json.dumps(self.content, indent=1, default=str) + "\n")


def options(description):
    """The options that every benchmark has."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--repeats", type=int, default=5, help="warm rounds")
    parser.add_argument("--budget", type=float, default=30.0, help="seconds of warm rounds for each contestant")
    parser.add_argument("--peers", action="store_true", help="without cavity")
    return parser
