"""Predictions: what was learned, carried to new inputs."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from functools import partial
from typing import TYPE_CHECKING

import jax
import numpy as np

from ...compiler.algebra.known import latent_names
from ...compiler.data.bind import Binding
from ...compiler.data.labels import Names, columns_of, is_frame, names_of_rows, placed, resolved
from ...compiler.data.sparse_matrices import is_paged
from ...compiler.graph import Plan
from ...compiler.language.model import Model
from ...compiler.language.nodes import Derived, Expr, Let, Random
from ...factors.errors import DataError
from ...factors.families import Family
from ...factors.switches import double_precision
from ..blocks.gaussian_process import anchors
from ..data.missing_and_sparse import Arrays, in_blocks
from ..data.rules_of_arguments import bind_checked
from ..distributions.cases import Projected
from ..expressions.after import Carried
from ..expressions.marginal_of import OF_A_CLASS, marginal
from ..expressions.own_noise import standard, written_out
from ..run.padded import PaddedRows, padded_plates
from ..support import asked_families as asked
from ..support.asked_arguments import UserData, named
from ..support.concrete import as_numpy
from ..values.scope import Scope
from ..values.sparse_rows import Pages
from . import next_prior
from .inferred import Inferred, axes_of
from .marginal import Marginal
from .new_elements import changed_variables, fresh_plates
from .outcome import Outcome
from .predict_rows import prediction_rows, predictor
from .predictive import forward as forward_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def inputs_in(model: Model, data: UserData) -> UserData:
    """Of a frame the inputs that it has, by name; what is given by name as it is. DataError for other things."""
    if not is_frame(named(data)):
        return data
    return {name: column for name, column in columns_of(model, data).items() if name in model.inputs}


def asked_for(
    posterior: Inferred, data: UserData, sizes: Mapping[str, int], new: Collection[str] | None
) -> tuple[Binding, frozenset[str]]:
    """The data that a prediction is for, old and new, and the plates with new elements."""
    model, old = posterior.model, posterior.binding
    unknown = [name for name in data if name not in model.inputs]
    if unknown:
        raise DataError(
            f"predict() takes inputs; {unknown[0]!r} is "
            f"{'a variable' if unknown[0] in {**model.randoms, **model.lets} else 'unknown'}. "
            f"The model's inputs are: {', '.join(model.inputs) or 'none'}."
        )
    rows = {plate: labels for plate, labels in names_of_rows(model, data).items() if plate in model.plates}
    learned = [name for name in posterior.beliefs if name not in old.observed]
    held = {plate.name for name in learned for plate in model.randoms[name].plates}
    stay = {
        name: known
        for name, known in old.names.items()
        if name not in rows or (name in held and set(rows[name]) == set(known))  # new rows keep their own order
    }
    data = resolved(model, data, stay).data
    fresh = fresh_plates(model, old, learned, data, sizes, new)
    kept = {
        name: array
        for name, array in old.inputs.items()
        if name not in data and not fresh & {plate.name for plate in model.inputs[name].plates}
    }
    told = {plate.name for name in data for plate in model.inputs[name].plates}
    told |= {name for name, plate in model.plates.items() if isinstance(plate, Derived)}
    before = {name: size for name, size in old.sizes.items() if name not in fresh or name not in told}
    _check_moved(rows, old.names, stay, fresh)
    names = {name: known for name, known in {**rows, **stay}.items() if name in rows or name not in fresh}
    binding = bind_checked(model, placed(model, {**kept, **data}, names), {**before, **sizes})
    return dataclasses.replace(binding, names={**names, **binding.names}), fresh


def _check_moved(rows: Names, old: Names, stay: Names, fresh: frozenset[str]) -> None:
    """DataError for rows of other names than those that something was learned of."""
    for name in rows:
        if name in old and name not in stay and name not in fresh:
            odd = next(iter(set(rows[name]) - set(old[name])), next(iter(rows[name])))
            raise DataError(
                f"predict() is given rows of plate '{name}' with other names than those that were learned of, such as "
                f"{odd!r}. Give rows of the same names; or, if all are other ones, say so: new=['{name}']."
            )


def predict(
    posterior: Outcome, data: UserData, sizes: Mapping[str, int], new: Collection[str] | None
) -> dict[str, Marginal]:
    """See `Posterior.predict`."""
    binding, fresh = asked_for(posterior, data, sizes, new)
    padding = _padding(posterior, binding, fresh, {**posterior.request.sizes, **sizes})
    larger = dataclasses.replace(binding, inputs=padding.rows(binding.inputs), sizes=padding.larger_sizes)
    with double_precision():
        found = _marginals(posterior, larger, fresh, frozenset(data))
    found = {name: OfFewerRows(whole, padding) if padding.holds(name) else whole for name, whole in found.items()}
    return told_apart(posterior.model, binding, found)


def told_apart(model: Model, binding: Binding, found: dict[str, Marginal]) -> dict[str, Marginal]:
    """The marginals with what their axes are."""
    return {name: marginal.along(axes_of(model, name, binding.names)) for name, marginal in found.items()}


def _padding(posterior: Outcome, binding: Binding, fresh: frozenset[str], asked: Mapping[str, int]) -> PaddedRows:
    """The new rows of plates that a run pads too: predictions of a few rows more need no other forward pass."""
    sparse = [name for name, array in binding.inputs.items() if is_paged(array)]
    plates = padded_plates(posterior.machine.graph, binding.sizes, asked, sparse)
    return PaddedRows(posterior.model, tuple(plate for plate in plates if plate.name in fresh), binding.sizes)


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
    whole = (pair for pair in machine.graph.pairs if stays(pair.mean))
    families |= {pair.variable.name: posterior.families[pair.variable.name] for pair in whole}
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
    new_rows = dataclasses.replace(graph, forward=(*graph.forward, *changed))
    written = {n: written_out(new_rows, node.expression) for n in wanted if isinstance(node := named[n], Let)}
    for _, noises in written.values():
        known |= standard(noises, binding.sizes)
    for name in latent_names(graph, [expression for expression, _ in written.values()]):
        if name not in known and name not in observed:  # what no factor of the run told of
            known[name] = posterior[name].family
    moments = {name: asked.moments(family) for name, family in known.items()}
    run = Carried(graph, Scope(binding.sizes, data, moments, joints=graph.joints), known)
    for name, (expression, noises) in written.items():
        if noises:
            named[name] = dataclasses.replace(named[name], expression=expression)
            found[name] = forward_of(named[name], run.scope, known)
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


class OfFewerRows(Marginal):
    """The marginal of the rows that were asked for, of one of padded rows.

    That is asked what takes a function that is made for its shape.
    """

    def __init__(self, whole: Marginal, padding: PaddedRows) -> None:
        self._whole, self._cut = whole, partial(padding.first_rows, whole.name)
        super().__init__(self._cut(whole.family), whole.name, whole.note, self._table if whole.has_shape else None)

    def _table(self, own: Family) -> Family | None:
        """The distribution of an expression that is more than its family."""
        whole = self._whole.distribution
        return None if whole is self._whole.family else dataclasses.replace(self._cut(whole), projection=own)

    @property
    def mean(self) -> np.ndarray:
        """E x; P(True) of a boolean, the probability vector of a category."""
        return self._cut(self._whole.mean)

    @property
    def variance(self) -> np.ndarray:
        """Var x, element by element."""
        return self._cut(self._whole.variance)

    def quantile(self, q: ArrayLike) -> np.ndarray:
        """The smallest value x with P(X <= x) >= q, element by element; see `Marginal.quantile`."""
        return self._cut(self._whole.quantile(q), np.ndim(q))
