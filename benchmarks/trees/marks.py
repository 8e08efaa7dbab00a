"""The marks that make one function of a loop over tree nodes, on against off: what a release of JAX that does not know
them costs (engine/support/machine_code.py).

The same functions compiled twice in one process; their numbers agree to rounding, which is checked first.
"""

import common

# isort: split
import warnings

import harness
import jax
import numpy as np

from cavity.engine.support import machine_code
from cavity.factors.errors import CavityWarning
from cavity.models.trees.backend import kernels
from cavity.models.trees.jax_kernels.gradient import joint_gradient_
from cavity.models.trees.jax_kernels.moves import subtree_moves_
from cavity.models.trees.jax_kernels.search import steps_
from cavity.models.trees.jax_kernels.sweep import sweep_
from cavity.models.trees.prior import TreePrior, tables
from cavity.models.trees.shapes.arrays import Leaves
from cavity.models.trees.shapes.sample import sample_locations, sample_tree

SHAPES = ((63, 2), (200, 5), (1000, 10))  # leaves, columns


def compiled(function, arguments, marked):
    """The function as a kernel, with or without marks, and its results."""
    known, machine_code.MARKED = machine_code.MARKED, marked
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CavityWarning)  # that loops are without marks is what is measured
            kernel = machine_code.Kernel(function)
            return kernel, kernel(*arguments)
    finally:
        machine_code.MARKED = known


def compare(report, n, columns, steps, limits):
    one, two = jax.random.split(jax.random.key(0))
    drawn = sample_tree(TreePrior(), n, one)
    leaves = Leaves(np.ascontiguousarray(sample_locations(drawn, columns, two)[:n]), np.zeros((n, 1)))
    table = tables(TreePrior(), n)
    order = np.arange(n, dtype=np.int32)
    arrays, _ = kernels("jax").build(leaves, table, np.arange(n), 0)
    of_tree = arrays, leaves
    jobs = {
        "both sweeps": (sweep_, of_tree, 1),
        "log joint and gradient": (joint_gradient_, (*of_tree, table), 1),
        "greedy search step": (steps_, (*of_tree, table, order, np.uint32(1), np.int32(0), np.int32(steps)), steps),
        "subtree move": (subtree_moves_, (*of_tree, table, np.uint32(1), np.int32(steps), 0.25), steps),
    }
    for what, (function, arguments, units) in jobs.items():
        both = {name: compiled(function, arguments, name == "marks on") for name in ("marks off", "marks on")}
        off, on = (jax.tree.leaves(found) for _, found in both.values())
        for plain, known in zip(off, on, strict=True):
            np.testing.assert_allclose(plain, known, rtol=1e-8, atol=1e-8)
        runs = {name: counted(kernel, arguments, units) for name, (kernel, _) in both.items()}
        report.add(harness.compare(f"N = {n}, D = {columns}: {what}", runs, **limits))


def counted(kernel, arguments, units):
    """A contestant that runs a kernel for so many units."""

    def run():
        kernel(*arguments)
        return units

    return run


def main():
    parser = common.options(__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5, help="warm rounds")
    parser.add_argument("--budget", type=float, default=20.0, help="seconds of warm rounds for each contestant")
    options = parser.parse_args()
    if not machine_code.MARKED:
        raise SystemExit(
            f"JAX {jax.__version__} gets no marks: install a tested release, pip install 'cavity[kernels]'."
        )
    report = harness.Report("trees_marks")
    limits = {"repeats": options.repeats, "budget": options.budget}
    for n, columns in SHAPES[:1] if options.quick else SHAPES:
        compare(report, n, columns, 5 if options.quick else 20, limits)


if __name__ == "__main__":
    main()
