"""The posterior of weighted draws against quadrature, and when it is the answer."""

import numpy as np
import pytest
from scipy import stats

import cavity as cv
from cavity.engine.evidence.reweighted import Reweighted
from cavity.engine.evidence.reweighted import corrected as corrected_beliefs

close = np.testing.assert_allclose
random = np.random.default_rng(3)
DATA = {f"y{k}": 1.0 + s * random.normal(size=3) for k, s in enumerate((0.3, 1.0, 2.0, 0.6))}


def four_instruments():
    """One quantity, measured by four instruments of unknown precisions."""
    m = cv.Model("four instruments")
    x = m.random("x", cv.gaussian(0.0, variance=4.0))
    for k in range(4):
        precision = m.random(f"precision{k}", cv.gamma(0.5, 0.1))
        m.random(f"y{k}", cv.gaussian(x, precision=precision), plates=m.plate(f"n{k}"))
    m.random("next", cv.gaussian(x, variance=0.5))
    m.let("twice", 2.0 * x)
    return m


def exact(data=DATA):
    """Log evidence, mean and sd of x: the precisions are integrated out in closed form, x on a grid."""
    from scipy.special import gammaln

    grid = np.linspace(-9.0, 11.0, 20001)
    log = stats.norm.logpdf(grid, 0.0, 2.0)
    for y in data.values():
        shape, rate = 0.5 + 0.5 * len(y), 0.1 + 0.5 * np.sum((y - grid[:, None]) ** 2, axis=1)
        log += (
            gammaln(shape)
            - gammaln(0.5)
            + 0.5 * np.log(0.1)
            - shape * np.log(rate)
            - 0.5 * len(y) * np.log(2.0 * np.pi)
        )
    weights = np.exp(log - log.max())
    total = log.max() + np.log(weights.sum() * (grid[1] - grid[0]))
    weights /= weights.sum()
    mean = weights @ grid
    quantiles = np.interp([0.1, 0.9], np.cumsum(weights), grid)
    return total, mean, np.sqrt(weights @ (grid - mean) ** 2), quantiles


@pytest.fixture(scope="module")
def corrected():
    """Its precisions would be integrated: the draws are asked of the beliefs."""
    return corrected_beliefs(cv.infer(four_instruments(), DATA, accuracy="fast"), 0, 1.0)


def test_a_verdict_tells_a_rough_evidence(corrected):
    parts = corrected.plain, corrected._density, corrected._call
    rough = Reweighted(*parts, corrected._found._replace(error=0.42)).verdict
    assert rough.level == "good"
    assert "log evidence may be off by 0.4." in rough.sentence
    assert corrected.error < 0.05
    assert "evidence" not in corrected.verdict.sentence


def test_beliefs_that_are_off_are_corrected(corrected):
    assert isinstance(corrected, Reweighted)
    total, mean, sd, quantiles = exact()
    noise = 4.0 / np.sqrt(corrected.effective)
    assert abs(corrected.log_evidence - total) < 4.0 * corrected.error
    assert abs(corrected["x"].mean - mean) < noise * sd
    close(corrected["x"].sd, sd, rtol=noise)
    close(corrected["x"].quantile([0.1, 0.9]), quantiles, atol=2.0 * noise * sd)
    assert corrected.plain["x"].sd < 0.85 * sd  # what was corrected
    assert corrected.verdict.level == "good"
    assert "worth" in corrected.diagnosis
    close(sum(corrected.evidence.values()), corrected.log_evidence)


def test_what_is_made_of_the_draws_is_mixed_over_them(corrected):
    x = corrected["x"]
    close(corrected["twice"].mean, 2.0 * x.mean, rtol=1e-9)
    close(corrected["next"].mean, x.mean, atol=0.15 * x.sd)  # fewer draws are mixed
    close(corrected["next"].variance, x.variance + 0.5, rtol=0.02)
    assert corrected["next"].quantile(0.5).shape == ()
    drawn = x.sample(0, (4000,))
    close(drawn.mean(), x.mean, atol=5.0 * x.sd / np.sqrt(4000))
    step = np.linspace(x.mean - 8.0 * x.sd, x.mean + 8.0 * x.sd, 2001)
    density = np.exp(x.log_density(step))
    close(np.sum(density) * (step[1] - step[0]), 1.0, rtol=1e-3)


def test_an_observation_is_left_out_of_the_draws(corrected):
    """Against x on a grid: log p(y_i | others) = log p(y) - log p(others)."""
    whole = exact()[0]
    found = corrected.loo()
    assert {*found, *found.unavailable} == set(DATA)
    assert len(found) >= 2
    for name in found:
        for i in range(3):
            without = {**DATA, name: np.delete(DATA[name], i)}
            close(found[name][i], whole - exact(without)[0], atol=0.1)
    assert found.total == pytest.approx(sum(found[name].sum() for name in found))


def test_an_observation_that_moves_the_draws_too_far_has_no_density_and_says_why():
    from cavity.engine.checks.loo import drawn_leave_one_out
    from cavity.engine.density.log_density import LogDensity

    m = cv.Model("outlier")
    x = m.random("x", cv.gaussian(0.0, variance=100.0))
    m.random("y", cv.gaussian(x, variance=0.01), plates=m.plate("n"))
    posterior = cv.infer(m, {"y": [0.0, 3.0]})
    drawn = stats.norm.rvs(posterior["x"].mean, posterior["x"].sd, 1000, random_state=0)
    density = LogDensity(m, posterior.binding)
    found = drawn_leave_one_out(density, {"x": drawn}, np.full(1000, 1e-3), {})
    assert "Pareto k" in found.unavailable["y"]
    with pytest.raises(KeyError, match="move too far"):
        found["y"]


def test_draws_come_back_from_their_file(corrected, tmp_path):
    corrected.save(tmp_path / "a")
    found, alone = cv.load(tmp_path / "a", four_instruments()), cv.load(tmp_path / "a")
    assert isinstance(found, Reweighted)
    for one in (found, alone):
        assert list(one) == list(corrected)
        assert one.verdict == corrected.verdict
        assert one.log_evidence == corrected.log_evidence
        for name in corrected:
            close(one[name].mean, corrected[name].mean, rtol=1e-12)
            close(one[name].sd, corrected[name].sd, rtol=1e-12)
        close(one["x"].quantile([0.1, 0.9]), corrected["x"].quantile([0.1, 0.9]))
    assert found.error == corrected.error
    assert found.diagnosis == corrected.diagnosis
    close(found.plain["x"].sd, corrected.plain["x"].sd)
    close(found.loo()["y0"], corrected.loo()["y0"])


def test_nothing_is_corrected_where_nothing_may_be_spent():
    with_none = cv.infer(four_instruments(), DATA, effort=0.0)
    fast = cv.infer(four_instruments(), DATA, accuracy="fast")
    assert not isinstance(with_none, Reweighted)
    assert with_none["x"].mean == fast["x"].mean
    assert with_none["x"].sd == fast["x"].sd


def test_predictions_for_new_inputs_are_mixed_over_the_draws():
    m = cv.Model("lines")
    x = m.input("x", cv.real, plates=m.plate("n"))
    a, b = (m.random(name, cv.gaussian(0.0, variance=4.0)) for name in "ab")
    scale = m.random("scale", cv.half_normal(1.0))
    m.random("y", cv.gaussian(a + b * x, sd=scale))
    inputs = np.arange(6.0)
    data = {"x": inputs, "y": 0.3 + 0.5 * inputs + 0.4 * random.normal(size=6)}
    from cavity.engine.evidence.reweighted import by_draws

    plain = cv.infer(m, data, accuracy="fast")
    found = by_draws(plain, plain.trust(), 0)
    integrated = cv.infer(m, data, integrate=["scale"])
    ours, theirs = (one.predict({"x": [2.0, 9.0]})["y"] for one in (found, integrated))
    close(ours.mean, theirs.mean, atol=0.2 * theirs.sd.max())
    close(ours.sd, theirs.sd, rtol=0.15)
