"""Observed variables with missing entries that other variables depend on: every factor is split into cases.

Such a variable x is latent, and its given entries are data under another name. A factor that meets an element of x
becomes two blocks: one over the instances whose element is given, where it is data, and one over the others, where it
is latent. Each gets the operator that serves it best, and no given entry ever receives a message. A factor that meets
more elements than are worth splitting, or a sum over them, reads a real x as "given values + missing * x" instead.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator
from typing import NamedTuple

from ...factors.domains import boolean, real
from ...factors.errors import UnsupportedError
from ...factors.factor import Chain, Switch, Term
from ...factors.roles import Process
from ..algebra.known import known_in
from ..blocks.base import Block, SwitchCase
from ..data.keys import given_values, is_given, is_missing
from ..graph import Draft, PartlyObserved
from ..language.atoms import atom_key
from ..language.nodes import Apply, Expr, Gather, Input, IsData, Let, Plate, Random, parents, union_plates

SPLIT = 3  # elements of partly observed variables by which one factor is split into cases
Path = tuple[Gather, ...]  # through which gathers an element is reached, the outermost first


def data_of(variable: Random) -> PartlyObserved:
    """The inputs that stand for what is given of a variable."""
    name, plates = variable.name, variable.plates
    return PartlyObserved(
        Input(given_values(name), plates, variable.domain),
        Input(is_given(name), plates, boolean),
        Input(is_missing(name), plates, real),
    )


@dataclasses.dataclass(frozen=True, eq=False)
class _Element:
    """An element of a partly observed variable in a factor, and where it is given."""

    variable: Random
    given: Expr
    summed: bool  # whether it stands inside a sum over one of its plates


class EntryCase(NamedTuple):
    """A factor over the instances where `where` holds; `rewritten` puts data in the place of the elements given."""

    where: tuple[Expr, ...]
    rewritten: Callable[[Expr], Expr]


def split(draft: Draft, node: Random, make: Callable[..., list[Block]]) -> list[Block]:
    """The blocks of a variable's factor, by case; `make(draft, out, term)` gives those of one case."""
    term = node.term
    # A chain that is given in part is solved as a whole, with what is given of it.
    roots = list(parents(node)) if isinstance(term, Chain) else [node, *parents(node)]
    if not _touched(draft, roots):
        return make(draft, node, term)
    _check_term(draft, node)
    blocks = []
    for case in _cases(draft, node.name, roots):
        out = case.rewritten(node)
        assert isinstance(out, (Random, Input))
        own = dataclasses.replace(draft, methods={**draft.methods, out.name: draft.method_of(node.name)})
        for block in make(own, out, _rewritten_term(term, case.rewritten)):
            of_switch = block.case and SwitchCase(node.name, block.case.number)
            name = node.name if of_switch is None else str(of_switch)
            blocks.append(dataclasses.replace(block, name=name, case=of_switch, where=case.where))
    return blocks


def split_expression(draft: Draft, name: str, expr: Expr, make: Callable[[Expr], list[Block]]) -> list[Block]:
    """The same for a constraint or an observed expression; `make(expression)` gives the blocks of one case."""
    if not _touched(draft, [expr]):
        return make(expr)
    return [
        dataclasses.replace(block, where=case.where)
        for case in _cases(draft, name, [expr])
        for block in make(case.rewritten(expr))
    ]


def _rewritten_term(term: Term | Switch | Chain, rewritten: Callable[[Expr], Expr]) -> Term | Switch | Chain:
    def of_case(case: Term) -> Term:
        return dataclasses.replace(case, args={edge: rewritten(arg) for edge, arg in case.args.items()})

    if isinstance(term, Switch):
        return Switch(rewritten(term.selector), tuple(map(of_case, term.terms)))
    return of_case(term) if isinstance(term, Term) else term


def _check_term(draft: Draft, node: Random) -> None:
    """Factors that are solved as a whole have no cases."""
    whole = isinstance(node.term, Chain) or (isinstance(node.term, Term) and isinstance(node.term.factor.role, Process))
    gated = isinstance(node.term, Switch) and draft.method_of(node.name).name in ("ep", "power")
    if whole or gated:
        found = ", ".join(sorted({e.variable.name for e in _elements(draft, [node, *parents(node)]).values()}))
        what = "a switch under EP" if gated else "a chain, a tree or a Gaussian process"
        raise UnsupportedError(
            f"'{node.name}' is {what} and involves '{found}', which is observed with missing entries (NaN). Its factor "
            "is solved as a whole, and cannot be split into instances with and without the entry. "
            + (
                "Use method='auto' or 'vmp' for it."
                if gated
                else "Observe a noisy copy, whose entries may be missing, "
            )
            + ("" if gated else "or leave the whole variable out of the data.")
        )


# the cases of a factor ------------------------------------------------------------------------------------------------


def _cases(draft: Draft, name: str, roots: list[Expr]) -> Iterator[EntryCase]:
    elements = _elements(draft, roots)
    apart = {key: e for key, e in elements.items() if not e.summed}
    if len(apart) > SPLIT:
        first = [key for key, e in apart.items() if not e.variable.domain.is_real or e.variable is roots[0]]
        kept = [*first, *(key for key in apart if key not in first)][: max(SPLIT, len(first))]
        apart = {key: apart[key] for key in kept}
    for key, element in elements.items():
        if key not in apart and not element.variable.domain.is_real:
            raise UnsupportedError(_no_sum(name, element))
    if len(apart) > 2 * SPLIT:
        raise UnsupportedError(
            f"'{name}' involves {len(apart)} elements of variables that are observed with missing entries (NaN), and "
            f"each doubles the number of its cases; up to {2 * SPLIT} are taken. Fill in some of the entries, or leave "
            "these variables out of the data."
        )
    for choice in itertools.product((True, False), repeat=len(apart)):
        given = dict(zip(apart, choice, strict=True))
        where = tuple(e.given if given[key] else ~e.given for key, e in apart.items())
        yield EntryCase(where, _Rewriting(draft, given))


def _no_sum(name: str, element: _Element) -> str:
    return (
        f"'{name}' holds a sum over elements of '{element.variable.name}' ({element.variable.domain}), which is "
        "observed with missing entries (NaN): whether an instance knows them has no yes or no. Fill in the entries, or "
        "leave the whole variable out of the data."
    )


def _touched(draft: Draft, roots: list[Expr]) -> bool:
    return bool(draft.partly) and bool(_elements(draft, roots))


def _elements(draft: Draft, roots: list[Expr]) -> dict[tuple, _Element]:
    """The elements of partly observed variables below the roots, not through definitions, by key."""
    known, found = known_in(draft), {}

    def visit(expr: Expr, path: Path, summed: frozenset[Plate]) -> None:
        if isinstance(expr, Random):
            if expr.name in draft.partly:
                _check_index(expr, path, known)
                given = _given(draft.partly[expr.name].given, _acting(expr, path))
                inside = bool(summed & set(given.plates))
                key = _key(expr, path)
                if key not in found or inside:
                    found[key] = _Element(expr, given, inside)
            return
        if isinstance(expr, Let) and expr.name in draft.observed:
            return
        if isinstance(expr, Gather):
            visit(expr.source, (*path, expr), summed)
            visit(expr.index, path, summed)
            return
        over = expr.over if isinstance(expr, Apply) else None
        for child in parents(expr):
            visit(child, path, summed if over is None else summed | {over})

    for root in roots:
        visit(root, (), frozenset())
    return found


def _acting(variable: Random, path: Path) -> Path:
    """The gathers of a path that choose among the elements of the variable, the innermost first."""
    plates, found = variable.plates, []
    for gather in reversed(path):
        if gather.axis in set(plates):
            rest = (plate for plate in plates if plate is not gather.axis)
            plates = union_plates(gather.index.plates, rest)
            found.append(gather)
    return tuple(found)


def _check_index(variable: Random, path: Path, known: IsData) -> None:
    for gather in _acting(variable, path):
        if not known(gather.index):
            raise UnsupportedError(
                f"'{variable.name}' is observed with missing entries (NaN), and the random '{gather.index}' chooses "
                "among its elements, so that no instance knows whether its own is given. Fill in the entries, or leave "
                f"'{variable.name}' or what chooses out of the data."
            )


def _key(variable: Random, path: Path) -> tuple:
    acting = _acting(variable, path)
    return (id(variable), *((atom_key(gather.index), gather.axis.name) for gather in acting))


def _given(mask: Expr, acting: Path) -> Expr:
    """Whether the element of a variable that the gathers choose is given."""
    for gather in acting:
        rest = (plate for plate in mask.plates if plate is not gather.axis)
        mask = Gather(mask, gather.index, union_plates(gather.index.plates, rest), boolean, gather.axis)
    return mask


class _Rewriting:
    """Expressions with the elements that are given in a case replaced by data, and named ones written out."""

    def __init__(self, draft: Draft, given: dict[tuple, bool]) -> None:
        self.draft, self.given = draft, given

    def __call__(self, expr: Expr, path: Path = ()) -> Expr:
        if not _touched_below(self.draft, expr):
            return expr
        if isinstance(expr, Random):
            return self._element(expr, path)
        if isinstance(expr, Let):
            return self(expr.expression, path)
        if isinstance(expr, Gather):
            source, index = self(expr.source, (*path, expr)), self(expr.index, path)
            return dataclasses.replace(expr, source=source, index=index)
        assert isinstance(expr, Apply)
        return dataclasses.replace(expr, args=tuple(self(arg, path) for arg in expr.args))

    def _element(self, variable: Random, path: Path) -> Expr:
        data, choice = self.draft.partly[variable.name], self.given.get(_key(variable, path))
        if choice is None:  # zero stands in the place of what is missing
            return data.values + data.missing * variable
        return data.values if choice else variable


def _touched_below(draft: Draft, expr: Expr) -> bool:
    stack = [expr]
    while stack:
        node = stack.pop()
        if isinstance(node, Random):
            if node.name in draft.partly:
                return True
        elif not (isinstance(node, Let) and node.name in draft.observed):
            stack.extend(parents(node))
    return False
