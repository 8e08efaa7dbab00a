"""The constructs of the vocabulary that stand beside Infer.NET's factors in coverage.md."""

import dataclasses
from collections.abc import Callable

import jax.numpy as jnp
import numpy as np

import cavity as cv


@dataclasses.dataclass(frozen=True)
class Construct:
    """An entry of the vocabulary: `build(model, **arguments)` gives its term or expression, or constrains the model.

    `arguments` maps names to kinds of domains, with "[]" for a list over a plate, and "=" before what is given as plain
    numbers: a kind or the numbers themselves. `numbers` are the other arguments that are always known. `observed` is a
    value that the outcome may have; None where there is none to observe. `term` tells terms from expressions.
    """

    build: Callable
    arguments: dict[str, str]
    observed: object = None
    numbers: frozenset[str] = frozenset()
    term: bool = False


def term(build, observed, numbers=(), **arguments):
    return Construct(lambda m, **a: build(*a.values()), arguments, observed, frozenset(numbers), True)


def expression(build, observed, numbers=(), **arguments):
    return Construct(lambda m, **a: build(*a.values()), arguments, observed, frozenset(numbers))


def constraint(build, numbers=(), **arguments):
    """A boolean expression that is true."""
    return Construct(lambda m, **a: m.constrain(build(*a.values()), name="y"), arguments, None, frozenset(numbers))


def listed(build, observed, numbers=(), **arguments):
    """An expression over the plate of its first argument."""
    return expression(lambda *a: build(*a, over=a[0].plates[0]), observed, numbers, **arguments)


def concatenated(a, b):
    return cv.stack(*(cv.element(v, i) for v in (a, b) for i in range(2)))


def potential(kind, energy):
    """A user's factor between two variables: minus an energy."""
    return lambda a: cv.factor("potential", out=kind, a=kind, log_density=lambda out, a: -energy(a, out))(a)


def scaled_precision(s, p):
    """A user's factor: a vector Gaussian around zero, of a precision matrix times a number."""

    def log_density(out, s, p):
        return 0.5 * (2.0 * jnp.log(s) + jnp.linalg.slogdet(p)[1] - s * out @ p @ out) - jnp.log(2.0 * jnp.pi)

    return cv.factor("scaled", out=cv.vector(2), s=cv.positive, p=cv.posdef(2), log_density=log_density)(s, p)


TRUE, POINT, PAIR = True, 0.7, [0.4, -0.1]
MATRIX = np.array([[1.2, 0.1], [0.1, 0.9]])
CONSTRUCTS = {
    "cv.bernoulli(p)": term(cv.bernoulli, TRUE, p="unit"),
    "cv.bernoulli(p) over a plate": term(cv.bernoulli, [True, False, True], p="unit[]"),
    "cv.bernoulli(cv.logistic(s))": term(lambda s: cv.bernoulli(cv.logistic(s)), TRUE, s="real"),
    "cv.beta(a, b)": term(cv.beta, 0.4, a="positive", b="positive"),
    "cv.beta(mean=, variance=)": term(lambda m, v: cv.beta(mean=m, variance=v), 0.4, mean="=0.4", variance="=0.05"),
    "cv.beta(mean=, total=)": term(
        lambda mean, total: cv.beta(mean=mean, total=total), 0.4, mean="unit", total="positive"
    ),
    "cv.dirichlet(concentration)": term(
        lambda concentration: cv.dirichlet(concentration), [0.2, 0.3, 0.5], concentration="=[1.0, 2.0, 3.0]"
    ),
    "cv.dirichlet(mean=, total=)": term(
        lambda mean, total: cv.dirichlet(mean=mean, total=total), [0.2, 0.3, 0.5], mean="simplex", total="positive"
    ),
    "cv.dirichlet(mean=full(K, 1/K), total=K * alpha)": term(
        lambda k, alpha: cv.dirichlet(mean=np.full(k, 1.0 / k), total=k * alpha),
        [0.2, 0.3, 0.5],
        size="=3",
        alpha="positive",
    ),
    "cv.categorical(p)": term(cv.categorical, 1, p="simplex"),
    "cv.discrete_uniform(size)": term(cv.discrete_uniform, 1, size="=3"),
    "cv.all(b, over=plate)": listed(cv.all, TRUE, value="boolean[]"),
    "cv.sum(b, over=plate)": listed(cv.sum, 2, value="boolean[]"),
    "a & b": expression(lambda a, b: a & b, TRUE, a="boolean", b="boolean"),
    "a | b": expression(lambda a, b: a | b, TRUE, a="boolean", b="boolean"),
    "~b": expression(lambda b: ~b, TRUE, b="boolean"),
    "a == b": expression(lambda a, b: a == b, TRUE, a="category", b="category"),
    "a == b, booleans": expression(lambda a, b: a == b, TRUE, a="boolean", b="boolean"),
    "m.constrain(a == b)": constraint(lambda a, b: a == b, a="category", b="category"),
    "i + j": expression(lambda a, b: a + b, 2, a="category", b="category"),
    "i - j": expression(lambda a, b: a - b, 1, a="category", b="category"),
    "i > j": expression(lambda a, b: a > b, TRUE, a="category", b="category"),
    "a + b": expression(lambda a, b: a + b, POINT, a="real", b="real"),
    "a - b": expression(lambda a, b: a - b, POINT, a="real", b="real"),
    "a * b": expression(lambda a, b: a * b, POINT, a="real", b="real"),
    "a / b": expression(lambda a, b: a / b, POINT, a="real", b="positive"),
    "a * cv.exp(b)": expression(lambda a, b: a * cv.exp(b), POINT, a="real", b="real"),
    "u + v, vectors": expression(lambda a, b: a + b, PAIR, a="vector", b="vector"),
    "v * s, vector and number": expression(lambda a, b: a * b, PAIR, a="vector", b="real"),
    "A @ x": expression(lambda a, b: a @ b, PAIR, ["a"], a="matrix", b="vector"),
    "cv.dot(a, b)": expression(cv.dot, POINT, left="vector", right="vector"),
    "cv.sum(a * b, over=plate)": listed(lambda a, b, over: cv.sum(a * b, over=over), POINT, a="real[]", b="real[]"),
    "cv.sum(x, over=plate)": listed(cv.sum, POINT, value="real[]"),
    "cv.sum(v, over=plate), vectors": listed(cv.sum, PAIR, value="vector[]"),
    "cv.element(x, k)": expression(lambda x: cv.element(x, 1), POINT, x="vector"),
    "cv.subvector(x, ...)": expression(cv.subvector, [0.4], x="vector", start="=0", count="=1"),
    "cv.stack(...)": expression(cv.stack, PAIR, left="real", right="real"),
    "cv.stack(cv.element(a, 0), ...)": expression(concatenated, [0.4, -0.1, 0.3, 0.2], a="vector", b="vector"),
    "cv.exp(x)": expression(cv.exp, POINT, x="real"),
    "cv.log(x)": expression(cv.log, POINT, x="positive"),
    "cv.logistic(x)": expression(cv.logistic, POINT, x="real"),
    "cv.softmax(x, over=plate)": listed(cv.softmax, [0.2, 0.3, 0.5], value="real[]"),
    "x ** k": expression(lambda x, k: x**k, POINT, x="real", k="=2"),
    "cv.max(a, b)": expression(cv.max, POINT, left="real", right="real"),
    "cv.min(a, b)": expression(cv.min, POINT, left="real", right="real"),
    "x > 0": expression(lambda x: x > 0.0, TRUE, x="real"),
    "a > b": expression(lambda a, b: a > b, TRUE, a="real", b="real"),
    "cv.between(x, low, high)": term(cv.between, TRUE, value="real", low="real", high="real"),
    "cv.gaussian(mean, precision=)": term(
        lambda mean, precision: cv.gaussian(mean, precision=precision), POINT, mean="real", precision="positive"
    ),
    "cv.gaussian(mean, precision=) over a plate": term(
        lambda mean, precision: cv.gaussian(mean, precision=precision),
        [0.1, 0.4, -0.3],
        mean="real[]",
        precision="positive[]",
    ),
    "cv.gaussian(mean, variance=)": term(
        lambda mean, variance: cv.gaussian(mean, variance=variance), POINT, mean="real", variance="positive"
    ),
    "cv.vector_gaussian(mean, precision=)": term(
        lambda mean, precision: cv.vector_gaussian(mean, precision=precision), PAIR, mean="vector", precision="posdef"
    ),
    "cv.vector_gaussian(mean, covariance=)": term(
        lambda mean, covariance: cv.vector_gaussian(mean, covariance=covariance),
        PAIR,
        mean="vector",
        covariance="=posdef",
    ),
    "cv.gamma(shape, rate)": term(cv.gamma, POINT, shape="positive", rate="positive"),
    "cv.gamma(shape, 1 / scale)": term(
        lambda shape, scale: cv.gamma(shape, 1.0 / scale), POINT, shape="positive", scale="positive"
    ),
    "cv.gamma(mean=, variance=)": term(
        lambda mean, variance: cv.gamma(mean=mean, variance=variance), POINT, mean="=0.7", variance="=0.3"
    ),
    "cv.truncated_gamma(shape, rate, low, high)": term(
        cv.truncated_gamma, POINT, shape="positive", rate="positive", low="=0.2", high="=3.0"
    ),
    "cv.uniform(-u, u)": term(lambda u: cv.uniform(-u, u), 0.3, u="positive"),
    "cv.poisson(rate)": term(cv.poisson, 3, rate="positive"),
    "cv.binomial(n, p)": term(cv.binomial, 1, n="count", p="unit"),
    "cv.multinomial(n, p)": term(cv.multinomial, [1, 0, 2], ["n"], n="count", p="simplex"),
    "cv.dirichlet_multinomial(n, mean=, total=)": term(
        lambda n, total: cv.dirichlet_multinomial(n, mean=[0.5, 0.3, 0.2], total=total),
        [1, 0, 2],
        ["n"],
        n="count",
        total="positive",
    ),
    "cv.weibull(shape, scale)": term(cv.weibull, POINT, shape="positive", scale="positive"),
    "cv.von_mises(mean, concentration)": term(cv.von_mises, POINT, mean="real", concentration="positive"),
    "cv.wishart(dof, scale)": term(cv.wishart, MATRIX, dof="=4.0", scale="=posdef"),
    "cv.wishart(dof, rate=)": term(lambda dof, rate: cv.wishart(dof, rate=rate), MATRIX, dof="=4.0", rate="posdef"),
    "values[z]": expression(lambda values, z: values[z], POINT, ["values"], values="real[]", z="category"),
    "cv.dot(rows, x)": expression(cv.dot, [0.7, 0.2, -0.1], left="vector[]", right="vector"),
    "cv.sum(w * x, over=plate)": listed(
        lambda x, w, over: cv.sum(w * x, over=over), POINT, ["w"], x="real[]", w="real[]"
    ),
    "cv.factor(...) with s * P": term(scaled_precision, PAIR, s="positive", p="posdef"),
    "cv.gaussian_process(inputs, kernel)": term(
        lambda x: cv.gaussian_process(x, cv.kernels.squared_exponential(1.0, 1.0)), [0.1, 0.4, 0.2], ["x"], x="real[]"
    ),
    "cv.max(cv.max(a, b), c)": expression(lambda a, b, c: cv.max(cv.max(a, b), c), POINT, a="real", b="real", c="real"),
    "m.constrain(x[winner] > x[loser])": constraint(
        lambda x, winner, loser: x[winner] > x[loser], ["winner", "loser"], x="real[]", winner="index", loser="index"
    ),
    "cv.stack(c * u - s * w, s * u + c * w)": expression(
        lambda u, w, c, s: cv.stack(c * u - s * w, s * u + c * w),
        PAIR,
        ["c", "s"],
        u="real",
        w="real",
        c="real",
        s="real",
    ),
    "cv.factor(...), booleans": term(potential(cv.boolean, lambda a, b: 0.7 * (a != b)), TRUE, a="boolean"),
    "cv.factor(...), categories": term(potential(cv.category(3), lambda a, b: 0.7 * jnp.abs(a - b)), 1, a="category"),
}
