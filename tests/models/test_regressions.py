"""Regressions on data that they made: against quadrature over weight and bias, and against the truth."""

import os
from pathlib import Path

import numpy as np
import pytest
import scipy.optimize
from scipy.special import expit, log_expit, log_ndtr, logsumexp
from scipy.stats import norm, poisson

import cavity as cv
from cavity import models
from cavity.models.ordinal_regression import gaps

ROWS = 60
WEIGHT, BIAS = 0.8, -0.4
GAPS = {"gap_1": 0.7, "gap_2": 1.1}
CUTPOINTS = np.array([0.0, 0.7, 1.8])


def ordinal_log_likelihood(y, score):
    """log(Phi(high - s) - Phi(low - s)), in the lower tail."""
    edges = np.concatenate([[-np.inf], CUTPOINTS, [np.inf]])
    low, high = edges[y] - score, edges[y + 1] - score
    low, high = np.where(low > 0, -high, low), np.where(low > 0, -low, high)
    return log_ndtr(high) + np.log1p(-np.exp(log_ndtr(low) - log_ndtr(high)))


# model -> (arguments, further inputs, prior variance of the bias, draw of y, log p(y | score))
ONE_SCORE = {
    "logistic_regression": (
        (1,), {}, 1.0,
        lambda rng, s: rng.random(len(s)) < expit(s),
        lambda y, s: log_expit(np.where(y, s, -s)),
    ),
    "probit_regression": (
        (1,), {}, 1.0,
        lambda rng, s: rng.normal(size=len(s)) < s,
        lambda y, s: log_ndtr(np.where(y, s, -s)),
    ),
    "poisson_regression": (
        (1,), {}, 10.0,
        lambda rng, s: rng.poisson(np.exp(s)),
        lambda y, s: poisson.logpmf(y, np.exp(s)),
    ),
    "ordinal_regression": (
        (1, 4), {"precision": 1.0, **GAPS}, 10.0,
        lambda rng, s: (s[:, None] + rng.normal(size=(len(s), 1)) > CUTPOINTS).sum(1),
        ordinal_log_likelihood,
    ),
}  # fmt: skip


def by_quadrature(x, y, log_likelihood, bias_variance):
    """log evidence, means and sds of (weight, bias), and the posterior over a grid of them."""
    w, b = np.meshgrid(np.linspace(-0.8, 2.4, 161), np.linspace(-2.2, 1.4, 181), indexing="ij")
    log_joint = norm.logpdf(w) + norm.logpdf(b, scale=np.sqrt(bias_variance))
    for one_x, one_y in zip(x[:, 0], y, strict=True):
        log_joint += log_likelihood(np.broadcast_to(one_y, w.shape), w * one_x + b)
    cell = (w[1, 0] - w[0, 0]) * (b[0, 1] - b[0, 0])
    evidence = logsumexp(log_joint) + np.log(cell)
    weight = np.exp(log_joint - logsumexp(log_joint))
    means = np.array([(weight * a).sum() for a in (w, b)])
    sds = np.sqrt([(weight * (a - m) ** 2).sum() for a, m in zip((w, b), means, strict=True)])
    return evidence, means, sds, (w, b, weight)


@pytest.mark.parametrize("name", ONE_SCORE)
def test_posterior_and_evidence_are_those_of_quadrature(name):
    arguments, inputs, bias_variance, draw, log_likelihood = ONE_SCORE[name]
    program = cv.compile(getattr(models, name)(*arguments), ["y"])
    for seed in range(2):  # one compilation serves both data sets
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(ROWS, 1))
        y = draw(rng, WEIGHT * x[:, 0] + BIAS)
        posterior = program({"x": x, "y": y, **inputs})
        assert posterior.converged
        evidence, means, sds, (w, b, probability) = by_quadrature(x, y, log_likelihood, bias_variance)
        found = np.array([posterior["weight"].mean[0], posterior["bias"].mean])
        assert np.all(np.abs(found - means) < 0.05 * sds)
        found_sds = np.sqrt([posterior["weight"].covariance[0, 0], posterior["bias"].variance])
        assert found_sds == pytest.approx(sds, rel=0.02)
        assert posterior.log_evidence == pytest.approx(evidence, abs=0.02)
        assert np.all(np.abs(found - [WEIGHT, BIAS]) < 3.5 * sds)  # the truth
    assert program.traces == 1
    new = np.array([[-1.0], [0.5]])
    predicted = np.asarray(posterior.predict({"x": new})["y"].mean)
    for place, row in zip(new[:, 0], predicted, strict=True):
        score = w * place + b
        if name == "poisson_regression":
            assert row == pytest.approx((probability * np.exp(score)).sum(), rel=0.01)
            continue
        classes = range(4) if row.ndim else [True]
        wanted = [(probability * np.exp(log_likelihood(np.broadcast_to(k, w.shape), score))).sum() for k in classes]
        assert row == pytest.approx(wanted if row.ndim else wanted[0], abs=2e-3)


def test_learned_cutpoints_have_the_largest_evidence():
    """Against quadrature: the evidence falls to both sides of the learned distances and precision."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 2))
    y = (x @ [0.9, -0.6] + 0.5 + rng.normal(size=200) > CUTPOINTS[:, None]).sum(0)
    program = cv.compile(models.ordinal_regression(2, 4), ["y"], tolerance=1e-8)
    start = {"precision": 1.0, **dict.fromkeys(gaps(4), 1.0)}
    learned = cv.learn(program, {"x": x, "y": y, **start}, tuple(start))
    assert learned.converged
    best = learned.posterior.log_evidence
    for name in start:
        for factor in (0.8, 1.25):
            moved = {**learned.values, name: factor * learned.values[name]}
            assert program({"x": x, "y": y, **moved}).log_evidence < best
    for name, truth in GAPS.items():
        assert learned.values[name] == pytest.approx(truth, abs=0.35)  # three standard errors
    assert learned.posterior["weight"].mean == pytest.approx([0.9, -0.6], abs=0.3)
    assert program.traces == 1


def softmax_data(seed, scales):
    """Three classes with weights of the given scales."""
    rng = np.random.default_rng(seed)
    weight, bias = rng.normal(size=(3, 4)) * np.reshape(scales, (-1, 1)), rng.normal(size=3)
    x = rng.normal(size=(150, 4))
    y = (x @ weight.T + bias + rng.gumbel(size=(150, 3))).argmax(1)
    return x, y, weight, bias


@pytest.mark.parametrize("prior_variance", [pytest.param("shared", marks=pytest.mark.slow), "per class"])
def test_learned_precisions_of_the_softmax_follow_the_weights(prior_variance):
    """Gamma(1 + d / 2, 0.1 + E |w|^2 / 2), d the number of weights that share it."""
    x, y, *_ = softmax_data(0, [0.05, 0.05, 0.05] if prior_variance == "shared" else [0.05, 0.05, 3.0])
    learned = cv.infer(models.softmax_regression(4, 3, prior_variance), {"x": x, "y": y}, accuracy="fast")
    assert learned.converged
    belief = learned["weight"]
    square = (belief.mean**2).sum(-1) + np.trace(belief.covariance, axis1=-2, axis2=-1)
    if prior_variance == "shared":
        shape, rate = 1.0 + 12 / 2, 0.1 + square.sum() / 2
    else:
        shape, rate = 1.0 + 4 / 2, 0.1 + square / 2
    assert learned["precision"].parameters["shape"] == pytest.approx(shape, rel=1e-6)
    assert learned["precision"].parameters["rate"] == pytest.approx(rate, rel=1e-4)


def test_softmax_recovers_its_weights_and_bounds_its_evidence():
    """Against importance sampling. Classes have beliefs apart: what all scores have in common costs evidence."""
    x, y, weight, bias = softmax_data(1, 1.0)
    program = cv.compile(models.softmax_regression(4, 3), ["y"])
    posterior = program({"x": x, "y": y})
    mean = np.column_stack([posterior["weight"].mean, posterior["bias"].mean]).ravel()
    roots = 1.1 * np.linalg.cholesky(_laplace(x, mean))
    draws = np.random.default_rng(0).normal(size=(20000, 15))
    place = mean + draws @ roots.T
    log_weight = _softmax_log_joint(x, y, place) - norm.logpdf(draws).sum(1) + np.log(np.diag(roots)).sum()
    evidence = logsumexp(log_weight) - np.log(len(log_weight))
    weights = np.exp(log_weight - logsumexp(log_weight))
    assert 1.0 / np.sum(weights**2) > 1000.0
    true_mean = weights @ place
    sd = np.sqrt(weights @ (place - true_mean) ** 2)
    assert np.all(np.abs(mean - true_mean) < 0.2 * sd)
    assert np.all(np.abs(np.column_stack([weight, bias]).ravel() - mean) < 3.5 * sd)
    in_common = 5  # weights and bias
    assert evidence - 1.5 * in_common < posterior.log_evidence < evidence
    other_x, other_y, *_ = softmax_data(2, 1.0)
    program({"x": other_x, "y": other_y})
    assert program.traces == 1


def _softmax_log_joint(x, y, place):
    weights = place.reshape(len(place), 3, 5)
    score = np.einsum("nd,skd->snk", x, weights[..., :4]) + weights[:, None, :, 4]
    likelihood = score[:, np.arange(len(y)), y] - logsumexp(score, axis=-1)
    return likelihood.sum(1) + norm.logpdf(place).sum(1)


def _laplace(x, place):
    """The inverse of minus the Hessian of the log joint density at `place`."""
    features = np.concatenate([x, np.ones((len(x), 1))], axis=1)
    score = features @ place.reshape(3, 5).T
    p = np.exp(score - logsumexp(score, axis=1, keepdims=True))
    curvature = np.einsum("nk,kl->nkl", p, np.eye(3)) - np.einsum("nk,nl->nkl", p, p)
    hessian = np.einsum("nkl,nd,ne->kdle", curvature, features, features).reshape(15, 15)
    return np.linalg.inv(hessian + np.eye(15))


def test_another_word_for_the_prior_variance_is_refused():
    with pytest.raises(cv.ModelError, match="per class"):
        models.softmax_regression(2, 3, "each")
    with pytest.raises(cv.ModelError, match='Give one, or "shared", which learn'):
        models.logistic_regression(2, "per class")


# real data ------------------------------------------------------------------------------------------------------------

DATA = os.environ.get("CAVITY_DATA")


def ordinal_split(name, classes, train, seed):
    """Classes of equal frequency of the last column; a random split; standardised features."""
    (path,) = Path(DATA, name).glob("*.csv")
    table = np.genfromtxt(path, delimiter=",", skip_header=1)
    x, target = table[:, :-1], table[:, -1]
    y = np.searchsorted(np.quantile(target, np.arange(1, classes) / classes), target, side="right")
    order = np.random.default_rng(seed).permutation(len(y))
    own, other = order[:train], order[train:]
    x = (x - x[own].mean(0)) / x[own].std(0)
    return x[own], y[own], x[other], y[other]


def most_probable_ordered_probit(x, y, classes, precision):
    """Weights and cutpoints of largest posterior density, the prior of the cutpoints flat."""

    def unpacked(place):
        weight, first, gaps = np.split(place, [x.shape[1], x.shape[1] + 1])
        return weight, np.cumsum([first[0], *np.exp(gaps)])

    def loss(place):
        weight, cutpoints = unpacked(place)
        edges, score = np.array([-np.inf, *cutpoints, np.inf]), x @ weight
        mass = norm.cdf(edges[y + 1] - score) - norm.cdf(edges[y] - score)
        return 0.5 * precision * weight @ weight - np.log(np.maximum(mass, 1e-300)).sum()

    start = np.concatenate([np.zeros(x.shape[1]), [norm.ppf(1.0 / classes)], np.full(classes - 2, -0.5)])
    return unpacked(scipy.optimize.minimize(loss, start, method="L-BFGS-B", options={"maxfun": 10**5}).x)


@pytest.mark.slow
@pytest.mark.skipif(not DATA, reason="real ordinal data: set CAVITY_DATA to the folder of the data sets")
@pytest.mark.parametrize(("name", "train", "splits"), [("ord_machine_cpu", 150, 20), ("ord_stocks", 600, 3)])
def test_ordinal_regression_on_real_data_beside_the_most_probable_parameters(name, train, splits):
    """Five classes: the errors of an ordered probit by optimisation over the splits, and a log score no worse."""
    program = cv.compile(
        models.ordinal_regression({"ord_machine_cpu": 6, "ord_stocks": 9}[name], 5), ["y"], tolerance=1e-8
    )
    errors = []
    for seed in range(splits):
        x, y, new_x, new_y = ordinal_split(name, 5, train, seed)
        start = {"precision": 1.0, **dict.fromkeys(gaps(5), 1.0)}
        learned = cv.learn(program, {"x": x, "y": y, **start}, tuple(start))
        probability = learned.posterior.predict({"x": new_x})["y"].mean
        weight, cutpoints = most_probable_ordered_probit(x, y, 5, learned.values["precision"])
        assert np.abs(learned.posterior["weight"].mean - weight).max() < 0.1 * np.abs(weight).max()
        edges, score = np.array([-np.inf, *cutpoints, np.inf]), new_x @ weight
        plain = np.diff(norm.cdf(edges[None] - score[:, None]), axis=1)
        rows = np.arange(len(new_y))
        distance, plain_distance = (np.abs(p.argmax(1) - new_y) for p in (probability, plain))
        errors.append([np.mean(distance > 0) - np.mean(plain_distance > 0), np.mean(distance - plain_distance)])
        log_score, plain_score = (np.log(p[rows, new_y]).mean() for p in (probability, plain))
        assert log_score > plain_score - 0.01
    assert np.mean(errors, axis=0) == pytest.approx(0.0, abs=0.01)  # 59 rows are tested in a split of the smaller set
    assert program.traces == 1
