"""The tempered joint density, references, options and errors of `cv.evidence`, and checks of posteriors."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import betaln, logsumexp
from scipy.stats import multivariate_normal, norm

import cavity as cv
from cavity.engine.data.rules_of_arguments import bind_checked
from cavity.engine.sampling.joint import Joint
from cavity.engine.sampling.references import beliefs_of
from cavity.engine.tempering.path import INVERSE, Path
from cavity.factors.errors import ModelError
from cavity.models import skills


def normal(sd=1.0):
    m = cv.Model()
    n = m.plate("n")
    mean = m.random("mean", cv.gaussian(0.0, sd=3.0))
    m.random("y", cv.gaussian(mean, sd=sd), plates=n)
    return m, {"y": np.array([0.5, 1.5, 2.0])}


def classes():
    m = cv.Model()
    n, k = m.plate("n"), m.plate("k", 2)
    share = m.random("share", cv.dirichlet([1.0, 2.0]))
    precision = m.random("precision", cv.gamma(2.0, 1.0), plates=k)
    z = m.random("z", cv.categorical(share), plates=n)
    m.random("y", cv.gaussian(0.0, precision=precision[z]))
    return m, {"y": np.array([0.3, -2.0, 0.1, 4.0])}


TRUTH = multivariate_normal.logpdf([0.5, 1.5, 2.0], np.zeros(3), 9.0 + np.eye(3))


@pytest.mark.parametrize("inverse", [0.0, 0.3, 1.0])
def test_the_path_is_the_density_to_a_power_times_the_beliefs_to_the_rest(inverse):
    m, data = classes()
    posterior, binding = cv.infer(m, data, accuracy="fast"), bind_checked(m, data)
    values = {"share": np.array([0.3, 0.7]), "precision": np.array([0.5, 2.0]), "z": np.array([0, 1, 1, 0])}
    with jax.enable_x64(True):
        joint, at = Joint(m, binding), {name: jnp.asarray(array) for name, array in values.items()}
        beliefs = beliefs_of(joint, posterior, 1.0)
        for own in ({}, beliefs):
            path = Path(m, binding, own)
            data_at = {**path.arrays, INVERSE: inverse}
            found = float(path.total(tuple(path.factors), at, data_at))
            whole = float(joint.total(tuple(joint.factors), at, joint.arrays))
            if own:
                reference = sum(float(np.sum(posterior[name].log_density(values[name]))) for name in values)
            else:
                likelihood = norm.logpdf(data["y"], 0.0, values["precision"][values["z"]] ** -0.5).sum()
                reference = whole - likelihood
            assert found == pytest.approx(inverse * whole + (1.0 - inverse) * reference, rel=1e-9)
            assert float(path.log_ratio(at, data_at)) == pytest.approx(whole - reference, rel=1e-9)


def test_wider_beliefs_have_the_same_place_and_more_spread():
    m, data = normal()
    posterior = cv.infer(m, data)
    with jax.enable_x64(True):
        joint = Joint(m, bind_checked(m, data))
        (belief,) = beliefs_of(joint, posterior, 2.0).values()
        assert float(belief.mean()) == pytest.approx(float(posterior["mean"].mean))
        assert float(belief.variance()) == pytest.approx(2.0 * float(posterior["mean"].variance))


def test_the_exact_posterior_as_reference_leaves_no_error():
    m, data = normal()
    found = cv.evidence(m, data, cv.infer(m, data), sweeps=64, replicas=4, progress=False)
    assert found.log_evidence == pytest.approx(TRUTH, abs=1e-9)
    assert found.standard_error < 1e-9
    assert found.reference == ("mean",)


def test_annealing_agrees_and_the_same_seed_gives_the_same():
    m, data = normal()
    found = cv.evidence(m, data, method="annealing", sweeps=32, replicas=200, progress=False)
    assert abs(found.log_evidence - TRUTH) < 3.5 * found.standard_error
    assert 50.0 < found.effective < 200.0
    assert "particles" in found.explain()
    again = cv.evidence(m, data, method="annealing", sweeps=32, replicas=200, progress=False)
    assert again.log_evidence == found.log_evidence


def test_what_is_returned_tells_how_it_was_found():
    m, data = normal()
    found = cv.evidence(m, data, sweeps=64, replicas=5, copies=2, swaps="one", seed=3, progress=False)
    text = found.explain()
    for word in ("bridge", "stepping stone", "thermodynamic", "from the prior", "round trips", "mean: jointly"):
        assert word in text
    assert found.ladder.shape == (5,)
    assert found.rejections.shape == (4,)
    assert found.barrier == pytest.approx(found.rejections.sum())
    assert repr(found).startswith("<log evidence ")


def test_what_cannot_be_asked_is_said():
    m, data = normal()
    with pytest.raises(cv.ModelError, match="reference='uniform'"):
        cv.evidence(m, data, "uniform")
    with pytest.raises(cv.ModelError, match="'tempering' or 'annealing'"):
        cv.evidence(m, data, method="nested")
    with pytest.raises(cv.ModelError, match="swaps"):
        cv.evidence(m, data, swaps="all")
    with pytest.raises(cv.ModelError, match="wider"):
        cv.evidence(m, data, wider=0.0)
    with pytest.raises(cv.ModelError, match="sweeps"):
        cv.evidence(m, data, sweeps=0)
    with pytest.raises(cv.ModelError, match="replicas"):
        cv.evidence(m, data, replicas=2.5)


def test_a_flat_prior_has_no_evidence():
    m = cv.Model()
    n = m.plate("n")
    x = m.random("x", cv.flat())
    m.random("y", cv.gaussian(x, sd=1.0), plates=n)
    with pytest.raises(cv.UnsupportedError, match="flat prior"):
        cv.evidence(m, {"y": np.zeros(3)})


def test_given_entries_of_a_latent_variable_are_outcomes():
    m = cv.Model()
    n = m.plate("n")
    level = m.random("level", cv.gaussian(0.0, sd=1.0))
    x = m.random("x", cv.gaussian(level, sd=1.0), plates=n)
    m.random("y", cv.gaussian(x, sd=0.5))
    y = np.array([0.3, -0.4, 1.1])
    found = cv.evidence(m, {"x": np.array([1.0, np.nan, np.nan]), "y": y}, sweeps=512, replicas=6, progress=False)
    of_x = 1.0 + np.eye(3)
    numbers, spread = np.array([1.0, *y]), np.block([[of_x[:1, :1], of_x[:1]], [of_x[:, :1], of_x + 0.25 * np.eye(3)]])
    truth = multivariate_normal.logpdf(numbers, np.zeros(4), spread)
    assert found.standard_error < 0.05
    for estimate in found.estimates.values():
        assert abs(estimate.value - truth) < 3.5 * estimate.error


def test_given_classes_among_latent_ones_are_outcomes():
    m = cv.Model()
    n = m.plate("n")
    p = m.random("p", cv.beta(2.0, 1.0))
    z = m.random("z", cv.bernoulli(p), plates=n)
    m.random("y", cv.gaussian(cv.where(z, 2.0, -1.0), sd=1.0))
    y = np.array([1.5, 0.2, -1.0])
    found = cv.evidence(m, {"z": np.array([1.0, np.nan, np.nan]), "y": y}, sweeps=512, replicas=6, progress=False)
    logs = []
    for states in itertools.product([0, 1], repeat=2):
        z = np.array([1, *states])
        prior = betaln(2.0 + z.sum(), 1.0 + 3.0 - z.sum()) - betaln(2.0, 1.0)
        logs.append(prior + norm.logpdf(y, np.where(z, 2.0, -1.0)).sum())
    assert found.standard_error < 0.05
    assert abs(found.log_evidence - logsumexp(logs)) < 3.5 * found.standard_error


def test_given_entries_of_a_chain_are_refused():
    m = cv.Model()
    time = m.plate("time", 3)
    x = m.chain("x", over=time, first=cv.gaussian(0.0, sd=1.0), then=lambda before: cv.gaussian(before, sd=1.0))
    m.random("y", cv.gaussian(x, sd=1.0))
    with pytest.raises(cv.UnsupportedError, match="'x' are given"):
        cv.evidence(m, {"x": np.array([1.0, np.nan, np.nan]), "y": np.zeros(3)})


def test_nothing_latent_has_nothing_to_integrate():
    m = cv.Model()
    m.random("y", cv.gaussian(0.0, sd=1.0))
    with pytest.raises(cv.UnsupportedError, match="closed form"):
        cv.evidence(m, {"y": 1.0})


@pytest.mark.slow
def test_the_posterior_of_a_few_rows_may_be_the_reference():
    m, data = classes()
    whole = cv.evidence(m, data, sweeps=1024, replicas=8, progress=False)
    few = cv.infer(m, {"y": data["y"][:2]})
    with pytest.warns(cv.CavityWarning, match="precision in one order"):  # whose shares have an order by their prior
        found = cv.evidence(m, data, few, wider=2.0, sweeps=1024, replicas=8, progress=False)
    assert found.reference == ("share", "precision")
    gap = found.log_evidence - whole.log_evidence
    assert abs(gap) < 3.5 * np.hypot(found.standard_error, whole.standard_error)


@pytest.mark.slow
def test_errors_are_those_of_repeated_runs():
    m, data = classes()
    found = [cv.evidence(m, data, sweeps=128, replicas=5, copies=2, seed=s, progress=False) for s in range(20)]
    truth = cv.evidence(m, data, sweeps=8192, replicas=8, seed=99, progress=False)
    assert truth.standard_error < 0.01
    scores = np.array([(one.log_evidence - truth.log_evidence) / one.standard_error for one in found])
    assert np.abs(scores).max() < 4.0
    assert 0.5 < scores.std() < 1.6
    assert abs(scores.mean()) < 0.8


def test_check_evidence_sees_an_evidence_that_is_off():
    m = cv.Model()
    n = m.plate("n")
    x = m.input("x", cv.vector(2), plates=n)
    w = m.random("w", cv.vector_gaussian(np.zeros(2), covariance=4.0 * np.eye(2)))
    m.random("y", cv.bernoulli(cv.probit(cv.dot(w, x))))
    x = np.random.default_rng(0).normal(size=(30, 2))
    data = {"x": x, "y": x @ np.array([1.0, -1.0]) > 0.0}
    found = cv.infer(m, data, method="ep").check_evidence()
    assert abs(found.difference) < 0.2
    assert found.standard_error < 0.05
    assert f"{found.log_evidence:.2f}" in str(found)
    assert "above" in str(found) or "below" in str(found)


def test_check_evidence_by_the_series_of_ep():
    random = np.random.default_rng(1)
    skill, winner = random.normal(size=10), random.integers(0, 10, 60)
    loser = (winner + random.integers(1, 10, 60)) % 10
    upset = skill[winner] + random.normal(size=60) < skill[loser]
    data = {"winner": np.where(upset, loser, winner), "loser": np.where(upset, winner, loser)}
    posterior = cv.infer(skills(), data, sizes={"player": 10}, method="ep", accuracy="fast")
    series, draws = posterior.check_evidence(by="series"), posterior.check_evidence(by="draws")
    assert draws.difference < -10.0 * draws.standard_error  # EP is below
    assert abs(series.log_evidence - draws.log_evidence) < 2.0 * series.standard_error < 0.5
    assert not series.agrees
    assert "by='tempering' measures it" in str(series)
    with pytest.raises(ModelError, match="'series', 'draws', 'tempering'"):
        posterior.check_evidence(by="luck")


def test_check_evidence_names_what_stands_against_a_way():
    m = cv.Model()
    k = m.plate("k")
    rate = m.random("rate", cv.gamma(1.0, 1.0))
    z = m.random("z", cv.bernoulli(0.5), plates=k)
    m.random("y", cv.switch(z, cv.poisson(rate), cv.poisson(2.0)))
    posterior = cv.infer(m, {"y": [0, 1, 5]}, method="vmp")
    with pytest.raises(cv.UnsupportedError, match="a bound"):
        posterior.check_evidence(by="series")
    with pytest.raises(cv.UnsupportedError, match="by='tempering'"):
        posterior.check_evidence(by="draws")


@pytest.mark.slow
def test_check_evidence_counts_all_orders_of_components():
    m = cv.Model()
    n, k = m.plate("n"), m.plate("k", 2)
    centre = m.random("centre", cv.gaussian(0.0, sd=5.0), plates=k)
    z = m.random("z", cv.categorical([0.5, 0.5]), plates=n)
    m.random("y", cv.gaussian(centre[z], sd=1.0))
    random = np.random.default_rng(0)
    data = {"y": np.concatenate([random.normal(-3, 1, 10), random.normal(3, 1, 10)])}
    found = cv.infer(m, data, seed=0).check_evidence(sweeps=512)
    assert found.difference == pytest.approx(-np.log(2.0), abs=0.1 + 3.0 * found.standard_error)
    assert "all orders of centre" in str(found)
