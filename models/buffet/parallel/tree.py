"""The tree along which shards tell each other sums: full and binary, numbered from the root as heaps are."""

from __future__ import annotations


def parent(number: int) -> int | None:
    """Of a shard; None of the root, which is shard 0."""
    return (number - 1) // 2 if number else None


def neighbours(number: int, every: int) -> tuple[int, ...]:
    """The parent of a shard, if it has one, and its children, among so many shards."""
    above = parent(number)
    below = [child for child in (2 * number + 1, 2 * number + 2) if child < every]
    return tuple(below if above is None else [above, *below])


def depth(every: int) -> int:
    """How many edges there are from the root of so many shards to the farthest of them."""
    return every.bit_length() - 1


def side(number: int, behind: int, every: int) -> tuple[int, ...]:
    """All shards on the far side of the edge from one shard to its neighbour `behind`, this among them."""
    beyond = [side(behind, each, every) for each in neighbours(behind, every) if each != number]
    return (behind, *(each for some in beyond for each in some))
