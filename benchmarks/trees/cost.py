"""What trees cost against rows N and columns D: messages, search, EM, chains and the Laplace posterior of times.

The thesis (section 7.6.2) has O(N D) for an iteration of messages, O(N D) for an E step and O(k N) for an M step of
order k with its iterations, and O(N^2 D) for a sweep of chains that tries every place for every subtree. CPU seconds,
the least of several, after compilation; slopes are those of a straight line through logarithms. Up to some hundred rows
what does not grow with the data (calls from Python, a step over nodes) weighs as much as what does, so that slopes are
below the powers of the thesis.

    python benchmarks/trees/cost.py [--quick] [--backend jax] [--beside]
"""

import common

# isort: split
import experiments
import harness
import jax
import numpy as np

from cavity.models.trees import hybrid
from cavity.models.trees.backend import kernels
from cavity.models.trees.chains.settings import Settings
from cavity.models.trees.em import em_times
from cavity.models.trees.likelihoods.table import Data
from cavity.models.trees.mcmc import sample_posterior
from cavity.models.trees.prior import TreePrior, tables
from cavity.models.trees.shapes.arrays import Leaves
from cavity.models.trees.shapes.sample import sample_locations, sample_tree

EM, SWEEPS = 10, 6


def problem(n, columns, seed):
    one, two = jax.random.split(jax.random.key(seed))
    tree = sample_tree(TreePrior(), n, one)
    return tree, np.ascontiguousarray(sample_locations(tree, columns, two)[:n])


def least(job, repeats=2):
    """CPU seconds, the least after one call that compiles."""
    job()
    found = []
    for _ in range(repeats):
        begun = harness.cpu_seconds()
        job()
        found.append(harness.cpu_seconds() - begun)
    return max(min(found), 1e-9)


def costs(n, columns, arguments, laplace):
    """{what: CPU seconds of one of it}."""
    tree, values = problem(n, columns, arguments.seed)
    chosen, leaves, table = kernels(arguments.backend), Leaves(values, np.zeros((n, 1))), tables(TreePrior(), n)
    arrays, data = chosen.build(leaves, table, np.arange(n), 0)[0], Data(values)
    steps, many = max(20, 40_000 // n), max(3, 20_000 // n)

    def gradients():
        for _ in range(many):
            chosen.joint_gradient(arrays, leaves, table)

    settings = Settings(prior=TreePrior(), noise=0.01, moves=1.0)

    def chain(draws):
        return lambda: sample_posterior(
            data, jax.random.key(1), draws, settings, chains=1, backend=arguments.backend, progress=False
        )

    found = {
        "messages and gradient": least(gradients) / many,
        "step of a search": least(lambda: chosen.search(arrays, leaves, table, 1, steps)) / steps,
        "sweep of EM": least(lambda: em_times(tree, data, noise=0.01, iterations=EM), 1) / EM,
        "sweep of a chain": (least(chain(3 * SWEEPS), 1) - least(chain(SWEEPS), 1)) / (2 * SWEEPS),
    }
    if laplace:
        found["posterior of times"] = least(lambda: hybrid(tree, data, noise=0.01), 1)
    return found


def slope(sizes, seconds):
    return float(np.polyfit(np.log(sizes), np.log(np.maximum(seconds, 1e-9)), 1)[0])


def main():
    parser = common.options(__doc__)
    arguments = parser.parse_args()
    words = experiments.circumstances(arguments)
    report = harness.Report("trees_cost", seed=arguments.seed, backend=arguments.backend, **words)
    rows = (50, 100, 200) if arguments.quick else (50, 100, 200, 400, 800)
    widths = (2, 8, 32) if arguments.quick else (2, 8, 32, 128)
    note = (
        "Milliseconds of CPU of one of each, and the slope of its logarithm. A move of a chain takes a subtree off and "
        "weighs all places for it; a sweep has as many as there are branch points."
    )
    for what, cases in (("N", [(n, 10) for n in rows]), ("D", [(100, d) for d in widths])):
        sizes = [n if what == "N" else d for n, d in cases]
        found = [costs(n, d, arguments, laplace=n <= 100 and d <= 10) for n, d in cases]
        names = list(max(found, key=len))
        lines, kept = [], {}
        for name in names:
            own = [(size, each[name]) for size, each in zip(sizes, found, strict=True) if name in each]
            cells = [f"{1e3 * each[name]:.3g}" if name in each else "-" for each in found]
            several = f"{what}^{slope(*zip(*own, strict=True)):.2f}" if len(own) > 1 else "-"
            lines.append([name, *cells, several])
            kept[name] = own
        title = f"against {what}, {'D = 10' if what == 'N' else 'N = 100'}"
        report.table(title, note, ("", *(f"{what} = {size}" for size in sizes), "slope"), lines, kept)


if __name__ == "__main__":
    main()
