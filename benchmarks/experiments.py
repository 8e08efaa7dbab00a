"""What the folders of experiments share: the options that each has, and where their data are."""

import argparse
import json
import os
from pathlib import Path

import harness
import numpy as np


def options(description):
    """The options that every experiment has."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="a small version, in one to five minutes")
    parser.add_argument("--data", type=Path, default=os.environ.get("CAVITY_DATA"), help="folder of the data sets")
    parser.add_argument("--beside", action="store_true", help="the machine does other work too: say so on the page")
    return parser


def circumstances(arguments):
    """What a page says of how it was run: quickly, and whether the machine did other work."""
    found = {"quick": True} if arguments.quick else {}
    return found | ({"times": "taken beside other work"} if arguments.beside else {})


def folder(arguments, *names):
    """The folder of a data set, or an exit that says what is missing."""
    if arguments.data is None:
        raise SystemExit("This experiment needs data: give their folder with --data or in CAVITY_DATA.")
    path = Path(arguments.data, *names)
    if not path.exists():
        raise SystemExit(f"{path} does not exist; --data or CAVITY_DATA must name the folder that holds {names[0]}.")
    return path


def report(name, arguments, **settings):
    """What becomes the page `name` of docs/benchmarks."""
    return harness.Report(name, **settings, **circumstances(arguments))


def table(title, columns, rows, page=None, note=""):
    """Prints a table, and keeps it with its note where there is a page; first columns name rows, numbers have four
    digits."""
    cells = [[one if isinstance(one, str) else f"{one:.4g}" for one in row] for row in [columns, *rows]]
    if page is not None:
        page.table(title, note, cells[0], cells[1:], rows)
        return
    widths = [max(len(row[i]) for row in cells) for i in range(len(columns))]
    print(f"\n{title}")
    for row in cells:
        first = row[0].ljust(widths[0])
        print("  ".join([first, *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]))


def save(where, name, figures=None, **content):
    """Keeps the numbers as json, and pictures by their names as png, in the folder `where`."""
    where = Path(where)
    where.mkdir(parents=True, exist_ok=True)
    path = where / f"{name}.json"
    path.write_text(json.dumps(content | {"machine": harness.machine()}, indent=1, default=_plain) + "\n")
    print(f"\nsaved {path}")
    for which, figure in (figures or {}).items():
        figure.savefig(where / f"{which}.png", dpi=120)
        print(f"saved {where / which}.png")


def _plain(value):
    return str(value) if isinstance(value, Path) else np.asarray(value).tolist()
