"""The graph as the passes see it, and the blocks that a plan is made of.

Everything here is frozen; a pass returns a new graph.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from .expressions import Expr, Let, Plate, Random
from .methods import Method


@dataclasses.dataclass(frozen=True, eq=False)
class Gate:
    """A block is in force only where `selector` has a value: its case number, or its position on the plate `axis`."""

    selector: Expr
    axis: Plate | None = None
    case: int | None = None


@dataclasses.dataclass(frozen=True, eq=False)
class LinearTerm:
    """coefficient * element, or coefficient * <direction, element> for a vector variable.

    `element` is the variable, or a gather of it by index data: topology is data. `coefficients` are multiplied.
    """

    variable: Random
    element: Expr
    coefficients: tuple[Expr, ...] = ()
    direction: Expr | None = None


@dataclasses.dataclass(frozen=True, eq=False)
class LinearForm:
    """sum of terms + sum of products of data + independent noise: the Gaussian argument of a scalar factor.

    `noise` holds (coefficients, precision) pairs: each adds coefficient^2 / precision to the variance.
    """

    terms: tuple[LinearTerm, ...]
    offsets: tuple[tuple[Expr, ...], ...] = ()
    noise: tuple[tuple[tuple[Expr, ...], Expr], ...] = ()


@dataclasses.dataclass(frozen=True, eq=False)
class Absorbed:
    """A Gaussian variable integrated out inside a block: it has one consumer, so nothing is lost.

    `form` is its own mean.
    """

    variable: Random
    coefficients: tuple[Expr, ...]
    form: LinearForm
    precision: Expr


@dataclasses.dataclass(frozen=True, eq=False)
class Block:
    """All instances of one factor over `plates`, with the way in which their messages are computed.

    `kind` is "energy" (VMP and NCVMP: the gradient of an expected log density), "site" (EP for a scalar function of a
    linear form), "table" (EP over discrete states) or another of the engine's kinds of blocks with messages. `latent`
    names the random variables that it touches, `parameters` those among them that a block with messages meets through
    their moments, as VMP does. `operator`, `accuracy` and `reason` are what `explain` prints.
    """

    name: str
    kind: str
    method: Method
    operator: str
    accuracy: str
    reason: str
    plates: tuple[Plate, ...]
    latent: tuple[str, ...]
    out: Any = None  # the expression that the factor generates
    factor: Any = None
    args: Mapping[str, Expr] = dataclasses.field(default_factory=dict)
    gates: tuple[Gate, ...] = ()
    link: str = "identity"
    form: Any = None  # a LinearForm, for sites
    absorbed: tuple[Absorbed, ...] = ()
    atoms: tuple[Expr, ...] = ()
    expression: Any = None  # the boolean expression of a table
    constant: bool = False  # its message does not change during inference
    parameters: tuple[str, ...] = ()
    details: Any = None  # what only blocks of this kind know of themselves
    where: tuple[Expr, ...] = ()  # data that say which instances are in the block: those where all are true
    over: Plate | None = None  # the last of `plates`, where a site couples all of its elements


@dataclasses.dataclass(frozen=True, eq=False)
class Joint:
    """Gaussian variables that share one belief: the vector `variable` holds the elements of all `members` in turn."""

    variable: Random
    members: tuple[Random, ...]


@dataclasses.dataclass(frozen=True, eq=False)
class Graph:
    """A model with what is observed of it, and what the passes have found so far.

    `needed` are the nodes that an observation or a constraint depends on; `latent` the random variables (and discrete
    lets) that get a belief; `forward` those that nothing observed depends on: their marginals follow from the others.
    `order` is the order of the updates in a sweep. `given` names the variables whose prior is a belief among the data,
    `given_parts` says which of them share such a belief.
    `missing` names observed variables with missing entries on which nothing depends, `partly` has the others: latent
    variables of which some entries are given, with the inputs that hold these.
    """

    model: Any
    observed: frozenset[str]
    missing: frozenset[str]
    methods: Mapping[str, Method]
    default: Method
    needed: frozenset[str] = frozenset()
    latent: Mapping[str, Random | Let] = dataclasses.field(default_factory=dict)
    forward: tuple[str, ...] = ()
    blocks: tuple[Block, ...] = ()
    order: tuple[str, ...] = ()
    ep_order: tuple[int, ...] = ()
    given: frozenset[str] = frozenset()
    given_parts: tuple[Any, ...] = ()
    sizes: Mapping[str, int] | None = None  # of the plates, where they are known
    accuracy: str = "default"
    joints: tuple[Joint, ...] = ()
    partly: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def method_of(self, *names: str) -> Method:
        """The method asked for under the first of `names` that has one, else the default."""
        return next((self.methods[name] for name in names if name in self.methods), self.default)

    def absorbed(self) -> dict[str, tuple[int, Absorbed]]:
        """Integrated-out variables by name, with the number of their block."""
        return {a.variable.name: (i, a) for i, block in enumerate(self.blocks) for a in block.absorbed}
