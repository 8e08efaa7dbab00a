"""Options of the test suite, and its memory."""

import jax
import pytest


def pytest_addoption(parser):
    parser.addoption("--update-snapshots", action="store_true", help="write the committed plan snapshots anew")


@pytest.fixture(scope="module", autouse=True)
def compiled_programs_end_with_their_module():
    """JAX keeps every compiled function: gigabytes over the whole suite."""
    yield
    jax.clear_caches()
