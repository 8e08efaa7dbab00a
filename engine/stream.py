"""A posterior as the next prior, and what one batch of data added to it, which can be taken away again.

With q the belief before a batch and q' the belief after it, the batch contributed q' / q: a subtraction of natural
parameters. Adding contributions of conjugate models in any order gives the posterior of all batches; taking one away
gives the posterior without it. Where messages are approximate, so are these. Source: minka2001thesis.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from ..compiler.bind import Binding
from ..compiler.expressions import Random, parents
from ..compiler.given import names as given_names
from ..compiler.graph import Block, Graph
from ..compiler.known import latent_names
from ..compiler.language import Model
from ..compiler.methods import EXACT
from ..factors.errors import DataError, UnsupportedError
from ..factors.factor import Term
from ..factors.families import FOR_DOMAIN, ExponentialFamily
from . import tables
from .beliefs import placeholder
from .energy import block_energy
from .marginal import Marginal

if TYPE_CHECKING:
    from .posterior import Posterior

Naturals = tuple[np.ndarray, ...]


@dataclasses.dataclass(frozen=True)
class Contribution:
    """What a batch of data said about the carried variables: the natural parameters of its message to each, by name.

    Contributions add and subtract; `posterior - contribution` is the belief without that batch.
    """

    families: dict[str, type[ExponentialFamily]]
    naturals: dict[str, Naturals]

    def __add__(self, other: Contribution) -> Contribution:
        return self._with(other, 1.0)

    def __sub__(self, other: Contribution) -> Contribution:
        return self._with(other, -1.0)

    def _with(self, other: Any, sign: float) -> Contribution:
        if not isinstance(other, Contribution):
            return NotImplemented
        return Contribution({**self.families, **other.families}, _shifted(self, other, sign))

    def __repr__(self) -> str:
        return f"<Contribution to {', '.join(self.naturals) or 'nothing'}>"


class Beliefs(Mapping[str, Marginal]):
    """Marginals by name that may be given to `infer` as `prior=`; contributions are added to them and subtracted."""

    def __init__(self, families: Mapping[str, ExponentialFamily]) -> None:
        self.families = dict(families)

    def __getitem__(self, name: str) -> Marginal:
        return Marginal(self.families[name], name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.families)

    def __len__(self) -> int:
        return len(self.families)

    def __add__(self, other: Contribution) -> Beliefs:
        return self._with(other, 1.0)

    def __sub__(self, other: Contribution) -> Beliefs:
        return self._with(other, -1.0)

    def over(self, priors: Mapping[str, Naturals]) -> Contribution:
        """What leads from priors with these natural parameters to these beliefs."""
        return Contribution(
            {name: type(family) for name, family in self.families.items()},
            {
                name: tuple(a - b for a, b in zip(family.naturals(), priors[name], strict=True))
                for name, family in self.families.items()
            },
        )

    def _with(self, other: Any, sign: float) -> Beliefs:
        if not isinstance(other, Contribution):
            return NotImplemented
        strangers = [name for name in other.naturals if name not in self.families]
        if strangers:
            raise DataError(
                f"The contribution speaks of '{strangers[0]}', which is not among the beliefs of "
                f"{', '.join(self.families) or '(nothing)'}. Use contributions of the same model."
            )
        own = Contribution(
            {name: type(family) for name, family in self.families.items()},
            {name: family.naturals() for name, family in self.families.items()},
        )
        shifted = {
            name: own.families[name].from_naturals(naturals) for name, naturals in _shifted(own, other, sign).items()
        }
        for name in other.naturals:
            _check_proper(
                name,
                shifted[name],
                "after adding or removing the contribution. It was added to other beliefs than these, or was removed "
                "before: remove each batch once, from a posterior that has seen it",
            )
        return Beliefs(shifted)

    def __repr__(self) -> str:
        return f"<Beliefs about {', '.join(self.families) or 'nothing'}>"


def _shifted(one: Contribution, other: Contribution, sign: float) -> dict[str, Naturals]:
    """The naturals of `one` + sign * `other`; a name that only one of them has stands against zeros."""
    result = dict(one.naturals)
    for name, naturals in other.naturals.items():
        before = result.get(name, tuple(np.zeros_like(n) for n in naturals))
        if [np.shape(n) for n in before] != [np.shape(n) for n in naturals] or (
            name in one.families and one.families[name] is not other.families[name]
        ):
            raise DataError(
                f"Two contributions to '{name}' do not fit: {_shape(one, name)} and {_shape(other, name)}. "
                "Contributions are of the same model with the same plate sizes."
            )
        result[name] = tuple(b + sign * n for b, n in zip(before, naturals, strict=True))
    return result


def _shape(contribution: Contribution, name: str) -> str:
    return f"{contribution.families[name].__name__} of shape {np.shape(contribution.naturals[name][0])}"


# what a posterior gives -----------------------------------------------------------------------------------------------


def carried(posterior: Posterior) -> Beliefs:
    """The beliefs of the variables on plates without inputs and observations: those that other batches share."""
    return Beliefs(
        {
            name: family
            for name, family in posterior.beliefs.items()
            if name not in posterior.observed
            and not _data_plates(posterior.model, posterior.observed)
            & {plate.name for plate in posterior.model.randoms[name].plates}
        }
    )


def _data_plates(model: Model, observed: Mapping[str, Any]) -> set[str]:
    nodes = [*model.inputs.values(), *({**model.randoms, **model.lets}[name] for name in observed)]
    return {plate.name for node in nodes for plate in node.plates}


def contribution(posterior: Posterior) -> Contribution:
    """Naturals of the carried beliefs minus those of their priors."""
    beliefs = carried(posterior)
    return beliefs.over({name: posterior.prior_naturals(name) for name in beliefs.families})


def prior_naturals(machine: Any, arrays: Mapping[str, Any], name: str) -> Naturals:
    """The natural parameters of a variable's prior; UnsupportedError where that depends on other random variables."""
    graph: Graph = machine.graph
    variable = graph.model.randoms[name]
    if name in graph.given:
        return tuple(np.asarray(arrays[key]) for key in given_names(variable))
    above = latent_names(graph, list(parents(variable)))
    if above or not isinstance(variable.term, Term):
        why = (
            f"its prior depends on {', '.join(above)}, which the data change too" if above else "its prior is a switch"
        )
        raise UnsupportedError(
            f"The contribution to '{name}' has no baseline: {why}. Give it a belief of its own at the start: "
            f"start = cv.infer(model, {{}}), then cv.infer(model, data, prior={{'{name}': start['{name}'], ...}})."
        )
    factor, args = variable.term.factor, variable.term.args
    if "out" not in factor.conjugate:
        raise UnsupportedError(
            f"The contribution to '{name}' has no baseline: its prior ({factor.name}) is not of the family of its "
            f"beliefs. Give it one at the start: prior={{'{name}': ...}}."
        )
    block = Block(name, "energy", EXACT, "", "", "", variable.plates, (name,), variable, factor, args, constant=True)
    with jax.enable_x64(True):
        scope = machine.scope(arrays)
        here = placeholder(variable, scope)
        gradient = jax.grad(lambda own: block_energy(block, machine.scope(arrays, {name: own})))(here)
        naturals = FOR_DOMAIN[variable.domain.kind].pull(here, gradient)
        if variable.domain.kind in ("boolean", "category"):
            naturals = (np.clip(naturals[0], -tables.CERTAIN, tables.CERTAIN),)
        return tuple(np.asarray(natural) for natural in naturals)


# what a run is given --------------------------------------------------------------------------------------------------


def given_beliefs(model: Model, binding: Binding, prior: Any) -> dict[str, ExponentialFamily]:
    """The families that `prior=` gives, checked against the model and the data; DataError where they do not fit."""
    if prior is None:
        return {}
    prior = getattr(prior, "carried", prior)
    if not isinstance(prior, Mapping):
        raise DataError(
            f"prior= takes a posterior of the same model, or a dictionary of marginals by name such as "
            f"{{'mean': posterior['mean']}}; found {type(prior).__name__}."
        )
    if not prior:
        raise DataError(
            "prior= carries no variable over: all variables of that posterior live on plates that have data, or "
            "nothing observed depended on them. Name those to carry: prior={'mean': posterior['mean']}."
        )
    families = {name: getattr(belief, "family", belief) for name, belief in prior.items()}
    for name, family in families.items():
        _check_variable(model, binding, name, family)
        _check_parents(model, binding, name, families)
    return families


def given_arrays(model: Model, families: Mapping[str, ExponentialFamily]) -> dict[str, np.ndarray]:
    """The given naturals under the names by which the program knows them."""
    return {
        key: np.asarray(natural, float)
        for name, family in families.items()
        for key, natural in zip(given_names(model.randoms[name]), family.naturals(), strict=True)
    }


def _check_variable(model: Model, binding: Binding, name: str, family: Any) -> None:
    if name not in model.randoms:
        raise DataError(
            f"prior= gives a belief of '{name}', which is no random variable of model \"{model.name}\". It has: "
            f"{', '.join(model.randoms)}."
        )
    if name in binding.observed:
        raise DataError(
            f"prior= gives a belief of '{name}', which the data observe. A variable is one or the other: leave it out "
            "of the data, or give prior= as a dictionary without it."
        )
    variable = model.randoms[name]
    wanted = FOR_DOMAIN[variable.domain.kind]
    if not isinstance(family, wanted):
        raise DataError(
            f"prior= gives '{name}' ({variable.domain}) a {type(family).__name__}; its beliefs are of the family "
            f"{wanted.__name__}. Use the marginal of the same variable."
        )
    event = variable.domain.size
    event = binding.sizes[event.name] if event is not None and not isinstance(event, int) else event
    plates = tuple(binding.sizes[plate.name] for plate in variable.plates)
    shapes = [(*plates, *(event,) * n) for n in wanted.natural_ndims]
    found = [np.shape(natural) for natural in family.naturals()]
    if found != shapes:
        over = ", ".join(f"{plate.name}: {binding.sizes[plate.name]}" for plate in variable.plates) or "no plates"
        raise DataError(
            f"prior= gives '{name}' a belief over plates of shape {family.plates}, but here it has {over}. Beliefs go "
            "over to the same elements only: keep the sizes, or name the variables to carry over: "
            "prior={'mean': posterior['mean']}."
        )
    _check_proper(name, family, "in prior=. Use the marginal of a run that converged")


def _check_proper(name: str, family: Any, where: str) -> None:
    with jax.enable_x64(True):
        proper = np.asarray(family.is_proper())
        finite = all(np.isfinite(natural).all() for natural in family.naturals())
    if not proper.all() or not finite:
        places = np.argwhere(~proper)
        place = f" at {places[0].tolist()}" if len(places) and proper.ndim else ""
        raise DataError(f"The belief of '{name}'{place} is improper (it cannot be normalised) {where}.")


def _check_parents(model: Model, binding: Binding, name: str, families: Mapping[str, Any]) -> None:
    """A variable whose prior is replaced no longer speaks to its parents: they must have been given what it told."""
    stack = list(parents(model.randoms[name]))
    while stack:
        node = stack.pop()
        if isinstance(node, Random):
            if node.name not in families and node.name not in binding.observed:
                raise DataError(
                    f"prior= gives a belief of '{name}' but none of '{node.name}', which '{name}' depends on: the "
                    f"link between them would be cut. Give both, or '{node.name}' alone."
                )
        elif getattr(node, "name", None) not in binding.observed:
            stack.extend(parents(node))
