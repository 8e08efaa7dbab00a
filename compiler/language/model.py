"""Model: plates, inputs, random variables, deterministic expressions and constraints; nothing is observed here."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import itertools
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ...factors.calls import methods_checked
from ...factors.domains import Domain
from ...factors.errors import ModelError
from ...factors.factor import Chain, Mixture, Switch, Term
from ...factors.vectors.ordered import Ordered
from ..element_names import different_names
from .arguments import Owner, admit
from .balanced_sums import balanced, not_too_deep
from .cancelled import check_cancelled
from .chain import declare
from .functions import stack
from .indexing import least_size
from .known_order import remember
from .mixtures import class_name, class_term, terms_of
from .nodes import (
    Constant,
    Derived,
    Expr,
    Gather,
    Input,
    Let,
    Plate,
    Position,
    Random,
    Rows,
    Unnamed,
    is_data,
    over_text,
    parents,
    union_plates,
)
from .unnamed import named_in, named_in_term
from .values import UserValue

Plates = Plate | Iterable[Plate]


@methods_checked("model")
class Model:
    """A factor graph under declaration.

    `name` is used in printed output only. The declarations are found in the dictionaries `plates`, `inputs`, `randoms`,
    `lets` and `constraints`, in order; `sizes` maps the plates whose size the declarations fix to that size and the
    reason.
    """

    def __init__(self, name: str = "model") -> None:
        if not isinstance(name, str):
            raise ModelError(f"The name of a model is {name!r}. Give a string: cv.Model('regression').")
        self.name = name
        self.plates: dict[str, Plate] = {}
        self.inputs: dict[str, Input] = {}
        self.randoms: dict[str, Random] = {}
        self.lets: dict[str, Let] = {}
        self.constraints: dict[str, Expr] = {}
        self.sizes: dict[str, tuple[int, str]] = {}
        self.inner_terms: dict[int, tuple[str, Term]] = {}  # whose variables were named after what they are part of
        self.names: dict[str, tuple[Any, ...]] = {}  # of the elements of plates that were declared with some
        self.least_sizes: dict[str, tuple[int, str]] = {}  # that fixed positions need, where sizes come with data
        self.compiled: dict[str, Any] = {}  # what the engine keeps with the model, so that both are freed together

    if not TYPE_CHECKING:  # type checkers know what a model has

        def __enter__(self):
            raise ModelError(
                f"A model is no context: leave `with` out. Declare by its methods, x = m.random('x', cv.gaussian(0.0, "
                f"sd=1.0)), and condition {self.name!r} when asking: cv.infer(m, data)."
            )

        def __exit__(self, *_):
            return None

        def __getitem__(self, name):
            raise ModelError(
                f"model[{name!r}]: what m.random, m.input, m.let and m.plate return is what expressions are made of; "
                "keep it. By name it is in m.randoms, m.inputs, m.lets or m.plates, and values are in "
                "cv.infer(m, data)[name]."
            )

    def __getstate__(self) -> dict[str, Any]:
        """Copies have nothing compiled: it stays with the model that it was compiled for."""
        return {**self.__dict__, "compiled": {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.inner_terms = {id(term): (name, term) for name, term in self.inner_terms.values()}

    def __copy__(self) -> Model:
        return _of_state(self.__getstate__())

    def __deepcopy__(self, memo: dict[int, Any]) -> Model:
        return _of_state(copy.deepcopy(self.__getstate__(), memo))

    def __reduce__(self) -> tuple[Any, ...]:
        """By its declarations: factors and domains of the package by their names, functions of the user's by theirs."""
        from ..portable import packed, unpacked  # few models are pickled

        return unpacked, (packed(self, f"The model {self.name!r}"),)

    def by_parts(self) -> tuple[Any, ...]:
        """How `packed` writes it: what else is packed beside it may share its nodes."""
        return Model.__new__, (Model,), self.__getstate__()

    def plate(self, name: str, size: int | None = None, *, names: Iterable[Any] | None = None) -> Plate:
        """Declares an index set: what has the plate exists once for each of its elements.

        `name`: a string of which the model has no other plate, variable or constraint. `size`: a positive integer;
        without it the data or `sizes=` give it. `names`: what its elements are called, text, numbers or dates, which
        give the size too; data may hold these instead of positions, and answers have them. Returns the plate, for
        `plates=`, `over=` and cv.index(plate). ModelError when the name is taken, the size is no positive integer, or
        names are not all different.
        """
        self._check_name(name, "plate")
        labels = None if names is None else different_names(name, names)
        if labels is not None:
            if size is not None and size != len(labels):
                raise ModelError(f"Plate '{name}' has size={size} and {len(labels)} names. Leave the size out.")
            size, self.names[name] = len(labels), labels
        plate = Plate(name, None if size is None else _positive_integer(name, size))
        self.plates[name] = plate
        if plate.size is not None:
            self.sizes[name] = (plate.size, "its declaration")
        return plate

    def input(self, name: str, domain: Domain, plates: Plates = ()) -> Input:
        """Declares data that are always given.

        `name`: the key of the data. `domain`: cv.real, cv.positive, cv.unit, cv.boolean, cv.count, cv.vector(d),
        cv.simplex(k), cv.posdef(d), cv.matrix(rows, columns), cv.category(k) or cv.index(plate). `plates`: one plate or
        several. The data are an array of shape (*sizes of the plates, *axes of one value). Returns the input, an
        expression. ModelError when the name is taken, or the domain or a plate is none of this model's.
        """
        self._check_name(name, "input")
        node = Input(name, self._own_plates(f"Input '{name}'", plates), self._own_domain(name, domain))
        self.inputs[name] = node
        return node

    @not_too_deep()
    def random(self, name: str, term: Term | Switch | Mixture | Ordered, plates: Plates = ()) -> Random | Let:
        """Declares a random variable x ~ term, one for each element of its plates, independent given the arguments.

        `name`: the key of its marginal, and of its data where it is observed. `term`: a factor applied to numbers,
        arrays, inputs, variables or expressions, a switch over such terms, a mixture of them, whose class is the
        variable "<name> class", or cv.ordered(term, size). `plates`: one plate or several; those of the term's
        arguments follow in the model's order. A constant array has shape (*sizes of the plates, *axes of one value), or
        is one value for all. Returns the variable, an expression of the domain that the factor generates.
        ModelError when the name is taken, an argument is outside the domain that the factor needs, or plates do not
        line up.
        """
        return self._ordered(name, term, plates) if isinstance(term, Ordered) else self._random(name, term, plates)

    def _random(self, name: str, term: Term | Switch | Mixture, plates: Plates = ()) -> Random:
        self._check_name(name, "random variable")
        owner = Owner(name, self._own_plates(f"Random variable '{name}'", plates))
        with self._inner_variables() as declare:
            term = named_in_term(name, term, declare)
            if isinstance(term, Mixture):
                return self._mixed(owner, term)
            self._check_own(f"Random variable '{name}'", _given_nodes(term))
            term, all_plates, domain = admit(term, owner)
            node = Random(name, term, self._in_order(all_plates, owner.declared), domain)
            self._fix_sizes(f"Random variable '{name}'", parents(node))
        self.randoms[name] = node
        return node

    def _ordered(self, name: str, drawn: Ordered, plates: Plates) -> Let:
        """An increasing vector: its first entry and the gaps are variables of their own."""
        self._check_name(name, "random variable")
        with self._inner_variables() as declare:
            drawn = dataclasses.replace(drawn, term=named_in_term(name, drawn.term, declare))
            entries: list[Expr] = [self._random(f"{name}[0]", drawn.first(), plates)]
            for k in range(1, drawn.size):
                term = drawn.gap(entries[-1], drawn.size - k)
                entries.append(entries[-1] + self._random(f"{name}[{k}] - {name}[{k - 1}]", term, plates))
            return self.let(name, stack(*entries))

    def _mixed(self, owner: Owner, mixture: Mixture) -> Random:
        """A variable of several terms, after the class that chooses among them."""
        nodes = _nodes(terms_of(mixture))
        self._check_own(f"Random variable '{owner.name}'", nodes)
        plates = self._in_order(union_plates(owner.declared, *(node.plates for node in nodes)), owner.declared)
        chosen = self._random(class_name(owner.name), class_term(owner.name, mixture), plates)
        try:
            return self._random(owner.name, Switch(chosen, mixture.terms), plates)
        except ModelError:
            del self.randoms[chosen.name]
            raise

    @contextlib.contextmanager
    def _inner_variables(self) -> Iterator[Callable[[str, Term], Random]]:
        """What declares the variables of terms inside a declaration; they are taken back where it is refused."""
        before = set(self.randoms)

        def declare(name: str, term: Term) -> Random:
            other = self.inner_terms.get(id(term.origin))
            if other is not None:
                raise ModelError(
                    f"The term that is given for '{name}' is that of '{other[0]}' already. To share one variable, "
                    f"declare it, v = m.random(name, term), and give v; for another one write the term again."
                )
            numbers = itertools.count(2)
            own = name
            while own in self.randoms and own not in before:  # of this declaration
                own = f"{name} {next(numbers)}"
            node = self._random(own, term)
            self.inner_terms[id(term.origin)] = (own, term.origin)
            return node

        try:
            yield declare
        except ModelError:
            self.randoms = {name: node for name, node in self.randoms.items() if name in before}
            self.inner_terms = {key: found for key, found in self.inner_terms.items() if found[0] in before}
            raise

    def chain(
        self, name: str, *, over: Plate, first: Term, then: Callable[[Expr], Term], plates: Plates = ()
    ) -> Random:
        """Declares a Markov chain p(x) = first(x_0) prod_t then(x_t | x_{t-1}) over the elements t of a plate.

        `over`: the plate of the chain, in the order of its elements. `first`: the term of the first element, without
        that plate. `then`: a function from the expression of the element before to the term of the next one; inputs
        over the plate are read at the element that is generated. Elements are real (gaussian terms, the mean linear in
        the one before), vectors (vector_gaussian), or booleans and categories (tables that the one before indexes). The
        term may be a switch or a mixture of terms, and discrete variables may choose its arguments: classes on fewer
        plates, or other chains and regimes over the same plates.
        `plates`: one plate or several that repeat the chain. Returns the variable, over `plates` and `over`.
        ModelError when the name is taken or the terms do not fit together. Source: rauch1965smoothing, rabiner1989hmm.
        """
        return self._linked(name, over, first, then, None, plates)

    def tree(
        self, name: str, *, over: Plate, parent: Input, root: Term, then: Callable[[Expr], Term], plates: Plates = ()
    ) -> Random:
        """Declares a variable on a tree p(x) = prod_roots root(x_r) prod_i then(x_i | x_parent(i)); data give the tree.

        `parent`: an input of domain cv.index(over) over the plate `over`, the position of each element's parent; a root
        points to itself, and several roots are several trees. `root`: the term of the roots. `then`: a function from
        the expression of the parent to the term of every other element. All else as for `chain`. Parents that form a
        cycle are a DataError when data are given. Source: kschischang2001factor.
        """
        if parent is None:
            raise ModelError(
                f"'{name}': parent=None. Give the input that holds each element's parent; m.chain needs none."
            )
        return self._linked(name, over, root, then, parent, plates)

    def _linked(
        self, name: str, over: Plate, first: UserValue, then: UserValue, parent: UserValue, plates: Plates
    ) -> Random:
        owner = f"Random variable '{name}'"
        self._check_name(name, "random variable")
        self._check_plate(f"{owner}, over=", over)
        with self._inner_variables() as inner:
            first = named_in_term(f"{name}.{'first' if parent is None else 'root'}", first, inner)
            own = self._own_plates(owner, plates)
            node = declare(name, over, first, self._chosen(name, (over, *own), then), parent, own)
            assert isinstance(node.term, Chain)
            self._check_own(owner, parents(node), node.term.previous)
            node = dataclasses.replace(node, plates=self._in_order(node.plates, own))
            self._fix_sizes(owner, parents(node))
        self.randoms[name] = node
        return node

    def _chosen(self, name: str, declared: tuple[Plate, ...], then: UserValue) -> UserValue:
        """The same function, with a switch on a class of each element where it returns a mixture."""
        if not callable(then):
            return then

        made: dict[str, Random] = {}

        def switched(previous: Expr) -> UserValue:
            term = then(previous)
            if not isinstance(term, Mixture):
                return term
            plates = union_plates(declared, *(node.plates for node in _nodes(terms_of(term))))
            for name_before in made:  # of fewer plates
                del self.randoms[name_before]
            chosen = self._random(class_name(name), class_term(name, term), plates)
            made[chosen.name] = chosen
            return Switch(chosen, term.terms)

        return switched

    def simulate(
        self,
        n: int = 1,
        data: Mapping[str, Any] | None = None,
        seed: int = 0,
        sizes: Mapping[str, int] | None = None,
    ) -> dict[str, Any]:
        """Draws from the model before anything is observed: of its priors, and of the data that they generate.

        `n` is how many. `data` has all inputs by name; observations among them give the sizes of plates alone, as
        `sizes` do. `seed` is a whole number or a key of jax.random. Constraints hold in each draw (these are kept from
        a Markov chain). Returns arrays by name, shaped (n,) + plates + event, of all variables and named expressions.
        Raises DataError for data that do not fit, ModelError for no such numbers, UnsupportedError for a variable that
        cannot be drawn, such as one with an improper prior.
        """
        from ..portable import called  # what draws stands above the language

        return called("engine.sampling.simulate", "simulate", self, n, data, seed, sizes)

    @not_too_deep()
    def let(self, name: str, expression: Expr) -> Let:
        """Names a deterministic expression, so that it can be observed, gate and index, and has a marginal.

        `name`: the key of its marginal, and of its data where it is observed. `expression`: of variables of this model.
        Returns the named expression, of the same plates and domain. ModelError when the name is taken, the expression
        is none or of another model, or nothing random is left in a comparison in it.
        """
        self._check_name(name, "let")
        if not isinstance(expression, Expr):
            hint = (
                "A term is declared with m.random(name, term)."
                if isinstance(expression, (Term, Switch))
                else "Combine variables, e.g. a + b."
            )
            raise ModelError(f"Let '{name}' is given {expression!r}, which is not an expression. {hint}")
        with self._inner_variables() as declare:
            expression = balanced(named_in(name, expression, declare))
            self._check_own(f"Let '{name}'", (expression,))
            check_cancelled(f"Let '{name}'", expression)
            self._fix_sizes(f"Let '{name}'", (expression,))
        node = Let(name, expression, self._in_order(expression.plates), expression.domain)
        self.lets[name] = node
        return node

    @not_too_deep()
    def constrain(self, expression: Expr, name: str | None = None) -> None:
        """States that a boolean expression is true for each element of its plates, e.g. `m.constrain(a - b > 0)`.

        After `m.constrain(a > b)` of two variables, or elements of them, a - b is positive: `variance=a - b` may
        follow. In densities and draws an element that index data compare with itself, as a root with its parent, is not
        compared.

        `expression`: of domain boolean, with a random variable in it. `name`: what `explain` and `method=` call it;
        without one "constraint 1" and so on. ModelError when the name is taken, the expression is not boolean or of
        another model, or it holds no random variable, or none that is left in a comparison.
        """
        name = f"constraint {len(self.constraints) + 1}" if name is None else name
        self._check_name(name, "constraint")
        if not isinstance(expression, Expr) or not expression.domain.is_boolean:
            found = (
                f"'{expression}', which is {expression.domain}" if isinstance(expression, Expr) else repr(expression)
            )
            raise ModelError(
                f"'{name}' must be a boolean expression; found {found}. Write a comparison, e.g. m.constrain(a > b)."
            )
        if is_data(expression):
            raise ModelError(
                f"'{name}', {expression}, contains no random variable, so it constrains nothing. Check the data "
                "outside the model."
            )
        with self._inner_variables() as declare:
            expression = balanced(named_in(name, expression, declare))
            self._check_own(f"'{name}'", (expression,))
            check_cancelled(f"'{name}'", expression)
            self._fix_sizes(f"'{name}'", (expression,))
        self.constraints[name] = expression
        remember(expression)

    def _repr_html_(self) -> str:
        """Its picture and its declarations, in a notebook."""
        from ..portable import called  # what draws stands above the language

        return called("engine.html.declarations", "html_of_model", self)

    def __repr__(self) -> str:
        """The declarations, one a line, with plates."""
        lines = [f'Model "{self.name}"']
        lines += [
            f"  plate {plate.name}" + (f" of size {plate.size}" if plate.size else "") for plate in self.plates.values()
        ]
        lines += [f"  input {node.name}: {node.domain}{over_text(node.plates)}" for node in self.inputs.values()]
        lines += [
            f"  random {node.name}: {node.domain}{over_text(node.plates)} ~ {term_text(node.term)}"
            for node in self.randoms.values()
        ]
        lines += [
            f"  let {node.name}: {node.domain}{over_text(node.plates)} = {node.expression}"
            for node in self.lets.values()
        ]
        lines += [
            f"  constrain {name}: {expression}{over_text(expression.plates)}"
            for name, expression in self.constraints.items()
        ]
        return "\n".join(lines)

    def _check_name(self, name: UserValue, kind: str) -> None:
        if not isinstance(name, str) or not name:
            raise ModelError(f"The name of a {kind} is {name!r}. Give a non-empty string first, e.g. m.plate('n').")
        groups = {
            "plate": self.plates,
            "input": self.inputs,
            "random variable": self.randoms,
            "let": self.lets,
            "constraint": self.constraints,
        }
        for taken, group in groups.items():
            if name in group:
                raise ModelError(
                    f"The name '{name}' of a {kind} is already the name of this model's {taken}. Choose another name."
                )

    def _in_order(self, plates: Iterable[Plate], declared: tuple[Plate, ...] = ()) -> tuple[Plate, ...]:
        """The declared plates of a variable first, then the others in the order in which the model declares them."""
        others = set(plates) - set(declared)
        return (*declared, *(plate for plate in self.plates.values() if plate in others))

    def _own_plates(self, owner: str, plates: UserValue) -> tuple[Plate, ...]:
        plates = (plates,) if isinstance(plates, (Plate, str)) or not isinstance(plates, Iterable) else tuple(plates)
        for plate in plates:
            self._check_plate(owner, plate)
        if len(set(plates)) != len(plates):
            raise ModelError(
                f"{owner} names a plate twice: ({', '.join(p.name for p in plates)}). Name each once; for pairs "
                "declare two plates."
            )
        return plates

    def _check_plate(self, owner: str, plate: UserValue) -> None:
        if not isinstance(plate, Plate):
            raise ModelError(f"{owner}: plates={plate!r} is not a plate. Give the object that m.plate(...) returned.")
        for source in plate.sources if isinstance(plate, Derived) else ():
            self._check_plate(owner, source)
        if isinstance(plate, (Derived, Rows)):
            self._adopt(plate)
        if self.plates.get(plate.name) is not plate:
            raise ModelError(
                f"{owner}: plate '{plate.name}' is not a plate of model \"{self.name}\". Declare it with this model's "
                "m.plate(...)."
            )

    def _adopt(self, plate: Plate) -> None:
        """Declares a plate that indexing made."""
        if plate.name not in self.plates:
            self._check_name(plate.name, "plate")
            self.plates[plate.name] = plate
            if plate.size is not None:
                self.sizes[plate.name] = (plate.size, "its declaration")

    def _own_domain(self, name: str, domain: UserValue) -> Domain:
        if not isinstance(domain, Domain):
            raise ModelError(
                f"Input '{name}': {domain!r} is not a domain. Use cv.real, cv.positive, cv.unit, cv.boolean, cv.count, "
                "cv.vector(d), "
                "cv.category(k), cv.simplex(k), cv.posdef(d), cv.matrix(rows, columns) or cv.index(plate)."
            )
        if domain.is_index or isinstance(domain.size, Plate):
            self._check_plate(f"Input '{name}'", domain.plate if domain.is_index else domain.size)
        elif domain.is_vector or domain.is_category or domain.is_simplex or domain.is_posdef:
            return dataclasses.replace(domain, size=_positive_integer(name, domain.size))
        elif domain.is_matrix:
            return dataclasses.replace(domain, size=tuple(_positive_integer(name, size) for size in domain.size))
        return domain

    def _check_own(self, owner: str, roots: Iterable[Expr], allowed: Expr | None = None) -> None:
        """Raises when a node below, other than `allowed`, belongs to another model."""
        for node in _unnamed_below(roots):
            if node is allowed:
                continue
            if isinstance(node, Unnamed):
                raise ModelError(
                    f"{owner}: the argument `{node.name}` in a chain or a tree is itself a term. Name its variable "
                    "first, v = m.random(name, term), and give v."
                )
            for plate in node.plates:
                self._check_plate(owner, plate)
            if isinstance(node, (Input, Random, Let)) and self._group(node).get(node.name) is not node:
                raise ModelError(
                    f"{owner} uses '{node.name}', which belongs to another model than \"{self.name}\". "
                    "Declare it in this model."
                )

    def _group(self, node: Input | Random | Let) -> Mapping[str, Expr]:
        return self.inputs if isinstance(node, Input) else self.randoms if isinstance(node, Random) else self.lets

    def _fix_sizes(self, owner: str, roots: Iterable[Expr]) -> None:
        """Notes the plate sizes that constant arrays and gates fix; nothing is noted when two of them disagree."""
        sizes = dict(self.sizes)
        for node in _unnamed_below(roots):
            for plate, size in _fixed_sizes(node):
                known, origin = sizes.setdefault(plate.name, (size, f"{node} in {owner[0].lower()}{owner[1:]}"))
                if known != size:
                    raise ModelError(
                        f"{owner}: {node} needs plate '{plate.name}' of size {size}, but {origin} makes it {known}. "
                        "Make them agree, or use two plates."
                    )
            if isinstance(node, Position) and (plate := node.domain.plate).size is None:
                least = least_size(node)
                self.least_sizes[plate.name] = max(
                    (least, f"[{node.written}] in {owner[0].lower()}{owner[1:]}"),
                    self.least_sizes.get(plate.name, (0, "")),
                    key=lambda found: found[0],
                )
        self.sizes = sizes


def check_graph(model: Model) -> tuple[Expr, ...]:
    """All nodes, each after its parents. ModelError naming the cycle when nodes edited by hand form one."""
    order: dict[Expr, None] = {}
    roots = (*model.inputs.values(), *model.randoms.values(), *model.lets.values(), *model.constraints.values())
    for root in roots:
        _visit(root, order)
    return tuple(order)


def _visit(root: Expr, order: dict[Expr, None]) -> None:
    """Depth-first, on a stack of its own so that long chains do not meet Python's recursion limit."""
    path: dict[Expr, Iterator[Expr]] = {}
    pending: Expr | None = None if root in order else root
    while pending is not None or path:
        if pending is not None:
            path[pending] = iter(parents(pending))
        node = next(reversed(path))
        pending = next((parent for parent in path[node] if parent not in order), None)
        if pending is None:
            order[node] = None
            del path[node]
        elif pending in path:
            raise ModelError(_cycle_text(list(path), pending))


def _cycle_text(path: list[Expr], start: Expr) -> str:
    position = next(i for i, node in enumerate(path) if node is start)
    names = [str(node) for node in path[position:]] + [str(start)]
    return (
        f"The definitions form a cycle: {' -> '.join(names)}. Each variable must be defined by earlier ones: "
        "rebuild the nodes with m.random and m.let."
    )


def _unnamed_below(roots: Iterable[Expr]) -> Iterator[Expr]:
    """The roots and the nodes below them, down to and including the first named ones."""
    seen: set[Expr] = set()
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        yield node
        if not isinstance(node, (Input, Random, Let)):
            stack.extend(parents(node))


def _fixed_sizes(node: Expr) -> Iterator[tuple[Plate, int]]:
    if isinstance(node, Constant):
        yield from zip(node.plates, node.value.shape, strict=False)
    elif isinstance(node, Gather) and isinstance(node.axis, Rows) and isinstance(node.index.domain.size, Plate):
        yield node.index.domain.size, node.axis.size or 0
    elif isinstance(node, Gather) and node.index.domain.is_boolean:
        yield node.axis, 2
    elif isinstance(node, Gather) and isinstance(node.index.domain.size, int):
        yield node.axis, node.index.domain.size


def _of_state(state: dict[str, Any]) -> Model:
    model = Model.__new__(Model)
    model.__setstate__(state)
    return model


def _given_nodes(term: UserValue) -> list[Expr]:
    if isinstance(term, Switch):
        return [*_nodes([term.selector]), *(node for case in term.terms for node in _given_nodes(case))]
    return _nodes(term.args.values()) if isinstance(term, Term) else []


def _nodes(values: Iterable[UserValue]) -> list[Expr]:
    return [value for value in values if isinstance(value, Expr)]


def _positive_integer(name: str, size: UserValue) -> int:
    try:
        whole = operator.index(size)
    except TypeError:
        whole = 0
    if whole < 1 or isinstance(size, bool):
        raise ModelError(
            f"The size of '{name}' is {size!r}, which is not a positive integer. Give one, or leave it out for data to "
            "fix."
        )
    return whole


def term_text(term: Term | Switch | Chain) -> str:
    """A term as its user would write it."""
    if isinstance(term, Chain):
        return f"{term_text(term.first)}, then {term_text(term.then)}"
    if isinstance(term, Switch):
        return f"switch({', '.join([str(term.selector), *map(term_text, term.terms)])})"
    return f"{term.factor.name}({', '.join(f'{name}={value}' for name, value in term.args.items())})"
