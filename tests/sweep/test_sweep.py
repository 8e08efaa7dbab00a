"""Random small models under every method against enumeration and dense grids: no NaN, no silent failure.

A failure names its seed and draw: `Structure(seed, method).try_one(draw)` repeats it, `print(Structure(...).small)`
shows the model.
"""

from __future__ import annotations

import gc

import jax
import numpy as np
import pytest
from grids import Oracle
from judge import METHODS, Structure, Verdict
from small import log_terms

import cavity as cv

CHUNK = 5  # structures in one test
FEW, STRUCTURES, DRAWS = 5, 15, 17  # over 200 models, a third of them by default; some are too large for the oracle
MANY, MANY_DRAWS = 1500, 8  # of the slow suite: 10,000 models and more


def method_of(seed: int) -> str:
    return list(METHODS)[seed % len(METHODS)]


def sweep(seeds: range, draws: int) -> dict[tuple[int, int], Verdict]:
    """The verdicts by seed and draw."""
    found: dict[tuple[int, int], Verdict] = {}
    for seed in seeds:
        try:
            structure = Structure(seed, method_of(seed))
        except cv.CavityError as error:
            found[seed, 0] = Verdict("refused", str(error))
            continue
        if structure.small is None:
            continue
        for number in range(draws):
            with np.errstate(all="ignore"):
                verdict = structure.try_one(number)
            if verdict is not None:
                found[seed, number] = verdict
            if verdict is not None and verdict.kind in ("refused", "crash"):
                break
    gc.collect()
    return found


def check(found: dict[tuple[int, int], Verdict]) -> None:
    broken = {key: verdict for key, verdict in found.items() if verdict.broken}
    assert not broken, "\n".join(f"seed {s}, draw {d}: {v.kind}: {v.text}" for (s, d), v in broken.items())
    assert all(v.text for v in found.values() if v.kind == "refused"), "a refusal says why"
    judged = sum(verdict.kind == "fine" for verdict in found.values())
    assert judged >= 0.5 * len(found), f"only {judged} of {len(found)} answers agree with the oracle"


def slow_from(few, seeds):
    """The first few seeds by default, all of them in the slow suite."""
    return [pytest.param(seed, marks=[pytest.mark.slow] * (seed >= few)) for seed in seeds]


@pytest.mark.parametrize("start", slow_from(FEW, range(0, STRUCTURES, CHUNK)))
def test_small_models(start):
    check(sweep(range(start, start + CHUNK), DRAWS))


@pytest.mark.slow
@pytest.mark.parametrize("start", range(10_000, 10_000 + MANY, CHUNK))
def test_many_small_models(start):
    check(sweep(range(start, start + CHUNK), MANY_DRAWS))
    jax.clear_caches()


@pytest.mark.parametrize("seed", slow_from(3, range(6)))
def test_the_two_log_densities_agree(seed):
    """cv.log_density and plain NumPy, at random points: up to a constant that variables without data leave."""
    structure = Structure(seed, "auto")
    if structure.small is None or (case := structure.case(0)) is None:
        pytest.skip("no data set of this structure")
    try:
        density = cv.log_density(structure.model, case.data)
    except cv.UnsupportedError as error:
        pytest.skip(f"no joint density: {error}")
    oracle = Oracle(structure.small, case.given, case.seen, case.missing)
    if {v.name for v in oracle.continuous} != set(density.names) or {v.name for v in oracle.discrete} != set(
        density.summed
    ):
        pytest.skip("some variables are not part of the density")
    z = np.random.default_rng(seed).normal(0.0, 0.5, (4, oracle.dimension))
    values, _ = oracle.values(z)
    columns = [
        log_terms(structure.small, {**case.given, **case.seen, **values, **states}, case.missing)
        for states in oracle.combinations()
    ]
    ours = np.logaddexp.reduce(np.stack(np.broadcast_arrays(*columns), 1), axis=1)
    theirs = [density({n: v[i].reshape(density.shapes[n]) for n, v in values.items()}) for i in range(len(z))]
    np.testing.assert_allclose(theirs, ours, rtol=1e-9, atol=1e-9)
