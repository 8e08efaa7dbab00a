"""What a plan says of its answers, and that advice to change a model or a method applies to who reads it."""

from __future__ import annotations

import pytest

import cavity as cv
from cavity.compiler.answers import answers


def gaussians(m):
    return tuple(m.random(name, cv.gaussian(0.0, variance=4.0)) for name in "ab")


def line(m):
    a, b = gaussians(m)
    m.random("y", cv.gaussian(a + b, variance=1.0))


def product(m):
    a, b = gaussians(m)
    m.random("y", cv.gaussian(a * b, variance=1.0))


def side(m):
    a, b = gaussians(m)
    m.random("y", cv.bernoulli(cv.probit(a - b)))


def coins(m):
    a, b = (m.random(name, cv.bernoulli(0.4)) for name in "ab")
    m.let("y", a | b)


def rate(m):
    a = m.random("a", cv.gamma(2.0, 1.0))
    m.random("y", cv.poisson(a))


def apart(m):
    rate(m)
    b = m.random("b", cv.gamma(2.0, 1.0))
    mean = m.random("mean", cv.gaussian(0.0, variance=1.0))
    m.random("z", cv.gaussian(mean, precision=b))


def reasons(build, method="auto", observed=("y",)):
    m = cv.Model()
    build(m)
    return {answer.names: answer for answer in answers(cv.compile(m, observed=list(observed), method=method).plan)}


@pytest.mark.parametrize("build", [line, coins, rate])
def test_exact_operators_without_loops_give_exact_answers(build):
    found = reasons(build)
    assert all(not answer.reasons and not answer.moments for answer in found.values())


def test_one_factor_that_is_not_conjugate_leaves_the_moments_exact():
    (answer,) = reasons(side, "ep").values()
    assert answer.moments
    assert not answer.reasons


def scale(m):
    p = m.random("p", cv.gamma(2.0, 1.0))
    m.random("y", cv.gaussian(0.8, sd=p**2))


def thinned(m):
    m.random("y", cv.binomial(m.random("n", cv.poisson(6.0)), 0.3))


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (side, "exact in mean and variance for a, b"),
        (scale, "exact in E x and E log x for p"),
        (thinned, "exact in the mean for n"),
        (coins, "exact for a, b"),
    ],
)
def test_what_is_exact_names_what_the_belief_keeps(build, words):
    m = cv.Model()
    build(m)
    method = "ep" if build is side else "auto"
    assert words in cv.compile(m, observed=["y"], method=method).explain()


def test_predictions_from_a_belief_that_keeps_no_more_are_named():
    m = cv.Model()
    scale(m)
    level, n = m.input("level", cv.real), m.plate("n", 2)
    z = m.random("z", cv.gaussian(level, precision=m.randoms["p"]), plates=n)
    m.random("after", cv.bernoulli(cv.logistic(z)))
    m.random("apart", cv.gaussian(level, variance=1.0))
    words = cv.compile(m, observed=["y"]).explain()
    assert (
        "exact in E x and E log x for p. approximate for z, after: made of beliefs of which no more is exact" in words
    )


@pytest.mark.parametrize(
    ("build", "method", "word"),
    [
        (product, "vmp", "taken apart in y (VMP)"),
        (product, cv.power(0.5), "power EP"),
    ],
)
def test_what_is_approximate_says_why(build, method, word):
    (answer,) = reasons(build, method).values()
    assert any(word in reason for reason in answer.reasons)


def test_groups_that_no_factor_ties_are_told_apart():
    found = reasons(apart, observed=("y", "z"))
    assert not found[("a",)].reasons
    assert found[("b", "mean")].reasons


def test_a_message_is_not_an_answer():
    m = cv.Model()
    product(m)
    text = cv.compile(m, observed=["y"], method="vmp").explain()
    assert "[message: exact]" in text
    assert "answers: approximate for a, b: the beliefs of a and b are taken apart in y (VMP)" in text


# advice ---------------------------------------------------------------------------------------------------------------


def three(m):
    """Three numbers that no method joins: VMP has no moments of the logistic of a product, nor points of a count."""
    a, b = gaussians(m)
    c = m.random("c", cv.poisson(2.0))
    m.random("y", cv.gaussian(cv.logistic(a * b) - cv.logistic(b * c), variance=1.0))


def test_who_asked_for_no_method_is_not_told_to_use_the_default():
    for method, told in (("auto", False), ("ep", True)):
        m = cv.Model()
        three(m)
        with pytest.raises(cv.UnsupportedError) as caught:
            cv.compile(m, observed=["y"], method=method)
        assert ("method=" in str(caught.value)) is told, caught.value
        assert "m.random('part'" in str(caught.value)


def test_inner_products_are_advised_to_vectors_only():
    m = cv.Model()
    n = m.plate("n", 3)
    p = m.random("p", cv.gamma(2.0, 1.0), plates=n)
    m.random("y", cv.gaussian(cv.sum(p, over=n) + cv.sum(cv.log(p), over=n), variance=1.0))
    with pytest.raises(cv.UnsupportedError, match="'p' in two different ways") as caught:
        cv.infer(m, {"y": 1.0}, method="vmp")
    assert "cv.dot" not in str(caught.value)


def test_loops_of_gammas_are_not_advised_to_become_a_vector():
    m = cv.Model()
    n = m.plate("n", 3)
    p, q = (m.random(name, cv.gamma(2.0, 1.0)) for name in "pq")
    m.random("y", cv.gaussian(cv.log(p) - q, variance=1.0), plates=n)
    text = cv.compile(m, observed=["y"], method="ep", sizes={"n": 3}).explain()
    assert "come back to where they began (y)" in text
    assert "vector" not in text.split("answers:")[1]


@pytest.mark.parametrize(
    "chosen",
    [lambda b, kind: b[0] & b[1], lambda b, kind: ~b[0] | b[2], lambda b, kind: b[kind] & b[0]],
)
def test_elements_that_one_factor_reads_are_taken_apart(chosen):
    m = cv.Model("several elements")
    coin = m.plate("coin", size=3)
    kind = m.input("kind", cv.index(coin))
    b = m.random("b", cv.bernoulli(0.5), plates=coin)
    m.random("y", cv.switch(chosen(b, kind), cv.gaussian(3.0, variance=1.0), cv.gaussian(0.0, variance=1.0)))
    said = cv.explain(m, {"y": 1.3, "kind": 2})
    assert "approximate for b: the elements of b are taken apart in y (case 0) (VMP)" in str(said)


def test_one_element_alone_is_exact():
    m = cv.Model("one element")
    coin = m.plate("coin", size=3)
    b = m.random("b", cv.bernoulli(0.5), plates=coin)
    m.random("y", cv.switch(b[1], cv.gaussian(3.0, variance=1.0), cv.gaussian(0.0, variance=1.0)))
    assert "answers: exact for b" in str(cv.explain(m, {"y": 1.3}))
