"""Many posteriors of one program in a row, each made when it is asked for."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import SupportsIndex, overload

import jax
import numpy as np

from ..factors.errors import UnsupportedError
from .answers.marginal import Axis, Marginal
from .posterior import Posterior


def stacked(marginals: Sequence[Marginal]) -> Marginal:
    """One marginal over all of them, whose first axis is called "data set".

    Raises UnsupportedError where their families are different.
    """
    families = [marginal.distribution for marginal in marginals]
    if any(jax.tree.structure(family) != jax.tree.structure(families[0]) for family in families):
        raise UnsupportedError(
            f"The marginals of {marginals[0].name!r} are of different kinds, and make no stack. Ask each posterior: "
            f"[posterior[{marginals[0].name!r}].mean for posterior in batch]."
        )
    whole = jax.tree.map(lambda *leaves: np.stack([np.asarray(leaf) for leaf in leaves]), *families)
    return Marginal(whole, marginals[0].name, marginals[0].note).along((Axis("data set"), *marginals[0].axes))


class Posteriors(Sequence[Posterior]):
    """Posteriors by number or by slice, each made once; the marginals of a variable in all of them by its name."""

    def __init__(self) -> None:
        self._made: dict[int, Posterior] = {}

    @abstractmethod
    def _one(self, k: int) -> Posterior:
        """The posterior of number `k`, counted from zero."""

    @property
    def log_evidence(self) -> np.ndarray:
        """The log evidence of every data set."""
        return np.array([posterior.log_evidence for posterior in self])

    @property
    def converged(self) -> np.ndarray:
        """Whether each inference converged."""
        return np.array([posterior.converged for posterior in self])

    def __repr__(self) -> str:
        number, converged = len(self), int(np.sum(self.converged))
        names = f" of {', '.join(self[0])}" if number else ""
        return f"<{number} posteriors{names}; {converged} converged>"

    def _repr_html_(self) -> str:
        """A row for each data set, in a notebook."""
        from .html.several import html_of_batch

        return html_of_batch(self.log_evidence, self.converged, list(self[0]) if len(self) else [])

    @overload
    def __getitem__(self, index: SupportsIndex) -> Posterior: ...
    @overload
    def __getitem__(self, index: slice) -> list[Posterior]: ...
    @overload
    def __getitem__(self, index: str) -> Marginal: ...
    def __getitem__(self, index: SupportsIndex | slice | str) -> Posterior | list[Posterior] | Marginal:
        if isinstance(index, str):
            return stacked([posterior[index] for posterior in self])
        if isinstance(index, slice):
            return [self[k] for k in range(*index.indices(len(self)))]
        try:
            k = range(len(self))[index]
        except (IndexError, TypeError):
            raise IndexError(
                f"[{index!r}]: there are {len(self)} data sets. Give the number of one, from 0, a slice, or the name "
                "of a variable."
            ) from None
        if k not in self._made:
            self._made[k] = self._one(k)
        return self._made[k]
