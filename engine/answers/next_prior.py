"""A posterior as the next prior, and what one batch of data added to it, which can be taken away again.

With q the belief before a batch and q' the belief after it, the batch contributed q' / q: a subtraction of natural
parameters. Adding contributions of conjugate models in any order gives the posterior of all batches; taking one away
gives the posterior without it. Where messages are approximate, so are these. Source: minka2001thesis.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import jax
import numpy as np

from ...compiler.algebra.known import latent_names
from ...compiler.blocks.base import Choice
from ...compiler.blocks.energy import EnergyBlock
from ...compiler.data.bind import Binding
from ...compiler.graph import Joint
from ...compiler.language.model import Model
from ...compiler.language.nodes import Random, parents
from ...compiler.methods import EXACT
from ...compiler.passes.given import Part
from ...compiler.passes.given import names as given_names
from ...factors.arrays import Numeric
from ...factors.calls import methods_checked
from ...factors.errors import DataError, UnsupportedError
from ...factors.factor import Term
from ...factors.families import ExponentialFamily, Family
from ...factors.switches import double_precision
from ..blocks.discrete import tables
from ..blocks.energy import block_energy
from ..data.missing_and_sparse import Arrays
from ..distributions.mixed_over_grid import GridMixture, OnGrid
from ..run.machine import Machine
from ..support import asked_families as asked
from ..support.compiled import compiled
from ..support.concrete import as_numpy
from ..values.first_beliefs import family_of, first_moments
from ..values.joint_beliefs import member_families, together
from .marginal import Marginal
from .outcome import Outcome

Naturals = tuple[np.ndarray, ...]


@methods_checked("contribution")
@dataclasses.dataclass(frozen=True)
class Contribution:
    """What a batch of data said about the carried variables: the natural parameters of its message to each part.

    A part is one variable, or several that share a joint belief: `families` has the family of each, `naturals` its
    natural parameters in the order of the sufficient statistics, each shaped plates + event axes.

    Contributions add and subtract; `posterior - contribution` is the belief without that batch. Source:
    minka2001thesis.
    """

    families: dict[Part, type[ExponentialFamily]]
    naturals: dict[Part, Naturals]

    def __add__(self, other: Contribution) -> Contribution:
        return self._with(other, 1.0)

    def __sub__(self, other: Contribution) -> Contribution:
        return self._with(other, -1.0)

    def _with(self, other: object, sign: float) -> Contribution:
        if not isinstance(other, Contribution):
            return NotImplemented
        return Contribution({**self.families, **other.families}, _shifted(self, other, sign))

    def __repr__(self) -> str:
        return f"<Contribution to {'; '.join(map(_title, self.naturals)) or 'nothing'}>"


@methods_checked("beliefs")
class Beliefs(Mapping[str, Marginal]):
    """Marginals by name that may be given to `infer` as `prior=`; contributions are added to them and subtracted.

    `parts` are the beliefs that are carried: those of single variables, and joint ones with their covariances;
    `joints` says how the variables of a joint belief stand in it, and `sizes` are those of their plates.
    """

    def __init__(
        self,
        parts: Mapping[Part, ExponentialFamily],
        joints: Mapping[Part, Joint] | None = None,
        sizes: Mapping[str, int] | None = None,
    ) -> None:
        self.parts, self.joints, self.sizes = dict(parts), dict(joints or {}), dict(sizes or {})
        self.families: dict[str, Family] = {}
        for part, family in self.parts.items():
            if part in self.joints:
                with double_precision():
                    joint, sizes = self.joints[part], self.sizes
                    split = compiled("members", (joint, sizes), partial(member_families, joint, sizes=sizes))(family)
                    self.families |= as_numpy(split)
            else:
                self.families[part.members[0]] = family

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

    def over(self, priors: Mapping[Part, Naturals]) -> Contribution:
        """What leads from priors to these beliefs: the difference of natural parameters.

        `priors` has those of each part, shaped as the parts' own. Returns a `Contribution`. Raises DataError where they
        do not fit.
        """
        own = self._as_contribution()
        return Contribution(own.families, _shifted(own, Contribution(own.families, dict(priors)), -1.0))

    def _as_contribution(self) -> Contribution:
        return Contribution(
            {part: type(family) for part, family in self.parts.items()},
            {part: tuple(map(np.asarray, family.naturals())) for part, family in self.parts.items()},
        )

    def _with(self, other: object, sign: float) -> Beliefs:
        if not isinstance(other, Contribution):
            return NotImplemented
        strangers = [part for part in other.naturals if part not in self.parts]
        if strangers:
            raise DataError(
                f"The contribution speaks of {_title(strangers[0])}, which is not among the beliefs of "
                f"{'; '.join(map(_title, self.parts)) or '(nothing)'}. Use contributions of the same model and method."
            )
        own = self._as_contribution()
        shifted = {
            part: own.families[part].from_naturals(naturals) for part, naturals in _shifted(own, other, sign).items()
        }
        for part in other.naturals:
            _check_proper(
                _title(part),
                shifted[part],
                "after adding or removing the contribution. It was added to other beliefs than these, or was removed "
                "before: remove each batch once, from a posterior that has seen it",
            )
        return Beliefs(shifted, self.joints, self.sizes)

    def __repr__(self) -> str:
        return f"<Beliefs about {', '.join(self.families) or 'nothing'}>"


def _title(part: Part) -> str:
    return ", ".join(f"'{name}'" for name in part.members)


def _shifted(one: Contribution, other: Contribution, sign: float) -> dict[Part, Naturals]:
    """The naturals of `one` + sign * `other`; a part that only one of them has stands against zeros."""
    result = dict(one.naturals)
    for name, naturals in other.naturals.items():
        before = result.get(name, tuple(np.zeros_like(n) for n in naturals))
        if [np.shape(n) for n in before] != [np.shape(n) for n in naturals] or (
            name in one.families and one.families[name] is not other.families[name]
        ):
            raise DataError(
                f"Two contributions to {_title(name)} do not fit: {_shape(one, name)} and {_shape(other, name)}. "
                "Contributions are of the same model with the same plate sizes."
            )
        result[name] = tuple(b + sign * n for b, n in zip(before, naturals, strict=True))
    return result


def _shape(contribution: Contribution, name: Part) -> str:
    return f"{contribution.families[name].__name__} of shape {np.shape(contribution.naturals[name][0])}"


# what a posterior gives -----------------------------------------------------------------------------------------------


def carried(posterior: Outcome) -> Beliefs:
    """The beliefs of the variables on plates without inputs and observations: those that other batches share.

    A joint belief is carried as one, what other variables were in it integrated out.
    """
    on_data = _data_plates(posterior.model, posterior.observed)
    families = {
        name: family
        for name, family in posterior.beliefs.items()
        if isinstance(family, ExponentialFamily)
        and name not in posterior.observed
        and not on_data & {plate.name for plate in posterior.model.randoms[name].plates}
    }
    machine, joints, parts = posterior.machine, {}, {}
    for joint in posterior.graph.joints:
        kept = tuple(member for member in joint.members if member.name in families)
        if len(kept) > 1:
            part = Part(tuple(member.name for member in kept), bool(joint.variable.plates))
            joints[part] = Joint(joint.variable, kept)
            parts[part] = marginal_of(joint, kept, posterior.naturals_of(joint.variable.name), machine.sizes)
    joined = {name for part in joints for name in part.members}
    alone = {Part((name,)): family for name, family in families.items() if name not in joined}
    return Beliefs({**alone, **parts}, joints, machine.sizes)


def marginal_of(
    joint: Joint, kept: tuple[Random, ...], naturals: Naturals, sizes: Mapping[str, int]
) -> ExponentialFamily:
    """The belief of some members of a joint belief."""
    family = family_of(joint.variable)
    belief = family.from_naturals(as_numpy(tuple(naturals)))
    if len(kept) == len(joint.members):
        return belief
    with double_precision():

        def among(belief: ExponentialFamily) -> ExponentialFamily:
            moments = {joint.variable.name: belief.moments()}
            return family.from_moments(together(kept, joint.variable.plates, moments, (joint,), sizes).value)

        return as_numpy(compiled("some members", (joint, kept, dict(sizes)), among)(belief))


def _data_plates(model: Model, observed: Iterable[str]) -> set[str]:
    nodes = [*model.inputs.values(), *({**model.randoms, **model.lets}[name] for name in observed)]
    return {plate.name for node in nodes for plate in node.plates}


def baseline(machine: Machine, arrays: Arrays, beliefs: Beliefs) -> dict[Part, Naturals]:
    """The naturals of the priors of all carried parts."""
    return {part: _part_naturals(machine, arrays, part, beliefs.joints.get(part)) for part in beliefs.parts}


def _part_naturals(machine: Machine, arrays: Arrays, part: Part, joint: Joint | None) -> Naturals:
    if part in machine.graph.given_parts:
        return tuple(np.asarray(arrays[key]) for key in given_names(machine.graph.model, part))
    if joint is None:
        return prior_naturals(machine, arrays, part.members[0])
    whole = next((j for j in machine.graph.joints if j.members == joint.members), None)
    own = tuple(block for block in machine.graph.blocks if block.name in part.members)
    with double_precision():
        if whole is not None and all(block.constant and block.latent == (whole.variable.name,) for block in own):
            name = whole.variable.name
            prior = machine.function(
                "joint prior", own, lambda data: machine.constant_of(own, machine.scope(data))[name]
            )
            return as_numpy(tuple(prior(arrays)))
        families = {
            member.name: family_of(member).from_naturals(prior_naturals(machine, arrays, member.name))
            for member in joint.members
        }

        def joined(families: dict[str, ExponentialFamily]) -> tuple[Numeric, ...]:
            moments = {name: family.moments() for name, family in families.items()}
            found = together(joint.members, joint.variable.plates, moments, (), machine.sizes).value
            return tuple(family_of(joint.variable).from_moments(found).naturals())

        return tuple(map(np.asarray, machine.function("joint of priors", (joint,), joined)(families)))


def prior_naturals(machine: Machine, arrays: Arrays, name: str) -> Naturals:
    """The natural parameters of a variable's prior; UnsupportedError where that depends on other random variables."""
    graph = machine.graph
    variable = graph.model.randoms[name]
    if name in graph.given:
        part = Part((name,))
        if part not in graph.given_parts:
            raise UnsupportedError(
                f"'{name}' was given a belief together with other variables, and has no prior of its own. Read "
                "posterior.contribution, which keeps them together."
            )
        return tuple(np.asarray(arrays[key]) for key in given_names(graph.model, part))
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
    block = EnergyBlock(
        name=name,
        plates=variable.plates,
        latent=(name,),
        choice=Choice(EXACT, f"{factor.name} closed form", "exact", "the prior alone"),
        out=variable,
        factor=factor,
        args=args,
        constant=True,
    )

    def pulled(arrays):
        here = first_moments(variable, machine.scope(arrays))
        gradient = jax.grad(lambda own: block_energy(block, machine.scope(arrays, {name: own})))(here)
        return tuple(family_of(variable).pull(here, gradient))

    with double_precision():
        naturals = machine.function("prior naturals", (name,), pulled)(arrays)
        if variable.domain.is_discrete:
            naturals = (np.clip(naturals[0], -tables.CERTAIN, tables.CERTAIN),)
        return tuple(np.asarray(natural) for natural in naturals)


# what a run is given --------------------------------------------------------------------------------------------------


def given_beliefs(model: Model, binding: Binding, prior: object) -> dict[Part, ExponentialFamily]:
    """The families that `prior=` gives, checked against the model and the data; DataError where they do not fit."""
    if prior is None:
        return {}
    names = names_of(prior)
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
    families = {name: _stand_in(getattr(belief, "family", belief)) for name, belief in prior.items()}
    for name, family in families.items():
        _check_variable(model, binding, name, family)
        check_same_names("prior=", model.randoms[name], names, binding)
        _check_parents(model, binding, name, families)
    if isinstance(prior, Beliefs):
        return prior.parts
    return {Part((name,)): family for name, family in families.items()}


def names_of(given: object) -> dict[str, tuple[Any, ...]]:
    """The names of the elements of plates that a posterior has, or marginals by name."""
    binding = getattr(given, "binding", None)
    if binding is not None:
        return dict(binding.names)
    marginals = given.values() if isinstance(given, Mapping) else ()
    axes = (axis for marginal in marginals for axis in getattr(marginal, "axes", ()))
    return {axis.name: axis.labels for axis in axes if axis.labels is not None}


def check_same_names(what: str, node: Random, names: Mapping[str, tuple[Any, ...]], binding: Binding) -> None:
    """DataError where beliefs about elements of some names would be taken for those of others."""
    for plate in node.plates:
        theirs, ours = names.get(plate.name), binding.names.get(plate.name)
        if theirs is not None and ours is not None and theirs != ours:
            odd = next((label for label in ours if label not in set(theirs)), ours[0])
            raise DataError(
                f"{what} has beliefs of '{node.name}' about {', '.join(map(repr, theirs[:4]))}"
                f"{', ...' if len(theirs) > 4 else ''} of plate '{plate.name}', and the data name others, or in "
                f"another order, such as {odd!r}. Declare them all, m.plate('{plate.name}', names=[...]), so that all "
                "batches have them."
            )


def given_arrays(model: Model, families: Mapping[Part, ExponentialFamily]) -> dict[str, np.ndarray]:
    """The given naturals under the names by which the program knows them."""
    return {
        key: np.asarray(natural, float)
        for part, family in families.items()
        for key, natural in zip(given_names(model, part), family.naturals(), strict=True)
    }


def _stand_in(family: Any) -> Any:  # whatever the user gave
    """The projection of a mixture over a grid on the family that messages belong to; anything else as it is."""
    return family.projection() if isinstance(family, (GridMixture, OnGrid)) else family


def _check_variable(model: Model, binding: Binding, name: str, family: object) -> None:
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
    wanted = family_of(variable)
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
    _check_proper(f"'{name}'", family, "in prior=. Use the marginal of a run that converged")


def _check_proper(name: str, family: ExponentialFamily, where: str) -> None:
    with double_precision():
        proper = np.asarray(asked.is_proper(family))
        finite = all(np.isfinite(natural).all() for natural in family.naturals())
    if not proper.all() or not finite:
        places = np.argwhere(~proper)
        place = f" at {places[0].tolist()}" if len(places) and proper.ndim else ""
        raise DataError(f"The belief of {name}{place} is improper (it cannot be normalised) {where}.")


def _check_parents(model: Model, binding: Binding, name: str, families: Collection[str]) -> None:
    """A variable whose prior is replaced sends no messages to its parents: their beliefs must hold what it had sent."""
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
