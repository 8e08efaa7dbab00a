"""Which numbers of an expression are dependent in the posterior, by a joint belief or a factor, and their joint law."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Bool, Float, Int

from ...compiler.algebra.linear import element_of, linear_form, linear_term, summed_term
from ...compiler.algebra.polynomial import monomials
from ...compiler.blocks.base import Block
from ...compiler.blocks.energy import EnergyBlock
from ...compiler.blocks.site import LinearTerm, SiteBlock
from ...compiler.blocks.slots import SlotsBlock
from ...compiler.graph import Joint
from ...compiler.language.atoms import atom_key, powers
from ...compiler.language.nodes import Apply, Expr, Let, Random, inside, unnamed
from ...compiler.passes.join import Direction, joint_term
from ...compiler.rules.logic import TRUE
from ...factors.arrays import Array
from ...factors.errors import UnsupportedError
from ...factors.families import ExponentialFamily
from ..blocks.discrete.tables import states
from ..blocks.kinds import KINDS
from ..distributions.count_table import CountTable
from ..distributions.partly_observed import Completed
from ..values.evaluate import known, value
from ..values.instances import count, root
from ..values.moments import moments
from ..values.plated import Placed, mapped, spread
from . import clouds
from .after import Carried, Run
from .belief_clouds import of_directions, of_number
from .clouds import Cloud, NumberKey
from .discrete_expressions import distribution
from .parts import NoCloud, element_at, has_line_of_its_own, keys_of, number_key, parts_of
from .statistics import of_classes
from .tilted_clouds import FOR_MOMENTS, FOR_SHAPES, Instanced, Levels, Source
from .whole_clouds import affordable

CELLS = 4_000_000  # numbers held at once
FEWER = 48  # points of each of two numbers beside Gaussian ones, of which `CELLS` has room for up to three
_BY_MOMENTS = ("real", "vector", "positive", "unit", "count")


# where they meet ------------------------------------------------------------------------------------------------------


class Meeting(NamedTuple):
    """Numbers that are taken together; `build` does the work, once it is known to be needed.

    `jointly` is true where more is known of them than their own marginals, `in_block` where a factor has seen them;
    `alone` is a block of VMP that is the only factor through which they are seen together.
    """

    keys: tuple[NumberKey, ...]
    build: Callable[[], Built]
    jointly: bool = False
    in_block: bool = False
    alone: EnergyBlock | None = None


class Held(NamedTuple):
    """A block and the numbers that it holds, with their places in it; `alone` where it is one of VMP."""

    source: Callable[[], Source]
    places: dict[NumberKey, int]
    alone: EnergyBlock | None = None


class Built(NamedTuple):
    """The cloud of some elements of the expression, given by their numbers; and of which they meet, None for all."""

    cloud: Callable[[Int[Array, " some"]], Cloud]
    meet: Bool[Array, " elements"] | None = None


class Tilt(NamedTuple):
    """By element of the expression a factor exp(shift . x - x . precision . x / 2) of its numbers x."""

    shift: Float[Array, "elements k"]
    precision: Float[Array, "elements k k"]


Image = TypeVar("Image")  # a pytree of arrays by element


@dataclasses.dataclass(frozen=True, eq=False)
class Reader:
    """One expression over the plates of its node."""

    node: Let
    run: Run | Carried  # the latter has no blocks
    levels: Levels = FOR_MOMENTS

    @property
    def inferred(self) -> Run:
        """The run, for what only its blocks need."""
        assert isinstance(self.run, Run), "new rows have no blocks with messages"
        return self.run

    @property
    def size(self) -> int:
        """Number of elements."""
        return count(self.node, self.run.scope.sizes)

    def flat(self, placed: Placed) -> Any:
        """A value, or a pytree of these, by element of the expression: (elements, *event)."""
        full = spread(placed, self.node.plates, self.run.scope.sizes)
        return jax.tree.map(lambda a: a.reshape((self.size, *a.shape[len(self.node.plates) :])), full)

    def known(self, expr: Expr) -> bool:
        """Whether an expression is data."""
        return known(expr, self.run.scope)

    def meetings(self, atoms: dict[NumberKey, Expr], apart: bool = False) -> list[Meeting]:
        """Where the numbers meet: joint beliefs, then the factors that hold most of them, then each alone."""
        left = dict(atoms)
        found = [meeting for meeting in self._joints(left, apart) if meeting.jointly]
        left = {key: expr for key, expr in left.items() if all(key not in meeting.keys for meeting in found)}
        while left and not apart and (together := self._whole(left)) is not None:
            found.append(together)
            left = {key: expr for key, expr in left.items() if key not in together.keys}
        for vector in self._vectors(left):
            found.append(Meeting(tuple(vector), functools.partial(self._in_vector, vector), True))
            left = {key: expr for key, expr in left.items() if key not in vector}
        while left and not apart:
            best = max(self._blocks(left), key=lambda held: len(held.places), default=None)
            if best is None:
                break
            build = functools.partial(self._in_block, best.source, best.places)
            found.append(Meeting(tuple(best.places), build, True, True, best.alone))
            left = {key: expr for key, expr in left.items() if key not in best.places}
        for meeting in self._joints(left, apart):
            found.append(meeting)
            left = {key: expr for key, expr in left.items() if key not in meeting.keys}
        alone = [key for key, expr in left.items() if has_line_of_its_own(expr.domain) or not self.by_moments(expr)]
        jumps = self.node.domain.is_discrete
        nodes = {0: 1, 1: 4000 if jumps else 400, 2: 300}.get(len(alone), 60)
        if len(alone) == 2 and len(atoms) > 2:
            nodes = FEWER
        apart_from_all = [
            Meeting((key,), functools.partial(self._alone, key, expr, nodes)) for key, expr in left.items()
        ]
        return [*found, *apart_from_all]

    def _joints(self, atoms: dict[NumberKey, Expr], apart: bool) -> list[Meeting]:
        """The joint beliefs that hold some of these numbers, with a constraint on these."""
        found = []
        for joint in self.run.scope.joints:
            members = set(joint.members)
            terms = {k: t for k, e in atoms.items() if (t := self._linear(e)) and t.variable in members}
            if terms:
                stated = None if apart else self._stated(joint, terms)
                build = functools.partial(self._in_joint, joint, terms, stated)
                found.append(Meeting(tuple(terms), build, len(terms) > 1 or stated is not None, stated is not None))
        return found

    def _linear(self, expr: Expr) -> LinearTerm | None:
        """A number that is an element of a Gaussian variable, or a sum of its elements."""
        return linear_term(expr, (), self.known) or summed_term(expr, (), self.known)

    def _stated(self, joint: Joint, terms: dict[NumberKey, LinearTerm]) -> str | None:
        """The constraint that reads most numbers of a joint belief, among those that read no others, by its number."""
        found = {}
        for number, block in self.run.blocks.items():
            if (
                not isinstance(block, SiteBlock)
                or block.link != "positive"
                or block.out is not TRUE
                or block.method.alpha != 1.0
            ):
                continue
            if len(block.form.terms) != 1 or not self._one_instance(block) or self.inferred.machine.rows.get(block):
                continue
            direction = block.form.terms[0].direction
            if isinstance(direction, Direction) and direction.joint is joint:
                keys = {number_key(term) for term in direction.terms}
                found |= {number: len(keys)} if keys <= set(terms) else {}
        return max(found, key=lambda number: found[number], default=None)

    def _one_instance(self, block: Block) -> bool:
        """Whether an element of the expression reads one instance of a block."""
        sizes = self.run.scope.sizes
        return all(sizes[plate.name] == 1 for plate in block.plates if plate not in set(self.node.plates))

    def _blocks(self, atoms: dict[NumberKey, Expr]) -> list[Held]:
        """The blocks that say more of these numbers than their marginals do, with the numbers that they hold."""
        found = []
        for number, block in self.run.blocks.items():
            if not isinstance(block, Instanced) or block.over is not None or block.method.alpha != 1.0:
                continue
            if isinstance(block, SlotsBlock) and any(branch.link == "vector" for branch in block.branches):
                continue
            if self.inferred.machine.rows.get(block) is not None:
                continue
            places = _among(atoms, keys_of(block))
            lone = isinstance(block, SlotsBlock) and not self._summed(atoms[next(iter(places))]) if places else False
            if len(places) > 1 or lone:
                found.append(Held(functools.partial(self.inferred.source, number, self._levels(block)), places))
        return [*found, *self._blocks_apart(atoms)]

    def _blocks_apart(self, atoms: dict[NumberKey, Expr]) -> list[Held]:
        """Those of VMP, where an element of the expression reads one instance: of several none knows the others."""
        found = []
        for block in self.run.energies:
            if not self._one_instance(block):
                continue
            cavities = self.inferred.cavities
            places = _among(atoms, cavities.keys(block))
            if len(places) > 1 and cavities.proper(block):
                found.append(Held(functools.partial(self.inferred.source_apart, block, self.levels), places, block))
        return found

    def _levels(self, block: Block) -> Levels:
        """Of a truncated number; dense for what jumps, which sees no more between two of them than that it has jumped.

        Other blocks have too many cases for that.
        """
        return FOR_SHAPES if self.node.domain.is_discrete and isinstance(block, SiteBlock) else self.levels

    def _summed(self, expr: Expr) -> bool:
        """Whether a number is a count whose marginal knows all factors already, not those of one instance alone."""
        variable = element_of(expr, self.known)
        return variable is not None and isinstance(self.run.families.get(variable.name), CountTable)

    def exact_elsewhere(self, atoms: dict[NumberKey, Expr], meetings: list[Meeting]) -> bool:
        """Whether the rules for independent numbers, and for sums in a joint belief, are exact for this expression."""
        expr, domain = unnamed(self.node.expression), self.node.domain
        blocks = [meeting for meeting in meetings if meeting.in_block]
        shaped = not all(self.by_moments(atom) for atom in atoms.values())
        if domain.is_real and linear_form(expr, self.known) is not None:
            return all(len(meeting.keys) == 1 for meeting in blocks)  # its own belief has the moments
        if blocks or shaped or domain.is_count or any(atom.domain.is_count for atom in atoms.values()):
            return False
        if domain.is_discrete:
            if all(atom.domain.is_discrete for atom in atoms.values()):
                return True
            if not (isinstance(expr, Apply) and expr.op == "greater") or of_classes(expr):
                return False
            return linear_form(expr.args[0] - expr.args[1], self.known) is not None
        if isinstance(expr, Apply) and expr.op in ("exp", "logistic", "probit"):
            return linear_form(expr.args[0], self.known) is not None
        if domain.is_unit:
            return False
        return not any(meeting.jointly for meeting in meetings) and self._plain(expr)

    def divisors(self, meetings: list[Meeting]) -> list[Expr]:
        """What the expression divides by and may be near zero, unless a factor has seen what it makes.

        Raises NoCloud for a count.
        """
        found = []
        seen = {key for meeting in meetings if meeting.in_block for key in meeting.keys}
        for node in inside([self.node.expression]):
            if not isinstance(node, Apply) or node.op not in ("divide", "power"):
                continue
            if node.op == "power" and node.option("exponent") > 0:
                continue
            below = node.args[-1]
            if (below.domain.is_real or below.domain.is_count) and not self.known(below):
                divisors = parts_of(below, self.run.scope, self.run.families).atoms
                if not set(divisors) <= seen:
                    if below.domain.is_count:
                        raise NoCloud  # which is zero with some probability
                    found.append(below)
        return found

    def _plain(self, expr: Expr) -> bool:
        """A polynomial of independent numbers whose moments are in closed form."""
        try:
            atoms = [base for _, atoms in monomials(expr, self.known) for base, _ in powers(atoms).values()]
        except UnsupportedError:
            return False
        return all(self._plain_atom(atom) for atom in atoms)

    def _plain_atom(self, atom: Expr) -> bool:
        if not isinstance(atom, Apply) or atom.op == "dot":
            return True
        if atom.op in ("exp", "max"):
            return all(linear_form(arg, self.known) is not None for arg in atom.args)
        return atom.op == "log" and element_of(atom.args[0], self.known) is not None

    def _in_joint(self, joint: Joint, own: dict[NumberKey, LinearTerm], stated: str | None) -> Built:
        terms = [*(joint_term(joint, (term,)) for term in own.values()), *self._line(stated)]
        scope = self.run.scope
        means, rows = [], []
        directions = [value(_direction(term), scope) for term in terms]
        belief = Placed(scope.moments[joint.variable.name], joint.variable.plates)
        elements = [element_at(term.element, belief, scope) for term in terms]
        for a, element in zip(directions, elements, strict=True):
            means.append(self.flat(mapped(lambda d, b: d @ b.mean, a, element)))
            rows.append([self.flat(mapped(lambda d, b, c: d @ b.covariance @ c, a, element, b)) for b in directions])
        mean = jnp.stack(means, axis=-1)
        covariance = jnp.stack([jnp.stack(row, axis=-1) for row in rows], axis=-2)
        keys = tuple(own)
        if stated is None:
            return Built(lambda at: clouds.of_gaussian(keys, mean[at], covariance[at]))
        source = self.inferred.source(stated, self._levels(self.run.blocks[stated]))
        instances = self._rows(source.block)[:, 0]

        def make(at: Int[Array, " some"]) -> Cloud:
            return clouds.along_a_line(keys, mean[at], covariance[at], source.cloud({"line": 0}, instances[at]))

        return Built(make, source.present(instances))

    def _line(self, stated: str | None) -> tuple[LinearTerm, ...]:
        """The only term of a constraint on a joint belief, by the number of its block."""
        if stated is None:
            return ()
        block = self.run.blocks[stated]
        assert isinstance(block, SiteBlock)
        return block.form.terms

    def _rows(self, block: Block) -> Int[Array, "elements instances"]:
        """The numbers of the instances of a block that each element of the expression reads."""
        sizes = self.run.scope.sizes
        shared = [plate for plate in block.plates if plate in set(self.node.plates)]
        others = [plate for plate in block.plates if plate not in set(self.node.plates)]
        shape = [sizes[plate.name] for plate in block.plates]
        numbers = jnp.arange(math.prod(shape)).reshape(shape)
        numbers = jnp.moveaxis(numbers, [block.plates.index(p) for p in others], range(len(others)))
        numbers = numbers.reshape((-1, *(sizes[plate.name] for plate in shared)))
        return jnp.stack([self.flat(Placed(each, tuple(shared))) for each in numbers], axis=-1)

    def _in_block(self, make_source: Callable[[], Source], own: dict[NumberKey, int]) -> Built:
        source = make_source()
        rows = self._rows(source.block)
        counts = source.present(rows)
        first = rows[jnp.arange(self.size), jnp.argmax(counts, axis=1)]
        rest = self._others(source, own, rows, counts & (rows != first[:, None])) if rows.shape[1] > 1 else None

        def make(at: Int[Array, " some"]) -> Cloud:
            cloud = source.cloud(own, first[at], rest is None)
            return cloud if rest is None else clouds.multiplied(cloud, rest.shift[at], rest.precision[at])

        return Built(make, jnp.any(counts, axis=1))

    def _whole(self, atoms: dict[NumberKey, Expr]) -> Meeting | None:
        """Several elements of variables that one block treats jointly: a network, a chain, a tree, a process."""
        roots = {key: root(expr) for key, expr in atoms.items()}
        for number, block in self.run.blocks.items():
            messages = self.inferred.outputs["messages"][number]
            if KINDS[type(block)].solve is None or not isinstance(messages, dict):
                continue
            wanted = {key: v for key, v in roots.items() if v.domain.is_real or v.domain.is_discrete}
            variables = {key: v for key, v in wanted.items() if isinstance(v, Random) and v.name in messages}
            real = {variable.domain.is_real for variable in variables.values()}
            sizes = [1 if real == {True} else states(variable, self.run.scope) for variable in variables.values()]
            if len(variables) > 1 and len(real) == 1 and affordable(sizes, self.size):
                elements = {key: atoms[key] for key in variables}
                return Meeting(tuple(elements), functools.partial(self._in_whole, number, elements, sizes), True, True)
        return None

    def _in_whole(self, number: str, own: dict[NumberKey, Expr], sizes: list[int]) -> Built:
        variables, scope = [root(expr) for expr in own.values()], self.run.scope
        places = []
        for variable, expr in zip(variables, own.values(), strict=True):
            shape = [scope.sizes[plate.name] for plate in variable.plates]
            numbers = Placed(jnp.arange(math.prod(shape)).reshape(shape), variable.plates)
            places.append(self.flat(element_at(expr, numbers, scope)))
        whole, names, keys = self.inferred.whole(number), [variable.name for variable in variables], list(own)
        stacked = jnp.stack(places, axis=-1)
        if variables[0].domain.is_real:
            return Built(lambda at: whole.gaussians(names, keys, stacked[at]))
        return Built(lambda at: whole.states(names, sizes, keys, stacked[at]))

    def _others(
        self,
        source: Source,
        own: dict[NumberKey, int],
        rows: Int[Array, "elements instances"],
        live: Bool[Array, "elements instances"],
    ) -> Tilt | None:
        """What other instances of the same numbers add to their messages, as one Gaussian: tilted over belief."""
        flat = rows.reshape(-1)
        shapes = jax.eval_shape(lambda at: source.cloud(own, at, False), flat[:1])
        if len(shapes.names) < 2:
            return None
        each = math.prod(shapes.covariance.shape)
        mean, covariance = in_parts(
            lambda at: clouds.gaussian_of(source.cloud(own, flat[at], False)), flat.shape[0], max(1, CELLS // each)
        )
        k = len(shapes.names)
        variance = jnp.diagonal(covariance, axis1=-2, axis2=-1)
        precision = jnp.linalg.inv(covariance)
        beyond = jnp.where(live.reshape(-1, 1, 1), precision - jnp.eye(k) / variance[..., None], 0.0)
        shift = jnp.einsum("nij,nj->ni", precision, mean) - mean / variance
        shift = jnp.where(live.reshape(-1, 1), shift, 0.0)
        return Tilt(shift.reshape(*rows.shape, k).sum(1), beyond.reshape(*rows.shape, k, k).sum(1))

    def _alone(self, key: NumberKey, expr: Expr, nodes: int) -> Built:
        scope, families = self.run.scope, self.run.families
        if expr.domain.is_discrete:
            p = self.flat(distribution(expr, scope, families))
            numbers = jnp.arange(p.shape[-1])[None]
            return Built(lambda at: clouds.of_points({key: numbers}, jnp.log(p[at])))
        term = self._linear(expr)
        if term is not None and self.by_moments(expr):
            number = self.flat(moments(expr, scope, "real"))
            return Built(
                lambda at: clouds.of_gaussian((key,), number.mean[at][:, None], number.variance[at][:, None, None])
            )
        variable = element_of(expr, self.known) if term is None else term.variable
        if variable is None or variable.name not in families:
            raise NoCloud
        if term is not None and term.direction is not None:
            return self._in_vector({key: term})
        family = self.flat(element_at(expr, Placed(families[variable.name], variable.plates), scope))
        return Built(lambda at: of_number(key, jax.tree.map(lambda a: a[at], family), nodes))

    def _in_vector(self, own: dict[NumberKey, LinearTerm]) -> Built:
        """The inner products of one random vector with known ones."""
        scope, first = self.run.scope, next(iter(own.values()))
        belief = Placed(self.run.families[first.variable.name], first.variable.plates)
        family = self.flat(element_at(first.element, belief, scope))
        directions = jnp.stack([self.flat(value(_direction(term), scope)) for term in own.values()], axis=1)
        return Built(lambda at: of_directions(tuple(own), jax.tree.map(lambda a: a[at], family), directions[at]))

    def _vectors(self, atoms: dict[NumberKey, Expr]) -> list[dict[NumberKey, LinearTerm]]:
        """The numbers that are of one random vector, where no block holds all of them."""
        terms = {key: linear_term(expr, (), self.known) for key, expr in atoms.items()}
        groups: dict[tuple, dict[NumberKey, LinearTerm]] = {}
        for key, term in terms.items():
            if term is not None and term.direction is not None and term.variable.name in self.run.families:
                groups.setdefault(atom_key(term.element), {})[key] = term
        held = [set(block.places) for block in self._blocks(atoms)]
        return [own for own in groups.values() if len(own) > 1 and not any(set(own) <= keys for keys in held)]

    def by_moments(self, expr: Expr) -> bool:
        """Whether moments say all of the belief of a number: of a family of the domain, or given in part."""
        if expr.domain.is_discrete:
            return True
        term = self._linear(expr)
        variable = element_of(expr, self.known) if term is None else term.variable
        family = None if variable is None else self.run.families.get(variable.name)
        if isinstance(family, ExponentialFamily):
            return family.kind in _BY_MOMENTS
        return family is None or isinstance(family, (CountTable, Completed))


def _among(atoms: dict[NumberKey, Expr], places: dict[NumberKey, int]) -> dict[NumberKey, int]:
    """The places of those of some numbers that have one, in the order of the numbers."""
    return {key: places[key] for key in atoms if key in places}


def _direction(term: LinearTerm) -> Expr:
    """The known vector that a term takes the inner product with."""
    assert term.direction is not None
    return term.direction


def in_parts(function: Callable[[Int[Array, " some"]], Image], size: int, most: int) -> Image:
    """A function of the numbers 0, ..., size - 1 of elements, over parts of at most so many that fit into memory.

    It returns arrays that begin with the axis of the elements which it was given.
    """
    if size <= most:
        return jax.jit(function)(jnp.arange(size))
    number = -(-size // most)
    each = -(-size // number)
    rows = jnp.minimum(jnp.arange(number * each), size - 1).reshape(number, each)
    return jax.tree.map(lambda a: a.reshape((-1, *a.shape[2:]))[:size], jax.lax.map(function, rows))
