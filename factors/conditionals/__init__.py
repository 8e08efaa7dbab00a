"""The conditional distributions of the vocabulary, and of a few that only predictions know."""

from __future__ import annotations

import functools

from ..conditional import Conditional, from_density
from ..errors import UnsupportedError
from ..factor import REGISTRY, Factor
from .counts import COUNTS
from .positives import POSITIVES
from .reals import REALS
from .vectors import VECTORS

_MADE = REALS | POSITIVES | COUNTS | VECTORS


def conditional_of(factor: Factor, kind: str) -> Conditional:
    """The conditional of a factor that generates this kind of domain."""
    if REGISTRY.get(factor.name) is factor and (factor.name in _MADE or factor.conditional):
        return conditional_named(factor.name)
    return _derived(factor, kind)


_derived = functools.lru_cache(maxsize=64)(from_density)


@functools.cache
def conditional_named(name: str) -> Conditional:
    """The conditional of a factor of the vocabulary, or of those that only predictions know; KeyError for another."""
    if name not in _MADE and REGISTRY[name].conditional:
        return from_density(REGISTRY[name], REGISTRY[name].kind)
    density = {} if name not in REGISTRY else {"log_density": REGISTRY[name].log_density}
    return Conditional(**{**density, **_MADE[name]})


def name_of(conditional: Conditional) -> str:
    """The name that `conditional_named` knows it by; UnsupportedError for that of a user's factor."""
    known = conditional.name in _MADE or (conditional.name in REGISTRY and REGISTRY[conditional.name].conditional)
    if known and conditional_named(conditional.name) is conditional:
        return conditional.name
    raise UnsupportedError(
        f"This is the distribution of '{conditional.name}', a factor of one's own, which a file does not hold. Load "
        "the file with the model that made it: cv.load(path, model)."
    )
