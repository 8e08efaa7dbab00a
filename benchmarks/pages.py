"""Writes the tables of docs/benchmarks from what the benchmarks left in benchmarks/results.

    python benchmarks/pages.py NAME ...

`make bench` runs all benchmarks and then this. Each page says on which machine, when and at which commit its numbers
were measured; the list in docs/benchmarks/index.md names the pages that there are.
"""

import argparse
import ast
import json
from pathlib import Path

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
PAGES = ROOT / "docs" / "benchmarks"
INDEX = PAGES / "index.md"
BEGIN, END = "<!-- made by benchmarks/pages.py: begin -->", "<!-- made by benchmarks/pages.py: end -->"
COLUMNS = ("", "cold CPU", "cold wall", "warm CPU", "warm wall", "units", "rounds", "ratio")


def row(*cells):
    return f"| {' | '.join(str(cell).replace('|', '/') for cell in cells)} |"


def table(comparison):
    """The contestants of one comparison in milliseconds, and beside each its ratio to the last."""
    lines = [row(*COLUMNS), row("---", *["---:"] * (len(COLUMNS) - 1))]
    for entry in comparison["rows"]:
        times = entry["cold_cpu"], entry["cold_wall"], entry["cpu"]["median"], entry["wall"]["median"]
        ratio = "{median:.3g} ({min:.3g}, {max:.3g})".format(**entry["ratio"])
        cells = [f"{1e3 * seconds:.4g}" for seconds in times]
        lines.append(row(entry["name"], *cells, f"{entry['units']:.4g}", entry["rounds"], ratio))
    return lines


def other_table(columns, lines, **_):
    """A table whose cells a benchmark has written itself."""
    return [row(*columns), row("---", *["---:"] * (len(columns) - 1)), *(row(*line) for line in lines)]


def shown(value):
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def section(comparison):
    """One comparison: its table, and what else was measured."""
    lines = [f"## {comparison['title']}", ""]
    if comparison["rows"]:
        base = comparison["rows"][-1]["name"]
        ratio = f"ratio: CPU time over that of {base} in the same rounds, median (smallest, largest)."
        lines += [f"Milliseconds; units: what one call does so many of; {ratio}", "", *table(comparison), ""]
    if "table" in comparison:
        lines += [comparison["table"]["note"], "", *other_table(**comparison["table"]), ""]
    facts = [f"* {name}: {shown(value)}" for name, value in comparison.get("facts", {}).items()]
    return [*lines, *facts, ""] if facts else lines


def script(name):
    """The file of a benchmark; that of `buffet_peers` is in the folder buffet, where there is no file of that name."""
    whole = ROOT / "benchmarks" / f"{name}.py"
    folder, _, rest = name.partition("_")
    return whole if whole.exists() or not rest else ROOT / "benchmarks" / folder / f"{rest}.py"


def story(name):
    """The paragraphs at the head of a benchmark's file, without commands: what it measures, and what papers found."""
    text = ast.get_docstring(ast.parse(script(name).read_text())) or name
    return [" ".join(part.split()) for part in text.split("\n\n") if not part.startswith("    ")]


def what(name):
    """What a benchmark measures: the first paragraph of its file."""
    return story(name)[0]


def measured(machine):
    """Machine, date and commit of a measurement, in a sentence."""
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items() if version)
    return (
        f"Measured on {machine['date']} at commit {machine['commit']}: {machine['processor']}, "
        f"{machine['cores']} cores, load {machine['load'][0]:.1f} at the start, {machine['system']}, "
        f"Python {machine['python']}; {versions}."
    )


def page(content):
    """The page of one benchmark's results."""
    name = content["name"]
    settings = ", ".join(f"{key}={value}" for key, value in content["settings"].items())
    lines = [f"# {name}", "", *(line for part in story(name) for line in (part, "")), measured(content["machine"]), ""]
    made = script(name).relative_to(ROOT).as_posix()
    target = "make bench" if script(name).parent == ROOT / "benchmarks" else "make experiments"
    lines += [f"Made by `{made}`{f' ({settings})' if settings else ''}; `{target}` makes it anew.", ""]
    for comparison in content["comparisons"]:
        lines += section(comparison)
    return "\n".join(lines).rstrip() + "\n"


def index(text, names):
    """The index with its list of pages made anew."""
    before, after = text[: text.index(BEGIN) + len(BEGIN)], text[text.index(END) :]
    entries = [f"* [{name}]({name}.md): {what(name)}" for name in names]
    tree = ["```{toctree}", ":hidden:", "", *names, "```"]
    made = [*entries, "", *tree] if names else ["None yet: `make bench` has not been run since these pages are kept."]
    return "\n".join([before, "", *made, "", after])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="benchmarks whose results become pages")
    for name in parser.parse_args().names:
        (PAGES / f"{name}.md").write_text(page(json.loads((RESULTS / f"{name}.json").read_text())))
    INDEX.write_text(index(INDEX.read_text(), sorted(path.stem for path in PAGES.glob("*.md") if path != INDEX)))


if __name__ == "__main__":
    main()
