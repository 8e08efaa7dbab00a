"""Discrete networks summed out jointly, against enumeration of all states.

Known answers first: D6, D7 and D8 of the table of reference cases, whose exact values were enumerated independently;
the approximate ones are those of loopy belief propagation. Then random networks: the shapes are fixed, so that one
program serves all of them, and the tables (some with zeros), the evidence and the index arrays are random data.
"""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cavity as cv

# Random networks have data that are impossible at times, which a warning says too; `agrees` looks at the code.
pytestmark = pytest.mark.filterwarnings("ignore:Observations and constraints contradict each other")

close = np.testing.assert_allclose
seeds = st.integers(0, 2**32 - 1)
each_shape = settings(max_examples=40, deadline=None)


# Known answers -------------------------------------------------------------------------------------------------------


def triangle():
    """Three booleans, each pair of which agrees with odds 1 : 0.5."""
    m = cv.Model("triangle")
    x = [m.random(name, cv.bernoulli(p)) for name, p in (("a", 0.6), ("b", 0.3), ("c", 0.2))]
    odds = m.input("odds", cv.unit, plates=m.plate("same", 2))
    for i, j in ((0, 1), (1, 2), (0, 2)):
        same = m.let(f"same {i}{j}", x[i] == x[j])
        m.random(f"link {i}{j}", cv.bernoulli(odds[same]))
    return m


TRIANGLE = {"odds": [0.5, 1.0], "link 01": True, "link 12": True, "link 02": True}


def log_odds(posterior):
    p = np.array([posterior[name].mean for name in "abc"])
    return np.log(p / (1.0 - p))


def test_d6_loopy_belief_propagation_where_ep_is_asked_for():
    posterior = cv.infer(triangle(), TRIANGLE, method="ep", tolerance=1e-12)
    close(log_odds(posterior), [-0.430329845153877, -1.26916217135997, -1.6494367601758], rtol=1e-9)


@pytest.mark.parametrize("options", [{}, {"method": "ep", "accuracy": "best"}])
def test_d6_exact_where_the_network_is_small(options):
    posterior = cv.infer(triangle(), TRIANGLE, **options)
    found = [float(posterior[name].mean) for name in "abc"]
    close(found, [0.397752809, 0.229213483, 0.173033708], rtol=0, atol=1e-9)
    agree = np.array([[x == y for x in (0, 1)] for y in (0, 1)])
    weight = np.where(agree, 1.0, 0.5)
    prior = [np.array([1 - p, p]) for p in (0.6, 0.3, 0.2)]
    close(posterior.log_evidence, np.log(np.einsum("a,b,c,ab,bc,ac", *prior, weight, weight, weight)), rtol=1e-12)


def test_d7_wet_grass():
    m = cv.Model("wet grass")
    first, second = m.plate("first", 2), m.plate("second", 2)
    sprinkle = m.input("sprinkle", cv.unit, plates=first)
    shower = m.input("shower", cv.unit, plates=first)
    wetting = m.input("wetting", cv.unit, plates=(first, second))
    cloudy = m.random("cloudy", cv.bernoulli(0.5))
    sprinkler = m.random("sprinkler", cv.bernoulli(sprinkle[cloudy]))
    rain = m.random("rain", cv.bernoulli(shower[cloudy]))
    m.random("wet", cv.bernoulli(wetting[sprinkler][rain]))
    data = {"sprinkle": [0.5, 0.1], "shower": [0.2, 0.8], "wetting": [[0.0, 0.9], [0.9, 0.99]], "wet": True}
    posterior = cv.infer(m, data, accuracy="best")
    close(posterior["sprinkler"].mean, 0.429763561, rtol=0, atol=1e-9)
    close(posterior["rain"].mean, 0.707927677, rtol=0, atol=1e-9)
    close(np.exp(posterior.log_evidence), 0.6471, rtol=1e-12)


def ball_counting():
    """Draws from an urn with an unknown number of balls of unknown colours; draws are put back."""
    m = cv.Model("ball counting")
    count, ball, draw = m.plate("count", 9), m.plate("ball", 8), m.plate("draw")
    pick = m.input("pick", cv.simplex(8), plates=count)
    flip = m.input("flip", cv.unit, plates=m.plate("truth", 2))
    number = m.random("number", cv.categorical(np.r_[0.0, np.full(8, 1 / 8)]))
    blue = m.random("blue", cv.bernoulli(0.5), plates=ball)
    drawn = m.random("drawn", cv.categorical(pick[number]), plates=draw)
    m.random("seen", cv.bernoulli(flip[blue[drawn]]))
    return m


@functools.cache
def ball_counter():
    return cv.compile(ball_counting(), ["seen"], accuracy="best")


@pytest.mark.parametrize(
    ("noise", "blue", "exact"),
    [
        (0.0, 10, [0, 0.458358, 0.229627, 0.120557, 0.070537, 0.045790, 0.032213, 0.024076, 0.018843]),
        (0.2, 10, [0, 0.411964, 0.209729, 0.120692, 0.080185, 0.059032, 0.046604, 0.038630, 0.033165]),
        (0.2, 5, [0, 0.020876, 0.107652, 0.124117, 0.136184, 0.144674, 0.150968, 0.155829, 0.159701]),
    ],
)
def test_d8_ball_counting(noise, blue, exact):
    pick = np.tril(np.ones((9, 8)), -1)
    pick[0, 0] = 1.0
    data = {"pick": pick / pick.sum(1, keepdims=True), "flip": [noise, 1 - noise], "seen": np.arange(10) < blue}
    posterior = ball_counter()(data)
    close(posterior["number"].mean, exact, rtol=0, atol=6e-7)
    assert ball_counter().traces == 1


# Random networks -----------------------------------------------------------------------------------------------------


def table(rng, *shape):
    """Probabilities with some zeros: along the last axis of categories, or of a boolean where `shape` ends in None."""
    boolean = shape[-1] is None
    shape = (*shape[:-1], 2) if boolean else shape
    weights = rng.gamma(0.5, size=shape) * (rng.uniform(size=shape) > 0.2) + 1e-300
    probabilities = weights / weights.sum(-1, keepdims=True)
    probabilities = np.where(probabilities < 1e-200, 0.0, probabilities)
    return probabilities[..., 1] if boolean else probabilities


def states(p):
    """P(False), P(True) of a boolean along a new last axis."""
    return np.stack([1.0 - p, p], axis=-1)


def agrees(posterior, joint, marginals):
    """Marginals and evidence are those of an array of the joint probabilities; `marginals` names its axes."""
    total = joint.sum()
    if total == 0.0:
        assert posterior.code == "contradiction"
        assert posterior.log_evidence == -np.inf
        return
    close(posterior.log_evidence, np.log(total), rtol=1e-9, atol=1e-9)
    for axis, (name, place) in enumerate(marginals):
        expected = joint.sum(tuple(i for i in range(joint.ndim) if i != axis)) / total
        found = np.asarray(posterior[name].mean)[place]
        close(found if np.ndim(found) else [1.0 - found, found], expected, rtol=1e-9, atol=1e-12)


@functools.cache
def square():
    """a - b - d - c - a, with a chord and two leaves that are observed."""
    m = cv.Model("square")
    s3, s2, s4, t3 = (m.plate(n, k) for n, k in (("s3", 3), ("s2", 2), ("s4", 4), ("t3", 3)))
    a = m.random("a", cv.categorical(m.input("pa", cv.simplex(3))))
    b = m.random("b", cv.bernoulli(m.input("pb", cv.unit, plates=s3)[a]))
    c = m.random("c", cv.categorical(m.input("pc", cv.simplex(4), plates=s3)[a]))
    pd = m.input("pd", cv.simplex(3), plates=(s2, s4))
    d = m.random("d", cv.categorical(pd[b][c]))
    e = m.let("e", (d == 1) | b)
    m.random("x", cv.bernoulli(m.input("px", cv.unit, plates=t3)[d]))
    m.random("y", cv.bernoulli(m.input("py", cv.unit, plates=s2)[e]))
    return cv.compile(m, ["x", "y"])


@each_shape
@given(seeds)
def test_random_squares(seed):
    rng = np.random.default_rng(seed)
    data = {"pa": table(rng, 3), "pb": table(rng, 3, None), "pc": table(rng, 3, 4), "pd": table(rng, 2, 4, 3)}
    data |= {"px": table(rng, 3, None), "py": table(rng, 2, None), "x": rng.uniform() < 0.5, "y": rng.uniform() < 0.5}
    e = np.array([[int(d == 1 or b == 1) for d in range(3)] for b in range(2)])
    likelihood_x = states(data["px"])[:, int(data["x"])]
    likelihood_y = states(data["py"])[:, int(data["y"])][e]
    tables = [data["pa"], states(data["pb"]), data["pc"], data["pd"], likelihood_x, likelihood_y]
    joint = np.einsum("a,ab,ac,bcd,d,bd->abcd", *tables)
    agrees(square()(data), joint, [("a", ()), ("b", ()), ("c", ()), ("d", ())])
    assert square().traces == 1


@functools.cache
def rows():
    """A global category, and in every row two variables that depend on it and on one another."""
    m = cv.Model("rows")
    n, s3, s2 = m.plate("n"), m.plate("s3", 3), m.plate("s2", 2)
    z = m.random("z", cv.categorical(m.input("pz", cv.simplex(3))))
    u = m.random("u", cv.bernoulli(m.input("pu", cv.unit, plates=s3)[z]), plates=n)
    v = m.random("v", cv.bernoulli(m.input("pv", cv.unit, plates=(s3, s2))[z][u]))
    m.random("w", cv.bernoulli(m.input("pw", cv.unit, plates=s2)[v]))
    return cv.compile(m, ["w"])


@each_shape
@given(seeds)
def test_random_rows(seed):
    rng = np.random.default_rng(seed)
    data = {"pz": table(rng, 3), "pu": table(rng, 3, None), "pv": table(rng, 3, 2, None), "pw": table(rng, 2, None)}
    data["w"] = rng.uniform(size=3) < 0.5
    row = [
        np.einsum("zu,zuv,v->zuv", states(data["pu"]), states(data["pv"]), states(data["pw"])[:, int(w)])
        for w in data["w"]
    ]
    joint = np.einsum("z,zab,zcd,zef->zabcdef", data["pz"], *row)
    names = [("z", ())] + [(name, i) for i in range(3) for name in ("u", "v")]
    agrees(rows()(data), joint, names)
    assert rows().traces == 1


@functools.cache
def web():
    """Edges between the elements of one plate, chosen by data."""
    m = cv.Model("web")
    node, edge = m.plate("node", 5), m.plate("edge")
    x = m.random("x", cv.bernoulli(m.input("p", cv.unit, plates=node)))
    left, right = (m.input(name, cv.index(node), plates=edge) for name in ("left", "right"))
    same = m.let("same", x[left] == x[right])
    m.random("link", cv.bernoulli(m.input("odds", cv.unit, plates=m.plate("s2", 2))[same]))
    return cv.compile(m, ["link"])


@each_shape
@given(seeds)
def test_random_webs(seed):
    rng = np.random.default_rng(seed)
    left, right = rng.integers(0, 5, size=(2, 6))
    data = {"p": rng.uniform(size=5), "left": left, "right": right, "odds": table(rng, 2, None)}
    data["link"] = rng.uniform(size=6) < 0.5
    joint = np.zeros((2,) * 5)
    for x in itertools.product((0, 1), repeat=5):
        joint[x] = np.prod(states(data["p"])[np.arange(5), x])
        for i, j, link in zip(left, right, data["link"], strict=True):
            joint[x] *= states(data["odds"])[int(x[i] == x[j]), int(link)]
    agrees(web()(data), joint, [("x", i) for i in range(5)])
    assert web().traces == 1


@functools.cache
def grid():
    """Every element of one plate meets every element of another."""
    m = cv.Model("grid")
    i, j, s2, s4 = m.plate("i", 3), m.plate("j", 2), m.plate("s2", 2), m.plate("s4", 4)
    x = m.random("x", cv.bernoulli(m.input("px", cv.unit, plates=i)))
    y = m.random("y", cv.categorical(m.input("py", cv.simplex(4), plates=j)))
    m.random("seen", cv.bernoulli(m.input("t", cv.unit, plates=(s2, s4))[x][y]), plates=(i, j))
    return cv.compile(m, ["seen"])


@each_shape
@given(seeds)
def test_random_grids(seed):
    rng = np.random.default_rng(seed)
    data = {"px": table(rng, 3, None), "py": table(rng, 2, 4), "t": table(rng, 2, 4, None)}
    data["seen"] = rng.uniform(size=(3, 2)) < 0.5
    joint = np.einsum("a,b,c,d,e->abcde", *states(data["px"]), *data["py"])
    for row, k in itertools.product(range(3), range(2)):
        factor = states(data["t"])[:, :, int(data["seen"][row, k])]
        shape = [1] * 5
        shape[row], shape[3 + k] = 2, 4
        joint = joint * factor.reshape(shape)
    agrees(grid()(data), joint, [("x", 0), ("x", 1), ("x", 2), ("y", 0), ("y", 1)])
    assert grid().traces == 1


@functools.cache
def counted():
    """Booleans known through how many are true, whether all and whether any are, and a choice among them."""
    m = cv.Model("counted")
    n, k, s2 = m.plate("n", 4), m.plate("k", 5), m.plate("s2", 2)
    b = m.random("b", cv.bernoulli(m.input("p", cv.unit, plates=n)))
    which = m.random("which", cv.categorical(m.input("pick", cv.simplex(4))))
    total = m.let("total", cv.sum(b, over=n))
    every = m.let("every", cv.all(b, over=n) | (which == 2))
    m.random("noisy total", cv.categorical(m.input("q", cv.simplex(5), plates=k)[total]))
    m.random("noisy every", cv.bernoulli(m.input("r", cv.unit, plates=s2)[every]))
    m.random("one", cv.bernoulli(m.input("t", cv.unit, plates=s2)[b[which]]))
    m.let("some", cv.any(b, over=n))
    return cv.compile(m, ["noisy total", "noisy every", "one", "some"])


@each_shape
@given(seeds)
def test_random_counts(seed):
    rng = np.random.default_rng(seed)
    data = {"p": table(rng, 4, None), "pick": table(rng, 4), "q": table(rng, 5, 5), "r": table(rng, 2, None)}
    data |= {"t": table(rng, 2, None), "noisy total": rng.integers(5), "noisy every": rng.uniform() < 0.5}
    data |= {"one": rng.uniform() < 0.5, "some": rng.uniform() < 0.8}
    joint = np.zeros((2,) * 4 + (4,))
    for *b, which in itertools.product(*[(0, 1)] * 4, range(4)):
        weight = np.prod(states(data["p"])[np.arange(4), b]) * data["pick"][which]
        weight *= data["q"][sum(b), data["noisy total"]] * (bool(data["some"]) == any(b))
        weight *= states(data["r"])[int(all(b) or which == 2), int(data["noisy every"])]
        joint[*b, which] = weight * states(data["t"])[b[which], int(data["one"])]
    agrees(counted()(data), joint, [*(("b", i) for i in range(4)), ("which", ())])
    assert counted().traces == 1


# Small laws ----------------------------------------------------------------------------------------------------------


def test_a_batch_is_its_members():
    rng = np.random.default_rng(0)
    shapes = {"pz": (3,), "pu": (3, None), "pv": (3, 2, None), "pw": (2, None)}
    datas = [
        {name: 0.9 * table(rng, *shape) + 0.1 / (shape[-1] or 2) for name, shape in shapes.items()}
        | {"w": rng.uniform(size=3) < 0.5}
        for _ in range(3)
    ]
    batch = rows().batch(datas)
    for posterior, data in zip(batch, datas, strict=True):
        close(posterior["u"].mean, rows()(data)["u"].mean, rtol=1e-9)


def test_a_network_beside_a_gaussian_link():
    """Beliefs of other factors enter: here the graph outside the network is a tree, so all of it is exact."""
    m = cv.Model()
    t = m.input("t", cv.unit, plates=m.plate("s", 2))
    f = m.random("f", cv.gaussian(0.0, variance=1.0))
    a = m.random("a", cv.bernoulli(cv.probit(f)))
    b, c = (m.random(name, cv.bernoulli(t[a])) for name in "bc")
    m.let("differ", b ^ c)
    posterior = cv.infer(m, {"t": [0.2, 0.7], "differ": True})
    differ = np.array([2 * 0.2 * 0.8, 2 * 0.7 * 0.3])
    close(posterior["a"].mean, differ[1] / differ.sum(), rtol=1e-12)
    close(posterior.log_evidence, np.log(differ.mean()), rtol=1e-12)


def test_observing_a_named_element():
    """An element that has a name is the element, not a second copy of its belief."""
    m = cv.Model()
    n, k = m.plate("n", 3), m.plate("k")
    x = m.random("x", cv.bernoulli(np.array([0.2, 0.6, 0.7])), plates=n)
    chosen = m.let("chosen", x[m.input("i", cv.index(n), plates=k)])
    y = m.random("y", cv.bernoulli(0.3), plates=k)
    m.let("both", chosen & y)
    posterior = cv.infer(m, {"i": [0, 2], "both": [False, True]}, method="ep")
    close(posterior.log_evidence, np.log((1 - 0.2 * 0.3) * 0.7 * 0.3), rtol=1e-9)
    close(posterior["x"].mean, [0.2 * 0.7 / (1 - 0.2 * 0.3), 0.6, 1.0], rtol=1e-9)


def test_classes_are_numbers():
    m = cv.Model()
    p, q = np.array([0.2, 0.3, 0.5]), np.array([0.1, 0.2, 0.3, 0.4])
    a, b = m.random("a", cv.categorical(p)), m.random("b", cv.categorical(q))
    m.let("total", a + b + 1)
    m.let("gap", b - a)
    m.let("large", a >= 1)
    i, j = np.ogrid[:3, :4]
    for observed, true in [
        ({"total": 4, "large": True}, (i + j == 3) & (i >= 1)),
        ({"gap": 2}, j - i == 2),
        ({"large": False}, (i < 1) & (j >= 0)),
    ]:
        joint = np.outer(p, q) * true
        posterior = cv.infer(m, observed)
        agrees(posterior, joint, [("a", ()), ("b", ())])
    prior = cv.infer(m, {})
    expected = np.zeros(7)
    np.add.at(expected, i + j + 1, np.outer(p, q))
    close(prior["total"].mean, expected, rtol=0, atol=1e-15)


def test_forward_counts():
    """Sums over a plate that nothing observed depends on."""
    m = cv.Model()
    n = m.plate("n", 4)
    p = np.array([0.1, 0.5, 0.7, 0.4])
    b = m.random("b", cv.bernoulli(p), plates=n)
    m.let("count", cv.sum(b, over=n))
    m.let("every", cv.all(b, over=n))
    m.let("some", cv.any(b, over=n))
    counts = np.zeros(5)
    for x in itertools.product((0, 1), repeat=4):
        counts[sum(x)] += np.prod(np.where(x, p, 1 - p))
    posterior = cv.infer(m, {})
    close(posterior["count"].mean, counts, rtol=1e-12)
    close(posterior["every"].mean, counts[4], rtol=1e-9)
    close(posterior["some"].mean, 1 - counts[0], rtol=1e-12)


def test_missing_outcomes_say_nothing():
    m = cv.Model()
    t = m.input("t", cv.unit, plates=m.plate("s", 2))
    a = m.random("a", cv.bernoulli(0.4))
    b = m.random("b", cv.bernoulli(t[a]))
    same = m.let("same", a == b)
    m.random("y", cv.bernoulli(t[same]), plates=m.plate("n"))
    data = {"t": [0.2, 0.9]}
    given, missing = cv.infer(m, {**data, "y": [1.0]}), cv.infer(m, {**data, "y": [1.0, np.nan]})
    close(missing.log_evidence, given.log_evidence, rtol=1e-12)
    close(missing["a"].mean, given["a"].mean, rtol=1e-12)
