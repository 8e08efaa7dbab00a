"""The conditionals of the kernels are those of the declared model: differences of `cv.log_density(nsfa(...))`.

A kernel's random numbers are replaced by given ones, so that its draws show the law that they come from: a Gaussian
draw `mean + sd e` lies e^2 / 2 below the mode, and gamma variables that are all 1 show the rates.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import cavity as cv
from cavity.models.nsfa import nsfa
from cavity.models.sparse.kernels import columns, factors, hyper
from cavity.models.sparse.kernels.factors import energies, sums_of
from cavity.models.sparse.state import Numbers, Observed, State, Switches

ROWS, SAMPLES, FACTORS = 3, 4, 2
ONE = np.ones(2)
SEED = jnp.zeros(2, jnp.uint32)
CASES = {
    "sparse": (
        {"mass": "learned"},
        Switches("finite", "gaussian", "factor", "row", ("mass",)),
    ),
    "sparse, one noise": (
        {"slab": "shared", "noise": "shared"},
        Switches("finite", "gaussian", "shared", "shared", ()),
    ),
    "automatic relevance": (
        {"sparsity": "none"},
        Switches("none", "gaussian", "factor", "row", ()),
    ),
    "dense": (
        {"sparsity": "none", "slab": "shared", "noise": "shared"},
        Switches("none", "gaussian", "shared", "shared", ()),
    ),
    "heavy tails": (
        {"sparsity": "none", "slab": "element"},
        Switches("none", "student_t", "fixed", "row", ()),
    ),
}


class Twins:
    """One point of the declared model and of the kernels' state."""

    def __init__(self, arguments, switches):
        random = np.random.default_rng(3)
        self.switches, self.model = switches, nsfa(FACTORS, **arguments)
        self.y = random.normal(size=(ROWS, SAMPLES))
        loading = random.normal(size=(ROWS, FACTORS))
        if switches.sparsity == "finite":
            loading[1, 0] = loading[2, 1] = 0.0
        noise = random.gamma(2.0, 1.0, () if switches.noise == "shared" else ROWS)
        slabs = {"factor": FACTORS, "shared": (), "fixed": (ROWS, FACTORS)}
        self.point = {
            "loading": loading,
            "score": random.normal(size=(SAMPLES, FACTORS)),
            "noise": noise,
            "precision": random.gamma(2.0, 1.0, slabs[switches.precision]),
        }
        if switches.sparsity == "finite":
            self.point["activity"] = np.full(FACTORS, 0.5)
        if switches.learn:
            self.point["mass"] = np.array(1.7)
        self.density = cv.log_density(self.model, {"y": self.y})
        self.numbers = Numbers(ONE, ONE, ONE, ONE, ONE, ONE, ONE, np.ones(4), np.array(1.0), np.array(0.0))

    def state(self):
        fixed = self.switches.precision == "fixed"
        return State(
            loading=jnp.array(self.point["loading"].T), factor=jnp.array(self.point["score"].T),
            count=jnp.array(FACTORS),
            precision=jnp.ones(FACTORS) if fixed else jnp.broadcast_to(self.point["precision"], FACTORS),
            element=jnp.array(self.point["precision"].T) if fixed else jnp.zeros((0, 0)), openness=jnp.zeros(0),
            noise=jnp.broadcast_to(self.point["noise"], ROWS), mass=jnp.array(self.point.get("mass", 1.0)),
            concentration=jnp.array(1.0), precision_rate=jnp.array(1.0), noise_rate=jnp.array(1.0),
            missing=jnp.zeros(0),
        )  # fmt: skip

    def height(self, **changes):
        return float(self.density({**self.point, **changes}))

    def along(self, name, place, values):
        """The log joint density with other values of one element, about the first of them."""
        found = []
        for value in values:
            array = np.array(self.point[name], float)
            array[place] = value
            found.append(self.height(**{name: array}))
        return np.array(found) - found[0]


@pytest.fixture(params=CASES, scope="module")
def twins(request):
    return Twins(*CASES[request.param])


@pytest.fixture(autouse=True)
def doubles():
    with jax.enable_x64(True):
        yield


def places(array):
    return list(np.ndindex(np.shape(array)))


def test_hyperparameters(twins, monkeypatch):
    shapes = {}

    def all_one(seed, asked):
        shapes.update({name: np.asarray(shape) for name, shape in asked.items()})
        return {name: jnp.zeros(jnp.shape(shape)) for name, shape in asked.items()}

    monkeypatch.setattr(hyper, "log_gammas", all_one)
    state, switches = twins.state(), twins.switches
    energy = energies(sums_of(jnp.array(twins.y), state.factor), state.loading)
    drawn = hyper.draw_hyper(SEED, state, energy, twins.numbers, switches, 0).state
    own = {"noise": (shapes["noise"][0], drawn.noise)}
    if switches.precision == "fixed":
        own["precision"] = (shapes["element"].T, drawn.element.T)
    else:
        own["precision"] = (shapes["precision"], drawn.precision)
    if "mass" in switches.learn:
        own["mass"] = (shapes["mass"], drawn.mass[None])
    values = np.array([0.4, 1.0, 2.5])
    for name, (shape, inverse_rate) in own.items():
        for place in places(twins.point[name]):
            at = place or (0,)
            law = stats.gamma(shape[at], scale=float(inverse_rate[at])).logpdf(values)
            assert twins.along(name, place, values) == pytest.approx(law - law[0], abs=1e-9), name
    if switches.sparsity == "finite":
        for k in range(FACTORS):
            law = stats.beta(shapes["active"][k], shapes["inactive"][k]).logpdf([0.2, 0.5, 0.9])
            assert twins.along("activity", k, [0.2, 0.5, 0.9]) == pytest.approx(law - law[0], abs=1e-9)


def test_loadings(twins, monkeypatch):
    state, switches = twins.state(), twins.switches
    sums = sums_of(jnp.array(twins.y), state.factor)
    given = Observed(jnp.array(twins.y), jnp.zeros(0, int), jnp.zeros(0, int), jnp.zeros((0, ROWS)))
    log_odds = jnp.zeros(FACTORS)  # of activities of a half

    @jax.jit
    def drawn(which, uniform, error):
        """All loadings, active and at their means but for those of one factor."""
        with monkeypatch.context() as patch:
            patch.setattr(columns, "uniforms", lambda s, stream, k, i: jnp.where(k == which, uniform, 1e-300))
            patch.setattr(columns, "normals", lambda s, stream, k, i: jnp.where(k == which, error, 0.0))
            return columns.draw_columns(SEED, state, sums, log_odds, given, FACTORS, switches)

    for k in range(FACTORS):
        mean, above = (np.asarray(drawn(k, 1e-300, error)) for error in (0.0, 1.0))
        others = np.where(np.arange(FACTORS)[:, None] < k, mean, state.loading)
        here = Twins.__new__(Twins)
        here.__dict__ = twins.__dict__ | {"point": twins.point | {"loading": others.T}}
        for d in range(ROWS):
            sd = above[k, d] - mean[k, d]
            steps = here.along("loading", (d, k), mean[k, d] + sd * np.array([0.0, 1.0, -1.0, 2.0]))
            assert steps == pytest.approx([0.0, -0.5, -0.5, -2.0], abs=1e-9)
            if switches.sparsity != "finite":
                continue
            low, high = 0.0, 1.0
            for _ in range(60):
                middle = 0.5 * (low + high)
                active = drawn(k, middle, 0.0)[k, d] != 0.0
                low, high = (middle, high) if active else (low, middle)
            spike = here.along("loading", (d, k), [mean[k, d], 0.0])[1]
            odds = 0.5 * np.log(2.0 * np.pi) + np.log(sd) - spike
            assert np.log(low / (1.0 - low)) == pytest.approx(odds, abs=1e-9)


def test_scores(twins, monkeypatch):
    error = np.random.default_rng(4).normal(size=(FACTORS, SAMPLES))
    found = []
    for size in (0.0, 1.0, -1.0):
        monkeypatch.setattr(factors, "normals", lambda *address, size=size: size * jnp.array(error))
        state = twins.state()
        height = factors.heights(state.loading, state.noise, jnp.array(twins.y))
        score = np.asarray(factors.draw_factors(SEED, state, height))
        found.append(twins.height(score=score.T))
    drop = -0.5 * (error**2).sum()
    assert np.array(found) - found[0] == pytest.approx([0.0, drop, drop], abs=1e-9)


def test_missing_entries(twins, monkeypatch):
    row, sample = np.array([0, 2, 2]), np.array([3, 0, 1])
    given = Observed(jnp.array(twins.y), jnp.array(row), jnp.array(sample), jnp.zeros((0, ROWS)))
    error, found = np.array([0.7, -1.2, 0.4]), []
    for size in (0.0, 1.0, -1.0):
        monkeypatch.setattr(
            factors, "normals", lambda s, stream, k, i, e=size * error: jnp.pad(e, (0, len(i) - len(e)))
        )
        y = twins.y.copy()
        y[row, sample] = factors.draw_missing(SEED, twins.state(), given)
        found.append(float(cv.log_density(twins.model, {"y": y})(twins.point)))
    drop = -0.5 * (error**2).sum()
    assert np.array(found) - found[0] == pytest.approx([0.0, drop, drop], abs=1e-9)
