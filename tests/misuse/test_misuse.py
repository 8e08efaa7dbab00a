"""Wrong uses end in a sentence of ours or in a right answer: never in a raw error, never in silent nonsense."""

import os
import stat

import of_answers
import of_data
import of_files
import of_terms
import of_verbs
import pytest
from misuse_judge import judged

import cavity as cv
from cavity.factors import REGISTRY

LISTS = {
    "constants": (of_terms.constants, 2000),
    "inputs of terms": (of_terms.inputs, 1500),
    "inputs": (of_data.inputs, 700),
    "observations": (of_data.observations, 800),
    "models": (of_verbs.of_models, 300),
    "inference": (of_verbs.of_inference, 200),
    "posteriors": (of_verbs.of_posteriors, 140),
}


@pytest.mark.parametrize("name", LISTS)
def test_wrong_uses_are_refused_by_name_or_answered_rightly(name):
    cases, least = LISTS[name]
    counts, faults = judged(cases())
    assert not faults, "\n".join(faults)
    assert counts["refused"] + counts["right"] >= least
    assert counts["refused"] > counts["right"]


@pytest.mark.parametrize("kinds", [("text", "set"), pytest.param(tuple(of_answers.ODD), marks=pytest.mark.slow)])
def test_values_of_another_kind_are_refused_by_name(kinds):
    pytest.importorskip("matplotlib")
    pytest.importorskip("pandas")
    counts, faults = judged(of_answers.of_answers(kinds, slow=len(kinds) > 3))
    assert not faults, "\n".join(faults)
    assert counts["refused"] > 50 * len(kinds)


@pytest.mark.parametrize(
    ("with_model", "every"),
    [
        (False, 12),
        *(pytest.param(model, every, marks=pytest.mark.slow) for model, every in ((True, 60), (False, 1), (True, 1))),
    ],
)
@pytest.mark.parametrize("accuracy", ["default", "fast"])
def test_damaged_posteriors_are_refused_or_read_as_they_were(tmp_path, with_model, every, accuracy):
    counts, faults = judged(of_files.of_posteriors(str(tmp_path), with_model, every, accuracy))
    assert not faults, "\n".join(faults)
    assert counts["refused"] > counts["right"]
    assert counts["refused"] + counts["right"] >= 1000 // every


def test_damaged_checkpoints_are_refused_or_gone_on_from_as_they_were(tmp_path):
    counts, faults = judged(of_files.of_chains(str(tmp_path)))
    assert not faults, "\n".join(faults)
    assert counts["refused"] >= 300


def test_beliefs_of_negative_precision_are_refused(tmp_path):
    """In a file without digests, which nothing else tells."""
    parts = of_files.parts_of(of_files.saved(str(tmp_path)))
    parts.pop("sums.json")
    found = 0
    for name in [name for name in parts if name.endswith(".npy")]:
        array = of_files.array_in(parts[name])
        if (
            array.dtype == float and array.shape == () and array < 0
        ):  # minus half the precision of a, minus the rate of t
            try:
                of_files._load(str(tmp_path), of_files.written({**parts, name: of_files.as_part(-array)}), False)
            except cv.DataError as error:
                found += "cannot be normalised" in str(error)
    assert found >= 2


def test_a_file_has_the_permissions_of_the_umask_and_keeps_those_it_has(tmp_path):
    path, plain = tmp_path / "saved", tmp_path / "plain"
    of_files.saved(str(tmp_path))
    plain.write_bytes(b"")
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)
    os.chmod(path, 0o640)
    cv.load(path)
    of_files.saved.cache_clear()
    of_files.saved(str(tmp_path))
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert sorted(os.listdir(tmp_path)) == ["plain", "saved"]


def test_every_factor_is_in_the_table():
    tried = {term.split()[0] for term in of_terms.TERMS}
    others = {name for name in REGISTRY if not any(name.startswith(term) for term in tried)}
    assert others == {"isotropic_gaussian"}  # a vector_gaussian whose precision is a number
