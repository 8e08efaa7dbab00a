"""Writes conditionals.md: how `cv.sample` draws what each construct of the vocabulary has as its random arguments.

Run from a checkout: python docs/make_conditionals.py

The models are those of make_coverage.py: each construct with every choice of what is random. They are planned; nothing
is drawn.
"""

import runpy
from pathlib import Path

import jax

import cavity as cv
from cavity.engine.sampling.sample import joint_of, plan

DOCS = Path(__file__).parent
coverage = runpy.run_path(str(DOCS / "make_coverage.py"), run_name="make_coverage")
CONSTRUCTS, patterns, row, use = (coverage[name] for name in ("CONSTRUCTS", "patterns", "row", "use"))
PAGE = DOCS / "conditionals.md"
BEGIN, END = "<!-- made by make_conditionals.py: begin -->", "<!-- made by make_conditionals.py: end -->"
EXACTLY = "refused where the expression is observed exactly"


def drawn(construct, random):
    """How each random part is drawn; the outcome, where it is random, is called so."""
    called = {"y" if name == "out" else name: "outcome" if name == "out" else name for name in random}
    used = use(construct, random)
    try:
        with jax.enable_x64(True):
            moves = plan(joint_of(used.model, used.data, used.sizes, {}, 0))
    except cv.UnsupportedError as problem:
        if "is a deterministic expression" not in str(problem):
            raise
        return dict.fromkeys(called.values(), EXACTLY)
    return {called[name]: move.how.partition(":")[0] for move in moves for name in move.names if name in called}


def lines_of(name):
    """A line for each part of a construct that may be random, with all ways in which it is drawn."""
    found = {}
    for random in patterns(CONSTRUCTS[name]):
        for part, how in drawn(CONSTRUCTS[name], random).items():
            found.setdefault(part, []).append(how)

    def order(ways):
        return sorted(dict.fromkeys(ways), key=lambda way: (way == EXACTLY, -ways.count(way)))

    return [row(f"`{name}`", part, "; or ".join(order(ways))) for part, ways in found.items()]


def renewed():
    """The page with its table made anew."""
    lines = [row("construct", "random part", "how it is drawn"), row(*["---"] * 3)]
    for name in CONSTRUCTS:
        lines += lines_of(name)
    text = PAGE.read_text()
    before, after = text[: text.index(BEGIN) + len(BEGIN)], text[text.index(END) :]
    return "\n\n".join([before, "\n".join(lines), after])


if __name__ == "__main__":
    PAGE.write_text(renewed())
