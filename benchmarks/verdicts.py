"""The verdict against the truth: hits, misses and false alarms, of factorised answers and of weighted draws.

    python benchmarks/verdicts.py run --out verdicts.jsonl [--only NAME ...] [--structures 40] [--seconds 60]
    python benchmarks/verdicts.py table verdicts.jsonl

Each model is inferred with accuracy="fast", so that many answers are wrong; its verdict is read, and where that leads
to weighted draws these are compared as well. The models are those of `first_hour/` beside this file, and random
structures of `tests/sweep` against their grids. Right is within a tenth of an sd, 10 % of an sd and a probability of
.02; wrong is beyond .25, 25 % and .1.
"""

import argparse
import json
import signal
import sys
import time
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

import cavity as cv
from cavity.engine.evidence.reweighted import by_draws

ROOT = Path(__file__).resolve().parents[1]


def models(folder, only):
    """Names, and functions that give a posterior and a function that marks one."""
    sys.path[:0] = [str(ROOT / "benchmarks"), str(folder)]
    import table

    for name, (file, function) in table.declared().items():
        if only and name not in only:
            continue
        try:
            reference = table.reference_of(file, name)
        except KeyError:
            continue  # not made yet
        if reference is None:
            continue

        def infer(function=function):
            model, data, *options = function()
            return cv.infer(model, data, **{**(options[0] if options else {}), "accuracy": "fast"})

        def marked(posterior, reference=reference):
            worst = table.compared(posterior, reference)
            return table.mark(worst), {kind: [round(one["value"], 3), one["of"]] for kind, one in worst.items()}

        yield name, infer, marked


def structures(first, number):
    """The same of random structures, with the grids of their oracle."""
    sys.path.insert(0, str(ROOT / "tests" / "sweep"))
    from truths import Solver
    from verdicts import Structure

    for seed in range(first, first + number):
        structure = Structure(seed)
        case = structure.case(0)
        if case is None:
            continue

        def infer(structure=structure, case=case):
            return cv.infer(structure.model, case.data, accuracy="fast")

        def marked(posterior, structure=structure, case=case):
            solver = Solver(structure.small, case.given, case.seen, case.missing)
            truth = solver.truth()
            if truth.doubt:
                return "unsettled", {}
            late = {*structure.model.lets, *(v.name for v in solver.late)}
            names = [name for name in structure.asked(case) if name not in late]
            gaps = {name: structure.gap(structure.answer(posterior[name], name), truth, name, case) for name in names}
            known = {name: gap for name, gap in gaps.items() if gap is not None}
            if len(known) < len(gaps):
                return "unsettled", {}
            off = {name: str(gap) for name, gap in known.items() if gap.moments > 0.1}
            if any(gap.wrong for gap in known.values()):
                return "wrong", off
            return "off" if any(gap.moments > 0.1 or gap.probability > 0.02 for gap in known.values()) else "right", off

        yield f"structure {seed}", infer, marked


def one(infer, marked):
    """What came of one model."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.perf_counter()
        posterior = infer()
        seconds = time.perf_counter() - start
        start = time.perf_counter()
        verdict = posterior.verdict
        found = {"code": posterior.code, "inferred": seconds, "judged": time.perf_counter() - start}
        found |= {"level": verdict.level, "sentence": verdict.sentence}
        found["mark"], found["worst"] = marked(posterior)
        kept = posterior._trust
        found["serious"] = bool(kept and kept.serious)
        if kept and (kept.serious or not posterior.converged) and kept.witness is not None:
            start = time.perf_counter()
            better = by_draws(posterior, kept, 0)
            if better is not None:
                found["drawn"] = time.perf_counter() - start
                found["k"], found["effective"] = better._found.weighted.k, better.effective
                found["mark of draws"], found["worst of draws"] = marked(better)
                found["evidence"] = [posterior.log_evidence, better.log_evidence, better.error]
    return found


def run(arguments):
    """Appends what came of each model to a file."""
    done = set()
    if arguments.out.exists():
        done = {json.loads(line)["name"] for line in arguments.out.read_text().splitlines()}

    def late(*_):
        raise TimeoutError

    signal.signal(signal.SIGALRM, late)
    parts = [models(arguments.folder, arguments.only)] if arguments.folder.exists() else []
    parts += [structures(arguments.first, arguments.structures)]
    for name, infer, marked in (entry for part in parts for entry in part):
        if name in done:
            continue
        signal.alarm(arguments.seconds)
        try:
            found = one(infer, marked)
        except (Exception, TimeoutError) as error:
            found = {"mark": "no answer", "sentence": f"{type(error).__name__}: {str(error)[:200]}"}
        signal.alarm(0)
        with arguments.out.open("a") as file:
            file.write(json.dumps({"name": name, **found}, default=float) + "\n")


def table_of(paths):
    """Counts of levels by mark, then what was missed and what was alarmed falsely."""
    rows = [json.loads(line) for path in paths for line in Path(path).read_text().splitlines()]
    counts = Counter((row["mark"], row.get("level", "")) for row in rows)
    levels = ("good", "doubtful", "poor", "unchecked")
    lines = [f"| beliefs | {' | '.join(levels)} |", f"|---|{'---|' * len(levels)}"]
    for mark in ("right", "off", "wrong"):
        lines.append(f"| {mark} | {' | '.join(str(counts[mark, level]) for level in levels)} |")
    told = [row for row in rows if row.get("level") in levels]
    for title, wanted in (
        ("wrong, said to be good", lambda row: row["mark"] == "wrong" and row["level"] == "good"),
        ("wrong, unchecked", lambda row: row["mark"] == "wrong" and row["level"] == "unchecked"),
        ("right, alarmed", lambda row: row["mark"] == "right" and row["level"] in ("doubtful", "poor")),
    ):
        lines += ["", title] + [
            f"  {row['name']}: {row['worst']}; {row['sentence'][:300]}" for row in told if wanted(row)
        ]
    drawn = [row for row in rows if "mark of draws" in row]
    pairs = Counter((row["mark"], row["mark of draws"]) for row in drawn)
    lines += ["", "weighted draws: " + ", ".join(f"{a} -> {b} {number}" for (a, b), number in sorted(pairs.items()))]
    lines += [
        f"  {row['name']}: {row['worst of draws']}, k {row['k']:.2f}, worth {row['effective']:.0f}"
        for row in drawn
        if row["mark of draws"] != "right"
    ]
    seconds = np.array([row["judged"] for row in told])
    lines += [
        "",
        f"{len(rows)} models; seconds of a verdict: median {np.median(seconds):.2g}, largest {seconds.max():.2g}",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    runs = commands.add_parser("run")
    runs.add_argument("--out", type=Path, required=True)
    runs.add_argument("--folder", type=Path, default=ROOT / "benchmarks" / "first_hour")
    runs.add_argument("--only", nargs="*", default=[])
    runs.add_argument("--first", type=int, default=0)
    runs.add_argument("--structures", type=int, default=0)
    runs.add_argument("--seconds", type=int, default=60)
    commands.add_parser("table").add_argument("paths", nargs="+")
    arguments = parser.parse_args()
    if arguments.command == "run":
        run(arguments)
    else:
        print(table_of(arguments.paths))
