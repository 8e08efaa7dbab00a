"""Few numbers and many elements that are independent given these, drawn as one Gaussian: against its dense matrix."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cavity as cv
from cavity.engine.sampling.conditionals.arrow import Blocks, around, eliminated
from cavity.engine.sampling.sample import joint_of, plan


def moves_of(model, data):
    with jax.enable_x64(True):
        return {move.names: move.how for move in plan(joint_of(model, data, None, {}, 0))}


def dense(blocks):
    """The whole precision, the core first."""
    core, (count, own, few) = np.asarray(blocks.core), blocks.cross.shape
    whole = np.zeros((few + count * own,) * 2)
    whole[:few, :few] = core
    for i in range(count):
        place = slice(few + i * own, few + (i + 1) * own)
        whole[place, :few], whole[:few, place] = blocks.cross[i], blocks.cross[i].T
        whole[place, place] = blocks.rows[i]
    return whole


@settings(deadline=None, max_examples=6)
@given(st.integers(1, 4), st.integers(1, 6), st.integers(1, 3), st.integers(0, 2**31))
def test_mean_and_covariance_are_those_of_the_dense_matrix(few, count, own, seed):
    rng = np.random.default_rng(seed)
    total = few + count * own
    design = rng.normal(size=(count, own + few + 2, own + few))  # what each row sees: its own numbers and the core
    gram = np.einsum("nia,nib->nab", design, design)
    blocks = Blocks(gram[:, own:, own:].sum(0) + np.eye(few), gram[:, :own, own:], gram[:, :own, :own] + np.eye(own))
    slope = rng.normal(size=few), rng.normal(size=(count, own))
    with jax.enable_x64(True):
        root = eliminated(Blocks(*map(jnp.asarray, blocks)))

        def at(noise):
            core, rows = around(root, slope, (noise[:few], noise[few:].reshape(count, own)))
            return jnp.concatenate([core, rows.ravel()])

        mean = np.asarray(at(jnp.zeros(total)))
        half = np.asarray(jax.vmap(at)(jnp.eye(total))) - mean
    precision = dense(blocks)
    exact = np.linalg.solve(precision, np.concatenate([slope[0], slope[1].ravel()]))
    np.testing.assert_allclose(mean, exact, atol=1e-9)
    np.testing.assert_allclose(half.T @ half, np.linalg.inv(precision), atol=1e-9)


def mixed_model(groups, rows, rng):
    """Intercepts and slopes of groups around their means, all variances given: the posterior is one Gaussian."""
    m = cv.Model("mixed")
    row, group = m.plate("row"), m.plate("group", groups)
    x = m.input("x", cv.real, plates=row)
    of = m.input("of", cv.index(group), plates=row)
    centre = m.random("centre", cv.gaussian(0.0, sd=2.0))
    slope = m.random("slope", cv.gaussian(0.0, sd=2.0))
    own = m.random("own", cv.gaussian(centre, sd=0.7), plates=group)
    steep = m.random("steep", cv.gaussian(slope, sd=0.4), plates=group)
    m.random("y", cv.gaussian(own[of] + steep[of] * x, sd=0.5), plates=row)
    return m, {"x": rng.normal(size=rows), "of": rng.integers(0, groups, rows), "y": rng.normal(size=rows)}


def exact_posterior(data, groups):
    """Mean and covariance of centre, slope, own and steep, by the dense matrix."""
    rows = len(data["y"])
    design = np.zeros((rows, 2 + 2 * groups))
    design[np.arange(rows), 2 + data["of"]] = 1.0
    design[np.arange(rows), 2 + groups + data["of"]] = data["x"]
    precision = design.T @ design / 0.25
    precision[:2, :2] += np.eye(2) / 4.0
    for column, (place, sd) in enumerate(((slice(2, 2 + groups), 0.7), (slice(2 + groups, None), 0.4))):
        unit = np.zeros((groups, 2 + 2 * groups))
        unit[:, place], unit[:, column] = np.eye(groups), -1.0
        precision += unit.T @ unit / sd**2
    return np.linalg.solve(precision, design.T @ data["y"] / 0.25), np.linalg.inv(precision)


def test_intercepts_and_slopes_of_groups_have_the_exact_posterior():
    rng, groups, draws = np.random.default_rng(3), 20, 4000
    m, data = mixed_model(groups, 90, rng)
    found = cv.sample(m, data, draws=draws, chains=1, warmup=1, progress=False)
    assert "each group on its own, given centre, slope" in found.explain()
    mean, covariance = exact_posterior(data, groups)
    names = ("centre", "slope", "own", "steep")
    flat = np.concatenate([found[name].reshape(draws, -1) for name in names], axis=1)
    sd = np.sqrt(np.diag(covariance))
    assert np.abs((flat.mean(0) - mean) / sd).max() < 4.5 / np.sqrt(draws)  # draws are independent
    scaled = np.cov(flat.T) / np.outer(sd, sd)
    assert np.abs(scaled - covariance / np.outer(sd, sd)).max() < 6.0 * np.sqrt(2.0 / draws)


def test_elements_that_meet_are_not_taken_as_rows():
    """A player of a match meets another one: their elements depend on each other."""
    m = cv.Model("players")
    match, player = m.plate("match"), m.plate("player", 20)
    first, second = (m.input(name, cv.index(player), plates=match) for name in ("first", "second"))
    level = m.random("level", cv.gaussian(0.0, sd=1.0))
    skill = m.random("skill", cv.gaussian(level, sd=1.0), plates=player)
    m.random("margin", cv.gaussian(skill[first] - skill[second], sd=0.5), plates=match)
    rng = np.random.default_rng(0)
    pairs = np.array([rng.choice(20, 2, replace=False) for _ in range(60)])
    data = {"first": pairs[:, 0], "second": pairs[:, 1], "margin": rng.normal(size=60)}
    assert moves_of(m, data) == {("level", "skill"): "jointly, from the Gaussian that the rest gives"}


@pytest.mark.parametrize("count", [15, 16])
def test_few_elements_are_drawn_with_one_matrix(count):
    m = cv.Model("groups")
    group = m.plate("group", count)
    centre = m.random("centre", cv.gaussian(0.0, sd=2.0))
    m.random("y", cv.gaussian(m.random("own", cv.gaussian(centre, sd=1.0), plates=group), sd=1.0))
    (told,) = moves_of(m, {"y": np.zeros(count)}).values()
    assert ("each group on its own" in told) == (count >= 16)
