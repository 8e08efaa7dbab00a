"""Makes the pictures of gallery.md with the code that stands above each: what a reader copies is what was drawn.

Run from a checkout: python docs/make_gallery.py. A block that defines a `figure` is followed by a link to its picture.
"""

import re
from pathlib import Path

from run_pages import DOCS, run

PAGE = DOCS / "gallery.md"
PICTURE = re.compile(r"!\[[^\]]+\]\((_static/gallery/[\w-]+\.png)\)")


def pictures(text: str) -> list[str]:
    """The places of a page's pictures, in order."""
    return PICTURE.findall(text)


def main() -> None:
    """Runs the page and saves each figure under the name of the picture that follows its block."""
    text, names = PAGE.read_text(), {}
    for block, _ in run(PAGE, names):
        figure = names.pop("figure", None)
        if figure is not None:
            place = Path(DOCS / pictures(text[block.end() :])[0])
            place.parent.mkdir(parents=True, exist_ok=True)
            figure.savefig(place, dpi=110, facecolor="white", metadata={"Software": None})
            print(f"wrote {place.relative_to(DOCS)}")


if __name__ == "__main__":
    main()
