"""Pictures of trees: branches against time, on the data, the predictive density."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...engine.plots.figure import BLUE, INK, PALE, clean, coloured, draw_legend, new_figure
from ...factors.errors import DataError
from .fitted_tree import FittedTree
from .predict import log_predictive
from .tree import ORIGIN, Tree

_NAMED = 400  # leaves beyond which names are left out: they could not be read
_AXIS = {"time": "divergence time", "depth": "depth, $-\\log(1 - t)$"}
_MASSES = np.array([0.99, 0.95, 0.8, 0.6, 0.4, 0.2, 0.05])


def plot_tree(
    tree: Tree,
    groups: Sequence[Any] | None = None,
    *,
    support: Any = None,
    scale: str = "time",
    title: str = "",
    axes: Any = None,
) -> Any:
    """A tree from left to right, each branch point at its divergence time, smaller clades first.

    Args:
        tree: the tree; its names stand at the leaves (up to 400).
        groups: (leaves,) a label for each leaf, such as known classes or `tree.labels(clusters=5)`: leaves, and
            branches with one group below them, have its colour.
        support: (nodes,) a probability for each branch point, such as the clade probabilities of a consensus tree;
            entries of leaves are not read. Shown by the shade of a dot, and as a number where there is room.
        scale: "time", or "depth", `-log(1 - time)`, which spreads out the branch points near the leaves.
        title: of the picture.
        axes: matplotlib axes to draw on; by default those of a new figure, as high as the names need.

    Returns:
        The matplotlib Figure.

    Raises:
        DataError: lengths that do not fit the tree, or another scale. UnsupportedError: matplotlib is absent.
    """
    if scale not in _AXIS:
        raise DataError(f"The scale is time or depth; found {scale!r}.")
    colours, legend = _branch_colours(tree, groups)
    if axes is None:
        axes = new_figure(7.5, float(np.clip(0.15 * tree.n_leaves + 1.1, 2.2, 30.0))).add_subplot()
    figure = clean(axes).figure
    across, down = _across(tree, scale), _down(tree)
    axes.set(xlim=(0.0, across.max()), ylim=(tree.n_leaves - 0.4, -0.6), xlabel=_AXIS[scale])
    # A part of a figure has no height in inches: trees are drawn in whole figures.
    pitch = 72.0 * 0.9 * figure.get_figheight() * axes.get_position().height / (tree.n_leaves + 0.2)  # pyright: ignore[reportAttributeAccessIssue]
    _draw_branches(axes, tree, across, down, colours, min(1.3, 0.25 * pitch))
    if support is not None:
        _draw_support(axes, tree, np.asarray(support, dtype=np.float64), across, down, pitch)
    _draw_names(axes, tree, down, colours, pitch, grouped=groups is not None)
    draw_legend(axes.figure, legend)
    axes.set_title(title, fontsize=10)
    return figure


def plot_tree_on_scatter(
    tree: Tree, locations: Any, groups: Sequence[Any] | None = None, *, title: str = "", axes: Any = None
) -> Any:
    """A tree over two columns of its data: branches from location to location, dark and thick where they are early.

    Args:
        tree: the tree.
        locations: (nodes, D) of the leaves and the branch points, D >= 2; the first two columns are drawn.
        groups: (leaves,) a label for each leaf, which gives it its colour.
        title: of the picture.
        axes: matplotlib axes to draw on; by default those of a new figure.

    Returns:
        The matplotlib Figure.
    """
    locations = np.asarray(locations, dtype=np.float64)
    if locations.ndim != 2 or len(locations) != tree.n_nodes or locations.shape[1] < 2:
        raise DataError(
            f"Locations of the {tree.n_nodes} leaves and branch points have the shape ({tree.n_nodes}, D), D >= 2; "
            f"found {locations.shape}."
        )
    colours, legend = _branch_colours(tree, groups)
    axes = clean(new_figure(5.6, 5.2).add_subplot() if axes is None else axes)
    below = tree.order[:-1]
    late = tree.time[tree.parent[below]]
    segments = np.stack([locations[tree.parent[below], :2], locations[below, :2]], axis=1)
    order = np.argsort(-late)  # early branches lie on top
    _lines(
        axes, segments[order], [_shade(share) for share in 1.0 - 0.85 * late[order]], 0.5 + 1.6 * (1.0 - late[order])
    )
    size = float(np.clip(1500.0 / tree.n_leaves, 4.0, 28.0))
    kind = BLUE if groups is None else [colours[leaf] for leaf in range(tree.n_leaves)]
    axes.scatter(*locations[: tree.n_leaves, :2].T, s=size, c=kind, zorder=3, linewidths=0)
    axes.plot(*locations[tree.top, :2], marker="o", color="white", markeredgecolor=INK, markersize=6, zorder=4)
    axes.set_aspect("equal", adjustable="datalim")
    draw_legend(axes.figure, legend)
    axes.set_title(title, fontsize=10)
    return axes.figure


def plot_density(
    fitted: FittedTree | Sequence[FittedTree],
    data: Any,
    columns: tuple[int, int] = (0, 1),
    groups: Sequence[Any] | None = None,
    *,
    log_weights: Any = None,
    resolution: int = 120,
    title: str = "",
    axes: Any = None,
) -> Any:
    """The predictive density of two columns, the others integrated out, with the data on it.

    The edges of the shades are those of the smallest regions that hold 5, 20, 40, 60, 80, 95 and 99 per cent.

    Args:
        fitted: one tree or several, see `log_predictive`.
        data: (rows, D) points to draw.
        columns: the two columns.
        groups: (rows,) a label for each point, which gives it its colour.
        log_weights: of the trees.
        resolution: points of the grid on either axis.
        title: of the picture.
        axes: matplotlib axes to draw on; by default those of a new figure.

    Returns:
        The matplotlib Figure.
    """
    data = np.asarray(data, dtype=np.float64)
    points = data[:, list(columns)]
    margin = 0.12 * np.ptp(points, axis=0)
    sides = np.linspace(points.min(axis=0) - margin, points.max(axis=0) + margin, resolution)
    first, second = np.meshgrid(sides[:, 0], sides[:, 1])
    grid = np.full((first.size, data.shape[1]), np.nan)
    grid[:, columns[0]], grid[:, columns[1]] = first.ravel(), second.ravel()
    density = np.exp(log_predictive(fitted, grid, log_weights)).reshape(first.shape)
    axes = clean(new_figure(5.6, 5.2).add_subplot() if axes is None else axes)
    shades = [_shade(share) for share in np.linspace(0.06, 0.75, len(_MASSES))]
    axes.contourf(first, second, density, levels=[*_levels(density), np.inf], colors=shades)
    kinds, legend = coloured(groups, len(data), "leaves", INK)
    size = float(np.clip(1200.0 / len(data), 3.0, 20.0))
    axes.scatter(*points.T, s=size, c=INK if groups is None else kinds, linewidths=0.3, edgecolors="white", zorder=3)
    axes.set(xlabel=f"column {columns[0]}", ylabel=f"column {columns[1]}")
    draw_legend(axes.figure, legend)
    axes.set_title(title, fontsize=10)
    return axes.figure


def _levels(density: np.ndarray) -> np.ndarray:
    """Densities at the edges of the smallest regions that hold the masses, increasing."""
    high = np.sort(density.ravel())[::-1]
    held = np.cumsum(high) / high.sum()
    return np.unique(high[np.searchsorted(held, _MASSES).clip(0, high.size - 1)])


def _shade(share: float) -> tuple[float, ...]:
    """Between a pale grey and the ink."""
    from matplotlib.colors import to_rgb

    pale, ink = np.array(to_rgb(PALE)), np.array(to_rgb(BLUE)) * 0.75
    return tuple(pale + share * (ink - pale))


def _branch_colours(tree: Tree, groups: Sequence[Any] | None) -> tuple[list[str], dict[str, str]]:
    """(nodes,) the colour of each branch: that of the one group below it, or the ink."""
    colours, legend = coloured(groups, tree.n_leaves, "leaves", INK)
    colours = colours + [""] * (tree.n_nodes - tree.n_leaves)
    for node in tree.order:
        if tree.children[node]:
            below = {colours[child] for child in tree.children[node]}
            colours[node] = below.pop() if len(below) == 1 else INK
    return colours, legend


def _across(tree: Tree, scale: str) -> np.ndarray:
    """(nodes,) places on the axis of time; leaves stand at its end."""
    if scale == "time":
        return tree.time
    deepest = tree.depth[np.isfinite(tree.depth)].max(initial=0.0)
    return np.where(np.isfinite(tree.depth), tree.depth, deepest + max(0.08 * deepest, 0.2))


def _down(tree: Tree) -> np.ndarray:
    """(nodes,) rows: smaller clades above larger ones, equal ones by their first leaf; branch points amid theirs."""
    down = np.zeros(tree.n_nodes)
    first = np.where(np.arange(tree.n_nodes) < tree.n_leaves, np.arange(tree.n_nodes), tree.n_nodes)
    for node in tree.order[:-1]:
        first[tree.parent[node]] = min(first[tree.parent[node]], first[node])
    waiting, leaves = [tree.top], 0
    while waiting:
        node = waiting.pop()
        if not tree.children[node]:
            down[node], leaves = leaves, leaves + 1
        waiting.extend(sorted(tree.children[node], key=lambda child: (tree.count[child], first[child]), reverse=True))
    for node in tree.order:
        if tree.children[node]:
            below = down[list(tree.children[node])]
            down[node] = 0.5 * (below.min() + below.max())
    return down


def _lines(axes: Any, segments: np.ndarray, colours: Any, widths: Any) -> None:
    from matplotlib.collections import LineCollection

    axes.add_collection(LineCollection(list(segments), colors=colours, linewidths=widths, capstyle="round"))
    axes.autoscale_view()


def _draw_branches(
    axes: Any, tree: Tree, across: np.ndarray, down: np.ndarray, colours: list[str], width: float
) -> None:
    above = np.where(tree.parent == ORIGIN, 0.0, across[tree.parent])
    along = np.stack([np.stack([above, down], axis=1), np.stack([across, down], axis=1)], axis=1)
    points = range(tree.n_leaves, tree.n_nodes)
    ends = [(down[list(tree.children[node])].min(), down[list(tree.children[node])].max()) for node in points]
    forks = [[(across[node], low), (across[node], high)] for node, (low, high) in zip(points, ends, strict=True)]
    _lines(axes, np.concatenate([along, np.reshape(forks, (-1, 2, 2))]), colours + colours[tree.n_leaves :], width)


def _draw_support(
    axes: Any, tree: Tree, support: np.ndarray, across: np.ndarray, down: np.ndarray, pitch: float
) -> None:
    """A dot for each branch point, and its number above the branch that leads to it where that is long enough."""
    points = np.arange(tree.n_leaves, tree.n_nodes)
    if support.shape != (tree.n_nodes,) or not ((support[points] >= 0.0) & (support[points] <= 1.0)).all():
        raise DataError(
            f"Support is a probability for each of the {tree.n_nodes} nodes; found shape {support.shape}, values "
            f"{support}."
        )
    axes.scatter(
        across[points], down[points], s=float(np.clip(2.2 * pitch, 3.0, 22.0)), zorder=3, clip_on=False,
        c=[_shade(share) for share in support[points]], edgecolors=INK, linewidths=0.5,
    )  # fmt: skip
    size = min(6.5, 0.5 * pitch)
    room = 72.0 * axes.figure.get_figwidth() * 0.75 / across.max()  # points along the axis for each unit
    for node in points:
        above = 0.0 if tree.parent[node] == ORIGIN else across[tree.parent[node]]
        if size > 3.0 and (across[node] - above) * room > 2.4 * size + 4.0:
            axes.annotate(
                f"{support[node]:.2f}", (across[node], down[node]), xytext=(-3.5, 1.0), textcoords="offset points",
                ha="right", va="bottom", fontsize=size, color=INK,
            )  # fmt: skip


def _draw_names(axes: Any, tree: Tree, down: np.ndarray, colours: list[str], pitch: float, *, grouped: bool) -> None:
    axes.spines["left"].set_visible(False)
    axes.yaxis.tick_right()
    axes.tick_params(axis="y", length=0, pad=2)
    if tree.n_leaves > _NAMED or pitch < 3.5:
        axes.set_yticks([])
        if grouped:
            axes.scatter(
                np.full(tree.n_leaves, axes.get_xlim()[1]), down[: tree.n_leaves], marker="|", s=8,
                c=colours[: tree.n_leaves], clip_on=False,
            )  # fmt: skip
        return
    order = np.argsort(down[: tree.n_leaves])
    axes.set_yticks(np.arange(tree.n_leaves), [tree.names[leaf] for leaf in order], fontsize=min(8.0, 0.8 * pitch))
    for tick, leaf in zip(axes.get_yticklabels(), order, strict=True):
        tick.set_color(colours[leaf])
