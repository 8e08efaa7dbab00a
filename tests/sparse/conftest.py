"""Lets the modules of this folder import each other, and the sweep of `benchmarks/nsfa` that is tested here."""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.append(str(HERE.parents[1] / "benchmarks" / "nsfa"))
