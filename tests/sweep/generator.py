"""Random small models: priors of every domain, factors, links, gates, plates, gathers, expressions, constraints."""

from __future__ import annotations

from typing import Any

import numpy as np
from small import Constraint, Given, Named, Small, Variable

CONTINUOUS, STATES = (2, 2, 3), (4, 8, 27)  # unconstrained coordinates and joint discrete states: at most one of these


def ref(name: str) -> tuple[str, str]:
    return ("ref", name)


def number(value: Any) -> tuple[str, Any]:
    return ("number", value)


class Maker:
    """Draws one structure. Every choice comes from `rng`, so the seed decides the structure."""

    def __init__(self, seed: int) -> None:
        self.seed, self.rng = seed, np.random.default_rng(seed)
        self.sizes = {"n": int(self.rng.integers(2, 5)), "k": int(self.rng.integers(2, 4)), "t": 3}
        self.givens: list[Given] = []
        self.statements: list[Any] = []
        self.kinds: dict[str, list[Variable]] = {k: [] for k in ("real", "positive", "unit", "boolean", "category")}
        self.vectors: list[Variable] = []
        self.simplices: list[Variable] = []
        self.left, self.states = int(self.rng.choice(CONTINUOUS)), int(self.rng.choice(STATES))

    def pick(self, options: dict[str, float]) -> str:
        names = list(options)
        weights = np.asarray(list(options.values()), float)
        return str(names[self.rng.choice(len(names), p=weights / weights.sum())])

    def chance(self, p: float) -> bool:
        return bool(self.rng.random() < p)

    def given(self, kind: str, plates: tuple[str, ...] = (), to: str = "") -> tuple[str, str]:
        name = f"{kind[:3]}{len(self.givens)}"
        self.givens.append(Given(name, kind, plates, to))
        return ref(name)

    def one_of(self, kind: str) -> Variable | None:
        found = self.kinds[kind]
        return found[self.rng.integers(len(found))] if found else None

    # priors -----------------------------------------------------------------------------------------------------------

    def prior(self, i: int) -> None:
        kind = self.pick(
            {
                "real": 6,
                "positive": 3,
                "unit": 1,
                "boolean": 2,
                "category": 1.5,
                "vector": 0.7,
                "simplex": 0.6,
                "chain": 1,
            }
        )
        name = f"{kind[0]}{i}"
        if kind == "chain":
            return self.chain(name)
        discrete = kind in ("boolean", "category")
        size = int(self.rng.integers(2, 4)) if kind == "simplex" else 2 if kind == "vector" else 0
        plates = (self.pick({"k": 2, "n": 1.5 if discrete else 0.4}),) if self.chance(0.3) else ()
        count = self.sizes[plates[0]] if plates else 1
        if discrete:
            classes = 2 if kind == "boolean" else self.sizes["k"]
            if classes**count > self.states:
                plates, count = (), 1
            if classes > self.states:
                return None
            self.states //= classes**count
            size = 0 if kind == "boolean" else classes
        else:
            each = {"vector": 2, "simplex": size - 1}.get(kind, 1)
            if each * count > self.left:
                plates, count = (), 1
            if each > self.left:
                return None
            self.left -= each * count
        variable = Variable(name, kind, self.prior_term(kind, size), plates, size=size)
        self.statements.append(variable)
        return {"vector": self.vectors, "simplex": self.simplices, **self.kinds}[kind].append(variable)

    def prior_term(self, kind: str, size: int) -> tuple[Any, ...]:
        if kind == "real":
            which = self.pick(
                {"gaussian": 7, "truncated_gaussian": 1, "student_t": 0.7, "laplace": 0.7, "uniform": 0.7}
            )
            if which == "gaussian":
                return self.gaussian(self.real(0) if self.chance(0.4) and self.kinds["real"] else self.given("real"))
            if which == "truncated_gaussian":
                low = number(-np.inf) if self.chance(0.3) else number(-0.5)
                high = number(np.inf) if self.chance(0.4) else number(1.5)
                return (
                    which,
                    {"mean": self.given("real"), "variance": self.given("positive"), "low": low, "high": high},
                )
            if which == "uniform":
                return (which, {"low": number(-2.0), "high": number(3.0)})
            dof = {"dof": number(float(self.rng.integers(4, 9)))} if which == "student_t" else {}
            return (which, {**dof, "mean": self.given("real"), "scale": self.given("positive")})
        if kind == "positive":
            which = self.pick({"gamma": 4, "log_normal": 1, "half_cauchy": 0.3})
            if which == "gamma":
                parent = self.one_of("positive")
                rate = ref(parent.name) if parent and not parent.plates and self.chance(0.3) else self.given("positive")
                return (which, {"shape": number(float(self.rng.choice([1.0, 2.0, 3.5, 8.0]))), "rate": rate})
            if which == "log_normal":
                mean = self.real(0) if self.chance(0.3) and self.kinds["real"] else self.given("real")
                return (which, {"mean": mean, "variance": self.given("positive")})
            return (which, {"scale": self.given("positive")})
        if kind == "unit":
            return (
                "beta",
                {"a": number(float(self.rng.choice([1.0, 2.0, 4.0]))), "b": number(float(self.rng.choice([1.0, 3.0])))},
            )
        if kind == "boolean":
            return ("bernoulli", {"p": self.unit(0)})
        if kind == "category":
            simplices = [s for s in self.simplices if s.size == size and not s.plates]
            p = ref(simplices[0].name) if simplices and self.chance(0.7) else number(self.simplex(size))
            return ("categorical", {"p": p})
        if kind == "simplex":
            return ("dirichlet", {"concentration": number(np.round(self.rng.uniform(0.8, 4.0, size), 2))})
        c = 0.6 if self.chance(0.5) else 0.0
        return ("vector_gaussian", {"mean": number(np.zeros(2)), "covariance": number(np.array([[1.5, c], [c, 1.0]]))})

    def simplex(self, size: int) -> np.ndarray:
        p = self.rng.dirichlet(np.full(size, 3.0)) * 0.9 + 0.1 / size
        return p / p.sum()

    def chain(self, name: str) -> None:
        if self.chance(0.5) and self.left >= 3:
            step = ("mul", self.given("real"), ref("previous")) if self.chance(0.4) else ref("previous")
            drift = [v for v in self.kinds["real"] if not v.plates]
            if drift and self.chance(0.3):
                step = ("add", step, ref(drift[0].name))
            term = ("chain", self.gaussian(self.given("real"), False), self.gaussian(step, self.chance(0.3)))
            self.left -= 3
            variable = Variable(name, "real", term, ("t",))
            self.kinds["real"].append(variable)
        elif self.states >= 8 and self.sizes["k"] == 2:
            table = ("gather", self.given("unit", ("k",)), ref("previous"), "k")
            term = ("chain", ("bernoulli", {"p": self.given("unit")}), ("bernoulli", {"p": table}))
            self.states //= 8
            variable = Variable(name, "boolean", term, ("t",))
            self.kinds["boolean"].append(variable)
        else:
            return
        self.statements.append(variable)

    # expressions ------------------------------------------------------------------------------------------------------

    def gaussian(self, mean: Any, random: bool = True) -> tuple[Any, ...]:
        parent = self.one_of("positive")
        if random and parent and self.chance(0.6):
            scale = self.reach(parent)
            edge = self.pick({"precision": 3, "variance": 1, "sd": 0.5})
            return ("gaussian", {"mean": mean, edge: scale})
        return ("gaussian", {"mean": mean, "variance": self.given("positive")})

    def reach(self, variable: Variable) -> Any:
        """The variable, or one element of it: by an input, or by a random category."""
        e = ref(variable.name)
        if "k" not in variable.plates or self.chance(0.2):
            return e
        category = [v for v in self.kinds["category"] if v.size == self.sizes["k"]]
        boolean = self.kinds["boolean"] if self.sizes["k"] == 2 else []
        if (category or boolean) and self.chance(0.7):
            options = [*category, *boolean]
            return ("gather", e, ref(options[self.rng.integers(len(options))].name), "k")
        return ("gather", e, self.given("index", ("n",), "k"), "k")

    def real(self, depth: int = 2) -> Any:
        """A real expression of latent variables where there are any."""
        base = self.one_of("real")
        if base is None:
            if self.vectors:
                return ("dot", ref(self.vectors[0].name), number(np.array([1.0, -0.7])))
            if self.kinds["positive"] and self.chance(0.7):
                return ("log", self.reach(self.kinds["positive"][0]))
            return self.given("real")
        atom = self.reach(base)
        if depth <= 0:
            return atom
        how = self.pick(
            {
                "atom": 4,
                "scale": 2,
                "add": 3,
                "subtract": 1,
                "multiply": 0.7,
                "square": 0.3,
                "max": 0.3,
                "exp": 0.2,
                "dot": 1,
            }
        )
        if how == "scale":
            return ("mul", self.given("real", ("n",)), atom)
        if how in ("add", "subtract", "multiply", "max"):
            other = self.real(depth - 1) if self.chance(0.7) else self.given("real", ("n",) if self.chance(0.5) else ())
            if other == atom and how == "subtract":
                return atom
            return ({"add": "add", "subtract": "sub", "multiply": "mul", "max": "max"}[how], atom, other)
        if how == "square":
            return ("square", atom)
        if how == "exp":
            return ("exp", atom)
        if how == "dot" and self.vectors:
            return ("add", ("dot", ref(self.vectors[0].name), number(np.array([1.0, -0.7]))), atom)
        return atom

    def positive(self, depth: int = 1) -> Any:
        variable = self.one_of("positive")
        real = bool(self.kinds["real"] or self.vectors)
        how = self.pick(
            {
                "variable": 4 if variable else 0,
                "exp": 2 if real else 0,
                "product": 0.6 if variable else 0,
                "given": 0.3 if depth or variable or real else 1,
            }
        )
        if how == "variable" and variable:
            return self.reach(variable)
        if how == "product" and variable:
            return ("mul", self.given("positive", ("n",)), self.reach(variable))
        return ("exp", self.real(depth)) if how == "exp" else self.given("positive")

    def unit(self, depth: int = 1) -> Any:
        variable, boolean = self.one_of("unit"), self.one_of("boolean")
        how = self.pick(
            {
                "variable": 3 if variable else 0,
                "link": 2 if self.kinds["real"] else 0,
                "table": 2 if boolean and self.sizes["k"] == 2 else 0,
                "given": 0.3,
            }
        )
        if how == "variable" and variable:
            return self.reach(variable)
        if how == "link":
            return (self.pick({"logistic": 1, "probit": 1}), self.real(depth))
        if how == "table" and boolean:
            return ("gather", self.given("unit", ("k",)), ref(boolean.name), "k")
        return self.given("unit")

    def boolean(self, depth: int = 1) -> Any:
        b = self.kinds["boolean"]
        options: dict[str, float] = {
            "logic": 3 if len(b) > 1 else 0,
            "not": 1 if b else 0,
            "greater": 2 if self.kinds["real"] else 0,
        }
        options["equal"] = 1 if self.kinds["category"] else 0
        if not sum(options.values()):
            return None
        how = self.pick(options)
        if how == "logic":
            i, j = self.rng.choice(len(b), 2, replace=False)
            return (self.pick({"and": 1, "or": 1, "xor": 1}), ref(b[i].name), ref(b[j].name))
        if how == "not":
            return ("not", ref(b[self.rng.integers(len(b))].name))
        if how == "equal":
            return ("equal", ref(self.kinds["category"][0].name), number(1))
        return ("greater", self.real(depth), self.given("real"))

    # observations -----------------------------------------------------------------------------------------------------

    def observation(self, i: int) -> None:
        name, kind = f"y{i}", "real"
        selector = self.one_of("boolean") or self.one_of("category")
        which = self.pick(
            {
                "gaussian": 6, "switch": 2.5 if selector else 0, "bernoulli": 3, "poisson": 1.5, "binomial": 1,
                "negative_binomial": 0.5, "student_t": 0.7, "laplace": 0.6,
                "gamma": 0.7 if self.kinds["positive"] else 0,
                "log_normal": 0.4, "ordered_probit": 0.5, "ordered_logistic": 0.4, "categorical": 0.8, "between": 0.3,
            }
        )  # fmt: skip
        size = 0
        if which == "gaussian":
            term = self.gaussian(self.real())
        elif which == "switch" and selector is not None:
            cases = 2 if selector.kind == "boolean" else selector.size
            one = [self.gaussian(self.real(1) if self.chance(0.7) else self.given("real"), False) for _ in range(cases)]
            if self.chance(0.2):
                one[0] = ("student_t", {"dof": number(5.0), "mean": self.real(0), "scale": self.given("positive")})
            term = ("switch", ref(selector.name), tuple(one))
        elif which == "bernoulli":
            kind, term = "boolean", (which, {"p": self.unit(2)})
        elif which == "poisson":
            kind, term = "count", (which, {"rate": self.positive()})
        elif which == "binomial":
            kind, term = "count", (which, {"n": number(5), "p": self.unit(2)})
        elif which == "negative_binomial":
            kind, term = "count", (which, {"mean": ("exp", self.real(1)), "dispersion": self.given("positive")})
        elif which == "student_t":
            term = (which, {"dof": number(4.0), "mean": self.real(), "scale": self.given("positive")})
        elif which == "laplace":
            term = (which, {"mean": self.real(), "scale": self.given("positive")})
        elif which == "gamma":
            kind, term = "positive", (which, {"shape": number(2.0), "rate": self.positive(0)})
        elif which == "log_normal":
            kind, term = "positive", (which, {"mean": self.real(), "variance": self.given("positive")})
        elif which.startswith("ordered"):
            kind, size = "category", 3
            term = (which, {"score": self.real(1), "cutpoints": number(np.array([-0.6, 0.8]))})
        elif which == "categorical":
            kind, term, size = self.category_outcome()
        else:
            kind = "boolean"
            low = number(-np.inf) if self.chance(0.3) else number(-0.7)
            term = (which, {"value": self.real(1), "low": low, "high": number(0.9)})
        plates = ("n",) if self.chance(0.75) else ()
        self.statements.append(Variable(name, kind, term, plates, observed=True, size=size))

    def category_outcome(self) -> tuple[str, tuple[Any, ...], int]:
        if self.simplices and self.chance(0.6):
            s = self.simplices[0]
            return "category", ("categorical", {"p": ref(s.name)}), s.size
        wide = [v for v in self.kinds["real"] if v.plates == ("k",)]
        if wide:
            score = ref(wide[0].name)
            score = ("mul", self.given("real", ("n",)), score) if self.chance(0.5) else score
            return "category", ("categorical", {"p": ("softmax", score, "k")}), self.sizes["k"]
        return "boolean", ("bernoulli", {"p": self.unit(1)}), 0

    def structure(self) -> Small:
        for i in range(int(self.rng.integers(1, 5))):
            self.prior(i)
        if not self.statements:
            self.statements.append(Variable("r9", "real", self.gaussian(self.given("real")), ()))
            self.kinds["real"].append(self.statements[-1])
        for i in range(int(self.rng.integers(1, 4))):
            self.observation(i)
        if self.chance(0.35) and (e := self.boolean()) is not None:
            how = self.pick({"constrain": 2, "observed": 2, "named": 1})
            self.statements.append(
                Constraint(e) if how == "constrain" else Named("event", "boolean", e, observed=how == "observed")
            )
        elif self.chance(0.15) and self.kinds["real"]:
            self.statements.append(Named("level", "real", self.real(1)))
        sizes = {name: size for name, size in self.sizes.items() if self._used(name)}
        return Small(self.seed, sizes, tuple(self.givens), tuple(self.statements))

    def _used(self, plate: str) -> bool:
        return any(plate in g.plates or plate == g.to for g in self.givens) or any(
            plate in getattr(s, "plates", ()) for s in self.statements
        )


def small_model(seed: int) -> Small:
    """The structure of a seed."""
    return Maker(seed).structure()


def draw_givens(small: Small, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Values of the inputs, shaped by their plates."""
    found = {}
    for g in small.givens:
        shape = tuple(small.sizes[p] for p in g.plates)
        draw = {
            "real": lambda shape=shape: rng.normal(0.0, 1.2, shape),
            "positive": lambda shape=shape: np.exp(rng.uniform(-1.5, 1.2, shape)),
            "unit": lambda shape=shape: rng.uniform(0.05, 0.95, shape),
            "index": lambda g=g, shape=shape: rng.integers(small.sizes[g.to], size=shape),
        }[g.kind]
        found[g.name] = np.asarray(draw())
    return found
