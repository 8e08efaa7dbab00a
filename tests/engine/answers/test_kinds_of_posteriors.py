"""Every kind of posterior answers every question that a posterior may be asked, or says why it cannot."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import scipy.integrate
import scipy.stats

import cavity as cv
from cavity.engine.evidence.integrated import Integrated
from cavity.engine.evidence.reweighted import Reweighted, by_draws
from cavity.engine.files.saved_posterior import Saved
from cavity.engine.posterior import Posterior
from cavity.factors.errors import CavityError

close = np.testing.assert_allclose
X, Y = np.arange(6.0), np.array([0.1, 0.7, 0.9, 1.6, 2.2, 2.9])
DATA = {"slope": 0.5, "x": X, "y": Y}
KINDS = (
    "plain",
    "integrated",
    "best",
    "draws",
    "batch",
    "carried",
    "loaded",
    "saved",
    "loaded mixture",
    "saved mixture",
)


def line():
    """y ~ N(mean + slope x, 1 / precision), the slope an input."""
    m = cv.Model("line")
    x = m.input("x", cv.real, plates=m.plate("row"))
    slope = m.input("slope", cv.real)
    mean = m.random("mean", cv.gaussian(0.0, variance=10.0))
    precision = m.random("precision", cv.gamma(2.0, 2.0))
    m.random("y", cv.gaussian(mean + slope * x, precision=precision))
    return m


@pytest.fixture(scope="module")
def posteriors(tmp_path_factory):
    model, path = line(), tmp_path_factory.mktemp("kinds") / "posterior"
    mixture = path.parent / "mixture"
    program = cv.compile(model, ["y"], tolerance=1e-9)
    plain = program(DATA)
    plain.save(path)
    integrated = cv.infer(model, DATA, integrate=["precision"], tolerance=1e-9)
    integrated.save(mixture)
    return {
        "plain": plain,
        "integrated": integrated,
        "best": cv.infer(model, DATA, accuracy="best"),
        "draws": by_draws(plain, plain.trust(), 0),
        "batch": program.batch([DATA, DATA])[1],
        "carried": cv.infer(model, DATA, prior=plain),
        "loaded": cv.load(path, model),
        "saved": cv.load(path),
        "loaded mixture": cv.load(mixture, model),
        "saved mixture": cv.load(mixture),
    }


CALLS = {
    "predict": lambda p: p.predict({"slope": 0.5, "x": [1.0, 2.0]})["y"].mean,
    "trust": lambda p: str(p.trust()),
    "to_arviz": lambda p: p.to_arviz(10),
    "to_frame": lambda p: p.to_frame(),
    "to_xarray": lambda p: p.to_xarray(10),
    "sample": lambda p: p.sample(10),
    "predictive": lambda p: p.predictive(10),
    "covariance": lambda p: p.covariance("mean", "precision"),
    "compare": lambda p: p.compare(p),
    "plot": lambda p: p.plot(),
    "importance": lambda p: str(p.importance(draws=50)),
    "stability": lambda p: str(p.stability()),
    "loo": lambda p: p.loo().total,
    "evidence_gradient": lambda p: p.evidence_gradient("slope"),
    "prior_naturals": lambda p: p.prior_naturals("mean"),
    "naturals_of": lambda p: p.naturals_of("mean"),
    "__getitem__": lambda p: (p["mean"].mean, p["precision"].interval(0.9), p["y"].mean),
    "__iter__": list,
    "__len__": len,
    "__repr__": repr,
    "summary": lambda p: p.summary(),
    "explain": lambda p: p.explain(),
}
SLOW = {"check"}


def questions():
    """The public methods and properties of a posterior."""
    own = [name for name, _ in inspect.getmembers(Posterior) if not name.startswith("_")]
    return sorted({*own, *CALLS, "__add__", "__sub__"} - {"keys", "values", "items", "get"} - SLOW)


def ask(posterior, question, tmp_path):
    if question in ("__add__", "__sub__"):
        return getattr(posterior, question)(posterior.contribution)
    if question in ("save", "report"):
        return getattr(posterior, question)(tmp_path / question)
    return CALLS[question](posterior) if question in CALLS else getattr(posterior, question)


@pytest.mark.filterwarnings("ignore:These draws are of each marginal:cavity.CavityWarning")  # of a carried prior
@pytest.mark.parametrize("kind", KINDS)
def test_every_question_has_an_answer_or_a_sentence(posteriors, kind, tmp_path):
    pytest.importorskip("matplotlib")
    pytest.importorskip("arviz")
    refused = {}
    for question in questions():
        try:
            ask(posteriors[kind], question, tmp_path)
        except CavityError as problem:
            refused[question] = str(problem)
    assert all(len(sentence) > 40 for sentence in refused.values()), refused
    needs_model = {
        "predict",
        "save",
        "trust",
        "loo",
        "evidence_gradient",
        "to_arviz",
        "to_xarray",
        "sample",
        "predictive",
        "covariance",
        "compare",
        "report",
        "plot",
        "importance",
        "stability",
    }
    needs_model |= {"naturals_of", "prior_naturals", "model", "graph", "machine", "arrays", "observed", "schedule"}
    several = {"stability"}  # runs or draws, which have no one fixed point
    may = {"integrated": several, "best": several, "draws": {"evidence_gradient", *several}, "loaded mixture": several}
    may |= {"carried": {"importance"}, "saved": needs_model, "saved mixture": needs_model}
    bound = {"corrected_evidence", "corrected_marginals"}  # of VMP, which has no such correction
    assert set(refused) == may.get(kind, set()) | bound, refused


@pytest.mark.parametrize("kind", [Integrated, Reweighted, Saved])
def test_every_kind_has_every_name(kind):
    fields = {*dir(kind), *getattr(kind, "__dataclass_fields__", {}), *inspect.signature(kind).parameters}
    fields |= {"log_evidence"}  # set when an Integrated is made
    assert {name for name in dir(Posterior) if not name.startswith("_")} <= fields


def exact_evidence(y, x, slope):
    """log p(y) with the mean integrated in closed form and the precision by quadrature."""

    def density(t):
        covariance = np.eye(len(y)) / t + 10.0
        return scipy.stats.gamma.pdf(t, 2.0, scale=0.5) * scipy.stats.multivariate_normal.pdf(y, slope * x, covariance)

    return np.log(scipy.integrate.quad(density, 0.0, np.inf, epsabs=0.0, epsrel=1e-10)[0])


def test_an_integrated_posterior_answers_as_its_mixture(posteriors):
    posterior = posteriors["integrated"]
    total = exact_evidence(Y, X, 0.5)
    close(posterior.log_evidence, total, atol=1e-6)
    close(sum(posterior.evidence.values()), total, atol=1e-6)
    without = [total - exact_evidence(np.delete(Y, i), np.delete(X, i), 0.5) for i in range(6)]
    close(posterior.loo()["y"], without, atol=1e-5)
    slope = (exact_evidence(Y, X, 0.5 + 1e-4) - exact_evidence(Y, X, 0.5 - 1e-4)) / 2e-4
    close(posterior.evidence_gradient("slope")["slope"], slope, rtol=1e-4)
    assert posterior.trust().level == "good"
    assert "verdict: good" in posterior.summary()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["plain", "integrated", "batch", "loaded"])
def test_every_kind_is_checked_against_nuts(posteriors, kind):
    pytest.importorskip("numpyro")
    assert posteriors[kind].check(draws=500, chains=2).mixed
