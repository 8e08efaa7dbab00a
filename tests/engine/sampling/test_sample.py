"""`cv.sample` as a user calls it: laws of the draws, exact answers, and errors."""

import itertools

import arviz
import jax
import numpy as np
import pytest
from drawn import errors_off
from scipy.special import gammaln, softmax

import cavity as cv
from cavity.engine.data.rules_of_arguments import bind_checked
from cavity.engine.sampling.joint import Joint
from cavity.engine.sampling.sample import plan


def line():
    m = cv.Model()
    n = m.plate("n")
    x = m.input("x", cv.real, plates=n)
    a, b = m.random("a", cv.gaussian(0.0, sd=10.0)), m.random("b", cv.gaussian(0.0, sd=10.0))
    t = m.random("t", cv.gamma(2.0, 1.0))
    m.random("y", cv.gaussian(a + b * x, precision=t))
    m.let("at two", a + 2.0 * b)
    random = np.random.default_rng(0)
    x = random.normal(size=30)
    return m, {"x": x, "y": 1.0 + 2.0 * x + 0.5 * random.normal(size=30)}


def classes():
    """Thirteen rows of two classes, too many states for one table; and the probability of the second class in each."""
    m = cv.Model()
    n = m.plate("n", 13)
    p = m.random("p", cv.dirichlet([1.0, 2.0]))
    z = m.random("z", cv.categorical(p), plates=n)
    m.random("y", cv.gaussian(cv.table([-1.0, 1.0])[z], sd=1.0))
    y = np.random.default_rng(1).normal(size=13)
    states = np.array(list(itertools.product([0, 1], repeat=13)))
    count = states.sum(1)
    log_joint = gammaln(1.0 + 13 - count) + gammaln(2.0 + count) - 0.5 * ((y - (2.0 * states - 1.0)) ** 2).sum(1)
    return m, {"y": y}, softmax(log_joint) @ states


def near(samples, posterior, name, errors=4.5):
    """Whether means and sds are those of an exact posterior, within standard errors."""
    size = float(np.asarray(arviz.ess(samples[name])))
    mean, sd = posterior[name].mean, posterior[name].sd
    assert samples.mean(name) == pytest.approx(mean, abs=errors * sd / np.sqrt(size))
    assert samples.sd(name) == pytest.approx(sd, rel=errors / np.sqrt(size) + 0.02)


@pytest.fixture(scope="module")
def sampled():
    m, data = line()
    return m, data, cv.sample(m, data, draws=500, seed=1, progress=False)


def test_a_straight_line_is_that_of_the_exact_posterior(sampled):
    m, data, samples = sampled
    posterior = cv.infer(m, data)
    for name in ("a", "b", "t", "at two"):
        near(samples, posterior, name)


def test_named_expressions_are_drawn_with_their_parts(sampled):
    _, _, samples = sampled
    np.testing.assert_allclose(samples["at two"], samples["a"] + 2.0 * samples["b"], rtol=1e-12)


def test_the_warm_up_stands_apart(sampled):
    _, _, samples = sampled
    assert samples["a"].shape == (4, 500)
    assert samples.warmup["a"].shape == (4, 250)
    tree = samples.to_arviz()
    assert tree["posterior"]["a"].shape == (4, 500)
    assert tree["warmup_posterior"]["a"].shape == (4, 250)


def test_explain_says_how_each_variable_is_drawn(sampled):
    text = sampled[2].explain()
    assert "a, b: jointly, from the Gaussian that the rest gives" in text
    assert "t: each element from its Gamma conditional" in text


def test_chains_that_agree_have_an_rhat_of_one(sampled):
    assert all((found < 1.02).all() for found in sampled[2].rhat.values())


def test_the_same_seed_gives_the_same_draws_and_a_longer_run_begins_with_them(sampled):
    m, data, samples = sampled
    again = cv.sample(m, data, draws=550, seed=1, warmup=250, progress=False)
    np.testing.assert_array_equal(again["a"][:, :500], samples["a"])
    other = cv.sample(m, data, draws=50, seed=2, warmup=250, progress=False)
    assert (other["a"][:, 0] != samples["a"][:, 0]).all()


def test_a_checkpoint_goes_on_to_the_same_draws(tmp_path, sampled):
    m, data, samples = sampled
    cv.sample(m, data, draws=100, seed=1, warmup=250, checkpoint=tmp_path / "chains.npz", progress=False)
    again = cv.sample(m, data, draws=500, seed=1, warmup=250, checkpoint=tmp_path / "chains.npz", progress=False)
    np.testing.assert_array_equal(again["t"], samples["t"])


@pytest.mark.parametrize("collapse", [(), ("p",)])
def test_classes_have_the_same_law_with_and_without_their_shares_integrated_out(collapse):
    m, data, exact = classes()
    samples = cv.sample(m, data, draws=1500, collapse=collapse, progress=False)
    np.testing.assert_allclose(samples.mean("z"), exact, atol=0.04)


def test_a_coupled_network_is_drawn_from_all_its_states():
    m = cv.Model()
    a, b = m.random("a", cv.bernoulli(0.5)), m.random("b", cv.bernoulli(0.5))
    m.let("both", a & b)
    samples = cv.sample(m, {"both": False}, draws=2000, progress=False)
    assert samples.mean("a") == pytest.approx(1 / 3, abs=0.03)
    assert not (samples["a"] & samples["b"]).any()


def test_noise_that_a_comparison_alone_sees_is_drawn_given_its_outcome():
    """Two players, one win: performances are Gaussian, cut where they cross; both against draws that are rejected."""
    m = cv.Model()
    skill = m.random("skill", cv.gaussian(1.0, sd=1.0))
    first, second = m.random("first", cv.gaussian(skill, sd=0.5)), m.random("second", cv.gaussian(2.0, sd=1.5))
    m.constrain(first > second, "won")
    m.random("next", cv.gaussian(first, sd=0.1))
    samples = cv.sample(m, {}, draws=3000, progress=False)
    random = np.random.default_rng(0)
    s = random.normal(1.0, 1.0, 400_000)
    a, b = random.normal(s, 0.5), random.normal(2.0, 1.5, 400_000)
    won = a > b
    assert (samples["first"] > samples["second"]).all()
    for name, draws in (("skill", s), ("first", a), ("second", b), ("next", a)):
        assert samples.mean(name) == pytest.approx(draws[won].mean(), abs=0.06)
        assert samples.sd(name) == pytest.approx(draws[won].std(), abs=0.05)


def test_many_discrete_variables_that_a_constraint_ties():
    """Twenty pairs of equal ones, a million states: a pair is true with the odds (.5 .2) / (.5 .8)."""
    m = cv.Model()
    n = m.plate("n", 20)
    a, b = m.random("a", cv.bernoulli(0.5), plates=n), m.random("b", cv.bernoulli(0.2), plates=n)
    m.constrain(a == b, "tied")
    samples = cv.sample(m, {}, draws=500, chains=2, progress=False)
    np.testing.assert_array_equal(samples["a"], samples["b"])
    assert abs(samples["a"].mean() - 0.2) < 4.5 * (0.16 / 20_000) ** 0.5


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"draws": 0}, r"sample\(draws=0\): give a whole number of at least 1"),
        ({"chains": 1.5}, r"sample\(chains=1.5\)"),
        ({"collapse": ["q"]}, "'q' is no latent variable here. There are: "),
        ({"collapse": "a"}, "takes a list of names, such as"),
    ],
)
def test_what_is_asked_is_checked(options, text):
    m, data = line()
    with pytest.raises(cv.ModelError, match=text):
        cv.sample(m, data, progress=False, **options)


def test_time_that_is_over_keeps_the_first_draws():
    m, data = line()
    asked = {"draws": 500, "warmup": 20, "chains": 2, "progress": False}
    whole = cv.sample(m, data, **asked)
    short = cv.sample(m, data, max_seconds=1e-6, **asked)
    name, made = next(iter(whole)), 30  # one block of 50 sweeps
    assert short[name].shape[1] == made
    np.testing.assert_array_equal(short[name], whole[name][:, :made])
    assert "max_seconds ended the chains after 30 of 500 draws" in short.explain()
    assert "max_seconds" not in whole.explain()
    with pytest.raises(cv.ModelError, match="after 50 of the 100 sweeps of the warm-up"):
        cv.sample(m, data, max_seconds=1e-6, warmup=100, progress=False)
    with pytest.raises(cv.ModelError, match="positive number of seconds"):
        cv.sample(m, data, max_seconds=-1.0, progress=False)


def test_a_name_that_was_not_sampled_is_told(sampled):
    with pytest.raises(KeyError, match="'c' was not sampled"):
        sampled[2]["c"]


# conditionals that look like those of a family, and are not ----------------------------------------------------------


def how(m, data, name):
    """How a variable is drawn."""
    with jax.enable_x64(True):
        moves = plan(Joint(m, bind_checked(m, data)))
    return next(move.how for move in moves if name in move.names)


def test_a_prior_that_ends_is_no_gamma():
    m = cv.Model()
    p = m.random("p", cv.truncated(cv.gamma(2.0, 1.0), high=20.0))
    m.random("y", cv.gaussian(0.0, precision=p))
    assert "slice" in how(m, {"y": 0.1}, "p")


def test_a_prior_whose_bend_the_likelihood_hides_is_no_inverse_gamma():
    m = cv.Model()
    v = m.random("v", cv.half_normal(1e6))
    m.random("y", cv.gaussian(0.0, variance=v), plates=m.plate("n"))
    assert "slice" in how(m, {"y": [1100.0, 900.0, -1000.0]}, "v")


def test_a_sharp_factor_does_not_hide_a_product():
    m = cv.Model()
    a, b, c = (m.random(name, cv.gaussian(0.0, sd=2.0)) for name in "abc")
    m.random("sharp", cv.gaussian(a, sd=1e-5))
    m.random("y", cv.gaussian(b * c, sd=0.5))
    with jax.enable_x64(True):
        moves = plan(Joint(m, bind_checked(m, {"sharp": 1.0, "y": 3.0})))
    assert not any({"b", "c"} <= set(move.names) for move in moves)


def test_a_step_that_jumps_is_no_gaussian():
    m = cv.Model()
    x = m.chain(
        "x",
        over=m.plate("t", 2),
        first=cv.gaussian(0.0, sd=1.0),
        then=lambda before: cv.gaussian(cv.where(before > 0.0, 2.0, -2.0), sd=1.0),
    )
    m.random("y", cv.gaussian(x, sd=1.0))
    assert "Gaussian" not in how(m, {"y": [0.0, 2.0]}, "x")


def test_no_state_of_a_gate_stays_unseen():
    for seed in range(6):
        m = cv.Model()
        x, z = m.random("x", cv.gaussian(0.0, sd=1.0)), m.random("z", cv.bernoulli(0.5))
        m.random("y", cv.gaussian(cv.where(z, cv.exp(x), 0.5 * x), sd=1.0))
        with jax.enable_x64(True):
            moves = plan(Joint(m, bind_checked(m, {"y": 1.0})), seed)
        assert not any("Gaussian" in move.how for move in moves)


def test_a_sum_that_ties_the_elements_of_one_variable():
    m = cv.Model()
    z = m.random("z", cv.bernoulli(0.5), plates=m.plate("n", 13))
    m.let("total", cv.sum(z, over=z.plates[0]))
    samples = cv.sample(m, {"total": 7}, draws=500, chains=2, progress=False)
    np.testing.assert_array_equal(samples["z"].sum(-1), 7)
    assert np.all(np.abs(samples["z"].mean((0, 1)) - 7 / 13) < 4.5 * (42 / 169 / 1000) ** 0.5)


def test_what_is_partly_given_is_not_integrated_out():
    m = cv.Model()
    mu = m.random("mu", cv.gaussian(0.0, sd=3.0))
    x = m.random("x", cv.gaussian(mu, sd=1.0), plates=m.plate("n"))
    m.random("y", cv.gaussian(x, sd=1.0))
    with pytest.raises(cv.UnsupportedError, match="some elements of 'x' are given"):
        cv.sample(m, {"x": [1.0, np.nan], "y": [0.0, 0.0]}, draws=10, collapse=["x"], progress=False)


def test_a_spike_is_drawn_by_whether_it_is_zero():
    m = cv.Model()
    w = m.random("w", cv.spike_and_slab(0.5, variance=1.0))
    m.random("y", cv.gaussian(w, sd=1.0))
    active = cv.sample(m, {"y": 1.0}, draws=4000, progress=False)["w"] != 0.0
    odds = np.exp(-0.25 + 0.5) / np.sqrt(2.0)  # N(1; 0, 2) over N(1; 0, 1); draws are independent
    assert active.mean() == pytest.approx(odds / (1.0 + odds), abs=4.5 * 0.5 / np.sqrt(active.size))


def test_trials_under_a_logistic_link_are_gaussian_given_polya_gamma_numbers():
    m = cv.Model()
    a = m.random("a", cv.gaussian(0.0, sd=1.5))
    trials = m.input("trials", cv.count, plates=m.plate("n"))
    m.random("y", cv.binomial(trials, cv.logistic(a)))
    data = {"trials": np.array([7, 3, 0]), "y": np.array([6, 2, 0])}
    samples = cv.sample(m, data, draws=1500, chains=2, progress=False)
    grid = np.linspace(-8.0, 8.0, 4001)
    log_joint = -0.5 * (grid / 1.5) ** 2 + 8.0 * grid - 10.0 * np.logaddexp(0.0, grid)
    law = softmax(log_joint)
    mean = law @ grid
    assert errors_off(samples["a"], mean, np.sqrt(law @ (grid - mean) ** 2)) < 4.5
    assert "Polya-Gamma" in samples.explain()
