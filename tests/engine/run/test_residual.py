"""The residual is the change of a belief in its own standard deviations, whatever the scale."""

import jax
import numpy as np
import pytest

import cavity as cv
from cavity.compiler.plan import make_plan
from cavity.engine.run.residual import distance
from cavity.factors.families import Gamma, Gaussian


def plan():
    m = cv.Model()
    a = m.random("a", cv.gaussian(0.0, variance=1.0), plates=m.plate("n"))
    m.random("y", cv.gaussian(a, precision=m.random("b", cv.gamma(1.0, 1.0))))
    return make_plan(m, frozenset({"y"}), frozenset(), "vmp", frozenset(), {"n": 3}, "default")


def between(name, before, after):
    with jax.enable_x64(True):
        naturals, moments = ([{name: part(q)} for q in (before, after)] for part in (_naturals, _moments))
        return float(distance(plan(), *naturals, *moments, [name]))


def _naturals(family):
    return tuple(map(np.asarray, family.naturals()))


def _moments(family):
    return jax.tree.map(np.asarray, family.moments())


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("shift", [1e-7, 0.3])
def test_a_mean_that_moves_counts_in_standard_deviations(scale, shift):
    """The largest over the plate."""
    spread = np.full(3, scale**2)
    before = Gaussian.from_mean_and_variance(np.zeros(3), spread)
    after = Gaussian.from_mean_and_variance(scale * shift * np.array([0.1, -1.0, 0.5]), spread)
    assert between("a", before, after) == pytest.approx(shift, rel=1e-8)


def test_it_is_the_root_of_the_symmetric_divergence():
    before, after = Gamma.from_parameters(shape=3.0, rate=2.0), Gamma.from_parameters(shape=3.5, rate=1.8)
    with jax.enable_x64(True):
        divergence = sum(
            float(np.sum((b - a) * (t - s)))
            for a, b, s, t in zip(
                before.naturals(), after.naturals(), before.expected_stats(), after.expected_stats(), strict=True
            )
        )
    assert between("b", before, after) == pytest.approx(divergence**0.5, rel=1e-10)


def test_what_is_no_number_is_infinitely_far():
    before = Gaussian.from_mean_and_variance(np.zeros(3), np.ones(3))
    assert between("a", before, Gaussian.from_mean_and_variance(np.zeros(3), np.full(3, np.nan))) == np.inf
