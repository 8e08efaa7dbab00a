"""Predictions for names that the data did not have: the posterior of the same data, with these elements beside them."""

from __future__ import annotations

from typing import Any

from ...compiler.data.labels import columns_of, placed, unknown_labels
from ...compiler.portable import called
from ...factors.errors import ModelError, UnsupportedError
from ..support.asked_arguments import UserData, named
from .inferred import Inferred

CHOICES = ("error", "prior")


def with_unseen(posterior: Inferred, data: UserData, unseen: str) -> Any:
    """The posterior that answers for the names in `data`: itself where it has all, or where unseen ones are errors.

    Else it is inferred again with the unseen elements, of which only the prior is known.
    """
    if not isinstance(unseen, str) or unseen not in CHOICES:
        raise ModelError(f"unseen={unseen!r} is 'error', or 'prior': names that the data did not have, by their prior.")
    model, binding = posterior.model, posterior.binding
    columns = columns_of(model, named(data))
    found = {} if unseen == "error" else unknown_labels(model, columns, binding.names)
    if not found:
        return posterior
    for plate, labels in found.items():
        if plate in model.names or plate not in model.plates:
            raise UnsupportedError(
                f"unseen='prior': {labels[0]!r} is none of the names that '{plate}' was declared with. Add it there."
            )
    if posterior.graph.given_parts:
        raise UnsupportedError(
            "unseen='prior' infers again, and beliefs that were given with prior= are about the elements that were "
            "there. Declare all names before the first batch: m.plate(name, names=[...])."
        )
    names = {plate: (*labels, *found.get(plate, ())) for plate, labels in binding.names.items()}
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
