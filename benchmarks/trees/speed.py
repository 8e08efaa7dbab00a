"""Speed of diffusion trees: kernels in JAX and numba over C, whole jobs beside the papers' times, cost against N and D.

One process, one thread, all contestants in turns; data are drawn from the prior (c = 1, variance 1). C is the
yardstick (`kernels.c`), with the same algorithm. Gradients start from parents and depths, as a caller has them.
"""

import common

# isort: split
import time

import c_kernels
import harness
import jax
import numpy as np
from fractal import fractal
from numba import njit

from cavity.models.trees.backend import kernels
from cavity.models.trees.likelihoods.times import optimise_times
from cavity.models.trees.numba_kernels.gradient import value_and_gradient
from cavity.models.trees.numba_kernels.messages import sweep_up
from cavity.models.trees.numba_kernels.prior import prior_of
from cavity.models.trees.numba_kernels.state import exact, load, preorder, whole
from cavity.models.trees.prior import TreePrior, tables
from cavity.models.trees.shapes.arrays import Leaves
from cavity.models.trees.shapes.sample import sample_locations, sample_tree

SHAPES = ((63, 2), (200, 5), (200, 10), (2000, 171))
TARGETS = "targets: numba within 1.5 of C, aim 1.1; JAX gradient within 10, aim 5; JAX step within 20, aim 10"


@njit
def repeat_up(arrays, leaves, times):
    s = load(arrays, leaves)
    order = np.empty(len(s.parent), np.int64)
    n, total = preorder(s, order), 0.0
    for _ in range(times):
        total += sweep_up(s, order, n)
    return total


@njit
def repeat_gradient(arrays, leaves, prior, times):
    total = 0.0
    for _ in range(times):
        total += value_and_gradient(arrays, leaves, prior)[0]
    return total


def problem(n, columns, seed=0):
    """Leaves drawn from the prior, tables, and a built tree."""
    one, two = jax.random.split(jax.random.key(seed))
    tree = sample_tree(TreePrior(), n, one)
    mean = np.ascontiguousarray(sample_locations(tree, columns, two)[:n])
    leaves, table = Leaves(mean, np.zeros((n, 1))), tables(TreePrior(), n)
    return leaves, table, kernels("numba").build(leaves, table, np.arange(n), 0)[0]


def counted(job, times):
    """A contestant that does its job so many times."""

    def run():
        job()
        return times

    return run


def compare_kernels(report, library, n, columns, options):
    leaves, table, arrays = problem(n, columns)
    c = c_kernels.Tree(library, arrays, leaves, table)
    fast, jax_kernels, prior = kernels("numba"), kernels("jax"), prior_of(table)
    whole_arrays, exact_leaves = whole(arrays), exact(leaves)
    times = max(5, 400_000 // (n * columns))
    steps = max(20, 200_000 // (n * columns))
    value, by_depth, by_scale = c.joint_gradient()
    for one in (fast, jax_kernels):
        found = one.joint_gradient(arrays, leaves, table)
        np.testing.assert_allclose(found[0], value, rtol=1e-9)
        np.testing.assert_allclose(found[1], by_depth, rtol=1e-8, atol=1e-8 * np.abs(by_depth).max())
        np.testing.assert_allclose(found[2], by_scale, rtol=1e-8, atol=1e-8 * np.abs(by_scale).max())
    limits = {"repeats": options.repeats, "budget": options.budget}

    def compare(what, runs, **facts):
        result = harness.compare(f"N = {n}, D = {columns}: {what}", runs, **limits)
        report.add(result, **facts)
        return {row["name"]: row["cpu"]["min"] for row in result["rows"]}

    sweeps = {
        "numba": counted(lambda: repeat_up(whole_arrays, exact_leaves, times), times),
        "C": counted(lambda: c.repeat_up(times), times),
    }
    compare("upward sweep", sweeps)
    gradients = {
        "JAX, one call": counted(lambda: jax_kernels.joint_gradient(arrays, leaves, table), 1),
        "numba, one call": counted(lambda: fast.joint_gradient(arrays, leaves, table), 1),
        "numba": counted(lambda: repeat_gradient(whole_arrays, exact_leaves, prior, times), times),
        "C": counted(lambda: c.repeat_gradient(times), times),
    }
    compare("sweeps, log joint, gradients", gradients, note=TARGETS)
    start = fast.search(arrays, leaves, table, 1, 10 * n)[0]
    c = c_kernels.Tree(library, start, leaves, table)
    searches = {
        "JAX": counted(lambda: jax_kernels.search(start, leaves, table, 2, steps), steps),
        "numba": counted(lambda: fast.search(start, leaves, table, 2, steps), steps),
        "C": counted(lambda: c.search(2, steps), steps),
    }
    seconds = compare("greedy search step", searches, note=TARGETS)
    report.facts("steps per second", **{name: 1.0 / max(one, 1e-9) for name, one in seconds.items()})


def whole_job(name, leaves, table, steps, optimised):
    """Build, optimise times, search, optimise times: CPU seconds of the parts."""
    chosen, n = kernels(name), len(leaves.mean)

    def clocked(job):
        begun = time.process_time()
        return job(), time.process_time() - begun

    (arrays, _), build = clocked(lambda: chosen.build(leaves, table, np.arange(n), 0))
    (arrays, joint, _), search = clocked(lambda: chosen.search(arrays, leaves, table, 1, steps))
    spent = 0.0
    if optimised:
        found, spent = clocked(lambda: optimise_times(arrays, leaves, table, backend=name))
        joint = found.log_joint
    return {"build": build, "search": search, "times": spent, "all": build + search + spent, "log joint": joint}


def jobs(names, options):
    points = np.ascontiguousarray(fractal(0)[0])
    small = (Leaves(points, np.zeros((63, 1))), tables(TreePrior(), 63))
    cases = [
        ("fractal N=63 D=2, 100 steps", small, 100, "7 s", ".02 / .1 s, aim .002 / .025"),
        ("N=200 D=5, 0 steps", problem(200, 5)[:2], 0, "5-7 s", "build .02 / .2 s, aim .003 / .06"),
    ]
    if not options.quick:
        cases.append(("N=2000 D=171, 200 steps", problem(2000, 171)[:2], 200, "48 min", "10 / 60 s, aim 3 / 25"))
    if options.full:
        cases.append(("N=20000 D=171, 200 steps", problem(20_000, 171)[:2], 200, "-", "-"))
    rows, kept = [], []
    for title, (leaves, table), steps, paper, target in cases:
        for name in names:
            if name == "jax" and len(leaves.mean) > 2000:
                continue
            calls = ("cold", "warm", "warm") if len(leaves.mean) < 2000 else ("warm",)
            for call in calls:
                done = whole_job(name, leaves, table, steps, steps > 0)
                kept.append({"job": title, "back end": name, "call": call, **done})
            numbers = [done[part] for part in ("build", "search", "times", "all", "log joint")]
            rows.append([title, name, *numbers, paper, target])
    columns = ["job (warm, CPU s)", "back end", "build", "search", "times", "all", "log joint", "paper"]
    common.table("whole jobs", [*columns, "target numba / JAX"], rows)
    return kept


def scaling(options):
    """Seconds of a build and of a search step against N and D, log-log slopes, and what N = 20,000 costs."""
    chosen = kernels("numba")
    counts = (100, 200, 400, 800) if options.quick else (125, 250, 500, 1000, 2000, 4000)
    widths = (2, 8, 32, 128)
    cost = {}
    for what, shapes in (("N", [(n, 10) for n in counts]), ("D", [(250, d) for d in widths])):
        for n, columns in shapes:
            leaves, table, arrays = problem(n, columns)
            steps = max(20, 100_000 // n)
            best = [np.inf, np.inf, np.inf]
            for _ in range(3):
                clock = [time.process_time()]
                chosen.build(leaves, table, np.arange(n), 0)
                clock.append(time.process_time())
                chosen.search(arrays, leaves, table, 0, steps)
                clock.append(time.process_time())
                for _ in range(10):
                    chosen.joint_gradient(arrays, leaves, table)
                clock.append(time.process_time())
                best = np.minimum(best, np.diff(clock) / (1, steps, 10))
            cost.setdefault(what, []).append((n if what == "N" else columns, *best))
    names = ("build", "search step", "gradient")
    slopes = {}
    for what, rows in cost.items():
        table = np.array(rows)
        common.table(
            f"numba: CPU seconds against {what}", [what, *names], [[f"{row[0]:.0f}", *row[1:]] for row in rows]
        )
        for k, name in enumerate(names):
            slope, offset = np.polyfit(np.log(table[-4:, 0]), np.log(table[-4:, 1 + k]), 1)
            slopes[f"{name} against {what}"] = slope
            more = f"; N = 20,000, D = 10: {np.exp(offset) * 20_000**slope:.3g} s" if what == "N" else ""
            print(f"    {name}: {what}^{slope:.2f}{more}")
    return cost, slopes


def picture(cost):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(9, 4), sharey=True)
    for axis, (what, rows) in zip(axes, cost.items(), strict=True):
        for k, name in enumerate(("build", "search step", "gradient")):
            axis.loglog([row[0] for row in rows], [row[1 + k] for row in rows], "o-", label=name)
        axis.set_xlabel({"N": "leaves (D = 10)", "D": "columns (N = 250)"}[what])
    axes[0].set_ylabel("CPU seconds, numba")
    axes[0].legend()
    return figure


def main():
    parser = common.options(__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5, help="warm rounds")
    parser.add_argument("--budget", type=float, default=20.0, help="seconds of warm rounds for each contestant")
    parser.add_argument("--full", action="store_true", help="also N = 20,000, measured (numba)")
    parser.add_argument("--without-jax-jobs", action="store_true", help="whole jobs with numba only")
    options = parser.parse_args()
    report = harness.Report("trees_speed")
    library = c_kernels.compiled()
    for n, columns in SHAPES[:2] if options.quick else SHAPES:
        compare_kernels(report, library, n, columns, options)
    done = jobs(("numba",) if options.without_jax_jobs else ("numba", "jax"), options)
    cost, slopes = scaling(options)
    common.save("speed", {"speed": picture(cost)}, jobs=done, cost=cost, slopes=slopes)


if __name__ == "__main__":
    main()
