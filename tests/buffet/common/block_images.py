"""Images of 6 x 6 with four shapes that overlap nowhere, each there or not, and noise."""

import numpy as np

SHAPES = (
    "010000/111000/010000/000000/000000/000000",
    "000111/000101/000111/000000/000000/000000",
    "000000/000000/000000/100000/110000/111000",
    "000000/000000/000000/000111/000010/000010",
)
FEATURES = np.array([[float(letter) for letter in shape.replace("/", "")] for shape in SHAPES])


def block_images(rows, noise=0.5, seed=0):
    """Images (rows, 36) and which shapes they show (rows, 4)."""
    random = np.random.default_rng(seed)
    shown = random.random((rows, 4)) < 0.5
    return shown @ FEATURES + noise * random.normal(size=(rows, 36)), shown


def worn_words(rows, seed=0):
    """Booleans (rows, 36) by a leaky noisy-or of the shapes, and which these are."""
    random = np.random.default_rng(seed)
    shown = random.random((rows, 4)) < 0.5
    return (random.random((rows, 36)) < 1.0 - 0.95 * 0.2 ** (shown @ FEATURES)).astype(float), shown
