"""Blocks that are solved as a whole, exactly given the messages of all other factors (joint tables aside)."""

from __future__ import annotations

import abc
import dataclasses
import math
from collections.abc import Mapping

import numpy as np

from ...factors.factor import Chain, arguments_of
from ...factors.kernels import Kernel
from ..language.nodes import Expr, Gather, Plate, Random, source_of
from .base import Block, Gate


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class WholeBlock(Block):
    """All elements of one variable along some of its plates jointly."""

    @property
    @abc.abstractmethod
    def whole(self) -> tuple[Plate, ...]:
        """These plates."""

    @property
    def elements(self) -> tuple[Expr, ...]:
        return (self.out,) if self.out.name in self.latent else ()

    @property
    def independent(self) -> tuple[Plate, ...]:
        return tuple(plate for plate in self.plates if plate not in set(self.whole))


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class ChainBlock(WholeBlock):
    """The elements of a chain jointly; the random `parameters` of its terms through their moments."""

    chain: Chain
    parameters: tuple[str, ...] = ()

    @property
    def arguments(self) -> tuple[Expr, ...]:
        return (*arguments_of(self.chain.first), *arguments_of(self.chain.then))

    @property
    def whole(self) -> tuple[Plate, ...]:
        return (self.chain.over,)


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class TreeBlock(ChainBlock):
    """The same for a tree, whose elements name their parents."""


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class GatedBlock(ChainBlock):
    """Chains jointly with what gates their transitions; `out` is the last of them.

    `states` are latent chains of discrete states, `gaussian` the one of Gaussian states, if any, `observed_chains` the
    observed ones. `regimes` are gates that vary along the chains and are none of these, `classes` those that do not.
    `lanes` are the plates of independent chains, and `gating` names what gates. `chooses` are the gates as written.
    """

    states: tuple[Random, ...]
    gaussian: Random | None
    observed_chains: tuple[Random, ...]
    regimes: tuple[Random, ...]
    classes: tuple[Random, ...]
    lanes: tuple[Plate, ...]
    gating: frozenset[str]
    chooses: tuple[Gate, ...]

    @property
    def gates(self) -> tuple[Gate, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]  # most blocks have none
        return self.chooses

    @property
    def chains(self) -> tuple[Random, ...]:
        """All chains."""
        own = () if self.gaussian is None else (self.gaussian,)
        return (*self.states, *own, *self.observed_chains)

    @property
    def reached(self) -> tuple[Random, ...]:
        """What the block sends messages to."""
        own = () if self.gaussian is None else (self.gaussian,)
        return (*self.states, *own, *self.regimes, *self.classes)

    @property
    def elements(self) -> tuple[Expr, ...]:
        return self.reached

    @property
    def arguments(self) -> tuple[Expr, ...]:
        terms = [
            term for node in self.chains if isinstance(node.term, Chain) for term in (node.term.first, node.term.then)
        ]
        return tuple(arg for term in terms for arg in arguments_of(term))

    @property
    def projects(self) -> bool:
        return self.gaussian is not None


class CurvedChainBlock(ChainBlock):
    """A chain or a tree whose steps are not linear with Gaussian noise: moments of pairs by quadrature."""

    @property
    def projects(self) -> bool:
        return bool(self.elements)


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class LearnedChainBlock(WholeBlock):
    """The elements of a chain of states jointly, with the random probabilities of its terms, under EP.

    `first` and `then` are the random elements that these terms take for their probabilities, None where these are
    known.
    """

    chain: Chain
    first: Expr | None
    then: Expr | None

    @property
    def probabilities(self) -> tuple[Expr | None, Expr | None]:
        """Those of both terms."""
        return self.first, self.then

    @property
    def elements(self) -> tuple[Expr, ...]:
        learned = (source_of(element) for element in self.probabilities if element is not None)
        return (self.out, *dict.fromkeys(learned))

    @property
    def arguments(self) -> tuple[Expr, ...]:
        return (*arguments_of(self.chain.first), *arguments_of(self.chain.then))

    @property
    def whole(self) -> tuple[Plate, ...]:
        return self.plates

    @property
    def projects(self) -> bool:
        return True


@dataclasses.dataclass(frozen=True, eq=False)
class ProcessTerm:
    """What the term of a process says: `inducing` is None, a number or an array."""

    inputs: Expr
    mean: Expr
    parameters: dict[str, Expr]
    kernel: Kernel
    inducing: int | np.ndarray | None

    @property
    def over(self) -> tuple[Plate, ...]:
        """The plates that one function runs over."""
        return self.inputs.plates

    def points(self, sizes: Mapping[str, int]) -> int:
        """How many points the function is evaluated at."""
        return math.prod(sizes[plate.name] for plate in self.over)


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class ProcessBlock(WholeBlock):
    """A Gaussian process at all its inputs jointly."""

    process: ProcessTerm

    @property
    def arguments(self) -> tuple[Expr, ...]:
        return (self.process.inputs, self.process.mean, *self.process.parameters.values())

    @property
    def whole(self) -> tuple[Plate, ...]:
        return self.process.over


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class ProductBlock(Block):
    """An exact observation of the product of `coefficients` and of two positive variables with exponents 1 or -1."""

    coefficients: tuple[Expr, ...]
    powers: tuple[tuple[Random, float], ...]

    @property
    def elements(self) -> tuple[Expr, ...]:
        return tuple(variable for variable, _ in self.powers)

    @property
    def projects(self) -> bool:
        return True


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class MaximumBlock(Block):
    """An observation of the largest of `numbers` (of the smallest, where `sign` is minus one).

    The numbers are elements of Gaussian variables, each another one. With Gaussian noise of this `precision`, or exact.
    """

    numbers: tuple[Expr, ...]
    sign: float
    precision: Expr | None = None

    @property
    def variables(self) -> dict[str, Random]:
        """The variables that the numbers are elements of, by name."""
        roots = [number.source if isinstance(number, Gather) else number for number in self.numbers]
        return {root.name: root for root in roots if isinstance(root, Random)}

    @property
    def elements(self) -> tuple[Expr, ...]:
        return tuple(self.variables.values())

    @property
    def projects(self) -> bool:
        return True
