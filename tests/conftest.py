"""Options of the test suite, its memory, and what its workers share."""

import os
import pathlib
import shutil
import sys
import tempfile

# For `small_models` and others. Not this folder itself: `tests/sparse` would pass for the library of that name.
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "common"))

# Workers share what they compile, for one run: set before JAX is imported, and by the first process for all.
CACHE = None
if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
    CACHE = tempfile.mkdtemp(prefix="cavity-tests-")
    os.environ |= {
        "JAX_COMPILATION_CACHE_DIR": CACHE,
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.1",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "0",
    }

SLOW = frozenset((pathlib.Path(__file__).parent / "slow.txt").read_text(encoding="utf-8").splitlines())

import held_annotations  # noqa: E402
import jax  # noqa: E402
import pytest  # noqa: E402

held_annotations.install()
from cavity.engine.support import compiled  # noqa: E402


def pytest_addoption(parser):
    parser.addoption("--update-snapshots", action="store_true", help="write the committed plan snapshots anew")

    parser.addoption("--factor", metavar="NAME", help="only the laws of one factor, and none where it is not compared")


@pytest.hookimpl(tryfirst=True)
def pytest_itemcollected(item):
    """The mark of what tests/slow.txt names, so that the default suite stays short."""
    if item.nodeid in SLOW:
        item.add_marker(pytest.mark.slow)


def pytest_collection_modifyitems(config, items):
    """With --factor NAME only the cases of that factor remain: `pytest tests/contracts --factor weibull`."""
    name = config.getoption("--factor")
    if name is None:
        return
    from cavity.factors import REGISTRY

    if name not in REGISTRY:
        raise pytest.UsageError(f"--factor: there is no {name!r}. There are: {', '.join(sorted(REGISTRY))}.")
    chosen = [item for item in items if _is_of(item, name)]
    config.hook.pytest_deselected(items=[item for item in items if item not in set(chosen)])
    items[:] = chosen


def _is_of(item, name):
    """Whether a test is parametrised by this factor; families and links are not factors, though some share a name."""
    given = getattr(item, "callspec", None)
    if given is None:
        return False
    values = [value[0] if isinstance(value, tuple) and value else value for value in given.params.values()]
    return name in [value for value in values if isinstance(value, str)]


def pytest_unconfigure(config):
    if CACHE is not None:
        shutil.rmtree(CACHE, ignore_errors=True)


@pytest.fixture(scope="module", autouse=True)
def compiled_programs_end_with_their_module():
    """JAX keeps every compiled function, gigabytes over the whole suite; and each module counts its own."""
    compiled.KEPT.clear()
    yield
    compiled.KEPT.clear()
    jax.clear_caches()
