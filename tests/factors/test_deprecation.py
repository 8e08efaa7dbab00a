"""What is deprecated works as before and says what to write; nothing outlives the release that was to end it."""

import importlib
import inspect
import warnings
from pathlib import Path

import pytest

import cavity
from cavity.factors.deprecation import DEPRECATIONS, announce, deprecated, deprecated_value, numbered


@pytest.fixture(autouse=True)
def of_this_test():
    """What a test announces is not announced by the library."""
    kept = list(DEPRECATIONS)
    yield
    DEPRECATIONS[:] = kept


def test_a_call_warns_at_the_line_of_its_caller_and_answers():
    @deprecated("cv.old", since="0.7.0", removed="0.9.0", instead="cv.new(first)")
    def old(first: int, second: int = 2) -> int:
        """The sum."""
        return first + second

    with pytest.warns(DeprecationWarning, match="cv.new") as found:
        assert old(1) == 3
    assert str(found[0].message) == "`cv.old` is deprecated since 0.7.0 and goes in 0.9.0: use `cv.new(first)`."
    assert found[0].filename == __file__
    assert old.__doc__ == "The sum."
    assert list(inspect.signature(old).parameters) == ["first", "second"]
    assert "cv.new" in vars(old)["__deprecated__"]


def test_an_argument_warns_at_the_line_of_its_caller():
    gone = announce("cv.infer(sweeps=)", since="0.7.0", removed="1.0.0", instead="max_iterations=")

    def infer(sweeps=None):
        if sweeps is not None:
            deprecated_value(gone)
        return 1

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert infer() == 1
    with pytest.warns(DeprecationWarning, match="max_iterations") as found:
        assert infer(3) == 1
    assert found[0].filename == __file__
    assert gone in DEPRECATIONS


@pytest.mark.parametrize("removed", ["0.7.1", "0.8.0", "0.6.0"])
def test_what_would_go_sooner_than_promised_is_refused(removed):
    before = len(DEPRECATIONS)
    with pytest.raises(ValueError, match="sooner"):
        announce("cv.old", since="0.7.0", removed=removed, instead="cv.new")
    assert len(DEPRECATIONS) == before


@pytest.mark.parametrize("removed", ["0.9.0", "0.10.0", "1.0.0"])
def test_what_goes_as_promised_is_taken(removed):
    assert announce("cv.old", since="0.7.0", removed=removed, instead="cv.new").removed == removed


def overdue(version):
    """The deprecations that a release of this version should not have any more."""
    return [gone.name for gone in DEPRECATIONS if numbered(gone.removed) <= numbered(version)]


def test_what_is_overdue_is_seen():
    announce("cv.old", since="0.7.0", removed="0.9.0", instead="cv.new")
    assert "cv.old" not in overdue("0.8.9")
    assert "cv.old" in overdue("0.9.0")
    assert "cv.old" in overdue("0.10.0")  # 10 is more than 9


def test_nothing_outlives_its_last_release():
    """Modules that deprecate something are imported, so that all of it is in the list."""
    root = Path(cavity.__file__).parent
    for path in [path for room in ("factors", "compiler", "engine", "models") for path in (root / room).rglob("*.py")]:
        if "deprecation import" in path.read_text():
            importlib.import_module(".".join(("cavity", *path.relative_to(root).with_suffix("").parts)))
    assert overdue(cavity.__version__) == []
