"""Every verb with wrong arguments: of models, expressions, infer, programs, posteriors and streams."""

from __future__ import annotations

import functools

import numpy as np
from misuse_judge import Case

import cavity as cv

NANS, INFINITE, ASYMMETRIC = np.full((2, 2), np.nan), np.diag([1.0, np.inf]), [[1.0, 0.5], [0.0, 1.0]]
PAIR, KERNEL = np.zeros(2), cv.kernels.squared_exponential(1.0)
ODD = {"None": None, "text": "a", "number": 3, "fraction": 0.5, "list": [1], "object": object(), "nan": float("nan")}


def coin():
    """A model of a few numbers, whose inference is exact."""
    m = cv.Model("coin")
    n = m.plate("n")
    x = m.input("x", cv.real, plates=n)
    p = m.random("p", cv.beta(1.0, 1.0))
    a = m.random("a", cv.gaussian(0.0, variance=1.0))
    m.let("level", a * x)
    m.random("y", cv.gaussian(a * x, variance=1.0))
    m.random("z", cv.bernoulli(p), plates=n)
    return m


DATA = {"x": [1.0, 2.0], "y": [0.5, 1.5], "z": [True, False]}


@functools.cache
def posterior():
    return cv.infer(coin(), DATA)


@functools.cache
def program():
    made = cv.compile(coin(), ["y", "z"])
    made(DATA)
    return made


def of_models():
    """Declarations."""

    def model(use):
        def call():
            m = cv.Model()
            n = m.plate("n", 2)
            return use(m, n, m.random("a", cv.gaussian(0.0, variance=1.0), plates=n), m.random("b", cv.bernoulli(0.5)))

        return call

    normal, other = cv.gaussian(0.0, variance=1.0), cv.Model()
    foreign, strange = other.plate("n", 2), other.random("s", normal)
    for name, odd in ODD.items():
        uses = {
            "plate name": lambda m, n, a, b, odd=odd: m.plate(odd),
            "plate size": lambda m, n, a, b, odd=odd: m.plate("k", odd),
            "input name": lambda m, n, a, b, odd=odd: m.input(odd, cv.real),
            "input domain": lambda m, n, a, b, odd=odd: m.input("x", odd),
            "input plates": lambda m, n, a, b, odd=odd: m.input("x", cv.real, plates=odd),
            "random name": lambda m, n, a, b, odd=odd: m.random(odd, normal),
            "random term": lambda m, n, a, b, odd=odd: m.random("x", odd),
            "random plates": lambda m, n, a, b, odd=odd: m.random("x", normal, plates=odd),
            "let name": lambda m, n, a, b, odd=odd: m.let(odd, a),
            "let expression": lambda m, n, a, b, odd=odd: m.let("x", odd),
            "constrain": lambda m, n, a, b, odd=odd: m.constrain(odd),
            "constraint name": lambda m, n, a, b, odd=odd: m.constrain(a > 0, name=odd),
            "chain over": lambda m, n, a, b, odd=odd: m.chain("x", over=odd, first=normal, then=lambda x: normal),
            "chain first": lambda m, n, a, b, odd=odd: m.chain("x", over=n, first=odd, then=lambda x: normal),
            "chain then": lambda m, n, a, b, odd=odd: m.chain("x", over=n, first=normal, then=odd),
            "chain then gives": lambda m, n, a, b, odd=odd: m.chain("x", over=n, first=normal, then=lambda x: odd),
            "tree parent": lambda m, n, a, b, odd=odd: m.tree(
                "x", over=n, parent=odd, root=normal, then=lambda x: normal
            ),
            "vector size": lambda m, n, a, b, odd=odd: m.input("x", cv.vector(odd)),
            "category size": lambda m, n, a, b, odd=odd: m.input("x", cv.category(odd)),
            "matrix rows": lambda m, n, a, b, odd=odd: m.input("x", cv.matrix(odd, 2)),
            "index plate": lambda m, n, a, b, odd=odd: m.input("x", cv.index(odd)),
            "indexed by": lambda m, n, a, b, odd=odd: a[odd],
            "added": lambda m, n, a, b, odd=odd: m.let("x", a + odd),
            "power": lambda m, n, a, b, odd=odd: a**odd,
            "divided": lambda m, n, a, b, odd=odd: m.let("x", a / odd),
            "compared": lambda m, n, a, b, odd=odd: m.let("x", a > odd),
            "matrix product": lambda m, n, a, b, odd=odd: a @ odd,
            "and": lambda m, n, a, b, odd=odd: b & odd,
            "switch selector": lambda m, n, a, b, odd=odd: m.random("x", cv.switch(odd, normal, normal)),
            "switch case": lambda m, n, a, b, odd=odd: m.random("x", cv.switch(b, normal, odd)),
            "exp": lambda m, n, a, b, odd=odd: cv.exp(odd),
            "log": lambda m, n, a, b, odd=odd: cv.log(odd),
            "logistic": lambda m, n, a, b, odd=odd: cv.logistic(odd),
            "dot": lambda m, n, a, b, odd=odd: cv.dot(odd, odd),
            "max": lambda m, n, a, b, odd=odd: cv.max(odd, odd),
            "sum over": lambda m, n, a, b, odd=odd: cv.sum(a, over=odd),
            "softmax over": lambda m, n, a, b, odd=odd: cv.softmax(a, over=odd),
            "stack": lambda m, n, a, b, odd=odd: cv.stack(odd),
            "element": lambda m, n, a, b, odd=odd: cv.element(a, odd),
            "subvector": lambda m, n, a, b, odd=odd: cv.subvector(_vector(m), odd, 1),
            "element of": lambda m, n, a, b, odd=odd: cv.element(_vector(m), odd),
            "user factor": lambda m, n, a, b, odd=odd: cv.factor("f", out=odd, log_density=lambda out: -out),
            "user density": lambda m, n, a, b, odd=odd: cv.factor("f", out=cv.real, log_density=odd),
            "user name": lambda m, n, a, b, odd=odd: cv.factor(odd, out=cv.real, log_density=lambda out: -out),
            "kernel": lambda m, n, a, b, odd=odd: m.random("x", cv.gaussian_process(odd, KERNEL)),
            "process": lambda m, n, a, b, odd=odd: m.random("x", cv.gaussian_process(_points(m, n), odd)),
            "model name": lambda m, n, a, b, odd=odd: repr(cv.Model(odd)),
        }
        for what, use in uses.items():
            yield Case(f"model: {what} {name}", model(use), functools.partial(_legal_use, what, name))
    uses = {
        "a name twice": lambda m, n, a, b: m.random("a", normal),
        "plate of another model": lambda m, n, a, b: m.random("x", normal, plates=foreign),
        "variable of another model": lambda m, n, a, b: m.random("x", cv.gaussian(strange, variance=1.0)),
        "a plate twice": lambda m, n, a, b: m.random("x", normal, plates=(n, n)),
        "a number of cases": lambda m, n, a, b: m.random("x", cv.switch(b, normal)),
        "cases of two domains": lambda m, n, a, b: m.random("x", cv.switch(b, normal, cv.poisson(1.0))),
        "truth value": lambda m, n, a, b: m.constrain((a > 0) and (a < 1)),
        "chained comparison": lambda m, n, a, b: m.constrain(0 < a < 1),
        "if": lambda m, n, a, b: 1 if b else 2,
        "iteration": lambda m, n, a, b: list(a),
        "length": lambda m, n, a, b: len(a),
        "in": lambda m, n, a, b: a in [b, a],
        "a model as a context": lambda m, n, a, b: _entered(m),
        "a variable of a model": lambda m, n, a, b: m["a"],
        "shifted": lambda m, n, a, b: a << 1,
        "assigned": lambda m, n, a, b: a.__setitem__(0, 1.0),
        "written as a number": lambda m, n, a, b: f"{a:.3f}",
        "boolean as number": lambda m, n, a, b: a + b,
        "real as boolean": lambda m, n, a, b: a & b,
        "log of real": lambda m, n, a, b: cv.log(a),
        "variance of real": lambda m, n, a, b: m.random("x", cv.gaussian(0.0, variance=a)),
        "probability of real": lambda m, n, a, b: m.random("x", cv.bernoulli(a)),
        "two scales": lambda m, n, a, b: m.random("x", cv.gaussian(0.0, variance=1.0, sd=1.0)),
        "no scale": lambda m, n, a, b: m.random("x", cv.gaussian(0.0)),
        "constraint of data": lambda m, n, a, b: m.constrain(m.input("q", cv.real) > 0),
        "constraint of a number": lambda m, n, a, b: m.constrain(a + 1.0),
        "cancelled": lambda m, n, a, b: m.constrain(a > a),
        "divided by zero": lambda m, n, a, b: a / 0.0,
        "divided by zeros": lambda m, n, a, b: a / np.array([1.0, 0.0]),
        "wrong length": lambda m, n, a, b: m.let("x", a + np.ones(3)),
        "nan in an expression": lambda m, n, a, b: a + np.nan,
        "infinite expression": lambda m, n, a, b: a + np.inf,
        "infinite factor": lambda m, n, a, b: a * np.inf,
        "infinite factors": lambda m, n, a, b: a * np.array([1.0, np.inf]),
        "complex factor": lambda m, n, a, b: a * 1j,
        "array of text": lambda m, n, a, b: a * np.array(["a", "b"]),
        "unknown keyword": lambda m, n, a, b: m.random("x", cv.gaussian(0.0, var=1.0)),
        "one term as two arguments": lambda m, n, a, b: [m.random(v, cv.gaussian(normal, variance=1.0)) for v in "xz"],
        "two sizes": lambda m, n, a, b: m.random("x", cv.gaussian(np.zeros(3), variance=1.0), plates=n),
        "mean and covariance": lambda m, n, a, b: m.random("x", cv.vector_gaussian(np.zeros(3), covariance=np.eye(2))),
        "class that is none": lambda m, n, a, b: m.random("c", cv.categorical([0.5, 0.5])) == 5,
        "matrix of nan": lambda m, n, a, b: m.random("x", cv.vector_gaussian(PAIR, covariance=NANS)),
        "infinite matrix": lambda m, n, a, b: m.random("x", cv.vector_gaussian(PAIR, covariance=INFINITE)),
        "asymmetric matrix": lambda m, n, a, b: m.random("x", cv.vector_gaussian(PAIR, precision=ASYMMETRIC)),
        "indefinite rate": lambda m, n, a, b: m.random("x", cv.wishart(3.0, rate=[[1.0, 2.0], [2.0, 1.0]])),
        "singular scale": lambda m, n, a, b: m.random("x", cv.wishart(3.0, scale=np.ones((2, 2)))),
    }  # fmt: skip
    for what, use in uses.items():
        yield Case(f"model: {what}", model(use))


def _entered(m):
    with m:
        pass


def _vector(m):
    return m.random("v", cv.vector_gaussian(np.zeros(3), covariance=np.eye(3)))


def _points(m, n):
    return m.input("points", cv.real, plates=n)


FINE = {
    ("plate size", "None"), ("plate size", "number"), ("vector size", "number"), ("category size", "number"),
    ("matrix rows", "number"), ("plate name", "text"), ("input name", "text"), ("random name", "text"),
    ("let name", "text"), ("constraint name", "text"), ("constraint name", "None"), ("added", "number"),
    ("added", "fraction"), ("power", "number"), ("divided", "number"), ("divided", "fraction"), ("compared", "number"),
    ("compared", "fraction"), ("subvector", "number"), ("element of", "number"), ("user name", "text"),
    ("model name", "text"),
}  # fmt: skip


def _legal_use(what, name, found):
    return (what, name) in FINE - {("subvector", "number"), ("element of", "number")}


def of_inference():
    """Arguments of infer, compile, explain and log_density."""
    for name, odd in ODD.items():
        for option in (
            "method", "sizes", "seed", "tolerance", "max_iterations", "restarts", "acceleration", "accuracy", "prior",
            "integrate",
        ):  # fmt: skip
            fine = (option, name) in {
                ("sizes", "None"), ("prior", "None"), ("seed", "number"), ("max_iterations", "number"),
                ("restarts", "None"), ("restarts", "number"), ("acceleration", "number"), ("tolerance", "number"),
                ("tolerance", "fraction"), ("integrate", "None"), ("integrate", "text"), ("progress", "None"),
            }  # fmt: skip
            if not fine:
                yield Case(f"infer {option}={name}", lambda o=option, odd=odd: cv.infer(coin(), DATA, **{o: odd}))
        yield Case(f"infer model {name}", lambda odd=odd: cv.infer(odd, DATA))
        yield Case(f"infer data {name}", lambda odd=odd: cv.infer(coin(), odd))
        yield Case(f"infer trace_evidence {name}", lambda odd=odd: cv.infer(coin(), DATA, trace_evidence=odd))
        if name != "None":
            yield Case(f"infer progress {name}", lambda odd=odd: cv.infer(coin(), DATA, progress=odd))
        yield Case(f"compile model {name}", lambda odd=odd: cv.compile(odd, ["y"]))
        yield Case(f"compile observed {name}", lambda odd=odd: cv.compile(coin(), odd))
        yield Case(
            f"compile sizes {name}", lambda odd=odd: cv.compile(coin(), ["y"], sizes=odd), lambda p, n=name: n == "None"
        )
        yield Case(f"compile method {name}", lambda odd=odd: cv.compile(coin(), ["y"], method=odd))
        yield Case(f"explain model {name}", lambda odd=odd: cv.explain(odd, DATA))
        yield Case(f"explain data {name}", lambda odd=odd: cv.explain(coin(), odd), lambda p, n=name: n == "None")
        yield Case(f"explain method {name}", lambda odd=odd: cv.explain(coin(), DATA, method=odd))
        yield Case(f"log_density model {name}", lambda odd=odd: cv.log_density(odd, DATA))
        yield Case(f"log_density data {name}", lambda odd=odd: cv.log_density(coin(), odd))
        yield Case(f"size of a plate {name}", lambda odd=odd: cv.infer(coin(), {}, sizes={"n": odd}))
        yield Case(f"power {name}", lambda odd=odd: cv.power(odd), lambda p, n=name: n in ("fraction", "number"))
        yield Case(
            f"ncvmp bound {name}",
            lambda odd=odd: cv.infer(coin(), DATA, method=cv.ncvmp(bound=odd)),
            lambda p, n=name: n == "None",
        )
        yield Case(f"method of y {name}", lambda odd=odd: cv.infer(coin(), DATA, method={"y": odd}))
        yield Case(
            f"data for {name}",
            lambda odd=odd: cv.infer(coin(), {**DATA, "aa" if odd == "a" else (1,) if odd == [1] else odd: 1.0}),
        )
    bad = {
        "seed negative": {"seed": -1}, "seed true": {"seed": True}, "seed huge": {"seed": 2**64},
        "tolerance zero": {"tolerance": 0.0}, "tolerance negative": {"tolerance": -1.0},
        "tolerance infinite": {"tolerance": np.inf}, "tolerance true": {"tolerance": True},
        "iterations zero": {"max_iterations": 0}, "iterations huge": {"max_iterations": 10**15},
        "restarts huge": {"restarts": 10**15}, "iterations true": {"max_iterations": True},
        "restarts zero": {"restarts": 0}, "acceleration negative": {"acceleration": -1},
        "an unknown option": {"iterations": 3}, "method of nobody": {"method": {"nobody": "ep"}},
        "method unknown": {"method": "gibbs"}, "method capital": {"method": "EP"},
        "accuracy unknown": {"accuracy": "high"},
        "integrate nobody": {"integrate": ["nobody"]}, "integrate data": {"integrate": ["y"]},
        "integrate four": {"integrate": ["a", "p", "a", "p"]}, "integrate twice": {"integrate": ["a", "a"]},
        "size of nobody": {"sizes": {"k": 3}}, "another size": {"sizes": {"n": 3}},
        "prior of nobody": {"prior": {"nobody": 1}},
        "prior number": {"prior": {"a": 1.0}}, "prior of data": {"prior": {"y": None}},
    }  # fmt: skip
    for name, options in bad.items():
        yield Case(f"infer: {name}", lambda options=options: cv.infer(coin(), DATA, **options))
    data = {
        "input absent": {"y": [1.0, 2.0]}, "unknown name": {**DATA, "w": 1.0}, "near name": {**DATA, "X": 1.0},
        "two lengths": {**DATA, "y": [1.0]}, "a plate": {**DATA, "n": 2}, "half a boolean": {**DATA, "z": [0.5, 1.0]},
        "an infinite row": {**DATA, "y": [np.inf, 0.0]}, "contradicting lets": {**DATA, "a": 1.0, "level": [5.0, 5.0]},
        "a cancelling row": {"x": [0.0, 1.0], "level": [1.0, 1.0]}, "nobody": {1: 2.0},
    }  # fmt: skip
    for name, given in data.items():
        yield Case(f"data: {name}", lambda given=given: cv.infer(coin(), given))


def of_posteriors():
    """Arguments of programs and posteriors."""
    for name, odd in ODD.items():
        yield Case(f"program data {name}", lambda odd=odd: program()(odd))
        yield Case(f"program seed {name}", lambda odd=odd: program()(DATA, seed=odd), lambda p, n=name: n == "number")
        yield Case(f"batch {name}", lambda odd=odd: program().batch(odd))
        yield Case(f"batch of {name}", lambda odd=odd: program().batch([odd]))
        yield Case(
            f"batch seed {name}", lambda odd=odd: program().batch([DATA], seed=odd), lambda p, n=name: n == "number"
        )
        yield Case(f"predict {name}", lambda odd=odd: posterior().predict(odd))
        yield Case(f"predict x {name}", lambda odd=odd: posterior().predict({"x": odd}), lambda p, n=name: n == "list")
        yield Case(
            f"predict sizes {name}",
            lambda odd=odd: posterior().predict({"x": [1.0]}, sizes=odd),
            lambda p, n=name: n == "None",
        )
        yield Case(
            f"posterior[{name}]", lambda odd=odd: posterior()["aa" if odd == "a" else (1,) if odd == [1] else odd]
        )
        yield Case(
            f"quantile {name}",
            lambda odd=odd: posterior()["a"].quantile(odd),
            _median if name in ("fraction", "list") else None,
        )
        yield Case(
            f"interval {name}",
            lambda odd=odd: posterior()["a"].interval(odd),
            _quartiles if name == "fraction" else None,
        )
        yield Case(
            f"sample key {name}", lambda odd=odd: posterior()["a"].sample(odd, ()), lambda p, n=name: n == "number"
        )
        yield Case(
            f"sample shape {name}",
            lambda odd=odd: posterior()["a"].sample(0, odd),
            lambda p, n=name: np.shape(p) == {"number": (3,), "list": (1,)}.get(n),
        )
        yield Case(
            f"density {name}",
            lambda odd=odd: posterior()["a"].log_density(odd),
            functools.partial(_density, odd),
        )
        yield Case(f"save {name}", lambda odd=odd: posterior().save(odd if odd != "a" else "/nowhere/a"))
        yield Case(f"load {name}", lambda odd=odd: cv.load(odd if odd != "a" else "/nowhere/a"))
        yield Case(f"added {name}", lambda odd=odd: posterior() + odd)
        yield Case(f"taken away {name}", lambda odd=odd: posterior() - odd)
    more = {
        "quantile 1.5": lambda: posterior()["a"].quantile(1.5),
        "quantile -1": lambda: posterior()["a"].quantile(-0.1),
        "interval 1.5": lambda: posterior()["a"].interval(1.5),
        "interval 0": lambda: posterior()["a"].interval(0.0),
        "interval -1": lambda: posterior()["a"].interval(-0.5),
        "nobody": lambda: posterior()["nobody"],
        "draws huge": lambda: cv.sample(coin(), DATA, draws=10**15, progress=False),
        "sampler's progress": lambda: cv.sample(coin(), DATA, draws=2, warmup=1, chains=1, progress="x"),
        "no program": lambda: cv.learn("program", DATA, ["x"]),
        "a name too long": lambda: posterior().save("a" * 300),
        "no folder": lambda: posterior().save("/nowhere/at/all"),
        "a zero in a path": lambda: cv.load("\0"),
        "near": lambda: posterior()["A"],
        "an attribute": lambda: posterior()["a"].covariance_of,
        "predict unknown": lambda: posterior().predict({"w": [1.0]}),
        "predict observed": lambda: posterior().predict({"y": [1.0]}),
        "predict nan": lambda: posterior().predict({"x": [np.nan]}),
        "predict shape": lambda: posterior().predict({"x": [[1.0]]}),
        "predict nothing": lambda: posterior().predict({"x": []}),
        "predict size": lambda: posterior().predict({"x": [1.0]}, sizes={"n": 3}),
        "predict unknown plate": lambda: posterior().predict({"x": [1.0]}, sizes={"k": 3}),
        "density of text": lambda: posterior()["a"].log_density("1"),
        "program lacks": lambda: program()({"x": [1.0, 2.0], "y": [0.0, 1.0]}),
        "program extra": lambda: program()({**DATA, "a": 1.0}),
        "batch none": lambda: program().batch([]),
        "batch shapes": lambda: program().batch([DATA, {"x": [1.0], "y": [1.0], "z": [True]}]),
        "batch names": lambda: program().batch([DATA, {"x": [1.0, 1.0]}]),
        "batch infinite": lambda: program().batch([DATA, {**DATA, "y": [np.inf, 1.0]}]),
        "batch index": lambda: program().batch([DATA, DATA])[2],
        "batch text": lambda: program().batch([DATA, {**DATA, "y": ["a", "b"]}]),
    }
    for name, call in more.items():
        yield Case(f"posterior: {name}", call)


def _median(found):
    return np.isposinf(found[0]) if np.ndim(found) else np.isclose(found, posterior()["a"].mean)


def _quartiles(found):
    sd, mean = posterior()["a"].sd, posterior()["a"].mean
    return np.allclose(found, [mean - 0.6744897501960817 * sd, mean + 0.6744897501960817 * sd])


def _density(value, found):
    from scipy.stats import norm

    return np.allclose(found, norm.logpdf(value, posterior()["a"].mean, posterior()["a"].sd), equal_nan=True)
