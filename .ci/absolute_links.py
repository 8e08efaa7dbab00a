"""Makes the README's links whole: on a package index there is no folder beside it.

    python .ci/absolute_links.py https://github.com/OWNER/REPOSITORY v0.7.0

In the repository links and pictures are relative, so that they work in every copy and for every version. The release
workflow runs this before it builds, with its own address and tag: pages lead to the tag, pictures to the raw file.
"""

import re
import sys
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"
LINK = re.compile(r"(?P<picture>!?)\[(?P<text>[^\]]*)\]\((?P<target>(?![a-z]+:|#)[^)\s]+)\)")


def absolute(text: str, address: str, tag: str) -> str:
    """The text with each relative link made absolute: `address/blob/tag/...`, pictures `address/raw/tag/...`."""

    def whole(found: re.Match[str]) -> str:
        kind = "raw" if found["picture"] else "blob"
        return f"{found['picture']}[{found['text']}]({address}/{kind}/{tag}/{found['target']})"

    return LINK.sub(whole, text)


if __name__ == "__main__":
    if len(sys.argv) != 3 or not sys.argv[1].startswith("https://"):
        sys.exit("absolute_links.py: give the repository's address and the tag")
    README.write_text(absolute(README.read_text(), sys.argv[1].rstrip("/"), sys.argv[2]))
