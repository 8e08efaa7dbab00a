"""The models that users write in their first hour: the default call beside the truth.

    python benchmarks/first_hour/table.py [--only NAME ...] [--write]

Models are the functions in MODELS of infernet.py, bugs.py and stan.py beside this file, references the json of the same
name, made by by_grid.py, by_quadrature.py and by_nuts.py. A reference lists every latent variable; one that has no sds
holds probabilities.
Where classes have no order of their own, "permuted" names the axis of each variable that counts them, and the order
that fits best is compared. `--write` makes the table of docs/first-hour.md from the results.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import harness

# isort: split
import argparse
import importlib
import itertools
import json
import warnings

import numpy as np

import cavity as cv

FOLDER = Path(__file__).resolve().parent
FILES = [name for name in ("infernet", "bugs", "stan", "first_tries") if (FOLDER / f"{name}.py").exists()]
RESULTS = harness.RESULTS / "first_hour.json"
PAGE = FOLDER.parents[1] / "docs" / "first-hour.md"
BEGIN, END = (
    "<!-- made by benchmarks/first_hour/table.py: begin -->",
    "<!-- made by benchmarks/first_hour/table.py: end -->",
)

# A mean's error in reference sds, the relative error of an sd, the error of a probability.
RIGHT = {"mean": 0.1, "sd": 0.1, "probability": 0.02}
WRONG = {"mean": 0.25, "sd": 0.25, "probability": 0.1}
EVIDENCE = 0.05  # nats


def declared():
    """All models: file and function by name."""
    return {function.__name__: (file, function) for file in FILES for function in importlib.import_module(file).MODELS}


def reference_of(file, name):
    path = FOLDER / f"{file}.json"
    return json.loads(path.read_text())[name] if path.exists() else None


def errors(parameters, means, sds):
    """The worst error of each kind with its parameter: {"mean": [error, name], "sd": [ratio, name], ...}."""
    found = {}
    for name, truth in parameters.items():
        off = np.abs(means[name] - np.asarray(truth["mean"], float))
        if "sd" not in truth:
            keep(found, "probability", name, off, off)
            continue
        sd = np.asarray(truth["sd"], float)
        known = sd > 0
        keep(found, "mean", name, off / np.where(known, sd, 1e-6), off / np.where(known, sd, 1e-6))
        ratio = np.where(known, sds[name] / np.where(known, sd, 1.0), 1.0)
        keep(found, "sd", name, ratio, np.abs(ratio - 1.0))
    return found


def keep(found, kind, name, values, distance):
    """Remembers the element farthest from the truth, unless an earlier variable had one farther."""
    distance = np.where(np.isfinite(distance), distance, np.inf)
    index = np.unravel_index(np.argmax(distance), np.shape(distance))
    if kind not in found or distance[index] > found[kind]["distance"]:
        where = name + (f"[{', '.join(map(str, index))}]" if index else "")
        found[kind] = {"distance": float(distance[index]), "value": float(np.asarray(values)[index]), "of": where}


def total(found):
    """How far off in all, to choose between orders of classes."""
    return sum(worst["distance"] for worst in found.values())


def compared(posterior, reference):
    """The errors of `posterior`, under the order of classes that fits best where they have none of their own."""
    parameters, permuted = reference["parameters"], reference.get("permuted", {})
    means = {name: np.asarray(posterior[name].mean, float) for name in parameters}
    sds = {name: np.asarray(posterior[name].sd, float) for name in parameters if "sd" in parameters[name]}
    found = []
    classes = [means[name].shape[axis] for name, axis in permuted.items()]
    for order in itertools.permutations(range(classes[0])) if classes else [None]:
        ordered = [
            {
                name: np.take(values[name], order, permuted[name]) if name in permuted else values[name]
                for name in values
            }
            for values in (means, sds)
        ]
        found.append(errors(parameters, *ordered))
    return min(found, key=total)


def mark(worst):
    """right, off or wrong."""
    if all(one["distance"] <= RIGHT[kind] for kind, one in worst.items()):
        return "right"
    return "wrong" if any(one["distance"] >= WRONG[kind] for kind, one in worst.items()) else "off"


def verdict_of(posterior):
    """What the posterior says of itself: its verdict where there is one, else what explain says of its answers."""
    verdict = getattr(posterior, "verdict", None)
    if verdict is not None:
        return str(getattr(verdict, "level", verdict))
    lines = [line for line in posterior.explain().splitlines() if line.startswith("answers: ")]
    return lines[0].removeprefix("answers: ").split(" for ")[0].split(".")[0] if lines else ""


def run(file, function):
    """The default call of one model, timed and compared; an error is a result as well."""
    model, data, *options = function()
    reference = reference_of(file, function.__name__)
    harness._forget()
    before = harness.cpu_seconds()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            posterior = cv.infer(model, data, **(options[0] if options else {}))
        except Exception as error:  # whatever stops the call is a result of the table, not its end
            said = f"{type(error).__name__}: {error}"
            return {"file": file, "mark": "failed", "error": said, "seconds": harness.cpu_seconds() - before}
        seconds = harness.cpu_seconds() - before
        warned = [str(one.message) for one in caught if issubclass(one.category, cv.CavityWarning)]
        worst, says = compared(posterior, reference), verdict_of(posterior)
    exact, evidence = reference.get("log_evidence"), float(posterior.log_evidence)
    return {
        "file": file,
        "mark": mark(worst),
        "worst": worst,
        "evidence": evidence,
        "evidence_off": None if exact is None else evidence - exact,
        "code": posterior.code,
        "warned": warned,
        "says": says,
        "unchecked": sorted(latent(model, posterior) - set(reference["parameters"])),
        "seconds": seconds,
    }


def latent(model, posterior):
    """The names of all random variables that data do not give."""
    return set(model.randoms) - set(posterior.observed)


def doubted(found):
    """Whether the user was warned: of a run that failed or did not converge, or by the verdict."""
    return bool(found["mark"] == "failed" or found["warned"] or found["says"] in ("doubtful", "poor"))


def row(name, found):
    if found["mark"] == "failed":
        return f"| {name} | failed |  |  |  |  | {found['error'].split(':')[0]} | yes | {found['seconds']:.1f} |"
    worst = found["worst"]
    cells = [f"{worst[kind]['value']:.2f} ({worst[kind]['of']})" if kind in worst else "" for kind in RIGHT]
    off = "" if found["evidence_off"] is None else f"{found['evidence_off']:+.3f}"
    says = ", ".join(word for word in (found["code"], found["says"]) if word)
    line = [name, found["mark"], *cells, off, says, "yes" if doubted(found) else "", f"{found['seconds']:.1f}"]
    return f"| {' | '.join(line)} |"


def summary(results):
    """How many models reach each of the targets."""
    marks = [found["mark"] for found in results.values()]
    silent = [name for name, found in results.items() if found["mark"] == "wrong" and not doubted(found)]
    needless = [name for name, found in results.items() if found["mark"] == "right" and doubted(found)]
    offs = [found["evidence_off"] for found in results.values() if found.get("evidence_off") is not None]
    counts = ", ".join(f"{marks.count(word)} {word}" for word in ("right", "off", "wrong", "failed"))
    near = sum(abs(off) <= EVIDENCE for off in offs)
    return (
        f"Of {len(marks)} models {counts}. Wrong and not warned of: {len(silent)}; right and warned of: "
        f"{len(needless)}. "
        f"Log evidence within {EVIDENCE} nats: {near} of the {len(offs)} where it is known."
    )


def table(results):
    head = ["model", "mark", "mean off by (sd)", "sd ratio", "probability off by", "evidence off by (nats)"]
    head += ["says", "warned", "CPU seconds"]
    top = [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head))]
    rows = [row(name, found) for name, found in results.items()]
    return "\n".join([summary(results), "", *top, *rows, *refusals(results)])


def refusals(results):
    """What was refused as it was first written, with the message."""
    notes = {name: reference_of(found["file"], name).get("refused") for name, found in results.items()}
    lines = [f"* {name}: {note}" for name, note in notes.items() if note]
    return ["", "Refused as first written, and so in the nearest form that runs:", "", *lines] if lines else []


def write(results):
    text = PAGE.read_text()
    before, after = text[: text.index(BEGIN) + len(BEGIN)], text[text.index(END) :]
    PAGE.write_text("\n\n".join([before, table(results), after]))


if __name__ == "__main__":
    models = declared()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[*models], choices=[*models], metavar="NAME")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name in options.only:
        results[name] = run(*models[name])
        print(row(name, results[name]), flush=True)
        RESULTS.parent.mkdir(exist_ok=True)
        kept = {name: results[name] for name in models if name in results}
        RESULTS.write_text(json.dumps(kept, indent=1) + "\n")
    kept = {name: results[name] for name in models if name in results}
    print(summary(kept))
    if options.write:
        write(kept)
