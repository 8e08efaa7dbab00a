"""Posteriors and evidences known from elsewhere: other systems' test suites, recomputed independently, or exact.

The names E1, L1, V2, ... are those of the table of numeric reference cases in the shared folder (`reference/cases.md`),
which says where each number comes from: mostly the tests of Infer.NET (dotnet/infer, MIT licence), checked there by
independent recomputation, or exact values computed for the table. Numbers are compared at 1e-6 relative unless fewer
digits are printed; then at half a unit of the last.
"""

from __future__ import annotations

import csv
import pathlib

import cavity as cv
import jax
import numpy as np
import pytest

SHARED = pathlib.Path(__file__).resolve().parents[2].parent / "shared"
RUNS = SHARED / "data" / "reference_runs"
shared = pytest.mark.skipif(
    not RUNS.is_dir(), reason=f"needs reference runs of other systems in {RUNS.name}, absent here"
)
close = np.testing.assert_allclose


def digits(found, printed, decimals):
    """`found` rounds to what is printed with so many decimals."""
    close(found, printed, rtol=0, atol=0.51 * 10.0**-decimals)


def infer(model, data, **options):
    posterior = cv.infer(model, data, **{"tolerance": 1e-9, **options})
    assert posterior.converged, posterior.diagnosis
    return posterior


def second_moment(marginal):
    return marginal.variance + marginal.mean**2


def expected_log(marginal):
    with jax.enable_x64(True):
        return np.asarray(marginal.family.moments().log)


# Gaussian, probit, step ----------------------------------------------------------------------------------------------


def test_e1_clutter_vmp():
    m = cv.Model("clutter")
    n = m.plate("n")
    mean = m.random("mean", cv.gaussian(0.0, variance=100.0))
    clean = m.random("clean", cv.bernoulli(0.5), plates=n)
    m.random("x", cv.switch(clean, cv.gaussian(mean, variance=1.0), cv.gaussian(0.0, variance=10.0)))
    posterior = infer(m, {"x": [0.1, 2.3]}, method="vmp")
    close(posterior["mean"].mean, 1.312592500, rtol=1e-6)
    close(posterior["mean"].variance, 0.892131150, rtol=1e-6)
    close(posterior.log_evidence, -6.022904461, rtol=1e-6)


def test_e2_bayes_point_machine():
    m = cv.Model()
    x = m.input("x", cv.vector(3), plates=m.plate("n"))
    w = m.random("w", cv.vector_gaussian(np.zeros(3), covariance=np.eye(3)))
    m.let("y", cv.dot(w, x) > 0)
    posterior = infer(m, {"x": [[0, 0, 1], [0, 1, 1], [1, 0, 1]], "y": [True, True, False]})
    mean = [-1.178410192370038, 0.514204026416866, 0.533030909628306]
    covariance = [
        [0.3578619594789516, 0.05893838160003953, -0.1183834842062737],
        [0.05893838160003953, 0.5424263963482457, -0.08091881706709862],
        [-0.1183834842062737, -0.08091881706709862, 0.1625333312892799],
    ]
    close(posterior["w"].mean, mean, rtol=1e-6)
    close(posterior["w"].covariance, covariance, rtol=1e-6)
    close(posterior.log_evidence, -2.486152518337251, rtol=1e-9)


E6_X, E6_Y = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], [False, True, True]


def bayes_point_machine(features):
    """Score with unit noise above zero, weights N(0, 1)."""
    m = cv.Model()
    x = m.input("x", cv.vector(features), plates=m.plate("n"))
    w = m.random("w", cv.vector_gaussian(np.zeros(features), covariance=np.eye(features)))
    score = m.random("score", cv.gaussian(cv.dot(w, x), variance=1.0))
    m.let("y", score > 0)
    return m


def test_e6_binary_learner():
    posterior = infer(bayes_point_machine(2), {"x": E6_X, "y": E6_Y})
    close(posterior["w"].mean, [0.5641895835477565] * 2, rtol=1e-6)
    close(posterior["w"].variance, [0.68169011381620925] * 2, rtol=1e-6)
    close(posterior.log_evidence, -2.0794415416798357, rtol=1e-9)
    prediction = posterior.predict({"x": [[0.0, 2.0], [4.0, 0.0]]})
    close(prediction["y"].mean, [0.72056019196590348, 0.74344670077888442], rtol=1e-6)


def test_e10_truncated_gaussian():
    m = cv.Model()
    n = m.plate("n")
    threshold = m.input("threshold", cv.real, plates=n)
    x = m.random("x", cv.gaussian(0.0, variance=1.0), plates=n)
    m.constrain(x > threshold, name="truncation")
    posterior = infer(m, {"threshold": [0.0, 0.5, 1.0]})
    close(posterior["x"].mean, [0.7978845608, 1.1410777703680648, 1.525135276161], rtol=1e-9)
    close(posterior["x"].variance, [0.3633802276, 0.26848040715587884, 0.199097665570], rtol=1e-9)
    # log P(x > t); 0.5, and the two tails of the table in E10
    close(np.exp(posterior.log_evidence), 0.5 * 0.308537538725987 * 0.15865525393145707, rtol=1e-10)


def test_e14_irregular_skill_graph():
    m = cv.Model("skills")
    player, game = m.plate("player"), m.plate("game")
    winner = m.input("winner", cv.index(player), plates=game)
    loser = m.input("loser", cv.index(player), plates=game)
    skill = m.random("skill", cv.gaussian(0.0, variance=100.0), plates=player)
    first = m.random("winning performance", cv.gaussian(skill[winner], variance=1.0))
    second = m.random("losing performance", cv.gaussian(skill[loser], variance=1.0))
    m.constrain(first > second)
    posterior = infer(m, {"winner": [2, 2, 3, 3], "loser": [0, 1, 0, 2]}, sizes={"player": 4})
    close(posterior["skill"].mean, [-6.982786179, -6.544057360, 3.008841003, 10.518002535], rtol=1e-6)
    close(posterior["skill"].variance, [51.456485714, 56.454336681, 35.277568599, 45.537639348], rtol=1e-6)


def logistic_model():
    m = cv.Model()
    w = m.random("w", cv.gaussian(1.2, precision=0.4))
    m.random("y", cv.bernoulli(cv.logistic(w)))
    return m


@pytest.fixture(scope="module")
def l1_model():
    return logistic_model()


def test_l1_logistic_ep(l1_model):
    expected = {
        True: (1.735711683643876, 1.897040876799618, 0.697305276585867),
        False: (-0.034096780812067, 1.704896988818977, 0.302694723413305),
    }
    for y, (mean, variance, evidence) in expected.items():
        posterior = infer(l1_model, {"y": y}, method="ep")
        close(posterior["w"].mean, mean, rtol=1e-6)
        close(posterior["w"].variance, variance, rtol=1e-6)
        close(np.exp(posterior.log_evidence), evidence, rtol=1e-9)


@pytest.fixture(scope="module")
def l5_model():
    m = cv.Model()
    x = m.random("x", cv.gaussian(0.0, variance=100.0))
    m.random("y", cv.poisson(cv.exp(x)))
    return m


def test_l5_poisson_under_a_vague_prior(l5_model):
    """One site alone is exact under EP: here against the integral itself.

    The table prints (-8.275331823, 36.015320028), which is this integral cut off at -40, four standard deviations out.
    """
    x = np.linspace(-150.0, 60.0, 200_001)
    density = np.exp(-np.exp(np.minimum(x, 50.0)) - x**2 / 200.0)
    mean = np.sum(x * density) / np.sum(density)
    variance = np.sum((x - mean) ** 2 * density) / np.sum(density)
    posterior = infer(l5_model, {"y": 0.0}, method="ep")
    close(posterior["x"].mean, mean, rtol=1e-6)
    close(posterior["x"].variance, variance, rtol=1e-6)


def test_l5_poisson_ncvmp_needs_damping(l5_model):
    posterior = infer(l5_model, {"y": 0.0}, method={"y": "ncvmp"})
    close(posterior["x"].mean, -8.046750618, rtol=1e-6)
    close(posterior["x"].variance, 11.053696856, rtol=1e-6)


def test_l4_poisson_tracker():
    m = cv.Model()
    x = m.random("x0", cv.gaussian(0.0, variance=100.0))
    m.random("y0", cv.poisson(cv.exp(x)))
    for i in (1, 2):
        x = m.random(f"x{i}", cv.gaussian(x, precision=10.0))
        m.random(f"y{i}", cv.poisson(cv.exp(x)))
    posterior = infer(m, {"y0": 0.0, "y1": 1.0, "y2": 2.0}, method="ep")
    expected = [(-0.282452346, 0.411561922), (-0.190952064, 0.377380622), (-0.100438057, 0.401815300)]
    for i, (mean, variance) in enumerate(expected):
        digits(posterior[f"x{i}"].mean, mean, 8)
        digits(posterior[f"x{i}"].variance, variance, 8)


# Discrete ------------------------------------------------------------------------------------------------------------


def test_d1_two_coins():
    m = cv.Model("two coins")
    first = m.random("first", cv.bernoulli(0.5))
    second = m.random("second", cv.bernoulli(0.5))
    m.let("both", first & second)
    posterior = infer(m, {"both": False})
    close(posterior["first"].mean, 1 / 3, rtol=1e-12)
    close(posterior["second"].mean, 1 / 3, rtol=1e-12)
    close(posterior.log_evidence, np.log(0.75), rtol=1e-12)
    close(cv.infer(m, {})["both"].mean, 0.25, rtol=1e-12)


def test_d6_three_node_loop():
    """Loopy belief propagation; equality weighs 1, inequality 1/2."""
    m = cv.Model()
    weight = m.input("weight", cv.unit, plates=m.plate("equal", 2))
    nodes = [m.random(name, cv.bernoulli(p)) for name, p in zip("abc", (0.6, 0.3, 0.2), strict=True)]
    for i, j in ((0, 1), (1, 2), (0, 2)):
        equal = m.let(f"equal {i}{j}", nodes[i] == nodes[j])
        m.random(f"edge {i}{j}", cv.bernoulli(weight[equal]))
    data = {"weight": [0.5, 1.0], "edge 01": True, "edge 12": True, "edge 02": True}
    posterior = infer(m, data, tolerance=1e-12)
    p = np.array([posterior[name].mean for name in "abc"])
    close(np.log(p) - np.log1p(-p), [-0.430329845153877, -1.26916217135997, -1.6494367601758], rtol=1e-6)


# VMP and NCVMP -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def mean_and_precision():
    m = cv.Model()
    n = m.plate("n")
    mean = m.random("mean", cv.gaussian(0.0, variance=100.0))
    precision = m.random("precision", cv.gamma(shape=1.0, rate=1.0))
    m.random("x", cv.gaussian(mean, precision=precision), plates=n)
    return m


def test_v1_mean_and_precision(mean_and_precision):
    posterior = infer(mean_and_precision, {"x": [5.0, 7.0]}, method="vmp", tolerance=1e-12)
    close(posterior["mean"].mean, 5.9603207170807826, rtol=1e-6)
    close(posterior["mean"].variance, 0.66132138200164436, rtol=1e-6)
    close(posterior["precision"].parameters["shape"], 2.0, rtol=1e-12)
    close(posterior["precision"].parameters["rate"], 2.6628958274937107, rtol=1e-6)
    close(posterior.log_evidence, -5.986981933, rtol=1e-9)


def test_v1_missing_entries_change_nothing(mean_and_precision):
    """The table's version with 'missing' values -1, which Infer.NET leaves out by a gate: NaN here."""
    nan = np.nan
    posterior = infer(mean_and_precision, {"x": [nan, 5.0, nan, 7.0, nan]}, method="vmp", tolerance=1e-12)
    close(posterior["mean"].mean, 5.9603207170807826, rtol=1e-6)
    close(posterior["precision"].parameters["rate"], 2.6628958274937107, rtol=1e-6)
    close(posterior.log_evidence, -5.986981933, rtol=1e-9)


def test_v2_mean_and_precision(mean_and_precision):
    posterior = infer(mean_and_precision, {"x": [11.0, 5.0, 8.0, 9.0]}, method="vmp", tolerance=1e-12)
    close(posterior["mean"].mean, 8.165341288357, rtol=1e-6)
    close(posterior["mean"].variance, 1.026166201735, rtol=1e-6)
    close(posterior["precision"].parameters["shape"], 3.0, rtol=1e-12)
    close(posterior["precision"].parameters["rate"], 1 / 0.080375084165, rtol=1e-6)
    close(posterior.log_evidence, -12.673925154, rtol=1e-9)


def test_v8_hybrid_product():
    m = cv.Model()
    a = m.random("a", cv.gaussian(1.0, precision=100.0))
    b = m.random("b", cv.gaussian(5.0, precision=10.0))
    product = m.let("product", a * b)
    m.random("x", cv.gaussian(product, precision=10.0))
    posterior = infer(m, {"x": 3.0})
    for name, mean, square in [("a", 0.7623428, 0.5843700), ("b", 4.5993225, 21.2168840)]:
        digits(posterior[name].mean, mean, 7)
        digits(second_moment(posterior[name]), square, 7)
    digits(posterior["product"].mean, 3.5062605, 7)
    digits(second_moment(posterior["product"]), 12.3985100, 7)
    digits(posterior.log_evidence, -5.4741729, 7)


def test_v18_dirichlet_categorical():
    m = cv.Model()
    n = m.plate("n")
    pi = m.random("pi", cv.dirichlet(np.ones(4)))
    m.random("x", cv.categorical(pi), plates=n)
    posterior = infer(m, {"x": [2]}, method="vmp")
    digits(expected_log(posterior["pi"]), [-2.0833, -2.0833, -1.0833, -2.0833], 4)
    digits(posterior.log_evidence, -1.3862944, 7)
    posterior = infer(m, {"x": [2, 1, 2, 3]}, method="vmp")
    digits(expected_log(posterior["pi"]), [-2.592857, -1.592857, -1.092857, -1.592857], 6)
    digits(posterior.log_evidence, -6.0402547, 7)


def test_v19_mixture_of_known_components():
    m = cv.Model()
    weights = m.random("weights", cv.dirichlet(np.ones(2)))
    c = m.random("c", cv.categorical(weights))
    m.random("x", cv.switch(c, cv.gaussian(5.5, variance=1.0), cv.gaussian(8.0, variance=1.0)))
    posterior = infer(m, {"x": 7.0}, method="vmp")
    close(expected_log(posterior["weights"]), [-1.15070408, -0.67501446], rtol=1e-8)
    digits(posterior["c"].mean[0], 0.2496107, 7)


def test_n1_logistic_ncvmp():
    m = cv.Model()
    x = m.random("x", cv.gaussian(0.0, variance=1.0))
    m.random("s", cv.bernoulli(cv.logistic(x)))
    posterior = infer(m, {"s": True}, method={"s": "ncvmp"})
    close(posterior["x"].mean, 0.413126805979683, rtol=1e-6)
    close(posterior["x"].variance, 0.828868291887001, rtol=1e-6)
    digits(posterior.log_evidence, -0.6932254743, 9)


def test_n2_logistic_ncvmp(l1_model):
    for y, mean, variance, bound in [
        (True, 1.734708429, 1.883856792, -0.362105103),
        (False, -0.034013727, 1.700736872, -1.195441847),
    ]:
        posterior = infer(l1_model, {"y": y}, method={"y": cv.ncvmp(bound="quadrature")})
        close(posterior["w"].mean, mean, rtol=1e-6)
        close(posterior["w"].variance, variance, rtol=1e-6)
        digits(posterior.log_evidence, bound, 9)


def test_n2_jaakkola_jordan(l1_model):
    for y, mean, square, bound, decimals in [
        (True, 1.674934, 4.514519, -0.4148459, 6),
        (False, -0.0322017, 1.6111232, -1.2118953, 7),
    ]:
        posterior = infer(l1_model, {"y": y}, method={"y": cv.ncvmp(bound="jaakkola")})
        digits(posterior["w"].mean, mean, decimals)
        digits(second_moment(posterior["w"]), square, decimals)
        digits(posterior.log_evidence, bound, 7)


@pytest.mark.parametrize(
    ("bound", "evidence", "decimals"),
    [
        ("tilted", -1.13738827734361, 13),
        ("log", -1.27810506273509, 13),
        ("quadratic", -1.94794908907837, 13),
        ("quadrature", -1.10870096, 8),
    ],
)
def test_n6_softmax(bound, evidence, decimals):
    m = cv.Model()
    k = m.plate("k", 3)
    x = m.random("x", cv.gaussian(0.0, variance=1.0), plates=k)
    m.random("y", cv.categorical(cv.softmax(x, over=k)))
    posterior = infer(m, {"y": 1}, method={"y": cv.ncvmp(bound=bound)})
    digits(posterior.log_evidence, evidence, decimals)
    if bound == "quadrature":
        digits(posterior["x"].mean, [-0.25964, 0.51928, -0.25964], 5)


# Runs of Infer.NET on data sets of the shared folder ------------------------------------------------------------------


def rows(path):
    with open(path, newline="") as file:
        return list(csv.reader(file))


@shared
def test_tennis_ep():
    """107 players, 1801 games of 2011; Infer.NET, 200 iterations, agrees with an independent EP to 4e-10."""
    table = SHARED / "data" / "tennis_atp2011"
    players = [row[0] for row in rows(table / "players_107.csv")]
    games = np.array(rows(table / "games_1801x2.csv")[1:], int) - 1
    reference = {name: values for name, *values in rows(RUNS / "infernet_tennis_ep.csv")[1:]}
    m = cv.Model("skills")
    player, game = m.plate("player"), m.plate("game")
    winner = m.input("winner", cv.index(player), plates=game)
    loser = m.input("loser", cv.index(player), plates=game)
    skill = m.random("skill", cv.gaussian(0.0, variance=0.5), plates=player)
    margin = m.random("margin", cv.gaussian(skill[winner] - skill[loser], variance=1.0))
    m.constrain(margin > 0)
    posterior = infer(m, {"winner": games[:, 0], "loser": games[:, 1]}, sizes={"player": len(players)})
    expected = np.array([[float(v) for v in reference[name]] for name in players])
    close(posterior["skill"].mean, expected[:, 0], rtol=1e-6, atol=1e-7)
    close(posterior["skill"].variance, expected[:, 1], rtol=1e-6)
    close(posterior.log_evidence, float(reference["LOG_EVIDENCE"][0]), atol=1e-4, rtol=0)


def pima():
    table = np.array(rows(RUNS / "pima_tr_std.csv"), float)
    return {"y": table[:, 0] == 1, "x": table[:, 1:]}


def binary_regression(features, link, precision=0.1):
    m = cv.Model()
    x = m.input("x", cv.vector(features), plates=m.plate("row"))
    w = m.random("w", cv.vector_gaussian(np.zeros(features), precision=precision * np.eye(features)))
    m.random("y", cv.bernoulli(link(cv.dot(w, x))))
    return m


@shared
def test_pima_probit_ep():
    """Infer.NET 2018, 200 iterations (`infernet_2018_mono.log`, t2)."""
    posterior = infer(binary_regression(8, cv.probit), pima(), method="ep")
    close(posterior.log_evidence, -114.887261346342, atol=1e-6, rtol=0)
    digits(posterior["w"].mean, [0.2022, 0.6278, -0.0361, -0.0110, 0.3141, 0.3392, 0.2837, -0.5738], 4)
    digits(posterior["w"].sd, [0.1271, 0.1235, 0.1212, 0.1538, 0.1530, 0.1177, 0.1419, 0.1128], 4)


@shared
def test_pima_logistic_tilted():
    """Infer.NET 2018, VMP with the tilted bound of Saul and Jordan (`infernet_2018_mono.log`, t2)."""
    posterior = infer(binary_regression(8, cv.logistic), pima(), method={"y": cv.ncvmp(bound="tilted")})
    close(posterior.log_evidence, -111.193685357821, atol=1e-6, rtol=0)
    digits(posterior["w"].mean, [0.3562, 1.0750, -0.0693, -0.0005, 0.5225, 0.5855, 0.4806, -0.9864], 4)
    digits(posterior["w"].sd, [0.2148, 0.2125, 0.2085, 0.2511, 0.2559, 0.1994, 0.2381, 0.1984], 4)


@shared
def test_iris_softmax_tilted():
    """Infer.NET 2018, NCVMP with the tilted bound, 500 iterations (`infernet_2018_mono.log`, t3)."""
    table = np.array(rows(RUNS / "iris_std.csv"), float)
    m = cv.Model()
    row, cls = m.plate("row"), m.plate("class", 3)
    x = m.input("x", cv.vector(5), plates=row)
    weight = m.random("weight", cv.vector_gaussian(np.zeros(5), covariance=np.eye(5)), plates=cls)
    m.random("y", cv.categorical(cv.softmax(cv.dot(weight, x), over=cls)), plates=row)
    posterior = infer(m, {"y": table[:, 0].astype(int), "x": table[:, 1:]}, method={"y": cv.ncvmp(bound="tilted")})
    # Infer.NET's random damping has not quite converged after its 500 iterations: the maximum of the bound lies above.
    assert -45.1737342518162 < posterior.log_evidence < -45.1736
    mean = [
        [-1.0592, 1.2513, -1.9922, -1.8552, -0.3123],
        [0.5915, -0.5541, -0.1525, -0.7492, 1.8221],
        [0.4654, -0.6955, 2.1419, 2.6020, -1.5131],
    ]
    sd = [
        [0.7802, 0.5419, 0.8054, 0.8159, 0.6141],
        [0.4652, 0.3530, 0.7079, 0.6229, 0.3224],
        [0.4811, 0.4149, 0.7785, 0.6737, 0.5336],
    ]
    close(posterior["weight"].mean, mean, atol=0.01, rtol=0)
    close(posterior["weight"].sd, sd, atol=0.003, rtol=0)


LOGISTIC = SHARED / "reference" / "runs" / "infernet_logistic"


@pytest.mark.skipif(not LOGISTIC.is_dir(), reason="needs the shared folder's logistic runs, absent here")
@pytest.mark.parametrize(
    ("run", "link", "method", "evidence", "digits"),
    [
        ("probit_EP", cv.probit, "ep", -389.0507787, 7),
        ("logisticJJ96_VMP", cv.logistic, {"y": cv.ncvmp(bound="jaakkola")}, -385.3446711, 7),
        # Infer.NET fails to give this evidence; the bound at its posterior was recomputed (bounds_recomputed.json).
        ("bernoulliFromLogOdds_VMP", cv.logistic, {"y": cv.ncvmp(bound="tilted")}, -383.9308132850133, 6),
        ("logisticQuad_VMP", cv.logistic, {"y": cv.ncvmp(bound="quadrature")}, -383.8867214306585, 6),
    ],
)
def test_pima_768(run, link, method, evidence, digits):
    """All 768 rows, w ~ N(0, I); Infer.NET under mono, means and standard deviations from its posterior files."""
    table = np.array(rows(LOGISTIC / "pima_768_std.csv")[1:], float)
    model = binary_regression(9, link, precision=1.0)
    posterior = infer(model, {"y": table[:, 0] == 1, "x": table[:, 1:]}, method=method)
    expected = np.array([row[1:] for row in rows(LOGISTIC / f"posterior_pima_{run}.csv")[1:]], float)
    close(posterior.log_evidence, evidence, atol=0.6 * 10.0**-digits, rtol=0)
    close(posterior["w"].mean, expected[:, 0], atol=1e-5 * np.min(expected[:, 1]), rtol=0)
    close(posterior["w"].sd, expected[:, 1], rtol=1e-5)
