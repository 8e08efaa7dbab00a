"""Whole numbers, slices, tables and terms inside terms, as they are declared."""

import numpy as np
import pytest

import cavity as cv


@pytest.fixture
def m():
    return cv.Model("test")


@pytest.fixture
def x(m):
    return m.random("x", cv.gaussian(0.0, variance=1.0), plates=m.plate("t", 4))


@pytest.fixture
def v(m):
    return m.random("v", cv.vector_gaussian(np.zeros(3), covariance=np.eye(3)), plates=m.plate("k", 2))


def refused(action, *parts):
    with pytest.raises(cv.ModelError) as caught:
        action()
    for part in parts:
        assert part in str(caught.value)


def names(node):
    return tuple(plate.name for plate in node.plates)


# Whole numbers and slices


def test_slices_of_one_length_share_a_plate(m, x):
    assert x[1:].plates == x[:-1].plates == (m.plates["t"][1:],)
    assert x[1:].plates[0].size == 3
    assert x[:].plates == x[0:].plates == x[...].plates == x.plates
    assert x[1:3].plates == x[-2:].plates != x[1:].plates


def test_slices_of_a_plate_of_unknown_size_line_up(m):
    u = m.plate("u")
    y = m.random("y", cv.gaussian(0.0, variance=1.0), plates=u)
    assert y[1:].plates == y[:-1].plates == (u[1:],)
    assert y[:3].plates == y[1:4].plates == y[-3:].plates != y[1:].plates
    refused(lambda: y[-3:2], "[-3:2]", "m.plate('u', 8)")


def test_indices_stand_for_plates_and_then_for_the_coordinate(m, v):
    row = m.plate("row")
    group = m.input("group", cv.index(m.plates["k"]), plates=row)
    assert (names(v[0]), v[0].domain) == ((), cv.vector(3))
    assert (names(v[0, 1]), v[0, 1].domain) == ((), cv.real)
    assert (names(v[..., 0]), names(v[:, 0])) == (("k",), ("k",))
    assert names(v[group, 0]) == names(v[group, -1]) == ("row",)
    assert v[1, 1:].domain == cv.vector(2)


def test_index_data_choose_along_their_own_plates_in_any_order(m):
    a, b, row = m.plate("a", 2), m.plate("b", 3), m.plate("row")
    first, second = m.input("first", cv.index(a), plates=row), m.input("second", cv.index(b), plates=row)
    w = m.random("w", cv.gaussian(0.0, variance=1.0), plates=(a, b))
    assert names(w[first, second]) == names(w[second, first]) == ("row",)
    assert names(w[first, 1:]) == ("row", "b[1:]")


def test_numbers_that_are_out_of_range(m, x, v):
    refused(lambda: x[4], "'x'", "plate 't'", "4", "from 0 to 3", "-4 to -1")
    refused(lambda: x[-5], "'x'", "-5")
    refused(lambda: x[1:9], "'x'", "[1:9]", "there are 4")
    refused(lambda: x[3:2], "'x'", "[3:2]", "no elements")
    refused(lambda: v[0, 3], "coordinates", "3", "from 0 to 2")
    refused(lambda: v[0, 2:4], "coordinates", "[2:4]")


def test_what_is_no_index(m, x, v):
    refused(lambda: x[1.0], "'x'", "1.0", "whole number", "cv.index")
    refused(lambda: x[::2], "'x'", "step 2", "m.input")
    refused(lambda: x[0.5:], "'x'", "0.5")
    refused(lambda: x[0, 1], "'x'", "2 indices", "plate 't'")
    refused(lambda: m.random("s", cv.gaussian(0.0, variance=1.0))[0], "'s'", "no plates")
    refused(lambda: m.random("p", cv.dirichlet(np.ones(3)))[0], "'p'", "cv.categorical(p)", "z == 0")
    refused(lambda: m.plates["t"][0], "'t'", "t[1:]")
    z = m.random("z", cv.categorical(np.ones(5) / 5))
    refused(lambda: v[z, 0], "'z'", "plate 'k'", "2 elements")


def test_slices_that_do_not_line_up(m, x):
    sd = m.input("sd", cv.positive, plates=m.plates["t"])
    for action in (lambda: x[1:] - x, lambda: x[1:] - x[:2], lambda: m.random("y", cv.gaussian(x[1:], sd=sd))):
        refused(action, "t[1:]", "do not line up", "x[1:] - x[:-1]")


def test_positions_that_the_data_do_not_have(m):
    y = m.random("y", cv.gaussian(0.0, variance=1.0), plates=m.plate("u"))
    m.let("far", y[7])
    with pytest.raises(cv.DataError, match=r"'u' has 3 elements.*let 'far' needs 8"):
        cv.infer(m, {}, sizes={"u": 3})


# Tables


def test_an_array_or_a_list_leads_to_a_table(m):
    z = m.random("z", cv.categorical([0.2, 0.8]))
    for action in (lambda: np.eye(2)[z], lambda: np.eye(2)[z, 0], lambda: [1.0, 2.0][z]):
        refused(action, "'z'", "cv.table(array)[z]")


def test_tables_that_do_not_fit(m, x):
    z = m.random("z", cv.categorical([0.2, 0.8]))
    refused(lambda: cv.table(np.ones(3))[z], "3 rows", "'z'", "2 classes")
    refused(lambda: cv.table(np.ones(2))[0], "indexed by 0")
    refused(lambda: cv.table(np.ones(2))[x], "'x'", "real")
    refused(lambda: cv.table(np.ones(2))[z, z], "2 indices", "(2,)")
    refused(lambda: cv.table([1.0, np.nan]), "nan")
    refused(lambda: cv.table(["a", "b"]), "not numbers")
    refused(lambda: cv.table(x), "'x'", "x[z]")
    refused(lambda: m.random("y", cv.bernoulli(cv.table([0.5, 2.0])[z])), "'y'", "between 0 and 1", "found 2")
    refused(lambda: m.random("y", cv.categorical(cv.table(np.eye(2) + 1.0)[z])), "'y'", "sum to one")
    refused(lambda: m.random("y", cv.gaussian(cv.table([0.5, 2.0]), variance=1.0)), "'y'", "cv.table(values)[z]")


def test_a_table_is_read_in_the_domain_that_an_argument_needs(m):
    z = m.random("z", cv.categorical([0.2, 0.8]))
    for name, term in (
        ("of probabilities as means", cv.gaussian(cv.table([0.1, 0.9])[z], variance=1.0)),
        ("of positive numbers in a sum", cv.gaussian(2.0 * cv.table([1.0, 2.0])[z] + 1.0, variance=1.0)),
        ("of simplices as vectors", cv.vector_gaussian(cv.table(np.eye(2))[z], covariance=np.eye(2))),
    ):
        m.random(name, term)


# Terms inside terms


def test_a_term_inside_a_term_is_named_after_its_argument(m):
    y = m.random("y", cv.gaussian(cv.gaussian(0.0, variance=1.0), sd=cv.half_normal(1.0)), plates=m.plate("n", 3))
    assert list(m.randoms) == ["y.mean", "y.sd", "y"]
    assert names(m.randoms["y.mean"]) == names(m.randoms["y.sd"]) == ()
    assert y.term.args["mean"] is m.randoms["y.mean"]


def test_names_inside_names_switches_and_expressions(m):
    m.random("y", cv.poisson(cv.gamma(2.0, cv.gamma(1.0, 1.0))))
    case = cv.gaussian(cv.gaussian(0.0, variance=1.0), variance=1.0)
    m.random("s", cv.switch(cv.bernoulli(0.5), case, cv.gaussian(1.0, variance=1.0)))
    m.let("l", cv.gaussian(0.0, variance=1.0) + cv.gaussian(0.0, variance=1.0) * 2.0)
    inner = ["y.rate.rate", "y.rate", "y", "s.selector", "s.0.mean", "s", "l.gaussian", "l.gaussian 2"]
    assert list(m.randoms) == inner


def test_one_term_for_two_variables_is_told(m):
    p = cv.beta(1.0, 1.0)
    m.random("a", cv.bernoulli(p))
    refused(lambda: m.random("b", cv.bernoulli(p)), "'b.probability'", "'a.probability'", "v = m.random(name, term)")
    refused(lambda: m.random("c", cv.beta(*[cv.gamma(1.0, 1.0)] * 2)), "'c.b'", "'c.a'")
    assert list(m.randoms) == ["a.probability", "a"]


def test_a_refused_declaration_leaves_nothing_behind(m):
    refused(lambda: m.random("y", cv.bernoulli(cv.gaussian(0.0, variance=1.0))), "'y.probability'", "must be unit")
    assert not m.randoms
    m.random("y", cv.bernoulli(cv.logistic(cv.gaussian(0.0, variance=1.0))))
    assert list(m.randoms) == ["y.gaussian", "y"]


# Sums by groups


def test_sums_by_what_tells_no_groups(m, x):
    team, t = m.plate("team"), m.plates["t"]
    by = m.input("by", cv.index(team), plates=t)
    other = m.random("other", cv.gaussian(0.0, variance=1.0), plates=team)
    flag = m.random("flag", cv.bernoulli(0.5), plates=t)
    assert names(cv.sum(x, by=by)) == ("team",)
    refused(lambda: cv.sum(other, by=by), "'other'", "plate 't'", "'team'")
    refused(lambda: cv.sum(x, by=flag), "'x'", "flag", "cv.index(groups)")
    refused(lambda: cv.sum(flag, by=by), "'flag'", "takes numbers")
    refused(lambda: cv.sum(x, over=t, by=by), "over a plate and by groups")
    refused(lambda: cv.sum(x), "m.plate")
