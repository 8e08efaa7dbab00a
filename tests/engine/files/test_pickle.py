"""Models, programs and posteriors are pickled and copied: by declarations, by what they are made of, and as files."""

from __future__ import annotations

import copy
import pickle
import sys

import dealt_models
import jax.numpy as jnp
import numpy as np
import pytest

import cavity as cv
from cavity.compiler.portable import packed, unpacked
from cavity.engine.evidence.integrated import Integrated
from cavity.engine.evidence.reweighted import Reweighted


def again(thing):
    return pickle.loads(pickle.dumps(thing))


@pytest.mark.parametrize("name", dealt_models.CASES)
def test_models_and_programs(name):
    make, options, _ = dealt_models.CASES[name]
    model, data, more = make()
    copies = [again(model), copy.copy(model), copy.deepcopy(model)]
    assert [repr(own) for own in copies] == [repr(model)] * 3
    found = cv.infer(model, data, **options, **more)
    assert cv.infer(copies[0], data, **options, **more).log_evidence == found.log_evidence
    observed = [name for name in data if name in model.randoms]
    program = again(cv.compile(model, observed=observed, **options, sizes=more.get("sizes")))
    assert program(data).log_evidence == pytest.approx(found.log_evidence, rel=1e-12)


def test_declarations_go_on_after_a_copy():
    model = again(dealt_models.coin()[0])
    rate = model.random("rate", cv.gamma(1.0, 1.0))
    model.random("count", cv.poisson(rate))
    found = cv.infer(model, {"y": np.arange(21) % 3 == 0, "count": 3})
    assert found["rate"].mean == pytest.approx(2.0)


def groups():
    random = np.random.default_rng(0)
    m = cv.Model("groups")
    group, row = m.plate("group", 6), m.plate("row")
    tau = m.random("tau", cv.half_cauchy(1.0))
    effect = m.random("effect", cv.gaussian(0.0, sd=tau), plates=group)
    m.random("y", cv.gaussian(effect[m.input("own", cv.index(group), plates=row)], sd=1.0), plates=row)
    own = np.repeat(np.arange(6), 4)
    return m, {"own": own, "y": random.normal(size=6)[own] + random.normal(size=24)}


def test_posteriors():
    model, data = groups()
    kinds = {
        "fast": cv.infer(model, data, accuracy="fast"),
        "integrated": cv.infer(model, data),
        "starts": cv.infer(*dealt_models.mixture(40)[:2], method="vmp", restarts=2),
    }
    assert isinstance(kinds["integrated"], Integrated)
    for name, posterior in kinds.items():
        for found in (again(posterior), copy.deepcopy(posterior)):
            assert type(found) is type(posterior)
            assert found.log_evidence == posterior.log_evidence
            for variable, marginal in posterior.items():
                np.testing.assert_array_equal(found[variable].mean, marginal.mean)
            assert found.summary().split("\nRun by")[0] == posterior.summary().split("\nRun by")[0], name
    assert again(kinds["integrated"]).loo().total == pytest.approx(kinds["integrated"].loo().total, rel=1e-12)
    np.testing.assert_array_equal(again(kinds["starts"]).restarts.by_start, kinds["starts"].restarts.by_start)


def test_weighted_draws():
    m = cv.Model("saturating")
    rate = m.random("rate", cv.gamma(2.0, 1.0))
    m.random("y", cv.gaussian(1.0 - cv.exp(-rate), sd=0.05), plates=m.plate("row"))
    posterior = cv.infer(m, {"y": [0.9, 0.93, 0.97]}, accuracy="best")
    found = again(posterior)
    assert type(found) is type(posterior)
    np.testing.assert_array_equal(found["rate"].mean, posterior["rate"].mean)
    if isinstance(posterior, Reweighted):
        assert found.verdict.level == posterior.verdict.level


def laplace(out, location):
    return -jnp.abs(out - location) - jnp.log(2.0)


def test_a_factor_of_ones_own_goes_by_its_name_and_a_function_without_one_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    for density in (laplace, lambda out, location: laplace(out, location)):
        m = cv.Model("own factor")
        own = cv.factor("own_laplace", out=cv.real, location=cv.real, log_density=density)
        mean = m.random("mean", cv.gaussian(0.0, variance=4.0))
        m.random("y", own(location=mean), plates=m.plate("row"))
        if density is laplace:
            data = {"y": [0.3, 0.9, 1.1]}
            assert cv.infer(again(m), data).log_evidence == cv.infer(m, data).log_evidence
            continue
        with pytest.raises(cv.ModelError, match="'own factor' goes to other processes, and part of it"):
            pickle.dumps(m)
        assert repr(copy.deepcopy(m)) == repr(m)


def test_what_is_packed_beside_a_model_shares_its_nodes():
    model, _, _ = dealt_models.logistic(9)
    again_model, node = unpacked(packed((model, model.randoms["weight"]), "A model and a node of it"))
    assert node is again_model.randoms["weight"]


def test_what_was_integrated_over_a_category_is_read_again():
    random = np.random.default_rng(1)
    m = cv.Model("kinds")
    kind, noise = m.random("kind", cv.categorical([0.3, 0.3, 0.4])), m.random("noise", cv.half_cauchy(1.0))
    mean = m.random("mean", cv.gaussian(0.0, sd=2.0), plates=m.plate("kinds", 3))
    row = m.plate("row")
    m.random("y", cv.switch(kind, *[cv.gaussian(mean[k], sd=noise) for k in range(3)]), plates=row)
    posterior = cv.infer(m, {"y": random.normal(1.0, 0.5, size=12)}, integrate=["kind", "noise"])
    found = again(posterior)
    assert isinstance(found, Integrated)
    np.testing.assert_array_equal(found["kind"].mean, posterior["kind"].mean)
    np.testing.assert_array_equal(found["mean"].mean, posterior["mean"].mean)
