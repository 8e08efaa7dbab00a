"""Moves of structure: all structures of tiny data enumerated, controls that must fail, search, and errors."""

import dataclasses
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln, softmax

import cavity as cv
from cavity.engine.moves.booleans import Births

MOVES = cv.moves


def normal(y, covariance):
    return -0.5 * (np.linalg.slogdet(covariance)[1] + y @ np.linalg.solve(covariance, y))


def log_prior(move, states):
    with jax.enable_x64(True):
        return np.array([float(move.prior.log_probability(jnp.asarray(state))) for state in states])


def frequencies(draws, states):
    """How often each state was drawn, and how many independent draws that is worth: each chain is one sample."""
    flat = draws.reshape(*draws.shape[:2], -1)
    table = {tuple(np.ravel(state)): i for i, state in enumerate(states)}
    numbers = np.array([[table[tuple(row)] for row in chain] for chain in flat])
    return np.stack([np.bincount(chain, minlength=len(states)) / len(chain) for chain in numbers])


def far(draws, states, log_probability):
    """The largest distance of a frequency from its probability in standard errors over chains, and a floor of .002."""
    found, wanted = frequencies(draws, states), softmax(log_probability)
    errors = found.std(0, ddof=1) / np.sqrt(len(found))
    return np.max(np.abs(found.mean(0) - wanted) / (errors + 0.002))


def features(probability=None, noise=0.5):
    m = cv.Model("features")
    n, k = m.plate("n"), m.plate("k", 3)
    if probability is None:
        active = m.input("active", cv.boolean, plates=(n, k))
    else:
        active = m.random("active", cv.bernoulli(probability), plates=(n, k))
    w = m.random("w", cv.gaussian(0.0, sd=2.0), plates=k)
    m.random("y", cv.gaussian(cv.sum(cv.where(active, w, 0.0), over=k), sd=noise))
    return m, np.array([1.0, 2.5])


GRIDS = np.array(list(itertools.product([False, True], repeat=6))).reshape(-1, 2, 3)


def evidence_of(active, y, noise=0.5):
    a = np.asarray(active, float)
    return normal(y, 4.0 * a @ a.T + noise**2 * np.eye(2))


def sampled(m, data, moves, collapse=(), draws=3000):
    return cv.sample(m, data, draws=draws, chains=6, moves=moves, collapse=collapse, progress=False)


@pytest.mark.parametrize("collapse", [["w"], []])
def test_features_of_a_buffet_are_those_of_all_arrays(collapse):
    m, y = features()
    births = MOVES.births(5, MOVES.indian_buffet(1.5))
    samples = sampled(m, {"y": y}, {"active": [births, MOVES.flips(5), MOVES.swaps(3)]}, collapse)
    assert far(samples["active"], GRIDS, log_prior(births, GRIDS) + [evidence_of(a, y) for a in GRIDS]) < 4.0


def test_the_share_of_flips_taken_is_that_of_the_exact_law():
    m, y = features(0.3)
    samples = cv.sample(
        m, {"y": y}, 4000, 4, moves={"active": MOVES.flips()}, collapse=["w"], warmup=100, progress=False
    )
    flat = GRIDS.reshape(len(GRIDS), -1)
    prior = (flat * np.log(0.3) + ~flat * np.log(0.7)).sum(1)
    law = softmax(prior + np.array([evidence_of(grid, y) for grid in GRIDS]))
    one_apart = (flat[:, None] != flat[None]).sum(2) == 1
    exact = (np.minimum(law[:, None], law[None]) * one_apart).sum() / flat.shape[1]
    assert abs(samples.acceptance["active"]["flips"] - exact) < 0.01
    assert f"taken of what was new: flips {samples.acceptance['active']['flips']:.1%}" in samples.explain()


def test_what_changes_nothing_is_no_proposal():
    m, y = features()
    full = {"y": y, "active": np.array([[True, True, True], [True, True, True]])}
    moves = {"active": MOVES.births(1, MOVES.indian_buffet(1.0))}
    samples = cv.sample(m, full, 20, 1, moves=moves, warmup=1, progress=False)
    assert np.isnan(samples.acceptance["active"]["births"])  # no place for a birth, no row alone for a death


def test_a_wrong_proposal_ratio_is_found():
    class Wrong(Births):
        def propose(self, key, structure, score):
            other, ratio = super().propose(key, structure, score)
            return other, -ratio

    m, y = features(noise=10.0)  # the data say little
    wrong = Wrong(20, MOVES.indian_buffet(1.5))
    samples = sampled(m, {"y": y}, {"active": [wrong, MOVES.flips(1)]}, ["w"])
    assert far(samples["active"], GRIDS, log_prior(wrong, GRIDS) + [evidence_of(a, y, 10.0) for a in GRIDS]) > 8.0


def test_a_discrete_variable_has_the_prior_of_the_model():
    m, y = features(0.3)
    samples = sampled(m, {"y": y}, {"active": MOVES.flips(10)}, ["w"])
    log_probability = [np.log(0.3 / 0.7) * a.sum() + evidence_of(a, y) for a in GRIDS]
    assert far(samples["active"], GRIDS, log_probability) < 4.0


def clusters():
    m = cv.Model("clusters")
    n, k = m.plate("n"), m.plate("k", 4)
    z = m.input("z", cv.index(k), plates=n)
    centre = m.random("centre", cv.gaussian(0.0, sd=3.0), plates=k)
    m.random("y", cv.gaussian(centre[z], sd=1.0))
    return m, np.array([-1.0, 0.5, 1.5, 4.0])


LABELS = np.array(list(itertools.product(range(4), repeat=4)))


def log_of_clusters(y, concentration):
    found = []
    for z in LABELS:
        size = np.bincount(z, minlength=4)
        prior = np.sum(np.log(concentration) + gammaln(size[size > 0])) + gammaln(np.sum(size == 0) + 1.0)
        found.append(prior + normal(y, 9.0 * (z[:, None] == z) + np.eye(4)))
    return np.array(found)


@pytest.mark.parametrize("collapse", [["centre"], []])
def test_partitions_of_a_restaurant_are_those_of_all_allocations(collapse):
    """By splits alone with the centres integrated out, which reach every partition, and labels by single steps."""
    m, y = clusters()
    prior = MOVES.chinese_restaurant(0.8)
    moves = {"z": [MOVES.splits(2, prior=prior), MOVES.relabels(3, prior)]}
    samples = sampled(m, {"y": y}, moves, collapse, 2000)
    assert far(samples["z"], LABELS, log_of_clusters(y, 0.8)) < 4.0


def test_splits_alone_reach_all_partitions():
    m, y = clusters()
    samples = sampled(m, {"y": y}, {"z": MOVES.splits(3, prior=MOVES.chinese_restaurant(0.8))}, ["centre"], 2000)
    pairs = np.array([[z[i] == z[j] for i, j in itertools.combinations(range(4), 2)] for z in LABELS])
    kinds, which = np.unique(pairs, axis=0, return_inverse=True)
    wanted = np.bincount(which, softmax(log_of_clusters(y, 0.8)))
    drawn = samples["z"]
    together = np.stack([drawn[..., i] == drawn[..., j] for i, j in itertools.combinations(range(4), 2)], -1)
    assert far(together, kinds, np.log(wanted)) < 4.0


def test_change_points_are_those_of_all_segmentations():
    m = cv.Model("segments")
    t, k = m.plate("t"), m.plate("k", 4)
    segment = m.input("segment", cv.index(k), plates=t)
    level = m.random("level", cv.gaussian(0.0, sd=2.0), plates=k)
    m.random("y", cv.gaussian(level[segment], sd=0.8))
    y = np.array([0.2, 0.5, 2.5, 2.0, -1.0])
    changes = [c for c in itertools.product([0, 1], repeat=4) if sum(c) < 4]
    states = np.array([[0, *np.cumsum(c)] for c in changes])
    log_probability = [
        np.log(0.3 / 0.7) * s[-1] + normal(y, 4.0 * (s[:, None] == s) + 0.64 * np.eye(5)) for s in states
    ]
    samples = sampled(m, {"y": y}, {"segment": MOVES.change_points(6, 0.3)}, ["level"])
    assert far(samples["segment"], states, log_probability) < 4.0


@pytest.mark.parametrize("kind", ["undirected", "directed", "acyclic"])
def test_graphs_are_those_of_all_arrays(kind):
    """Of three nodes: a parent or neighbour adds to the mean of an outcome."""
    m = cv.Model("graph")
    a, b = m.plate("a", 3), m.plate("b", 3)
    edge = m.input("edge", cv.boolean, plates=(a, b))
    x = m.input("x", cv.real, plates=a)
    effect = m.random("effect", cv.gaussian(0.0, sd=1.0))
    m.random("y", cv.gaussian(effect * cv.sum(cv.where(edge, x, 0.0), over=a), sd=0.7), plates=b)
    x, y = np.array([1.0, -0.5, 2.0]), np.array([1.5, 0.3, -0.4])
    states = np.array(list(itertools.product([False, True], repeat=9))).reshape(-1, 3, 3)
    move = MOVES.edges(kind, 10, MOVES.independent(0.4))
    with jax.enable_x64(True):
        priors = np.array([float(move.log_prior(jnp.asarray(state))) for state in states])
    allowed = {"undirected": 8, "directed": 64, "acyclic": 25}  # by hand, and the numbers of labelled graphs
    assert np.isfinite(priors).sum() == allowed[kind]
    states, priors = states[np.isfinite(priors)], priors[np.isfinite(priors)]
    means = [x @ s for s in states]
    log_probability = priors + [normal(y, np.outer(mean, mean) + 0.49 * np.eye(3)) for mean in means]
    samples = sampled(m, {"x": x, "y": y}, {"edge": move}, ["effect"])
    assert far(samples["edge"], states, log_probability) < 4.0


# search ---------------------------------------------------------------------------------------------------------------


def test_a_search_finds_the_best_of_all():
    m, y = clusters()
    prior = MOVES.chinese_restaurant(0.8)
    moves = {"z": [MOVES.splits(1, prior=prior), MOVES.relabels(4, prior)]}
    found = cv.search(m, {"y": y}, moves, 60.0, sweeps=60, collapse=["centre"], progress=False)
    scores = log_of_clusters(y, 0.8)
    best = LABELS[np.argmax(scores)]
    assert (found["z"][:, None] == found["z"]).tolist() == (best[:, None] == best).tolist()
    constant = -0.5 * 4 * np.log(2.0 * np.pi)
    assert found.score == pytest.approx(scores.max() + constant, abs=1e-9)
    assert found.others["centre"].shape == (4,)
    assert "of score" in repr(found)
    assert found.sweeps == 60
    again = cv.search(m, {"y": y}, moves, 60.0, sweeps=60, collapse=["centre"], progress=False)
    np.testing.assert_array_equal(found.trace, again.trace)


def test_a_search_that_was_interrupted_goes_on_to_the_same_result(tmp_path):
    m, y = clusters()
    moves = {"z": MOVES.relabels(4, MOVES.chinese_restaurant(0.8))}
    asked = {"sweeps": 45, "collapse": ["centre"]}
    whole = cv.search(m, {"y": y}, moves, 60.0, progress=False, **asked)
    file = tmp_path / "search"

    def stop(done, total):
        if done >= 40:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cv.search(m, {"y": y}, moves, 60.0, progress=stop, checkpoint=file, **asked)
    again = cv.search(m, {"y": y}, moves, 60.0, progress=False, checkpoint=file, **asked)
    np.testing.assert_array_equal(again.trace, whole.trace)
    np.testing.assert_array_equal(again["z"], whole["z"])
    assert again.score == whole.score
    assert again.sweeps == 45
    with pytest.raises(cv.DataError, match="another data or model"):
        cv.search(m, {"y": y + 1.0}, moves, 60.0, progress=False, checkpoint=file, **asked)


def test_a_search_ends_with_its_time():
    m, y = clusters()
    moves = {"z": MOVES.relabels(4, MOVES.chinese_restaurant(0.8))}
    found = cv.search(m, {"y": y}, moves, 1e-6, collapse=["centre"], progress=False)
    assert found.sweeps == 1  # a block is made in any case


def test_a_search_takes_the_evidence_of_the_engine():
    """The score with all integrated out and a flat prior is the evidence of the same model given the structure."""
    m, y = features()
    found = cv.search(m, {"y": y}, {"active": MOVES.flips()}, 60.0, sweeps=10, collapse=["w"], progress=False)
    posterior = cv.infer(m, {"y": y, **found.structure})
    assert found.score == pytest.approx(posterior.log_evidence, abs=1e-8)


# what is asked --------------------------------------------------------------------------------------------------------


def test_a_chain_begins_where_the_data_say_and_goes_on_from_a_checkpoint(tmp_path):
    m, y = clusters()
    start = np.array([3, 3, 1, 1])
    moves = {"z": MOVES.relabels(1, MOVES.chinese_restaurant(1.0))}
    one = {"moves": moves, "collapse": ["centre"], "warmup": 1, "chains": 1, "progress": False}
    samples = cv.sample(m, {"y": y, "z": start}, draws=60, **one)
    assert (samples.warmup["z"][0, 0] != start).sum() <= 1
    assert samples.dims["z"] == ["n"]
    path = tmp_path / "chains"
    cv.sample(m, {"y": y, "z": start}, draws=20, checkpoint=path, **one)
    longer = cv.sample(m, {"y": y, "z": start}, draws=60, checkpoint=path, **one)
    np.testing.assert_array_equal(longer["z"], samples["z"])


@pytest.mark.parametrize(
    ("moves", "words"),
    [
        ({"w": MOVES.flips()}, "'w', which is a continuous variable"),
        ({"x": MOVES.flips()}, "'x', which is not declared"),
        ({"active": 3}, "takes a move of cv.moves"),
        ({"active": []}, "takes a move of cv.moves"),
        ([MOVES.flips()], "is a dictionary"),
        ({"active": MOVES.splits()}, "splits are of the classes"),
        ({"active": MOVES.edges()}, "square array"),
    ],
)
def test_what_is_no_move_of_a_structure_is_told(moves, words):
    m, y = features()
    with pytest.raises(cv.ModelError, match=words):
        cv.sample(m, {"y": y}, moves=moves, progress=False)


def test_moves_of_one_array_do_not_take_two():
    m, y = features()
    with pytest.raises(cv.ModelError, match="moves of one array"):
        cv.sample(m, {"y": y}, moves={("active", "active"): MOVES.flips()}, progress=False)


def test_a_start_of_another_shape_is_told():
    m, y = features()
    with pytest.raises(cv.DataError, match="active"):
        cv.sample(m, {"y": y, "active": np.zeros((2, 4), bool)}, moves={"active": MOVES.flips()}, progress=False)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: MOVES.flips(0),
        lambda: MOVES.independent(1.0),
        lambda: MOVES.indian_buffet(0.0),
        lambda: MOVES.chinese_restaurant(-1.0),
        lambda: MOVES.edges("loops"),
        lambda: MOVES.change_points(probability=2.0),
    ],
)
def test_numbers_out_of_range_are_told(wrong):
    with pytest.raises(cv.ModelError):
        wrong()


def test_a_move_is_a_frozen_value():
    assert MOVES.flips(3) == MOVES.flips(3)
    with pytest.raises(dataclasses.FrozenInstanceError):
        MOVES.flips(3).times = 4


def test_a_gate_that_moves_is_seen_in_both_states():
    """y ~ N(w, .7) or N(e^w, .7): which is known by quadrature, and the conditional of w is no Gaussian."""
    m = cv.Model()
    n = m.plate("n")
    a = m.input("a", cv.boolean, plates=n)
    w = m.random("w", cv.gaussian(0.0, sd=1.0))
    m.random("y", cv.gaussian(cv.where(a, cv.exp(w), w), sd=0.7))
    x = np.linspace(-8.0, 8.0, 4001)
    weights = [np.sum(stats.norm.pdf(x) * stats.norm.pdf(1.5, mean, 0.7)) for mean in (x, np.exp(x))]
    samples = cv.sample(m, {"y": [1.5]}, moves={"a": MOVES.flips(2)}, draws=4000, progress=False)
    assert abs(samples.mean("a")[0] - weights[1] / sum(weights)) < 0.04
    with pytest.raises(cv.UnsupportedError, match="cannot be integrated out"):
        cv.sample(m, {"y": [1.5]}, moves={"a": MOVES.flips(2)}, collapse=["w"], draws=10, progress=False)


def test_an_end_that_moves_is_an_end():
    m = cv.Model()
    n = m.plate("n")
    a = m.input("a", cv.boolean, plates=n)
    u = m.random("u", cv.uniform(0.0, cv.where(a, 2.0, 1.0)))
    m.random("y", cv.gaussian(u, sd=0.5))
    one, two = (np.diff(stats.norm.cdf([0.0, end], 0.9, 0.5))[0] / end for end in (1.0, 2.0))
    samples = cv.sample(m, {"y": [0.9]}, moves={"a": MOVES.flips(3)}, draws=4000, progress=False)
    assert abs(samples.mean("a")[0] - two / (one + two)) < 0.04
    assert samples["u"].max() > 1.5


def _three_places(data, moves):
    m = cv.Model()
    n, k = m.plate("n", 3), m.plate("k", 2)
    level = m.random("level", cv.gaussian(0.0, sd=1.0), plates=k)
    z = m.random("z", cv.categorical(np.array([0.5, 0.5])), plates=n)
    m.random("y", cv.gaussian(level[z], sd=1.0))
    return cv.sample(m, {"y": np.zeros(3), **data}, moves=moves, draws=10, progress=False)


@pytest.mark.parametrize(
    ("data", "moves", "what"),
    [
        ({}, {"z": MOVES.change_points(probability=0.1)}, "the model has"),
        ({}, {"z": MOVES.relabels(prior=MOVES.chinese_restaurant(1.0))}, "the model has"),
        ({}, {"z": [MOVES.relabels(), MOVES.splits(prior=MOVES.chinese_restaurant(1.0))]}, "has the prior of all"),
        ({"z": np.array([0.0, np.nan, 1.0])}, {"z": MOVES.relabels()}, "missing entries"),
        ({"z": np.array([0, 5, 1])}, {"z": MOVES.relabels()}, "no states"),
    ],
)
def test_priors_and_starts_that_do_not_fit(data, moves, what):
    with pytest.raises(cv.CavityError, match=what):
        _three_places(data, moves)


@pytest.mark.parametrize("prior", [MOVES.chinese_restaurant(1.0), 0.1])
def test_booleans_take_a_prior_of_booleans(prior):
    m = cv.Model()
    n = m.plate("n", 3)
    a = m.input("a", cv.boolean, plates=n)
    m.random("y", cv.gaussian(cv.where(a, 1.0, 0.0) * m.random("w", cv.gaussian(0.0, sd=1.0)), sd=1.0))
    with pytest.raises(cv.ModelError, match="prior of booleans"):
        cv.sample(m, {"y": np.zeros(3)}, moves={"a": MOVES.flips(prior=prior)}, draws=10, progress=False)


@pytest.mark.parametrize("moves", [[MOVES.splits(), MOVES.change_points()], [MOVES.relabels(), MOVES.flips()]])
def test_moves_of_one_list_are_of_one_form(moves):
    with pytest.raises(cv.ModelError, match="of one kind of structure"):
        _three_places({}, {"z": moves})
