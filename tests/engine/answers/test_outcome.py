"""What a run left answers without the posterior around it: no room below the posteriors needs one."""

from __future__ import annotations

import numpy as np
import pytest

import cavity as cv
from cavity.engine.answers.arviz import groups
from cavity.engine.answers.evidence_gradient import gradient
from cavity.engine.answers.next_prior import baseline, carried
from cavity.engine.answers.outcome import Outcome
from cavity.engine.answers.predict import predict
from cavity.engine.answers.summary import summary
from cavity.engine.checks.loo import leave_one_out
from cavity.engine.checks.skewness import tilted_shapes
from cavity.engine.density.log_density import density_of
from cavity.engine.files.save import save
from cavity.engine.plots.graph_plot import plot_graph
from cavity.engine.plots.posterior import plot_convergence, plot_posterior


@pytest.fixture(scope="module")
def posterior():
    """EP of a probit regression on one input, its slope an input too."""
    m = cv.Model("probit")
    x = m.input("x", cv.real, plates=m.plate("row"))
    scale = m.input("scale", cv.positive)
    weight = m.random("weight", cv.gaussian(0.0, sd=scale))
    m.random("y", cv.bernoulli(cv.probit(weight * x)))
    return cv.infer(m, {"x": [0.3, -1.2, 2.0], "y": [True, False, True], "scale": 1.5}, method="ep", tolerance=1e-9)


QUESTIONS = {
    "marginals": lambda o: {name: marginal.mean for name, marginal in o.items()},
    "evidence": lambda o: o.evidence,
    "explain": lambda o: o.explain(),
    "summary": lambda o: summary(o, o.log_evidence, [o.diagnosis]),
    "carried": lambda o: {name: marginal.variance for name, marginal in carried(o).items()},
    "baseline": lambda o: list(baseline(o.machine, o.arrays, carried(o)).values()),
    "predict": lambda o: predict(o, {"x": [1.0]}, {}, None)["y"].mean,
    "gradient": lambda o: gradient(o, ("scale",)),
    "loo": lambda o: dict(leave_one_out(o)),
    "skewness": tilted_shapes,
    "arviz": lambda o: groups(o, 3, 0)[0]["posterior"],
    "density": lambda o: density_of(o).names,
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_an_outcome_answers_as_its_posterior(posterior, question):
    made_of = (posterior.machine, posterior.arrays, posterior.binding, posterior.result, posterior.predictors)
    outcome = Outcome(posterior.request, *made_of)
    np.testing.assert_equal(QUESTIONS[question](outcome), QUESTIONS[question](posterior))


def test_an_outcome_is_written_and_drawn(posterior, tmp_path):
    pytest.importorskip("matplotlib")
    made_of = (posterior.machine, posterior.arrays, posterior.binding, posterior.result, posterior.predictors)
    outcome = Outcome(posterior.request, *made_of)
    save(outcome, tmp_path / "outcome")
    assert cv.load(tmp_path / "outcome", posterior.model)["weight"].mean == posterior["weight"].mean
    for figure in (plot_graph(outcome), plot_convergence(outcome), plot_posterior(outcome)):
        assert figure.axes


@pytest.mark.parametrize("question", ["probability", "covariance"])
def test_a_marginal_of_a_number_refuses_what_it_has_not(posterior, question):
    with pytest.raises(cv.UnsupportedError, match="'weight' has a Gaussian marginal"):
        getattr(posterior["weight"], question)
