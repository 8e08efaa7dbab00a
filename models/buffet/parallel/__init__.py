"""Rows in shards: each keeps its rows to itself and tells of them by sums, on one device, several or many machines."""

from .chains import ShardedChains, sample_in_shards
from .shards import Shards, shards_of

__all__ = ["ShardedChains", "Shards", "sample_in_shards", "shards_of"]
