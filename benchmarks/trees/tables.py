"""Real tables for the experiments of this folder, and where they are looked for.

`--data` names a folder that holds `animals33`, `crabs`, `mclust_wdbc` and `ddt_data`, or one that holds these in
`data` and `reference/runs`; splits of reference runs are found beside the repository too.
"""

import common

# isort: split
import csv
from pathlib import Path

import numpy as np
import reference_runs

PLACES = ("", "data", "reference/runs")
GROUPS = {
    "land mammals": "Elephant Rhino Horse Cow Camel Giraffe Chimp Gorilla Mouse Squirrel Tiger Lion Cat Dog Wolf Deer",
    "aquatic mammals": "Seal Dolphin Whale",
    "birds": "Robin Eagle Chicken Finch Penguin Ostrich",
    "insects": "Bee Butterfly Ant Cockroach",
    "reptiles": "Iguana Alligator",
    "fish": "Salmon Trout",
}


def path_of(arguments, folder, name):
    """A file of a data set, or an exit that says what is missing."""
    if arguments.data is not None:
        for place in PLACES:
            if (found := Path(arguments.data, place, folder, name)).exists():
                return found
    return reference_runs.path(folder, name) or common.folder(arguments, folder, name)


def animals(arguments):
    """(33,) names, (33, 102) zeros and ones, and the group of each animal."""
    with open(path_of(arguments, "animals33", "animals_33x102.csv"), newline="") as file:
        rows = list(csv.reader(file))[1:]
    group = {animal: name for name, members in GROUPS.items() for animal in members.split()}
    names = tuple(row[0] for row in rows)
    return names, np.array([row[1:] for row in rows], dtype=float), [group[name] for name in names]


def crabs(arguments):
    """(200, 5) logarithms of the five measurements, and species with sex of each crab."""
    with open(path_of(arguments, "crabs", "crabs_200x8.csv"), newline="") as file:
        rows = list(csv.reader(file))[1:]
    return np.log(np.array([row[3:] for row in rows], dtype=float)), [row[0] + row[1] for row in rows]


def wdbc(arguments):
    """(569, 10) logarithms (of 1e-3 plus the number, some being 0) of the mean features, and the diagnosis."""
    with open(path_of(arguments, "mclust_wdbc", "wdbc_569x32.csv"), newline="") as file:
        rows = list(csv.reader(file))[1:]
    return np.log(1e-3 + np.array([row[2:12] for row in rows], dtype=float)), [row[1] for row in rows]


def wdbc_split(arguments):
    """200 rows to train on and 28 to test, as the reference programs had them."""
    names = "wdbc10_train_200x10.csv", "wdbc10_test_28x10.csv"
    return tuple(np.loadtxt(path_of(arguments, "ddt_data", name), delimiter=",") for name in names)
