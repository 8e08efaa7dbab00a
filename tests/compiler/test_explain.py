"""What `explain` prints is what docs/read-explain.md explains, line by line; and its advice fits whoever reads it."""

import itertools
import re
from pathlib import Path

import numpy as np
import pytest

import cavity as cv
from cavity.compiler.explain import explain_plan
from cavity.compiler.plan import make_plan

PAGE = (Path(__file__).parents[2] / "docs" / "read-explain.md").read_text()
GAP = "…"


def templates(heading):
    """The first column of the table under a heading: code in which a gap stands for anything."""
    section = PAGE[PAGE.index(f"## {heading}") :].split("\n## ")[0].split("\n# ")[0]
    rows = [line.replace("\\|", "\0").split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    return [row.replace("\0", "|") for row in rows]


def patterns(heading):
    """Each template of a table as a regular expression; several in one cell are several."""
    codes = [code for cell in templates(heading) for code in re.findall(r"`([^`]*)`", cell)]
    return {code: re.compile(re.escape(code).replace(re.escape(GAP), "[^|]+") + "$") for code in codes}


def plan(build, observed="y", missing="", method="auto", sizes=None, accuracy="default"):
    m = cv.Model("model")
    build(m)
    return make_plan(m, frozenset(observed.split()), frozenset(missing.split()), method, frozenset(), sizes, accuracy)


def line(m):
    row = m.plate("row")
    x = m.input("x", cv.real, plates=row)
    a, b = (m.random(name, cv.gaussian(0.0, variance=1.0)) for name in "ab")
    m.random("y", cv.bernoulli(cv.probit(a * x + b)), plates=row)


def one(m):
    a = m.random("a", cv.gaussian(0.0, variance=1.0))
    m.random("y", cv.gaussian(a, variance=1.0))


def cut(m):
    w = m.random("w", cv.vector_gaussian(np.zeros(2), covariance=np.eye(2)))
    m.constrain(cv.element(w, 0) + cv.element(w, 1) > 0)


def spread(m):
    row = m.plate("row")
    a, p = m.random("a", cv.gaussian(0.0, variance=1.0)), m.random("p", cv.gamma(2.0, 1.0))
    m.random("y", cv.gaussian(a, precision=p), plates=row)


def side(m):
    a = m.random("a", cv.gaussian(0.0, variance=1.0))
    m.random("y", cv.bernoulli(cv.probit(a)))


def nearest(m):
    a = m.random("a", cv.gaussian(0.0, variance=1.0))
    m.random("y", cv.bernoulli(cv.logistic(a)))


def positive(m):
    m.random("y", cv.gaussian(0.0, sd=m.random("r", cv.gamma(2.0, 1.0))))
    m.random("z", cv.poisson(m.randoms["r"]))


def unit(m):
    m.random("y", cv.gaussian(cv.log(m.random("r", cv.beta(2.0, 2.0))), variance=1.0))


def trials(m):
    m.random("y", cv.binomial(m.random("n", cv.poisson(6.0)), 0.3))


def rates(m):
    row = m.plate("row")
    a = m.random("a", cv.gamma(2.0, 1.0))
    m.random("y", cv.gaussian(cv.log(a**2), variance=1.0), plates=row)


def coins(m):
    a, b = (m.random(name, cv.bernoulli(0.5)) for name in "ab")
    m.let("both", a & b)
    m.let("any", a | b)


def mixture(m):
    row, k = m.plate("row"), m.plate("k")
    centre = m.random("centre", cv.gaussian(0.0, variance=9.0), plates=k)
    z = m.random("z", cv.categorical([0.5, 0.5]), plates=row)
    m.random("y", cv.gaussian(centre[z], variance=1.0), plates=row)


def gaps(m):
    row = m.plate("row")
    u = m.random("u", cv.gaussian(0.0, variance=1.0))
    x = m.random("x", cv.gaussian(u, variance=1.0), plates=row)
    m.random("y", cv.gaussian(x, variance=1.0), plates=row)
    m.random("later", cv.gaussian(u, variance=1.0))


def walk(m):
    t = m.plate("t")
    p = m.random("p", cv.gamma(2.0, 1.0))
    first = cv.gaussian(0.0, variance=1.0)
    x = m.chain("x", over=t, first=first, then=lambda previous: cv.gaussian(previous, precision=p))
    m.random("y", cv.gaussian(x, variance=1.0), plates=t)


def skills(m):
    player, game = m.plate("player"), m.plate("game")
    winner, loser = (m.input(name, cv.index(player), plates=game) for name in ("winner", "loser"))
    skill = m.random("skill", cv.gaussian(0.0, variance=0.5), plates=player)
    margin = m.random("margin", cv.gaussian(skill[winner] - skill[loser], variance=1.0))
    m.constrain(margin > 0)


def texts():
    """What is printed of plans that together have every line, the first as a run prints it."""
    run = plan(skills, "", sizes={"player": 4, "game": 7})
    counts = {block.name: 1 for block in run.blocks}
    yield explain_plan(run, dict.fromkeys(counts, -1.5), counts)
    for build, options in (
        (line, {}),
        (line, {"method": "ep"}),
        (line, {"method": cv.power(0.5)}),
        (line, {"method": "ncvmp"}),
        (nearest, {"method": "ncvmp"}),
        (one, {}),
        (spread, {}),
        (side, {"method": "ep"}),
        (cut, {"observed": ""}),
        (positive, {"method": "ep"}),
        (unit, {"method": "ep"}),
        (trials, {}),
        (rates, {"method": "ep"}),
        (coins, {"observed": "both any", "method": "ep"}),
        (mixture, {"sizes": {"row": 3, "k": 2}}),
        (gaps, {"observed": "x y", "missing": "x", "sizes": {"row": 2}}),
        (walk, {"sizes": {"t": 3}}),
        (skills, {"observed": "", "sizes": {"player": 1500, "game": 2000}}),
    ):
        yield explain_plan(plan(build, **options))


@pytest.fixture(scope="module")
def printed():
    return [line.strip() for text in texts() for line in text.splitlines()]


def test_every_line_that_is_printed_is_explained(printed):
    known = patterns("Every line")
    unknown = [line for line in printed if not any(pattern.match(line) for pattern in known.values())]
    assert unknown == []


def test_every_line_that_is_explained_is_printed(printed):
    assert [code for code, pattern in patterns("Every line").items() if not any(map(pattern.match, printed))] == []


def answers(printed):
    lines = [line.removeprefix("answers: ") for line in printed if line.startswith("answers: ")]
    for part in itertools.chain.from_iterable(line.split(". ") for line in lines):
        told, _, reasons = part.partition(": ")
        yield from reasons.split("; ") if told.startswith("approximate for ") else [part]


def test_the_words_of_answers_are_those_of_the_page(printed):
    known, found = patterns("Answers: exact or approximate, and why"), list(answers(printed))
    assert [part for part in found if not any(pattern.match(part) for pattern in known.values())] == []
    assert [code for code, pattern in known.items() if not any(map(pattern.match, found))] == []


def test_the_answers_of_a_point_are_not_those_of_the_posterior():
    """What is integrated is not observed, and what is exact given it need not be exact."""
    point = plan(spread, observed="y p")
    lines = explain_plan(point, gridded=("p",)).splitlines()
    assert lines[0].endswith("observed: y; on a grid: p")
    assert "answers at a point of the grid: exact for a" in lines
    assert not any(line.startswith("answers:") for line in lines)
    assert "answers before the draws: exact for a" in explain_plan(point, answers="answers before the draws")


def test_no_method_of_a_factor_is_called_exact(printed):
    """The method of a factor may be any, and its message exact, while the answer is not."""
    apart = explain_plan(plan(spread, method="vmp")).splitlines()
    assert "  a: any method ~ a" in apart
    assert [line for line in printed if ": exact ~" in line] == []
    assert any(line.startswith("answers: approximate for") for line in apart)


TWO_GAMMAS = {
    "rate": lambda a, b: cv.poisson(a + b),
    "product": lambda a, b: cv.poisson(a * b),
    "quotient": lambda a, b: cv.poisson(a / b),
    "logarithms": lambda a, b: cv.gaussian(cv.log(a) - cv.log(b), variance=1.0),
    "product of logarithms": lambda a, b: cv.gaussian(cv.log(a) * cv.log(b), variance=1.0),
    "difference": lambda a, b: cv.gaussian(a - b, variance=1.0),
    "precision": lambda a, b: cv.gaussian(0.0, precision=a + b),
    "shape and rate": lambda a, b: cv.gamma(a, b),
    "link": lambda a, b: cv.bernoulli(cv.logistic(a - b)),
}


@pytest.mark.parametrize("method", ["auto", "ep", "vmp", "ncvmp", "best"])
@pytest.mark.parametrize("form", TWO_GAMMAS)
def test_two_gammas_are_not_told_to_become_a_vector(form, method):
    """A vector is Gaussian: advice to write an inner product helps no positive variable."""

    def build(m):
        row = m.plate("row")
        a, b = (m.random(name, cv.gamma(2.0, 1.0)) for name in "ab")
        m.random("y", TWO_GAMMAS[form](a, b), plates=row)

    options = {"accuracy": "best"} if method == "best" else {"method": method}
    text = told(build, sizes={"row": 3}, **options)
    assert "cv.dot" not in text
    assert "vector" not in text
    assert "Gaussian variables meet" not in text


SUMS = {
    "logarithm": lambda a, x: cv.log(a) * x,
    "logarithm of a sum": lambda a, x: cv.log(a + cv.exp(x)),
    "maximum": lambda a, x: cv.max(a * x, 1.0),
    "quotient": lambda a, x: x / a,
}


@pytest.mark.parametrize("method", ["auto", "ep", "vmp"])
@pytest.mark.parametrize("form", SUMS)
def test_a_sum_of_functions_of_a_gamma_is_not_told_to_become_a_vector(form, method):
    def build(m):
        row, k = m.plate("row"), m.plate("k")
        a = m.random("a", cv.gamma(2.0, 1.0))
        x = m.input("x", cv.real, plates=[row, k])
        m.random("y", cv.bernoulli(cv.probit(cv.sum(SUMS[form](a, x), over=k))), plates=row)

    assert "cv.dot" not in told(build, sizes={"row": 3, "k": 2}, method=method)


def test_a_sum_of_gaussian_weights_that_repeat_is_told_to_become_a_vector():
    def build(m):
        row, k, f = (m.plate(name) for name in ("row", "k", "f"))
        i = m.input("i", cv.index(f), plates=[row, k])
        w = m.random("w", cv.gaussian(0.0, variance=1.0), plates=f)
        v = m.random("v", cv.gaussian(0.0, variance=1.0), plates=f)
        m.random("y", cv.poisson(cv.exp(cv.sum(w[i] * v[i], over=k))), plates=row)

    assert "cv.dot(weight, x)" in told(build, sizes={"row": 1, "k": 2, "f": 3})


def told(build, **options):
    """What `explain` prints, or what is said instead."""
    try:
        return explain_plan(plan(build, **options))
    except cv.UnsupportedError as refusal:
        return str(refusal)
