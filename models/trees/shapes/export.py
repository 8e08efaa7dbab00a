"""Trees in the forms of other programs: Newick text, NetworkX graphs, SciPy linkage matrices."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import networkx
import numpy as np

from ....factors.errors import DataError
from ..tree import ORIGIN, Tree

SLACK = 1e-6  # by which the times of leaves may differ in a text of rounded lengths


def to_newick(tree: Tree, support: Any = None) -> str:
    """A tree as Newick text: branch lengths are times, names are quoted, the last length leads down from the origin.

    Lengths have all digits that a double has. The time left from a branch point to its leaves is the sum of lengths
    below it, so that depths keep their digits where times round to 1.

    Args:
        tree: the tree.
        support: (nodes,) numbers written as labels of the branch points, such as those of a `Consensus`.
    """
    length, text = tree.length, {}
    for node in tree.order:
        if node < tree.n_leaves:
            text[node] = "'" + tree.names[node].replace("'", "''") + "'"
        else:
            inside = ",".join(text.pop(child) for child in tree.children[node])
            text[node] = f"({inside})" + ("" if support is None else f"{support[node]:.6g}")
        text[node] += f":{float(length[node])!r}"
    return text[tree.top] + ";"


def from_newick(text: str, names: Sequence[str] = ()) -> Tree:
    """The tree of a Newick text whose leaves are at one time, 1; branch points of one child are left out.

    Args:
        text: as `to_newick` writes it; labels of branch points and comments in brackets are skipped.
        names: the order of the leaves by name. By default they are in the order of the text, or of their numbers where
            the names are 0, 1, ...

    Raises:
        DataError: no such text, missing lengths, leaves at different times, or other names.
    """
    above, length, label = _parsed(text)
    size = len(above)
    if missing := [node for node in range(size) if not length[node] >= 0.0]:
        raise DataError(f"{len(missing)} branches have no length >= 0: a tree with divergence times needs them all.")
    below: list[list[int]] = [[] for _ in range(size)]
    for node in range(1, size):
        below[above[node]].append(node)
    left, farthest = np.zeros(size), np.zeros(size)  # nodes are numbered in the order of their opening brackets
    for node in range(size - 1, -1, -1):
        reach = [(left[child] + length[child], farthest[child] + length[child]) for child in below[node]]
        left[node], farthest[node] = min((r[0] for r in reach), default=0.0), max((r[1] for r in reach), default=0.0)
    total = left[0] + length[0]
    if abs(total - 1.0) > SLACK or abs(farthest[0] + length[0] - 1.0) > SLACK:
        raise DataError(
            f"All leaves are at time 1; found them at {total:.6g} to {farthest[0] + length[0]:.6g}. Scale the lengths "
            "to a height below 1, and give the top branch the rest of the time from the origin."
        )
    found = [label[node] for node in range(size) if not below[node]]
    numbered = sorted(found) == sorted(str(i) for i in range(len(found)))
    order = list(names) or (sorted(found, key=int) if numbered else found)
    if len(set(found)) != len(found) or sorted(order) != sorted(found):
        raise DataError("The leaves' names are those given in names=, each once; the text has others.")
    place = {name: i for i, name in enumerate(order)}
    points = [node for node in range(size) if len(below[node]) > 1]
    number = {node: len(found) + i for i, node in enumerate(points)}
    number.update({node: place[label[node]] for node in range(size) if not below[node]})
    parent, depth = np.full(len(number), ORIGIN), np.full(len(number), np.inf)
    for node, row in number.items():
        up = above[node]
        while up != ORIGIN and up not in number:
            up = above[up]
        parent[row] = number.get(up, ORIGIN)
        if below[node]:
            depth[row] = max(-np.log(max(left[node], np.finfo(np.float64).tiny)), 0.0)
    for node in points[1:]:  # parents come before their children; rounding must not put one below
        row = number[node]
        depth[row] = max(depth[row], depth[parent[row]])
    return Tree(parent, depth, tuple(order))


def to_networkx(tree: Tree) -> networkx.DiGraph:
    """A tree as a directed graph from the origin, node -1, down to the leaves.

    Nodes have `time`, `depth`, `leaves` (the number below) and, for leaves, `name`; edges have `length`, in time.
    """
    graph = networkx.DiGraph()
    graph.add_node(ORIGIN, time=0.0, depth=0.0, leaves=tree.n_leaves)
    time, length = tree.time, tree.length
    for node in range(tree.n_nodes):
        name = {"name": tree.names[node]} if node < tree.n_leaves else {}
        graph.add_node(
            node, time=float(time[node]), depth=float(tree.depth[node]), leaves=int(tree.count[node]), **name
        )
        graph.add_edge(int(tree.parent[node]), node, length=float(length[node]))
    return graph


def to_linkage(tree: Tree) -> np.ndarray:
    """(leaves - 1, 4) linkage matrix, as `scipy.cluster.hierarchy` takes it for dendrograms; heights are 1 - time.

    A branch point of more than two children becomes merges of the same height.

    Raises:
        DataError: a tree of one leaf.
    """
    n = tree.n_leaves
    if n < 2:
        raise DataError("A linkage matrix joins at least two leaves; the tree has one.")
    rank = np.empty(tree.n_nodes, dtype=np.int64)
    rank[tree.order] = np.arange(tree.n_nodes)
    points = np.arange(n, tree.n_nodes)
    points = points[np.lexsort((rank[points], -tree.depth[points]))]  # latest first, children before their parents
    cluster, rows = np.arange(tree.n_nodes), []
    for node in points:
        first, *others = tree.children[node]
        joined, size = cluster[first], tree.count[first]
        for other in others:
            size += tree.count[other]
            rows.append((*sorted((joined, cluster[other])), np.exp(-tree.depth[node]), size))
            joined = n + len(rows) - 1
        cluster[node] = joined
    return np.array(rows, dtype=np.float64)


def from_linkage(linkage: Any, names: Sequence[Any] = (), *, join_ties: bool = True) -> Tree:
    """The tree of a linkage matrix whose heights are 1 - time.

    Args:
        linkage: (leaves - 1, 4), heights in (0, 1]. Other heights, such as distances, are to be scaled before.
        names: names of the leaves.
        join_ties: whether merges of the same height, one right above the other, are one branch point.

    Raises:
        DataError: no linkage matrix, or heights out of range.
    """
    rows = np.asarray(linkage, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] != 4 or not len(rows):
        raise DataError(f"A linkage matrix has four columns, and a row for each merge; found the shape {rows.shape}.")
    height = rows[:, 2]
    if not ((height > 0.0) & (height <= 1.0)).all():
        raise DataError(
            f"Heights are 1 - time, in (0, 1]; found {height.min():.6g} to {height.max():.6g}. Divide them by a little "
            "more than the largest; points at height 0 coincide and need a small positive one."
        )
    n = len(rows) + 1
    parent, depth = np.full(2 * n - 1, ORIGIN), np.concatenate([np.full(n, np.inf), -np.log(height)])
    for row, (first, second) in enumerate(rows[:, :2].astype(np.int64)):
        if not (0 <= first < n + row and 0 <= second < n + row):
            raise DataError(f"Row {row} of the linkage joins clusters {first} and {second}, which are not there yet.")
        parent[[first, second]] = n + row
    joined = np.arange(2 * n - 1)
    if join_ties:
        for node in range(2 * n - 3, n - 1, -1):
            if depth[node] == depth[parent[node]]:
                joined[node] = joined[parent[node]]
    kept = np.flatnonzero(joined == np.arange(2 * n - 1))
    number = np.full(2 * n, ORIGIN)
    number[kept] = np.arange(len(kept))
    above = np.where(parent[kept] == ORIGIN, -1, joined[parent[kept]])
    return Tree(number[above], depth[kept], tuple(str(name) for name in names))


def _parsed(text: str) -> tuple[list[int], list[float], list[str]]:
    """Parent, length and label of each node of a Newick text, in the order in which they open."""
    tokens = re.findall(r"\[[^\]]*\]|'(?:[^']|'')*'|[(),:;]|[^\s(),:;'\[\]]+", text)
    above, length, label, open_nodes = [ORIGIN], [float("nan")], [""], [0]
    after_colon = False
    for token in tokens:
        node = open_nodes[-1] if open_nodes else -1
        if token.startswith("["):
            continue
        if node < 0:
            raise DataError("The Newick text has more closing than opening brackets.")
        if after_colon:
            try:
                length[node] = float(token)
            except ValueError:
                raise DataError(f"A branch length is a number; found {token!r}.") from None
            after_colon = False
        elif token in "(,":
            if token == ",":
                open_nodes.pop()
                if not open_nodes:
                    raise DataError("The Newick text has a comma outside of brackets: it holds one tree.")
            above.append(open_nodes[-1])
            length.append(float("nan"))
            label.append("")
            open_nodes.append(len(above) - 1)
        elif token == ")":
            open_nodes.pop()
        elif token == ":":
            after_colon = True
        elif token == ";":
            break
        else:
            label[node] = token[1:-1].replace("''", "'") if token.startswith("'") else token
    if len(open_nodes) != 1 or not tokens or tokens[-1] != ";":
        raise DataError("A Newick text ends with a semicolon, all its brackets closed.")
    return above, length, label
