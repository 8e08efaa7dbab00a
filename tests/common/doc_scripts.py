"""The scripts that make pages, which are no part of the package."""

import importlib.util
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def load(name):
    """The module docs/<name>.py."""
    spec = importlib.util.spec_from_file_location(f"docs_{name}", DOCS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
