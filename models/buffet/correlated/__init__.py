"""Features that occur together: a Dirichlet process of categories, or several categories of each row, with menus."""

from .dp_ibp import DpIbp, Partition
from .framework import Framework
from .growth import Growth, growth
from .ibp_ibp import IbpIbp
from .noisy_or_ibp import NoisyOrIbp
from .sampler import Correlated, as_features, of_partition

__all__ = [
    "Correlated",
    "DpIbp",
    "Framework",
    "Growth",
    "IbpIbp",
    "NoisyOrIbp",
    "Partition",
    "as_features",
    "growth",
    "of_partition",
]
