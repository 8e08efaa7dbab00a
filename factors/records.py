"""Records of arrays: frozen dataclasses that JAX takes apart into their fields and puts together again."""

from __future__ import annotations

import abc
import dataclasses
from typing import Any, dataclass_transform

import jax


def fixed() -> Any:
    """A field that is no array: part of what a record is, which functions are compiled for."""
    return dataclasses.field(metadata={"fixed": True})


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(fixed,))
class Record(abc.ABC):  # noqa: B024
    """What inherits from this is a frozen dataclass and a pytree of its fields, but for those that are `fixed`."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        dataclasses.dataclass(frozen=True, eq=False)(cls)
        fields = dataclasses.fields(cls)  # type: ignore[arg-type]
        names = {kind: [f.name for f in fields if f.metadata.get("fixed", False) is kind] for kind in (False, True)}
        jax.tree_util.register_dataclass(cls, data_fields=names[False], meta_fields=names[True])
