"""The factor graph as the passes draft it, and the plan that they end with. Everything here is frozen."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

from .blocks.base import Block
from .blocks.site import Absorbed
from .language.nodes import Input, Let, Random
from .methods import Method
from .schedules import PLAIN, Schedule


@dataclasses.dataclass(frozen=True, eq=False)
class Joint:
    """Gaussian variables that share one belief: the vector `variable` holds the elements of all `members` in turn."""

    variable: Random
    members: tuple[Random, ...]


@dataclasses.dataclass(frozen=True, eq=False)
class NormalPair:
    """A mean and a precision that share one belief, that of `variable`: normal-Gamma, or normal-Wishart."""

    variable: Random
    mean: Random
    precision: Random

    @property
    def members(self) -> tuple[Random, Random]:
        """Both of them."""
        return self.mean, self.precision


class Part(NamedTuple):
    """Variables whose belief is given: one by name, or several that share a belief.

    Those that share one do so over all their elements together, or `plated`, element by element of their plates.
    """

    members: tuple[str, ...]
    plated: bool = False


class PartlyObserved(NamedTuple):
    """The data of a partly observed variable: its values, and where they are given (true) and missing (one).

    They have names of their own: that of the variable would say that all of it is known.
    """

    values: Input
    given: Input
    missing: Input


@dataclasses.dataclass(frozen=True, eq=False)
class Facts:
    """A model with what is observed of it, and what is decided of it: what drafts and plans have in common.

    `missing` names observed variables with missing entries on which nothing depends, `partly` has the others: latent
    variables of which some entries are given, with the inputs that hold these. `given` names the variables whose prior
    is a belief among the data, `given_parts` groups those that share such a belief. `sizes` are those of the plates,
    where they are known.

    `latent` are the random variables (and discrete lets) that get a belief; `forward` names those that nothing observed
    depends on: their marginals follow from the others. `sums` is true while linear forms may hold sums over long
    plates, which need a joint belief.
    """

    model: Any  # the `Model`, of which algebra reads names and sizes alone
    observed: frozenset[str]
    missing: frozenset[str]
    default: Method
    sizes: Mapping[str, int] | None = None
    accuracy: str = "default"
    given: frozenset[str] = frozenset()
    given_parts: tuple[Part, ...] = ()
    partly: Mapping[str, PartlyObserved] = dataclasses.field(default_factory=dict)
    latent: Mapping[str, Random | Let] = dataclasses.field(default_factory=dict)
    forward: tuple[str, ...] = ()
    blocks: tuple[Block, ...] = ()
    joints: tuple[Joint, ...] = ()
    pairs: tuple[NormalPair, ...] = ()
    sums: bool = False


@dataclasses.dataclass(frozen=True, eq=False)
class Draft(Facts):
    """What the passes work on: each makes the next one.

    `needed` are the nodes that an observation or a constraint depends on, `methods` those that were asked for by name.
    """

    methods: Mapping[str, Method] = dataclasses.field(default_factory=dict)
    needed: frozenset[str] = frozenset()

    def method_of(self, *names: str) -> Method:
        """The method asked for under the first of `names` that has one, else the default."""
        return next((self.methods[name] for name in names if name in self.methods), self.default)


@dataclasses.dataclass(frozen=True, eq=False)
class Plan(Facts):
    """What the engine reads. `order` is that of the updates of beliefs in a sweep, `ep_order` that of the messages."""

    order: tuple[str, ...] = ()
    ep_order: tuple[int, ...] = ()
    schedule: Schedule = PLAIN

    def _repr_html_(self) -> str:
        """What was chosen for each factor and why, in a notebook."""
        from .portable import called  # what draws stands above

        return called("engine.html.plans", "html_of_plan", self)

    def updates(self) -> Schedule:
        """The schedule, with the names of all that it updates."""
        factors = tuple(self.blocks[i].name for i in self.ep_order)
        return dataclasses.replace(self.schedule, factors=factors, variables=self.order)

    def absorbed(self) -> dict[str, tuple[int, Absorbed]]:
        """Integrated-out variables by name, with the number of their block."""
        return {a.variable.name: (i, a) for i, block in enumerate(self.blocks) for a in block.absorbed}
