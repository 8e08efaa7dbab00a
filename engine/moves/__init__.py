"""Moves of structure for `cv.sample` and `cv.search`: proposals with their densities, and priors of structures."""

from .allocations import relabels, splits
from .booleans import births, flips, swaps
from .change_points import change_points
from .edges import edges
from .priors import chinese_restaurant, independent, indian_buffet

__all__ = [
    "births",
    "change_points",
    "chinese_restaurant",
    "edges",
    "flips",
    "independent",
    "indian_buffet",
    "relabels",
    "splits",
    "swaps",
]
