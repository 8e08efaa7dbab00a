"""The scores of all places for a subtree, by either back end, from messages that are given.

The package's own loops score as they go; searches that are compared with them, and tests, ask for all at once.
"""

from cavity.engine.support.machine_code import Kernel
from cavity.models.trees.jax_kernels import plan
from cavity.models.trees.jax_kernels import score as scores


def score_of(kernels):
    """`score(arrays, messages, subtree, tables, fractions)`: gains in log joint density on branches and at points."""
    if "numba" in kernels.__name__:
        import scores_by_numba

        return scores_by_numba.score
    return by_jax


def _by_jax(arrays, *arguments):
    links = plan.links_(arrays)
    found = scores.score_on(links, plan.queue_(links, plan.top_(links)), arrays, *arguments)
    return found.branch, found.point


by_jax = Kernel(_by_jax)
