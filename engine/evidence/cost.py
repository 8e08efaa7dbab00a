"""What an integration is expected to cost: counted from plans and sizes, never timed.

So it is the same on every machine. The figures are seconds of machine code on one core of a common processor; they are
right to a factor of three, which is enough to tell a tenth of a second from ten.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from ...compiler.blocks.base import Block
from ...compiler.blocks.energy import EnergyBlock
from ...compiler.blocks.slots import SlotsBlock
from ...compiler.blocks.whole import ChainBlock, ProcessBlock
from ...compiler.data.bind import Binding
from ...compiler.graph import Plan
from ...compiler.language.nodes import Let, Random
from ...factors.quadrature.tilted import evaluations
from ..blocks.kinds import KINDS
from ..program import Program
from ..values.joint_beliefs import joint_sizes
from .design.designs import Design

ONE = 1e-6  # of an inference, beside its factors
SWEEPS = 8  # of an inference whose messages are projected
PASSES = 3  # of one whose messages are exact, but not found in one pass
SITE = 1.8e-6  # of a factor with messages, a sweep
ENERGY = 4e-7  # of one that is differentiated
NEAREST = 8e-7  # of one whose expectations are sums over nodes, which are differentiated twice
NODE = 6e-8  # of a density at one of the nodes that a site is integrated over
DENSITY = 5e-8  # of an instance of a factor whose message does not change
CHAINED = 5e-7  # of an element of a chain
PRODUCT = 9e-9  # of a pair of numbers in a vector that a factor touches
CUBE = 1e-9  # of three of them, in the algebra of a joint belief


def of_integration(program: Program, binding: Binding, names: tuple[str, ...], design: Design) -> float:
    """The seconds that integrating the scalars called `names` over a design is expected to take."""
    plan = program.plan_given(names, binding)
    nodes = program.model.randoms
    continuous = sum(not nodes[name].domain.is_discrete for name in names)
    states = math.prod(_states(program, binding, name) for name in names if nodes[name].domain.is_discrete)
    return states * design.inferences(continuous, sweeps(plan) == 1) * seconds(plan, binding.sizes)


def sweeps(plan: Plan) -> int:
    """How many an inference is expected to take; one where blocks are solved as a whole and share no variable."""
    moving = _moving(plan)
    if any(block.projects or isinstance(block, EnergyBlock) or block.parameters for block in moving):
        return SWEEPS
    touched = [name for block in moving for name in dict.fromkeys(block.latent)]
    solved = all(KINDS[type(block)].solve is not None for block in moving)
    return 1 if solved and len(touched) == len(set(touched)) else PASSES


def _moving(plan: Plan) -> list[Block]:
    return [block for block in plan.blocks if not block.constant and block.latent]


def seconds(plan: Plan, sizes: Mapping[str, int]) -> float:
    """The expected cost of one inference."""
    sizes = {**sizes, **joint_sizes(plan)}
    moving = _moving(plan)
    fixed = sum(DENSITY * _instances(block, sizes) for block in plan.blocks if block not in moving)
    joints = sum(CUBE * float(_dimension(joint.variable, sizes)) ** 3 for joint in plan.joints)
    return ONE + fixed + joints + sweeps(plan) * sum(_of_block(plan, block, sizes) for block in moving)


def _instances(block: Block, sizes: Mapping[str, int]) -> int:
    return math.prod(sizes.get(plate.name, 1) for plate in block.plates)


def _of_block(plan: Plan, block: Block, sizes: Mapping[str, int]) -> float:
    """The expected cost of a sweep over one factor: of its instances, and of the vectors that these touch."""
    instances = _instances(block, sizes)
    if isinstance(block, ProcessBlock):
        return CUBE * float(instances) ** 3
    width = max((_dimension(plan.latent[name], sizes) for name in block.latent if name in plan.latent), default=1)
    if isinstance(block, EnergyBlock):
        each = NEAREST if block.method.name == "ncvmp" else ENERGY
    else:
        each = CHAINED if isinstance(block, ChainBlock) else SITE + _of_nodes(block)
    return instances * (each + PRODUCT * width**2) + CUBE * float(width) ** 3


def _of_nodes(block: Block) -> float:
    """The expected cost of the quadrature of a site, by its number of random arguments."""
    if not isinstance(block, SlotsBlock):
        return 0.0
    return NODE * sum(evaluations(len(branch.slots)) for branch in block.branches if branch.slots)


def _dimension(node: Random | Let, sizes: Mapping[str, int]) -> int:
    """The length of the vector that an element of a variable is; one for a number."""
    size = node.domain.size
    return 1 if size is None else size if isinstance(size, int) else sizes.get(size.name, 1)


def _states(program: Program, binding: Binding, name: str) -> int:
    """How many states a discrete variable has."""
    domain = program.model.randoms[name].domain
    return 2 if domain.is_boolean else _dimension(program.model.randoms[name], binding.sizes)
