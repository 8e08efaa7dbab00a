"""Random small models over the whole documented vocabulary, each with predictions, named expressions and a focus.

The seed decides the structure. Every structure has a focus, in turn: one term in one role (prior, observed or
predicted) or one operation; so all of them are drawn, and a fault of one of them is met however rare it is.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from generator import ref
from small import Constraint, Given, Named, Small, Variable
from vocabulary import DEPENDENT, JOINT, ONLY_OBSERVED, OPERATIONS, SIMPLE, TERMS, N, focus_of


class Whole:
    """Draws one structure."""

    def __init__(self, seed: int) -> None:
        self.seed, self.rng, self.focus = seed, np.random.default_rng([13, seed]), focus_of(seed)
        self.sizes = {
            "n": int(self.rng.integers(2, 4)),
            "k": 2 if self.chance(0.8) or self.focus[2] in ("chain", "stack_over") else 3,
            "t": 3,
        }
        self.givens: list[Given] = []
        self.statements: list[Any] = []
        self.latent: list[Variable] = []
        self.wide = True  # whether arguments may have the plate n: of a latent variable they would multiply it
        self.left, self.states = int(self.rng.choice([1, 2, 2, 2, 3])), 16

    # choices ----------------------------------------------------------------------------------------------------------

    def chance(self, p: float) -> bool:
        return bool(self.rng.random() < p)

    def choose(self, options: Any) -> Any:
        options = list(options)
        return options[self.rng.integers(len(options))]

    def pick(self, weights: dict[str, float]) -> str:
        names, w = list(weights), np.asarray(list(weights.values()), float)
        return str(names[self.rng.choice(len(names), p=w / w.sum())])

    def is_focus(self, role: str, kind: str = "", name: str = "") -> bool:
        return self.focus[0] == role and kind in ("", self.focus[1]) and name in ("", self.focus[2])

    def feature(self, name: str, otherwise: float) -> bool:
        return self.is_focus("feature", "", name) or self.chance(otherwise)

    def given(self, kind: str, plates: tuple[str, ...] = (), to: str = "") -> Any:
        name = f"x{len(self.givens)}_{kind}"
        self.givens.append(Given(name, kind, plates, to))
        return ref(name)

    def some_plate(self, p: float) -> tuple[str, ...]:
        return ("n",) if self.chance(p) and self.wide else ()

    def of_kind(self, kind: str, plate: str | None = None) -> list[Variable]:
        return [v for v in self.latent if v.kind == kind and (plate is None or plate in v.plates)]

    # priors -----------------------------------------------------------------------------------------------------------

    def prior(self, kind: str, name: str = "", plate: str | None = None) -> Variable | None:
        """A latent variable of this kind, if the oracle can bear one more."""
        terms = [t for t in TERMS[kind] if t not in ONLY_OBSERVED]
        common = {"real": "gaussian", "positive": "gamma", "boolean": "bernoulli", "unit": "beta"}.get(kind)
        name = name or (common if common and self.chance(0.5) else self.choose(terms))
        plates = (plate,) if plate else ("k",) if self.chance(0.2) and kind in ("real", "positive", "boolean") else ()
        if name in ("chain", "tree"):
            plates = ("t",)
        if name == "gaussian_process":
            plates = ("n",)
        size = 3 if name == "discrete_uniform" else {"vector": 2, "posdef": 2}.get(kind, 0)
        arguments = dict(self.choose(TERMS[kind][name]))
        if kind == "simplex":
            size = len(arguments.get("concentration", arguments.get("mean"))[1])
        if kind == "category" and not size:
            size = 3 if name.startswith("ordered") else self.category_size()
        if kind == "boolean" and name == "chain" and self.sizes["k"] != 2:
            return None
        if not self.afford(kind, plates, size, name):
            plates = ()
            if name in JOINT or not self.afford(kind, plates, size, name):
                return None
        self.wide = name == "gaussian_process"
        variable = Variable(
            f"{kind[:3]}{len(self.statements)}", kind, self.term(kind, name, arguments, size), plates, size=size
        )
        self.wide = True
        self.statements.append(variable)
        self.latent.append(variable)
        return variable

    def category_size(self) -> int:
        simplices = self.of_kind("simplex")
        return simplices[0].size if simplices else self.sizes["k"]

    def afford(self, kind: str, plates: tuple[str, ...], size: int, name: str) -> bool:
        count = int(np.prod([self.sizes[p] for p in plates]))
        if kind in ("boolean", "category", "count"):
            values = {"boolean": 2, "category": size or 2, "count": 8}[kind]
            if values**count > self.states:
                return False
            self.states //= values**count
            return True
        each = {"vector": 2, "simplex": size - 1, "posdef": 3}.get(kind, 1) * count
        if each > (self.left if self.latent else 3):  # the first may have as many as the oracle bears
            return False
        if name == "spike_and_slab":
            self.states //= 2**count
        self.left -= each
        return True

    # terms ------------------------------------------------------------------------------------------------------------

    def term(self, kind: str, name: str, arguments: dict[str, Any], size: int = 0, depth: int = 1) -> Any:
        if name == "switch":
            return self.switch(kind, depth, nested=depth > 0 and self.is_focus("feature", "", "nested switch"))
        if name in ("chain", "tree"):
            return self.linked(kind, name)
        filled = {edge: self.argument(what, depth, size) for edge, what in arguments.items()}
        return (name, filled)

    def argument(self, what: Any, depth: int, size: int) -> Any:
        if what == "place":
            return self.given("real", ("n",))
        if isinstance(what, tuple) and what[0] == "neg":
            self.shared = self.expression("level", depth)
            return ("neg", self.shared)
        if what == "width":
            return self.shared
        if what == "count":
            return self.atom(what)
        return self.expression(what, depth, size) if isinstance(what, str) else what

    def switch(self, kind: str, depth: int, nested: bool) -> Any:
        selectors = [
            v for v in self.latent if v.kind in ("boolean", "category") and "k" not in v.plates and "t" not in v.plates
        ]
        if selectors:
            s = self.choose(selectors)
            selector, cases = ref(s.name), 2 if s.kind == "boolean" else s.size
        elif self.of_kind("real") and kind != "boolean" and self.chance(0.3):
            selector, cases = ("greater", ref(self.of_kind("real")[0].name), N(0.2)), 2
        else:
            selector, cases = self.given("boolean"), 2
        terms = []
        for i in range(cases):
            if nested and i == 0:
                terms.append(self.switch(kind, 0, False))
            else:
                one = self.choose(SIMPLE[kind])
                terms.append(self.term(kind, one, self.choose(TERMS[kind][one]), depth=0))
        return ("switch", selector, tuple(terms))

    def linked(self, kind: str, name: str) -> Any:
        if kind == "boolean":
            table = ("gather", self.given("unit", ("k",)), ref("previous"), "k")
            return ("chain", ("bernoulli", {"p": self.given("unit")}), ("bernoulli", {"p": table}))
        first = ("gaussian", {"mean": self.given("real"), "variance": self.given("positive")})
        spread = self.given("positive", ("t",) if name == "tree" else ())
        step = ("mul", self.given("real"), ref("previous")) if self.chance(0.5) else ref("previous")
        then = ("gaussian", {"mean": step, "variance": spread})
        return (name, first, then) if name == "chain" else (name, first, then, self.given("parent", ("t",), "t")[1])

    # expressions ------------------------------------------------------------------------------------------------------

    def expression(self, kind: str, depth: int, size: int = 0) -> Any:
        """An expression of this kind, of latent variables where there are any."""
        if kind in ("elements", "flags"):
            found = self.of_kind(DEPENDENT[kind], "k")
            if not found:
                return self.given(DEPENDENT[kind], ("k",))
            weighted = kind == "elements" and self.wide and self.chance(0.4)
            return ("mul", self.given("real", ("n", "k")), ref(found[0].name)) if weighted else ref(found[0].name)
        if kind == "level":
            return self.given("positive", self.some_plate(0.2))
        if kind == "shape":
            real = [v for v in self.of_kind("positive") if not v.plates]
            return ref(real[0].name) if real and self.chance(0.15) else N(float(self.choose([1.0, 2.0, 3.5])))
        if kind == "direction":
            return N(np.array([1.0, -0.7])) if self.chance(0.6) else self.given("vector", self.some_plate(1.0))
        if self.is_focus("argument", kind) and depth > 0 and not getattr(self, "done", False):
            self.done = True
            return self.operation(kind, self.focus[2], depth)
        base = {"real": 0.55, "positive": 0.55, "unit": 0.5, "boolean": 0.5, "simplex": 0.5}.get(kind, 0.7)
        possible = [o for o, needs in OPERATIONS.get(kind, {}).items() if self.feasible(needs)]
        if (
            depth > 0
            and possible
            and not self.chance(base)
            and not (kind == "simplex" and size not in (0, self.sizes["k"]))
        ):
            return self.operation(kind, self.choose(possible), depth)
        return self.atom(kind, size)

    def feasible(self, needs: tuple[Any, ...]) -> bool:
        kinds = [DEPENDENT.get(k, k) for k in needs if isinstance(k, str) and k not in ("k", "level", "direction")]
        wide = [k for k in needs if k in ("elements", "flags")]
        if needs == OPERATIONS["vector"]["stack_over"] and self.sizes["k"] != 2:
            return False
        if "vector" in needs and not self.of_kind("vector"):
            return False
        return (
            bool(kinds) and all(self.of_kind(DEPENDENT[w], "k") for w in wide) and any(self.of_kind(k) for k in kinds)
        )

    def operation(self, kind: str, name: str, depth: int) -> Any:
        if name == "scaled":
            return ("mul", self.given("real", self.some_plate(1.0)), self.expression("real", depth - 1))
        needs = OPERATIONS[kind][name]
        latent = [i for i, k in enumerate(needs) if isinstance(k, str) and self.of_kind(k)]
        certain = 0 if kind == "vector" else self.choose(latent) if latent else -1
        operands: list[Any] = []
        for i, k in enumerate(needs):
            if not isinstance(k, str) or k == "k":
                operands.append(k)
            elif i == certain and self.of_kind(k) and not (depth > 1 and self.chance(0.4)):
                operands.append(self.reach(self.choose(self.of_kind(k))))
            else:
                operands.append(self.expression(k, depth - 1))
        if len(operands) == 2 and needs[0] == needs[1] and str(operands[0]) == str(operands[1]):  # x - x, x > x
            operands[1] = (
                ("not", operands[0]) if kind == "boolean" and needs[0] == "boolean" else self.constant(needs[1], 0)
            )
        return (name, *operands)

    def atom(self, kind: str, size: int = 0) -> Any:
        found = [v for v in self.of_kind(kind) if not (kind in ("simplex", "category") and size and v.size != size)]
        if not found or (kind in ("real", "positive", "unit") and self.chance(0.06)):
            return self.constant(kind, size)
        return self.reach(self.choose(found))

    def constant(self, kind: str, size: int) -> Any:
        if kind in ("real", "positive", "unit"):
            return self.given(kind, self.some_plate(0.25))
        if kind == "vector":
            return self.given("vector")
        if kind == "posdef":
            return N(np.array([[1.0, 0.3], [0.3, 0.8]]))
        if kind == "simplex":
            p = self.rng.dirichlet(np.full(size or 3, 3.0)) * 0.9 + 0.1 / (size or 3)
            return N(p / p.sum())
        return self.given("boolean") if kind == "boolean" else {"count": N(4), "category": N(1)}[kind]

    def reach(self, v: Variable) -> Any:
        """The variable, or elements of it by an input or by a random category."""
        if "k" not in v.plates or not self.feature("gather", 0.6):
            return ref(v.name)
        selectors = [
            s
            for s in self.latent
            if (s.size or 2) == self.sizes["k"]
            and s.kind in ("boolean", "category")
            and s is not v
            and "k" not in s.plates
        ]
        if selectors and (self.is_focus("feature", "", "gate") or self.chance(0.6)):
            return ("gather", ref(v.name), ref(self.choose(selectors).name), "k")
        return ("gather", ref(v.name), self.given("index", self.some_plate(1.0), "k"), "k")

    # outcomes ---------------------------------------------------------------------------------------------------------

    def outcome(self, role: str) -> None:
        """An observed variable, or an unobserved one that nothing depends on."""
        kind, name = self.focus[1:] if self.is_focus(role) else ("", "")
        if not kind:
            kind = self.pick(
                {"real": 5, "positive": 1, "boolean": 2, "category": 1, "count": 2, "vector": 0.7, "unit": 0.3}
            )
            usual = {"real": "gaussian", "boolean": "bernoulli"}.get(kind)
            options = [t for t in TERMS[kind] if t not in JOINT]
            name = usual if usual and self.chance(0.5) else self.choose(options)
        size = 3 if name in ("ordered_probit", "ordered_logistic", "discrete_uniform") else 2 if kind == "vector" else 0
        arguments = dict(self.choose(TERMS[kind][name]))
        if kind == "category" and not size:
            size = self.category_size()
        if kind == "simplex":
            size = len(arguments.get("concentration", arguments.get("mean"))[1])
        if name == "multinomial":
            size = self.category_size()
        if name == "dirichlet_multinomial":
            size = 2
        term = self.term(kind, name, arguments, size, depth=2 if role == "observed" else 1)
        if role == "observed" and name == "gaussian" and self.feature("sharp", 0.08):
            term = (name, {"mean": term[1]["mean"], "variance": self.given("sharp")})
        plates = ("n",) if self.chance(0.7 if role == "observed" else 0.3) else ()
        self.statements.append(
            Variable(f"{role[:3]}{len(self.statements)}", kind, term, plates, observed=role == "observed", size=size)
        )

    def let(self) -> None:
        if self.is_focus("let") and not any(isinstance(s, Named) for s in self.statements):
            kind, e = self.focus[1], self.operation(*self.focus[1:], depth=2)
        else:
            kinds = [
                k
                for k in ("real", "real", "positive", "unit", "boolean")
                if any(map(self.feasible, OPERATIONS[k].values()))
            ]
            if not kinds:
                return
            kind = self.choose(kinds)
            e = self.operation(
                kind, self.choose([o for o, needs in OPERATIONS[kind].items() if self.feasible(needs)]), depth=2
            )
        size = (
            self.sizes["k"] + 1
            if kind == "category"
            else 2
            if kind == "vector"
            else self.sizes["k"]
            if kind == "simplex"
            else 0
        )
        self.statements.append(Named(f"let{len(self.statements)}", kind, e, size=size))

    def event(self) -> None:
        """A constraint, or an observed event."""
        possible = [o for o, needs in OPERATIONS["boolean"].items() if self.feasible(needs)]
        if not possible:
            return
        e = self.operation("boolean", self.choose(possible), depth=1)
        if not (self.is_focus("feature", "", "observed let") or (self.chance(0.4) and not self.is_focus("feature"))):
            self.statements.append(Constraint(e))
        else:
            self.statements.append(Named(f"event{len(self.statements)}", "boolean", e, observed=True))

    # the whole --------------------------------------------------------------------------------------------------------

    def structure(self) -> Small:
        self.focused_priors()
        for _ in range(int(self.rng.integers(1, 4)) - min(len(self.latent), 2)):
            self.prior(
                self.pick(
                    {
                        "real": 4,
                        "positive": 2,
                        "unit": 1,
                        "boolean": 1.5,
                        "category": 1,
                        "count": 0.6,
                        "vector": 0.7,
                        "simplex": 0.7,
                        "posdef": 0.2,
                    }
                )
            )
        if not self.latent:
            self.prior("real", "gaussian")
        self.outcome("observed")
        if self.chance(0.4):
            self.outcome("observed")
        if self.is_focus("feature", "", "constraint") or self.feature("observed let", 0.15):
            self.event()
        self.let()
        if self.chance(0.3):
            self.let()
        self.outcome("predicted")
        sizes = {name: size for name, size in self.sizes.items() if self._used(name)}
        return Small(self.seed, sizes, tuple(self.givens), tuple(self.statements))

    def focused_priors(self) -> None:
        """What the focus needs."""
        role, kind, name = self.focus
        if role == "prior":
            self.prior(kind, name)
        elif role in ("observed", "predicted"):
            if name == "switch":
                self.prior("boolean", "bernoulli")
            for what in self.choose(TERMS[kind][name]).values():
                if isinstance(what, str) and what in TERMS and not self.of_kind(what):
                    self.prior(what)
        elif role in ("let", "argument"):
            for what in OPERATIONS[kind][name]:
                wide = what in ("elements", "flags")
                if isinstance(what, str) and what != "k" and DEPENDENT.get(what, what) in TERMS and what != "level":
                    self.prior(
                        DEPENDENT.get(what, what),
                        plate="k" if wide else None,
                        name="" if not wide else {"elements": "gaussian", "flags": "bernoulli"}[what],
                    )
        elif name in ("gate", "gather"):
            self.prior("boolean" if self.sizes["k"] == 2 else "category")
            self.prior("real", "gaussian", plate="k")
        elif name == "nested switch":
            self.prior("boolean", "bernoulli")
            self.prior("boolean", "bernoulli")

    def _used(self, plate: str) -> bool:
        return any(plate in g.plates or plate == g.to for g in self.givens) or any(
            plate in getattr(s, "plates", ()) for s in self.statements
        )


def whole_model(seed: int) -> Small:
    """The structure of a seed."""
    return Whole(seed).structure()
