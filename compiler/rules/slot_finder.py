"""The integrals of EP in one instance of a factor: which random numbers it reads (edges), and what quadrature is left
with once states are summed and Gaussians integrated in closed form (slots).

An edge is one element of a random variable (of a vector: its inner product with data). Discrete edges are summed over
all their states; given these, an argument of the factor that is linear in Gaussian edges is one slot, a real number
with a Gaussian cavity. A Gaussian or a step in a quantity that is linear in some Gaussian edges, whatever else it
depends on, is integrated over these edges in closed form, so that quadrature is left with the other slots.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
from collections.abc import Iterable, Mapping

from ...factors.domains import Domain, real
from ...factors.errors import UnsupportedError
from ...factors.factor import Factor
from ..algebra.linear import element_of, linear_term
from ..algebra.polynomial import vector_of, with_one_direction
from ..blocks.slots import Branch, Edge, Quantity, Slot
from ..language.atoms import MINUS_ONE, ONE, Monomial, atom_key, product
from ..language.monomials import expand
from ..language.nodes import Apply, Expr, Gather, IsData, Let, Random, applies, parents
from ..language.operations import CUMPROD, DOT, OVER_CLASSES, SUM

COUPLING = {
    DOT: "is a product of two random vectors",
    SUM: "sums random numbers over a plate",
    CUMPROD: "multiplies random numbers along a plate",
    **dict.fromkeys(OVER_CLASSES, "couples all classes"),
}
"""Operations that read more numbers than quadrature takes, each in words."""


class NoSlots(UnsupportedError):
    """EP over slots cannot serve a factor: `problem` says why, `remedy` how to write it, `otherwise` which method does.

    The last is advice only to who asked for EP: by default the others have been tried.
    """

    def __init__(self, problem: str, remedy: str = "", otherwise: str = "") -> None:
        super().__init__(" ".join(filter(None, (problem, remedy, otherwise))))
        self.problem, self.remedy = problem, remedy


def is_integrable(domain: Domain) -> bool:
    """Whether quadrature takes single numbers of a domain: those that may be exactly zero have no density."""
    return domain.is_numeric and not domain.is_sparse


def beside(refusal: UnsupportedError, lacking: str) -> UnsupportedError:
    """A refusal of EP where VMP has nothing to offer either: without the advice to use another method."""
    problem, remedy = (refusal.problem, refusal.remedy) if isinstance(refusal, NoSlots) else (str(refusal), "")
    parts = (problem, f"Nor has VMP an operator for it: {lacking}.", remedy)
    return UnsupportedError(" ".join(filter(None, parts)))


def discrete_key(expr: Expr) -> tuple:
    """Equal for expressions that are the same discrete element; named ones stand for themselves."""
    return ("let", id(expr)) if isinstance(expr, Let) else atom_key(expr)


def discrete_elements(exprs: Iterable[Expr], known: IsData, name: str) -> tuple[Expr, ...]:
    """The random discrete elements that expressions are made of or indexed by, each once."""
    found: dict[tuple, Expr] = {}
    stack = list(exprs)
    while stack:
        node = stack.pop(0)
        if known(node):
            continue
        if node.domain.is_discrete:
            if isinstance(node, Apply) and node.operation.logical:
                stack.extend(node.args)
                continue
            if isinstance(node, Apply):
                raise NoSlots(
                    f"'{name}' depends on '{node}', a comparison inside an expression.",
                    f"Name it first, c = m.let('c', {node}), and use c: EP sums over its two states.",
                )
            if isinstance(node, Gather) and not known(node.index):
                raise NoSlots(
                    f"'{name}' depends on '{node}', a discrete variable chosen by another one; EP sums over the states "
                    "of each element, and cannot over which element it is.",
                    otherwise="Use method='vmp'.",
                )
            found.setdefault(discrete_key(node), node)
        elif isinstance(node, Gather):
            stack.extend([node.index, node.source] if not known(node.index) else [node.source])
        elif not isinstance(node, Random):
            _check_apart(node, known, name)
            stack.extend(parents(node))
    return tuple(found.values())


def _check_apart(node: Expr, known: IsData, name: str) -> None:
    """NoSlots where an expression reads the states of all elements of a plate at once, such as their sum."""
    over = node.over if isinstance(node, Apply) else None
    if over is None:
        return
    plates = {plate for element in discrete_elements(parents(node), known, name) for plate in element.plates}
    if over in plates:
        raise NoSlots(
            f"'{name}' depends on '{node}', which reads a discrete variable at all elements of plate '{over.name}': EP "
            "sums over the states of one element at a time, and these have as many as all of them together.",
            f"How many of them are true is m.let('count', cv.sum(b, over={over.name})), a class of its own, with which "
            "m.random(..., cv.switch(count, ...)) or values[count] chooses.",
        )


def given_states(known: IsData, discrete: tuple[Expr, ...]) -> IsData:
    """Whether an expression is data once the discrete elements have a state."""
    keys = {discrete_key(expr) for expr in discrete}

    def given(expr: Expr) -> bool:
        if known(expr) or (expr.domain.is_discrete and discrete_key(expr) in keys):
            return True
        return not isinstance(expr, Random) and bool(parents(expr)) and all(given(child) for child in parents(expr))

    return given


class Edges:
    """The edges of a factor, numbered as they are met."""

    def __init__(self) -> None:
        self.found: dict[tuple, tuple[int, Edge]] = {}

    def number(self, variable: Random, element: Expr, direction: Expr | None, expr: Expr) -> int:
        """The number of an edge, the same wherever it appears."""
        key = (atom_key(element), direction is None or atom_key(direction))
        return self.found.setdefault(key, (len(self.found), Edge(variable, element, direction, expr)))[0]

    def all(self) -> tuple[Edge, ...]:
        """The edges in order."""
        return tuple(edge for _, edge in self.found.values())


@dataclasses.dataclass(frozen=True)
class Finder:
    """Makes branches; `given` decides what is data given the discrete states, `name` whose factor it is."""

    name: str
    given: IsData
    edges: Edges

    def density(self, factor: Factor, out: Expr, args: Mapping[str, Expr]) -> Branch:
        """All random arguments as slots."""
        return Branch(factor, "density", out, args, self.slots([out, *args.values()]))

    def linked(
        self,
        factor: Factor | None,
        link: str,
        out: Expr | None,
        args: Mapping[str, Expr],
        parts: list,
        others: tuple[Expr, ...] = (),
        side: list | None = None,
    ) -> Branch | None:
        """A function of sum of `parts` (coefficients, atoms), in closed form over the edges in which it is linear.

        None where it is linear in none. `others` are further expressions that the function depends on, `side` the
        parts of what must be positive, linear in the same edges.
        """
        every = [*parts, *(side or ())]
        inner = [atom for _, atoms in every for atom in atoms if self._edge(atom) is None]
        taken = {self._edge(atom) for atom in self._atoms([*inner, *others])}
        taken |= {self._edge(atom) for _, atoms in every for atom in atoms if _repeated(atom, atoms)}
        linear = self._linear(every, taken)
        roots = [*inner, *others]
        quantity = self._quantity(parts, linear, roots)
        beside = None if side is None else self._quantity(side, linear, roots)
        if not (quantity if beside is None else beside).members:
            return None
        return Branch(factor, link, out, args, self.slots(roots), quantity.members, quantity.shift, beside)

    def _quantity(self, parts: list, linear: set[int], roots: list[Expr]) -> Quantity:
        """The sum of `parts` over linear edges; what else it depends on is added to `roots`."""
        members: dict[int, list[Expr]] = {}
        rest: list[Expr] = []
        for coefficients, atoms in parts:
            numbers = [self._edge(atom) for atom in atoms]
            chosen = next((number for number in numbers if number in linear), None)
            left = [atom for atom, number in zip(atoms, numbers, strict=True) if number != chosen or number is None]
            roots.extend(left)
            factor = product([*coefficients, *left])
            (rest if chosen is None else members.setdefault(chosen, [])).append(factor)
        shift = functools.reduce(operator.add, rest) if rest else None
        totals = tuple((number, functools.reduce(operator.add, parts)) for number, parts in members.items())
        return Quantity(totals, shift)

    def _linear(self, parts: list, taken: set) -> set[int]:
        """Edges for the closed form: no two of them in one product, those that stand alone first."""
        linear: set[int] = set()
        for _, atoms in sorted(parts, key=lambda part: len(part[1])):
            numbers = [n for n in map(self._edge, atoms) if n is not None and n not in taken]
            if not numbers:
                continue
            chosen = next((n for n in numbers if n in linear), numbers[0])
            linear.add(chosen)
            taken |= set(numbers) - {chosen}
        return linear - taken

    def _edge(self, atom: Expr) -> int | None:
        """The number of a Gaussian edge, None for anything else."""
        term = linear_term(atom, (), self.given)
        return None if term is None else self.edges.number(term.variable, term.element, term.direction, atom)

    def _atoms(self, exprs: Iterable[Expr]) -> list[Expr]:
        """The Gaussian edges anywhere below expressions."""
        found, stack = [], list(exprs)
        while stack:
            node = stack.pop()
            if self.given(node):
                continue
            if linear_term(node, (), self.given) is not None:
                found.append(node)
            elif not isinstance(node, Random):
                stack.extend(parents(node))
        return found

    def slots(self, roots: Iterable[Expr]) -> tuple[Slot, ...]:
        """The slots below expressions: the largest linear forms, split into their edges where they share one."""
        found: dict[tuple, Slot] = {}
        for root in roots:
            self._collect(root, found)
        counts: dict[int, int] = {}
        for slot in found.values():
            for number, _ in slot.members:
                counts[number] = counts.get(number, 0) + 1
        if any(count > 1 for count in counts.values()):
            numbers = dict.fromkeys(number for slot in found.values() for number, _ in slot.members)
            edges = self.edges.all()
            found = {atom_key(edges[n].expr): self._bare(edges[n].variable, edges[n].expr, n) for n in numbers}
        slots = tuple(found.values())
        self._check(slots)
        return slots

    @staticmethod
    def _bare(variable: Random, expr: Expr, number: int) -> Slot:
        domain = real if variable.domain.is_vector else variable.domain
        return Slot(domain, expr, ((number, ONE),))

    def _collect(self, node: Expr, found: dict[tuple, Slot]) -> None:
        if self.given(node) or atom_key(node) in found:
            return
        form = self._form(node)
        if form is not None:
            found[atom_key(node)] = form
            return
        variable = element_of(node, self.given)
        if variable is not None and is_integrable(variable.domain):
            found[atom_key(node)] = self._bare(variable, node, self.edges.number(variable, node, None, node))
            return
        if isinstance(node, (Random, Gather)) or applies(node, *COUPLING):
            raise self._why_not(node)
        for child in parents(node):
            self._collect(child, found)

    def _form(self, node: Expr) -> Slot | None:
        """A real expression that is linear in Gaussian edges as one slot."""
        if not node.domain.is_real:
            return None
        members: dict[int, list[Expr]] = {}
        offsets = []
        for coefficients, atoms in summands(node, self.given):
            factor = product(coefficients)
            if not atoms:
                offsets.append(factor)
                continue
            number = self._edge(atoms[0]) if len(atoms) == 1 else None
            if number is None:
                return None
            members.setdefault(number, []).append(factor)
        totals = tuple((number, functools.reduce(operator.add, parts)) for number, parts in members.items())
        return Slot(real, node, totals, functools.reduce(operator.add, offsets) if offsets else None)

    def _why_not(self, node: Expr) -> NoSlots:
        if isinstance(node, Gather) and element_of(node, self.given) is None:
            return NoSlots(
                f"'{self.name}' picks an element of the expression '{node.source}', which EP cannot trace to its "
                "variables.",
                "Index the variables in it instead: write a[i] * b[i] for (a * b)[i].",
            )
        what = COUPLING[node.operation] if isinstance(node, Apply) else f"is a random {node.domain}"
        return NoSlots(
            f"'{self.name}' cannot run under EP: '{node}' {what}, and EP would need an integral over all of its "
            "coordinates.",
            otherwise=f"Use method='auto', or method={{'{self.name}': 'vmp', ...}} or 'ncvmp' for this factor.",
        )

    def _check(self, slots: tuple[Slot, ...]) -> None:
        if len(slots) > 2:
            raise NoSlots(
                f"'{self.name}' depends on {len(slots)} random numbers that are not linear in one another: "
                f"{', '.join(str(slot.expr) for slot in slots)}. EP integrates over at most two by quadrature.",
                "Give a part of the expression a Gaussian variable of its own: "
                "m.random('part', cv.gaussian(..., variance=...)).",
                f"Or use method={{'{self.name}': 'vmp', ...}} or 'ncvmp' for this factor.",
            )


def _repeated(atom: Expr, atoms: tuple[Expr, ...]) -> bool:
    return sum(atom_key(atom) == atom_key(other) for other in atoms) > 1


def summands(expr: Expr, given: IsData) -> list[Monomial]:
    """A real expression as a list of products (coefficients, atoms)."""
    return _one_edge_for_each_vector(expand(expr, given), given)


def _one_edge_for_each_vector(parts: list[Monomial], given: IsData) -> list[Monomial]:
    """Several inner products of a vector with data, such as two of its coordinates, as one: it has one cavity."""
    vectors = [vector_of(atoms[0], given) for _, atoms in parts if len(atoms) == 1]
    keys = [atom_key(vector) for vector in vectors if vector is not None]
    return with_one_direction(parts, given) if len(set(keys)) < len(keys) else parts


def difference(left: Expr, right: Expr | None, given: IsData) -> list:
    """left - right as a list of products (coefficients, atoms)."""
    parts = expand(left, given)
    if right is not None:
        parts += [((MINUS_ONE, *coefficients), atoms) for coefficients, atoms in expand(right, given)]
    return _one_edge_for_each_vector(parts, given)
