"""Writes the tables of `docs/what-is-it-called.md` from `names_elsewhere.py`.

Run from a checkout: python docs/make_names.py, or make vocabulary. `tests/test_names_elsewhere.py` fails where the page
is not current.
"""

from pathlib import Path

from cavity.names_elsewhere import EXPRESSIONS, SYSTEMS, TERMS, VERBS

PAGE = Path(__file__).parent / "what-is-it-called.md"
BEGIN, END = "<!-- made by make_names.py: begin -->\n", "<!-- made by make_names.py: end -->\n"
TABLES = {"Distributions": TERMS, "Functions and operations": EXPRESSIONS, "Declaring and running": VERBS}


def renewed():
    """The text of the page with its tables made anew."""
    text = PAGE.read_text()
    made = "\n".join(f"## {title}\n\n{table(rows)}" for title, rows in TABLES.items())
    return text[: text.index(BEGIN)] + BEGIN + "\n" + made + "\n" + text[text.index(END) :]


def table(rows):
    """One table in Markdown."""
    lines = [("cavity", *SYSTEMS, "note"), ("---",) * (len(SYSTEMS) + 2)]
    for row in rows:
        cells = [", ".join(f"`{name}`" for of, name in row.names() if of == system) for system in SYSTEMS]
        lines.append((f"`{row.ours}`", *cells, row.note))
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


if __name__ == "__main__":
    PAGE.write_text(renewed())
