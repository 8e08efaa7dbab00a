"""Posteriors and evidences known from elsewhere: other systems' test suites, recomputed independently, or exact.

The cases are data (the json files of this folder, which say where each number comes from); `runner.py` says them in
cavity's language and compares. A case that does not pass yet stays in the table and is named in PENDING.
"""

from __future__ import annotations

import pytest
import runner

import cavity as cv

# Cases that cannot pass today: strict, so that one that starts to pass must be taken off.
PENDING = {
    "E7": "constraints under EP, all weights and scores in one belief: means off by 5e-4, 7e-4 posterior sd",
}

# Cases that repeat another's program with other numbers, or take long to compile.
SLOW = {
    "E1 exact", "E5 noise 0.1", "E7", "E8 false", "E11", "E12 2", "E12 3", "E12 4", "E12 5", "E17", "E18 one point",
    "E18 three points", "E19 one point", "E25", "E26 1 shift", "E26 2 shifts", "E26 skip chain", "L1 false",
    "L3 Beta(900, 100)", "L3 Beta(1.5, 1)", "L3 Beta(0.2, 1.8)", "L3 Beta(0.9, 0.1)", "L4 exact", "L7", "L9 2",
    "D1 prior", "D3 2", "D3 3", "D8 noise 0.2, 10 of 10", "D8 noise 0.2, 5 of 10", "V18", "V19", "N2 kl false",
    "N2 jaakkola false", "N4 exact", "pumps", "eight schools", "V26",
    # Told with the same numbers in tests/engine, where networks, slots, sides, processes and expressions are tested.
    "D6 loopy", "D6 exact", "D7", "D8 noise 0, 10 of 10", "E1 ep", "E9", "E12 1", "E18", "E22", "L3 Beta(1.9, 1.1)",
    "L8", "L10", "V8", "V9", "V10", "V11", "V12", "V13", "V25 gamma", "V25 beta",
    # A sibling of the same program or with the same bound stays.
    "E3", "E6", "E8 true", "E14", "E19", "L9 1", "N2 kl true", "N2 jaakkola true", "N6 log", "N6 quadratic",
    "N6 quadrature", "V1 missing", "V2", "V5", "V18 array", "V19 mixture 2", "bayespy quickstart",
}  # fmt: skip

CASES = runner.cases()
MISSING = (AssertionError, AttributeError, TypeError, cv.CavityError)


def marks(case):
    name = case["id"]
    pending = [pytest.mark.xfail(reason=PENDING[name], raises=MISSING, strict=True)] if name in PENDING else []
    return pending + [pytest.mark.slow] * (name in SLOW)


def test_the_lists_name_cases():
    names = [case["id"] for case in CASES]
    assert len(set(names)) == len(names)
    assert set(PENDING) | SLOW <= set(names)


@pytest.mark.parametrize("case", [pytest.param(case, id=case["id"], marks=marks(case)) for case in CASES])
def test_case(case):
    runner.run(case)
