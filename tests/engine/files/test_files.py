"""Posteriors go into files and out again, and into ArviZ."""

from __future__ import annotations

import json
import sys
import zipfile

import numpy as np
import pytest
from small_models import EARLY, LATE, SIZES, dice_model, mean_model, same, skills

import cavity as cv
from cavity.engine.answers.arviz import groups
from cavity.engine.files.save import VERSION

close = np.testing.assert_allclose
RANDOM = np.random.default_rng(7)


# files ----------------------------------------------------------------------------------------------------------------


def without_verdict(text):
    """A summary without the line that a file without its model cannot have."""
    return [line for line in text.splitlines() if not line.startswith("verdict")]


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    model = skills()
    first = cv.infer(model, EARLY, sizes=SIZES)
    posterior = cv.infer(model, LATE, sizes=SIZES, prior=first, method={"margin": "ep"})
    path = tmp_path_factory.mktemp("life") / "skills.npz"
    posterior.save(path)
    return model, posterior, path


@pytest.mark.parametrize("with_model", [True, False])
def test_a_posterior_comes_back_from_its_file(saved, with_model):
    model, posterior, path = saved
    found = cv.load(path, model) if with_model else cv.load(path)
    assert isinstance(found, cv.Posterior) == with_model
    assert list(found) == list(posterior)
    for name in posterior:  # margins are recovered from messages
        assert np.array_equal(found[name].mean, posterior[name].mean)
        assert np.array_equal(found[name].sd, posterior[name].sd)
    for what in ("log_evidence", "evidence", "code", "converged", "iterations", "diagnosis", "floored"):
        assert getattr(found, what) == getattr(posterior, what), what
    assert np.array_equal(found.trace.residual, posterior.trace.residual)
    assert without_verdict(found.summary()) == without_verdict(posterior.summary())
    assert found.explain() == posterior.explain()
    (part,) = found.contribution.naturals
    close(found.contribution.naturals[part][0], posterior.contribution.naturals[part][0], rtol=1e-15)
    same(
        cv.infer(model, EARLY, sizes=SIZES, prior=found)["skill"],
        cv.infer(model, EARLY, sizes=SIZES, prior=posterior)["skill"],
        rtol=1e-14,
    )
    new = {"winner": [0], "loser": [3]}
    if with_model:
        assert found.predict(new)["margin"].mean == posterior.predict(new)["margin"].mean
    else:
        with pytest.raises(cv.UnsupportedError, match=r"cv.load\(path, model\)"):
            found.predict(new)
        with pytest.raises(KeyError, match="no variable 'nobody'"):
            found["nobody"]


@pytest.mark.parametrize("asked", [True, False])
def test_a_posterior_has_the_verdict_it_was_saved_with(tmp_path, asked):
    m = cv.Model("sum")
    a, b = m.random("a", cv.gaussian(0.0, variance=1.0)), m.random("b", cv.gaussian(0.0, variance=1.0))
    m.random("y", cv.gaussian(a + b, variance=0.1))
    posterior = cv.infer(m, {"y": 1.0}, method="vmp")
    if asked:
        assert posterior.verdict.level == "poor"
    posterior.save(tmp_path / "a")
    alone, found = cv.load(tmp_path / "a"), cv.load(tmp_path / "a", m)
    if asked:
        assert alone.verdict == found.verdict == posterior.verdict
        assert alone.summary() == found.summary() == posterior.summary()
        assert found._trust is None  # nothing was compared again
    else:
        assert alone.verdict.level == "unchecked"
        assert found.verdict.level == "poor"

    def unknown(meta):
        meta["verdict"] = {"level": "excellent", "reason": ""}

    with pytest.raises(cv.DataError, match="its verdict is 'excellent'"):
        cv.load(rewritten(tmp_path / "a", tmp_path / "b", unknown))


def test_an_exact_posterior_is_saved_with_its_verdict_unasked(tmp_path):
    model, data = mean_model(), {"x": np.array([1.0, 2.0, 0.5])}
    posterior = cv.infer(model, data)
    posterior.save(tmp_path / "a")
    assert cv.load(tmp_path / "a").verdict == posterior.verdict
    assert posterior.verdict.level == "good"


def test_missing_entries_lets_and_batches_are_saved_too(tmp_path):
    m = cv.Model("regression")
    x = m.input("x", cv.vector(2), plates=m.plate("n"))
    w = m.random("w", cv.vector_gaussian(np.zeros(2), covariance=np.eye(2)))
    level = m.let("level", cv.dot(w, x))
    m.random("y", cv.gaussian(level, variance=1.0))
    X, y = RANDOM.normal(size=(3, 2)), np.array([1.0, np.nan, 2.0])
    posterior = cv.infer(m, {"x": X, "y": y}, method=cv.power(0.5))
    posterior.save(tmp_path / "a")
    for found in (cv.load(tmp_path / "a"), cv.load(tmp_path / "a", m)):
        for name in ("w", "level", "y"):
            close(found[name].mean, posterior[name].mean, rtol=1e-15)
            close(found[name].variance, posterior[name].variance, rtol=1e-15)
    many = cv.compile(m, ["y"]).batch([{"x": X, "y": [1.0, 0.0, 2.0]}, {"x": -X, "y": [0.0, 1.0, 1.0]}])
    many[1].save(str(tmp_path / "a"))  # replaces the file
    close(cv.load(tmp_path / "a", m)["w"].mean, many[1]["w"].mean, rtol=1e-15)
    assert [file.name for file in tmp_path.iterdir()] == ["a"]


def test_a_file_holds_arrays_and_json_only(saved):
    _, posterior, path = saved
    with np.load(path, allow_pickle=False) as archive:
        assert all(archive[name].dtype != object for name in archive.files if not name.endswith(".json"))
    with zipfile.ZipFile(path) as archive:
        meta = json.loads(archive.read("meta.json"))
    assert (meta["format"], meta["version"], meta["name"]) == ("cavity posterior", 2, posterior.model.name)


def rewritten(path, target, change):
    """A copy of a saved file with its description changed."""
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(target, "w") as new:
        for name in set(old.namelist()) - {"sums.json"}:  # as files of version 0.5 were, without digests
            content = old.read(name)
            if name == "meta.json":
                meta = json.loads(content)
                change(meta)
                content = json.dumps(meta)
            new.writestr(name, content)
    return target


def test_files_that_are_no_posterior_say_so(saved, tmp_path):
    model, _, path = saved
    whole, bad = path.read_bytes(), tmp_path / "bad"

    def refused(content, message, *arguments):
        if isinstance(content, bytes):
            bad.write_bytes(content)
        with pytest.raises(cv.DataError, match=message):
            cv.load(bad, *arguments)

    refused(b"", "is damaged or is no posterior")
    refused(b"some text", "is damaged or is no posterior")
    refused(whole[: len(whole) // 2], "is damaged or is no posterior")
    middle = whole.index(b"\x93NUMPY") + 130
    refused(whole[:middle] + bytes([whole[middle] ^ 255]) + whole[middle + 1 :], "is damaged", model)
    np.savez(bad.with_suffix(".npz"), x=np.zeros(3))
    refused(bad.with_suffix(".npz").read_bytes(), "another kind of archive")
    refused(rewritten(path, bad, lambda meta: meta.update(version=VERSION + 1)), "a newer one wrote it")
    refused(rewritten(path, bad, lambda meta: meta.update(format="other")), "another kind of archive")
    refused(rewritten(path, bad, lambda meta: meta.pop("families")), "parts do not fit together")
    refused(rewritten(path, bad, lambda meta: meta["outputs"].clear()), "another version of cavity", model)
    with pytest.raises(FileNotFoundError):
        cv.load(tmp_path / "absent")


def test_a_model_that_is_not_the_one_of_the_file_is_refused(saved):
    _, _, path = saved
    with pytest.raises(cv.DataError, match="another model: its model 'skills' declares"):
        cv.load(path, mean_model())
    with pytest.raises(cv.DataError, match=r"takes a cv\.Model"):
        cv.load(path, "skills")
    more = skills()
    more.plate("season")
    with pytest.raises(cv.DataError, match='this one declares "plate season"'):
        cv.load(path, more)
    other = dice_model()
    cv.infer(other, {"x": [0, 1]}).save(path.with_name("dice"))
    changed = cv.Model("dice")
    n = changed.plate("n")
    changed.random("x", cv.categorical(changed.random("weights", cv.dirichlet([1.0, 2.0, 0.6]))), plates=n)
    with pytest.raises(cv.DataError, match="other constants"):
        cv.load(path.with_name("dice"), changed)


# ArviZ ----------------------------------------------------------------------------------------------------------------


def partly_observed():
    m = cv.Model("groups")
    g, n = m.plate("group", 2), m.plate("n")
    mean = m.random("mean", cv.gaussian(0.0, variance=4.0), plates=g)
    direction = m.random("direction", cv.vector_gaussian(np.zeros(3), covariance=np.eye(3)))
    x = m.input("x", cv.vector(3), plates=n)
    m.random("y", cv.gaussian(cv.dot(direction, x), variance=1.0))
    m.random("z", cv.gaussian(mean, variance=1.0), plates=n)
    y = np.array([0.5, np.nan, 1.5, 0.0])
    return cv.infer(m, {"x": RANDOM.normal(size=(4, 3)), "y": y, "z": RANDOM.normal(size=(4, 2))})


def test_draws_have_the_moments_and_the_plates_of_the_marginals():
    posterior = partly_observed()
    found, dims = groups(posterior, 4000, seed=3)
    assert {group: list(arrays) for group, arrays in found.items()} == {
        "posterior": ["mean", "direction", "y"],
        "observed_data": ["y", "z"],
        "constant_data": ["x"],
    }
    assert dims == {
        "mean": ["group"],
        "direction": ["direction_axis_0"],
        "y": ["n"],
        "z": ["n", "group"],
        "x": ["n", "x_axis_0"],
    }
    for name, draws in found["posterior"].items():
        marginal = posterior[name]
        assert draws.shape == (1, 4000, *marginal.mean.shape)
        error = np.abs(draws[0].mean(0) - marginal.mean)
        assert np.all(error <= 5.0 * marginal.sd / np.sqrt(4000))
        close(draws[0].std(0), marginal.sd, rtol=0.08)
    assert np.array_equal(np.isnan(found["observed_data"]["y"]), [False, True, False, False])
    again, _ = groups(posterior, 4000, seed=3)
    assert np.array_equal(again["posterior"]["mean"], found["posterior"]["mean"])
    other, _ = groups(posterior, 4000, seed=4)
    assert not np.array_equal(other["posterior"]["mean"], found["posterior"]["mean"])
    with pytest.raises(ValueError, match="number of draws"):
        posterior.to_arviz(0) if "arviz" in sys.modules else groups(posterior, 0, seed=0)


def test_without_arviz_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "arviz", None)
    with pytest.raises(cv.UnsupportedError, match=r"pip install 'cavity\[arviz\]'"):
        cv.infer(mean_model(), {"x": [1.0]}).to_arviz()


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::UserWarning")
def test_arviz_reads_it():
    pytest.importorskip("arviz", reason="needs the extra arviz")
    tree = partly_observed().to_arviz(50, seed=1)
    assert tree["posterior"]["mean"].dims == ("chain", "draw", "group")
    assert tree["observed_data"]["z"].dims == ("n", "group")
    assert tree["posterior"].attrs["inference_library"] == "cavity"
