"""Pass: which variables need a belief, and which follow from the others.

A random variable that no observation and no constraint depends on adds nothing: its factor integrates to one. It leaves
the inference and its marginal is computed forward afterwards, which is exact under EP and better than a belief of its
own under VMP. An observed variable with missing entries that others depend on is latent: see `partly`.
"""

from __future__ import annotations

import dataclasses

from ...factors.errors import UnsupportedError
from ...factors.factor import Chain
from ..graph import Draft
from ..language.nodes import Expr, Let, Random, parents
from .missing_entries import data_of


def roles(draft: Draft) -> Draft:
    """Finds the needed nodes, the latent random variables and those to be computed forward."""
    model = draft.model
    named = {**model.randoms, **model.lets}
    roots: list[Expr] = [named[name] for name in draft.observed] + list(model.constraints.values())
    needed = {node.name for node in below(roots) if isinstance(node, (Random, Let))}
    partly = {name: data_of(model.randoms[name]) for name in draft.missing if _has_users(draft, named, name)}
    observed = draft.observed - frozenset(partly)
    return dataclasses.replace(
        draft,
        observed=observed,
        missing=draft.missing - frozenset(partly),
        partly=partly,
        needed=frozenset(needed),
        latent={name: node for name, node in model.randoms.items() if name in needed and name not in observed},
        forward=tuple(name for name in named if name not in needed),
    )


def below(roots: list[Expr]) -> list[Expr]:
    """The roots and all that they are made of, through definitions."""
    seen: dict[int, Expr] = {}
    stack = list(roots)
    while stack:
        node = stack.pop()
        if id(node) not in seen:
            seen[id(node)] = node
            stack.extend(parents(node))
    return list(seen.values())


def _has_users(draft: Draft, named: dict, name: str) -> bool:
    """Whether anything depends on a variable with missing entries; else they are integrated out with their factor.

    The elements of a chain depend on each other. An expression is not observed where it is missing.
    """
    own = named[name]
    if isinstance(own, Random) and isinstance(own.term, Chain):
        return True
    others = [list(parents(node)) for node in named.values() if node is not own]
    others += [[expression] for expression in draft.model.constraints.values()]
    used = any(node is own for roots in others for node in below(roots))
    if used and isinstance(own, Let):
        raise UnsupportedError(
            f"'{name}' has missing entries (NaN) and is a deterministic expression that others depend on, of which "
            "some instances would know it and some not. Leave it out of the data, fill the entries, or observe a noisy "
            "copy of it, whose entries may be missing."
        )
    return used
