"""Writes the tables of methods.md from the registries of factors and links and from the plans of tiny models.

Run from a checkout: python docs/make_tables.py
"""

from pathlib import Path

import cavity as cv
from cavity.compiler.plan import make_plan
from cavity.factors import LINKS, REGISTRY
from cavity.factors.factor import VECTOR_LINKS, Term

PAGE = Path(__file__).parent / "methods.md"
BEGIN, END = "<!-- made by make_tables.py: begin -->", "<!-- made by make_tables.py: end -->"
MADE_BY_LINK = {"exp": "positive", "logistic": "unit", "probit": "unit"} | dict.fromkeys(VECTOR_LINKS, "simplex")


EXAMPLES = {"positive": 1.0, "count": 3.0, "vector": [0.0, 1.0], "real": 0.0, "unit": 0.5, "simplex": [0.5, 0.5]}


def others(factor, edge):
    """Known values of all arguments but one."""
    known = {name: EXAMPLES[kind] for name, kind in factor.edges.items() if name != edge}
    return known | ({"low": -1.0, "high": 2.0} if "low" in factor.edges else {})


def site(factor, link):
    """Operator and accuracy of an EP site, from the plan of a model with one instance."""
    m = cv.Model()
    edge = None if link == "out" else factor.site_edge or next(iter(factor.edges))
    s = m.random("s", Term(factor, others(factor, None)) if link == "out" else cv.gaussian(0.0, variance=1.0))
    if link == "out":
        m.random("y", cv.gaussian(s, variance=1.0))
    else:
        plain = s + m.random("t", cv.gaussian(0.0, variance=1.0)) if link in ("identity", "linear") else None
        m.random("y", Term(factor, {**others(factor, edge), edge: getattr(cv, link)(s) if plain is None else plain}))
    name = "s" if link == "out" else "y"
    block = next(b for b in make_plan(m, frozenset({"y"}), frozenset(), "ep").blocks if b.name == name)
    return f"{block.choice.operator} [{block.choice.accuracy}]"


def row(*cells):
    return f"| {' | '.join(cells)} |"


def table_of_factors():
    lines = [row("factor", "VMP", "NCVMP, through a link", "EP and power EP", "not supported"), row(*["---"] * 5)]
    for name, factor in sorted(REGISTRY.items()):
        links = [
            f"`{edge}={link}(...)`"
            for edge, kind in factor.edges.items()
            for link in LINKS
            if MADE_BY_LINK.get(link) == kind and edge not in factor.unsupported
        ]
        sites = [f"`{link}`: {site(factor, link)}" for link in factor.sites]
        refused = [f"random `{edge}`: {reason}" for edge, reason in factor.unsupported.items()]
        lines.append(
            row(
                f"`{name}({', '.join(factor.edges)})`",
                f"expected log density [{factor.accuracy if factor.expected_log else 'quadrature'}]",
                ", ".join(links) or "-",
                "; ".join(sites) or "-",
                "; ".join(refused) or "-",
            )
        )
    return lines


def table_of_links():
    lines = [row("link", "bound", "accuracy of the expectation", "source"), row(*["---"] * 4)]
    for name, link in sorted(LINKS.items()):
        for number, (bound, accuracy) in enumerate(link.bounds.items()):
            default = " (default)" if number == 0 and len(link.bounds) > 1 else ""
            sources = f"{{cite}}`{link.source.replace(', ', ',')}`" if number == 0 and link.source else ""
            lines.append(row(f"`{name}`" if number == 0 else "", f"`{bound}`{default}", accuracy, sources))
    return lines


def renewed():
    """The page with its tables made anew."""
    text = PAGE.read_text()
    before, after = text[: text.index(BEGIN) + len(BEGIN)], text[text.index(END) :]
    return "\n\n".join([before, "\n".join(table_of_factors()), "\n".join(table_of_links()), after])


if __name__ == "__main__":
    PAGE.write_text(renewed())
