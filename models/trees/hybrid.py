"""The posterior of the divergence times of a given tree, with diffusion variance and rate: a model and the engine.

Once a hybrid of EP and variational messages, which gave the module its name: see docs/decisions/0028.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...engine.evidence.laplace import laplace_approximation
from ...factors.errors import DataError
from ..diffusion_tree import diffusion_times
from .em import Gamma, check
from .inputs import structure
from .likelihoods.table import Data
from .prior import TreePrior, log_structure
from .tree import Tree


class Hybrid(NamedTuple):
    """What `hybrid` found.

    Attributes:
        tree: with the posterior means of its times.
        time_mean, time_sd: (nodes,) of the posterior of each time; 1 and 0 for leaves.
        variance: mean and sd of the diffusion variance.
        rate: the gamma distribution with the mean and variance of the rate.
        log_evidence: of data and structure, times integrated.
        converged: whether the mode was reached, around which the posterior was found.
        diagnosis: a sentence.
    """

    tree: Tree
    time_mean: np.ndarray
    time_sd: np.ndarray
    variance: tuple[float, float]
    rate: Gamma
    log_evidence: float
    converged: bool
    diagnosis: str


def hybrid(
    tree: Tree,
    data: Data,
    prior: TreePrior | None = None,
    *,
    variance: tuple[float, float] = (1.0, 1.0),
    rate: tuple[float, float] = (1.0, 1.0),
    noise: float = 0.0,
    seed: int = 0,
) -> Hybrid:
    """Posterior of the divergence times of a tree, and its log evidence (structure included, times integrated).

    It is that of `diffusion_times`, by `laplace_approximation` with the locations integrated out.

    Args:
        tree: the structure; its times are not used.
        data: a table of continuous columns, gaps allowed.
        prior: structure parameters; its divergence function is that of the learned rate.
        variance: gamma prior of the diffusion variance (mean, variance).
        rate: Gamma prior of the rate (shape, rate).
        noise: variance of the noise.
        seed: of the draws.

    Returns:
        `Hybrid`.

    Raises:
        DataError: binary columns, numbers out of range.
        UnsupportedError: a divergence function other than c / (1 - t).

    Source: knowles2011trees, tierney1986accurate.
    """
    prior = prior or TreePrior()
    check(tree, data, prior, "time")
    if data.binary.any() or tree.n_leaves < 2:
        raise DataError("The hybrid takes two or more rows of continuous columns. For binary ones use em_times.")
    if min(*variance, *rate) <= 0.0 or noise < 0.0:
        raise DataError("Priors take positive numbers, the noise a non-negative one.")
    given, n = structure(tree, prior), tree.n_leaves
    levels = np.bincount(given["descendant"]).max()
    start = {"gap": np.full(tree.n_nodes - n, 1.0 / levels)}  # at times in order, none of them late
    model = diffusion_times(data.shape[1], noise, variance, rate)
    found = laplace_approximation(model, {**given, "y": data.values}, integrate=["location"], start=start, seed=seed)
    time, c, s = (found[name] for name in ("time", "rate", "variance"))
    mean, sd = np.append(np.ones(n), time.mean), np.append(np.zeros(n), time.sd)
    depth = np.append(np.full(n, np.inf), -np.log1p(-time.mean))
    learned = Gamma(float(c.mean**2 / c.variance), float(c.mean / c.variance))
    evidence = found.log_evidence - float(np.log(given["share"]).sum()) + log_structure(tree, prior)
    placed = Tree(tree.parent, depth, tree.names)
    both = float(s.mean), float(s.sd)
    return Hybrid(placed, mean, sd, both, learned, evidence, found.converged, found.diagnosis)
