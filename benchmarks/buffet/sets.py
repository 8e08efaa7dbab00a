"""The data of the experiments on binary features: real ones, and stand-ins for those that are not to be had.

A stand-in has the shape of the data that the thesis used and what is said of them; results on it say how methods
compare and what they cost, and not what the thesis found.
"""

import csv
from typing import NamedTuple

import common
import numpy as np


class Table(NamedTuple):
    """Data and the word for their likelihood."""

    values: np.ndarray
    kind: str


def comma(arguments, *names, skip=0, columns=None):
    """Numbers of a file of commas."""
    path = common.experiments.folder(arguments, *names)
    return np.loadtxt(path, delimiter=",", skiprows=skip, usecols=columns)


def yale(arguments):
    """(165, 1024) Yale faces of 32 x 32 from 0 to 1; the thesis has 722 of them, of another release."""
    return comma(arguments, "yale_faces", "yale_165x1025_label_first.csv")[:, 1:] / 255.0


def digits(arguments):
    """(1797, 64) handwritten digits from 0 to 1."""
    return comma(arguments, "digits", "digits_1797x65.csv", skip=1, columns=range(64)) / 16.0


def block_images(arguments):
    """(1000, 36) images with four shapes, as PyIBP has them."""
    return comma(arguments, "ibp_block_images", "X_1000x36.csv")


def newsgroups(arguments):
    """(500, 100) booleans: which words a message has."""
    return comma(arguments, "newsgroups_w100", "sample_500x101_seed0.csv", skip=1, columns=range(100))


def animals(arguments):
    """(33, 102) booleans: what is said of animals."""
    return comma(arguments, "animals33", "animals_33x102.csv", skip=1, columns=range(1, 103))


def zoo(arguments):
    """(101, 15) booleans of animals; the number of legs and the class are left out."""
    with open(common.experiments.folder(arguments, "uci_zoo", "zoo_101x17.csv"), newline="") as file:
        rows = list(csv.reader(file))[1:]
    return np.array([[word == "TRUE" for word in row if word in ("TRUE", "FALSE")] for row in rows], float)


def real(arguments, most=10_000):
    """By name, at most so many rows of each."""
    every = {
        "block images": Table(block_images(arguments), "gaussian"),
        "Yale faces": Table(yale(arguments), "gaussian"),
        "digits": Table(digits(arguments), "gaussian"),
        "newsgroups": Table(newsgroups(arguments), "bernoulli"),
        "animals": Table(animals(arguments), "bernoulli"),
        "zoo": Table(zoo(arguments), "bernoulli"),
    }
    return {name: each._replace(values=each.values[:most]) for name, each in every.items()}


def images(rows, seed, combinations=None):
    """(rows, 36) images of four blocks and noise of 0.5, and (rows, 4) which blocks each has: independent halves, or
    some of these numbers, whose bits are blocks."""
    random = np.random.default_rng(seed)
    if combinations is None:
        has = random.random((rows, 4)) < 0.5
    else:
        has = (random.choice(combinations, rows)[:, None] >> np.arange(4)) & 1 > 0
    return has @ common.blocks() + 0.5 * random.normal(size=(rows, 36)), has


def parts(rows, groups, shape, choices, noise, seed):
    """Pictures that are put together: of each group of parts every picture has one of so many choices, or none.

    For emoticons (face, eyes, mouth, something on it) and for faces with lights from some sides and scarf or glasses.
    """
    random = np.random.default_rng(seed)
    height, width = shape
    y, x = np.mgrid[:height, :width]
    found = np.zeros((rows, height * width))
    for group in range(groups):
        centre = np.array([height, width]) * (0.15 + 0.7 * random.random(2))
        drawn = []
        for _ in range(choices):
            at = centre + 0.1 * height * random.normal(size=2)
            size = (0.08 + 0.2 * random.random(2)) * height
            distance = ((y - at[0]) / size[0]) ** 2 + ((x - at[1]) / size[1]) ** 2
            drawn.append(np.where(distance < 1.0, 1.0, 0.0) if group % 2 else np.exp(-distance))
        which = random.integers(-1, choices, rows)
        values = np.array([*(each.ravel() for each in drawn), np.zeros(height * width)])
        found += values[which]
    return found + noise * random.normal(size=found.shape)


def emoticons(rows=702, seed=0):
    """(rows, 1032): 43 x 24 pixels of four groups of parts."""
    return parts(rows, 4, (43, 24), 4, 0.05, seed)


def faces_with_things(rows=2600, seed=0):
    """(rows, 1598): 47 x 34 pixels of six groups."""
    return parts(rows, 6, (47, 34), 4, 0.05, seed)


def brain_waves(rows=4400, seed=0):
    """(rows, 32): channels that mix slow sources, four of them with a hundred times the variance in four rows: what
    the thesis says of its EEG, where repeated rank-one steps lose their digits."""
    random = np.random.default_rng(seed)
    sources = np.zeros((rows, 8))
    for row in range(1, rows):
        sources[row] = 0.95 * sources[row - 1] + random.normal(size=8)
    found = sources @ random.normal(size=(8, 32)) + random.normal(size=(rows, 32))
    wild = np.ix_(random.choice(rows, 4, False), random.choice(32, 4, False))
    found[wild] *= 10.0
    return found


def piano(rows=10_000, seed=0):
    """(rows, 161) magnitudes: notes of eight overtones each, up to four at a time, which fade."""
    random = np.random.default_rng(seed)
    bins, notes = np.arange(161), 4.0 * 2.0 ** (np.arange(24) / 12.0)
    spectra = [sum(0.7**m * np.exp(-0.5 * ((bins - m * note) / 0.7) ** 2) for m in range(1, 9)) for note in notes]
    loud = (random.random((rows, 24)) < 2.5 / 24) * random.gamma(4.0, 0.25, (rows, 24))
    return 0.05 * (loud @ np.array(spectra) + 0.02 * np.abs(random.normal(size=(rows, 161))))


def speech(rows=245, seed=0):
    """(rows, 10) microphones that hear five speakers, each silent half of the time, with Laplace loudness."""
    random = np.random.default_rng(seed)
    said = (random.random((rows, 5)) < 0.5) * random.laplace(size=(rows, 5))
    return said @ random.normal(size=(5, 10)) + 0.2 * random.normal(size=(rows, 10))


def from_sticks(rows, columns, features, seed, mass=4.0, noise=0.5):
    """(rows, columns) of normal values of features whose weights are the first so many sticks."""
    random = np.random.default_rng(seed)
    weights = np.cumprod(random.beta(mass, 1.0, features))
    has = random.random((rows, features)) < weights
    return has @ random.normal(size=(features, columns)) + noise * random.normal(size=(rows, columns))


def menus(rows, columns, categories, features, seed, noise=0.3):
    """(rows, columns): rows of so many categories, which share features with values that are not negative."""
    random = np.random.default_rng(seed)
    menu = random.random((categories, features)) < 0.4
    shown = menu @ random.exponential(1.0, (features, columns))
    which = random.choice(categories, rows, p=random.dirichlet(np.full(categories, 2.0)))
    return shown[which] + noise * random.normal(size=(rows, columns))


def ratings(rows=500, columns=30, seed=0):
    """(rows, columns) from -10 to 10 of low rank, like those of jokes."""
    random = np.random.default_rng(seed)
    taste = random.normal(size=(rows, 4)) @ random.normal(size=(4, columns))
    return np.clip(2.0 * taste + 3.0 * random.normal(size=(rows, columns)), -10.0, 10.0)


def genes(arguments):
    """(251, 226) expression in breast cancer, individuals about the means of genes: real."""
    values = comma(arguments, "nsfa_breast_cancer", "Y_226x251.csv").T
    return values - values.mean(axis=0)


ROOMS = (
    "hallway door trash_can chair desk office computer whiteboard",
    "door trash_can robot bike printer couch",
    "trash_can monitor keyboard book robot pen plant",
    "hallway door trash_can",
)  # the thesis' categories of tags; the first and the last stand alone, others come on top of the first


def robot_tags(rows=750, columns=23, seed=0):
    """(rows, columns) booleans: tags of what a robot saw, by the thesis' categories, a tenth missed, 2% by mistake."""
    random = np.random.default_rng(seed)
    words = sorted({word for room in ROOMS for word in room.split()})
    menu = np.zeros((len(ROOMS), columns), bool)
    for number, room in enumerate(ROOMS):
        menu[number, [words.index(word) for word in room.split()]] = True
    seen = np.array([menu[0], menu[3], menu[0] | menu[1], menu[0] | menu[2]])[random.integers(4, size=rows)]
    return np.where(seen, random.random(seen.shape) < 0.9, random.random(seen.shape) < 0.02).astype(float)


def tags(rows, columns=1000, features=20, seed=0, share=0.01):
    """(rows, columns) booleans by a leaky noisy-or; (rows, features) which features rows have, and (features, columns)
    zeros and ones, what these call for."""
    random = np.random.default_rng(seed)
    has = random.random((rows, features)) < random.beta(1.0, 4.0, features)
    calls = random.random((features, columns)) < share
    reasons = has.astype(np.float32) @ calls.astype(np.float32)
    return random.random((rows, columns), dtype=np.float32) < 1.0 - 0.95 * 0.2**reasons, has, calls.astype(float)
