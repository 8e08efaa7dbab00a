"""What a user does with a posterior, done with one that was integrated over a grid."""

from __future__ import annotations

import functools
import json
import zipfile

import jax
import numpy as np
import pytest
from scipy import stats

import cavity as cv
from cavity.engine.answers.arviz import groups
from cavity.engine.checks.loo import leave_one_out
from cavity.engine.evidence.integrated import Integrated
from cavity.engine.evidence.joint_draws import joint_draws
from cavity.engine.run import progress as progress_room

close = np.testing.assert_allclose
RANDOM = np.random.default_rng(5)
X = RANDOM.normal(5.0, 1.0, 12)
Y = 1.0 + 2.0 * X + RANDOM.normal(0.0, 0.5, 12)
DATA = {"x": X, "y": Y}
NEW = {"x": np.linspace(0.0, 9.0, 5)}


def without_verdict(text):
    """A summary without the line that a file without its model cannot have."""
    return [line for line in text.splitlines() if not line.startswith("verdict")]


def line(prior=None):
    m = cv.Model("line")
    row = m.plate("row")
    x = m.input("x", cv.real, plates=row)
    level = m.random("level", cv.gaussian(0.0, variance=100.0))
    slope = m.random("slope", cv.gaussian(0.0, variance=100.0))
    precision = m.random("precision", prior or cv.gamma(1.0, 1.0))
    m.let("height", level + slope * x)
    m.let("product", level * slope)
    m.let("sd", cv.exp(-0.5 * cv.log(precision)))
    m.random("y", cv.gaussian(level + slope * x, precision=precision), plates=row)
    return m


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    model = line()
    posterior = cv.infer(model, DATA)
    path = tmp_path_factory.mktemp("integrated") / "line"
    posterior.save(path)
    return model, posterior, path


QUESTIONS = {
    "expression": lambda p: (p["height"].family.mean(), p["height"].family.variance()),
    "curved expression": lambda p: (p["product"].family.mean(), p["product"].family.variance()),
    "prediction": lambda p: [(m.family.mean(), m.family.variance()) for m in p.predict(NEW).values()],
    "leave one out": lambda p: leave_one_out(p).densities["y"],
    "carried": lambda p: [family.naturals() for family in p.carried.parts.values()],
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_what_is_asked_of_all_points_at_once_is_what_each_answers(fitted, question):
    _, posterior, _ = fitted
    ask, points = QUESTIONS[question], posterior.conditionals
    together = points.every(ask)
    with jax.enable_x64(True):
        for k in (0, len(points) // 2, len(points) - 1):
            for one, all_ in zip(jax.tree.leaves(ask(points[k])), jax.tree.leaves(together), strict=True):
                close(all_[k], one, rtol=1e-9, atol=1e-12)


def test_a_marginal_and_a_prediction_are_mixtures_over_the_grid(fitted):
    _, posterior, _ = fitted
    weights = posterior.weights
    for mixed, parts in [
        (posterior["height"], [p["height"] for p in posterior.conditionals]),
        (posterior.predict(NEW)["y"], [p.predict(NEW)["y"] for p in posterior.conditionals]),
    ]:
        means, variances = (np.array([getattr(part, name) for part in parts]) for name in ("mean", "variance"))
        mean = weights @ means
        close(mixed.mean, mean, rtol=1e-10)
        close(mixed.variance, weights @ (variances + (means - mean) ** 2), rtol=1e-9)
    close(posterior["sd"].mean, weights @ posterior.points["precision"] ** -0.5, rtol=1e-6)


# files ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("with_model", [True, False])
def test_it_comes_back_from_its_file(fitted, with_model):
    model, posterior, path = fitted
    found = cv.load(path, model) if with_model else cv.load(path)
    assert isinstance(found, Integrated) == with_model
    assert list(found) == list(posterior)
    for name in posterior:
        assert np.array_equal(found[name].mean, posterior[name].mean), name
        assert np.array_equal(found[name].sd, posterior[name].sd), name
    assert np.array_equal(found["precision"].quantile(0.3), posterior["precision"].quantile(0.3))
    for what in ("log_evidence", "evidence", "code", "iterations", "diagnosis", "floored", "timing"):
        assert getattr(found, what) == getattr(posterior, what), what
    assert without_verdict(found.summary()) == without_verdict(posterior.summary())
    assert found.explain() == posterior.explain()
    for name in found.carried:
        assert np.array_equal(found.carried[name].sd, posterior.carried[name].sd), name
    for part, naturals in found.contribution.naturals.items():
        for one, other in zip(naturals, posterior.contribution.naturals[part], strict=True):
            close(one, other, rtol=1e-12)
    if with_model:
        assert np.array_equal(found.predict(NEW)["y"].sd, posterior.predict(NEW)["y"].sd)
        assert np.array_equal(found.loo()["y"], posterior.loo()["y"])
        assert found.plain["slope"].sd == posterior.plain["slope"].sd


def rewritten(path, target, change):
    """A copy of a saved file with its description, and the arrays it names, changed."""
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(target, "w") as new:
        arrays = {name: old.read(name) for name in old.namelist() if name not in ("sums.json", "meta.json")}
        meta = json.loads(old.read("meta.json"))
        change(meta)
        for name, content in arrays.items():
            new.writestr(name, content)
        new.writestr("meta.json", json.dumps(meta))
    return target


def swap(one, other):
    """Puts the array that `other` names in the place of that of `one`, both in the integration."""

    def change(meta):
        found = meta["integration"]
        place = found["values"] if one == "precision" else found
        place[one] = found["values"]["precision"] if other == "precision" else meta[other]

    return change


def kind(meta):
    meta["integration"]["families"]["precision"]["fields"]["kind"] = {"kind": "of its own"}


DAMAGES = {
    "weights that are no probabilities": swap("weights", "precision"),
    "one weight": swap("weights", "log_evidence"),
    "one value": swap("precision", "log_evidence"),
    "a scalar of another name": lambda meta: meta["integration"].update(values={"nobody": 0}),
    "a kind of its own": kind,
    "a seed that is none": lambda meta: meta["integration"].update(seed="x"),
    "outputs of one run": lambda meta: meta["outputs"].update({"['code']": meta["log_evidence"]}),
    "no families": lambda meta: meta["integration"].update(families={}),
    "no weights": lambda meta: meta["integration"].pop("weights"),
    "a remark that is no text": lambda meta: meta.update(remark=3),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_refused(fitted, tmp_path, damage):
    model, _, path = fitted
    assert isinstance(cv.load(rewritten(path, tmp_path / "same", lambda meta: None), model), Integrated)
    with pytest.raises(cv.DataError, match="is damaged"):
        cv.load(rewritten(path, tmp_path / "bad", DAMAGES[damage]), model)


# later data -----------------------------------------------------------------------------------------------------------


def test_what_is_carried_is_the_projection_of_the_mixture(fitted):
    """The same means and covariances, and of the precision the same E x and E log x."""
    _, posterior, _ = fitted
    carried, weights = posterior.carried, posterior.weights
    (joint,) = (family for part, family in carried.parts.items() if len(part.members) == 2)
    with jax.enable_x64(True):
        at_points = [p.carried.parts[part] for p in posterior.conditionals for part in carried.joints]
        means, covariances = (np.array([getattr(q, n)() for q in at_points]) for n in ("mean", "covariance"))
        mean = weights @ means
        gaps = means - mean
        close(joint.mean(), mean, rtol=1e-9)
        wanted = np.tensordot(weights, covariances + gaps[:, :, None] * gaps[:, None, :], axes=1)
        close(joint.covariance(), wanted, rtol=1e-7)
        negative_rate, shape_minus_one = carried["precision"].family.naturals()
        values = posterior.points["precision"]
        close((shape_minus_one + 1.0) / -negative_rate, weights @ values, rtol=1e-6)
        logs = jax.scipy.special.digamma(shape_minus_one + 1.0) - np.log(-negative_rate)
        close(logs, weights @ np.log(values), rtol=1e-6)
    close(carried["slope"].sd, posterior["slope"].sd, rtol=1e-7)


@pytest.mark.parametrize("how", ["posterior", "marginals"])
def test_later_data_start_from_it(fitted, how):
    model, first, _ = fitted
    prior = first if how == "posterior" else {name: first[name] for name in ("level", "slope", "precision")}
    later = {"x": X + 0.5, "y": Y + 1.0}
    found = cv.infer(model, later, prior=prior)
    assert isinstance(found, cv.Posterior)
    assert found["slope"].sd < first["slope"].sd
    assert found["precision"].mean > first["precision"].mean  # twice the data, as near to a line


def test_a_contribution_leads_from_the_prior_to_what_is_carried(fitted):
    model, posterior, _ = fitted
    prior = cv.infer(model, {"x": X}, accuracy="fast")
    back = posterior - posterior.contribution
    close(back["precision"].mean, prior["precision"].mean, rtol=1e-6)
    close(back["slope"].sd, prior["slope"].sd, rtol=1e-5)
    naturals = np.array(posterior.naturals_of("precision")) - posterior.prior_naturals("precision")
    (own,) = (n for part, n in posterior.contribution.naturals.items() if part.members == ("precision",))
    close(naturals, own, rtol=1e-12)


def test_a_random_prior_has_no_contribution():
    m = cv.Model("groups")
    group = m.plate("group")
    spread = m.random("spread", cv.half_normal(2.0))
    effect = m.random("effect", cv.gaussian(0.0, sd=spread), plates=group)
    m.random("y", cv.gaussian(effect, sd=1.0), plates=(m.plate("row"), group))
    posterior = cv.infer(m, {"y": RANDOM.normal(size=(3, 4))})
    assert isinstance(posterior, Integrated)
    with pytest.raises(cv.UnsupportedError, match="no baseline"):
        _ = posterior.contribution


# what it says ---------------------------------------------------------------------------------------------------------


def test_timing_is_of_all_inferences_together(fitted):
    _, posterior, _ = fitted
    assert posterior.timing.plan > 0
    assert posterior.timing.run > 0
    assert str(posterior.timing) in posterior.summary()
    assert str(posterior.timing) in posterior.explain()


@pytest.mark.parametrize("wanted", [True, False])
def test_a_long_integration_shows_how_many_points_it_has_looked_at(monkeypatch, capsys, wanted):
    monkeypatch.setattr(progress_room, "PATIENCE", 0.0)
    cv.infer(line(), DATA, progress=wanted)
    shown = capsys.readouterr().err
    assert ("integrating: " in shown) == wanted
    assert shown.endswith("\n") == wanted


def test_explain_says_what_was_integrated_and_why(fitted, capsys):
    model, posterior, _ = fitted
    told = posterior.explain()
    assert f"integrated over a grid of {len(posterior.weights)} points: precision; in a single inference the" in told
    assert "taken apart in y (VMP)" in told
    assert "as exact as the grid" in told
    assert "accuracy='fast' is the single inference" in told
    assert told.splitlines()[:5] == posterior.explain().splitlines()[:5]
    before = cv.explain(model, DATA)
    assert "integrated over a grid: precision; in a single inference" in before
    for options in ({"accuracy": "fast"}, {"effort": 0.0}, {"method": "vmp"}):
        assert "integrated" not in cv.explain(model, DATA, **options)
    assert "is expected to take" in cv.explain(model, DATA, effort=1e-9)


def test_what_was_too_costly_to_integrate_is_said_with_its_price(tmp_path):
    model = line()
    posterior = cv.infer(model, DATA, effort=1e-9)
    assert isinstance(posterior, cv.Posterior)
    price = float(posterior.diagnosis.split("give effort=")[1].split()[0])
    assert isinstance(cv.infer(model, DATA, effort=price), Integrated)
    posterior.save(tmp_path / "plain")
    assert cv.load(tmp_path / "plain", model).explain() == posterior.explain()
    assert "effort" not in cv.infer(model, DATA, effort=0.0).diagnosis


# draws ----------------------------------------------------------------------------------------------------------------


def drawing(posterior):
    return functools.partial(joint_draws, posterior.mixture, posterior.mixture_of)


def test_draws_for_arviz_are_joint(fitted):
    """Level and slope are tied by their joint belief; the spread of a slope by the point of its grid."""
    _, posterior, _ = fitted
    found, _ = groups(posterior, 20_000, 0, drawing(posterior))
    level, slope, precision = (found["posterior"][name][0] for name in ("level", "slope", "precision"))
    for name, drawn in (("level", level), ("slope", slope), ("precision", precision)):
        close(drawn.mean(), posterior[name].mean, atol=0.04 * posterior[name].sd)
        close(drawn.std(), posterior[name].sd, rtol=0.04)
    (joint,) = (family for part, family in posterior.carried.parts.items() if len(part.members) == 2)
    with jax.enable_x64(True):
        covariance = np.asarray(joint.covariance())
    wanted = covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1])
    close(np.corrcoef(level, slope)[0, 1], wanted, atol=0.01)
    unsure = precision < np.quantile(precision, 0.2)
    assert slope[unsure].std() > 1.5 * slope[precision > np.quantile(precision, 0.8)].std()


def test_draws_of_a_mixture_are_shaped_as_asked(fitted):
    _, posterior, _ = fitted
    assert posterior["height"].sample(0, (3, 2)).shape == (3, 2, 12)
    assert posterior["slope"].sample(0).shape == ()
    close(posterior["slope"].sample(0, (20_000,)).std(), posterior["slope"].sd, rtol=0.05)


def test_selectors_stay_of_finitely_many_values():
    m = cv.Model("two lines")
    row = m.plate("row")
    which = m.random("which", cv.bernoulli(0.5))
    scale = m.random("scale", cv.half_normal(1.0))
    z = m.random("z", cv.bernoulli(0.3), plates=row)
    m.random("x", cv.switch(z, cv.gaussian(0.0, sd=scale), cv.gaussian(3.0, sd=scale)), plates=row)
    m.random("y", cv.switch(which, cv.gaussian(0.0, sd=1.0), cv.gaussian(1.0, sd=1.0)), plates=row)
    posterior = cv.infer(m, {"x": [0.1, 2.9, 3.2], "y": [0.9, 1.1, 0.4]}, integrate=["scale", "which"])
    assert posterior["z"].probability.shape == (3,)
    weights = posterior.weights
    close(posterior["z"].mean, weights @ [p["z"].mean for p in posterior.conditionals], rtol=1e-6)
    drawn = drawing(posterior)(posterior, 2000, 0)
    close(drawn["which"].mean(), posterior["which"].mean, atol=0.04)
    close(drawn["z"].mean(axis=0), posterior["z"].mean, atol=0.05)


def test_an_expression_of_what_was_integrated_has_no_gaps_between_the_points():
    m = cv.Model("scale")
    a = m.random("a", cv.gaussian(0.0, sd=1.0))
    m.random("y", cv.half_normal(cv.exp(a)), plates=m.plate("n"))
    m.let("scale", cv.exp(a))
    m.let("down", -3.0 * a)
    posterior = cv.infer(m, {"y": [0.2, 0.6]})
    levels = np.array([0.05, 0.25, 0.5, 0.75, 0.95])

    def density(u):
        return stats.norm.pdf(u) * np.prod([stats.halfnorm.pdf(y, scale=np.exp(u)) for y in (0.2, 0.6)], axis=0)

    grid = np.linspace(-7.0, 7.0, 20001)
    mass = np.cumsum(density(grid)) / density(grid).sum()
    for quantiles in (np.log(posterior["scale"].quantile(levels)), posterior["down"].quantile(1.0 - levels) / -3.0):
        np.testing.assert_allclose(np.interp(quantiles, grid, mass), levels, atol=0.01)
    draws = posterior["scale"].sample(0, (4000,))
    np.testing.assert_allclose(np.interp(np.log(np.quantile(draws, levels)), grid, mass), levels, atol=0.03)
