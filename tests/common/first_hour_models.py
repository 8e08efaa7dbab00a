"""The models of benchmarks/first_hour, which are no part of the package."""

import importlib.util
import os
import sys
from pathlib import Path
from unittest import mock

FOLDER = Path(__file__).parents[2] / "benchmarks" / "first_hour"
FILES = [name for name in ("infernet", "bugs", "stan", "first_tries") if (FOLDER / f"{name}.py").exists()]


def load(name):
    spec = importlib.util.spec_from_file_location(f"first_hour_{name}", FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    path = [str(FOLDER), str(FOLDER.parent), *sys.path]
    with mock.patch.object(sys, "path", path), mock.patch.dict(os.environ):  # the harness sets threads and caches
        spec.loader.exec_module(module)
    return module
