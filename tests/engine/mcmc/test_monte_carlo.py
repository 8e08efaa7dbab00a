"""The driver of Markov chains: same key, same draws, also over a stop; several chains; files; ArviZ."""

import zipfile

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cavity.engine.mcmc.kernel import Kernel, Together
from cavity.engine.mcmc.run import run
from cavity.factors.errors import DataError, ModelError

HOLD = 0.8


@jax.jit
def _step(key, state):
    return {"x": HOLD * state["x"] + jnp.sqrt(1.0 - HOLD**2) * jax.random.normal(key, (2,)), "n": state["n"] + 1}


AUTOREGRESSION = Kernel(
    init=lambda key: {"x": 3.0 * jax.random.normal(key, (2,)), "n": jnp.int32(0)},
    step=_step,
    record=lambda state: {"x": state["x"], "n": state["n"]},
)
KEY = jax.random.key(3)


class Stopped(Exception):
    pass


def stop_at(round_):
    def progress(done, total):
        if done == round_:
            raise Stopped

    return progress


def test_warmup_and_thinning_select_from_the_same_chain():
    every = run(AUTOREGRESSION, KEY, 30, chains=2)
    some = run(AUTOREGRESSION, KEY, 8, chains=2, warmup=6, thin=3)
    assert every["x"].shape == (2, 30, 2)
    assert every.seconds.shape == (2, 30)
    assert (np.diff(every.seconds) >= 0.0).all()
    np.testing.assert_array_equal(some["x"], every["x"][:, 8:30:3])
    np.testing.assert_array_equal(some["n"], [[9, 12, 15, 18, 21, 24, 27, 30]] * 2)


def test_chains_differ_and_keys_decide():
    one = run(AUTOREGRESSION, KEY, 5, chains=3)
    assert len(np.unique(one["x"])) == 30
    np.testing.assert_array_equal(one["x"], run(AUTOREGRESSION, KEY, 5, chains=3)["x"])
    np.testing.assert_array_equal(one["x"][:2], run(AUTOREGRESSION, KEY, 5, chains=2)["x"])
    assert not np.array_equal(one["x"], run(AUTOREGRESSION, jax.random.key(4), 5, chains=3)["x"])


def test_a_stopped_run_goes_on_to_the_same_draws(tmp_path):
    file = tmp_path / "chains.zip"
    whole = run(AUTOREGRESSION, KEY, 300, chains=2, warmup=4, thin=2)
    with pytest.raises(Stopped):
        run(AUTOREGRESSION, KEY, 300, chains=2, warmup=4, thin=2, checkpoint=file, every=0.0, progress=stop_at(301))
    rounds = []
    resumed = run(
        AUTOREGRESSION, KEY, 300, chains=2, warmup=4, thin=2, checkpoint=file,
        progress=lambda done, total: rounds.append(done),
    )  # fmt: skip
    assert rounds[0] == 302
    np.testing.assert_array_equal(resumed["x"], whole["x"])
    assert (np.diff(resumed.seconds) >= 0.0).all()
    for ours, theirs in zip(resumed.states, whole.states, strict=True):
        jax.tree.map(np.testing.assert_array_equal, ours, theirs)


@pytest.mark.parametrize("together", [False, True])
def test_an_interrupted_run_keeps_all_whole_transitions(tmp_path, together):
    """Ctrl-C in the middle of a transition, long before the next checkpoint is due."""
    file, calls = tmp_path / "chains.zip", []

    def step(key, state):
        calls.append(0)
        if len(calls) == 2 * 7 + 2:  # the second of two chains, after seven transitions
            raise KeyboardInterrupt
        return _step(key, state)

    def step_all(keys, batch):
        return [step(key, state) for key, state in zip(keys, batch, strict=True)]

    at_once = Together(list, step_all, list) if together else None
    with pytest.raises(KeyboardInterrupt):
        run(AUTOREGRESSION._replace(step=step, together=at_once), KEY, 20, chains=2, checkpoint=file)
    rounds = []
    resumed = run(AUTOREGRESSION, KEY, 20, chains=2, checkpoint=file, progress=lambda done, total: rounds.append(done))
    assert rounds[0] == 8
    np.testing.assert_array_equal(resumed["x"], run(AUTOREGRESSION, KEY, 20, chains=2)["x"])


def test_time_that_is_over_leaves_the_first_draws(tmp_path):
    file, whole = tmp_path / "chains.zip", run(AUTOREGRESSION, KEY, 20, chains=2)
    first = run(AUTOREGRESSION, KEY, 20, chains=2, max_seconds=1e-9, checkpoint=file)
    assert first["x"].shape == (2, 1, 2)
    np.testing.assert_array_equal(first["x"], whole["x"][:, :1])
    assert first.seconds.shape == (2, 1)
    np.testing.assert_array_equal(run(AUTOREGRESSION, KEY, 20, chains=2, checkpoint=file)["x"], whole["x"])
    with pytest.raises(ModelError, match="positive number of seconds"):
        run(AUTOREGRESSION, KEY, 20, max_seconds=0.0)


def test_a_finished_run_can_be_made_longer(tmp_path):
    file = tmp_path / "chains.zip"
    run(AUTOREGRESSION, KEY, 10, chains=2, checkpoint=file)
    longer = run(AUTOREGRESSION, KEY, 25, chains=2, checkpoint=file)
    np.testing.assert_array_equal(longer["x"], run(AUTOREGRESSION, KEY, 25, chains=2)["x"])
    np.testing.assert_array_equal(run(AUTOREGRESSION, KEY, 5, chains=2, checkpoint=file)["x"], longer["x"][:, :5])


def test_checkpoints_of_other_runs_and_other_files_are_refused(tmp_path):
    file = tmp_path / "chains.zip"
    run(AUTOREGRESSION, KEY, 3, chains=2, checkpoint=file)
    with pytest.raises(DataError, match="another key"):
        run(AUTOREGRESSION, jax.random.key(9), 3, chains=2, checkpoint=file)
    with pytest.raises(DataError, match="another chains and thin"):
        run(AUTOREGRESSION, KEY, 3, chains=1, thin=2, checkpoint=file)
    with pytest.raises(DataError, match="another form"):
        run(AUTOREGRESSION._replace(init=lambda key: {"x": jnp.zeros(3), "n": 0}), KEY, 3, chains=2, checkpoint=file)
    with pytest.raises(DataError, match="folder"):
        run(AUTOREGRESSION, KEY, 3, chains=2, checkpoint=tmp_path / "nowhere" / "chains.zip")
    file.write_bytes(file.read_bytes()[:-60])
    with pytest.raises(DataError, match="damaged"):
        run(AUTOREGRESSION, KEY, 3, chains=2, checkpoint=file)
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("meta.json", "{}")
    with pytest.raises(DataError, match="no file of chains"):
        run(AUTOREGRESSION, KEY, 3, chains=2, checkpoint=file)


def test_checkpoints_hold_no_pickles(tmp_path):
    file = tmp_path / "chains.zip"
    run(AUTOREGRESSION, KEY, 3, chains=2, checkpoint=file)
    with np.load(file, allow_pickle=False) as content:
        assert all(content[name].dtype != object for name in content.files if not name.endswith(".json"))


def _add(key, state):
    """A list that gets longer now and then; every number of it comes from the keys."""
    drawn = np.asarray(jax.random.key_data(key), dtype=np.uint32)
    return np.append(state, float(drawn[1] % 7)) if drawn[0] % 3 == 0 else state


def _sum(totals, recorded):
    before = 0.0 if totals is None else totals["sum"]
    return {"sum": before + recorded["list"].sum()}, recorded


LISTS = Kernel(
    init=lambda key: np.zeros(1),
    step=_add,
    record=lambda state: {"list": state, "length": np.array(len(state))},
    reduce=_sum,
    together=Together(list, lambda keys, batch: [_add(k, s) for k, s in zip(keys, batch, strict=True)], list),
    grows=True,
    note=lambda states: f"length {max(map(len, states))}",
    identity="lists",
)


@pytest.mark.parametrize("alone", [True, False])
def test_states_that_grow_are_kept_with_zeros_at_their_ends(tmp_path, alone):
    kernel = LISTS._replace(together=None) if alone else LISTS
    file = tmp_path / "chains.zip"
    whole = run(kernel, KEY, 40, chains=3, warmup=2)
    assert whole["list"].shape == (3, 40, whole["length"].max())
    assert whole["length"].min() < whole["length"].max()
    for chain in range(3):
        last, length = whole["list"][chain, -1], whole["length"][chain, -1]
        np.testing.assert_array_equal(last[:length], whole.states[chain])
        np.testing.assert_array_equal(last[length:], 0.0)
        assert whole.totals[chain]["sum"] == whole["list"][chain].sum()
    with pytest.raises(Stopped):
        run(kernel, KEY, 40, chains=3, warmup=2, checkpoint=file, every=0.0, progress=stop_at(17))
    resumed = run(kernel, KEY, 40, chains=3, warmup=2, checkpoint=file)
    np.testing.assert_array_equal(resumed["list"], whole["list"])
    assert [t["sum"] for t in resumed.totals] == [t["sum"] for t in whole.totals]
    with pytest.raises(DataError, match="cannot be taken back"):
        run(kernel, KEY, 20, chains=3, warmup=2, checkpoint=file)
    with pytest.raises(DataError, match="another data or model"):
        run(kernel._replace(identity="other lists"), KEY, 40, chains=3, warmup=2, checkpoint=file)


def test_chains_that_step_together_make_the_draws_of_chains_alone():
    together = run(LISTS, KEY, 20, chains=3)
    np.testing.assert_array_equal(together["list"], run(LISTS._replace(together=None), KEY, 20, chains=3)["list"])
    np.testing.assert_array_equal(together.seconds[0], together.seconds[2])


@pytest.mark.parametrize(
    "bad", [{"draws": 0}, {"chains": 0}, {"warmup": -1}, {"thin": True}, {"draws": 2.5}, {"every": "a"}]
)
def test_counts_out_of_range(bad):
    with pytest.raises(ModelError, match=next(iter(bad))):
        run(AUTOREGRESSION, KEY, **{"draws": 3, **bad})


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning")
def test_arviz_reads_the_chains():
    arviz = pytest.importorskip("arviz")
    chains = run(AUTOREGRESSION, KEY, 400, chains=4, warmup=20)
    found = chains.to_arviz()
    assert found["posterior"]["x"].shape == (4, 400, 2)
    assert float(arviz.rhat(found)["x"].max()) < 1.05
    # An autoregression of order one: effective size n (1 - hold) / (1 + hold).
    expected = 1600 * (1.0 - HOLD) / (1.0 + HOLD)
    assert 0.5 * expected < float(arviz.ess(found)["x"].mean()) < 1.7 * expected


def test_progress_is_shown_where_asked_for(capsys):
    run(AUTOREGRESSION, KEY, 3, chains=1, progress=True)
    assert "3" in capsys.readouterr().err
    run(LISTS, KEY, 3, chains=1, progress=True)
    assert "length" in capsys.readouterr().err
    run(AUTOREGRESSION, KEY, 3, chains=1, progress=False)
    assert capsys.readouterr().err == ""
