"""Pass: Gaussian variables with one consumer are integrated out inside it.

The noise of a performance is part of the game it enters: the factor graph is a tree there, so EP gives the same
messages and evidence, without a variable per instance. Their marginals are recovered from the block afterwards.
"""

from __future__ import annotations

import dataclasses

from ...factors.roles import gaussian_arguments
from ..blocks.site import Absorbed, LinearForm, SiteBlock
from ..graph import Draft
from ..language.atoms import atom_key
from ..language.nodes import Random
from ..rules.coupled_site import separate


def absorb(draft: Draft) -> Draft:
    """Substitutes private Gaussian variables into the linear form of their only consumer, as often as possible."""
    while (pair := _candidate(draft)) is not None:
        draft = _substitute(draft, *pair)
    return draft


def _candidate(draft: Draft) -> tuple[SiteBlock, SiteBlock] | None:
    """A linear-Gaussian block that generates a variable, and the only other block that this variable touches."""
    for block in draft.blocks:
        if (
            not isinstance(block, SiteBlock)
            or block.link != "identity"
            or block.method.alpha != 1.0
            or not block.form.noise
        ):
            continue
        last = block.form.terms[-1] if block.form.terms else None
        if last is None or last.variable.name != block.name or last.element is not last.variable:
            continue  # observed, or not the generated variable
        users = [other for other in draft.blocks if other is not block and block.name in other.latent]
        if len(users) != 1 or not isinstance(user := users[0], SiteBlock):
            continue
        if any(term.over is not None for term in block.form.terms):
            continue  # its elements will share a belief
        if _private(last.variable, user, block):
            return block, user
    return None


def _private(variable: Random, user: SiteBlock, block: SiteBlock) -> bool:
    if [atom_key(mask) for mask in user.where] != [atom_key(mask) for mask in block.where]:
        return False
    if user.method.alpha != 1.0 or set(user.plates) != set(block.plates):
        return False
    # Two terms of one element would be two cavities of one variable.
    others = {atom_key(term.element) for term in user.form.terms}
    if any(atom_key(term.element) in others for term in block.form.terms[:-1]):
        return False
    if user.over is not None and not separate(block.form.terms[:-1], user.over):
        return False
    uses = [term for term in user.form.terms if term.variable is variable]
    plain = len(uses) == 1 and uses[0].element is variable and set(variable.plates) == set(user.plates)
    # The last term of a linear-Gaussian block is its own variable; a chain of these is absorbed from its end.
    return plain and not any(variable.name in a.variable.name for a in user.absorbed)


def _substitute(draft: Draft, block: SiteBlock, user: SiteBlock) -> Draft:
    variable = block.form.terms[-1].variable
    use = next(term for term in user.form.terms if term.variable is variable)
    own = LinearForm(block.form.terms[:-1], block.form.offsets, block.form.noise[1:])
    scaled = [dataclasses.replace(term, coefficients=use.coefficients + term.coefficients) for term in own.terms]
    form = LinearForm(
        tuple(term for term in user.form.terms if term is not use) + tuple(scaled),
        user.form.offsets + tuple(use.coefficients + offset for offset in own.offsets),
        user.form.noise + tuple((use.coefficients + c, p) for c, p in block.form.noise),
    )
    record = Absorbed(
        variable,
        use.coefficients,
        LinearForm(block.form.terms[:-1], block.form.offsets, block.form.noise),
        gaussian_arguments(block)[1],
    )
    inherited = tuple(dataclasses.replace(a, coefficients=use.coefficients + a.coefficients) for a in block.absorbed)
    latent = tuple(
        name for name in draft.model.randoms if name in {*user.latent, *block.latent} and name != variable.name
    )
    reason = f"{user.choice.reason}; '{variable.name}' is integrated out inside it (one consumer: exact)"
    merged = dataclasses.replace(
        user.chosen(reason=reason), form=form, latent=latent, absorbed=(*user.absorbed, record, *inherited)
    )
    blocks = tuple(merged if other is user else other for other in draft.blocks if other is not block)
    return dataclasses.replace(
        draft, blocks=blocks, latent={name: node for name, node in draft.latent.items() if name != variable.name}
    )
