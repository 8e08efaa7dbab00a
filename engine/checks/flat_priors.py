"""Flat priors: whether the data have made the posterior proper."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

import numpy as np

from ...compiler.data.sparse_matrices import is_sparse, is_streamed
from ...compiler.language.model import Model
from ...compiler.language.nodes import Expr, Random, parents
from ...factors.errors import UnsupportedError
from ...factors.factor import Switch, Term
from ..answers.inferred import Inferred
from ..run.result import NoSoundState

VAST = 1e8  # times the largest number of the data: a belief that wide knows nothing
_REMEDY = (
    "Give it a proper prior, such as cv.gaussian(0.0, sd=...) or cv.half_normal(...) of a scale that you would believe"
)


@dataclasses.dataclass(frozen=True)
class Proper:
    """Passes proper posteriors on, of a model where the variables called `flat` have flat priors."""

    flat: list[str]

    def __call__(self, posterior: Any) -> Any:
        """The posterior; UnsupportedError for one that is improper."""
        if self.flat:
            check_proper(posterior, self.flat)
        return posterior

    def look(self, run: Callable[[], Inferred]) -> None:
        """Runs a cheap inference first: a grid would go on without an end where nothing bounds it."""
        if not self.flat:
            return
        with contextlib.suppress(NoSoundState):  # which a grid may do without
            posterior = run()
            if posterior.converged and all(np.all(np.isfinite(posterior[name].sd)) for name in self.flat):
                check_proper(posterior, self.flat)


@contextlib.contextmanager
def of_flat_priors(model: Model, observed: Collection[str], prior: object = None) -> Iterator[Proper]:
    """Inference in a model that may have flat priors: gives what passes proper posteriors on.

    UnsupportedError for a posterior that is improper, before or after it is sought. What has a `prior` from earlier
    data needs nothing below it.
    """
    flat = flat_variables(model, observed, prior is None)
    try:
        yield Proper(flat)
    except NoSoundState as problem:
        if not flat:
            raise
        named = ", ".join(f"'{name}'" for name in flat)
        raise UnsupportedError(
            f"{problem} Flat are the priors of {named}: where the data do not make the posterior proper, there is "
            f"none. {_REMEDY}."
        ) from None


def flat_variables(model: Model, observed: Collection[str], alone: bool = True) -> list[str]:
    """The variables with improper priors that are to be inferred.

    UnsupportedError for one that nothing observed depends on, where the data stand `alone`: its posterior is its prior,
    and that is none.
    """
    flat = [name for name, node in model.randoms.items() if _is_flat(node) and name not in observed]
    if not flat or not alone:
        return flat
    randoms, lets = model.randoms, model.lets
    seen = _below([*model.constraints.values(), *(randoms[n] if n in randoms else lets[n] for n in observed)])
    for name in flat:
        if id(model.randoms[name]) not in seen:
            raise UnsupportedError(
                f"'{name}' has a flat prior, and nothing that is observed depends on it: its posterior cannot be "
                f"normalised. {_REMEDY}, or observe what depends on it."
            )
    return flat


def _is_flat(node: Random) -> bool:
    terms = node.term.terms if isinstance(node.term, Switch) else (node.term,)
    return any(isinstance(term, Term) and term.factor.improper for term in terms)


def _below(roots: Iterable[Expr]) -> set[int]:
    """The identities of all nodes that these depend on, themselves included."""
    seen, stack = set(), list(roots)
    while stack:
        node = stack.pop()
        if id(node) not in seen:
            seen.add(id(node))
            stack.extend(parents(node))
    return seen


def check_proper(posterior: Inferred, flat: Collection[str]) -> None:
    """UnsupportedError where the belief of a variable with a flat prior is so wide that the data cannot bound it."""
    given = (*posterior.binding.inputs.values(), *posterior.observed.values())
    values = [value.data if is_sparse(value) else value for value in given if not is_streamed(value)]
    numbers = [np.abs(v[np.isfinite(v)]).max(initial=0.0) for v in (np.asarray(v, float) for v in values)]
    reach = VAST * max([1.0, *map(float, numbers)])
    for name in flat:
        sd = np.asarray(posterior[name].sd, float)
        if not np.all(sd < reach):  # also where it is no number
            widest = np.max(np.where(np.isnan(sd), np.inf, sd))
            raise UnsupportedError(
                f"'{name}' has a flat prior, and the data do not make its posterior proper, or leave it without a mean "
                f"and an sd: the belief spreads over {widest:.2g}, where all data are within {reach / VAST:.3g}. Some "
                f"direction of the parameters is not told by the data at all (two variables that enter only as their "
                f"sum, classes that a line separates, a scale of fewer than four groups). {_REMEDY}, or leave it out."
            )
