"""Paths whose moves have less to draw: discrete variables summed out, or conjugate parents integrated out."""

import itertools

import jax
import numpy as np
import pytest
from scipy.special import betaln, logsumexp
from scipy.stats import binom

import cavity as cv
from cavity.engine.data.rules_of_arguments import bind_checked
from cavity.engine.tempering.path import Path, summed

from .known_evidences import MODELS


def coins():
    """Rows of two coins of unknown bias, and the evidence by enumeration of which coin each was."""
    m = cv.Model()
    n, k = m.plate("n"), m.plate("k", 2)
    share = m.random("share", cv.beta(2.0, 1.0))
    chance = m.random("chance", cv.beta(1.0, 2.0), plates=k)
    z = m.random("z", cv.bernoulli(share), plates=n)
    m.random("y", cv.binomial(4, cv.where(z, chance[0], chance[1])))
    y, logs = np.array([0, 4, 3, 1]), []
    for row in map(np.array, itertools.product([True, False], repeat=4)):
        heads = [(y[row == of].sum(), (4 - y[row == of]).sum()) for of in (True, False)]
        logs.append(betaln(2.0 + row.sum(), 1.0 + (~row).sum()) - betaln(2.0, 1.0))
        logs[-1] += sum(betaln(1.0 + up, 2.0 + down) - betaln(1.0, 2.0) for up, down in heads)
    return m, {"y": y}, logsumexp(logs) + sum(np.log([1.0, 1.0, 4.0, 4.0]))


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"sum_out": True}, {"collapse": ["share"]}], ids=["summed out", "collapsed"])
def test_what_is_summed_or_integrated_out_leaves_the_evidence(options):
    m, data, truth = coins()
    found = cv.evidence(m, data, sweeps=512, replicas=4, progress=False, **options)
    assert found.standard_error < 0.1
    assert abs(found.log_evidence - truth) < 3.5 * found.standard_error


@pytest.mark.slow
@pytest.mark.parametrize("name", ["two_classes", "three_classes"])
@pytest.mark.parametrize("options", [{"sum_out": True}, {"collapse": ["share"]}], ids=["summed out", "collapsed"])
def test_mixtures_have_one_evidence_by_each_path(name, options):
    m, data, truth = MODELS[name]()
    found = cv.evidence(m, data, sweeps=512, replicas=8, progress=False, **options)
    assert abs(found.log_evidence - truth) < 3.5 * found.standard_error


def test_the_likelihood_is_summed_over_all_states():
    m, data, _ = coins()
    share, chance = np.array(0.3), np.array([0.2, 0.6])
    with jax.enable_x64(True):
        path = summed(Path(m, bind_checked(m, data), {}))
        found = path.log_ratio({"share": share, "chance": chance}, path.arrays)
    each = [binom.logpmf(data["y"], 4, chance[of]) + np.log([share, 1.0 - share][of]) for of in (0, 1)]
    assert float(found) == pytest.approx(logsumexp(each, axis=0).sum(), abs=1e-12)


def test_a_prior_that_depends_on_a_state_cannot_be_summed_out():
    m = cv.Model()
    z = m.random("z", cv.bernoulli(0.5))
    x = m.random("x", cv.switch(z, cv.gaussian(0.0, sd=1.0), cv.gaussian(0.0, sd=3.0)))
    m.random("y", cv.gaussian(x, sd=1.0))
    with pytest.raises(cv.UnsupportedError, match="prior of x depends"):
        cv.evidence(m, {"y": 1.0}, sum_out=True, progress=False)
