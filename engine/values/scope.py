"""What an expression may look up while it is evaluated."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import PyTree

from ...compiler.blocks.base import Block
from ...compiler.graph import Joint, NormalPair
from ...compiler.language.nodes import Expr, Plate
from .plated import Placed
from .row_blocks import Rows, Window

if TYPE_CHECKING:
    from .dealt import Dealt


@dataclasses.dataclass(frozen=True)
class Scope:
    """What an expression may look up: plate sizes, data by name, moments by name, and the bound for its links.

    `rows` says how large factors are cut into blocks of rows, `window` which of these is seen (`row_blocks.py`);
    `padded` are the plates of which not all rows count (`padding.py`), `turns` says how the rows of a factor take
    them (`compiler/schedules.py`), and `dealt` which rows are dealt to several devices (`dealt.py`).
    """

    sizes: dict[str, int]
    data: dict[str, PyTree]
    moments: dict[str, PyTree]
    bound: str | None = None
    joints: tuple[Joint, ...] = ()
    pairs: tuple[NormalPair, ...] = ()
    rows: Mapping[Block, Rows] = dataclasses.field(default_factory=dict)
    window: Window | None = None
    padded: tuple[Plate, ...] = ()
    turns: str = "batches"
    dealt: Dealt | None = None

    @property
    def whole_sizes(self) -> Mapping[str, int]:
        """The sizes of plates, that of the window's with all of its rows."""
        rows = None if self.window is None else self.window.rows
        return self.sizes if rows is None else {**self.sizes, rows.plate.name: rows.total}

    def seen(self, found: PyTree, plates: tuple[Plate, ...]) -> Placed:
        """What was looked up, as far as it is inside the window."""
        if hasattr(found, "seen"):
            return found.seen(self.window, plates)
        placed = found if isinstance(found, Placed) else Placed(found, plates)
        placed = placed if self.window is None else self.window.seen(placed)
        narrow = getattr(placed.value, "dtype", None) == np.float32
        return Placed(placed.value.astype(np.float64), placed.plates) if narrow else placed

    def with_data(self, extra: dict[str, PyTree]) -> Scope:
        """The same scope with more data."""
        return dataclasses.replace(self, data={**self.data, **extra})

    def with_moments(self, moments: dict[str, PyTree]) -> Scope:
        """The same scope with other moments."""
        return dataclasses.replace(self, moments=moments)

    def joint_of(self, variable: Expr) -> Joint | None:
        """The joint belief that a variable is a member of, if its moments are there."""
        held = (joint for joint in self.joints if joint.variable.name in self.moments)
        return next((joint for joint in held if variable in set(joint.members)), None)

    def size(self, size: int | Plate) -> int:
        """A number of classes, where it may be a plate."""
        return self.sizes[size.name] if isinstance(size, Plate) else size
