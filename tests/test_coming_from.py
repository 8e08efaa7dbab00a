"""Ten models in the words of other systems and in ours: ours are planned in each run, and run with theirs when slow."""

import functools
import importlib.util
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from doc_scripts import DOCS, load

import cavity as cv

PAGES = load("run_pages")
PAGE = DOCS / "coming-from" / "ten-models.md"
SYSTEMS = {"PyMC", "NumPyro", "Infer.NET", "RxInfer", "scikit-learn", "R-INLA"}
THEIRS = re.compile(r"^```py\n# (numpyro|sklearn): ([^\n]*)\n(.*?)^```", re.MULTILINE | re.DOTALL)

HAS_FUNSOR = importlib.util.find_spec("funsor") is not None  # NumPyro asks for it where it sums out discrete variables


def sections():
    """The text of each model, by its heading."""
    _, *parts = re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE)
    return {part.split("\n", 1)[0]: part for part in parts}


def test_ten_models_each_with_ours_and_several_of_theirs():
    assert len(sections()) == 10
    seen = set()
    for name, text in sections().items():
        assert len(PAGES.BLOCK.findall(text)) == 1, name
        theirs = re.findall(r"<summary>(.*?)</summary>", text)
        assert len(theirs) >= 3, name
        assert text.count("<details") == text.count("</details>") == len(theirs)
        assert text.count("<div") == text.count("</div>") == 3
        seen |= set(theirs)
    assert seen == SYSTEMS


def test_the_table_links_to_each_model_and_says_who_has_a_program():
    rows = re.findall(r"^\| \[(.*?)\]\(#(.*?)\) \|(.*)\|$", PAGE.read_text(), re.MULTILINE)
    columns = ["PyMC", "NumPyro", "Infer.NET", "RxInfer", "scikit-learn", "R-INLA"]
    assert [name for name, _, _ in rows] == list(sections())
    for name, anchor, cells in rows:
        assert anchor == name.lower().replace(" ", "-")
        said = {column for column, cell in zip(columns, cells.split("|"), strict=True) if cell.strip()}
        assert said == set(re.findall(r"<summary>(.*?)</summary>", sections()[name])), name


class Planned(Exception):
    """The program came to its inference, and the plan of it is made."""


def test_each_of_ours_is_planned_on_its_data(monkeypatch):
    """The blocks share names, as a reader's session does; what follows the inference is left to the slow test."""

    def plan(model, data, restarts=None):
        explained = cv.explain(model, data)
        assert str(explained).startswith(model.name)
        raise Planned

    monkeypatch.setattr(cv, "infer", plan)
    names = {"__name__": "__page__"}
    for block in PAGES.BLOCK.finditer(PAGE.read_text()):
        with pytest.raises(Planned):
            exec(compile(block["code"], PAGE.name, "exec"), names)


@pytest.mark.slow
def test_ours_print_what_the_page_says_and_theirs_agree():
    """Chains of NumPyro and the modes of scikit-learn, where they answer the same question."""
    numpyro = pytest.importorskip("numpyro")
    pytest.importorskip("sklearn")
    names, ours = {}, {}
    for block, printed in PAGES.run(PAGE, names):
        assert PAGES.without_numbers(block["text"]) == PAGES.without_numbers(printed)
        ours[names["m"].name] = names["posterior"]
    answers = run_theirs(numpyro, names)
    assert len(answers) == (14 if HAS_FUNSOR else 11)
    means = {
        "two coins": ours["two coins"]["first"].mean,
        "mean and precision": ours["mean and precision"]["mean"].mean,
        "linear regression": ours["linear regression"]["weight"].mean,
        "logistic regression": ours["logistic regression"]["weight"].mean,
        "eight schools": ours["eight schools"]["effect"].mean,
        "player skills": ours["skills"]["skill"].mean,
        "a mixture": np.sort(ours["mixture"]["mean"].mean),
        "a level that drifts": ours["local level"]["level"].mean[-1],
        "a hidden Markov model": ours["hidden Markov"]["level"].mean,
        "a curve": ours["curve"].predict({"x": [1.6, 4.7]})["f"].mean,
    }
    # A thousand draws; what is learnt and not integrated, and a mode, lie a little beside the mean.
    within = {("numpyro", name): 0.1 for name in means} | {("numpyro", "eight schools"): 0.6}
    within |= {("sklearn", name): 0.25 for name in means}
    for key, answer in answers.items():
        assert np.abs(np.asarray(answer) - means[key[1]]).max() < within[key], key


def run_theirs(numpyro, names):
    """What the programs of NumPyro and scikit-learn put into `answer`, by (system, model)."""
    from numpyro.contrib.control_flow import scan
    from numpyro.infer import MCMC, NUTS, Predictive
    from numpyro.ops.indexing import Vindex
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import Matern, WhiteKernel
    from sklearn.linear_model import BayesianRidge, LogisticRegression
    from sklearn.mixture import BayesianGaussianMixture

    shared = dict(numpyro=numpyro, dist=numpyro.distributions, jax=jax, jnp=jnp, np=np, scan=scan, Vindex=Vindex)  # noqa: C408
    kinds = (GaussianProcessRegressor, Matern, WhiteKernel, BayesianRidge, LogisticRegression, BayesianGaussianMixture)
    shared |= {kind.__name__: kind for kind in (NUTS, Predictive, *kinds)}
    shared["MCMC"] = functools.partial(MCMC, progress_bar=False)
    found = {}
    for system, model, code in THEIRS.findall(PAGE.read_text()):
        if not HAS_FUNSOR and ("enumerate" in code or "infer_discrete" in code):
            continue
        own = {**names, **shared}
        exec(compile(code, f"{system}: {model}", "exec"), own)
        found[system, model] = own["answer"]
    return found
