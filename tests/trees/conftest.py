"""Lets the modules of this folder import each other, and those of `benchmarks/trees` that are tested here."""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "common"))
sys.path.append(str(HERE.parents[1] / "benchmarks" / "trees"))
