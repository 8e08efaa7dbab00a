"""The default call over the whole vocabulary: no crash, and nothing that is not finite.

`Structure(seed).case(draw).data` repeats a failure, `print(Structure(seed).small)` shows the model; `run.py` runs
thousands of them and `report.py` counts what came of them, also what these tests do not forbid (README.md).
"""

from __future__ import annotations

import jax
import pytest
from found_structures import FOUND
from small import Small
from verdicts import Structure
from vocabulary import FOCUS, OPERATIONS, TERMS

import cavity as cv

NEVER = ("crashed", "nan")
MANY, DRAWS = 120, 3


def broken(seed: int, draws: int, forbidden: tuple[str, ...], small: Small | None = None) -> list[str]:
    try:
        structure = Structure(seed, small)
    except cv.CavityError:
        return []
    rows = list(structure.rows(draws))
    return [f"seed {seed}, draw {r['draw']}: {r['kind']}: {r['text']}" for r in rows if r["kind"] in forbidden]


@pytest.mark.parametrize("seed", FOUND)
def test_what_the_sweep_found(seed):
    found = broken(seed, 1, (*NEVER, "pushed", "wrong, silent"), FOUND[seed])
    assert not found, f"{found}\n{FOUND[seed]}"


@pytest.mark.slow
@pytest.mark.parametrize("start", range(1000, 1000 + MANY, 10))
def test_the_default_call(start):
    found = [line for seed in range(start, start + 10) for line in broken(seed, DRAWS, NEVER)]
    jax.clear_caches()
    assert not found, "\n".join(found)


def test_every_term_and_operation_is_drawn():
    """Declared, not inferred: one structure for each focus has what it is about."""
    seen: set[str] = set()
    for seed in range(len(FOCUS)):
        try:
            seen |= set(Structure(seed).features)
        except cv.CavityError:
            continue  # a nested switch, say, which the language refuses
    terms = {f"{role}:{name}" for role, _, name in FOCUS if role in ("observed", "predicted")}
    operations = {name for names in OPERATIONS.values() for name in names} - {"scaled"}
    assert not terms - seen
    assert not {o for o in operations if not {f"let:{o}", f"in:{o}"} & seen}
    priors = {f"prior:{name}" for kind, names in TERMS.items() for name in names}
    assert len(priors & seen) >= 25
