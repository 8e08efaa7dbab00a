"""References from beliefs: a normalised density of each variable's own family, as it is or wider."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping

import jax
import jax.numpy as jnp
import numpy as np

from ...compiler.language.nodes import Random
from ...factors.errors import CavityError
from ...factors.factor import Chain, all_terms
from ...factors.families import ExponentialFamily, TwoMomentFamily
from ..answers.marginal import Marginal
from ..values.first_beliefs import family_of
from .joint import Joint


def beliefs_of(joint: Joint, marginals: Mapping[str, Marginal], wider: float) -> dict[str, ExponentialFamily]:
    """The belief about each latent variable to the power 1 / `wider`, which keeps its family and its mode's place.

    Left out are variables whose belief is of another shape (that of a run on other rows), of no exponential family, or
    reaches beyond the ends of their support, spikes with slabs and discrete chains, whose moves read their own term:
    their reference is their conditional density.
    """
    found, marginals = {}, getattr(marginals, "plain", marginals)  # weighted draws have no family
    for name, variable in joint.variables.items():
        if _is_bounded(variable) or variable.domain.is_sparse or _is_discrete_chain(variable):
            continue
        if (belief := _member(marginals, name, variable)) is None:
            continue
        shape = tuple(joint.sizes[plate.name] for plate in variable.plates)
        widened = type(belief).from_naturals(tuple(jnp.asarray(n) / wider for n in belief.naturals()))
        if (whole := _over(widened, shape)) is not None and bool(np.all(np.asarray(whole.is_proper()))):
            found[name] = whole
    return found


def known_of(marginals: Mapping[str, Marginal], names: Iterable[str]) -> dict[str, Marginal]:
    """The marginals of these variables that there are."""
    found = {}
    for name in names:
        with contextlib.suppress(KeyError, CavityError):
            found[name] = marginals[name]
    return found


def _is_discrete_chain(variable: Random) -> bool:
    return isinstance(variable.term, Chain) and variable.domain.is_discrete


def _is_bounded(variable: Random) -> bool:
    """Whether the term itself says where the variable ends, which its belief does not know."""
    return any(term.factor.support is not None for term in all_terms(variable.term))


def _member(marginals: Mapping[str, Marginal], name: str, variable: Random) -> ExponentialFamily | None:
    """The belief in the variable's own family; from mean and variance where it is a mixture or draws."""
    try:
        family, own = marginals[name].family, family_of(variable)
        if isinstance(family, own):
            return family
        if issubclass(own, TwoMomentFamily):
            return own.from_mean_and_variance(jnp.asarray(marginals[name].mean), jnp.asarray(marginals[name].variance))
    except (KeyError, CavityError, AttributeError):
        pass
    return None


def _over(belief: ExponentialFamily, shape: tuple[int, ...]) -> ExponentialFamily | None:
    """The belief over all elements of its plates; None where it has others."""
    try:
        naturals = [
            jnp.broadcast_to(jnp.asarray(n, float), (*shape, *jnp.shape(n)[jnp.ndim(n) - ndim :]))
            for n, ndim in zip(belief.naturals(), belief.natural_ndims, strict=True)
        ]
    except ValueError:
        return None
    return jax.tree.map(jnp.asarray, type(belief).from_naturals(tuple(naturals)))
