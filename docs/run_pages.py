"""Runs the Python blocks of README.md and of these pages; a text block that follows is what it printed.

`python docs/run_pages.py` checks all pages, `--write` renews what they print. Blocks of a page share one namespace.
"""

import argparse
import contextlib
import io
import re
from pathlib import Path

DOCS = Path(__file__).parent
PAGES = [
    DOCS.parent / "README.md",
    *(
        page
        for place in ("", "coming-from/", "decisions/", "benchmarks/")
        for page in sorted(DOCS.glob(f"{place}*.md"))
    ),
]
BLOCK = re.compile(
    r"^```python\n(?P<code>.*?)^```\n(?:\n(?:[^\n`]+\n\n)?```text\n(?P<text>.*?)^```\n)?", re.MULTILINE | re.DOTALL
)
NUMBER = re.compile(r"[-+]?\d+(?:\.\d*)?(?:e[-+]?\d+)?")


def without_numbers(text):
    """Digits and signs of zeros differ between machines; words and lines do not."""
    return ["".join(NUMBER.sub("#", line).split()) for line in text.strip().splitlines()]


def run(page, names=None):
    """Runs a page's blocks in order; gives (block, what it printed). What they define goes to `names`."""
    from cavity.factors import REGISTRY

    vocabulary, names = dict(REGISTRY), {} if names is None else names
    names["__name__"] = "__page__"
    try:
        for block in BLOCK.finditer(page.read_text()):
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(block["code"], page.name, "exec"), names)
            yield block, printed.getvalue()
    finally:  # a page may add to the vocabulary
        REGISTRY.clear()
        REGISTRY.update(vocabulary)


def differences(page):
    """The blocks of a page whose text is not what they print."""
    return [
        printed
        for block, printed in run(page)
        if block["text"] is not None and without_numbers(block["text"]) != without_numbers(printed)
    ]


def rewrite(page):
    """The page with all printed text made anew."""
    text, shift = page.read_text(), 0
    for block, printed in run(page):
        if block["text"] is not None:
            start, end = block.span("text")
            text = text[: start + shift] + printed.rstrip() + "\n" + text[end + shift :]
            shift += len(printed.rstrip()) + 1 - (end - start)
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("pages", nargs="*", type=Path)
    arguments = parser.parse_args()
    for page in arguments.pages or PAGES:
        if arguments.write:
            page.write_text(rewrite(page))
        else:
            wrong = differences(page)
            print(page.name, "agrees" if not wrong else f"differs in {len(wrong)} places")


if __name__ == "__main__":
    main()
