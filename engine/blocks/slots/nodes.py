"""The tilted distribution of one branch of a factor, given all discrete states, at the nodes of its slots.

Arrays are shaped (instances, states..., nodes...), one axis of nodes for each slot: what does not depend on nodes is
lifted to axes of length one. The edges of no slot are integrated in closed form at every node.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple, TypeAlias

import jax.numpy as jnp
from jaxtyping import Bool, Float

from ....compiler.blocks.slots import Branch, Edge, Quantity, SlotsBlock
from ....factors.arrays import Array
from ....factors.factor import Site
from ....factors.families import FOR_DOMAIN
from ....factors.links.probit import positive_site
from ....factors.quadrature.tilted import Tilted, tilted
from ....factors.real.gaussian import gaussian_site
from ...values.scope import Scope
from ..site.sites import SMALLEST_VARIANCE, Projection
from .closed_form import Side, Whole, cut_of, members
from .slot_data import Form, Formula, Local, branch_arguments

OverNodes: TypeAlias = Float[Array, "..."]  # instances, states, nodes


class Cavity(NamedTuple):
    """An edge without the block's own message: mean and variance of a Gaussian, naturals of any other family.

    `projection` is that of a scalar Gaussian edge; `floored` tells where a cavity had to be made proper.
    """

    values: tuple[Float[Array, "..."], ...]
    projection: Projection | None
    floored: Bool[Array, "..."]


def gaussian(edge: Edge) -> bool:
    """True for edges to Gaussian variables."""
    return edge.variable.domain.is_gaussian


class Nodes(NamedTuple):
    """A branch at the nodes of its slots, over (instances, states..., nodes...): the tilted distribution as it is.

    `log_weights` are those of factor and cavities, `cavities` the slots' own, `forms` their coefficients by edge and
    offsets (None where the slot is its edge). `whole` is the closed form over the other edges at every node, None
    where there is none, with the quantity that `side` confines to be positive.
    """

    log_weights: OverNodes
    found: Tilted
    cavities: list[tuple[Array, ...]]
    forms: list[Form | None]
    whole: Whole | None
    side: Side | None


@dataclasses.dataclass(frozen=True)
class Reading:
    """A branch as a function of the values of its slots: `at` are these, each over its nodes, None without slots."""

    block: SlotsBlock
    branch: Branch
    formula: Formula
    cavities: list[Cavity]

    @property
    def lift(self) -> int:
        """The number of axes of nodes."""
        return len(self.branch.slots)

    def lifted(self, array: Array) -> OverNodes:
        """An array over instances and states, the same at all nodes."""
        return array.reshape((*array.shape, *(1,) * self.lift))

    @property
    def spreads(self) -> dict[int, OverNodes]:
        """The cavity variances of the edges that are integrated in closed form."""
        return {n: self.lifted(self.cavities[n].values[1]) for n, _ in members(self.branch)}

    def total(self, quantity: Branch | Quantity, at: tuple[Array, ...] | None) -> Side:
        """A quantity's coefficients by edge, its mean and its variance."""
        factors = {number: self.formula(_itself, [c], at, self.lift) for number, c in quantity.members}
        own = {number: tuple(map(self.lifted, self.cavities[number].values)) for number in factors}
        mean = sum((c * own[number][0] for number, c in factors.items()), start=jnp.zeros(()))
        if quantity.shift is not None:
            mean = mean + self.formula(_itself, [quantity.shift], at, self.lift)
        variance = sum((c**2 * own[number][1] for number, c in factors.items()), start=jnp.zeros(()))
        return factors, mean, variance

    def whole(self, at: tuple[Array, ...] | None) -> tuple[Whole, OverNodes]:
        """The closed form, and the constant of a power."""
        branch, power = self.branch, self.block.method.alpha
        factors, mean, variance = self.total(branch, at)
        constant = noise = jnp.zeros(())
        if branch.link == "identity":
            precision = self.formula(_itself, [branch.args[branch.factor.role.precision]], at, self.lift)
            noise = 1.0 / (power * precision)
            variance = variance + noise
            if power != 1.0:
                constant = 0.5 * ((1.0 - power) * jnp.log(2.0 * jnp.pi / precision) - jnp.log(power))
        mean, variance = jnp.broadcast_arrays(mean, jnp.maximum(variance, SMALLEST_VARIANCE))
        parts = {n: c**2 * self.spreads[n] for n, c in factors.items()}
        return Whole(factors, parts, noise, mean, variance, self.site(mean, variance)), constant

    def site(self, mean: OverNodes, variance: OverNodes) -> Site:
        """The site of the branch's quantity under this cavity."""
        branch = self.branch
        if branch.link == "identity":
            return gaussian_site(jnp.zeros_like(mean), mean, variance)
        out = jnp.ones_like(mean)
        if branch.out is not None and self.formula.known(branch.out):
            out = self.formula(_itself, [branch.out], None, self.lift)
        if branch.link == "positive":
            return positive_site(out, mean, variance)
        others = {name: self.formula.given(arg, self.lift) for name, arg in branch.args.items()}
        mean, variance, out = jnp.broadcast_arrays(mean, variance, out)
        return branch.factor.sites[branch.link](out, mean, variance, self.block.method.alpha, **others)

    def log_factor(self, *values: Array) -> OverNodes:
        """The log of the factor's power at these values of the slots, other edges integrated out."""
        at = values if values else None
        if self.branch.link == "density":
            return self.block.method.alpha * self.log_density(at)
        own, constant = self.whole(at)
        log_evidence = own.site.log_evidence
        if self.branch.side is not None:
            log_evidence = log_evidence + cut_of(own, self.total(self.branch.side, at), self.spreads).site.log_evidence
        return log_evidence + constant

    def log_density(self, at: tuple[Array, ...] | None) -> OverNodes:
        """The log density of a branch all of whose random arguments are slots."""
        branch, edges = self.branch, list(self.branch.args)
        # The family of a latent count holds its 1 / x!, which the factor that generates it has as well.
        latent_count = branch.out is not None and branch.out.domain.is_count and not self.formula.known(branch.out)

        def log_density(out: Array, *args: Array) -> Array:
            own = branch.factor.log_density(out, **dict(zip(edges, args, strict=True)))
            return own - FOR_DOMAIN["count"].log_base(out) if latent_count else own

        return self.formula(log_density, branch_arguments(branch), at, self.lift)


def _itself(x: Array) -> Array:
    return x


def branch_nodes(block: SlotsBlock, branch: Branch, scope: Scope, local: Local, cavities: list[Cavity]) -> Nodes:
    """The tilted distribution of one branch, given the states of all discrete slots, at the nodes of its slots."""
    formula = Formula(block, branch, scope, local)
    reading = Reading(block, branch, formula, cavities)
    forms = [formula.form(slot) if slot.domain.is_real else None for slot in branch.slots]
    own = _slot_cavities(branch, forms, cavities)
    touched = [array for cavity in own for array in cavity]
    touched += [array for number, _ in members(branch) for array in cavities[number].values]
    touched += [formula.arrays[key] for key in formula.arguments(branch_arguments(branch))[0]]
    shape = jnp.broadcast_shapes(*(jnp.shape(array)[: formula.rank] for array in touched), (1,) * formula.rank)
    wide: list[tuple[Array, ...]] = [tuple(jnp.broadcast_to(a, shape) for a in cavity) for cavity in own]
    kinds, given = tuple(slot.domain.kind for slot in branch.slots), tuple(wide)
    if branch.half:
        turn = jnp.broadcast_to(_turn(formula, branch), shape)
        kinds, given = ("half",), ((*wide[0], turn, jnp.full(shape, float(branch.half))),)
    found = tilted(reading.log_factor, kinds, given)
    at = found.values if reading.lift else None
    whole = reading.whole(at)[0] if members(branch) else None
    side = reading.total(branch.side, at) if branch.side is not None else None
    log_weights = jnp.broadcast_to(found.log_weights, (*shape, *found.log_weights.shape[formula.rank :]))
    return Nodes(log_weights, found, wide, forms, whole, side)


def _slot_cavities(branch: Branch, forms: list[Form | None], cavities: list[Cavity]) -> list[tuple[Array, ...]]:
    """The cavity of every slot: of a real one mean and variance of its linear form, of any other its edge's."""
    found = []
    for slot, form in zip(branch.slots, forms, strict=True):
        if form is None:
            found.append(cavities[slot.members[0][0]].values)
            continue
        own = [cavities[number].values for number, _ in slot.members]
        mean = form[1] + sum(c * m for c, (m, _) in zip(form[0], own, strict=True))
        variance = sum(c**2 * v for c, (_, v) in zip(form[0], own, strict=True))
        found.append((mean, jnp.maximum(variance, SMALLEST_VARIANCE)))
    return found


def _turn(formula: Formula, branch: Branch) -> Float[Array, "..."]:
    """Where the coefficient of the only edge, linear in the only slot, is zero; anywhere if it is constant."""
    ((_, coefficient),) = branch.members
    at = [formula(_itself, [coefficient], (jnp.full((1,) * (formula.rank + 1), x),), 1)[..., 0] for x in (0.0, 1.0)]
    slope = at[1] - at[0]
    return jnp.where(slope == 0.0, 0.0, -at[0] / jnp.where(slope == 0.0, 1.0, slope))
