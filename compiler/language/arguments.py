"""Arguments of terms: from what the user gave to checked expressions, laid out on the plates of the variable."""

from __future__ import annotations

import dataclasses

import numpy as np

from ...factors import LINKS
from ...factors.domains import Domain, real
from ...factors.errors import ModelError
from ...factors.factor import Mixture, Nameless, Switch, Term
from ...factors.numbers import ValueProblem, numeric_array
from ...factors.vectors.ordered import Ordered
from .argument_rules import check_rules
from .atoms import ONE
from .balanced_sums import balanced
from .indexing import pushed
from .nodes import Apply, Constant, Expr, Gather, Plate, applies, counts, is_data, union_plates, unnamed
from .operations import DIVIDE, MULTIPLY, POWER, STACK, SUM
from .tables import Table, chosen_at_once, read_as
from .values import EVENT_NDIM, UserValue, check, convert

_ACCEPTED = {
    "real": {"real", "sparse", "positive", "unit"},
    "positive": {"positive"},
    "unit": {"unit"},
    "boolean": {"boolean"},
    "category": {"category", "boolean"},
    "count": {"count"},
    "simplex": {"simplex"},
    "vector": {"vector"},
    "posdef": {"posdef"},
    "concentration": {"vector"},
}
_ACCEPTED_DATA = {
    "real": {"positive", "unit", "count", "boolean"},
    "positive": {"unit"},
    "count": {"boolean", "category"},
    "vector": {"simplex"},
    "matrix": {"posdef"},
}
_HINTS = {
    (
        "positive",
        "real",
    ): "It may be zero or negative: map it with cv.exp(...), or declare the data in it as cv.positive.",
    ("positive", "count"): "It may be zero: declare the data as cv.positive, or add a positive number.",
    ("unit", "real"): "Map it to a probability with cv.logistic(...) or cv.probit(...).",
    ("unit", "positive"): "It may exceed one: map it with cv.logistic(...) or cv.probit(...) of a real expression.",
    ("unit", "boolean"): "To let a boolean choose, index with it (`p[b]`) or use cv.switch(...).",
    ("simplex", "real"): "Map it to probabilities with cv.softmax(score, over=plate).",
    ("simplex", "vector"): "Use scores over a plate of classes and cv.softmax(score, over=plate).",
    ("real", "boolean"): "To let a discrete variable choose a value, index with it (`mean[z]`) or use cv.switch(...).",
    ("real", "category"): "To let a discrete variable choose a value, index with it (`mean[z]`) or use cv.switch(...).",
    ("real", "vector"): "Reduce it to a number with cv.dot(weight, x), or use the vector factor (cv.vector_gaussian).",
    ("vector", "real"): "Use the scalar factor (cv.gaussian), or declare a vector with cv.vector(d).",
    ("posdef", "positive"): "A matrix is needed: use cv.wishart(...), or the scalar factor.",
}


@dataclasses.dataclass(frozen=True)
class Owner:
    """The variable that a term generates, for placing arrays and for messages."""

    name: str
    declared: tuple[Plate, ...]


def admit(term: Term | Switch, owner: Owner) -> tuple[Term | Switch, tuple[Plate, ...], Domain]:
    """The term with all arguments as checked expressions, the plates of its variable, and the variable's domain.

    Plates are the declared ones, then those of the arguments in order. Raises ModelError for anything that has no
    meaning.
    """
    terms = term.terms if isinstance(term, Switch) else (term,)
    selector = [_selector(term, owner)] if isinstance(term, Switch) else []
    for case in terms:
        _check_term(case, owner)
    nodes = [value for case in terms for value in case.args.values() if isinstance(value, Expr)]
    plates = union_plates(owner.declared, *(node.plates for node in (*selector, *nodes)))
    array_plates = owner.declared or plates
    admitted = tuple(_with_args(case, owner, array_plates) for case in terms)
    generated = [_generated(case, owner) for case in admitted]
    for case, domain in zip(admitted, generated, strict=True):
        _check_constants(case, domain, owner)
    if isinstance(term, Switch):
        _check_cases(selector[0], admitted, generated, owner)
        return Switch(selector[0], admitted), plates, generated[0]
    return admitted[0], plates, generated[0]


def _generated(term: Term, owner: Owner) -> Domain:
    """The domain that a term generates; a refusal names the variable."""
    try:
        return term.factor.out({name: arg.domain for name, arg in term.args.items()})
    except ModelError as problem:
        raise ModelError(f"Random variable '{owner.name}': {problem}") from None


def _check_term(term: UserValue, owner: Owner) -> None:
    if isinstance(term, Switch):
        raise ModelError(
            f"Random variable '{owner.name}': a switch inside a switch. Use one switch on a categorical selector."
        )
    if isinstance(term, Mixture):
        raise ModelError(
            f"Random variable '{owner.name}': a mixture inside another. Use one mixture with a probability a term."
        )
    if isinstance(term, Term) and "problem" in term.options:
        raise ModelError(f"Random variable '{owner.name}': {term.options['problem']}")
    if not isinstance(term, Term):
        raise ModelError(f"Random variable '{owner.name}' is given {_kind_of(term)}. {_term_hint(term)}")


def _kind_of(value: UserValue) -> str:
    return f"the expression '{value}'" if isinstance(value, Expr) else f"{value!r}, which is not a term"


def _term_hint(value: UserValue) -> str:
    if isinstance(value, Expr):
        return "Deterministic expressions are declared with m.let(name, expression)."
    call = "Call it with its arguments: " if callable(value) else "Give a term: "
    return f"{call}a factor applied to its parents, e.g. cv.gaussian(0.0, variance=1.0)."


def _with_args(term: Term, owner: Owner, plates: tuple[Plate, ...]) -> Term:
    args = {name: _argument(term, name, value, owner, plates) for name, value in term.args.items()}
    return dataclasses.replace(term, args=args)


def _check_constants(term: Term, domain: Domain, owner: Owner) -> None:
    constants = {name: (arg.value, arg.plates) for name, arg in term.args.items() if isinstance(arg, Constant)}
    try:
        check_rules(term.factor, constants, domain)
    except ValueProblem as problem:
        raise ModelError(f"Random variable '{owner.name}', {term.factor.name}: {problem}") from None


def _argument(term: Term, name: str, value: UserValue, owner: Owner, plates: tuple[Plate, ...]) -> Expr:
    wanted = term.factor.edges.get(name)
    kind = getattr(wanted, "kind", wanted)
    place = f"Random variable '{owner.name}': argument `{name}` of {term.factor.name}"
    if isinstance(value, Constant):
        value, plates = value.value, value.plates or plates
    if isinstance(value, Expr):
        value = _chosen_as(_entry_by_entry(value), kind, place)
        _check_kind(value, kind, place)
        return balanced(as_real(value) if kind == "real" else value)
    return _constant(value, kind, place, owner, plates, infinite=name in term.factor.bounds)


def _entry_by_entry(value: Expr) -> Expr:
    """An element, by index data, of a vector that is put together, as the vector of the elements of its entries."""
    if not isinstance(value, Gather) or not is_data(value.index):
        return value
    whole = unnamed(value.source)
    together = applies(whole, STACK) and whole.over is None and not is_data(whole)
    return pushed(whole, value.index, value.axis) if together else value


def _chosen_as(value: Expr, kind: str | None, place: str) -> Expr:
    """What a discrete variable chooses from data, in the domain that the argument needs; others as they are."""
    if applies(value, DIVIDE, POWER):  # such as the precision 1 / sd^2, of which no rule has moments
        at_once = chosen_at_once(value)
        value = value if at_once is None else at_once
    if kind not in _ACCEPTED or value.domain.kind in _ACCEPTED[kind] or is_data(value):
        return value
    try:
        found = read_as(value, kind, _ACCEPTED_DATA.get(kind, ()))
    except ValueProblem as problem:
        raise ModelError(f"{place}, '{value}': a row of the table {problem}") from None
    return value if found is None else found


def _check_kind(value: Expr, kind: str | None, place: str) -> None:
    found = value.domain.kind
    if kind not in _ACCEPTED or found in _ACCEPTED[kind]:
        if kind == "concentration" and not is_data(value):
            raise ModelError(
                f"{place} must be data or constant; found '{value}', which is random. Give numbers or an input."
            )
        return
    if found in _ACCEPTED_DATA.get(kind, ()) and is_data(value):
        return
    hint = _HINTS.get((kind, found), f"Give a number, an input or an expression that is {kind}.")
    raise ModelError(f"{place} must be {kind}; found '{value}', which is {value.domain}. {hint}")


def as_real(value: Expr) -> Expr:
    """A random positive number or probability as a real number: what is made of it stays, its domain is wider."""
    if not value.domain.is_bounded or is_data(value):
        return value
    if isinstance(value, Apply) and value.op not in LINKS:
        return dataclasses.replace(value, domain=real)
    return Apply(MULTIPLY, (ONE, value), (), value.plates, real)


def _constant(
    value: UserValue, kind: str | None, place: str, owner: Owner, plates: tuple[Plate, ...], *, infinite: bool
) -> Constant:
    if isinstance(value, (Term, Switch, Mixture, Ordered)):
        found, what = (str(value), value.called) if isinstance(value, Nameless) else ("a term", "term")
        raise ModelError(f"{place} is itself {found}. Name its variable first: v = m.random(name, {what}), and give v.")
    if isinstance(value, Table):
        raise ModelError(f"{place} is a whole {value}. Index it, cv.table(values)[z], or give the array itself.")
    if value is None or isinstance(value, str) or callable(value):
        raise ModelError(f"{place} is {value!r}. Give a number, an array or an expression.")
    try:
        array = numeric_array(value)
        if array.size == 0:
            raise ValueProblem(f"found an empty array of shape {array.shape}. Give at least one value.")
        over = _array_plates(array, kind, owner, plates)
        check(array, kind or "real", infinite=infinite)
    except ValueProblem as problem:
        raise ModelError(f"{place}: {problem}") from None
    event = array.shape[len(over) :]
    copy = np.array(convert(array, kind or "real"))
    return Constant(copy, over, _constant_domain(kind, event))


def _constant_domain(kind: str | None, event: tuple[int, ...]) -> Domain:
    if kind is None or (kind not in EVENT_NDIM and event):
        return Domain("real" if not event else "vector" if len(event) == 1 else "matrix", event[-1] if event else None)
    return Domain("vector" if kind == "concentration" else kind, event[-1] if event else None)


def _array_plates(array: np.ndarray, kind: str | None, owner: Owner, plates: tuple[Plate, ...]) -> tuple[Plate, ...]:
    """The plates that the leading axes of a constant run over: none, or all of the variable's in declared order."""
    known = kind in _ACCEPTED or kind == "matrix"
    event = EVENT_NDIM.get(kind or "", 0)
    if kind == "posdef" and array.ndim >= 2 and array.shape[-1] != array.shape[-2]:
        raise ValueProblem(f"found shape {array.shape}. Give a square matrix.")
    if array.ndim == event or not known:
        return ()
    if array.ndim == event + len(plates) and plates:
        _check_sizes(array, plates)
        return plates
    names = ", ".join(plate.name for plate in plates)
    axes = {0: "", 1: " and one axis for the vector", 2: " and two axes for the matrix"}[event]
    fix = f"give one axis for each of the plates ({names}){axes}" if plates else "declare plates=... for the variable"
    single = {0: "a single number", 1: "a single vector", 2: "a single matrix"}[event]
    raise ValueProblem(
        f"found an array of shape {array.shape}, but the plates of '{owner.name}' are ({names}). Give {single}, or "
        f"{fix}."
    )


def _check_sizes(array: np.ndarray, plates: tuple[Plate, ...]) -> None:
    for plate, size in zip(plates, array.shape, strict=False):
        if plate.size is not None and plate.size != size:
            raise ValueProblem(
                f"found {size} elements along plate '{plate.name}', which has size {plate.size}. Give {plate.size}."
            )


def _selector(switch: Switch, owner: Owner) -> Expr:
    selector = switch.selector
    if isinstance(selector, Expr) and selector.domain.is_discrete:
        return selector
    found = f"'{selector}' ({selector.domain})" if isinstance(selector, Expr) else repr(selector)
    raise ModelError(
        f"Random variable '{owner.name}': the selector of a switch must be boolean or categorical; found {found}. "
        "Declare it with cv.bernoulli(p) or cv.categorical(p), or compare: cv.switch(a > b, when_true, when_false)."
    )


def _check_cases(selector: Expr, terms: tuple[Term, ...], domains: list[Domain], owner: Owner) -> None:
    if counts(selector) and not is_data(selector):
        raise ModelError(
            f"Random variable '{owner.name}': the selector '{selector}' of its switch needs a name, by which it has a "
            f"belief. Name it first: k = m.let('k', {selector}), and cv.switch(k, ...)."
        )
    size = selector.domain.size
    wanted = 2 if selector.domain.is_boolean else getattr(size, "size", size)
    if wanted is not None and wanted != len(terms):
        counted = unnamed(selector)
        if applies(counted, SUM):
            raise ModelError(
                f"Random variable '{owner.name}': '{selector}' counts, from 0 to {wanted - 1}, and a switch on it has "
                f"one case for each number: {wanted}; found {len(terms)}. Whether any is true is "
                "m.let('any', cv.any(b, over=plate)), and of all cv.all(b, over=plate), each with two cases."
            )
        raise ModelError(
            f"Random variable '{owner.name}': the switch on '{selector}' ({selector.domain}) has {len(terms)} cases, "
            f"but needs {wanted}. "
            "Give one term per class: cv.switch(boolean, when_true, when_false) or cv.switch(categorical, case_0, "
            "case_1, ...)."
        )
    for number, domain in enumerate(domains):
        if domain != domains[0]:
            raise ModelError(
                f"Random variable '{owner.name}': case 0 of its switch generates {domains[0]} values, case {number} "
                f"({terms[number].factor.name}) "
                f"{domain} values. All cases must generate one domain: change the terms."
            )
