"""What `cv.sample` returns: draws by name, how each variable was drawn, and how the chains mixed."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from jaxtyping import Float

from ...factors.calls import methods_checked
from ...factors.errors import UnsupportedError
from ..answers.arviz import as_arviz
from ..checks.psis import smoothed
from .move import Move


@methods_checked("samples")
@dataclasses.dataclass(frozen=True, repr=False)
class Samples(Mapping[str, np.ndarray]):
    """Draws of Markov chains; `samples["x"]` has shape (chains, draws, plates..., event...).

    Attributes:
        draws: by name, after the warm-up.
        warmup: those before, by name.
        moves: the steps of a sweep.
        seconds: CPU time of the chains, compiling among it.
        dims: the names of the plates of each variable.
        acceptance: by structure and move of `moves=`, the share of proposals of something new that were taken after
            the warm-up; NaN where there were none.
        asked: draws of each chain; `max_seconds` may have ended them before.
        log_weights: of draws that are weighted instead of accepted, (chains, draws), see `VariationalKernel`; None of
            others.
        names: of the elements of plates, as far as declarations or data have some.
    """

    draws: dict[str, np.ndarray]
    warmup: dict[str, np.ndarray]
    moves: tuple[Move, ...]
    seconds: float
    dims: dict[str, list[str]]
    acceptance: dict[str, dict[str, float]] = dataclasses.field(default_factory=dict)
    asked: int | None = None
    log_weights: np.ndarray | None = None
    names: dict[str, tuple[Any, ...]] = dataclasses.field(default_factory=dict)

    def __getitem__(self, name: str) -> np.ndarray:
        if not isinstance(name, str) or name not in self.draws:
            raise KeyError(f"'{name}' was not sampled. There are: {', '.join(self.draws)}.")
        return self.draws[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.draws)

    def __len__(self) -> int:
        return len(self.draws)

    def mean(self, name: str) -> np.ndarray:
        """The mean of all draws of `name`, shaped plates + event; of a boolean the share that is true."""
        return self._averaged(np.asarray(self[name], float))

    def sd(self, name: str) -> np.ndarray:
        """The standard deviation of all draws of `name`, shaped plates + event."""
        return np.sqrt(self._averaged((self[name] - self.mean(name)) ** 2))

    @property
    def pareto_k(self) -> float:
        """Of weighted draws the shape of the tail of their weights: above .7 no average is to be trusted.

        Above .5 their variance is infinite. NaN of draws without weights. Source: vehtari2024psis.
        """
        return float("nan") if self.log_weights is None else smoothed(self.log_weights.ravel())[1]

    def _averaged(self, array: np.ndarray) -> np.ndarray:
        """Over chains and draws, by their weights where they have some."""
        return array.mean((0, 1)) if self._weights is None else np.tensordot(self._weights, array, axes=2)

    @property
    def _weights(self) -> np.ndarray | None:
        """Of weighted draws their shares, (chains, draws)."""
        if self.log_weights is None:
            return None
        weight = np.exp(self.log_weights - self.log_weights.max())
        return weight / weight.sum()

    def explain(self) -> str:
        """How each variable is drawn, in the order of a sweep."""
        lines = [f"{', '.join(move.names)}: {move.how}{self._taken(move)}" for move in self.moves]
        told = ["Of a sweep each step draws, given all others,", *(f"  {line}" for line in lines)]
        made = next((array.shape[1] for array in self.draws.values()), 0)
        if self.asked is not None and made < self.asked:
            told.append(f"max_seconds ended the chains after {made:,} of {self.asked:,} draws of each")
        return "\n".join(told)

    def _taken(self, move: Move) -> str:
        shares = self.acceptance.get(", ".join(move.names), {})
        if move.proposes:
            return f"; taken {shares[move.proposes]:.1%}"
        told = ", ".join(f"{kind} {share:.1%}" for kind, share in shares.items() if share == share)
        return f"; taken of what was new: {told}" if told else ""

    def to_arviz(self) -> Any:
        """An ArviZ DataTree or, before ArviZ 1, InferenceData, with the warm-up in a group of its own.

        R-hat, bulk and tail effective sizes, summaries and plots are ArviZ's. Raises UnsupportedError without ArviZ.
        """
        groups = {"posterior": self.draws, "warmup_posterior": self.warmup}
        return as_arviz(groups, self.dims, "Markov chain Monte Carlo", self.names)

    def summary(self) -> Any:
        """ArviZ's table: means, sds, intervals, R-hat, effective sizes. Raises UnsupportedError without ArviZ."""
        try:
            import arviz  # pyright: ignore[reportMissingImports]
        except ImportError as problem:
            raise UnsupportedError(
                f"summary() is ArviZ's table, which is not installed here ({problem}). Install the extra: "
                "pip install 'cavity[arviz]'."
            ) from problem
        return arviz.summary(as_arviz({"posterior": self.draws}, self.dims, "Markov chain Monte Carlo", self.names))

    @property
    def rhat(self) -> dict[str, Float[np.ndarray, "..."]]:
        """By name how far chains and halves of chains differ: one where they agree. Source: vehtari2021rhat."""
        return {name: split_rhat(array) for name, array in self.draws.items()}

    def _repr_html_(self) -> str:
        """Their numbers and the lines of the chains, in a notebook."""
        from ..html.chains import html_of_chains

        return html_of_chains(self.draws, self._weights, self.rhat, self.explain(), repr(self).strip("<>"))

    def __repr__(self) -> str:
        chains, draws = next(iter(self.draws.values())).shape[:2]
        worst = max((float(np.nanmax(found, initial=1.0)) for found in self.rhat.values()), default=1.0)
        return f"<{chains} chains of {draws} draws of {', '.join(self.draws)}; worst R-hat {worst:.3f}>"


def split_rhat(array: np.ndarray) -> np.ndarray:
    """Of (chains, draws, ...), each chain cut in two halves."""
    half = array.shape[1] // 2
    if half < 2:
        return np.full(array.shape[2:], np.nan)
    parts = np.concatenate([array[:, :half], array[:, -half:]]).astype(float)
    within = parts.var(1, ddof=1).mean(0)
    between = half * parts.mean(1).var(0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.sqrt(((half - 1) / half * within + between / half) / within)
