"""The command line, called as a shell would, in this process."""

import numpy as np
import pytest

pandas = pytest.importorskip("pandas")

from cavity.command_line import main  # noqa: E402
from cavity.models import Skills  # noqa: E402

MODEL = """
import cavity as cv

def make(variance=1.0):
    m = cv.Model("cities")
    city, n = m.plate("city"), m.plate("n")
    where = m.input("where", cv.index(city), plates=n)
    level = m.random("level", cv.gaussian(0.0, variance=10.0), plates=city)
    m.random("y", cv.gaussian(level[where], variance=variance))
    return m

model = make()
"""
WHERE, Y = ["York", "Leeds", "York"], [1.0, 2.0, 3.0]


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own_model.py").write_text(MODEL)
    pandas.DataFrame({"where": WHERE, "y": Y}).to_csv("data.csv", index=False)
    pandas.DataFrame({"where": ["Leeds"]}).to_csv("new.csv", index=False)
    random = np.random.default_rng(0)
    x = random.normal(size=(40, 2))
    kind = np.where(x[:, 0] + 0.3 * random.normal(size=40) > 0, "wet", "dry")
    pandas.DataFrame({"a": x[:, 0], "b": x[:, 1], "kind": kind, "note": "n"}).to_csv("table.csv", index=False)
    pandas.DataFrame({"a": [1.0, None, 2.0], "kind": ["x", "y", "x"]}).to_csv("gap.csv", index=False)
    return tmp_path


def test_a_model_of_ones_own(place, capsys):
    asked = [
        "run",
        "own_model.py:make",
        "--data",
        "data.csv",
        "--out",
        "found.csv",
        "--save",
        "kept",
        "--report",
        "page.html",
    ]
    assert main(asked) == 0
    assert "York: 1.905" in capsys.readouterr().out
    found = pandas.read_csv("found.csv").set_index("name")
    np.testing.assert_allclose(found.loc["level[York]", "mean"], 4.0 / 2.1)
    assert "<html" in (place / "page.html").read_text()
    assert main(["predict", "kept", "own_model.py:make", "--data", "new.csv", "--out", "next.csv"]) == 0
    np.testing.assert_allclose(pandas.read_csv("next.csv")["y"], [2.0 / 1.1])
    assert main(["report", "kept", "own_model.py:model", "--out", "again.html"]) == 0


def test_arguments_of_the_function_that_makes_a_model(place, capsys):
    assert main(["run", "own_model.py:make", "--data", "data.csv", "--set", "variance=10"]) == 0
    assert "York: 1.333" in capsys.readouterr().out


def test_what_the_compiler_chose(place, capsys):
    assert main(["explain", "own_model.py:model", "--data", "data.csv"]) == 0
    assert "level" in capsys.readouterr().out


def test_a_classifier(place, capsys):
    pytest.importorskip("sklearn")
    assert main(["fit", "logistic", "table.csv", "--target", "kind", "--out", "found.csv"]) == 0
    assert "score on these rows: 0.9" in capsys.readouterr().out
    found = pandas.read_csv("found.csv")
    np.testing.assert_allclose(found["P(dry)"] + found["P(wet)"], 1.0)
    assert set(found["kind"]) == {"dry", "wet"}


def test_a_mixture(place, capsys):
    pytest.importorskip("sklearn")
    assert main(["fit", "mixture", "table.csv", "--features", "a,b"]) == 0


def test_columns_that_hold_no_numbers_are_told(place, capsys):
    pytest.importorskip("sklearn")
    random = np.random.default_rng(0)
    held = {"a": random.normal(size=20), "wet": random.random(20) < 0.5, "note": "n"}
    pandas.DataFrame(held).to_csv("held.csv", index=False)
    assert main(["fit", "logistic", "held.csv", "--target", "wet"]) == 0
    assert "left out: note" in capsys.readouterr().err
    assert main(["fit", "logistic", "held.csv", "--target", "note"]) != 0  # one class; both columns serve
    assert "left out" not in capsys.readouterr().err
    pandas.DataFrame({"note": ["n", "m"]}).to_csv("words.csv", index=False)
    assert main(["fit", "mixture", "words.csv"]) != 0
    assert "words.csv has no column of numbers." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (["run", "own_model.py:make", "--data", "none.csv"], "no file 'none.csv'"),
        (["run", "none.py:make"], "no file 'none.py'"),
        (["run", "own_model.py:other"], "has no 'other'"),
        (["run", "own_model.py"], "FILE.py:NAME"),
        (["run", "own_model.py:make", "--set", "variance=big"], "NAME=NUMBER"),
        (["run", "own_model.py:make", "--set", "size=3"], "no argument 'size'"),
        (["run", "own_model.py:make"], "'where'"),
        (["fit", "logistic", "table.csv"], "--target"),
        (["fit", "logistic", "table.csv", "--target", "sort"], "no column 'sort'"),
        (["predict", "data.csv", "own_model.py:make", "--data", "new.csv"], "data.csv"),
        (["launch", "-n", "0", "own_model.py"], "at least 1"),
        (["bench", "--repeats", "0"], "1 to 1000"),
        (["fit", "skills", "table.csv"], "no column 'winner'"),
        (["fit", "logistic", "gap.csv", "--target", "kind"], "Column 'a' has nothing in row 1"),
        (["fit", "mixture", "gap.csv"], "Column 'a' has nothing in row 1"),
        (
            ["fit", "logistic", "table.csv", "--target", "kind", "--features", "a", "--predict", "gap.csv"],
            "Column 'a' has nothing in row 1",
        ),
        (["fit", "mixed", "table.csv"], "needs a formula"),
        (["fit", "mixed", "table.csv", "--formula", "a ~ c"], "no column 'c'"),
        (["fit", "mixed", "table.csv", "--formula", "kind ~ a"], "no column of numbers"),
        (["fit", "mixed", "table.csv", "--formula", "a ~ b", "--family", "beta"], "one of gaussian"),
    ],
)
def test_what_is_wrong_is_told_in_a_sentence(place, capsys, asked, told):
    assert main(asked) == 1
    problem = capsys.readouterr().err
    assert told in problem
    assert "Traceback" not in problem


def test_what_is_no_command():
    with pytest.raises(SystemExit) as ended:
        main(["fit", "everything", "table.csv"])
    assert ended.value.code == 2


def test_the_folder_of_programs(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("CAVITY_CACHE", str(tmp_path / "programs"))
    assert main(["cache"]) == 0
    assert "0 programs" in capsys.readouterr().out
    (tmp_path / "programs" / "one.program").write_bytes(b"x")
    assert main(["cache", "--clear"]) == 0
    assert "Removed 1" in capsys.readouterr().out
    assert not list((tmp_path / "programs").iterdir())


def test_games(place, capsys):
    games = {"w": ["ann", "ann", "bob"], "l": ["bob", "cy", "cy"], "day": ["2024-01-01", "2024-01-02", "2024-01-09"]}
    pandas.DataFrame(games).to_csv("games.csv", index=False)
    asked = ["fit", "skills", "games.csv", "--winner", "w", "--loser", "l", "--time", "day", "--drift", "0.1"]
    assert main([*asked, "--out", "found.csv", "--save", "skills"]) == 0
    assert "of 3 players" in capsys.readouterr().out
    assert list(pandas.read_csv("found.csv")["player"]) == ["ann", "bob", "cy"]
    found = Skills.load("skills")
    assert found.drift_ == 0.1
    assert found.curve("ann").times[1] == np.datetime64("2024-01-02")


def test_a_formula_with_effects_of_a_group(place, capsys):
    """Means and sds of the declared model, of which this is another way to write it."""
    random = np.random.default_rng(0)
    x, school = random.normal(size=30), np.repeat(["s1", "s2", "s3"], 10)
    y = 1.0 + 0.5 * x + np.repeat([-1.0, 0.0, 1.0], 10) + 0.3 * random.normal(size=30)
    pandas.DataFrame({"x": x, "school": school, "y": y}).to_csv("pupils.csv", index=False)
    assert main(["fit", "mixed", "pupils.csv", "--formula", "y ~ x + (1 | school)", "--out", "found.csv"]) == 0
    assert "sd of intercept by school" in capsys.readouterr().out
    found = pandas.read_csv("found.csv").set_index("name")
    rows = np.stack([np.ones(30), x, *[school == s for s in ("s1", "s2", "s3")]], axis=1)
    noise, sd = found.loc["noise", "mean"], found.loc["sd of intercept by school", "mean"]
    prior = np.r_[(2.5 * y.std()) ** 2, (2.5 * y.std() / x.std()) ** 2, [sd**2] * 3]
    exact = np.linalg.inv(np.diag(1.0 / prior) + rows.T @ rows / noise**2)
    mean = exact @ (rows.T @ y / noise**2 + np.r_[y.mean() / prior[0], np.zeros(4)])
    assert found.loc["slope of x", "mean"] == pytest.approx(mean[1], abs=0.01)
    assert found.loc["slope of x", "sd"] == pytest.approx(np.sqrt(exact[1, 1]), rel=0.1)
    difference = found.loc["intercept by school[s3]", "mean"] - found.loc["intercept by school[s1]", "mean"]
    assert difference == pytest.approx(mean[4] - mean[2], abs=0.05)


@pytest.mark.slow
def test_this_machine_is_timed(capsys):
    assert main(["bench", "--repeats", "1"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 4
