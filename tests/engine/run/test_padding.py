"""Padded plates: data of one row more compile nothing, and what is padded changes no answer and shows nowhere.

Without padding a model runs where the size of the plate is asked for: `sizes={"row": n}`.
"""

from __future__ import annotations

import jax
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from small_models import close, dice_model, mean_model, same, skills

import cavity as cv
from cavity import models
from cavity.compiler.plan import make_plan
from cavity.engine.distributions.tabulated import Tabulated
from cavity.engine.run.machine import Machine
from cavity.engine.run.padded import with_larger
from cavity.engine.support import compiled
from cavity.engine.values.few_sizes import fewest, padded_size
from cavity.engine.values.instances import batches, layout, padded_room, room
from cavity.engine.values.padding import shuffled

FAST = {"execution": "interpret", "accuracy": "fast"}  # one inference, without machine code


def straight_line(out):
    """y of row, from slope * x + bias and a shared number p."""

    def build():
        m = cv.Model("line")
        row = m.plate("row")
        x = m.input("x", cv.real, plates=row)
        slope, bias = (m.random(name, cv.gaussian(0.0, variance=4.0)) for name in ("slope", "bias"))
        out(m, slope * x + bias, row)
        return m

    return build


def noisy(m, mean, row):
    m.random("y", cv.gaussian(mean, precision=m.random("p", cv.gamma(2.0, 2.0))), plates=row)


def counted(m, mean, row):
    m.random("y", cv.poisson(cv.exp(mean)), plates=row)


def probit(m, mean, row):
    m.random("y", cv.bernoulli(cv.probit(mean)), plates=row)


def logistic(m, mean, row):
    m.random("y", cv.bernoulli(cv.logistic(mean)), plates=row)


def between(m, mean, row):
    """Kept above a bound: a constraint without noise."""
    m.constrain(mean > m.input("least", cv.real, plates=row))


def gamma_model():
    m = cv.Model("gamma")
    rate = m.random("rate", cv.gamma(2.0, 1.0))
    m.random("y", cv.gamma(3.0, rate=rate), plates=m.plate("row"))
    return m


def coin():
    m = cv.Model("coin")
    m.random("y", cv.bernoulli(m.random("p", cv.beta(1.0, 2.0))), plates=m.plate("row"))
    return m


def groups():
    """A level for each group, chosen by data."""
    m = cv.Model("groups")
    group, row = m.plate("group"), m.plate("row")
    level = m.random("level", cv.gaussian(0.0, variance=2.0), plates=group)
    chosen = level[m.input("group of row", cv.index(group), plates=row)]
    m.random("y", cv.gaussian(chosen, precision=m.random("p", cv.gamma(2.0, 2.0))), plates=row)
    return m


def student():
    """A factor for slots."""
    m = cv.Model("student")
    mean = m.random("mean", cv.gaussian(0.0, variance=4.0))
    m.random("y", cv.student_t(4.0, mean, 1.0), plates=m.plate("row"))
    return m


def regimes():
    """A shared boolean that chooses the mean of all rows."""
    m = cv.Model("regimes")
    high = m.random("high", cv.bernoulli(0.5))
    low_mean, high_mean = m.random("a", cv.gaussian(-1.0, variance=1.0)), m.random("b", cv.gaussian(1.0, variance=1.0))
    m.random(
        "y",
        cv.switch(high, cv.gaussian(high_mean, variance=1.0), cv.gaussian(low_mean, variance=1.0)),
        plates=m.plate("row"),
    )
    return m


def witnesses():
    """Tables: each row sees a shared boolean through its own noise."""
    m = cv.Model("witnesses")
    row = m.plate("row")
    truth = m.random("truth", cv.bernoulli(0.3))
    right, wrong = (m.input(name, cv.unit, plates=row) for name in ("right", "wrong"))
    m.random("y", cv.switch(truth, cv.bernoulli(right), cv.bernoulli(wrong)), plates=row)
    return m


def features():
    """An inner product written as a sum, whose messages are contractions of the data."""
    m = cv.Model("features")
    feature, row = m.plate("feature", 3), m.plate("row")
    x = m.input("x", cv.real, plates=(row, feature))
    weight = m.random("weight", cv.gaussian(0.0, variance=1.0), plates=feature)
    noise = m.random("noise", cv.gamma(2.0, 2.0))
    m.random("y", cv.gaussian(cv.sum(weight * x, over=feature), precision=noise), plates=row)
    return m


def grid():
    """Two padded plates of one factor, the first of a given order."""
    m = cv.Model("grid")
    rater, row = m.plate("rater"), m.plate("row")
    x = m.input("x", cv.real, plates=(rater, row))
    slope, bias = (m.random(name, cv.gaussian(0.0, variance=4.0)) for name in ("slope", "bias"))
    m.random("y", cv.bernoulli(cv.probit(slope * x + bias)), plates=(rater, row))
    return m


def of(n, kind):
    """Data of n rows."""
    rng = np.random.default_rng(n)
    x = rng.normal(size=n)
    y = 0.7 * x + 0.3 + rng.normal(size=n)
    data = {
        "real": {"x": x, "y": y},
        "true": {"x": x, "y": y > 0},
        "count": {"x": x, "y": rng.poisson(np.exp(0.5 * x))},
        "bounds": {"x": x, "least": 0.7 * x - 1.0},
        "missing": {"x": x, "y": np.where(np.arange(n) % 4 == 3, np.nan, y)},
        "coin": {"y": y > 0},
        "positive": {"y": rng.gamma(3.0, size=n)},
        "alone": {"y": y},
        "group": {"y": y, "group of row": rng.integers(0, 3, n)},
        "game": {"winner": rng.integers(0, 2, n), "loser": rng.integers(2, 4, n)},
        "dice": {"x": rng.integers(0, 3, n)},
        "vectors": {"x": rng.normal(size=(n, 2)), "y": rng.integers(0, 3, n)},
        "features": {"y": y, "x": rng.normal(size=(n, 3))},
        "grid": {"y": rng.normal(size=(3, n)) > 0, "x": rng.normal(size=(3, n))},
        "witness": {"y": y > 0, "right": rng.uniform(0.6, 0.9, n), "wrong": rng.uniform(0.1, 0.4, n)},
    }
    return data[kind]


CASES = {
    "coin": (coin, "coin", "row", {}),
    "dice": (dice_model, "dice", "n", {}),
    "mean": (mean_model, "dice", "n", {}),
    "gamma": (gamma_model, "positive", "row", {}),
    "line": (straight_line(noisy), "real", "row", {}),
    "line with missing values": (straight_line(noisy), "missing", "row", {"method": "vmp"}),
    "probit": (straight_line(probit), "true", "row", {}),
    "power": (straight_line(probit), "true", "row", {"method": cv.power(0.5)}),
    "logistic by NCVMP": (straight_line(logistic), "true", "row", {"method": "ncvmp"}),
    "Poisson": (straight_line(counted), "count", "row", {}),
    "bounds": (straight_line(between), "bounds", "row", {}),
    "softmax": (lambda: models.softmax_regression(2, 3), "vectors", "row", {}),
    "multinomial probit": (lambda: models.multinomial_probit(2, 3), "vectors", "row", {}),
    "groups": (groups, "group", "row", {"sizes": {"group": 3}}),
    "skills": (skills, "game", "game", {"sizes": {"player": 4}}),
    "student": (student, "alone", "row", {"method": "ep"}),
    "regimes": (regimes, "alone", "row", {"restarts": 2}),
    "features": (features, "features", "row", {"method": "vmp"}),
    "grid": (grid, "grid", "row", {}),
    "witnesses": (witnesses, "witness", "row", {"method": "ep"}),
}


def both(name, n, **more):
    """The posteriors with and without padding."""
    build, kind, plate, options = CASES[name]
    options = {**FAST, **options, **more}
    sizes = options.pop("sizes", {})
    data = of(n, kind)
    raters = {"rater": 3} if kind == "grid" else {}
    return [cv.infer(build(), data, sizes={**sizes, **own}, **options) for own in ({}, {plate: n, **raters})]


def check_same(padded, plain):
    """The same decisions, the same shapes, and answers that agree but for rounding."""
    assert padded.machine.larger is not None
    assert plain.machine.larger is None
    assert (padded.iterations, padded.code, padded.floored) == (plain.iterations, plain.code, plain.floored)
    assert jax.tree.map(np.shape, padded.result.outputs) == jax.tree.map(np.shape, plain.result.outputs)
    close(padded.log_evidence, plain.log_evidence, rtol=1e-12)
    close(list(padded.evidence.values()), list(plain.evidence.values()), rtol=1e-12, atol=1e-12)
    for variable in padded.result.outputs["beliefs"].keys() & padded.model.randoms.keys():
        own, other = padded[variable], plain[variable]
        close(own.mean, other.mean, rtol=1e-12, atol=1e-12 * np.max(other.sd))
        close(own.variance, other.variance, rtol=1e-12, atol=1e-13)  # of a state that is all but certain
    for joint in padded.graph.joints:
        close(*(p.naturals_of(joint.variable.name)[1] for p in (padded, plain)), rtol=1e-11, atol=1e-12)
    for own, other in zip(*(jax.tree.leaves(p.result.outputs["messages"]) for p in (padded, plain)), strict=True):
        close(own, other, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_padding_changes_no_answer(name):
    check_same(*both(name, 17))


@pytest.mark.parametrize("name", ["dice", "line", "probit", "groups", "skills", "student", "regimes"])
@pytest.mark.parametrize("n", [1, 5, 16])
def test_padding_changes_no_answer_of_few_rows(name, n):
    check_same(*both(name, n))


@given(st.integers(1, 70), st.integers(0, 3))
@settings(max_examples=6, deadline=None)
def test_padding_changes_no_answer_of_any_size_and_seed(n, seed):
    check_same(*both("skills", n, seed=seed))


# Compilation ----------------------------------------------------------------------------------------------------------


def test_one_more_row_compiles_nothing():
    program = cv.compile(models.logistic_regression(2), ["y"])
    rng, kept = np.random.default_rng(0), []
    for n in (17, 18, 19, 20):
        x = rng.normal(size=(n, 2))
        posterior = program({"x": x, "y": x[:, 0] > 0})
        assert posterior["weight"].mean.shape == (2,)
        assert posterior["weight"].variance.shape == posterior["weight"].sd.shape
        assert "weight" in posterior.explain()
        kept.append(len(compiled.KEPT))
    assert program.traces == 1
    assert len(set(kept)) == 1
    program({"x": np.vstack([x, x[:1]]), "y": [*(x[:, 0] > 0), True]})
    assert program.traces == 2  # 21 rows are padded to 24


def test_another_model_of_the_same_structure_compiles_nothing_for_another_number_of_rows():
    cv.infer(coin(), of(9, "coin"))
    program = cv.compile(coin(), ["y"], execution="auto")
    program(of(13, "coin"))
    assert program.traces == 0


def test_what_was_integrated_out_is_recovered_without_compiling():
    program, kept = cv.compile(skills(), sizes={"player": 4}), []
    for n in (17, 20, 18):
        assert program(of(n, "game"))["skill"].mean.shape == (4,)
        kept.append(len(compiled.KEPT))
    assert len(set(kept)) == 1


@pytest.mark.parametrize("name", ["logistic by NCVMP", "groups", "skills"])
def test_predictions_of_one_more_row_trace_nothing(name):
    build, kind, _, options = CASES[name]
    posterior, kept = cv.infer(build(), of(9, kind), **{**FAST, **options}), []
    for n in (17, 19, 20):
        found = posterior.predict({key: x for key, x in of(n, kind).items() if key in posterior.model.inputs})
        for marginal in found.values():
            assert marginal.mean.shape[0] == marginal.variance.shape[0] == n
        kept.append(len(compiled.KEPT))
    assert len(posterior.predictors) == 1
    assert len(set(kept)) == 1


@pytest.mark.parametrize("name", ["line", "Poisson", "softmax", "groups", "skills", "features"])
def test_predictions_are_those_without_padding(name):
    posterior, _ = both(name, 17)
    _, kind, plate, _ = CASES[name]
    new = {key: value for key, value in of(18, kind).items() if key in posterior.model.inputs}
    padded, plain = (posterior.predict(new, sizes=own) for own in ({}, {plate: 18}))
    assert padded.keys() == plain.keys()
    for variable, own in padded.items():
        other = plain[variable]
        assert [*map(np.shape, jax.tree.leaves(own.family))] == [*map(np.shape, jax.tree.leaves(other.family))]
        close(own.mean, other.mean, rtol=1e-12, atol=1e-14)
        close(own.variance, other.variance, rtol=1e-12, atol=1e-14)
        assert own.note == other.note
        if own.family.kind == "real":
            close(own.quantile([0.1, 0.9]), other.quantile([0.1, 0.9]), rtol=1e-9)


def test_the_table_of_a_predicted_expression_has_the_rows_that_were_asked_for():
    def build():
        m = straight_line(noisy)()
        m.let("square", (m.randoms["slope"] * m.inputs["x"]) ** 2)
        return m

    posterior = cv.infer(build(), of(9, "real"), **FAST)
    new = {"x": of(18, "real")["x"]}
    padded, plain = (posterior.predict(new, sizes=own)["square"] for own in ({}, {"row": 18}))
    assert isinstance(padded.distribution, Tabulated)
    close(padded.quantile(0.3), plain.quantile(0.3), rtol=1e-9)
    close(padded.distribution.mean(), plain.mean, rtol=1e-12)


# What a user sees -----------------------------------------------------------------------------------------------------


def test_everything_outside_a_run_has_the_rows_of_the_data(tmp_path):
    n = 18
    padded, plain = (
        cv.infer(skills(), of(n, "game"), sizes={"player": 4, **own}, tolerance=1e-9) for own in ({}, {"game": n})
    )
    assert padded["margin"].mean.shape == (n,)
    close(padded["margin"].mean, plain["margin"].mean, rtol=1e-11)
    close(padded["margin"].variance, plain["margin"].variance, rtol=1e-11)
    assert padded.summary().splitlines()[:-1] == plain.summary().splitlines()[:-1]  # all but how long it took
    assert padded["margin"].sample(0, (3,)).shape == (3, n)
    predicted = padded.predict({"winner": [0, 1, 2], "loser": [1, 2, 3]})["margin"]
    assert predicted.mean.shape == (3,)
    padded.save(tmp_path / "posterior")
    again = cv.load(tmp_path / "posterior", skills())
    same(again["margin"], padded["margin"])
    for own, other in zip(*(jax.tree.leaves(p.result.outputs) for p in (again, padded)), strict=True):
        np.testing.assert_array_equal(own, other)


def test_leave_one_out_and_trust_read_the_data_as_they_are():
    padded, plain = both("probit", 18)
    close(padded.loo()["y"], plain.loo()["y"], rtol=1e-9)
    assert padded.loo()["y"].shape == (18,)
    assert padded.trust().verdict == plain.trust().verdict


def test_a_batch_is_padded():
    n = 18
    datas = [of(n, "true"), {**of(n, "true"), "y": ~of(n, "true")["y"]}]
    padded, plain = (
        cv.compile(straight_line(probit)(), ["y"], sizes=own, tolerance=1e-10, **FAST) for own in ({}, {"row": n})
    )
    for one, other in zip(padded.batch(datas), plain.batch(datas), strict=True):
        check_same(one, other)


def test_an_integration_is_padded():
    data = of(18, "alone")

    def posterior(sizes):
        m = cv.Model("spread")
        mean, precision = m.random("mean", cv.gaussian(0.0, variance=4.0)), m.random("p", cv.gamma(2.0, 2.0))
        m.random("y", cv.gaussian(mean, precision=precision), plates=m.plate("row"))
        return cv.infer(m, data, integrate=["p"], sizes=sizes, **FAST)

    padded, plain = posterior({}), posterior({"row": 18})
    close(padded.log_evidence, plain.log_evidence, rtol=1e-11)
    close(padded["mean"].variance, plain["mean"].variance, rtol=1e-10)


def test_a_prior_from_earlier_data_meets_padded_data():
    first = both("probit", 18)
    later = [
        cv.infer(straight_line(probit)(), of(5, "true"), prior=p, sizes=own, **FAST)
        for p, own in zip(first, ({}, {"row": 5}), strict=True)
    ]
    check_same(*later)


# What is not padded ---------------------------------------------------------------------------------------------------


def test_plates_of_beliefs_chains_and_sums_are_not_padded_and_explain_says_why():
    m = cv.Model("several")
    day, row, part = m.plate("day"), m.plate("row"), m.plate("part")
    first = cv.gaussian(0.0, variance=1.0)
    level = m.chain("level", over=day, first=first, then=lambda last: cv.gaussian(last, variance=1.0))
    share = m.input("share", cv.real, plates=(row, part))
    slope = m.random("slope", cv.gaussian(0.0, variance=1.0))
    m.random("y", cv.gaussian(slope * cv.sum(share, over=part), variance=1.0), plates=row)
    m.random("z", cv.gaussian(level, variance=1.0))
    data = {"share": np.ones((3, 2)), "y": np.ones(3), "z": np.ones(4)}
    text = cv.explain(m, data)
    assert "each size of day is compiled: level has a belief for each element" in text
    assert "each size of part is compiled: y reads several elements at once" in text
    assert "each size of row" not in text
    larger = cv.infer(m, data, **FAST).machine.larger
    assert [plate.name for plate in larger.padded] == ["row"]


def test_sparse_inputs_and_sizes_that_were_asked_for_stay_as_they_are():
    m = models.logistic_regression(2)
    x = np.arange(10.0).reshape(5, 2) % 3.0
    data = {"x": x, "y": [True, False, True, True, False]}
    assert cv.infer(m, data, **FAST).machine.larger is not None
    assert cv.infer(m, {**data, "x": scipy.sparse.csr_array(x)}, **FAST).machine.larger is None
    assert cv.infer(m, data, sizes={"row": 5}, **FAST).machine.larger is None


def test_a_name_that_a_program_keeps_for_the_number_of_rows_is_refused():
    m = cv.Model()
    row = m.plate("row")
    m.random("number in row", cv.gaussian(0.0, variance=1.0), plates=row)
    with pytest.raises(cv.ModelError, match="'number in row', the name under which"):
        cv.infer(m, {"number in row": [1.0]})


# Sizes and schedules --------------------------------------------------------------------------------------------------


def test_sizes_are_few_and_waste_less_than_a_quarter():
    sizes = [padded_size(n) for n in range(1, 5000)]
    assert sorted(set(sizes))[:10] == [16, 20, 24, 28, 32, 40, 48, 56, 64, 80]
    for n, size in enumerate(sizes, 1):
        assert fewest(size) <= n <= size
        assert size < 1.25 * n or n < 16
        assert padded_size(fewest(size)) == size
        assert fewest(size) == 1 or padded_size(fewest(size) - 1) < size


def plan_of_games():
    plan = make_plan(skills(), frozenset(), sizes={"player": 4, "game": 20})
    (block,) = [block for block in plan.blocks if block.plates[0].name == "game"]
    return plan, block


def test_a_padded_schedule_has_room_for_all_numbers_of_rows():
    _, block = plan_of_games()
    (game,) = block.plates
    for n in range(1, 16000):
        size = padded_size(n)
        own, larger = room(block, {"game": n}), padded_room(block, {"game": size}, (game,))
        assert own[0] <= larger[0]
        assert own[1] <= larger[1]
        assert larger[0] == batches(size, True)
        assert np.prod(larger) < 1.35 * np.prod(own) or n < 16


@pytest.mark.parametrize("n", [1, 2, 7, 8, 15, 17, 20, 1625, 1626, 3599, 3600, 3999, 4000, 12801])
def test_batches_are_those_without_padding(n):
    plan, block = plan_of_games()
    game, _ = block.plates[0], plan.latent
    machine = with_larger(Machine(plan, {"player": 4, "game": n}), (game,))
    key = jax.random.key(3)
    with jax.enable_x64(True):
        plain = layout(block, machine.scope({}), block.elements, key)
        padded = layout(block, machine.larger.scope({"number in game": np.int32(n)}), block.elements, key)
    order = np.zeros((1, 1), int) if plain is None else np.asarray(plain.order)
    present = np.ones((1, 1), bool) if plain is None else np.asarray(plain.present)
    rows, columns = order.shape
    np.testing.assert_array_equal(np.asarray(padded.present)[:rows, :columns], present)
    np.testing.assert_array_equal(np.asarray(padded.order)[:rows, :columns][present], order[present])
    assert np.asarray(padded.present).sum() == n


@pytest.mark.parametrize("size", [1, 2, 16, 100, 1625, 1626, 1792])
def test_the_random_order_of_some_places_is_that_of_so_many(size):
    key = jax.random.key(5)
    with jax.enable_x64(True):
        for number in {1, size // 2 or 1, size - 1 or 1, size}:
            found = np.asarray(jax.jit(shuffled, static_argnums=1)(key, size, np.int32(number)))
            np.testing.assert_array_equal(found[:number], jax.random.permutation(key, number))
            np.testing.assert_array_equal(found[number:], np.arange(number, size))
