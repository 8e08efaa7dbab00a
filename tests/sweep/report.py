"""Prints the tables of a sweep: `python tests/sweep/report.py FILE...`."""

from __future__ import annotations

import collections
import json
import pathlib
import re
import sys
from typing import Any

KINDS = (
    ("exact", "all beliefs within 1 %, and so what is made of them"),
    ("near", "nothing off by a quarter of an sd, 25 % of an sd or .1 in probability"),
    ("pushed", "beliefs within 1 %, an expression or prediction not"),
    ("pushed, shape", "the same with the right mean and sd, but quantiles off by more than .01 in probability"),
    ("wrong, told", "off, but a warning or the plan says that it is approximate"),
    ("wrong, silent", "off without a word"),
    ("not converged", "code other than converged"),
    ("nan", "something is not finite that is in truth"),
    ("crashed", "an exception that is not one of ours, or no answer in time"),
    ("refused", "a sentence"),
    ("unsettled", "the oracle is not sure"),
    ("no data", "no data of ordinary size were drawn"),
)
FAULTS = ("pushed", "pushed, shape", "wrong, told", "wrong, silent", "not converged", "nan", "crashed")


def read(paths: list[str]) -> list[dict[str, Any]]:
    """The rows of all files, each run once."""
    found: dict[tuple[int, int], dict[str, Any]] = {}
    for path in paths:
        for line in pathlib.Path(path).read_text().splitlines():
            row = json.loads(line)
            if row["kind"] != "done":
                found[row["seed"], row.get("draw", 0)] = row
    return list(found.values())


def counts(rows: list[dict[str, Any]]) -> str:
    seen = collections.Counter(row["kind"] for row in rows)
    lines = ["| what came of it | runs | structures | meaning |", "| --- | --- | --- | --- |"]
    for kind, meaning in KINDS:
        structures = len({row["seed"] for row in rows if row["kind"] == kind})
        lines.append(f"| {kind} | {seen[kind]} | {structures} | {meaning} |")
    judged = [r for r in rows if "evidence" in r]
    beliefs = [r for r in judged if r.get("beliefs", 1.0) <= 0.01]
    said = {key: sum(bool(r.get(key)) for r in rows) for key in ("refused_marginals", "warned")}
    off = [r for r in beliefs if r["kind"] in ("exact", "pushed") and abs(r["evidence"]) > 0.02]
    lines.append("")
    lines.append(
        f"{len(rows)} runs of {len({r['seed'] for r in rows})} structures; {len(judged)} judged, beliefs within 1 % in "
        f"{len(beliefs)}, of which the evidence is off by more than .02 in {len(off)}; a marginal refused in "
        f"{said['refused_marginals']}; a warning in {said['warned']}. Of the wrong ones, "
        f"{sum(bool(r.get('only_forward')) for r in rows)} are so in expressions or predictions only. "
        f"In {sum(bool(r.get('promised')) for r in rows)} explain calls a belief exact that is off by more than 1 %."
    )
    return "\n".join(lines)


def lifts(rows: list[dict[str, Any]], kind: str, most: int = 12) -> str:
    """In which structures the fault is found more often than by chance: the parts, and by how much."""
    base = {row["seed"]: set(row.get("features", [])) for row in rows}
    hit = {row["seed"] for row in rows if row["kind"] == kind}
    if not hit:
        return ""
    total = collections.Counter(f for parts in base.values() for f in parts)
    with_fault = collections.Counter(f for seed in hit for f in base[seed])
    rate = len(hit) / len(base)
    scored = sorted(((n / total[f] / rate, n, f) for f, n in with_fault.items() if n > 1), reverse=True)[:most]
    return ", ".join(f"{f} x{lift:.1f} ({n} of {total[f]})" for lift, n, f in scored)


def sentences(rows: list[dict[str, Any]], key: str) -> collections.Counter[str]:
    """Texts without names and numbers, and how many structures have them."""
    found: dict[str, set[int]] = collections.defaultdict(set)
    for row in rows:
        texts = row.get(key) or []
        for text in [texts] if isinstance(texts, str) else texts:
            found[re.sub(r"[-\d.]+|'[^']*'", "_", text)[:160]].add(row["seed"])
    return collections.Counter({text: len(seeds) for text, seeds in found.items()})


def coverage(rows: list[dict[str, Any]]) -> str:
    total = collections.Counter(f for parts in {r["seed"]: r.get("features", []) for r in rows}.values() for f in parts)
    groups: dict[str, list[str]] = collections.defaultdict(list)
    for feature, n in sorted(total.items()):
        head, _, tail = feature.partition(":")
        groups[head if tail else "other"].append(f"{tail or head} {n}")
    return "\n".join(f"| {head} | {', '.join(found)} |" for head, found in groups.items())


def main() -> None:
    rows = read(sys.argv[1:])
    print(counts(rows))
    for kind in FAULTS:
        hit = [row for row in rows if row["kind"] == kind]
        if not hit:
            continue
        print(f"\n{kind}: {lifts(rows, kind)}")
        for row in sorted(hit, key=lambda r: (r.get("text", ""), r["seed"])):
            print(
                f"  seed {row['seed']}, draw {row.get('draw', 0)} ({row.get('focus', '')}): {row.get('text', '')[:230]}"
            )
    print("\ncalled exact, and off by more than 1 %:")
    for row in [row for row in rows if row.get("promised")]:
        print(f"  seed {row['seed']}, draw {row['draw']}: {[(n, row['gaps'].get(n)) for n in row['promised']]}")
    for title, key, kind in (
        ("refused", "text", "refused"),
        ("marginals refused", "refused_marginals", ""),
        ("warnings", "warned", ""),
    ):
        print(f"\n{title}, by sentence and structures:")
        for text, n in sentences([r for r in rows if not kind or r["kind"] == kind], key).most_common(40):
            print(f"  {n:4d} {text}")
    print("\n| part | structures that have it |\n| --- | --- |\n" + coverage(rows))


if __name__ == "__main__":
    main()
