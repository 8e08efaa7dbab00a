"""The command line: `cavity fit softmax data.csv --target species`, `cavity run model.py:make --data data.csv`.

Tables come in as CSV or Parquet files, answers go out as text, CSV, Parquet or HTML. It ends with 0 where all went
well, 1 with a sentence where data or model do not fit, 2 where there is no such command, 3 where a run did not
converge.
"""

from __future__ import annotations

import argparse
import importlib.util
import inspect
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .factors.errors import CavityError, DataError, ModelError

FAILED, LEFT = 1, 3  # exit codes: refused, and ended before convergence
EFFORT = 10.0  # seconds: enough to integrate the sds of slopes and intercepts, and to compare with draws
ESTIMATORS = {  # by the word on the command line: the name of the estimator, and whether it has a target
    "softmax": ("estimators.SoftmaxRegression", True),
    "logistic": ("estimators.LogisticRegression", True),
    "probit": ("estimators.ProbitRegression", True),
    "ordinal": ("estimators.OrdinalRegression", True),
    "poisson": ("estimators.PoissonRegression", True),
    "variance": ("estimators.HeteroskedasticRegression", True),
    "mixture": ("GaussianMixture", False),
    "nsfa": ("NSFA", False),
    "tree": ("DiffusionTree", False),
    "features": ("BinaryFeatures", False),
    "skills": ("Skills", False),
    "mixed": ("", False),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Does what the command says; returns the exit code."""
    parser = _parser()
    asked = parser.parse_args(arguments)
    try:
        return asked.does(asked)
    except CavityError as problem:
        print(f"cavity {asked.command}: {problem}", file=sys.stderr)
    except Exception as problem:  # a shell wants a sentence; Python has the whole traceback
        print(f"cavity {asked.command}: {type(problem).__name__}: {problem}", file=sys.stderr)
    return FAILED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="cavity", description="Bayesian models as factor graphs.")
    parser.add_argument("--version", action="version", version=f"cavity {_version()}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")

    fit = commands.add_parser("fit", help="fit a shipped model to a table", description="Fits a shipped model.")
    fit.add_argument("kind", choices=sorted(ESTIMATORS))
    fit.add_argument("data", help="a CSV or Parquet file")
    fit.add_argument("--target", help="the column to be predicted")
    fit.add_argument("--features", help="columns to be used, with commas between them; all others by default")
    fit.add_argument("--predict", metavar="FILE", help="a table of new rows, whose predictions are written")
    fit.add_argument("--out", metavar="FILE", help="where predictions go, CSV or Parquet; of the same rows by default")
    for name in ("winner", "loser", "time", "draw", "margin", "home"):
        fit.add_argument(f"--{name}", metavar="COLUMN", help=f"of fit skills: the column of the {name}")
    fit.add_argument(
        "--drift", type=float, help="of fit skills: the sd by which a skill moves in one unit of time, or day"
    )
    fit.add_argument("--formula", help="of fit mixed: such as 'y ~ x + (1 | group)'")
    fit.add_argument("--family", default="gaussian", help="of fit mixed: gaussian, bernoulli or poisson (gaussian)")
    fit.add_argument(
        "--effort",
        type=float,
        default=EFFORT,
        metavar="SECONDS",
        help=f"of fit mixed: of computing that better answers may take, compiling apart ({EFFORT:g})",
    )
    fit.add_argument("--save", metavar="FILE", help="of fit skills: what Skills.load reads")
    fit.set_defaults(does=_fit)

    bench = commands.add_parser("bench", help="time a few standard models on this machine")
    bench.add_argument("--repeats", type=int, default=3, help="warm runs of each, of which the quickest counts (3)")
    bench.set_defaults(does=_bench)

    for name, does, told in (
        ("run", _run, "infer a model of your own"),
        ("explain", _explain, "what the compiler chooses for it, and why"),
    ):
        own = commands.add_parser(name, help=told, description=f"{told.capitalize()}: model.py:make.")
        _add_model(own)
        own.add_argument("--data", help="a CSV or Parquet file whose columns are the data")
        if name == "run":
            own.add_argument("--seed", type=int, default=0)
            own.add_argument("--out", metavar="FILE", help="a table of the marginals, CSV or Parquet")
            own.add_argument("--report", metavar="FILE", help="one page of HTML")
            own.add_argument("--save", metavar="FILE", help="the posterior, for `predict` and `report`")
        own.set_defaults(does=does)

    report = commands.add_parser("report", help="a page of HTML of a saved posterior")
    predict = commands.add_parser("predict", help="predictions of a saved posterior for new inputs")
    for own, does in ((report, _report), (predict, _predict)):
        own.add_argument("posterior", help="a file of `run --save`")
        _add_model(own)
        own.add_argument("--out", metavar="FILE", required=own is report, help="where it goes")
        own.set_defaults(does=does)
    predict.add_argument("--data", required=True, help="a CSV or Parquet file of new inputs")

    cache = commands.add_parser("cache", help="where compiled programs are kept, and how much they are")
    cache.add_argument("--clear", action="store_true", help="remove them")
    cache.set_defaults(does=_cache)

    launch = commands.add_parser("launch", help="run a script as several processes of this machine")
    launch.add_argument("-n", "--processes", type=int, default=2, help="how many (2)")
    launch.add_argument("script", help="a Python file")
    launch.add_argument("arguments", nargs=argparse.REMAINDER, help="what the script is given")
    launch.set_defaults(does=_launch)
    return parser


def _version() -> str:
    return importlib.import_module(__package__ or "cavity").__version__


def _add_model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="FILE.py:NAME, a model or a function that makes one")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=NUMBER", help="an argument of the function")


# What the commands do -------------------------------------------------------------------------------------------------


def _fit(asked: argparse.Namespace) -> int:
    from . import models

    if asked.kind in ("skills", "mixed"):
        return _fit_skills(asked) if asked.kind == "skills" else _fit_mixed(asked)
    place, with_target = ESTIMATORS[asked.kind]
    if with_target and not asked.target:
        raise ModelError(f"fit {asked.kind} predicts a column: name it, --target COLUMN.")
    found: Any = importlib.import_module(f"{models.__name__}.estimators") if "." in place else models
    estimator = getattr(found, place.rsplit(".", 1)[-1])()
    frame = _table(asked.data)
    features = _features(frame, asked)
    whole = with_target or asked.kind == "mixture"  # they take no missing entries
    if whole:
        _check_whole(frame, [*features, *([asked.target] if with_target else [])])
    given = (frame[features], frame[asked.target]) if with_target else (frame[features],)
    estimator.fit(*given)
    print(estimator)
    if (posterior := getattr(estimator, "posterior_", None)) is not None and hasattr(posterior, "summary"):
        print(posterior.summary())
    if with_target:
        print(f"score on these rows: {estimator.score(*given):.4g}")
    if asked.out or asked.predict:
        new = _table(asked.predict) if asked.predict else frame
        if missing := [name for name in features if name not in new.columns]:
            raise DataError(f"{asked.predict} has no column {missing[0]!r}, by which the model was fitted.")
        if whole:
            _check_whole(new, features)
        new = new[features]
        _write(_predictions(estimator, new, asked.target or "value"), asked.out)
    return 0


def _fit_skills(asked: argparse.Namespace) -> int:
    from .models import Skills

    frame = _table(asked.data)
    named = {"winners": asked.winner, "losers": asked.loser, "times": asked.time, "draws": asked.draw}
    named |= {"margins": asked.margin, "home": asked.home}
    given = {name: column.split(",") if "," in column else column for name, column in named.items() if column}
    found = Skills(drift=asked.drift or 0.0).fit(frame, **given)
    print(found)
    print(f"draw margin {found.draw_margin_:.4g}, log evidence {found.log_evidence_:.6g}")
    if asked.home:
        print("advantage of playing at home {:.4g} ± {:.2g}".format(*found.home_advantage_))
    for standing in found.leaderboard(20):
        print(f"{standing.place:4}  {standing.player!s:24}  {standing.mean:7.3f} ± {standing.sd:.2f}  {standing.games}")
    if asked.out:
        _write(found.to_frame(), asked.out)
    if asked.save:
        found.save(asked.save)
    return 0 if found.converged_ else LEFT


def _fit_mixed(asked: argparse.Namespace) -> int:
    from .engine.infer import infer
    from .models.mixed.model import mixed

    if not asked.formula:
        raise ModelError("fit mixed needs a formula: --formula 'y ~ x + (1 | group)'.")
    model, data = mixed(asked.formula, _table(asked.data), asked.family)
    if asked.family != "gaussian":
        print("cavity fit: compiling, which may take half a minute or more", file=sys.stderr, flush=True)
    posterior = infer(model, data, effort=asked.effort)
    print(posterior.summary())
    if asked.out:
        _write(posterior.to_frame().reset_index(), asked.out)
    return 0 if posterior.converged else LEFT


def _bench(asked: argparse.Namespace) -> int:
    from .timed_models import timed_models

    if not 1 <= asked.repeats <= 1000:
        raise ModelError(f"bench --repeats is a number from 1 to 1000; found {asked.repeats}.")
    print(f"{'model':34} {'first s':>8} {'again s':>8}  sweeps")
    for name, first, again, sweeps in timed_models(asked.repeats):
        print(f"{name:34} {first:8.3f} {again:8.4f}  {sweeps}", flush=True)
    return 0


def _features(frame: Any, asked: argparse.Namespace) -> list[str]:
    """The columns to be used: those that were named, else all that hold numbers but the target; others are told of."""
    named = asked.features.split(",") if asked.features else None
    for name in [*(named or []), *([asked.target] if asked.target else [])]:
        if name not in frame.columns:
            raise DataError(f"{asked.data} has no column {name!r}. It has {', '.join(map(str, frame.columns))}.")
    if named:
        return named
    held = frame.drop(columns=[asked.target] if asked.target else [])
    numbers = list(held.select_dtypes(["number", "bool"]).columns)
    if not numbers:
        raise DataError(f"{asked.data} has no column of numbers{' beside the target' * bool(asked.target)}.")
    if others := [str(name) for name in held.columns if name not in numbers]:
        print(f"cavity fit: columns that hold no numbers are left out: {', '.join(others)}", file=sys.stderr)
    return numbers


def _check_whole(frame: Any, columns: Sequence[str]) -> None:
    """DataError where an entry is missing, with the place of the first."""
    for name in columns:
        if (missing := frame[name].isna().to_numpy()).any():
            raise DataError(f"Column {name!r} has nothing in row {int(np.argmax(missing))}. Leave such rows out.")


def _predictions(estimator: Any, rows: Any, target: str) -> Any:
    import pandas  # pyright: ignore[reportMissingImports]

    if hasattr(estimator, "predict_proba") and hasattr(estimator, "classes_"):
        names = pandas.Index([f"P({c})" for c in estimator.classes_])
        found = pandas.DataFrame(estimator.predict_proba(rows), columns=names)
        found.insert(0, target, estimator.predict(rows))
        return found
    if hasattr(estimator, "predict"):
        return pandas.DataFrame({target: estimator.predict(rows)})
    return pandas.DataFrame(estimator.transform(rows))


def _run(asked: argparse.Namespace) -> int:
    from .engine.infer import infer

    model = _model(asked)
    posterior = infer(model, _table(asked.data) if asked.data else {}, seed=asked.seed)
    print(posterior.summary())
    if asked.out:
        _write(posterior.to_frame().reset_index(), asked.out)
    if asked.report:
        posterior.report(asked.report)
    if asked.save:
        posterior.save(asked.save)
    return 0 if posterior.converged else LEFT


def _explain(asked: argparse.Namespace) -> int:
    from .engine.infer import explain

    explain(_model(asked), _table(asked.data) if asked.data else {})  # it prints
    return 0


def _report(asked: argparse.Namespace) -> int:
    _loaded(asked).report(asked.out)
    return 0


def _predict(asked: argparse.Namespace) -> int:
    import pandas  # pyright: ignore[reportMissingImports]

    found = _loaded(asked).predict(_table(asked.data))
    columns = {}
    for name, marginal in found.items():
        if marginal.mean.ndim < 2:
            columns |= {name: np.ravel(marginal.mean), f"{name} sd": np.ravel(marginal.sd)}
        else:
            columns |= {f"{name}[{i}]": column for i, column in enumerate(marginal.mean.reshape(len(marginal), -1).T)}
    _write(pandas.DataFrame({name: pandas.Series(column) for name, column in columns.items()}), asked.out)
    return 0


def _cache(asked: argparse.Namespace) -> int:
    from .engine.support.on_disk import clear, kept

    folder, number, size = kept()
    if folder is None:
        print("No programs are kept (CAVITY_CACHE is off, or the folder cannot be used).")
    elif asked.clear:
        print(f"Removed {clear()} programs from {folder}.")
    else:
        print(f"{number} programs, {size / 2**20:.1f} MiB, in {folder}.")
    return 0


def _launch(asked: argparse.Namespace) -> int:
    from .engine.cluster.launch import launch

    if asked.processes < 1:
        raise ModelError(f"launch -n is a number of processes, at least 1; found {asked.processes}.")
    return launch(asked.script, asked.arguments, asked.processes)


# Files ----------------------------------------------------------------------------------------------------------------


def _loaded(asked: argparse.Namespace) -> Any:
    from .engine.load import load

    return load(asked.posterior, _model(asked))


def _model(asked: argparse.Namespace) -> Any:
    """The model of a file of the user's own."""
    place, _, name = asked.model.rpartition(":")
    if not place:
        raise ModelError(f"A model is given as FILE.py:NAME, such as model.py:make; found {asked.model!r}.")
    path = Path(place)
    if not path.is_file():
        raise ModelError(f"There is no file {place!r}. A model is given as FILE.py:NAME, such as model.py:make.")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ModelError(f"{place!r} is no file of Python. A model is given as FILE.py:NAME, such as model.py:make.")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent.resolve()))
    sys.modules.setdefault(path.stem, module)
    spec.loader.exec_module(module)
    if not hasattr(module, name):
        there = ", ".join(own for own in vars(module) if not own.startswith("_"))
        raise ModelError(f"{place} has no {name!r}. It has {there}.")
    found = getattr(module, name)
    if not callable(found):
        return found
    given = dict(_setting(item) for item in asked.set)
    if unknown := set(given) - set(inspect.signature(found).parameters):
        raise ModelError(f"{name} has no argument {sorted(unknown)[0]!r}: {name}{inspect.signature(found)}.")
    lacking = [
        own
        for own, parameter in inspect.signature(found).parameters.items()
        if parameter.default is parameter.empty and own not in given
    ]
    if lacking:
        raise ModelError(f"{name}{inspect.signature(found)} needs {lacking[0]!r}: --set {lacking[0]}=NUMBER.")
    return found(**given)


def _setting(item: str) -> tuple[str, int | float]:
    name, _, number = item.partition("=")
    try:
        return name, int(number) if number.lstrip("-").isdigit() else float(number)
    except ValueError:
        raise ModelError(f"--set takes NAME=NUMBER; found {item!r}.") from None


def _table(path: str) -> Any:
    """A frame of pandas from a CSV or Parquet file."""
    pandas = _pandas()
    if not Path(path).is_file():
        raise DataError(f"There is no file {path!r}.")
    return pandas.read_parquet(path) if path.endswith((".parquet", ".pq")) else pandas.read_csv(path)


def _write(frame: Any, path: str | None) -> None:
    if path is None:
        print(frame.to_csv(index=False), end="")
    elif path.endswith((".parquet", ".pq")):
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False)


def _pandas() -> Any:
    try:
        import pandas  # pyright: ignore[reportMissingImports]
    except ImportError as problem:
        raise ModelError(f"Tables need pandas ({problem}). Install the extra: pip install 'cavity[frames]'.") from None
    return pandas
