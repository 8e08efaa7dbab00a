"""What a file of a posterior claims, looked at before anything is made of it: beliefs, counts, shapes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping

import jax
import numpy as np
from jaxtyping import Bool

from ...factors.families import Family
from ...factors.families.base import ExponentialFamily
from ...factors.switches import double_precision
from ..distributions.mixed_over_grid import IMPOSSIBLE, GridMixture
from ..distributions.partly_observed import Completed
from .description import Description

RECORDED = ("['evidences']", "['residuals']")  # one entry for each sweep, or a single one in a batch
FINITE = ("['beliefs']", "['messages']")  # the other outputs may have NaN where nothing was recorded


def check_belief(family: Family) -> None:
    """ValueError where a family of the file is no distribution: NaN, a negative variance, fields that do not fit.

    The uniform belief, of natural parameters zero, is that of a prediction without a variance.
    """
    for field in dataclasses.fields(family):
        content = getattr(family, field.name)
        if field.metadata.get("static"):
            continue
        for part in content if isinstance(content, tuple) else (content,):
            if not isinstance(part, Family) and np.asarray(part).dtype.kind == "f" and np.isnan(part).any():
                raise ValueError(f"a {type(family).__name__} of it has {field.name} NaN")
    if isinstance(family, GridMixture):
        _check_mixture(family)
    elif isinstance(family, ExponentialFamily):
        _check_natural(family)
    else:
        _check_fit(family)
    if isinstance(family, Completed):
        plates = np.shape(family.missing)
        inside = np.shape(family.value)[: len(plates)], getattr(family.predicted, "plates", plates)[: len(plates)]
        if set(inside) != {plates}:
            raise ValueError(f"a partly observed variable of it has values of shapes {inside} over plates of {plates}")


def _check_mixture(family: GridMixture) -> None:
    """Components that are next to impossible together may be no distributions: no answer shows them."""
    heavy = check_weights(family.weights)
    lengths = {np.shape(leaf)[:1] for leaf in jax.tree.leaves(family.components)}
    if lengths != {heavy.shape}:
        raise ValueError(f"a mixture of it has {len(heavy)} weights and components of shapes {sorted(lengths)}")
    _check_with_parts(jax.tree.map(lambda leaf: leaf[heavy], family.components))
    _check_fit(family)


def _check_with_parts(family: Family) -> None:
    """ValueError where a family, or one that it is made of, is no distribution."""
    for field in dataclasses.fields(family):
        content = getattr(family, field.name)
        for part in content if isinstance(content, tuple) else (content,):
            if isinstance(part, Family):
                _check_with_parts(part)
    check_belief(family)


def check_weights(weights: object) -> Bool[np.ndarray, " K"]:
    """Which points of a grid are not next to impossible together; ValueError for weights that are no probabilities."""
    found = np.asarray(weights)
    if found.ndim != 1 or found.dtype.kind != "f" or not (found >= 0).all() or abs(found.sum() - 1.0) > IMPOSSIBLE:
        raise ValueError("the weights of its grid are no probabilities")
    order = np.argsort(found)
    heavy = np.ones(len(found), bool)
    heavy[order[np.cumsum(found[order]) < IMPOSSIBLE]] = False
    return heavy


def check_values(values: Mapping[str, np.ndarray], kinds: Mapping[str, str], number: int) -> None:
    """ValueError where integrated scalars are others than the model's, or not one value of their domain a point."""
    if set(values) != set(kinds):
        raise ValueError(f"it integrated {', '.join(values)}, which are no scalars of the model")
    for name, array in values.items():
        inside = {"positive": array > 0, "unit": (array >= 0) & (array <= 1), "category": array >= 0}
        if array.shape != (number,) or not np.isfinite(array).all() or not np.all(inside.get(kinds[name], True)):
            raise ValueError(f"its values of {name} are not {number} values of a {kinds[name]} variable")


def _check_fit(family: Family) -> None:
    """ValueError where the parts of a family have shapes that have no mean together; nothing is computed."""
    try:
        with double_precision():
            jax.eval_shape(family.mean)
    except (TypeError, ValueError, IndexError) as problem:
        raise ValueError(f"a {type(family).__name__} of it has parts that do not fit: {problem}") from None


def _check_natural(family: ExponentialFamily) -> None:
    title = type(family).__name__
    shapes = [np.shape(natural) for natural in family.naturals()]
    split = [len(shape) - ndim for shape, ndim in zip(shapes, family.natural_ndims, strict=True)]
    plates = {shape[:place] for shape, place in zip(shapes, split, strict=True)}
    events = {size for shape, place in zip(shapes, split, strict=True) for size in shape[place:]}
    if min(split) < 0 or len(plates) > 1 or len(events) > 1:
        raise ValueError(f"a {title} of it has parameters of shapes {', '.join(map(str, shapes))}")
    with double_precision():
        proper = np.asarray(family.is_proper())
    flat = [
        (np.asarray(natural) == 0).all(tuple(range(place, np.ndim(natural))))
        for natural, place in zip(family.naturals(), split, strict=True)
    ]
    if not np.all(proper | np.logical_and.reduce(flat)):
        raise ValueError(f"a {title} of it cannot be normalised (a negative variance or the like)")


def check_description(meta: Description, array: Callable[[int], np.ndarray]) -> None:
    """ValueError for counts and texts that are none, and for the evidence NaN of a run that converged."""
    if meta["code"] == "converged" and np.isnan(array(meta["log_evidence"])).any():
        raise ValueError("its evidence is NaN")
    numbers = {"iterations": meta["iterations"], **meta["floored"]}
    for name, number in {**numbers, **meta["sizes"]}.items():
        if isinstance(number, bool) or not isinstance(number, int) or number < (name in meta["sizes"]):
            raise ValueError(f"its {name} is {number!r}, which is no count")
    timing = meta.get("timing")
    if timing is not None and not (isinstance(timing, list) and len(timing) == 5 and all(map(_is_number, timing))):
        raise ValueError(f"its timing is {timing!r}, which is no list of five numbers")
    without = meta["without_family"]
    if not isinstance(without, Mapping) or not all(isinstance(reason, str) for reason in without.values()):
        raise ValueError("its reasons for variables without a family are none")
    texts = {name: meta[name] for name in ("name", "diagnosis", "explanation", "model", "code")}
    for name, text in {**texts, "remark": meta.get("remark", "")}.items():
        if not isinstance(text, str):
            raise ValueError(f"its {name} is {text!r}, which is no text")


def _is_number(value: object) -> bool:
    return isinstance(value, (bool, int, float))


def check_leaves(
    form: Mapping[str, jax.ShapeDtypeStruct], leaves: Iterable[np.ndarray], heavy: Bool[np.ndarray, " K"] | None = None
) -> None:
    """ValueError where the outputs of a run have other shapes or types than the program's, or NaN in a belief.

    Outputs of several runs are stacked: `heavy` says at which of them beliefs must be known.
    """
    for (place, wanted), array in zip(form.items(), leaves, strict=True):
        if heavy is not None and array.shape[:1] != heavy.shape:
            raise ValueError(f"its output {place} is of shape {array.shape} for {len(heavy)} points")
        leaf = array if heavy is None else array[heavy]
        shape = leaf.shape if heavy is None else leaf.shape[1:]
        same = shape[1:] == wanted.shape[1:] if place in RECORDED else shape == wanted.shape
        if not same or leaf.dtype != wanted.dtype:
            raise ValueError(
                f"its output {place} is {leaf.dtype} of shape {shape}; the program has {wanted.dtype} of shape "
                f"{wanted.shape}"
            )
        if leaf.dtype.kind == "f" and place.startswith(FINITE) and np.isnan(leaf).any():
            raise ValueError(f"its output {place} is NaN")
