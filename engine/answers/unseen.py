"""Predictions for names that the data did not have: the posterior of the same data, with these elements beside them."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from ...compiler.data.labels import Names, placed, unknown_labels
from ...compiler.element_names import Label
from ...compiler.language.model import Model
from ...compiler.language.nodes import Constant, Derived, Plate, Position, inside, parents
from ...compiler.portable import called
from ...factors.errors import ModelError, UnsupportedError
from ..support.asked_arguments import UserData
from .inferred import Inferred

CHOICES = ("error", "prior")


def with_unseen(posterior: Inferred, data: UserData, unseen: str) -> Any:
    """The posterior that answers for the names in `data`: itself where it has all, or where unseen ones are errors.

    Else it is inferred again with the unseen elements, of which only the prior is known.
    """
    if not isinstance(unseen, str) or unseen not in CHOICES:
        raise ModelError(f"unseen={unseen!r} is 'error', or 'prior': names that the data did not have, by their prior.")
    model, binding = posterior.model, posterior.binding
    found = {} if unseen == "error" else unknown_labels(model, data, binding.names)
    if not found:
        return posterior
    for plate, labels in found.items():
        if plate not in model.plates:
            raise UnsupportedError(
                f"unseen='prior': {labels[0]!r} is none of the classes of '{plate}', of which there are no more than "
                "declared. Add it there."
            )
    _check_may_grow(model, found)
    if posterior.graph.given_parts:
        raise UnsupportedError(
            "unseen='prior' infers again, and beliefs that were given with prior= are about the elements that were "
            "there. Declare all names before the first batch: m.plate(name, names=[...])."
        )
    names = {plate: (*labels, *found.get(plate, ())) for plate, labels in binding.names.items()}
    model = _with_more(model, {plate: names[plate] for plate in found if plate in model.names})
    request, options = posterior.request, posterior.request.options
    sizes = {plate: size for plate, size in request.sizes.items() if plate not in found}
    given = placed(model, {**binding.inputs, **binding.masked()}, names)
    arguments = {
        "method": request.method,
        "sizes": sizes,
        "accuracy": options.accuracy,
        "tolerance": options.tolerance,
        "max_iterations": options.max_iterations,
        "damping": options.damping,
        "schedule": options.schedule,
    }
    return called("engine.infer", "infer_with", model, given, arguments)


def _check_may_grow(model: Model, found: Mapping[str, list[Label]]) -> None:
    """UnsupportedError where something of the model stands at each element of a plate, or counts from its end."""
    nodes = [*model.lets.values(), *model.constraints.values()]
    nodes += [parent for node in model.randoms.values() for parent in parents(node)]
    for plate, labels in found.items():
        parts = [part for part in model.plates.values() if isinstance(part, Derived)]
        why = [f"the input '{node.name}'" for node in model.inputs.values() if plate in _names(node.plates)]
        why += [
            "a constant array" for node in inside(nodes) if isinstance(node, Constant) and plate in _names(node.plates)
        ]
        why += ["a slice of it" for part in parts if plate in _names(part.sources)]
        why += [
            f"[{node.written}]"
            for node in inside(nodes)
            if isinstance(node, Position) and node.start < 0 and node.domain.plate.name == plate
        ]
        if why:
            raise UnsupportedError(
                f"unseen='prior': '{plate}' has no {labels[0]!r}, and the model has {why[0]}, made for the elements "
                "that there are. Infer with all names: m.plate(name, names=[...])."
            )


def _names(plates: Iterable[Plate]) -> list[str]:
    return [plate.name for plate in plates]


def _with_more(model: Model, names: Names) -> Model:
    """The model whose plates that were declared with names have these, of which there are more; itself without any."""
    if not names:
        return model
    plates = {name: dataclasses.replace(model.plates[name], size=len(labels)) for name, labels in names.items()}
    larger = copy.deepcopy(model, {id(model.plates[name]): plate for name, plate in plates.items()})
    larger.names |= names
    larger.sizes |= {name: (len(labels), "its declaration") for name, labels in names.items()}
    return larger
