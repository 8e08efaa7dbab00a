"""What an integration is expected to cost: counted from plans and sizes, never timed.

So it is the same on every machine. The figures are seconds of machine code on one core of a common processor; they are right to a factor of three, which is
enough to tell a tenth of a second from ten.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from ...compiler.blocks.base import Block
from ...compiler.blocks.energy import EnergyBlock
from ...compiler.blocks.whole import ChainBlock, ProcessBlock
from ...compiler.data.bind import Binding
from ...compiler.graph import Plan
from ...compiler.language.nodes import Let, Random
from ..program import Program
from ..values.joint_beliefs import joint_sizes

POINTS = {0: 1, 1: 70, 2: 500, 3: 2000}  # inferences of an integration, by number of continuous scalars
SWEEPS = 20  # of an inference that has to iterate
INSTANCE = 3e-7  # of a factor with messages, a sweep
ENERGY = 1e-7  # of a factor that is differentiated
CHAINED = 2e-6  # of an element of a chain
PRODUCT = 1e-9  # of a product and a sum in the algebra of a joint belief


def affordable(program: Program, binding: Binding, names: tuple[str, ...], effort: float) -> bool:
    """Whether integrating the scalars called `names` is expected to take at most `effort` seconds."""
    plan = program.plan_given(names, binding)
    nodes = program.model.randoms
    continuous = sum(not nodes[name].domain.is_discrete for name in names)
    states = math.prod(_states(program, binding, name) for name in names if nodes[name].domain.is_discrete)
    return states * POINTS[continuous] * seconds(plan, binding.sizes) <= effort


def seconds(plan: Plan, sizes: Mapping[str, int]) -> float:
    """The expected cost of one inference."""
    sizes = {**sizes, **joint_sizes(plan)}
    moving = [block for block in plan.blocks if not block.constant and block.latent]
    iterates = any(block.projects or isinstance(block, EnergyBlock) or block.parameters for block in moving)
    return (SWEEPS if iterates else 1) * sum(_of_block(plan, block, sizes) for block in moving)


def _of_block(plan: Plan, block: Block, sizes: Mapping[str, int]) -> float:
    """The expected cost of a sweep over one factor: of its instances, and of the vectors that these touch."""
    instances = math.prod(sizes.get(plate.name, 1) for plate in block.plates)
    if isinstance(block, ProcessBlock):
        return PRODUCT * float(instances) ** 3
    width = max((_dimension(plan.latent[name], sizes) for name in block.latent if name in plan.latent), default=1)
    each = ENERGY if isinstance(block, EnergyBlock) else CHAINED if isinstance(block, ChainBlock) else INSTANCE
    return instances * (each + PRODUCT * width**2) + PRODUCT * float(width) ** 3


def _dimension(node: Random | Let, sizes: Mapping[str, int]) -> int:
    """The length of the vector that an element of a variable is; one for a number."""
    size = node.domain.size
    return 1 if size is None else size if isinstance(size, int) else sizes.get(size.name, 1)


def _states(program: Program, binding: Binding, name: str) -> int:
    """How many states a discrete variable has."""
    domain = program.model.randoms[name].domain
    return 2 if domain.is_boolean else _dimension(program.model.randoms[name], binding.sizes)
