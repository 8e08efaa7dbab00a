"""The C comparator: compiled to a temporary folder, called through ctypes. For benchmarks of diffusion trees only."""

import ctypes
import subprocess
import tempfile
from pathlib import Path

import numpy as np

FLAGS = ["-O3", "-march=native", "-ffast-math", "-fno-finite-math-only", "-mprefer-vector-width=512"]
DOUBLES = np.ctypeslib.ndpointer(np.float64, flags="C")
INTEGERS = np.ctypeslib.ndpointer(np.int32, flags="C")


def compiled():
    """The library; needs gcc."""
    folder = Path(tempfile.mkdtemp(prefix="cavity-trees-"))
    target = folder / "kernels.so"
    source = Path(__file__).with_name("kernels.c")
    subprocess.run(["gcc", *FLAGS, "-shared", "-fPIC", "-o", target, source, "-lm"], check=True)
    library = ctypes.CDLL(str(target))
    i, n, x, tree = ctypes.c_int, ctypes.c_int64, ctypes.c_double, ctypes.c_void_p
    signatures = {
        "tree_new": (tree, i, i, x, INTEGERS, DOUBLES, INTEGERS, DOUBLES, DOUBLES, DOUBLES, DOUBLES),
        "tree_free": (None, tree),
        "sweep_up": (x, tree),
        "value_and_gradient": (x, tree, DOUBLES, DOUBLES),
        "search": (x, tree, ctypes.c_uint64, n),
        "repeat_up": (None, tree, n),
        "repeat_gradient": (None, tree, n, DOUBLES, DOUBLES),
    }
    for name, (result, *arguments) in signatures.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


class Tree:
    """A binary tree inside the library: Dirichlet diffusion tree, rate only, one variance for each leaf."""

    def __init__(self, library, arrays, leaves, tables):
        constant, rate, square = tables.coefficients
        if constant or square or np.isfinite(tables.log_new[3]) or leaves.variance.shape[1] != 1:
            raise ValueError("The C comparator does Dirichlet diffusion trees with a(t) = c / (1 - t) only.")
        self.library, (self.n, self.columns) = library, leaves.mean.shape
        self.kept = [np.ascontiguousarray(part) for part in (tables.harmonic, tables.log_follow)]
        given = (arrays.parent, arrays.depth, arrays.count, leaves.mean, leaves.variance[:, 0])
        parent, depth, count, mean, variance = (np.ascontiguousarray(part) for part in given)
        self.tree = library.tree_new(self.n, self.columns, rate, parent, depth, count, mean, variance, *self.kept)
        self.by_depth, self.by_scale = np.zeros(2 * self.n), np.zeros(self.columns)

    def evidence(self):
        return self.library.sweep_up(self.tree)

    def joint_gradient(self):
        value = self.library.value_and_gradient(self.tree, self.by_depth, self.by_scale)
        return value, self.by_depth.copy(), self.by_scale.copy()

    def search(self, seed, steps):
        return self.library.search(self.tree, seed, steps)

    def repeat_up(self, times):
        self.library.repeat_up(self.tree, times)

    def repeat_gradient(self, times):
        self.library.repeat_gradient(self.tree, times, self.by_depth, self.by_scale)

    def __del__(self):
        if getattr(self, "tree", None):
            self.library.tree_free(self.tree)
