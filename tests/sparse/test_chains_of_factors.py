"""Chains of sparse factor models: same key, same draws, alone or together, stopped or not; what is kept and summed."""

import re

import jax
import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import norm

from cavity.factors.errors import DataError, ModelError, UnsupportedError
from cavity.models.sparse.chains import sample_posterior
from cavity.models.sparse.data import Data, held_out_mask
from cavity.models.sparse.predict import log_density
from cavity.models.sparse.settings import Settings, family

ROWS, SAMPLES = 12, 30
KEY = jax.random.key(11)
MASK = held_out_mask((ROWS, SAMPLES), 0.1, jax.random.key(1))


class Stopped(Exception):
    pass


def planted():
    random = np.random.default_rng(0)
    loading = np.kron(np.eye(3), np.ones((4, 1))) * random.choice([-1.5, 1.5], size=(ROWS, 1))
    return loading @ random.normal(size=(3, SAMPLES)) + 0.4 * random.normal(size=(ROWS, SAMPLES))


VALUES = planted()


def sample(draws, **options):
    return sample_posterior(VALUES, KEY, draws, **{"chains": 2, "held_out": MASK, **options})


@pytest.fixture(scope="module")
def long():
    return sample(400, warmup=100)


def test_the_planted_factors_are_found_and_predict_what_was_held_out(long):
    found = long.summary
    assert found.number_of_factors.argmax() == 3
    assert found.number_of_factors.sum() == pytest.approx(1.0)
    np.testing.assert_array_less(np.abs(found.reconstruction - VALUES)[~MASK].std(), 0.45)
    alone = norm.logpdf(VALUES, 0.0, VALUES.std(axis=1)[:, None])[MASK].mean()
    assert found.held_out.score > alone + 0.3
    assert found.held_out.score > found.held_out.mean_log_density.mean()
    assert long.compilations <= 1
    assert ((long["acceptance"] > 0.0) & (long["acceptance"] <= 1.0)).all()


def test_draws_are_what_the_totals_sum(long):
    chains, draws = long.shape
    assert (chains, draws) == (2, 400)
    each, fits, several = [], [], 0
    for chain in range(chains):
        for number in range(draws):
            draw = long.draw(chain, number)
            fit = long.loading(chain, number) @ long.factor(chain, number)
            assert draw.loading.shape == (ROWS, long["number_of_factors"][chain, number])
            sd = (1.0 / np.sqrt(draw.noise))[:, None]
            each.append(norm.logpdf(VALUES, fit, sd)[MASK])
            fits.append(fit)
            if number % 100 == 0:
                several += 1
                total = norm.logpdf(VALUES, fit, sd)[~MASK].sum()
                assert long["log_likelihood"][chain, number] == pytest.approx(total)
    assert several == 8
    np.testing.assert_allclose(long.summary.reconstruction, np.mean(fits, axis=0))
    expected = logsumexp(each, axis=0) - np.log(len(each))
    np.testing.assert_allclose(long.summary.held_out.log_density, expected)


def test_new_samples_are_likelier_under_the_draws_than_shuffled_ones(long):
    draws = list(long.draws(every=100))
    assert len(draws) == 8
    shuffled = np.random.default_rng(0).permuted(VALUES, axis=1)
    assert log_density(draws, VALUES).mean() > log_density(draws, shuffled).mean() + 3.0


def test_chains_alone_make_the_draws_of_chains_together(long):
    few, alone = sample(30), sample(30, together=False)
    assert few.compilations == 0  # of the same shapes as before
    assert alone.compilations == 1
    for name in few.chains.draws:
        np.testing.assert_allclose(few[name], alone[name], atol=1e-8)
    one = sample(30, chains=1)
    for name in ("number_of_factors", "mass", "noise", "log_likelihood"):
        np.testing.assert_array_equal(one[name], alone[name][:1])
    later = sample(10, warmup=10, thin=2)
    for name in ("number_of_factors", "mass", "noise", "log_likelihood"):
        np.testing.assert_array_equal(later[name], few[name][:, 11::2])
    other = sample_posterior(VALUES, jax.random.key(12), 30, chains=2, held_out=MASK)
    assert not np.isclose(other["mass"], few["mass"]).any()


def test_a_stopped_run_goes_on_to_exactly_the_same_draws_and_totals(tmp_path):
    file = tmp_path / "chains.zip"
    whole = sample(40, warmup=5)

    def stop(done, total):
        if done == 23:
            raise Stopped

    with pytest.raises(Stopped):
        sample(40, warmup=5, checkpoint=file, every=0.0, progress=stop)
    rounds = []
    resumed = sample(40, warmup=5, checkpoint=file, progress=lambda done, total: rounds.append(done))
    assert rounds[0] in (23, 24)
    for name in whole.chains.draws:
        np.testing.assert_array_equal(resumed[name], whole[name])
    np.testing.assert_array_equal(resumed.summary.reconstruction, whole.summary.reconstruction)
    np.testing.assert_array_equal(resumed.summary.held_out.log_density, whole.summary.held_out.log_density)
    longer = sample(60, warmup=5, checkpoint=file)
    np.testing.assert_array_equal(longer["mass"][:, :40], whole["mass"])
    with pytest.raises(DataError, match="data or model"):
        sample_posterior(VALUES + 1e-9, KEY, 60, chains=2, warmup=5, held_out=MASK, checkpoint=file)
    for other in (Settings(spike=0.1), Settings(known=np.full((ROWS, 1), 0.5))):
        with pytest.raises(DataError, match="data or model"):
            sample(60, settings=other, warmup=5, checkpoint=file)
    with pytest.raises(DataError, match="cannot be taken back"):
        sample(20, warmup=5, checkpoint=file)


def test_summaries_alone_say_the_same(long):
    found = sample(30, keep="summaries")
    assert not {"loading", "factor", "noise", "precision"} & set(found.chains.draws)
    whole = sample(30)
    np.testing.assert_array_equal(found.summary.reconstruction, whole.summary.reconstruction)
    np.testing.assert_array_equal(found.last(1).loading, whole.loading(1, 29))
    with pytest.raises(UnsupportedError, match="keep='all'"):
        found.draw(0, 0)


def test_the_bar_shows_the_number_of_factors(capsys):
    sample(3, progress=True)
    assert re.search(r"K \d", capsys.readouterr().err)


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning")
def test_arviz_reads_what_was_sampled(long):
    arviz = pytest.importorskip("arviz")
    posterior = long.to_arviz()["posterior"]
    assert set(posterior) == {"mass", "number_of_factors", "log_likelihood_of_data"}
    assert float(arviz.rhat(posterior)["log_likelihood_of_data"]) < 1.05


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"keep": "some"}, "keep="),
        ({"settings": {"sparsity": "finite"}}, "settings="),
        ({"chains": 0}, "chains="),
        ({"thin": 1.5}, "thin="),
        ({"settings": Settings(known=np.full((3, 1), 0.5))}, "12 rows"),
    ],
)
def test_bad_arguments_are_named(options, words):
    with pytest.raises(ModelError, match=words):
        sample(3, **options)


def test_a_mask_may_come_with_the_data_or_beside_them():
    for first, second in (((Data(VALUES, MASK), None)), (Data(VALUES), MASK)):
        found = sample_posterior(first, KEY, 2, chains=2, held_out=second)
        np.testing.assert_array_equal(found.sampler.data.held_out, MASK)


FAMILY = [("sfa", {}), ("nsfa", {"known": np.repeat([[0.9], [0.1]], 6, axis=0)})]
OTHERS = [
    ("nsfa", {"start": "prior"}), ("nsfa", {"slab": "horseshoe"}), ("nsfa", {"slab": "laplace"}),
    ("nsfa_shared_noise", {}), ("nsfa", {"learn": {"mass", "concentration", "precision_rate"}, "noise": "shared"}),
    ("nsfa", {"precision": 2.0, "noise": 4.0, "start": "empty"}), ("nsfa", {"precision": "shared", "births": 3}),
    ("fa", {}), ("afa", {}), ("ppca", {}), ("fokoue", {}), ("bfrm", {}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "changes"), FAMILY + [pytest.param(*each, marks=pytest.mark.slow) for each in OTHERS])
def test_every_model_of_the_family_predicts(name, changes):
    factors = None if name.startswith("nsfa") else 4
    found = sample(150, settings=family(name, factors, **changes), warmup=100, chains=1)
    alone = norm.logpdf(VALUES, 0.0, VALUES.std(axis=1)[:, None])[MASK].mean()
    assert found.summary.held_out.score > alone + 0.2
    if "known" in changes:
        assert found.summary.known_activity.shape == (ROWS, 1)
    if factors is not None:
        assert (found["number_of_factors"] == 4).all()
