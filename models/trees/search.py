"""Search over trees: sequential building, greedy reattachment of subtrees, kicks, restarts, and a list of the best."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from ...engine.mcmc.bar import progress_bar
from ...engine.mcmc.keys import generator
from ...engine.support.user_numbers import number
from ...factors.errors import DataError, ModelError
from .backend import Kernels
from .chains.fitted import Hyper, Problem, State, first_state, log_mass, refitted, settled, tree_draws
from .chains.hyper import LEARNABLE, Hyperpriors
from .fitted_tree import FittedTree, fit_tree
from .likelihoods.leaves import per_column
from .likelihoods.table import Data
from .prior import TreePrior
from .shapes.arrays import FREE, Arrays
from .tree import Tree

BLOCK = 100  # search steps in one call of the kernels: one compilation whatever the number of steps
SITE_BLOCK = 25  # the same where sites of binary columns are fitted again after each
KICK = 6  # random moves of subtrees that leave a local optimum
GAIN = 0.05  # nats: a round that gains less has found a local optimum


@dataclasses.dataclass(frozen=True, eq=False)
class Fitted:
    """A tree found by a search.

    Attributes:
        tree: structure and divergence times.
        hyper: its hyperparameters: `prior`, `variance` (D,), `noise`.
        log_joint: log density of data, structure, depths and learned hyperparameters.
        log_evidence: log density of the data given all of these.
        log_mass: log joint with depths integrated out, about (`fitted.log_mass`): what trees of different numbers of
            branch points are compared by.
        weight: share of the tree in the list, by `log_mass`.
    """

    tree: Tree
    hyper: Hyper
    log_joint: float
    log_evidence: float
    log_mass: float
    weight: float
    state: State = dataclasses.field(repr=False)


@dataclasses.dataclass(frozen=True, eq=False)
class Search:
    """What a search found.

    Attributes:
        trees: the best trees of different structure, best first.
        seconds, steps, log_joint: (rounds,) when each round ended, search steps done by then, and the best log joint.
    """

    trees: tuple[Fitted, ...]
    seconds: np.ndarray
    steps: np.ndarray
    log_joint: np.ndarray

    problem: Problem = dataclasses.field(repr=False)

    @property
    def best(self) -> Fitted:
        """The best tree."""
        return self.trees[0]

    @property
    def diagnosis(self) -> str:
        """What the search did, and what more time may bring."""
        steps, seconds = int(self.steps[-1]), float(self.seconds[-1])
        done = f"{steps} steps in {seconds:.1f} s"
        if len(self.steps) < 2:
            return f"{done}: a tree as it was built. A search (steps=, seconds=) improves it."
        half = int(np.searchsorted(self.steps, 0.5 * steps, side="right")) - 1
        gained = float(self.log_joint[-1] - self.log_joint[half])
        since = f"the last {steps - int(self.steps[half])} gained {gained:.3g} nats of log joint density"
        if gained < GAIN:
            return f"{done}; {since}: a longer search may find little more."
        return f"{done}; {since}: it still climbs, and {seconds:.0f} s more may gain some of that again."

    def draws(self, n: int, key: Any) -> list[FittedTree]:
        """Trees of a short chain that starts from the best one, its hyperparameters fixed, ready for predictions.

        They predict better than the best trees themselves, which are surer of each path than the data are. For draws
        that have forgotten where they started see `sample_posterior`.

        Args:
            n: how many, a sweep of moves apart.
            key: a `jax.random.key`.
        """
        chain = tree_draws(self.problem, self.best.state, generator(key), n)
        return [predictor(self.problem, state) for state in chain]


def predictor(problem: Problem, state: State) -> FittedTree:
    """A tree of a search, ready for predictions."""
    hyper, binary = state.hyper, problem.data.binary
    noise = hyper.noise / hyper.variance
    shared = state.leaves.variance.shape[1] == 1
    return fit_tree(
        state.arrays,
        state.leaves,
        hyper.prior,
        scale=np.sqrt(hyper.variance),
        noise=noise[0] if shared else noise,
        binary=binary,
        backend=problem.engine,
    )


def search_trees(
    data: Any,
    prior: TreePrior | None = None,
    *,
    key: Any,
    steps: int | None = None,
    seconds: float | None = None,
    restarts: int = 1,
    keep: int = 10,
    variance: Any = 1.0,
    noise: float = 0.0,
    learn: Collection[str] = (),
    priors: Hyperpriors | None = None,
    backend: str | Kernels = "jax",
    names: tuple[str, ...] = (),
    progress: bool | Callable[..., None] | None = False,
) -> Search:
    """Search for the trees of largest joint density of data, structure and divergence times.

    A tree is built by adding the leaves in a random order, each at its best place. Then subtrees are detached at
    random and attached where the joint density is largest, every branch and branch point at several times being
    scored exactly; all times are optimised together between rounds; a local optimum is left by a few random moves, and
    returned to where these lead nowhere. Trees with many children, and trees with different hyperparameters, are
    compared by masses, in which depths are integrated out: densities of different dimension or scale do not compare.

    Args:
        data: (N, D) numbers, NaN for missing entries, or a `Data` with binary columns.
        prior: the prior of trees; by default the Dirichlet diffusion tree with rate 1.
        key: a `jax.random.key`; the same key gives the same trees (with `seconds`, the same until time runs out).
        steps: subtrees to move, in all; by default 10 N.
        seconds: end after about so many seconds instead.
        restarts: builds from different orders of the leaves, among which steps or seconds are divided.
        keep: how many trees of different structure to return.
        variance: () or (D,) diffusion variance over unit time, the start where it is learned.
        noise: variance of Gaussian noise of continuous columns, the start where it is learned.
        learn: any of "variance", "noise", "rate", "concentration", "discount": maximised, under `priors`. One variance
            is learned where one is given, else one for each column.
        priors: priors of what is learned.
        backend: "jax" or "numba".
        names: names of the leaves, one for each row.
        progress: True shows a bar, None one on a terminal; a function is called after each round with the steps done,
            their total (with `seconds`: whole seconds) and the best log joint density in words.

    Returns:
        The best trees and how the search went.

    Raises:
        DataError: bad data, see `Data`. ModelError: contradictory settings. UnsupportedError: no numba.

    Source: knowles2012thesis.
    """
    data = data if isinstance(data, Data) else Data(data)
    prior = TreePrior() if prior is None else prior
    problem, hyper = _posed(data, prior, variance, noise, learn, priors, backend)
    _check_call(data, steps, seconds, restarts, keep, names)
    budget = _Budget(10 * data.shape[0] if steps is None and seconds is None else steps, seconds, restarts)
    with progress_bar(progress, "step" if seconds is None else "second") as show:
        record = _Record(keep, prior.binary and not problem.learn, generator(key), show)
        _search(problem, hyper, budget, record)
    return record.result(problem, names)


def _posed(
    data: Data,
    prior: TreePrior,
    variance: Any,
    noise: float,
    learn: Collection[str],
    priors: Hyperpriors | None,
    backend: str | Kernels,
) -> tuple[Problem, Hyper]:
    """What is searched for, and the hyperparameters to start from."""
    problem = Problem(
        data=data,
        learn=_checked(learn, prior, noise, data),
        priors=priors or Hyperpriors(),
        shared=np.ndim(variance) == 0,
        backend=backend,
    )
    variances = per_column("variance", variance, data.shape[1], positive=True)
    return problem, Hyper(_start(prior, problem.learn), variances, float(noise))


def _search(problem: Problem, hyper: Hyper, budget: _Budget, record: _Record) -> None:
    """Climbs from as many trees as there are restarts, and records what is found."""
    for _ in range(budget.parts):
        budget.restart()
        _climb(problem, _begun(problem, hyper, record.random), record.random, budget, record)


def _check_call(
    data: Data, steps: int | None, seconds: float | None, restarts: int, keep: int, names: tuple[str, ...]
) -> None:
    """ModelError for a search without an end, or one that keeps nothing; DataError for names of other rows."""
    if steps is not None and seconds is not None:
        raise ModelError("A search ends after steps= or after seconds=, one of the two.")
    if restarts < 1 or keep < 1 or (steps is not None and steps < 0) or (seconds is not None and seconds <= 0.0):
        raise ModelError(
            f"A search takes restarts >= 1, keep >= 1, steps >= 0 and seconds > 0; found {restarts}, {keep}, {steps}, "
            f"{seconds}."
        )
    if len(names) not in (0, data.shape[0]):
        raise DataError(f"names= is one name for each of the {data.shape[0]} rows; found {len(names)}.")


def _begun(problem: Problem, hyper: Hyper, random: np.random.Generator) -> State:
    """A tree to search on from. Where hyperparameters are learned it is built again with the first ones learned, which
    may be far from where they started, and the better of the two is kept."""

    def built(hyper: Hyper, again: bool) -> State:
        order = random.permutation(problem.data.shape[0])
        return settled(problem, first_state(problem, hyper, order, _seed(random)), random, again=again)

    state = built(hyper, True)
    if not problem.learn:
        return state
    again = built(state.hyper, False)
    return max(state, again, key=lambda each: log_mass(problem, each, random))


def _climb(problem: Problem, state: State, random: np.random.Generator, budget: _Budget, record: _Record) -> None:
    """Rounds of greedy search from one tree, with kicks from the best of them, until the budget is spent."""
    best, rank = state, record.add(problem, state, budget)
    while budget.left() and len(state.leaves.mean) > 2:
        state = settled(problem, _greedy(problem, state, random, budget), random, again=True)
        gain = record.add(problem, state, budget) - rank
        if gain > 0.0:
            best, rank = state, rank + gain
        if gain < GAIN:
            state = _kicked(problem, best, random)


def _greedy(problem: Problem, state: State, random: np.random.Generator, budget: _Budget) -> State:
    """A round: about two moves for each leaf, and sites of binary columns fitted again after every few of them."""
    binary = bool(problem.data.binary.any())
    block, done = (SITE_BLOCK if binary else BLOCK), 0
    while done < 2 * len(state.leaves.mean) and budget.left():
        some = budget.room(block)
        arrays, log_joint, _ = problem.engine.search(state.arrays, state.leaves, state.table, _seed(random), some)
        trial = dataclasses.replace(state, arrays=arrays, log_joint=float(log_joint) + state.shift)
        if binary:
            trial = refitted(problem, trial)
            trial = trial if trial.log_joint > state.log_joint or not state.hyper.prior.binary else state
        state, done = trial, done + some
        budget.spend(some)
    return state


def _kicked(problem: Problem, state: State, random: np.random.Generator) -> State:
    arrays, _, _ = problem.engine.subtree_moves(state.arrays, state.leaves, state.table, _seed(random), KICK, 1.0)
    return refitted(problem, dataclasses.replace(state, arrays=arrays))


class _Budget:
    """Steps or seconds, in equal parts for each restart."""

    def __init__(self, steps: int | None, seconds: float | None, restarts: int) -> None:
        self.steps, self.seconds, self.parts = steps, seconds, restarts
        self.begun, self.part, self.done = time.perf_counter(), 0, 0

    def restart(self) -> None:
        self.part += 1

    def spend(self, steps: int) -> None:
        self.done += steps

    def left(self) -> bool:
        share = self.part / self.parts
        if self.steps is not None:
            return self.done < self.steps * share
        return self.elapsed() < (self.seconds or 0.0) * share

    def room(self, block: int) -> int:
        """The steps of the next call: a block, or what is left of this part."""
        if self.steps is None:
            return block
        return min(block, -(-self.steps * self.part // self.parts) - self.done)

    def progress(self) -> tuple[int, int]:
        if self.steps is not None:
            return min(self.done, self.steps), self.steps
        return min(int(self.elapsed()), int(self.seconds or 0)), int(self.seconds or 0)

    def elapsed(self) -> float:
        return time.perf_counter() - self.begun


class _Record:
    """The best trees so far, one for each structure, and the trace."""

    def __init__(self, keep: int, comparable: bool, random: np.random.Generator, show: Callable[..., None]) -> None:
        self.keep, self.comparable, self.random, self.show = keep, comparable, random, show
        self.found: dict[Any, tuple[float, State]] = {}
        self.trace: list[tuple[float, int, float]] = []
        self.top = -np.inf

    def add(self, problem: Problem, state: State, budget: _Budget) -> float:
        """The rank of a tree, after noting it: its log joint density where densities compare, else its log mass."""
        rank = state.log_joint if self.comparable else log_mass(problem, state, self.random)
        name = structure_key(state.arrays)
        if name not in self.found or self.found[name][0] < rank:
            self.found[name] = rank, state
        if len(self.found) > self.keep:
            del self.found[min(self.found, key=lambda each: self.found[each][0])]
        self.top = max(self.top, state.log_joint)
        self.trace.append((budget.elapsed(), budget.done, self.top))
        self.show(*budget.progress(), f"log joint {self.top:.2f}")
        return rank

    def result(self, problem: Problem, names: tuple[str, ...]) -> Search:
        states = [state for _, state in sorted(self.found.values(), key=lambda each: -each[0])]
        evidence = np.array([_log_evidence(problem, state) for state in states])
        mass = np.array([log_mass(problem, state, self.random, draws=60) for state in states])
        weight = np.exp(mass - mass.max()) / np.exp(mass - mass.max()).sum()
        numbers = zip(states, evidence.tolist(), mass.tolist(), weight.tolist(), strict=True)
        trees = tuple(
            Fitted(state.tree(names), state.hyper, state.log_joint, one, two, share, state)
            for state, one, two, share in numbers
        )
        seconds, steps, log_joint = (np.array(column) for column in zip(*self.trace, strict=True))
        return Search(trees, seconds, steps, log_joint, problem)


def _log_evidence(problem: Problem, state: State) -> float:
    messages = problem.engine.sweep(state.arrays, state.leaves)
    return float(messages.log_evidence) + state.shift - problem.log_hyperprior(state.hyper)


def structure_key(arrays: Arrays) -> bytes:
    """A name of the structure without its times: equal for equal sets of clades (but for collisions of 63 bits)."""
    parent, depth = np.asarray(arrays.parent), np.asarray(arrays.depth)
    leaves = len(parent) // 2
    number = np.zeros(len(parent), dtype=np.uint64)
    number[:leaves] = np.random.default_rng(0).integers(2**63, size=leaves, dtype=np.uint64)
    for node in np.argsort(-depth, kind="stable"):
        if parent[node] >= 0:
            number[parent[node]] ^= number[node]
    return np.sort(number[parent != FREE]).tobytes()


def _seed(random: np.random.Generator) -> int:
    return int(random.integers(2**31))


def _start(prior: TreePrior, learn: frozenset[str]) -> TreePrior:
    """The prior that a search starts from: what is learned in a logarithm or a logit does not start at its end."""
    concentration = max(prior.concentration, 0.05) if "concentration" in learn else prior.concentration
    discount = max(prior.discount, 1e-3) if "discount" in learn else prior.discount
    return dataclasses.replace(prior, concentration=concentration, discount=discount)


def _checked(learn: Collection[str], prior: TreePrior, noise: float, data: Data) -> frozenset[str]:
    if not isinstance(prior, TreePrior):
        raise ModelError(f"prior= is a TreePrior, such as TreePrior(concentration=1.0); found {prior!r}.")
    found = frozenset([learn] if isinstance(learn, str) else learn)
    if unknown := found - set(LEARNABLE):
        raise ModelError(f"learn= takes any of {', '.join(LEARNABLE)}; found {', '.join(sorted(map(str, unknown)))}.")
    if not number(noise) >= 0.0:
        raise DataError(f"noise= is one variance, for all continuous columns; found {noise!r}.")
    if (noise > 0.0 or "noise" in found) and data.binary.all():
        raise ModelError("noise is of continuous columns, and all columns are binary: leave noise at 0.")
    if "rate" in found and (prior.divergence.constant or prior.divergence.square):
        raise ModelError(
            "The rate is learned for the divergence function rate / (1 - t) only; fix the other terms at 0."
        )
    if "noise" in found and not noise > 0.0:
        raise ModelError(f"A noise variance is learned from a positive start; found noise={noise!r}. Pass 0.01, say.")
    if found & {"concentration", "discount"} and prior.discount < 0.0:
        raise ModelError(
            f"Concentration and discount are learned where the discount is not negative; found {prior.discount!r}, a "
            "prior with a largest number of children. Give these two as fixed numbers."
        )
    if found & {"concentration", "discount"} and prior.concentration < 0.0 and not prior.binary:
        raise ModelError(
            f"Concentration and discount are learned where the concentration is not negative; found "
            f"{prior.concentration!r}, which not every discount allows. Start from 0 or more, or fix both numbers."
        )
    if found & {"concentration", "discount"} and prior.binary:
        raise ModelError(
            "A binary prior (concentration 0, discount 0) is where a search cannot learn from: no branch point has a "
            "third child. Start from TreePrior(concentration=1.0), say."
        )
    return found
