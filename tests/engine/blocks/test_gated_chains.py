"""Chains with gated transitions, by the element before, a class, another chain or a regime, against enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import cavity as cv

RNG = np.random.default_rng(11)
SEEN = np.array([0.15, 0.8])  # of a noisy test, where a state is false and true


def chance(p, outcome):
    return p if outcome else 1.0 - p


def test_a_switch_on_the_element_before_is_a_table():
    y = RNG.random(7) < 0.5

    def answer(then):
        m = cv.Model()
        t = m.plate("t")
        x = m.chain("x", over=t, first=cv.bernoulli(0.3), then=then)
        m.random("y", cv.bernoulli(cv.table(SEEN)[x]))
        return cv.infer(m, {"y": y})

    switched = answer(lambda b: cv.switch(b, cv.bernoulli(0.9), cv.bernoulli(0.2)))
    table = answer(lambda b: cv.bernoulli(cv.table([0.2, 0.9])[b]))
    np.testing.assert_allclose(switched["x"].mean, table["x"].mean, rtol=1e-12)
    np.testing.assert_allclose(switched.log_evidence, table.log_evidence, rtol=1e-12)
    mixed = answer(lambda b: cv.mixture(0.25, cv.bernoulli(0.5), cv.bernoulli(cv.table([0.09, 0.93])[b])))
    averaged = answer(lambda b: cv.bernoulli(cv.table([0.125 + 0.75 * 0.09, 0.125 + 0.75 * 0.93])[b]))
    np.testing.assert_allclose(mixed["x"].mean, averaged["x"].mean, rtol=1e-12)
    assert mixed["x class"].mean.shape == (7,)


def test_data_choose_the_case_of_a_step():
    y = RNG.normal(size=6)
    moved = np.array([False, True, False, True, True, False])

    def answer(then):
        m = cv.Model()
        t = m.plate("t")
        jump, width = m.input("moved", cv.boolean, plates=t), m.input("width", cv.positive, plates=t)
        x = m.chain("x", over=t, first=cv.gaussian(0.0, sd=1.0), then=lambda b: then(b, jump, width))
        m.random("y", cv.gaussian(x, sd=0.5))
        return cv.infer(m, {"y": y, "moved": moved, "width": np.where(moved, 2.0, 0.1)})

    one = answer(lambda b, jump, _: cv.switch(jump, cv.gaussian(b, sd=2.0), cv.gaussian(b, sd=0.1)))
    other = answer(lambda b, _, width: cv.gaussian(b, sd=width))
    np.testing.assert_allclose(one["x"].mean, other["x"].mean, rtol=1e-10)
    np.testing.assert_allclose(one.log_evidence, other.log_evidence, rtol=1e-12)


# classes --------------------------------------------------------------------------------------------------------------


def test_classes_of_children_by_enumeration():
    classes, children, years = 3, 4, 4
    share, begin, keep = RNG.dirichlet(np.ones(3)), RNG.uniform(0.1, 0.9, 3), RNG.uniform(0.1, 0.9, 3)
    gain = RNG.uniform(0.1, 0.9, (classes, years))
    y = RNG.random((children, years)) < 0.5
    m = cv.Model()
    k, child, year = m.plate("class", classes), m.plate("child"), m.plate("year")
    gains = m.input("gain", cv.unit, plates=(k, year))
    z = m.random("z", cv.categorical(share), plates=child)
    x = m.chain(
        "x",
        over=year,
        plates=child,
        first=cv.bernoulli(cv.table(begin)[z]),
        then=lambda b: cv.switch(b, cv.bernoulli(cv.table(keep)[z]), cv.bernoulli(gains[z])),
    )
    m.random("y", cv.bernoulli(cv.table(SEEN)[x]))
    data = {"gain": gain, "y": y}
    posterior = cv.infer(m, data)
    evidence = 0.0
    for i in range(children):
        joint = np.zeros((classes, *(2,) * years))
        for c, *path in np.ndindex(joint.shape):
            p = share[c] * chance(begin[c], path[0])
            for j in range(1, years):
                p *= chance(keep[c] if path[j - 1] else gain[c, j], path[j])
            joint[(c, *path)] = p * np.prod([chance(SEEN[s], o) for s, o in zip(path, y[i], strict=True)])
        total = joint.sum()
        evidence += np.log(total)
        np.testing.assert_allclose(posterior["z"].mean[i], joint.reshape(classes, -1).sum(1) / total, rtol=1e-11)
        for j in range(years):
            np.testing.assert_allclose(posterior["x"].mean[i, j], np.take(joint, 1, axis=1 + j).sum() / total)
    np.testing.assert_allclose(posterior.log_evidence, evidence, rtol=1e-12)
    assert posterior.verdict.reason == "exact."
    np.testing.assert_allclose(float(cv.log_density(m, data)({})), evidence, rtol=1e-12)


def test_one_class_for_the_chains_of_several_lanes():
    y = RNG.random((2, 3, 4)) < 0.5  # child, allergen, year
    keep = np.array([[0.2, 0.9], [0.7, 0.4], [0.5, 0.6]])  # by allergen and class
    m = cv.Model()
    child, allergen, year = m.plate("child"), m.plate("allergen"), m.plate("year")
    kept, lost = m.input("kept", cv.unit, plates=allergen), m.input("lost", cv.unit, plates=allergen)
    z = m.random("z", cv.bernoulli(0.4), plates=child)
    x = m.chain(
        "x",
        over=year,
        plates=(child, allergen),
        first=cv.bernoulli(0.5),
        then=lambda b: cv.switch(z, cv.bernoulli(kept), cv.bernoulli(lost * cv.table([0.5, 1.0])[b])),
    )
    m.random("y", cv.bernoulli(cv.table(SEEN)[x]))
    posterior = cv.infer(m, {"kept": keep[:, 1], "lost": keep[:, 0], "y": y})
    for i in range(2):
        log = np.log([0.6, 0.4])
        for a, c in itertools.product(range(3), range(2)):
            table = np.full(2, keep[a, 1]) if c else keep[a, 0] * np.array([0.5, 1.0])
            known = np.array([chance(SEEN[s], y[i, a, 0]) for s in (0, 1)]) * 0.5
            for j in range(1, 4):
                step = np.stack([1.0 - table, table], axis=1)
                known = (known @ step) * [chance(SEEN[s], y[i, a, j]) for s in (0, 1)]
            log[c] += np.log(known.sum())
        np.testing.assert_allclose(posterior["z"].mean[i], 1.0 / (1.0 + np.exp(log[0] - log[1])), rtol=1e-10)


def test_an_observed_chain_tells_of_its_class():
    x = np.array([[0, 1, 0, 1, 0], [1, 1, 1, 1, 1], [0, 0, 0, 1, 1]], bool)
    move, share = np.array([0.6, 0.1]), 0.3
    m = cv.Model()
    who, t = m.plate("who"), m.plate("t")
    z = m.random("z", cv.bernoulli(share), plates=who)
    moves = cv.table(np.stack([move, 1.0 - move]))  # to true, from false and true
    m.chain("x", over=t, plates=who, first=cv.bernoulli(0.5), then=lambda b: cv.bernoulli(moves[b, z]))
    posterior = cv.infer(m, {"x": x})
    moved = (x[:, 1:] != x[:, :-1]).sum(1)
    p = np.stack([0.5 * q**moved * (1 - q) ** (4 - moved) for q in move], 1) * [1 - share, share]
    np.testing.assert_allclose(posterior["z"].mean, p[:, 1] / p.sum(1), rtol=1e-11)
    np.testing.assert_allclose(posterior.log_evidence, np.log(p.sum(1)).sum(), rtol=1e-12)


@pytest.mark.parametrize("alike", [False, True])
def test_movers_and_stayers_are_told_apart(alike):
    """Classes with one prior begin apart, and their chances come back."""
    rng = np.random.default_rng(3)
    stays = rng.random(150) < 0.5
    x = np.zeros((150, 9), bool)
    for j in range(1, 9):
        x[:, j] = x[:, j - 1] ^ (rng.random(150) < np.where(stays, 0.05, 0.6))
    m = cv.Model()
    k, who, t = m.plate("class", 2), m.plate("who"), m.plate("t")
    prior = cv.beta(1.0, 1.0) if alike else cv.beta(m.input("a", cv.positive, plates=k), 1.0)
    up, down = m.random("up", prior, plates=k), m.random("stay up", cv.beta(1.0, 1.0), plates=k)
    z = m.random("z", cv.categorical(m.random("share", cv.dirichlet(np.ones(2)))), plates=who)
    m.chain(
        "x",
        over=t,
        plates=who,
        first=cv.bernoulli(0.5),
        then=lambda b: cv.switch(b, cv.bernoulli(down[z]), cv.bernoulli(up[z])),
    )
    posterior = cv.infer(m, {"x": x, **({} if alike else {"a": [1.0, 3.0]})}, accuracy="fast")
    found = posterior["z"].mean.argmax(1) == posterior["up"].mean.argmin()
    assert (found == stays).mean() > 0.95
    np.testing.assert_allclose(np.sort(posterior["up"].mean), [0.05, 0.6], atol=0.05)


# gates that move along ------------------------------------------------------------------------------------------------


def test_a_chain_that_gates_a_chain_by_enumeration():
    steps = 5
    a, p, w = RNG.dirichlet(np.ones(3), 3), RNG.uniform(0.05, 0.95, (3, 2)), RNG.uniform(0.1, 0.9, 3)
    y, v = RNG.random(steps) < 0.5, RNG.random(steps) < 0.5
    m = cv.Model()
    t = m.plate("t")
    z = m.chain("z", over=t, first=cv.categorical([0.2, 0.3, 0.5]), then=lambda s: cv.categorical(cv.table(a)[s]))
    x = m.chain("x", over=t, first=cv.bernoulli(0.4), then=lambda b: cv.bernoulli(cv.table(p)[z, b]))
    m.random("y", cv.bernoulli(cv.table(SEEN)[x]))
    m.random("v", cv.bernoulli(cv.table(w)[z]))
    posterior = cv.infer(m, {"y": y, "v": v})
    total, states, gates = 0.0, np.zeros(steps), np.zeros((steps, 3))
    for zs in itertools.product(range(3), repeat=steps):
        for xs in itertools.product(range(2), repeat=steps):
            q = [0.2, 0.3, 0.5][zs[0]] * chance(0.4, xs[0])
            for j in range(steps):
                q *= a[zs[j - 1], zs[j]] * chance(p[zs[j], xs[j - 1]], xs[j]) if j else 1.0
                q *= chance(SEEN[xs[j]], y[j]) * chance(w[zs[j]], v[j])
            total += q
            states += q * np.array(xs)
            gates[np.arange(steps), zs] += q
    np.testing.assert_allclose(posterior["x"].mean, states / total, rtol=1e-11)
    np.testing.assert_allclose(posterior["z"].mean, gates / total, rtol=1e-11)
    np.testing.assert_allclose(posterior.log_evidence, np.log(total), rtol=1e-12)
    assert posterior.verdict.reason == "exact."


def switching(steps, noise, rows=((1.0, 0.5, 0.04), (1.0, -0.5, 0.04)), stay=0.8):
    """A switching linear system, z and x, observed as y; `rows` are the slope, the drift and the variance by regime."""
    m = cv.Model()
    t = m.plate("t")
    z = m.chain(
        "z",
        over=t,
        first=cv.bernoulli(0.5),
        then=lambda s: cv.bernoulli(cv.table([1.0 - stay, stay])[s]),
    )
    down, up = ((lambda b, row=row: cv.gaussian(row[0] * b + row[1], variance=row[2])) for row in rows)
    x = m.chain("x", over=t, first=cv.gaussian(0.0, variance=4.0), then=lambda b: cv.switch(z, up(b), down(b)))
    m.random("y", cv.gaussian(x, variance=noise))
    return m


def enumerated(y, noise, rows, stay):
    """P(z), means and variances of x, and the log evidence, by a Kalman smoother for every path of regimes."""
    paths = np.array(list(itertools.product(range(2), repeat=len(y))))
    log = np.full(len(paths), np.log(0.5))
    mean, variance = np.zeros(len(paths)), np.full(len(paths), 4.0)
    a, b, q = (np.array([row[i] for row in rows])[paths] for i in range(3))
    filtered, predicted = [], []
    for j, seen in enumerate(y):
        if j:
            log += np.log(np.where(paths[:, j] == paths[:, j - 1], stay, 1.0 - stay))
            mean, variance = a[:, j] * mean + b[:, j], a[:, j] ** 2 * variance + q[:, j]
        predicted.append((mean, variance))
        if not np.isnan(seen):
            total = variance + noise
            log += -0.5 * np.log(2.0 * np.pi * total) - 0.5 * (seen - mean) ** 2 / total
            mean, variance = mean + variance / total * (seen - mean), variance * noise / total
        filtered.append((mean, variance))
    smoothed = [filtered[-1]]
    for j in range(len(y) - 2, -1, -1):
        gain = filtered[j][1] * a[:, j + 1] / predicted[j + 1][1]
        mean = filtered[j][0] + gain * (smoothed[0][0] - predicted[j + 1][0])
        variance = filtered[j][1] + gain**2 * (smoothed[0][1] - predicted[j + 1][1])
        smoothed.insert(0, (mean, variance))
    evidence = np.logaddexp.reduce(log)
    weight = np.exp(log - evidence)
    means = np.array([weight @ m for m, _ in smoothed])
    second = np.array([weight @ (v + m**2) for m, v in smoothed])
    return weight @ paths, means, second - means**2, evidence


SYSTEMS = {
    "drifts": (((1.0, -0.5, 0.04), (1.0, 0.5, 0.04)), 2.0, 0.9),
    "volatility": (((1.0, 0.0, 0.01), (1.0, 0.0, 1.0)), 0.25, 0.85),
    "slopes": (((0.95, 0.0, 0.1), (-0.5, 1.0, 0.1)), 0.3, 0.8),
}


@pytest.mark.parametrize("name", SYSTEMS)
def test_switching_systems_by_enumeration(name):
    rows, noise, stay = SYSTEMS[name]
    y = np.cumsum(RNG.normal(size=11))
    y[[3, 7]] = np.nan
    posterior = cv.infer(switching(11, noise, rows, stay), {"y": y})
    z, mean, variance, evidence = enumerated(y, noise, rows, stay)
    assert np.abs(posterior["z"].mean - z).mean() < 0.002
    np.testing.assert_allclose(posterior["x"].mean, mean, atol=0.02 * np.sqrt(variance).max())
    np.testing.assert_allclose(posterior["x"].sd, np.sqrt(variance), rtol=0.02)
    np.testing.assert_allclose(posterior.log_evidence, evidence, atol=0.01)


def test_short_switching_systems_are_exact():
    rows, noise, stay = SYSTEMS["drifts"]
    y = np.array([0.3, np.nan, 1.5, 0.2])
    posterior = cv.infer(switching(4, noise, rows, stay), {"y": y})
    z, mean, variance, evidence = enumerated(y, noise, rows, stay)
    np.testing.assert_allclose(posterior["z"].mean, z, rtol=1e-9)
    np.testing.assert_allclose(posterior["x"].mean, mean, rtol=1e-9)
    np.testing.assert_allclose(posterior["x"].variance, variance, rtol=1e-9)
    np.testing.assert_allclose(posterior.log_evidence, evidence, rtol=1e-10)


def test_an_observed_chain_with_regimes_is_a_hidden_markov_model():
    rows, _, stay = SYSTEMS["slopes"]
    y = np.cumsum(RNG.normal(size=9))
    m = cv.Model()
    t = m.plate("t")
    z = m.chain("z", over=t, first=cv.bernoulli(0.5), then=lambda s: cv.bernoulli(cv.table([1.0 - stay, stay])[s]))
    slope, drift, width = (cv.table([row[i] for row in rows]) for i in range(3))
    m.chain(
        "y",
        over=t,
        first=cv.gaussian(0.0, variance=4.0),
        then=lambda b: cv.gaussian(slope[z] * b + drift[z], variance=width[z]),
    )
    posterior = cv.infer(m, {"y": y})
    known = np.array([0.5, 0.5])
    total = -0.5 * np.log(2 * np.pi * 4.0) - y[0] ** 2 / 8.0
    filtered = [known]
    move = np.array([[stay, 1 - stay], [1 - stay, stay]])
    likelihoods = []
    for j in range(1, 9):
        likelihoods.append(
            [np.exp(-0.5 * (y[j] - a * y[j - 1] - b) ** 2 / q) / np.sqrt(2 * np.pi * q) for a, b, q in rows]
        )
        known = (known @ move) * likelihoods[-1]
        total += np.log(known.sum())
        known = known / known.sum()
        filtered.append(known)
    back, expected = np.ones(2), [filtered[-1]]
    for j in range(7, -1, -1):
        back = move @ (likelihoods[j] * back)
        back /= back.sum()
        expected.insert(0, filtered[j] * back / (filtered[j] @ back))
    np.testing.assert_allclose(posterior["z"].mean, np.array(expected)[:, 1], rtol=1e-10)
    np.testing.assert_allclose(posterior.log_evidence, total, rtol=1e-12)


def test_marginals_where_nothing_is_observed():
    steps, rows = 5, ((1.0, 0.0, 0.1), (0.5, -1.0, 0.4))
    chances = np.array([[0.1, 0.3], [0.9, 0.2]])  # by regime and the state before
    m = cv.Model()
    t = m.plate("t", steps)
    z = m.chain("z", over=t, first=cv.bernoulli(0.5), then=lambda s: cv.bernoulli(cv.table([0.1, 0.7])[s]))
    x = m.chain("x", over=t, first=cv.bernoulli(0.4), then=lambda b: cv.bernoulli(cv.table(chances)[z, b]))
    m.chain(
        "g",
        over=t,
        first=cv.gaussian(0.0, variance=1.0),
        then=lambda b: cv.switch(z, *(cv.gaussian(row[0] * b + row[1], variance=row[2]) for row in reversed(rows))),
    )
    posterior = cv.infer(m, {})
    states, mean, second = np.zeros(steps), np.zeros(steps), np.zeros(steps)
    for path in itertools.product(range(2), repeat=steps):
        weight, p, centre, variance = 0.5, [0.4], [0.0], [1.0]
        for before, now in itertools.pairwise(path):
            weight *= chance([0.1, 0.7][before], now)
            low, high = chances[now]
            p.append((1.0 - p[-1]) * low + p[-1] * high)
            centre.append(rows[now][0] * centre[-1] + rows[now][1])
            variance.append(rows[now][0] ** 2 * variance[-1] + rows[now][2])
        states += weight * np.array(p)
        mean += weight * np.array(centre)
        second += weight * (np.array(variance) + np.array(centre) ** 2)
    assert x.plates == (t,)
    np.testing.assert_allclose(posterior["x"].mean, states, rtol=1e-12)
    np.testing.assert_allclose(posterior["g"].mean, mean, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(posterior["g"].variance, second - mean**2, rtol=1e-10)


def test_a_file_keeps_it(tmp_path):
    posterior = cv.infer(switching(4, 1.0), {"y": [0.3, 1.0, 1.5, 0.2]})
    posterior.save(tmp_path / "posterior")
    loaded = cv.load(tmp_path / "posterior")
    np.testing.assert_array_equal(loaded["x"].mean, posterior["x"].mean)
    assert loaded.explain().splitlines()[0] == posterior.explain().splitlines()[0]
    assert "older ones by two moments" in posterior.explain()


# refusals -------------------------------------------------------------------------------------------------------------


def gated_by(make, lanes=False):
    """A model whose chain x has a step that `make(model, plates, previous)` returns."""
    m = cv.Model()
    who, t = m.plate("who", 2), m.plate("t")
    made = make(m, who, t)
    x = m.chain("x", over=t, plates=(who,) if lanes else (), first=cv.gaussian(0.0, sd=1.0), then=made)
    m.random("y", cv.gaussian(x, sd=1.0))
    return m


def shared(m, who, t):
    z = m.random("z", cv.bernoulli(0.5), plates=t)
    return lambda b: cv.switch(z, cv.gaussian(b, sd=1.0), cv.gaussian(b, sd=2.0))


def compared(m, who, t):
    a = m.random("a", cv.gaussian(0.0, sd=1.0))
    return lambda b: cv.switch(a > 0, cv.gaussian(b, sd=1.0), cv.gaussian(b, sd=2.0))


def chosen(m, who, t):
    z, of = m.random("z", cv.bernoulli(0.5), plates=who), m.input("of", cv.index(who), plates=t)
    return lambda b: cv.switch(z[of], cv.gaussian(b, sd=1.0), cv.gaussian(b, sd=2.0))


def many(m, who, t):
    z = m.random("z", cv.categorical(np.full(80, 1 / 80)), plates=t)
    return lambda b: cv.gaussian(b + cv.table(np.arange(80.0))[z], sd=1.0)


@pytest.mark.parametrize(
    ("make", "lanes", "words"),
    [
        (shared, True, ("'z'", "(who, t)", "not independent")),
        (compared, False, ("'x'", "a comparison of 'a'", "cv.bernoulli(cv.probit")),
        (chosen, False, ("'x'", "an element of 'z'", "plate")),
        (many, False, ("80 joint states", "64")),
    ],
)
def test_what_has_no_operator_is_told(make, lanes, words):
    data = {"y": np.zeros((2, 3)) if lanes else np.zeros(3)}
    if make is chosen:
        data |= {"of": [0, 1, 1]}
    with pytest.raises(cv.CavityError) as problem:
        cv.infer(gated_by(make, lanes), data)
    assert all(word in str(problem.value) for word in words), str(problem.value)


def test_a_tree_is_not_gated():
    m = cv.Model()
    n = m.plate("n")
    z = m.random("z", cv.bernoulli(0.5), plates=n)
    x = m.tree(
        "x",
        over=n,
        parent=m.input("parent", cv.index(n), plates=n),
        root=cv.gaussian(0.0, sd=1.0),
        then=lambda b: cv.switch(z, cv.gaussian(b, sd=1.0), cv.gaussian(b, sd=2.0)),
    )
    m.random("y", cv.gaussian(x, sd=1.0))
    with pytest.raises(cv.UnsupportedError, match="is a tree whose transitions are gated"):
        cv.infer(m, {"y": [0.0, 1.0], "parent": [0, 0]})
