"""Search on draws from the prior (thesis section 7.7.2, figures 7.3 and 7.4): the papers' variants and ours.

Data: 200 points of a Dirichlet diffusion tree in 5 dimensions, rate 1, diffusion variance 1. The thesis finds, from
worst to best: "search random" (a subtree is attached at random), "search greedy" (at the best of three places, from a
random tree), "build + leaves" and "build + subtrees" (leaves or subtrees moved, from a tree built leaf by leaf, in 5 to
7 s). All of these run here on our kernels, and only the kernels' CPU time is counted for them; ours is charged with all
of its CPU time. As it stops by the clock, it is given more of that on a machine that does other work.
"""

import common

# isort: split
import time

import experiments
import jax
import numpy as np
from thesis_search import ThesisSearch

from cavity.engine.plots.runs import plot_evidence
from cavity.models.trees.backend import kernels
from cavity.models.trees.prior import TreePrior, tables
from cavity.models.trees.search import search_trees
from cavity.models.trees.shapes.arrays import Leaves, pack
from cavity.models.trees.shapes.sample import sample_data, sample_tree

PRIOR = TreePrior()
OURS = "ours"
NOTE = "CPU seconds of this machine; log joint densities in nats, means over runs, less the best that ours reached."
WORST_FIRST = "The thesis finds, from worst to best, the four variants in this order; EM is our addition."
VARIANTS = {  # name: (start, what moves, inference)
    "search random": ("random", "random", "direct"),
    "search greedy": ("random", "subtrees", "direct"),
    "build + leaves": ("build", "leaves", "direct"),
    "build + subtrees": ("build", "subtrees", "direct"),
    "build + subtrees, EM": ("build", "subtrees", "em"),
}


def theirs(leaves, engine, variant, seed, seconds):
    """(seconds, log joint) of one run of a variant of the papers' search."""
    start, move, inference = VARIANTS[variant]
    run = ThesisSearch(leaves, tables(PRIOR, len(leaves.mean)), engine, seed, inference)
    if start == "build":
        arrays, value = run.build()
    else:
        arrays, value = run.infer(pack(sample_tree(PRIOR, len(leaves.mean), jax.random.key(seed))))
        run.note(value)
    run.search(arrays, value, seconds, move)
    return np.array(run.trace).T


def ours(data, backend, seed, seconds, slower=1.0):
    """(CPU seconds, log joint) of a run of ours until so many CPU seconds, each `slower` by the clock."""
    spent, begun = [], time.process_time()
    found = search_trees(
        data,
        PRIOR,
        key=jax.random.key(seed),
        seconds=slower * seconds,
        variance=1.0,
        backend=backend,
        progress=lambda *_: spent.append(time.process_time() - begun),
        keep=1,
    )
    trace = np.array([spent[-len(found.log_joint) :], found.log_joint])
    return trace[:, trace[0] <= max(seconds, trace[0, 0])]


def value_at(trace, seconds):
    """The best value that a run had reached."""
    reached = trace[1][trace[0] <= seconds]
    return reached.max() if len(reached) else -np.inf


def slowness(arguments):
    """Seconds of the clock for one of the processor, after everything is compiled."""
    _, data = sample_data(PRIOR, arguments.leaves, arguments.columns, jax.random.key(1000))
    ours(data, arguments.backend, 0, 0.2)  # compiles
    leaves, engine = Leaves(data, np.zeros((len(data), 1))), kernels(arguments.backend)
    warm = ThesisSearch(leaves, tables(PRIOR, len(data)), engine, 0, "em")
    warm.search(*warm.infer(pack(sample_tree(PRIOR, len(data), jax.random.key(0)))), 1e9, steps=3)
    clock, processor = time.perf_counter(), time.process_time()
    ours(data, arguments.backend, 0, arguments.seconds)
    return max(1.0, (time.perf_counter() - clock) / (time.process_time() - processor))


def runs_of(arguments, engine):
    """{name: traces}, each less the best that ours reached on the same data, and {name: seconds of the build}."""
    traces = {name: [] for name in (OURS, *arguments.variants)}
    builds, slower = {name: [] for name in arguments.variants}, slowness(arguments)
    for run in range(arguments.runs):
        _, data = sample_data(PRIOR, arguments.leaves, arguments.columns, jax.random.key(arguments.seed + run // 2))
        leaves = Leaves(data, np.zeros((arguments.leaves, 1)))
        traces[OURS].append(ours(data, arguments.backend, run, 1.5 * arguments.seconds, 1.5 * slower))
        best = traces[OURS][-1][1].max()
        for name in arguments.variants:
            trace = theirs(leaves, engine, name, run, arguments.seconds)
            builds[name].append(trace[0][0])
            traces[name].append(trace)
        for name in traces:  # figures show what is missing to our best, which makes data sets comparable
            traces[name][-1] = traces[name][-1] - np.array([[0.0], [best]])
        print(f"run {run}: ours {best:.1f}; missing at {arguments.seconds:g} s: ", end="")
        print(", ".join(f"{name} {-value_at(traces[name][-1], np.inf):.1f}" for name in arguments.variants), flush=True)
    return traces, builds


def tables_of(page, arguments, traces, builds):
    """The tables of the page; in how many runs ours is ahead with a twentieth of the time."""
    grid, early = np.array([0.01, 0.05, 0.25, 1.0]) * arguments.seconds, 0.05 * arguments.seconds
    rows = [[name, *(np.mean([value_at(one, at) for one in runs]) for at in grid)] for name, runs in traces.items()]
    rows = [[name, *("not begun" if value == -np.inf else float(value) for value in values)] for name, *values in rows]
    columns = ["", *(f"{at:g} s" for at in grid)]
    title = f"{arguments.leaves} points in {arguments.columns} dimensions: log joint less our best"
    experiments.table(title, columns, rows, page, f"{NOTE} {WORST_FIRST}")
    wins = {
        name: sum(
            value_at(mine, early) > value_at(other, arguments.seconds)
            for mine, other in zip(traces[OURS], runs, strict=True)
        )
        for name, runs in traces.items()
        if name != OURS
    }
    title = f"runs in which ours at {early:g} s exceeds them at {arguments.seconds:g} s"
    lines = [[name, f"{count} of {arguments.runs}"] for name, count in wins.items()]
    experiments.table(title, ["", "runs"], lines, page, "Wanted: all runs.")
    lines = [[name, float(np.median(builds[name]))] for name in builds if VARIANTS[name][0] == "build"]
    lines += [["ours", float(np.median([one[0][0] for one in traces[OURS]]))], ["the thesis", "5 to 7"]]
    experiments.table("seconds of the sequential build", ["", "median"], lines, page, "CPU seconds over runs.")
    return wins


def main():
    parser = common.options(__doc__.splitlines()[0])
    parser.add_argument("--leaves", type=int, default=200)
    parser.add_argument("--columns", type=int, default=5)
    parser.add_argument("--runs", type=int, default=8)
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=list(VARIANTS), help="of the papers' search")
    parser.add_argument("--seconds", type=float, default=2.0, help="of each run")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.leaves, arguments.runs, arguments.seconds = 50, 2, 0.3
    settings = {"seed": arguments.seed, "backend": arguments.backend, "runs": arguments.runs, "s": arguments.seconds}
    page = experiments.report("trees_search_comparison", arguments, **settings)
    engine = kernels(arguments.backend)
    traces, builds = runs_of(arguments, engine)
    rows = tables_of(page, arguments, traces, builds)
    figure = plot_evidence(
        {name: [tuple(one) for one in runs] for name, runs in traces.items()},
        label="log joint density less our best",
        title=f"{arguments.runs} runs, {arguments.leaves} points in {arguments.columns} dimensions",
    )
    common.save(
        "search_comparison",
        {"search_comparison": figure},
        wins=rows,
        settings=vars(arguments) | {"data": None},
        traces={name: [one[:, :: max(1, one.shape[1] // 200)] for one in runs] for name, runs in traces.items()},
    )


if __name__ == "__main__":
    main()
