"""Writes coverage.md: for every factor of Infer.NET what serves it here, by method and by what is random.

Run from a checkout: python docs/make_coverage.py

Each construct of the vocabulary is put into a model of its own, with every combination of known and random arguments
and outcome, and planned under each method; nothing is compiled. `infernet_factors.json` maps Infer.NET's factors to the
constructs, or says why there is none; the constructs themselves are in coverage_constructs.py.
"""

import dataclasses
import itertools
import json
import re
import runpy
from pathlib import Path

import numpy as np

import cavity as cv
from cavity.compiler.language.nodes import Expr
from cavity.compiler.plan import make_plan

DOCS = Path(__file__).parent
CONSTRUCTS = runpy.run_path(str(DOCS / "coverage_constructs.py"))["CONSTRUCTS"]
PAGE, ROWS = DOCS / "coverage.md", json.loads((DOCS / "infernet_factors.json").read_text())["rows"]
BEGIN, END = "<!-- made by make_coverage.py: begin -->", "<!-- made by make_coverage.py: end -->"
METHODS = ("ep", "vmp", "auto")
SIZE = 3  # of the plate of lists

PRIORS = {
    "real": lambda: cv.gaussian(0.4, variance=1.0),
    "positive": lambda: cv.gamma(3.0, 2.0),
    "unit": lambda: cv.beta(2.0, 3.0),
    "boolean": lambda: cv.bernoulli(0.3),
    "category": lambda: cv.categorical([0.2, 0.3, 0.5]),
    "count": lambda: cv.poisson(2.0),
    "simplex": lambda: cv.dirichlet([1.0, 2.0, 3.0]),
    "vector": lambda: cv.vector_gaussian([0.3, -0.2], covariance=np.eye(2)),
    "posdef": lambda: cv.wishart(4.0, np.eye(2) / 4.0),
}
KNOWN = {
    "real": (cv.real, 0.6),
    "positive": (cv.positive, 1.3),
    "unit": (cv.unit, 0.4),
    "boolean": (cv.boolean, True),
    "category": (cv.category(3), 1),
    "count": (cv.count, 3),
    "simplex": (cv.simplex(3), [0.2, 0.3, 0.5]),
    "vector": (cv.vector(2), [0.5, 0.1]),
    "posdef": (cv.posdef(2), [[1.5, 0.2], [0.2, 0.8]]),
    "matrix": (cv.matrix(2, 2), [[1.0, 0.3], [0.2, 0.5]]),
}


BELOW = {  # an observation of the outcome, which makes it matter
    "real": lambda y: (cv.gaussian(y, variance=1.0), 0.5),
    "positive": lambda y: (cv.poisson(y), 2),
    "unit": lambda y: (cv.bernoulli(y), True),
    "boolean": lambda y: (cv.switch(y, cv.bernoulli(0.3), cv.bernoulli(0.6)), True),
    "category": lambda y: (cv.switch(y, *(cv.bernoulli(0.1 + 0.1 * k) for k in range(y.domain.size))), True),
    "count": lambda y: (cv.binomial(y, 0.4), 1),
    "simplex": lambda y: (cv.categorical(y), 1),
    "vector": lambda y: (cv.vector_gaussian(y, covariance=np.eye(y.domain.size)), np.full(y.domain.size, 0.4)),
    "posdef": lambda y: (cv.vector_gaussian(np.zeros(2), precision=y), [0.4, 0.2]),
}


@dataclasses.dataclass(frozen=True)
class Use:
    """A model that uses a construct, its data, and the variable, expression or constraint whose block serves it."""

    model: cv.Model
    data: dict
    asked: str

    @property
    def sizes(self):
        return dict.fromkeys(self.model.plates, SIZE)

    def plan(self, method):
        """The blocks that serve the construct under a method; everything beside it is chosen by auto."""
        observed = frozenset(name for name in self.data if name in self.model.randoms or name in self.model.lets)
        plan = make_plan(self.model, observed, frozenset(), {self.asked: method}, sizes=self.sizes)
        named = [block for block in plan.blocks if block.name.partition(" (case")[0] == self.asked]
        return named or [block for block in plan.blocks if self.asked in block.latent]  # part of a joint table


def use(construct, random):
    """The model in which the arguments named in `random` are random, and the outcome too if "out" is."""
    m, data = cv.Model(), {}
    kinds = construct.arguments
    plate = m.plate("k", SIZE) if any(kind == "index" or kind.endswith("[]") for kind in kinds.values()) else None
    arguments = {name: _argument(m, data, name, kind, plate, name in random) for name, kind in kinds.items()}
    made = construct.build(m, **arguments)
    if made is None:
        return Use(m, data, "y")
    expression = isinstance(made, Expr)
    y = m.let("y", made) if expression else m.random("y", made)
    if "out" not in random:
        return Use(m, data | {"y": construct.observed}, "y")
    term, value = BELOW[y.domain.kind](y)
    m.random("below", term)
    shape = [SIZE] * len(y.plates)
    discrete = y.domain.kind in ("boolean", "category")
    data["below"] = np.broadcast_to(value, (*shape, *np.shape(value)))
    return Use(m, data, "below" if expression and not discrete else "y")


def _argument(m, data, name, kind, plate, random):
    if kind.startswith("="):
        return KNOWN[kind[1:]][1] if kind[1:] in KNOWN else json.loads(kind[1:])
    plates = (plate,) if kind.endswith("[]") else ()
    kind = kind.removesuffix("[]")
    if random:
        return m.random(name, PRIORS[kind](), plates=plates)
    domain, value = (cv.index(plate), len(data) % SIZE) if kind == "index" else KNOWN[kind]
    value = value + 0.1 * len(data) if kind == "real" else value  # a lower end before an upper one
    data[name] = np.broadcast_to(value, (SIZE, *np.shape(value))) if plates else value
    return m.input(name, domain, plates=plates)


def patterns(construct):
    """Every choice of what is random, save none."""
    kinds = construct.arguments
    names = [name for name, kind in kinds.items() if name not in construct.numbers and not kind.startswith("=")]
    names += [] if construct.observed is None else ["out"]
    for count in range(len(names), 0, -1):
        for chosen in itertools.combinations(names, count):
            if chosen != ("out",) or construct.term:  # an expression of what is known is known
                yield chosen


def served(construct, random, method):
    """Operators and accuracy, or the reason why there are none."""
    try:
        blocks = use(construct, random).plan(method)
    except cv.CavityError as problem:
        return None, str(problem)
    methods = dict.fromkeys(block.choice.method.name for block in blocks)
    return ", ".join(methods), ", ".join(dict.fromkeys(block.choice.accuracy for block in blocks))


CELLS = {"exact": "exact", "ep": "EP", "vmp": "VMP", "ncvmp": "NCVMP"}


class Reasons:
    """The reasons for what is refused, each with a number; names of the example are left out."""

    def __init__(self):
        self.numbers = {}

    def number(self, text):
        general = re.sub(r"'[^']*'", "...", text.partition(". ")[0])
        general = re.sub(r"(?<=: )(\w+, )+\w+$", "...", re.sub(r" = .* is observed", " is observed", general))
        return self.numbers.setdefault(general, len(self.numbers) + 1)


def cell(found, reasons):
    method, told = found
    if method is None:
        return f"- [{reasons.number(told)}]"
    return method_words(method) + (f", {told}" if told != "exact" or method != "exact" else "")


def method_words(method):
    return ", ".join(CELLS.get(name, name) for name in method.split(", "))


def theirs(construct, random, status):
    """What Infer.NET's list says of a pattern."""
    if isinstance(status, str):
        return "yes" if status else ""
    names = [*construct.arguments, "out"]
    pattern = "".join("S" if name in random else "D" for name in names)
    return status.get(pattern, "")


def best(statuses):
    """The most that one of several factors of theirs offers."""
    return max(statuses, key=lambda s: (s == "yes", s[:1].isdigit() and s[0] != "0", s), default="")


def summary(results):
    """A line for each factor of Infer.NET."""
    lines = [row("Infer.NET", "EP", "VMP", "here", "EP", "VMP", "auto"), row(*["---"] * 7)]
    for entry in ROWS:
        found = [results[name] for name in entry["ours"]]
        served_by = [
            f"{sum(sum(use[m][0] is not None for use in one.values()) for one in found)} of {sum(map(len, found))}"
            if found
            else ""
            for m in METHODS
        ]
        here = ", ".join(f"`{name}`" for name in entry["ours"])
        note = entry["reason"] if not here else f"{here}: {entry['reason']}" if entry["reason"] else here
        name = f"`{entry['theirs']}({', '.join(a.rpartition(' ')[2] for a in entry['arguments'].split(', '))})`"
        lines.append(row(name, amount(entry["ep"]), amount(entry["vmp"]), note, *served_by))
    return lines


def amount(status):
    if isinstance(status, str):
        return status or "-"
    return f"{sum(s not in ('no', '') and s[0] != '0' for s in status.values())} of {len(status)}"


def details(results, reasons):
    """A line for each construct and each choice of what is random."""
    lines = [row("construct", "random", "Infer.NET EP", "VMP", "here: EP", "VMP", "auto"), row(*["---"] * 7)]
    for name, uses in results.items():
        construct, entries = CONSTRUCTS[name], [entry for entry in ROWS if name in entry["ours"]]
        for random, found in uses.items():
            columns = [best([theirs(construct, random, entry[m]) for entry in entries]) for m in ("ep", "vmp")]
            ours = [cell(found[m], reasons) for m in METHODS]
            lines.append(row(f"`{name}`", ", ".join(random), *columns, *ours))
    return lines


def row(*cells):
    return f"| {' | '.join(text.replace('|', '&#124;') for text in cells)} |"


def renewed():
    """The page with its tables made anew."""
    results = {
        name: {random: {m: served(construct, random, m) for m in METHODS} for random in patterns(construct)}
        for name, construct in CONSTRUCTS.items()
    }
    reasons = Reasons()
    lines = details(results, reasons)
    told = [f"{number}. {text}." for text, number in reasons.numbers.items()]
    text = PAGE.read_text()
    before, after = text[: text.index(BEGIN) + len(BEGIN)], text[text.index(END) :]
    return "\n\n".join([before, *map("\n".join, (summary(results), lines, told)), after])


if __name__ == "__main__":
    PAGE.write_text(renewed())
