"""The estimators out of the box on real tables: held-out log loss or log density, beside scikit-learn's.

    python benchmarks/estimators.py run --out estimators.jsonl [--only TABLE ...] [--vehicle FILE]
    python benchmarks/estimators.py table estimators.jsonl

Five folds of each table, the same for all contestants: ours with its defaults, ours with N(0, 1) for weights (and
biases), and scikit-learn's, whose penalty is chosen by five folds inside. Log loss and log density are means over
held-out rows; coverage is of central 90 % intervals. The tables are scikit-learn's own and those of `shared/data`
beside the checkout; Vehicle silhouettes (UCI: 18 numbers and a class in a line) are read from `--vehicle` where given.
"""

import argparse
import csv
import json
import time
import warnings
from pathlib import Path

import numpy as np
from scipy import stats
from sklearn import datasets
from sklearn.linear_model import LogisticRegressionCV, PoissonRegressor, RidgeCV
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cavity.models import estimators as ours

SHARED = Path(__file__).resolve().parents[1].parent / "shared" / "data"
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(40)
PENALTIES = np.logspace(-4, 4, 17)


def from_file(path):
    """Features and the last column of a table with a header."""
    rows = [[cell.strip('"') for cell in row] for row in csv.reader((SHARED / path).open())][1:]
    rows = [row for row in rows if not {"", "?", "NA"} & set(row)]
    return np.array([row[:-1] for row in rows], float), np.array([row[-1] for row in rows])


def numbers(path):
    x, y = from_file(path)
    return x, y.astype(float)


def pima():
    parts = [from_file(f"pima_ripley/pima_{part}.csv") for part in ("tr_200x8", "te_332x8")]
    return tuple(np.concatenate(arrays) for arrays in zip(*parts, strict=True))


def epilepsy():
    """Seizures in two weeks, of treatment, period, and the logarithms of base rate and age."""
    rows = list(csv.DictReader((SHARED / "mass_misc/epil_236x9.csv").open()))
    x = [[row["trt"] == "progabide", *(float(row[name]) for name in ("period", "lbase", "lage"))] for row in rows]
    return np.array(x, float), np.array([float(row["y"]) for row in rows])


def vehicle(path):
    rows = [line.split() for line in Path(path).read_text().splitlines()]
    return np.array([row[:-1] for row in rows], float), np.array([row[-1] for row in rows])


def sklearn(name):
    return lambda: getattr(datasets, f"load_{name}")(return_X_y=True)


TABLES = {
    "breast cancer": ("LogisticRegression", sklearn("breast_cancer")),
    "heart": ("LogisticRegression", lambda: from_file("heart_statlog/heart_statlog_270x14.csv")),
    "pima": ("LogisticRegression", pima),
    "german credit": ("LogisticRegression", lambda: from_file("german_credit/german_numeric_1000x25.csv")),
    "iris": ("SoftmaxRegression", sklearn("iris")),
    "wine": ("SoftmaxRegression", sklearn("wine")),
    "glass": ("SoftmaxRegression", lambda: from_file("uci_glass/glass_214x10.csv")),
    "vehicle": ("SoftmaxRegression", None),
    "diabetes": ("HeteroskedasticRegression", sklearn("diabetes")),
    "auto mpg": ("HeteroskedasticRegression", lambda: numbers("ord_auto_mpg/ord_auto_mpg_398x8.csv")),
    "computers": ("HeteroskedasticRegression", lambda: numbers("ord_machine_cpu/ord_machine_cpu_209x7.csv")),
    "epilepsy": ("PoissonRegression", epilepsy),
}
MORE = {"heart": "ProbitRegression", "iris": "MultinomialProbit", "wine": "MultinomialProbit"}


def peer(kind):
    """scikit-learn's, with its penalty by cross-validation."""
    if kind == "HeteroskedasticRegression":
        return make_pipeline(StandardScaler(), RidgeCV(PENALTIES))
    if kind == "PoissonRegression":
        search = GridSearchCV(PoissonRegressor(max_iter=5000), {"alpha": PENALTIES}, cv=5)
        return make_pipeline(StandardScaler(), search)
    found = LogisticRegressionCV(Cs=10, cv=5, scoring="neg_log_loss", max_iter=5000)
    return make_pipeline(StandardScaler(), found)


def contestants(kind):
    unit = {"prior_variance": 1.0} | ({} if kind.startswith("Hetero") else {"bias_variance": 1.0})
    return {
        "default": lambda: getattr(ours, kind)(),
        "N(0, 1)": lambda: getattr(ours, kind)(**unit),
        "scikit-learn": lambda: peer(kind),
    }


def of_classes(model, x, y, new, outcome):
    """Log probability of each outcome; nothing has an interval."""
    place = np.searchsorted(np.unique(y), outcome)
    return np.log(np.maximum(model.predict_proba(new)[np.arange(len(new)), place], 1e-12)), None


def of_numbers(model, x, y, new, outcome):
    """Log density and whether the 90 % interval holds the outcome; a ridge has the sd of its residuals."""
    if isinstance(model, ours.HeteroskedasticRegression):
        mean, sd = model.predict(new, return_std=True)
    else:
        mean, sd = model.predict(new), np.std(y - model.predict(x)) * np.sqrt(len(y) / max(len(y) - x.shape[1] - 1, 1))
    return stats.norm.logpdf(outcome, mean, sd), np.abs(outcome - mean) < stats.norm.ppf(0.95) * sd


def of_counts(model, x, y, new, outcome):
    """Log probability, averaged over the score where this has a variance."""
    if isinstance(model, ours.PoissonRegression):
        score = model._predictive(new)
        rate = np.exp(score("score") + np.sqrt(score("score", "variance")) * NODES[:, None])
        share = WEIGHTS[:, None] / WEIGHTS.sum()
    else:
        rate, share = model.predict(new)[None], np.ones((1, 1))
    below, at = (np.sum(share * function(outcome, rate), axis=0) for function in (stats.poisson.cdf, stats.poisson.pmf))
    return np.log(at), (below > 0.05) & (below - at < 0.95)


JUDGED = {"PoissonRegression": of_counts, "HeteroskedasticRegression": of_numbers}


def judged(kind, make, x, y):
    """Means over the held-out rows of five folds, and CPU seconds of the first and of later fits."""
    classes = kind not in JUDGED
    folds = (StratifiedKFold if classes else KFold)(5, shuffle=True, random_state=0)
    logs, inside, seconds = [], [], []
    for train, test in folds.split(x, y):
        start = time.process_time()
        model = make().fit(x[train], y[train])
        seconds.append(time.process_time() - start)
        log, covered = JUDGED.get(kind, of_classes)(model, x[train], y[train], x[test], y[test])
        logs.extend(log)
        inside.extend([] if covered is None else covered)
    return {
        "log": float(np.mean(logs)),
        "coverage": float(np.mean(inside)) if inside else None,
        "first": seconds[0],
        "later": float(np.mean(seconds[1:])),
    }


def run(options):
    wanted = [(name, kind, table) for name, (kind, table) in TABLES.items()]
    wanted += [(name, kind, TABLES[name][1]) for name, kind in MORE.items()]
    for name, kind, table in wanted:
        if (options.only and name not in options.only) or (table is None and not options.vehicle):
            continue
        x, y = table() if table else vehicle(options.vehicle)
        found = {"table": name, "rows": len(x), "features": x.shape[1], "kind": kind}
        for who, make in contestants(kind).items():
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                found[who] = judged(kind, make, x, y)
            found[who]["warned"] = sum("Convergence" in one.category.__name__ for one in told)
        with Path(options.out).open("a") as file:
            file.write(json.dumps(found) + "\n")
        print(json.dumps(found), flush=True)


def table(options):
    """Markdown: log loss of classes, minus the mean log density of numbers and counts; smaller is better."""
    print("| table | estimator | default | N(0, 1) | scikit-learn | coverage of 90 % | CPU s: default, N(0, 1) |")
    print("|---|---|---|---|---|---|---|")
    for line in Path(options.file).read_text().splitlines():
        row = json.loads(line)
        who = ("default", "N(0, 1)", "scikit-learn")
        losses = " | ".join(f"{-row[one]['log']:.3f}" for one in who)
        covered = ", ".join(f"{row[one]['coverage']:.2f}" for one in who) if row["default"]["coverage"] else ""
        times = ", ".join(f"{row[one]['first']:.1f} then {row[one]['later']:.2g}" for one in who[:2])
        print(
            f"| {row['table']}, {row['rows']} x {row['features']} | `{row['kind']}` | {losses} | {covered} | {times} |"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(required=True)
    runs = commands.add_parser("run")
    runs.add_argument("--out", default="estimators.jsonl")
    runs.add_argument("--only", nargs="*")
    runs.add_argument("--vehicle")
    runs.set_defaults(call=run)
    tables = commands.add_parser("table")
    tables.add_argument("file")
    tables.set_defaults(call=table)
    chosen = parser.parse_args()
    chosen.call(chosen)
