"""Options of the test suite, its memory, and what its workers share."""

import os
import shutil
import tempfile

# Workers share what they compile, for one run: set before JAX is imported, and by the first process for all.
CACHE = None
if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
    CACHE = tempfile.mkdtemp(prefix="cavity-tests-")
    os.environ |= {
        "JAX_COMPILATION_CACHE_DIR": CACHE,
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.1",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "0",
    }

import jax  # noqa: E402
import pytest  # noqa: E402


def pytest_addoption(parser):
    parser.addoption("--update-snapshots", action="store_true", help="write the committed plan snapshots anew")


def pytest_unconfigure(config):
    if CACHE is not None:
        shutil.rmtree(CACHE, ignore_errors=True)


@pytest.fixture(scope="module", autouse=True)
def compiled_programs_end_with_their_module():
    """JAX keeps every compiled function: gigabytes over the whole suite."""
    yield
    jax.clear_caches()
