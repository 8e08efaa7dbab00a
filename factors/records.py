"""Records of arrays: frozen dataclasses that JAX takes apart into their fields and puts together again."""

from __future__ import annotations

import abc
import dataclasses
from typing import Any, dataclass_transform

import jax


def fixed() -> Any:
    """A field that is no array: part of what a record is, which functions are compiled for."""
    return dataclasses.field(metadata={"static": True})


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(fixed,))
class Record(abc.ABC):  # noqa: B024
    """What inherits from this is a frozen dataclass and a pytree of its fields, but for those that are `fixed`."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        dataclasses.dataclass(frozen=True, eq=False)(cls)
        _register(cls)


def _register(cls: type) -> None:
    """Tells JAX of a record. It puts in whatever it likes for arrays, so no constructor is called."""
    fields = dataclasses.fields(cls)
    arrays = tuple(f.name for f in fields if not f.metadata.get("static", False))
    kept = tuple(f.name for f in fields if f.metadata.get("static", False))
    keys = tuple(map(jax.tree_util.GetAttrKey, arrays))

    def flat(record: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        return tuple(getattr(record, name) for name in arrays), tuple(getattr(record, name) for name in kept)

    def flat_with_keys(record: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        values, rest = flat(record)
        return tuple(zip(keys, values, strict=True)), rest

    def whole(rest: tuple[Any, ...], values: Any) -> Any:
        made = object.__new__(cls)
        made.__dict__.update(zip(arrays, values, strict=True))
        made.__dict__.update(zip(kept, rest, strict=True))
        return made

    jax.tree_util.register_pytree_with_keys(cls, flat_with_keys, whole, flat)
