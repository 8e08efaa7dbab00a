"""The samplers of sparse factor models draw from the right law: known numbers without data, Geweke's test of every
variant, and that the test can fail."""

import zlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from geweke_of_factors import (
    FULL,
    KEY,
    KNOWN,
    PLAIN,
    Case,
    compare,
    draw_prior,
    draw_values,
    far,
    numbers_of,
    observed_of,
)
from serial_sweep import serial

from cavity.engine.mcmc.keys import generator
from cavity.engine.support.machine_code import Kernel
from cavity.models.buffet.prior import IndianBuffet
from cavity.models.sparse.kernels import collapsed, parallel

SWEEPS = {"parallel": parallel, "serial": serial, "collapsed": collapsed}

# N = D = 2, mass 2, unit precisions, as the thesis has it: K is Poisson(3).
PROPOSALS = {
    "prior": Case(PLAIN),
    "spike": Case(PLAIN, numbers={"spike": 0.1}),
    "multiplier": Case(PLAIN, numbers={"multiplier": 10.0}),
}
CASES = {
    "mass": Case(PLAIN._replace(learn=("mass",)), places=32),
    "concentration": Case(PLAIN._replace(learn=("concentration",)), rows=3, places=32),
    "mass and concentration": Case(PLAIN._replace(learn=("concentration", "mass")), rows=3, places=32),
    "two parameters": Case(PLAIN, rows=3, concentration=2.5, places=32),
    "precision": Case(PLAIN._replace(precision="factor")),
    "precision rate": Case(PLAIN._replace(precision="factor", learn=("precision_rate",))),
    "shared precision": Case(PLAIN._replace(precision="shared")),
    "shared precision rate": Case(PLAIN._replace(precision="shared", learn=("precision_rate",))),
    "noise": Case(PLAIN._replace(noise="row")),
    "noise rate": Case(PLAIN._replace(noise="row", learn=("noise_rate",))),
    "shared noise": Case(PLAIN._replace(noise="shared")),
    "shared noise rate": Case(PLAIN._replace(noise="shared", learn=("noise_rate",))),
    "all": Case(FULL, rows=3, places=32, numbers={"spike": 0.1, "multiplier": 2.0}, missing=((0, 2), (1, 0))),
    "one row tried": Case(PLAIN._replace(rows=1)),
    "two factors at most": Case(PLAIN._replace(most=2, precision="factor")),
    "student_t": Case(PLAIN._replace(slab="student_t", precision="factor")),
    "laplace": Case(PLAIN._replace(slab="laplace", precision="factor")),
    "horseshoe": Case(PLAIN._replace(slab="horseshoe", precision="factor")),
    "horseshoe, shared": Case(PLAIN._replace(slab="horseshoe", precision="shared", learn=("precision_rate",))),
    "finite": Case(PLAIN._replace(sparsity="finite"), rows=3, factors=3),
    "finite, all": Case(
        FULL._replace(sparsity="finite", learn=("mass", "noise_rate", "precision_rate"), slab="laplace"),
        rows=3,
        factors=3,
    ),
    "hierarchical": Case(PLAIN._replace(sparsity="hierarchical", precision="factor"), rows=3, factors=3),
    "hierarchical student_t": Case(
        PLAIN._replace(sparsity="hierarchical", slab="student_t", noise="row"), rows=3, factors=2
    ),
    "dense": Case(PLAIN._replace(sparsity="none", precision="factor", noise="row"), factors=2),
    "dense student_t": Case(PLAIN._replace(sparsity="none", slab="student_t", noise="shared"), factors=2),
    "known": Case(PLAIN._replace(known=2, precision="factor"), rows=3, known=KNOWN, places=32),
    "known, finite": Case(
        PLAIN._replace(sparsity="finite", known=2, precision="factor"), rows=3, factors=4, known=KNOWN
    ),
    "known, dense": Case(PLAIN._replace(sparsity="none", known=1), rows=3, factors=2, known=KNOWN[:1]),
    "known, horseshoe, all shared": Case(
        FULL._replace(slab="horseshoe", precision="shared", noise="shared", known=2),
        rows=3,
        places=32,
        known=KNOWN,
        missing=((1,), (0,)),
    ),
    "dirichlet": Case(
        PLAIN._replace(scores="dirichlet", sparsity="hierarchical", precision="factor"),
        rows=3,
        samples=4,
        factors=2,
        score_mass=1.5,
        places=2,
    ),
    "dirichlet, dense": Case(
        PLAIN._replace(scores="dirichlet", sparsity="none", noise="row"),
        samples=4,
        factors=2,
        score_mass=0.5,
        places=3,
        missing=((0,), (2,)),
    ),
    "missing": Case(PLAIN._replace(noise="row"), rows=3, missing=((0, 2, 2), (1, 0, 1))),
}


def key_of(*names):
    return jax.random.fold_in(KEY, zlib.crc32(" ".join(names).encode()))


# Geweke's test --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("sweep", SWEEPS)
@pytest.mark.parametrize("name", CASES)
def test_variants(name, sweep):
    assert not far(compare(CASES[name], SWEEPS[sweep], key_of(name, sweep), 1000, 100))


LIGHT = [
    ("parallel", "all"),
    ("serial", "known, horseshoe, all shared"),
    ("parallel", "finite, all"),
    ("serial", "hierarchical student_t"),
    ("parallel", "dirichlet"),
    ("collapsed", "missing"),
]


@pytest.mark.parametrize(("sweep", "name"), LIGHT)
def test_some_variants_in_short(name, sweep):
    assert not far(compare(CASES[name], SWEEPS[sweep], key_of(name, sweep), 200, 10))


def three_factors(found):
    """Whether there are Poisson(3) many, within 3 standard errors, and all else that is compared agrees."""
    return abs(found.against("count", 3.0)) < 3.0 and not far(found)


@pytest.mark.slow
@pytest.mark.parametrize("sweep", SWEEPS)
@pytest.mark.parametrize("name", PROPOSALS)
def test_three_factors(name, sweep):
    assert three_factors(compare(PROPOSALS[name], SWEEPS[sweep], key_of(name, sweep), 1000, 100))


def forgetful(key, state, observed, numbers, bound, switches):
    """The invalid sampler: the factors that a row has alone are taken away before others are proposed to it."""
    keep = (state.loading != 0.0).sum(1) > 1
    order = jnp.argsort(~keep, stable=True)
    state = jax.tree.map(lambda each: each[order] if each.shape[:1] == keep.shape else each, state)
    lost = jnp.arange(len(keep)) >= keep.sum()
    state = state._replace(
        loading=jnp.where(lost[:, None], 0.0, state.loading),
        factor=jnp.where(lost[:, None], 0.0, state.factor),
        count=keep.sum(),
    )
    return parallel(key, state, observed, numbers, bound, switches)


def test_three_factors_in_short_and_that_the_test_can_fail():
    right, wrong = (compare(PROPOSALS["spike"], sweep, KEY, 200, 20) for sweep in (parallel, forgetful))
    assert three_factors(right)
    assert not three_factors(wrong)
    assert wrong.against("count", 3.0) < -5.0


# no data --------------------------------------------------------------------------------------------------------------


def without_data(sweep, concentration, chains, steps):
    """How far the numbers of factors and of active loadings are from the Indian buffet process, in standard errors."""
    case = Case(PLAIN._replace(rows=10), rows=10, samples=0, concentration=concentration, places=32)
    found = compare(case, SWEEPS[sweep], KEY, chains, steps)
    law = IndianBuffet(case.mass, concentration)
    return [
        found.against("count", law.expected_features(case.rows)),
        found.against("ones", law.expected_ones(case.rows)),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("concentration", [1.0, 2.5])
@pytest.mark.parametrize("sweep", SWEEPS)
def test_prior(sweep, concentration):
    assert np.abs(without_data(sweep, concentration, 1000, 100)).max() < 3.0


def test_prior_in_short():
    assert np.abs(without_data("serial", 1.0, 200, 20)).max() < 3.0


@pytest.mark.slow  # the parallel one has its twin in test_parallel_kernel.py
def test_serial_sweep_does_not_depend_on_padding():
    many = {"mass_prior": (16.0, 4.0), "multiplier": 10.0}
    case = Case(FULL, rows=6, samples=5, missing=((1, 4), (0, 3)), numbers=many, places=32)
    state = draw_prior(case, jax.random.key(1), 1)
    observed = observed_of(case, draw_values(state, generator(KEY)))
    state, observed = jax.tree.map(lambda each: each[0], state), observed._replace(values=observed.values[0])
    places = int(state.count)
    narrow = state._replace(**{name: getattr(state, name)[:places] for name in ("loading", "factor", "precision")})
    sweep, numbers, counts = Kernel(serial_sweep(case.switches)), numbers_of(case), []
    for key in jax.random.split(KEY, 20):
        one, other = (sweep(key, each, observed, numbers, each.count) for each in (narrow, state))
        if not one.fits:
            continue
        for name in ("count", "noise", "mass", "concentration", "missing"):
            np.testing.assert_allclose(getattr(one.state, name), getattr(other.state, name), rtol=1e-9)
        count = int(one.state.count)
        for name in ("loading", "factor", "precision"):
            np.testing.assert_allclose(getattr(one.state, name)[:count], getattr(other.state, name)[:count], rtol=1e-8)
        counts.append(count)
    assert 10 <= len(counts) < 20  # some do not fit the smaller one
    assert len(set(counts)) > 1
    assert sweep.traces == 2


def serial_sweep(switches):
    return lambda key, state, observed, numbers, bound: serial(key, state, observed, numbers, bound, switches)
