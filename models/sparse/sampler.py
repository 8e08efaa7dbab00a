"""Transitions of Markov chains over sparse factor models: one compiled sweep, padded in the number of factors.

The number of places grows by doubling. A sweep that did not fit is repeated from the same state, padded, with the same
key: its draws belong to factors and not to places, so that no outcome is favoured. Places become fewer when three
quarters of them are unused; both rules look at the state alone, so that a chain that stopped goes on as it was.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from ...engine.mcmc.kernel import Kernel, Together
from ...engine.support import machine_code
from .components import Components, components
from .data import Data, numbers_of, observed_of, switches_of
from .kernels.parallel import parallel
from .settings import Settings
from .start import SMALLEST, bucket, first_state, padded
from .state import Numbers, Observed, Outcome, State, Switches
from .summary import gather

Sweep = Callable[..., Outcome]  # of (key, state, observed, numbers, bound, switches), as `kernels.parallel` is


class Walk(NamedTuple):
    """A state of a chain.

    Attributes:
        state: of the model.
        accepted, proposed: () births and deaths so far.
    """

    state: State
    accepted: np.ndarray
    proposed: np.ndarray


@functools.cache
def compiled(sweep: Sweep, switches: Switches, together: bool) -> machine_code.Kernel:
    """`sweep(key, state, observed, numbers, bound) -> Outcome`, of one chain, or of all with their axis first."""

    def one(key: Any, state: State, observed: Observed, numbers: Numbers, bound: Any) -> Outcome:
        outcome = sweep(key, state, observed, numbers, bound, switches)
        same = jax.tree.map(lambda new, old: new.astype(old.dtype), outcome.state, state)
        return outcome._replace(state=same)

    return machine_code.Kernel(jax.vmap(one, in_axes=(0, 0, None, None, None)) if together else one)


class Sampler:
    """Transitions of a sparse factor model; `kernel` is what `engine.mcmc.run.run` takes.

    Args:
        data: the data.
        settings: the model, and how it is sampled.
        keep: "all", or "summaries": no loadings, factors, noise or slab precisions of single draws.
        sweep: what is compiled.

    Raises:
        ModelError: known factors that do not fit.

    Source: knowles2011nonparametric.
    """

    def __init__(
        self, data: Data, settings: Settings | None = None, keep: str = "all", sweep: Sweep = parallel
    ) -> None:
        self.data, self.settings, self.keep = data, Settings() if settings is None else settings, keep
        self.sweep = sweep
        self.switches = switches_of(self.settings, data)
        self.numbers = numbers_of(self.settings, data.shape[0])
        self._observed = machine_code.resident(observed_of(data, self.settings))
        self._before = self._traces()

    def kernel(self, together: bool = True) -> Kernel:
        """Of these transitions, all chains at once or one after the other."""
        return Kernel(
            self.init,
            self.step,
            self.record,
            reduce=functools.partial(gather, self.data, known=self.switches.known, keep=self.keep),
            together=Together(self.join, self.step_together, self.split) if together else None,
            grows=True,
            note=self.note,
            identity=self.identity,
        )

    @property
    def compilations(self) -> int:
        """Of sweeps, since this sampler was made; samplers of equal switches and shapes share them."""
        return self._traces() - self._before

    @functools.cached_property
    def identity(self) -> str:
        """A fingerprint of data and settings."""
        plain = dataclasses.replace(self.settings, known=None)
        parts = [*(np.asarray(leaf).tobytes() for leaf in jax.tree.leaves((self._observed, self.numbers)))]
        words = {field.name: getattr(plain, field.name) for field in dataclasses.fields(plain)}
        words |= {"learn": sorted(plain.learn), "keep": self.keep, "shape": self.data.shape}
        words["sweep"] = self.sweep.__qualname__
        values = np.where(self.data.held_out, self.data.values, 0.0)
        return hashlib.sha256(b"".join([repr(words).encode(), values.tobytes(), *parts])).hexdigest()

    @functools.cached_property
    def _principal(self) -> Components | None:
        return components(self.data, self.settings) if self.settings.start == "components" else None

    # transitions ------------------------------------------------------------------------------------------------------

    def init(self, key: Any) -> Walk:
        """A state to start from."""
        start = first_state(self.data, self.settings, self.switches, self.numbers, self._principal, key)
        return Walk(start, np.array(0), np.array(0))

    def step(self, key: Any, walk: Walk) -> Walk:
        """One sweep of one chain."""
        return self._swept(compiled(self.sweep, self.switches, False), key, walk)

    def step_together(self, keys: Any, walks: Walk) -> Walk:
        """One sweep of all chains, their axis first.

        A chain's draws are those that it makes alone, up to rounding: sums over more places, or over all chains'
        matrices at once, may be taken in another order.
        """
        return self._swept(compiled(self.sweep, self.switches, True), keys, walks)

    def _swept(self, sweep: machine_code.Kernel, key: Any, walk: Walk) -> Walk:
        state = walk.state
        while True:
            outcome = sweep(key, state, self._observed, self.numbers, np.max(state.count))
            if np.all(outcome.fits):
                break
            state = self._padded(state, 2 * state.loading.shape[-2])
        accepted, proposed = walk.accepted + outcome.accepted, walk.proposed + outcome.proposed
        return Walk(self._trimmed(outcome.state), accepted, proposed)

    def _trimmed(self, state: State) -> State:
        places = state.loading.shape[-2]
        if self.settings.factors is not None or places == SMALLEST or 4 * np.max(state.count) > places:
            return state
        return self._padded(state, bucket(2 * int(np.max(state.count))))

    def _padded(self, state: State, places: int) -> State:
        return padded(state, places, self.settings)

    # all chains at once -----------------------------------------------------------------------------------------------

    def join(self, walks: list[Walk]) -> Walk:
        """States of chains in one, with as many places as the largest."""
        places = max(walk.state.loading.shape[0] for walk in walks)
        equal = [walk._replace(state=self._padded(walk.state, places)) for walk in walks]
        return jax.tree.map(lambda *leaves: np.stack(leaves), *equal)

    def split(self, walks: Walk) -> list[Walk]:
        """The states of chains that step together."""
        return [jax.tree.map(lambda leaf, c=chain: leaf[c], walks) for chain in range(len(walks.accepted))]

    # what is kept -----------------------------------------------------------------------------------------------------

    def note(self, walks: list[Walk]) -> str:
        """For the progress bar: the numbers of factors."""
        counts = [int(walk.state.count) for walk in walks]
        return f"K {min(counts)}" if min(counts) == max(counts) else f"K {min(counts)}-{max(counts)}"

    def record(self, walk: Walk) -> dict[str, Any]:
        """A draw without padding, with `fit`, the (rows, samples) product of loadings and factors."""
        state, count = walk.state, int(walk.state.count)
        loading, factor = state.loading[:count], state.factor[:count]
        fit = loading.T @ factor
        seen, noise = self.data.seen, state.noise
        energy = (np.where(seen, self.data.filled - fit, 0.0) ** 2).sum(axis=1)
        log_likelihood = 0.5 * (seen.sum(axis=1) * np.log(noise / (2.0 * np.pi)) - noise * energy).sum()
        numbers = {name: getattr(state, name) for name in ("mass", "concentration", "precision_rate", "noise_rate")}
        return numbers | {
            "number_of_factors": np.array(count),
            "log_likelihood": np.array(log_likelihood),
            "acceptance": np.array(walk.accepted / max(int(walk.proposed), 1)),
            "noise": noise,
            "precision": state.precision[:count],
            "loading": loading,
            "factor": factor,
            "fit": fit,
        }

    def _traces(self) -> int:
        return sum(compiled(self.sweep, self.switches, together).traces for together in (True, False))
