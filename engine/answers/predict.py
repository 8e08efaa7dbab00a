"""Predictions: what was learned, carried to new inputs."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping

import jax

from ...compiler.algebra.known import latent_names
from ...compiler.data.bind import Binding
from ...compiler.graph import Plan
from ...compiler.language.nodes import Expr, Let, Random
from ...factors.errors import DataError
from ...factors.families import Family
from ..blocks.gaussian_process import anchors
from ..data.missing_and_sparse import Arrays, in_blocks
from ..data.rules_of_arguments import bind_checked
from ..distributions.cases import Projected
from ..expressions.after import Carried
from ..expressions.marginal_of import OF_A_CLASS, marginal
from ..support.asked_arguments import UserData
from ..support.concrete import as_numpy
from ..values.scope import Scope
from ..values.sparse_rows import Pages
from . import next_prior
from .marginal import Marginal
from .new_elements import changed_variables, fresh_plates
from .outcome import Outcome
from .predict_rows import prediction_rows, predictor


def predict(
    posterior: Outcome, data: UserData, sizes: Mapping[str, int], new: Collection[str] | None
) -> dict[str, Marginal]:
    """See `Posterior.predict`."""
    model, old = posterior.model, posterior.binding
    unknown = [name for name in data if name not in model.inputs]
    if unknown:
        raise DataError(
            f"predict() takes inputs; {unknown[0]!r} is "
            f"{'a variable' if unknown[0] in {**model.randoms, **model.lets} else 'unknown'}. "
            f"The model's inputs are: {', '.join(model.inputs) or 'none'}."
        )
    learned = [name for name in posterior.beliefs if name not in old.observed]
    fresh = fresh_plates(model, old, learned, data, sizes, new)
    kept = {
        name: array
        for name, array in old.inputs.items()
        if name not in data and not fresh & {plate.name for plate in model.inputs[name].plates}
    }
    told = {plate.name for name in data for plate in model.inputs[name].plates}
    before = {name: size for name, size in old.sizes.items() if name not in fresh or name not in told}
    binding = bind_checked(model, {**kept, **data}, {**before, **sizes})
    with jax.enable_x64(True):
        return _marginals(posterior, binding, fresh, frozenset(data))


def _marginals(
    posterior: Outcome, binding: Binding, fresh: frozenset[str], given: frozenset[str]
) -> dict[str, Marginal]:
    """The marginals of what the inputs `given` and the plates `fresh` change, from the beliefs that stay."""
    model, machine = posterior.model, posterior.machine
    named = {**model.randoms, **model.lets}

    def stays(node: Expr) -> bool:
        return not fresh & {plate.name for plate in node.plates}

    joints, families = [], {}
    for joint in machine.graph.joints:
        members = tuple(member for member in joint.members if stays(member))
        if members:
            joints.append(dataclasses.replace(joint, members=members))
            naturals = posterior.naturals_of(joint.variable.name)
            families[joint.variable.name] = next_prior.marginal_of(joint, members, naturals, machine.sizes)
    families |= {name: family for name, family in posterior.families.items() if name in named and stays(named[name])}
    changed = changed_variables(model, named, fresh, given, families)
    outside = {*machine.graph.partly, *changed}
    observed = {name: array for name, array in posterior.observed.items() if name not in outside}
    wanted = tuple(name for name in changed if name in set(posterior))
    outputs = posterior.result.outputs
    functions = anchors(machine.ep_blocks, outputs, machine.flat, machine.scope(posterior.arrays), fresh)
    data = {**_inputs(machine.graph, wanted, binding), **observed, **functions}
    forward = predictor(posterior.predictors, machine.graph, tuple(joints), wanted, frozenset(observed), binding.sizes)
    found = forward(data, as_numpy(families))
    jax.block_until_ready(found)
    graph = dataclasses.replace(machine.graph, observed=frozenset(observed), joints=tuple(joints))
    known = {**families, **{name: family for name, family in found.items() if name in model.randoms}}
    for name in latent_names(graph, [named[n].expression for n in wanted if isinstance(named[n], Let)]):
        if name not in known and name not in observed:  # what no factor of the run told of
            known[name] = posterior[name].family
    moments = {name: family.moments() for name, family in known.items()}
    run = Carried(graph, Scope(binding.sizes, data, moments, joints=graph.joints), known)
    return {name: _marginal(named[name], found[name], run) for name in wanted}


def _inputs(plan: Plan, names: tuple[str, ...], binding: Binding) -> Arrays:
    """The inputs as the forward pass takes them."""
    rows = prediction_rows(plan, names, binding.sizes) if names else None
    return in_blocks(binding, plan, [] if rows is None else [rows])


def _marginal(node: Random | Let, family: Family, run: Carried) -> Marginal:
    """A predictive marginal; that of an expression of numbers from their joint distribution, as in a posterior."""
    cut = any(isinstance(array, Pages) for array in run.scope.data.values())  # many rows are read block by block
    if isinstance(node, Random) or not (node.domain.is_gaussian or node.domain.is_bounded):
        return Marginal(family, node.name, OF_A_CLASS if isinstance(node, Let) and node.domain.is_simplex else "")
    if cut:
        return Marginal(Projected(family), node.name)
    found = marginal(node, run)
    family = family if found.family is None else found.family
    return Marginal(family if found.exact else Projected(family), node.name, found.note, found.shape)
