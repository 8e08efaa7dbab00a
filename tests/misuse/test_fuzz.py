"""Everything public, called with arguments that are wrong by chance: an answer or a sentence, nothing else."""

import fuzz_uses
import pytest
from hypothesis import HealthCheck, Phase, given, settings

USES = fuzz_uses.uses()
DRAWS = ("predictive", "plot", "covariance", "sample", "to_frame", "to_xarray", "to_arviz")
QUICK = [
    name
    for name, use in USES.items()
    if not use.slow and not name.startswith("Samples.") and name not in {f"Posterior.{own}" for own in DRAWS}
]


def check(use, examples):
    """The law for so many calls of one use."""

    @settings(
        max_examples=examples,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
    )
    @given(fuzz_uses.calls(use))
    def law(call):
        found = fuzz_uses.fault(use, call)
        assert found is None, f"{call!r}: {found}"

    law()


@pytest.mark.parametrize("name", QUICK)
def test_wrong_calls_end_in_an_answer_or_in_a_sentence(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where what is saved under an odd name goes
    check(USES[name], 3)


@pytest.mark.slow
@pytest.mark.parametrize("name", USES)
def test_many_wrong_calls_end_in_an_answer_or_in_a_sentence(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    check(USES[name], 20 if USES[name].slow else 100)


def test_the_law_is_broken_by_a_raw_error():
    """A function that hands a slip on is found."""
    use = fuzz_uses.Use("raw", lambda x: {}[x], {})
    with pytest.raises(AssertionError, match="raw"):
        check(use, 30)
    assert fuzz_uses.fault(use, lambda: None) is None


def test_all_functions_and_methods_are_called():
    assert len(USES) > 120
    assert {"infer", "sample", "gaussian", "Model.random", "Posterior.predict", "Marginal.quantile"} <= {*USES}
