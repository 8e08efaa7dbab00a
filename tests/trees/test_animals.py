"""33 animals and 102 of their properties: the groups that published trees show, and times that do not collapse."""

import csv
import pathlib

import jax
import numpy as np
import pytest

from cavity.models.trees.likelihoods.table import Data
from cavity.models.trees.search import search_trees

SHARED = pathlib.Path(__file__).resolve().parents[2].parent / "shared"
FILE = SHARED / "data" / "animals33" / "animals_33x102.csv"
GROUPS = {
    "land mammals": "Elephant Rhino Horse Cow Camel Giraffe Chimp Gorilla Mouse Squirrel Tiger Lion Cat Dog Wolf Deer",
    "aquatic mammals": "Seal Dolphin Whale",
    "birds": "Robin Eagle Chicken Finch Ostrich",  # the penguin is with what swims, or with the birds
    "insects": "Bee Butterfly Ant Cockroach",
    "reptiles": "Iguana Alligator",
}

pytestmark = pytest.mark.skipif(not FILE.exists(), reason="the animals' table is not part of the package")


@pytest.fixture(scope="module")
def animals():
    with open(FILE, newline="") as file:
        rows = list(csv.reader(file))[1:]
    return Data(np.array([row[1:] for row in rows], dtype=float), True), tuple(row[0] for row in rows)


@pytest.fixture(scope="module")
def best(animals):
    """The better of two searches with the diffusion variance learned."""
    data, names = animals
    runs = [
        search_trees(data, key=jax.random.key(i), steps=400, keep=2, learn=("variance", "rate"), names=names).best
        for i in range(2)
    ]
    return max(runs, key=lambda found: found.log_mass)


@pytest.mark.parametrize("group", GROUPS)
def test_groups_are_clades_but_for_the_penguin(best, group):
    names = best.tree.names
    members = frozenset(names.index(animal) for animal in GROUPS[group].split())
    assert {members, members | {names.index("Penguin")}} & set(best.tree.clades)


def test_times_do_not_collapse(best):
    times = best.tree.time[best.tree.n_leaves :]
    assert np.mean(times > 0.99) < 0.1
    assert times.min() < 0.5


def test_a_learned_variance_has_more_evidence(animals, best):
    fixed = search_trees(animals[0], key=jax.random.key(0), steps=200, keep=1, learn="rate").best
    assert fixed.hyper.variance[0] == 1.0
    assert 3.0 < best.hyper.variance[0] < 40.0
    assert best.log_evidence > fixed.log_evidence + 145.0
