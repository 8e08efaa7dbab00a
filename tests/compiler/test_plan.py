"""Which operator the compiler chooses and why, as text; and what it says when a request cannot be served.

The plans of the programs in the description of the language are committed as `snapshots/*.txt`: a change of a rule
shows as a change of these files. `pytest tests/compiler/test_plan.py --update-snapshots` writes them anew; read the
difference.
"""

from __future__ import annotations

import pathlib

import numpy as np
import pytest
from small_models import clutter, skills

import cavity as cv
from cavity.compiler.plan import make_plan

SNAPSHOTS = pathlib.Path(__file__).parent / "snapshots"


# The programs --------------------------------------------------------------------------------------------------------


def two_coins():
    m = cv.Model("two coins")
    first = m.random("first", cv.bernoulli(0.5))
    second = m.random("second", cv.bernoulli(0.5))
    m.let("both", first & second)
    return m


def mean_and_precision():
    m = cv.Model("mean and precision")
    n = m.plate("n")
    mean = m.random("mean", cv.gaussian(0.0, variance=100.0))
    precision = m.random("precision", cv.gamma(shape=1.0, rate=1.0))
    m.random("x", cv.gaussian(mean, precision=precision), plates=n)
    return m


def mixture():
    m = cv.Model("mixture")
    k, n = m.plate("component", 6), m.plate("n")
    weights = m.random("weights", cv.dirichlet(np.ones(6)))
    mean = m.random("mean", cv.vector_gaussian(np.zeros(2), covariance=10.0 * np.eye(2)), plates=k)
    precision = m.random("precision", cv.wishart(dof=4.0, scale=np.eye(2) / 4.0), plates=k)
    z = m.random("z", cv.categorical(weights), plates=n)
    m.random("x", cv.vector_gaussian(mean[z], precision=precision[z]))
    return m


def softmax_regression():
    m = cv.Model("softmax regression")
    row, cls = m.plate("row"), m.plate("class", 3)
    x = m.input("x", cv.vector(4), plates=row)
    weight = m.random("weight", cv.vector_gaussian(np.zeros(4), covariance=np.eye(4)), plates=cls)
    bias = m.random("bias", cv.gaussian(0.0, variance=1.0), plates=cls)
    score = m.let("score", cv.dot(weight, x) + bias)
    m.random("y", cv.categorical(cv.softmax(score, over=cls)), plates=row)
    return m


def binary_regression(link=cv.logistic):
    m = cv.Model("binary regression")
    x = m.input("x", cv.vector(4), plates=m.plate("row"))
    weight = m.random("weight", cv.vector_gaussian(np.zeros(4), covariance=np.eye(4)))
    m.random("y", cv.bernoulli(link(cv.dot(weight, x))))
    return m


def hidden_label():
    """A logistic variable that is itself inferred, in a table below."""
    m = cv.Model("hidden label")
    x = m.random("x", cv.gaussian(0.0, variance=1.0))
    label = m.random("label", cv.bernoulli(cv.logistic(x)))
    rate = m.input("rate", cv.unit, plates=m.plate("state", 2))
    m.random("test", cv.bernoulli(rate[label]))
    return m


def counts():
    m = cv.Model("counts")
    level = m.random("level", cv.gaussian(0.0, variance=10.0))
    m.random("y", cv.poisson(cv.exp(level)), plates=m.plate("n"))
    m.random("next", cv.poisson(cv.exp(level)))
    return m


def product():
    m = cv.Model("product")
    a = m.random("a", cv.gaussian(1.0, precision=100.0))
    b = m.random("b", cv.gaussian(5.0, precision=10.0))
    m.random("x", cv.gaussian(a * b, precision=10.0))
    return m


def log_variance():
    m = cv.Model("log variance")
    n = m.plate("n")
    mean = m.random("mean", cv.gaussian(0.0, variance=1.0))
    g = m.random("g", cv.gaussian(0.0, variance=1.0), plates=n)
    m.random("y", cv.gaussian(mean, variance=cv.exp(g)))
    return m


X = np.zeros((5, 4))
GAMES = {"winner": [0, 1], "loser": [1, 2]}
# name -> (model, data, options)
PLANS = {
    "two_coins": (two_coins, {"both": False}, {}),
    "two_coins_prior": (two_coins, {}, {}),
    "mean_and_precision": (mean_and_precision, {"x": [1.0, 2.0]}, {}),
    "mean_and_precision_vmp": (mean_and_precision, {"x": [1.0, 2.0]}, {"method": "vmp"}),
    "skills": (skills, GAMES, {"sizes": {"player": 3}}),
    "clutter": (clutter, {"x": [0.1, 2.3]}, {}),
    "mixture": (mixture, {"x": np.zeros((4, 2))}, {}),
    "softmax_regression": (softmax_regression, {"x": X, "y": [0, 1, 2, 0, 1]}, {}),
    "softmax_regression_log_bound": (
        softmax_regression,
        {"x": X, "y": [0, 1, 2, 0, 1]},
        {"method": {"y": cv.ncvmp(bound="log")}},
    ),
    "logistic_regression": (binary_regression, {"x": X, "y": np.ones(5, bool)}, {}),
    "logistic_regression_ncvmp": (binary_regression, {"x": X, "y": np.ones(5, bool)}, {"method": "ncvmp"}),
    "logistic_regression_power": (binary_regression, {"x": X, "y": np.ones(5, bool)}, {"method": cv.power(0.5)}),
    "probit_regression": (lambda: binary_regression(cv.probit), {"x": X, "y": np.ones(5, bool)}, {}),
    "hidden_label": (hidden_label, {"test": True, "rate": [0.1, 0.9]}, {}),
    "counts": (counts, {"y": [1.0, 2.0]}, {}),
    "product": (product, {"x": 3.0}, {}),
    "log_variance": (log_variance, {"y": [1.0, 2.0]}, {}),
}


@pytest.mark.parametrize("name", sorted(PLANS))
def test_plans_are_as_committed(name, request, capsys):
    model, data, options = PLANS[name]
    text = cv.explain(model(), data, **options)
    assert capsys.readouterr().out == text + "\n"
    path = SNAPSHOTS / f"{name}.txt"
    if request.config.getoption("--update-snapshots"):
        SNAPSHOTS.mkdir(exist_ok=True)
        path.write_text(text + "\n", encoding="utf-8")
    assert path.exists(), "no snapshot yet: run with --update-snapshots and read what it wrote"
    assert text + "\n" == path.read_text(encoding="utf-8")


def test_no_snapshot_is_left_over():
    assert {path.stem for path in SNAPSHOTS.glob("*.txt")} == set(PLANS)


# Rules, one by one ---------------------------------------------------------------------------------------------------


def methods(model, observed, **options):
    """Factor -> method of the plan."""
    program = cv.compile(model, observed, **options)
    return {block.name: str(block.method) for block in program.plan.blocks}


def test_method_dictionary_applies_by_name():
    assert methods(skills(), [])["constraint 1"] == "EP"
    auto = methods(binary_regression(), ["y"])
    assert auto["y"] == "EP"
    assert methods(binary_regression(), ["y"], method={"y": "ncvmp"})["y"] == "NCVMP"
    assert methods(binary_regression(), ["y"], method={"y": cv.power(0.5)})["y"] == "power(0.5)"
    assert methods(binary_regression(), ["y"], method={"weight": "ep"}) == auto
    assert methods(product(), ["x"])["x"] == "VMP"


def test_method_dictionary_names_constraints():
    m = cv.Model()
    x = m.random("x", cv.gaussian(0.0, variance=1.0))
    m.constrain(x > 0, name="positivity")
    assert methods(m, [], method={"positivity": cv.power(0.5)})["positivity"] == "power(0.5)"


def test_bounds_reach_the_operator():
    text = cv.compile(binary_regression(), ["y"], method={"y": cv.ncvmp(bound="tilted")}).explain()
    assert "logistic: tilted" in text
    assert "[message: bound]" in text


def test_power_one_is_ep():
    assert cv.power(1.0) == cv.power(1)
    assert methods(binary_regression(), ["y"], method=cv.power(1.0)) == methods(binary_regression(), ["y"], method="ep")


def test_explain_compiles_nothing(monkeypatch):
    import jax

    monkeypatch.setattr(jax, "jit", lambda *a, **k: pytest.fail("explain compiled something"))
    cv.explain(mean_and_precision(), {"x": [1.0]})


# Unsupported requests ------------------------------------------------------------------------------------------------


def refusal(model, observed=(), error=cv.UnsupportedError, **options):
    with pytest.raises(error) as caught:
        cv.compile(model, observed, **options)
    return str(caught.value)


def says(text, *parts):
    for part in parts:
        assert part in text, f"{part!r} not in {text!r}"


def test_constraint_under_vmp():
    text = refusal(skills(), method="vmp")
    says(text, "'constraint 1'", "infinite", "method='auto'", "{'constraint 1': 'ep', ...}")


def test_softmax_under_ep():
    text = refusal(softmax_regression(), ["y"], method="ep")
    says(text, "'y'", "softmax", "couples all classes", "ncvmp", "method='auto'", "{'y': 'vmp', ...}")


def test_vector_gate_with_random_precision_under_ep():
    text = refusal(mixture(), ["x"], method={"x": "ep"})
    says(text, "'x'", "random vector", "all of its coordinates", "{'x': 'vmp', ...}")


@pytest.mark.parametrize(
    ("model", "observed", "method"),
    [(clutter, "x", {"x": "ep"}), (mean_and_precision, "x", "ep"), (product, "x", "ep")],
    ids=["gate", "scale", "product"],
)
def test_what_ep_serves_over_slots(model, observed, method):
    text = cv.compile(model(), observed=[observed], method=method, sizes={"n": 3}).explain()
    assert "  x[n]: EP" in text or "  x: EP" in text
    assert "Gaussian arguments in closed form" in text
    assert "because asked for" in text


def test_ep_sums_the_states_of_a_gate_over_conjugate_terms():
    text = cv.compile(clutter(), observed=["x"], method="ep", sizes={"n": 3}).explain()
    assert "mixture of conjugate posteriors" in text
    assert "integrated out inside a factor, recovered afterwards: clean" in text


def with_random_argument(term):
    m = cv.Model()
    s = m.random("s", cv.gamma(1.0, 1.0))
    m.random("x", term(s))
    return m


@pytest.mark.parametrize(
    "term",
    [
        lambda s: cv.gamma(s, 1.0),
        lambda s: cv.beta(s, 1.0),
        lambda s: cv.beta(1.0, s),
        lambda s: cv.wishart(s, np.eye(2)),
    ],
    ids=["gamma shape", "beta a", "beta b", "wishart dof"],
)
def test_random_parameters_without_closed_form(term):
    """Quadrature serves them under EP, and under auto where VMP has nothing to offer."""
    for method in ("auto", "ep"):
        text = cv.compile(with_random_argument(term), observed=["x"], method=method).explain()
        assert "quadrature" in text
    assert "1-D adaptive" in text


def test_unknown_bound():
    with pytest.raises(cv.ModelError, match="bound='blei'"):
        cv.ncvmp(bound="blei")
    text = refusal(binary_regression(), ["y"], method={"y": cv.ncvmp(bound="bohning")})
    says(text, "'y' has no bound 'bohning'", "logistic: quadrature, tilted, jaakkola")
    text = refusal(softmax_regression(), ["y"], method={"y": cv.ncvmp(bound="jaakkola")})
    says(text, "softmax: quadrature, tilted, log, quadratic, adaptive, bohning, taylor")


def test_bound_where_there_is_no_link():
    text = refusal(mean_and_precision(), ["x"], method={"x": cv.ncvmp(bound="tilted")})
    says(text, "'x' has no bound 'tilted'", "no link")


def line_and_sign():
    """A line seen with random noise, and the sign of another one."""
    m = cv.Model()
    x = m.input("x", cv.real, plates=m.plate("row", 4))
    level, slope = (m.random(name, cv.gaussian(0.0, variance=1.0)) for name in ("level", "slope"))
    m.random("y", cv.gaussian(level + slope * x, precision=m.random("noise", cv.gamma(1.0, 1.0))))
    m.random("sign", cv.bernoulli(cv.logistic(level - slope * x)))
    return m


def test_a_bound_for_the_whole_model_applies_where_a_link_has_it():
    program = cv.compile(line_and_sign(), ["y", "sign"], method=cv.ncvmp(bound="jaakkola"))
    methods = {block.name: block.choice.operator for block in program.plan.blocks}
    assert methods["y"] == "gaussian expected log density"
    assert methods["sign"] == "bernoulli expected log density (logistic: jaakkola)"
    text = refusal(line_and_sign(), ["y", "sign"], method=cv.ncvmp(bound="log"))
    says(text, "No factor of the model has the bound 'log'", "logistic: quadrature, tilted, jaakkola")


@pytest.mark.parametrize("method", ["ep", "vmp"])
def test_a_variable_whose_method_is_asked_for_keeps_its_own_belief(method):
    def joined(method, **options):
        plan = cv.compile(line_and_sign(), ["y", "sign"], method=method, **options).plan
        return [tuple(member.name for member in joint.members) for joint in plan.joints]

    together = [("level", "slope")]
    assert joined("auto") == joined({"y": "vmp"}) == joined({"level": "auto"}) == together
    assert joined({"level": method}) == joined({"slope": method}) == joined("vmp") == []
    assert joined({"level": method}, accuracy="best") == together


def test_unknown_name_in_method():
    text = refusal(skills(), error=cv.ModelError, method={"skil": "ep"})
    says(text, "'skil'", "skill, margin, constraint 1")


@pytest.mark.parametrize("method", ["EP", "gibbs", 3, None])
def test_unknown_method(method):
    says(
        refusal(skills(), error=cv.ModelError, method=method),
        repr(method),
        "'ep'",
        "cv.power(alpha)",
        "cv.ncvmp(bound=",
    )


@pytest.mark.parametrize("alpha", [0, -1, 1.5, float("nan"), float("inf")])
def test_power_out_of_range(alpha):
    with pytest.raises(cv.ModelError, match=r"0 < alpha <= 1; found .*method='vmp'"):
        cv.power(alpha)


def test_observed_product_let():
    m = cv.Model()
    a, b = m.random("a", cv.gaussian(1.0, variance=1.0)), m.random("b", cv.gaussian(1.0, variance=1.0))
    m.let("c", a * b)
    says(refusal(m, ["c"]), "'c' = ", "not a linear function", "Observe it with noise", "variance=small")


def test_observed_logic_under_vmp():
    says(refusal(two_coins(), ["both"], method="vmp"), "'both'", "infinite", "method='auto' or 'ep'")


def test_nonlinear_comparison():
    m = cv.Model()
    a, b = m.random("a", cv.gamma(1.0, 1.0)), m.random("b", cv.gamma(1.0, 1.0))
    m.constrain(a > b)
    says(refusal(m), "'constraint 1'", "linear in no Gaussian variable", "m.random('margin'")


def test_comparison_inside_logic():
    m = cv.Model()
    a, b = m.random("a", cv.gaussian(1.0, variance=1.0)), m.random("b", cv.bernoulli(0.5))
    m.constrain((a > 0) | b)
    says(refusal(m), "comparison of random real numbers", "m.let('c'")


def test_too_large_truth_table():
    m = cv.Model()
    coins = [m.random(f"coin {i}", cv.bernoulli(0.5)) for i in range(13)]
    odd = coins[0]
    for coin in coins[1:]:
        odd = odd ^ coin
    m.constrain(odd)
    says(refusal(m), "13 discrete variables", "2^13", "m.let")


def test_missing_entries_of_a_parent():
    """Its factor and that of its child are split into the instances where it is given and where not."""
    m = cv.Model()
    x = m.random("x", cv.gaussian(0.0, variance=1.0), plates=m.plate("n", 2))
    m.random("y", cv.gaussian(x, variance=1.0))
    plan = make_plan(m, frozenset({"x", "y"}), frozenset({"x"}))
    assert plan.observed == {"y"}
    assert [(block.name, block.latent, len(block.where)) for block in plan.blocks] == [
        ("x", (), 1),
        ("x", ("x",), 1),
        ("y", (), 1),
        ("y", ("x",), 1),
    ]
