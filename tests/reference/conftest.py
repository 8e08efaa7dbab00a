"""Lets the modules of this folder import each other: the suite of data, the programs and what runs them."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
