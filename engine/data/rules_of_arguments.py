"""Data against the rules of factors: what the arguments of terms come to, and what is observed of their variables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from ...compiler.data.bind import Binding, bind
from ...compiler.data.keys import clash
from ...compiler.data.sparse_matrices import is_paged
from ...compiler.language.argument_rules import Laid, check_rules
from ...compiler.language.balanced_sums import not_too_deep
from ...compiler.language.model import Model
from ...compiler.language.nodes import Apply, Constant, Expr, Input, Let, Random, inside
from ...compiler.language.values import check
from ...factors.errors import DataError, ModelError
from ...factors.factor import Chain, Term
from ...factors.numbers import ValueProblem
from ...factors.switches import double_precision
from ..support.asked_arguments import UserData
from ..values.evaluate import known, value
from ..values.plated import Placed
from ..values.scope import Scope
from .cancelled_by_data import check_sharp
from .values_of_data import value_of_data


def bind_checked(model: Model, data: UserData, sizes: Mapping[str, int] | None = None) -> Binding:
    """Binds data as `bind` does, and checks that they keep the rules of the factors: DataError where they do not."""
    binding = bind(model, data, sizes)
    check_binding(model, binding)
    return binding


@not_too_deep()
def check_binding(model: Model, binding: Binding) -> None:
    """Raises DataError, with the row, for a known argument of a term outside its domain, or values of several arguments
    and of the outcome that the factor does not allow together.

    Nothing is asked of missing entries, nor of what depends on them. Likewise for statements that nothing random is
    left of (see `engine/data/cancelled_by_data.py`). Raises ModelError for names that the arrays of a program could not
    tell apart.
    """
    check_names(model)
    scope = Scope(binding.sizes, _data(binding), {})
    for node in model.randoms.values():
        for term, whole in _terms(node):
            _check_term(node, term, scope, binding, whole)
    check_sharp(model, scope, binding)


def check_names(model: Model) -> None:
    """Raises ModelError for a name under which a program keeps what belongs to other variables: a mask, a belief."""
    found = clash([*model.inputs, *model.randoms, *model.lets], model.plates)
    if found is not None:
        raise ModelError(
            f"The model declares '{found[0]}', the name under which a program keeps what belongs to '{found[1]}' (a "
            "mask, a prior, a joint belief): one would be read as the other. Give it another name."
        )


def _data(binding: Binding) -> dict[str, np.ndarray]:
    """Inputs and observations, NaN where missing; what cannot hold NaN is left out where some are."""
    found = {name: array for name, array in binding.inputs.items() if not is_paged(array)}
    for name, array in binding.observed.items():
        if name not in binding.missing:
            found[name] = array
        elif array.dtype.kind == "f":
            absent = binding.missing[name]
            found[name] = np.where(absent.reshape(absent.shape + (1,) * (array.ndim - absent.ndim)), np.nan, array)
    return found


def _terms(node: Random) -> Iterator[tuple[Term, bool]]:
    """The terms that generate a variable, and whether each generates all of its elements."""
    if isinstance(node.term, Term):
        yield node.term, True
    else:
        yield from ((case, False) for case in node.term.terms)


def _check_term(node: Random, term: Term, scope: Scope, binding: Binding, whole: bool) -> None:
    spoken = {edge for rule in term.factor.rules for edge in rule.edges}
    values: dict[str, Laid] = {}
    for name, arg in term.args.items():
        made = _is_made(arg, scope) and not (isinstance(node.term, Chain) and arg is node.term.previous)
        if (name in spoken or made) and known(arg, scope):
            values[name] = _evaluated(arg, scope)
            if made and not _depends_on_missing(arg, binding):
                _check_kind(node, term, name, arg, values[name][0])
    if whole and "out" in spoken and node.name in scope.data:
        values["out"] = (scope.data[node.name], node.plates)
    try:
        check_rules(term.factor, values, node.domain)
    except ValueProblem as problem:
        raise DataError(f"'{node.name}' ({term.factor.name}): {problem}") from None


def _is_made(arg: Expr, scope: Scope) -> bool:
    """Whether the argument is computed from data: what is given as it is was checked when it was given."""
    return not isinstance(arg, (Constant, Input, Random)) and not (isinstance(arg, Let) and arg.name in scope.data)


def _evaluated(arg: Expr, scope: Scope) -> Laid:
    if isinstance(arg, Constant):
        return arg.value, arg.plates
    if isinstance(arg, Apply):
        return value_of_data(arg, scope), arg.plates
    with double_precision():
        found: Placed = value(arg, scope)
    return np.asarray(found.value), found.plates


def _depends_on_missing(arg: Expr, binding: Binding) -> bool:
    return any(getattr(node, "name", None) in binding.missing for node in inside([arg]))


def _check_kind(node: Random, term: Term, name: str, arg: Expr, array: np.ndarray) -> None:
    kind = term.factor.edges.get(name, "real")
    try:
        check(array, kind, infinite=name in term.factor.bounds)
    except ValueProblem as problem:
        raise DataError(
            f"'{node.name}': argument `{name}` of {term.factor.name}, {arg}, is computed from the data. It {problem}"
        ) from None
