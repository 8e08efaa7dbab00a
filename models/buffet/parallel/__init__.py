"""Rows in shards: each keeps its rows to itself and tells of them by sums, on one device, several or many machines."""

from .asynchronous import TurnsOfShards, sample_in_turns
from .chains import ShardedChains, sample_in_shards
from .clocked import Costs
from .diagnostics import Hairiness, effective_draws, hairiness
from .metropolis import SeededShards
from .shards import Shards, shards_of
from .subsampled import SomeFeatures

__all__ = [
    "Costs",
    "Hairiness",
    "SeededShards",
    "ShardedChains",
    "Shards",
    "SomeFeatures",
    "TurnsOfShards",
    "effective_draws",
    "hairiness",
    "sample_in_shards",
    "sample_in_turns",
    "shards_of",
]
