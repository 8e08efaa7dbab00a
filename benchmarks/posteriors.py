"""Real data against long runs of Stan (posteriordb) and JAGS (BUGS): what auto picks, and integrated where that is off.

    python benchmarks/posteriors.py FOLDER [--only NAME ...] [--write]

FOLDER holds `posteriordb/` and `bugs/`, each with its data as json and the reference means and standard deviations as
csv; the models are those of tests/reference/models_posteriors.py. `--write` makes docs/posteriors.md from the results.
"""

import harness

# isort: split
import argparse
import json
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "reference"))

import posteriors

import cavity as cv

RESULTS = harness.RESULTS / "posteriors.json"
PAGE = ROOT / "docs" / "posteriors.md"
BEGIN, END = "<!-- made by benchmarks/posteriors.py: begin -->", "<!-- made by benchmarks/posteriors.py: end -->"
MARKS = 0.1, 0.1  # the mean's error in reference standard deviations, and the relative error of the standard deviation


def worst(rows):
    """The largest error of a mean and the standard deviation farthest from the reference, with their parameters."""
    mean, sd = max(rows, key=lambda row: row.error), max(rows, key=lambda row: abs(row.ratio - 1.0))
    return {
        "error": mean.error,
        "error_of": mean.parameter,
        "ratio": sd.ratio,
        "ratio_of": sd.parameter,
        "rows": {row.parameter: [row.mean, row.sd, row.reference_mean, row.reference_sd] for row in rows},
    }


def right(found):
    return found["error"] < MARKS[0] and abs(found["ratio"] - 1.0) < MARKS[1]


def timed(model, data, **options):
    """The posterior of the second call, seconds of the first, which compiles, and of the second."""
    seconds = []
    for _ in range(2):
        before = time.perf_counter()
        posterior = cv.infer(model, data, **options)
        seconds.append(time.perf_counter() - before)
    return posterior, seconds


def run(name):
    model, data, where, reference = posteriors.setup(name)
    posterior, seconds = timed(model, data)
    found = {"auto": worst(posteriors.compared(posterior, where, reference)) | {"seconds": seconds}}
    found["auto"]["converged"] = bool(posterior.converged)
    if not right(found["auto"]):
        found["auto"]["trust"] = posterior.trust().level
        print(row(name, found), flush=True)
        found["integrated"] = integrated(model, data, where, reference)
    return found


def integrated(model, data, where, reference):
    try:
        posterior, seconds = timed(model, data, accuracy="best")
        found = worst(posteriors.compared(posterior, where, reference))
    except cv.CavityError as error:
        return {"refused": str(error)}
    return found | {"seconds": seconds, "over": list(getattr(posterior, "points", {}))}


def cells(found):
    if found is None:
        return ["", "", ""]
    if "refused" in found:
        return ["refused", "", ""]
    ratio = f"{found['ratio']:.2f} ({found['ratio_of']})"
    return [f"{found['error']:.3f} ({found['error_of']})", ratio, "{:.1f} / {:.2f}".format(*found["seconds"])]


def row(name, found):
    trust = found["auto"].get("trust", "")
    line = [name, *cells(found["auto"]), trust, *cells(found.get("integrated"))]
    return f"| {' | '.join(line)} |"


def table(results):
    found = ["mean off by", "sd ratio", "seconds"]
    head = ["posterior", *(f"auto: {word}" for word in found), "trust", *(f"integrated: {word}" for word in found)]
    top = [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head))]
    return "\n".join([*top, *(row(name, found) for name, found in results.items())])


def write(results):
    text = PAGE.read_text()
    before, after = text[: text.index(BEGIN) + len(BEGIN)], text[text.index(END) :]
    PAGE.write_text("\n\n".join([before, table(results), after]))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="+", default=[*posteriors.POSTERIORS, *posteriors.BUGS])
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    posteriors.DATA = options.folder
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name in options.only:
        results[name] = run(name)
        print(row(name, results[name]), flush=True)
        ordered = {n: results[n] for n in [*posteriors.POSTERIORS, *posteriors.BUGS] if n in results}
        RESULTS.write_text(json.dumps(ordered, indent=1) + "\n")
    if options.write:
        write(json.loads(RESULTS.read_text()))
