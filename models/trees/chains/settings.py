"""What a chain over trees samples, and what it keeps fixed."""

from __future__ import annotations

import dataclasses

import numpy as np

from ....engine.support.user_numbers import number, two_positive
from ....factors.errors import ModelError
from ..prior import TreePrior
from .hyper import LEARNABLE, Hyperpriors

SAMPLED = (*LEARNABLE, "constant", "square")
STARTS = ("build", "prior")


@dataclasses.dataclass(frozen=True)
class Settings:
    """What is fixed and what is sampled, and how much work a sweep does.

    Args:
        learn: names of what is sampled: variance (of the diffusion), noise, rate, constant, square (coefficients of
            the divergence function), concentration, discount. All else keeps the value given here; what is sampled
            starts from it.
        prior: concentration, discount and divergence function.
        variance: of the diffusion over unit time, in units of the data squared.
        noise: variance of the noise of continuous columns; 0: the tree ends at the data.
        relative: noise is a multiple of the diffusion variance, not a variance.
        per_column: one diffusion variance for each column.
        shared_rate: the gamma prior (shape, rate) of the rate of the precisions' gamma prior, which columns then share;
            None: the rate is that of `priors.precision`.
        priors: of what is sampled; `constant` and `square` have that of `rate`. `noise` is that of 1 / noise.
        impute: gaps are drawn, once in a sweep; else they are integrated out. One variance for all columns makes the
            kernels faster, at the price of slower mixing.
        moves: moves of subtrees in a sweep, for each leaf.
        share_scored: share of the moves that score all attachments; the others propose from the prior.
        start: "build", the leaves added one by one in random order, each at its best place; or "prior".

    Raises:
        ModelError: values that contradict each other or the prior's regime.
    """

    learn: frozenset[str] = frozenset({"variance", "rate"})
    prior: TreePrior = dataclasses.field(default_factory=TreePrior)
    variance: float = 1.0
    noise: float = 0.0
    relative: bool = False
    per_column: bool = False
    shared_rate: tuple[float, float] | None = None
    priors: Hyperpriors = dataclasses.field(default_factory=Hyperpriors)
    impute: bool = False
    moves: float = 1.0
    share_scored: float = 0.25
    start: str = "build"

    def __post_init__(self) -> None:
        if not isinstance(self.prior, TreePrior):
            raise ModelError(f"prior= is a TreePrior, such as TreePrior(concentration=1.0); found {self.prior!r}.")
        object.__setattr__(self, "learn", frozenset([self.learn] if isinstance(self.learn, str) else self.learn))
        if unknown := sorted(self.learn - set(SAMPLED)):
            raise ModelError(f"What can be sampled is {', '.join(SAMPLED)}; asked: {', '.join(unknown)}.")
        positive = {"variance": self.variance, "moves": self.moves}
        if "noise" in self.learn:
            positive["noise"] = self.noise
        for name in ("constant", "rate", "square"):
            if name in self.learn:
                positive[name] = getattr(self.prior.divergence, name)
        for name in ("concentration", "discount"):
            if name in self.learn:
                positive[name] = getattr(self.prior, name)
        for name, value in positive.items():
            if not 0.0 < number(value) < np.inf:
                raise ModelError(
                    f"{name} starts from a positive number: logarithms of it are sampled, and 0 is never left. Found "
                    f"{value!r}."
                )
        if "discount" in self.learn and self.prior.concentration < 0.0:
            raise ModelError(
                f"A discount is sampled where the concentration is not negative; found {self.prior.concentration!r}, "
                "which not every discount allows."
            )
        pair = (1.0, 1.0) if self.shared_rate is None else self.shared_rate
        if not two_positive(pair):
            raise ModelError(f"shared_rate= is two positive numbers, shape and rate, or None; found {pair!r}.")
        if not 0.0 <= number(self.noise) < np.inf or not 0.0 <= self.share_scored <= 1.0 or self.start not in STARTS:
            raise ModelError(
                f"noise is at least 0, share_scored from 0 to 1, and start one of {', '.join(STARTS)}; found "
                f"{self.noise!r}, {self.share_scored!r} and {self.start!r}."
            )
