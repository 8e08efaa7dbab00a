"""The same key gives the same numbers to the last bit, whatever a process has compiled or loaded before."""

import importlib
import os
import pkgutil
import subprocess
import sys

import pytest

SCRIPT = """
import sys
import jax, numpy as np
from cavity.models.trees.chains.settings import Settings
from cavity.models.trees.likelihoods.table import Data
from cavity.models.trees.mcmc import sample_posterior
from cavity.models.trees.prior import TreePrior
from cavity.models.trees.search import search_trees

values = np.random.default_rng(0).standard_normal((30, 7)).cumsum(axis=0)

def search(prior):
    found = search_trees(Data(values), prior, key=jax.random.key(0), steps=200, noise=0.1, backend="numba",
                         learn={"variance", "rate"})
    return [float(value).hex() for value in found.log_joint] + [float(found.best.log_evidence).hex()]

def chain():
    settings = Settings(learn=frozenset({"variance", "rate"}), noise=0.1, moves=2.0)
    found = sample_posterior(Data(values), jax.random.key(1), 5, settings, chains=1, backend="numba", progress=False)
    return [float(value).hex() for value in found.chains["log_joint"][0]]

jobs = {
    "binary": lambda: search(TreePrior()), "many": lambda: search(TreePrior(1.0, 0.2)), "chain": chain,
}
found = {name: jobs[name]() for name in sys.argv[1:]}
print(sorted(found.items()))
"""


def numbers(folder, *jobs):
    """What a process of its own prints, with the kernels that the folder keeps, its first calls in this order."""
    surroundings = os.environ | {"NUMBA_CACHE_DIR": str(folder)}
    done = subprocess.run([sys.executable, "-c", SCRIPT, *jobs], env=surroundings, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_process_that_compiles_finds_what_later_ones_do(tmp_path):
    """Cold, warm, and warm with other first calls: searches and chains end at the same bits."""
    pytest.importorskip("numba")
    cold = numbers(tmp_path, "binary", "many", "chain")
    assert numbers(tmp_path, "binary", "many", "chain") == cold
    assert numbers(tmp_path, "chain", "many", "binary") == cold


def test_no_kernel_lets_the_compiler_reorder_sums():
    """The reason why the slow test holds: copies of a kernel, each optimised where it is called, compute the same."""
    pytest.importorskip("numba")
    from numba.core.dispatcher import Dispatcher

    package = importlib.import_module("cavity.models.trees.numba_kernels")
    modules = [
        importlib.import_module(f"{package.__name__}.{one.name}") for one in pkgutil.iter_modules(package.__path__)
    ]
    found = [each for module in modules for each in vars(module).values() if isinstance(each, Dispatcher)]
    assert len(found) > 20
    assert not any(each.targetoptions.get("fastmath") for each in found)
