"""Seeds: a whole number or a key of jax.random, everywhere; anything else is told before anything runs."""

import jax
import numpy as np
import pytest

import cavity as cv


def normal():
    m = cv.Model("normal")
    n = m.plate("n")
    mean = m.random("mean", cv.gaussian(0.0, sd=1.0))
    m.random("y", cv.gaussian(mean, sd=1.0), plates=n)
    return m, {"y": [1.0, 2.0]}


MODEL = normal()
POSTERIOR = cv.infer(*MODEL)
CALLS = {
    "infer": lambda seed: cv.infer(*MODEL, seed=seed).log_evidence,
    "program": lambda seed: cv.compile(MODEL[0], ["y"])(MODEL[1], seed=seed).log_evidence,
    "sample": lambda seed: cv.sample(*MODEL, draws=20, warmup=5, chains=1, seed=seed)["mean"],
    "evidence": lambda seed: cv.evidence(*MODEL, sweeps=16, copies=2, seed=seed).log_evidence,
    "laplace": lambda seed: cv.laplace_approximation(*MODEL, seed=seed)["mean"].mean,
    "map": lambda seed: cv.map(*MODEL, seed=seed)["mean"],
    "trust": lambda seed: POSTERIOR.trust(seed=seed).pareto_k,
    "check_evidence": lambda seed: POSTERIOR.check_evidence(seed=seed).log_evidence,
    "map of a program": lambda seed: (
        cv.compile(MODEL[0], ["y"]).map([MODEL[1]], seed=seed, workers=cv.workers.here())[0].log_evidence
    ),
    "importance": lambda seed: POSTERIOR.importance(seed=seed, draws=50).log_evidence,
}


@pytest.mark.parametrize("call", CALLS)
def test_keys_are_seeds_and_decide_all(call):
    first, again = (np.asarray(CALLS[call](jax.random.key(3))) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    CALLS[call](np.int64(3))


@pytest.mark.parametrize("seed", [-1, 1.5, "a", None, True, 2**70, [1, 2]], ids=str)
@pytest.mark.parametrize("call", CALLS)
def test_what_is_no_seed_is_told(call, seed):
    with pytest.raises(cv.ModelError, match="whole number"):
        CALLS[call](seed)


@pytest.mark.parametrize("key", [2**70, "a", 1.5, None], ids=str)
def test_what_is_no_key_is_told(key):
    for call in (POSTERIOR["mean"].sample, cv.log_density(*MODEL).initial):
        with pytest.raises(cv.ModelError, match="whole number"):
            call(key)


def test_keys_of_other_numbers_are_other_seeds():
    found = {float(CALLS["evidence"](jax.random.key(k))) for k in range(3)}
    assert len(found) == 3
