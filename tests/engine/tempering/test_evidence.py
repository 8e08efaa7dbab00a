"""`cv.evidence` against closed forms, quadrature and enumeration."""

import jax
import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

import cavity as cv
from cavity.engine.data.rules_of_arguments import bind_checked
from cavity.engine.sampling.sample import plan
from cavity.engine.tempering.annealing import log_weights, weighed
from cavity.engine.tempering.estimators import estimates
from cavity.engine.tempering.evidence import Asked, _adapted, _tell_gaps
from cavity.engine.tempering.ladder import equalised
from cavity.engine.tempering.path import Path
from cavity.engine.tempering.replicas import program, run

from .known_evidences import MODELS, line

QUICK = ("coin", "between_ends")
SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in MODELS if name not in QUICK]


@pytest.mark.parametrize("name", [*QUICK, *SLOW])
def test_the_evidence_is_that_of_closed_forms_and_enumeration(name):
    m, data, truth = MODELS[name]()
    found = cv.evidence(m, data, sweeps=512, replicas=8, progress=False)
    assert found.standard_error < 0.15
    for estimate in found.estimates.values():
        assert abs(estimate.value - truth) < 3.5 * estimate.error + 1e-9


def test_a_ladder_that_no_replica_climbs_is_told():
    with pytest.warns(cv.CavityWarning, match="No replica went"):
        _tell_gaps(np.full(4, 0.5), np.linspace(0.0, 1.0, 5), 0, 256)


def repeated(m, data, repeats=32, copies=4, sweeps=512, particles=128, temperatures=64):
    """All estimators on independent groups of copies and of particles of one program."""
    with jax.enable_x64(True):
        path = Path(m, bind_checked(m, data), {})
        prepared, key = program(path, plan(path), False), jax.random.key(0)
        asked = Asked(sweeps=sweeps, replicas=6, copies=repeats * copies)
        ready = _adapted(prepared, key, asked.copies, asked.replicas, sweeps=sweeps, counter=lambda done: None)
        learned = False, False
        _, trace = run(prepared, key, ready.replicas, ready.ladder, sweeps, ready.done, learned, lambda done: None)
        ladder = equalised(ready.ladder, ready.rejected, temperatures + 1)
        own = jax.random.fold_in(key, 1)
        weights = log_weights(
            prepared, own, ladder, ready.replicas, ready.ladder, repeats * particles, lambda done: None
        )
    groups = np.split(trace.log_ratio, repeats, axis=1)
    annealed = [{"annealed importance sampling": weighed(part).estimate} for part in np.split(weights, repeats)]
    return [estimates(group, ready.ladder) | more for group, more in zip(groups, annealed, strict=True)]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mean_and_precision", "logistic", "two_classes"])
def test_errors_are_those_of_repeats(name):
    m, data, truth = MODELS[name]()
    found = repeated(m, data)
    assert len(found[0]) == 4
    for estimator in found[0]:
        scores = np.array([(one[estimator].value - truth) / one[estimator].error for one in found])
        assert abs(scores.mean()) < 4.0 / np.sqrt(len(found)), estimator
        assert scores.std() < 1.0 + 3.0 / np.sqrt(2.0 * len(found)), estimator
        if estimator != "thermodynamic integration":  # whose error has a bound of what interpolation misses
            assert scores.std() > 1.0 - 3.0 / np.sqrt(2.0 * len(found)), estimator


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["line", "coin", "matrix", "hidden_states", "logistic", "scale", "between_ends", "alarms"]
)
def test_beliefs_may_be_the_reference(name):
    m, data, truth = MODELS[name]()
    found = cv.evidence(m, data, cv.infer(m, data), sweeps=512, replicas=8, wider=1.5, progress=False)
    assert abs(found.log_evidence - truth) < 3.5 * found.standard_error + 1e-9


def test_a_spike_has_its_prior_as_reference_and_the_evidence_stays():
    rng = np.random.default_rng(1)
    m = cv.Model()
    n = m.plate("n")
    x = m.input("x", cv.real, plates=n)
    w = m.random("w", cv.spike_and_slab(0.4, precision=0.5))
    m.random("y", cv.gaussian(w * x, sd=1.0))
    data = {"x": rng.normal(size=6), "y": rng.normal(size=6)}
    posterior = cv.infer(m, data)
    slab = multivariate_normal.logpdf(data["y"], np.zeros(6), np.eye(6) + 2.0 * np.outer(data["x"], data["x"]))
    exact = np.logaddexp(np.log(0.6) + norm.logpdf(data["y"]).sum(), np.log(0.4) + slab)
    found = cv.evidence(m, data, posterior, wider=2.0, sweeps=512, progress=False)
    assert abs(found.log_evidence - exact) < 4.0 * found.standard_error + 1e-3


def test_time_that_is_over_leaves_an_honest_answer():
    m, data, exact = line()
    found = cv.evidence(m, data, replicas=6, max_seconds=1e-6, progress=False)
    assert found.sweeps == 32
    assert abs(found.log_evidence - exact) < 4.0 * found.standard_error
    assert "max_seconds ended the sweeps after 32 of 1,024" in found.explain()
    with pytest.raises(cv.ModelError, match="whole path or tell nothing"):
        cv.evidence(m, data, method="annealing", max_seconds=1.0)


def test_what_is_no_reference_is_refused():
    m = cv.Model()
    mu = m.random("mu", cv.gaussian(0.0, sd=1.0))
    m.random("y", cv.gaussian(mu, sd=1.0))
    for reference in ({}, {"mu": 1.0}, np.zeros(3), "posterior"):
        with pytest.raises(cv.ModelError, match="reference"):
            cv.evidence(m, {"y": 1.0}, reference)
    with pytest.raises(cv.ModelError, match="two ends"):
        cv.evidence(m, {"y": 1.0}, replicas=1)
    flat = cv.Model()
    level = flat.random("level", cv.flat())
    flat.random("y", cv.gaussian(level, sd=1.0))
    with pytest.raises(cv.UnsupportedError, match="flat prior"):
        cv.infer(flat, {"y": 1.0}).check_evidence()


def test_a_ladder_that_is_given_is_kept_and_the_means_along_it_are_known():
    y, prior, noise = np.array([1.0, 1.6, 0.4, 2.2, 1.1]), 9.0, 0.5
    m = cv.Model()
    mean = m.random("mean", cv.gaussian(0.0, variance=prior))
    m.random("y", cv.gaussian(mean, variance=noise), plates=m.plate("n"))
    ladder = [0.0, *np.geomspace(0.01, 1.0, 9)]
    found = cv.evidence(m, {"y": y}, ladder=ladder, sweeps=2048, seed=3)
    np.testing.assert_array_equal(found.ladder, ladder)
    precision = 1.0 / prior + found.ladder * len(y) / noise
    centre = found.ladder * y.sum() / noise / precision
    square = ((y - centre[:, None]) ** 2).sum(-1) + len(y) / precision
    expected = -0.5 * len(y) * np.log(2.0 * np.pi * noise) - 0.5 * square / noise
    error = found.log_ratio_sds / np.sqrt(4 * 2048)
    assert np.all(np.abs(found.log_ratio_means - expected) < 6.0 * error + 1e-9)
    truth = multivariate_normal.logpdf(y, np.zeros(5), prior * np.ones((5, 5)) + noise * np.eye(5))
    assert abs(found.log_evidence - truth) < 4.0 * found.standard_error


@pytest.mark.parametrize(
    "options",
    [
        {"ladder": [0.0, 0.5]},
        {"ladder": [0.1, 1.0]},
        {"ladder": [0.0, 0.5, 0.5, 1.0]},
        {"ladder": 3.0},
        {"ladder": [0.0, 1.0], "replicas": 3},
        {"ladder": [0.0, 1.0], "method": "annealing"},
    ],
)
def test_what_is_no_ladder_is_refused(options):
    model, data, _ = line()
    with pytest.raises(cv.ModelError, match="ladder"):
        cv.evidence(model, data, **options)


def test_rungs_without_a_state_in_common_are_told():
    m = cv.Model()
    mean = m.random("mean", cv.gaussian(0.0, sd=1e4))
    m.random("y", cv.gaussian(mean, sd=0.01), plates=m.plate("n"))
    with pytest.warns(cv.CavityWarning, match="hardly a state in common"):
        cv.evidence(m, {"y": np.array([1.0, 1.01, 0.99])}, ladder=[0.0, 1.0], sweeps=256)
