"""The recipe for conda with the digest of what was built: `recipe.yaml` in the repository has none before a release.

    python .ci/fill_recipe.py dist > recipe.yaml

The digest is that of the one sdist in the folder, which the release workflow publishes as it is; it adds the filled
recipe to the release's page, from where it is handed in to conda-forge.
"""

import hashlib
import re
import sys
from pathlib import Path

RECIPE = Path(__file__).with_name("recipe.yaml")
DIGEST = re.compile(r'(sha256: ")[0-9a-f]{64}(")[^\n]*')


def filled(recipe: str, sdist: bytes) -> str:
    """The recipe's text with the digest of an sdist."""
    found, places = DIGEST.subn(rf"\g<1>{hashlib.sha256(sdist).hexdigest()}\g<2>", recipe)
    if places != 1:
        sys.exit(f"The recipe has {places} places for a digest, and is to have one: sha256, with 64 digits in quotes")
    return found


if __name__ == "__main__":
    archives = list(Path(sys.argv[1]).glob("*.tar.gz")) if len(sys.argv) == 2 else []
    if len(archives) != 1:
        sys.exit(f"fill_recipe.py: give the folder with the one sdist; found {len(archives)}")
    print(filled(RECIPE.read_text(), archives[0].read_bytes()), end="")
