"""Pass: Gaussian variables with one consumer are integrated out inside it.

The noise of a performance is part of the game it enters: the factor graph is a tree there, so EP gives the same
messages and evidence, without a variable per instance. Their marginals are recovered from the block afterwards.
"""

from __future__ import annotations

import dataclasses

from .coupled import separate
from .expressions import Random
from .graph import Absorbed, Block, Graph, LinearForm
from .polynomial import atom_key


def absorb(graph: Graph) -> Graph:
    """Substitutes private Gaussian variables into the linear form of their only consumer, as often as possible."""
    while (pair := _candidate(graph)) is not None:
        graph = _substitute(graph, *pair)
    return graph


def _candidate(graph: Graph) -> tuple[Block, Block] | None:
    """A linear-Gaussian block that generates a variable, and the only other block that this variable touches."""
    for block in graph.blocks:
        if (
            block.kind != "site"
            or block.link != "identity"
            or block.method.alpha != 1.0
            or not block.form
            or not block.form.noise
        ):
            continue
        last = block.form.terms[-1] if block.form.terms else None
        if last is None or last.variable.name != block.name or last.element is not last.variable:
            continue  # observed, or not the generated variable
        users = [other for other in graph.blocks if other is not block and block.name in other.latent]
        if len(users) == 1 and _private(last.variable, users[0], block):
            return block, users[0]
    return None


def _private(variable: Random, user: Block, block: Block) -> bool:
    if [atom_key(mask) for mask in user.where] != [atom_key(mask) for mask in block.where]:
        return False
    if user.kind != "site" or user.method.alpha != 1.0 or set(user.plates) != set(block.plates):
        return False
    if user.over is not None and not separate(block.form.terms[:-1], user.over):
        return False
    uses = [term for term in user.form.terms if term.variable is variable]
    plain = len(uses) == 1 and uses[0].element is variable and set(variable.plates) == set(user.plates)
    # The last term of a linear-Gaussian block is its own variable; a chain of these is absorbed from its end.
    return plain and not any(variable.name in a.variable.name for a in user.absorbed)


def _substitute(graph: Graph, block: Block, user: Block) -> Graph:
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
        block.args["precision"],
    )
    inherited = tuple(dataclasses.replace(a, coefficients=use.coefficients + a.coefficients) for a in block.absorbed)
    latent = tuple(
        name for name in graph.model.randoms if name in {*user.latent, *block.latent} and name != variable.name
    )
    merged = dataclasses.replace(
        user,
        form=form,
        latent=latent,
        absorbed=(*user.absorbed, record, *inherited),
        reason=f"{user.reason}; '{variable.name}' is integrated out inside it (one consumer: exact)",
    )
    blocks = tuple(merged if other is user else other for other in graph.blocks if other is not block)
    return dataclasses.replace(
        graph, blocks=blocks, latent={name: node for name, node in graph.latent.items() if name != variable.name}
    )
