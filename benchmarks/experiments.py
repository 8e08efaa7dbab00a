"""What the folders of experiments share: the options that each has, and where their data are."""

import argparse
import os
from pathlib import Path


def options(description):
    """The options that every experiment has."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="a small version, in seconds")
    parser.add_argument("--data", type=Path, default=os.environ.get("CAVITY_DATA"), help="folder of the data sets")
    return parser


def folder(arguments, *names):
    """The folder of a data set, or an exit that says what is missing."""
    if arguments.data is None:
        raise SystemExit("This experiment needs data: give their folder with --data or in CAVITY_DATA.")
    path = Path(arguments.data, *names)
    if not path.exists():
        raise SystemExit(f"{path} does not exist; --data or CAVITY_DATA must name the folder that holds {names[0]}.")
    return path
