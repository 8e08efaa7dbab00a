"""Draws of a whole model: from its priors, and from what a posterior knows of its variables.

What is known is given, all else is drawn from the model in the order of its declarations.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping

import jax
import numpy as np

from ...compiler.data.bind import Binding, plate_sizes
from ...compiler.language.model import Model
from ...compiler.language.nodes import Expr
from ...factors.calls import call_checked
from ...factors.errors import DataError, UnsupportedError
from ...factors.switches import double_precision
from ..answers.inferred import Inferred
from ..answers.new_elements import changed_variables
from ..answers.predict import asked_for
from ..data.rules_of_arguments import bind_checked
from ..options import seed_of
from ..support.asked_arguments import UserData, check_counts, named, the_model
from .forward import drawn_from_the_model
from .joint import Joint
from .sample import sample

THINNING = 10  # sweeps between two draws of priors that constraints tie together
Draws = dict[str, np.ndarray]


@call_checked
def simulate(
    model: Model, n: int = 1, data: UserData | None = None, seed: int = 0, sizes: Mapping[str, int] | None = None
) -> Draws:
    """Draws from a model before anything is observed, theta ~ p(theta), y ~ p(y | theta): `cv.simulate(model, 100)`.

    `model` is the model; `n`, `data`, `seed` and `sizes` are those of `Model.simulate`, which this is as a function.
    Returns arrays by name, shaped (n,) + plates + event. Raises as `Model.simulate`.
    """
    check_counts("simulate", n=n)
    seed, inputs = seed_of(seed), _without_observations(the_model(model), named({} if data is None else data), sizes)
    if model.constraints:
        chain = sample(model, inputs.inputs, draws=n * THINNING, chains=1, seed=seed, sizes=inputs.sizes)
        return {name: array[0, ::THINNING] for name, array in chain.items()}
    with double_precision():
        joint = Joint(model, inputs)
        found = drawn_from_the_model(joint, {}, {*joint.data}, n, jax.random.key(seed))
    _check_all(model, found)
    return found


def _without_observations(model: Model, data: UserData, sizes: Mapping[str, int] | None) -> Binding:
    """Inputs and sizes; observations give sizes alone."""
    binding = bind_checked(model, data, sizes)
    return dataclasses.replace(binding, observed={}, missing={})


def _check_all(model: Model, found: Draws) -> None:
    """UnsupportedError, with the reason, for a variable that could not be drawn."""
    for name, node in model.randoms.items():
        if name not in found:
            raise UnsupportedError(
                f"simulate(): '{name}' cannot be drawn: its term, {node.term!r}, or one above it is improper or has no "
                "draws. Give it a proper prior, or draw from the posterior: posterior.predictive(n)."
            )


def predictive(
    posterior: Inferred,
    draws: Draws,
    n: int,
    data: UserData | None,
    seed: int,
    sizes: Mapping[str, int] | None,
    new: Collection[str] | None,
) -> Draws:
    """What the model generates given joint `draws` of its posterior: see `AnyPosterior.predictive`."""
    model = posterior.model
    if data is None:
        binding, fresh = dataclasses.replace(posterior.binding, observed={}, missing={}), frozenset()
        wanted = set(posterior.observed)
        if not wanted:
            raise DataError(
                "predictive() draws anew what was observed, and here nothing was but constraints. Give new inputs: "
                "posterior.predictive(n, data)."
            )
    else:
        binding, fresh = asked_for(posterior, named(data), plate_sizes(sizes), new)
        binding, wanted = dataclasses.replace(binding, observed={}, missing={}), set()
    nodes = {**model.randoms, **model.lets}

    def stays(node: Expr) -> bool:
        return not fresh & {plate.name for plate in node.plates}

    kept = {name: array for name, array in draws.items() if name in model.randoms and stays(nodes[name])}
    kept = {name: array for name, array in kept.items() if name not in wanted}
    if data is not None:
        wanted = set(changed_variables(model, nodes, fresh, frozenset(data), dict.fromkeys(kept)))
    with double_precision():
        joint, key = Joint(model, binding), jax.random.key(seed)
        found = drawn_from_the_model(joint, kept, {*joint.data, *kept}, n, key)
    missing = sorted(wanted - found.keys())
    if missing:
        raise UnsupportedError(
            f"predictive(): '{missing[0]}' cannot be drawn: its term, or one above it, has no draws. "
            "posterior.predict(data) has its marginal."
        )
    told = wanted | {name for name in model.lets if name in found}
    return {name: array for name, array in found.items() if name in told}
