"""Pass: beliefs given as priors take the place of the factors that generated these variables.

The new factors are data like any other, so the next batch of the same shapes finds the program compiled.
"""

from __future__ import annotations

import dataclasses

from ...factors.domains import Domain
from ...factors.families import FOR_DOMAIN
from ...factors.given import given as belief
from ..algebra.known import latent_names
from ..blocks.base import Choice
from ..blocks.energy import EnergyBlock
from ..data.keys import prior_part
from ..graph import Draft, Part
from ..language.model import Model
from ..language.nodes import Apply, Expr, Input, Let, Random, inside
from ..language.operations import TOGETHER
from ..methods import EXACT, VMP


def given(draft: Draft) -> Draft:
    """Replaces the prior of every variable in `draft.given`.

    A constraint without data between such variables is part of what they were given, and is not imposed again.
    """
    if not draft.given:
        return draft
    gone = draft.given | {name for name, expr in draft.model.constraints.items() if _inherited(draft, expr)}
    blocks = [_prior(draft.model, part) for part in draft.given_parts]
    blocks += [block for block in draft.blocks if block.source not in gone]
    randoms = {n: v for n, v in draft.model.randoms.items() if n in draft.given or n in draft.latent}
    return dataclasses.replace(
        draft,
        blocks=tuple(blocks),
        latent={**randoms, **{name: node for name, node in draft.latent.items() if name not in randoms}},
        needed=draft.needed | draft.given,
        forward=tuple(name for name in draft.forward if name not in draft.given),
    )


def names(model: Model, part: Part) -> tuple[str, ...]:
    """What the natural parameters of a given belief are called among the data."""
    return tuple(prior_part(part.members, j) for j in range(len(FOR_DOMAIN[_kind(model, part)].natural_ndims)))


def _title(part: Part) -> str:
    return ", ".join(part.members)


def _kind(model: Model, part: Part) -> str:
    first, *more = part.members
    return "vector" if more else model.randoms[first].domain.kind


def _prior(model: Model, part: Part) -> EnergyBlock:
    """The block of one given belief; that of several variables is exact where they share a belief again."""
    members, several = tuple(model.randoms[name] for name in part.members), len(part.members) > 1
    plates = members[0].plates if part.plated or not several else ()
    factor = belief(_kind(model, part))
    naturals = [Input(name, plates, Domain("natural")) for name in names(model, part)]
    reason = "it takes the place of the factors that the model declares"
    together = Apply(TOGETHER, members, (("plated", part.plated),), plates, Domain("vector"))
    return EnergyBlock(
        name=f"prior of {_title(part)}" if several else _title(part),
        plates=plates,
        latent=part.members,
        choice=Choice(VMP if several else EXACT, "belief given with prior=", "exact", reason),
        out=together if several else members[0],
        factor=factor,
        args=dict(zip(factor.edges, naturals, strict=True)),
        constant=not several,
    )


def _inherited(draft: Draft, constraint: Expr) -> bool:
    """Whether a constraint holds given variables together and no data."""
    nodes = inside([constraint])
    data = any(isinstance(n, Input) or (isinstance(n, (Random, Let)) and n.name in draft.observed) for n in nodes)
    return not data and set(latent_names(draft, [constraint])) <= draft.given
