"""Transitions of a chain over trees, divergence times and hyperparameters, locations integrated out.

What is sampled, why the transitions leave the posterior as it is, and how that is tested: docs/trees-mcmc.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from ....engine.mcmc.kernel import Kernel
from ....engine.mcmc.keys import generator
from ....engine.mcmc.run import Chains
from ....factors.errors import ModelError
from ..backend import Kernels, kernels
from ..divergence import Divergence
from ..fitted_tree import FittedTree
from ..likelihoods.locations import column_evidence, draw_locations
from ..likelihoods.table import Data
from ..prior import TreePrior, tables
from ..shapes.arrays import Arrays, Leaves, pack, unpack
from ..shapes.sample import sample_tree
from . import gibbs
from .hyper import structure_density
from .settings import Settings


class State(NamedTuple):
    """A state of the chain.

    Attributes:
        arrays: tree and divergence times.
        values: (N, D) data; latent normals, of the data's sign, in binary columns; imputed values or 0 in gaps.
        coefficients: (3,) constant, rate, square of the divergence function.
        concentration, discount: ().
        precision: (1,) or (D,) 1 / diffusion variance.
        precision_rate: () rate of the precisions' prior.
        noise: () as in `Settings`.
        accepted, proposed: (2,) moves of subtrees so far, from the prior and scored.
    """

    arrays: Arrays
    values: np.ndarray
    coefficients: np.ndarray
    concentration: np.ndarray
    discount: np.ndarray
    precision: np.ndarray
    precision_rate: np.ndarray
    noise: np.ndarray
    accepted: np.ndarray
    proposed: np.ndarray


class Sampler:
    """Transitions of the state of one tree; `kernel` is what `engine.mcmc.run.run` takes.

    Args:
        data: the table.
        settings: what is sampled.
        backend: "jax" or "numba".

    Source: knowles2015pitman, neal2003density.
    """

    def __init__(self, data: Data, settings: Settings | None = None, backend: str | Kernels = "jax") -> None:
        settings = Settings() if settings is None else settings
        self.data, self.settings = data, settings
        self.engine = kernels(backend) if isinstance(backend, str) else backend
        if settings.noise and data.binary.all():
            raise ModelError("noise is of continuous columns, and all columns are binary: leave noise at 0.")
        self.columns = data.shape[1] if settings.per_column else 1
        self.gaps = np.zeros(data.shape, bool) if settings.impute else ~data.seen
        mixed = data.binary.any() and not data.binary.all()
        absolute = bool(data.binary.any()) or (settings.noise > 0.0 and not settings.relative)
        self.collapsed = not absolute  # the precision's conditional is a gamma distribution
        self.wide = bool(self.gaps.any()) or mixed or (settings.per_column and absolute)
        self.signs = np.zeros(data.shape)
        self.signs[:, data.binary] = data.signs

    @property
    def kernel(self) -> Kernel:
        """Of these transitions."""
        return Kernel(self.init, self.step, self.record)

    # what a state means ------------------------------------------------------------------------------------------

    def prior(self, state: State) -> TreePrior:
        """The prior of the tree."""
        constant, rate, square = (float(number) for number in state.coefficients)
        return TreePrior(float(state.concentration), float(state.discount), Divergence(rate, constant, square))

    def leaf_variance(self, precision: np.ndarray, noise: Any) -> np.ndarray:
        """(D,) of leaves about their locations, in units where the diffusion variance is 1."""
        continuous = noise * (np.ones_like(precision) if self.settings.relative else precision)
        return np.where(self.data.binary, precision, continuous)

    def leaves(self, state: State, gaps: np.ndarray | None = None) -> Leaves:
        """The leaves in units where the diffusion variance is 1.

        Args:
            gaps: (N, D) what is integrated out; by default gaps that are not imputed.
        """
        gaps = self.gaps if gaps is None else gaps
        variance = self.leaf_variance(state.precision, state.noise)
        mean = state.values * np.sqrt(state.precision)
        if not self.wide and not gaps.any():
            return Leaves(mean, np.full((len(mean), 1), variance[0]))
        return Leaves(mean, np.where(gaps, np.inf, variance))

    def log_joint(self, state: State) -> float:
        """Log density of data (latent values, in binary columns), structure and depths given hyperparameters."""
        columns = column_evidence(state.arrays, self.engine.sweep(state.arrays, self.leaves(state)))
        scale = 0.5 * np.sum(columns.known * np.log(state.precision))
        prior = self.prior(state)
        return float(columns.log_evidence.sum() + scale + structure_density(state.arrays, prior.divergence)(prior))

    def fitted(self, state: State) -> FittedTree:
        """The tree of a state with what its leaves say, for the predictive density of new rows."""
        continuous = self.leaf_variance(np.broadcast_to(state.precision, self.data.shape[1:]), state.noise)
        noise = np.where(self.data.binary, 0.0, continuous)
        scale = np.sqrt(1.0 / state.precision)
        plain = not self.wide and not self.data.binary.any()
        return FittedTree(
            state.arrays, self.engine.sweep(state.arrays, self.leaves(state)), self.prior(state),
            scale=scale[0] if len(scale) == 1 else scale, noise=noise[0] if plain else noise, binary=self.data.binary,
        )  # fmt: skip

    # transitions -------------------------------------------------------------------------------------------------

    def init(self, key: Any) -> State:
        """A state to start from: hyperparameters as given, latent values at random, a tree."""
        of_tree, rest = jax.random.split(key)
        settings, random = self.settings, generator(rest)
        n, columns = self.data.shape
        prior = settings.prior
        values = np.where(self.data.seen, self.data.values, 0.0)
        latent = gibbs.draw_latent(self.signs, np.zeros((n, columns)), random)
        values = np.where(self.data.binary & self.data.seen, latent, values)
        if settings.impute:
            mean = values.sum(axis=0) / np.maximum(self.data.seen.sum(axis=0), 1)
            values = np.where(self.data.seen, values, mean + np.sqrt(settings.variance) * latent)
        state = State(
            pack(sample_tree(prior, n, of_tree)), values, prior.divergence.coefficients, np.array(prior.concentration),
            np.array(prior.discount), np.full(self.columns, 1.0 / settings.variance),
            np.array(settings.priors.precision[1]), np.array(settings.noise), np.zeros(2), np.zeros(2),
        )  # fmt: skip
        if settings.start == "build":
            order, seed = random.permutation(n), _seed(random)
            arrays, _ = self.engine.build(self.leaves(state), tables(prior, n), order, seed)
            state = state._replace(arrays=Arrays(*(np.asarray(part) for part in arrays)))
        return state

    def step(self, key: Any, state: State) -> State:
        """One sweep: moves of subtrees, divergence times, latent values and gaps, hyperparameters."""
        random = generator(key)
        state = self.move_tree(state, random)
        if self.data.binary.any() or (self.settings.impute and not self.data.seen.all()):
            state = self.draw_values(state, random)
        state = self.draw_scales(state, random)
        return self.draw_prior(state, random)

    def move_tree(self, state: State, random: np.random.Generator) -> State:
        """Structure and divergence times, locations integrated out, all else fixed."""
        n = self.data.shape[0]
        if n < 2:
            return state
        leaves, table = self.leaves(state), tables(self.prior(state), n)
        arrays, accepted, proposed = self.engine.subtree_moves(
            state.arrays, leaves, table, _seed(random), max(round(self.settings.moves * n), 1),
            self.settings.share_scored,
        )  # fmt: skip
        arrays = self.engine.depth_moves(arrays, leaves, table, _seed(random))
        return state._replace(
            arrays=Arrays(*(np.asarray(part) for part in arrays)),
            accepted=state.accepted + accepted,
            proposed=state.proposed + proposed,
        )

    def draw_values(self, state: State, random: np.random.Generator) -> State:
        """Latent values of binary columns and imputed ones, given a draw of the locations of the leaves."""
        data, n = self.data, self.data.shape[0]
        messages = self.engine.sweep(state.arrays, self.leaves(state, ~data.seen))
        location = draw_locations(state.arrays, messages, random)[:n] / np.sqrt(state.precision)
        values = np.where(data.binary, gibbs.draw_latent(self.signs, location, random), state.values)
        if self.settings.impute:
            sd = np.sqrt(self.leaf_variance(state.precision, state.noise) / state.precision)
            drawn = location + sd * random.standard_normal(location.shape)
            values = np.where(data.seen | data.binary, values, drawn)
        return state._replace(values=np.where(self.gaps, 0.0, values))

    def draw_scales(self, state: State, random: np.random.Generator) -> State:
        """Diffusion variance and noise, all locations integrated out, and the rate that columns share."""
        settings, learn = self.settings, self.settings.learn
        gamma = (settings.priors.precision[0], float(state.precision_rate))
        if "variance" in learn:
            if self.collapsed:
                columns = column_evidence(state.arrays, self.engine.sweep(state.arrays, self.leaves(state)))
                precision = gibbs.draw_precision(columns, 1.0 / state.precision, gamma, random)
            else:
                likelihood = self._likelihood(state, lambda x: state._replace(precision=x))
                precision = gibbs.slice_log_gamma(likelihood, state.precision, gamma, random)
            state = state._replace(precision=precision)
            if settings.shared_rate is not None:
                shape, rate = settings.shared_rate
                shape, rate = shape + self.columns * gamma[0], rate + precision.sum()
                state = state._replace(precision_rate=np.array(random.gamma(shape) / rate))
        if "noise" in learn:  # its precision has a gamma prior
            likelihood = self._likelihood(state, lambda x: state._replace(noise=1.0 / x[0]))
            found = gibbs.slice_log_gamma(likelihood, np.array([1.0 / state.noise]), settings.priors.noise, random)
            state = state._replace(noise=np.array(1.0 / found[0]))
        return state

    def _likelihood(self, state: State, moved: Callable[[np.ndarray], State]) -> Callable[[np.ndarray], np.ndarray]:
        """The evidence as a function of what is moved: of each column where there is one number for each."""

        def value(x: np.ndarray) -> np.ndarray:
            now = moved(x)
            columns = column_evidence(now.arrays, self.engine.sweep(now.arrays, self.leaves(now)))
            found = columns.log_evidence + 0.5 * columns.known * np.log(now.precision)
            return found if len(x) == len(found) else found.sum(keepdims=True)

        return value

    def draw_prior(self, state: State, random: np.random.Generator) -> State:
        """Concentration, discount and divergence function given structure and times."""
        learn, priors, prior = self.settings.learn, self.settings.priors, self.prior(state)
        simple = prior.divergence.constant == 0.0 and prior.divergence.square == 0.0
        if "rate" in learn and simple:
            prior = gibbs.draw_rate(state.arrays, prior, priors.rate, random)
        for name in ("constant", "rate", "square"):
            if name in learn and not simple:
                prior = gibbs.slice_coefficient(name, state.arrays, prior, priors.rate, random)
        if "concentration" in learn:
            prior = gibbs.slice_concentration(state.arrays, prior, priors.concentration, random)
        if "discount" in learn:
            prior = gibbs.slice_discount(state.arrays, prior, priors.discount, random)
        return state._replace(
            coefficients=prior.divergence.coefficients,
            concentration=np.array(prior.concentration),
            discount=np.array(prior.discount),
        )

    def record(self, state: State) -> dict[str, Any]:
        """What is kept of a draw: all that `state_of` needs, and the log joint density."""
        kept: dict[str, Any] = {
            "parent": state.arrays.parent,
            "depth": state.arrays.depth,
            "variance": 1.0 / state.precision,
            "coefficients": state.coefficients,
            "concentration": state.concentration,
            "discount": state.discount,
            "noise": state.noise,
            "log_joint": np.array(self.log_joint(state)),
            "acceptance": state.accepted / np.maximum(state.proposed, 1.0),
        }
        return kept | ({"values": state.values} if self.data.binary.any() or self.settings.impute else {})

    def state_of(self, chains: Chains, chain: int, draw: int) -> State:
        """A state as it was kept; without its counts of moves and the rate that columns share."""
        kept = {name: array[chain, draw] for name, array in chains.draws.items()}
        arrays = pack(unpack(Arrays(kept["parent"], kept["depth"], None, None)))
        values = kept.get("values", np.where(self.data.seen, self.data.values, 0.0))
        return State(
            arrays, values, kept["coefficients"], kept["concentration"], kept["discount"], 1.0 / kept["variance"],
            np.array(self.settings.priors.precision[1]), kept["noise"], np.zeros(2), np.zeros(2),
        )  # fmt: skip


def _seed(random: np.random.Generator) -> int:
    return int(random.integers(2**31))
