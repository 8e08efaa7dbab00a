"""Writes the picture and the tables of the rooms in CONTRIBUTING.md, from the imports of the sources.

Run from a checkout: python docs/make_rooms.py

A room is a folder of a package, or a file beside these folders; the definitions in `models` count as one. The floor of
a room is the length of the longest way down from it. Imports inside functions count, those for type checkers do not.
"""

from __future__ import annotations

import ast
import itertools
from pathlib import Path

import grimp
import networkx as nx

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "CONTRIBUTING.md"
BEGIN, END = "<!-- made by docs/make_rooms.py: begin -->", "<!-- made by docs/make_rooms.py: end -->"
PACKAGES = ("models", "engine", "compiler", "factors")  # from the top down
DEFINITIONS = "models/*.py"


def file_of(module: str) -> Path:
    """The file of a module, relative to the root."""
    path = Path(*module.split(".")[1:])
    return path.with_suffix(".py") if (ROOT / path).with_suffix(".py").is_file() else path / "__init__.py"


def room(path: Path) -> str:
    """The room of a file: `engine/values` of engine/values/masks.py, `engine/infer.py` of itself."""
    if len(path.parts) == 2:
        return DEFINITIONS if path.parts[0] == "models" else str(path)
    return "/".join(path.parts[:2])


def rooms() -> nx.DiGraph:
    """Which room imports which."""
    imports = grimp.build_graph("cavity", exclude_type_checking_imports=True, cache_dir=None)
    named = {module: room(file_of(module)) for module in imports.modules if module.count(".")}
    graph = nx.DiGraph()
    graph.add_nodes_from(named.values())
    for module, above in named.items():
        below = {named[other] for other in imports.find_modules_directly_imported_by(module) if other in named}
        graph.add_edges_from((above, other) for other in below - {above})
    graph.remove_nodes_from([name for name in graph if name.endswith("__init__.py") and not graph.degree(name)])
    return graph


def floors(graph: nx.DiGraph) -> dict[str, int]:
    """The floor of each room; rooms that import each other in a circle share one."""
    whole = nx.condensation(graph)
    found: dict[int, int] = {}
    for number in reversed(list(nx.topological_sort(whole))):
        found[number] = 1 + max((found[below] for below in whole.successors(number)), default=0)
    return {name: floor for number, floor in found.items() for name in whole.nodes[number]["members"]}


def inside(graph: nx.DiGraph, package: str) -> nx.DiGraph:
    """The rooms of one package."""
    return graph.subgraph([name for name in graph if name.split("/")[0] == package])


def shortened(graph: nx.DiGraph) -> list[tuple[str, str]]:
    """The imports without those that follow from others; in a circle all are kept."""
    whole = nx.condensation(graph)
    kept = set(nx.transitive_reduction(whole).edges)
    number = whole.graph["mapping"]
    edges, seen = [], set()
    for above, below in sorted(graph.edges):
        pair = number[above], number[below]
        if pair[0] == pair[1] or (pair in kept and pair not in seen):
            edges.append((above, below))
            seen.add(pair)
    return edges


def picture(graph: nx.DiGraph) -> list[str]:
    """A mermaid diagram: an arrow goes from a room to what it imports."""
    lines = ["```mermaid", "flowchart TD"]
    for package in PACKAGES:
        part = inside(graph, package)
        lines.append(f"  subgraph {package}")
        lines += [f'    {mark(name)}["{name.split("/", 1)[1]}"]' for name in sorted(part)]
        lines += [f"    {mark(above)} --> {mark(below)}" for above, below in shortened(part)]
        lines.append("  end")
    lines += [f"  {above} --> {below}" for above, below in itertools.pairwise(PACKAGES)]
    return [*lines, "```"]


def mark(name: str) -> str:
    """The name of a room as mermaid takes it."""
    return name.replace("/", "_").replace(".", "_").replace("*", "definitions")


def sentence(name: str) -> str:
    """What a room computes: the first sentence of its first file."""
    if name == DEFINITIONS:
        name = "models/__init__.py"
    path = ROOT / name if name.endswith(".py") else ROOT / name / "__init__.py"
    text = ast.get_docstring(ast.parse(path.read_text())) or ""
    return " ".join(text.split("\n\n")[0].split())


def table(graph: nx.DiGraph, package: str) -> list[str]:
    """One row for each room of a package, the top floor first."""
    part = inside(graph, package)
    floor = floors(part)
    lines = [f"### {package}", "", "| floor | room | what it holds | imports, of this package |", "|---|---|---|---|"]
    for name in sorted(part, key=lambda name: (-floor[name], name)):
        below = ", ".join(f"`{other.split('/', 1)[1]}`" for other in sorted(part.successors(name))) or "-"
        lines.append(f"| {floor[name]} | `{name}` | {sentence(name)} | {below} |")
    return [*lines, ""]


def circles(graph: nx.DiGraph) -> list[str]:
    """Rooms that import each other, which the floors cannot tell apart."""
    found = [sorted(part) for part in nx.strongly_connected_components(graph) if len(part) > 1]
    told = [f"`{'`, `'.join(part)}`" for part in sorted(found)]
    return [f"Rooms that import each other in a circle, and share a floor: {'; '.join(told)}.", ""] if told else []


def renewed() -> str:
    """The page with its picture and tables made anew."""
    text, graph = PAGE.read_text(), rooms()
    before, after = text[: text.index(BEGIN) + len(BEGIN)], text[text.index(END) :]
    made = [*picture(graph), "", *circles(graph)]
    for package in PACKAGES:
        made += table(graph, package)
    return "\n".join([before, "", *made, after.lstrip()]) if made else text


if __name__ == "__main__":
    PAGE.write_text(renewed())
