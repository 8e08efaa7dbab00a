"""Looks into what was built: everything that is to be there is, and nothing else.

    python .ci/check_wheel.py dist [--tag v0.7.0]

The wheel has every module of the listed packages, `py.typed`, the licence and the command; no tests, documents,
benchmarks, scripts or caches. The version is that of the package, of CITATION.cff, of the newest section of
CHANGELOG.md and, where one is given, of the tag.
"""

import argparse
import re
import sys
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]


def expected(root: Path) -> set[str]:
    """The files of the package that a wheel must hold, as its archive names them."""
    packages = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    folders = [Path(*name.split(".")[1:]) for name in packages]
    modules = [path.relative_to(root) for folder in folders for path in (root / folder).glob("*.py")]
    return {f"cavity/{path.as_posix()}" for path in [*modules, Path("py.typed")]}


def faults_of_names(names: list[str], wanted: set[str], version: str) -> list[str]:
    """What is missing from a wheel's names, and what should not be among them."""
    info = f"cavity-{version}.dist-info/"
    needed = wanted | {info + name for name in ("METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE")}
    missing = [f"missing: {name}" for name in sorted(needed - set(names))]
    return missing + [f"not ours: {name}" for name in names if name not in wanted and not name.startswith(info)]


def faults_of_versions(root: Path, version: str, tag: str | None) -> list[str]:
    """Places that name another version than the wheel has."""
    said = {
        "the package": re.search(r'^__version__ = "(.*)"', (root / "__init__.py").read_text(), re.MULTILINE),
        "CITATION.cff": re.search(r"^version: (.*)$", (root / "CITATION.cff").read_text(), re.MULTILINE),
        "CHANGELOG.md": re.search(r"^## (\S+)", (root / "CHANGELOG.md").read_text(), re.MULTILINE),
        ".ci/recipe.yaml": re.search(r'^  version: "(.*)"', (root / ".ci" / "recipe.yaml").read_text(), re.MULTILINE),
    }
    found = {place: match[1] if match else "nothing" for place, match in said.items()}
    if tag is not None:
        found["the tag"] = tag.removeprefix("v")
    return [f"the wheel is {version}, {place} says {other}" for place, other in found.items() if other != version]


def main() -> None:
    """Prints each fault and exits with 1 where there is any."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tag")
    arguments = parser.parse_args()
    wheels, sources = list(arguments.folder.glob("*.whl")), list(arguments.folder.glob("*.tar.gz"))
    if len(wheels) != 1 or len(sources) != 1:
        sys.exit(f"{arguments.folder} should hold one wheel and one sdist, and has {len(wheels)} and {len(sources)}")
    version = wheels[0].name.split("-")[1]
    with zipfile.ZipFile(wheels[0]) as archive:
        names = [name for name in archive.namelist() if not name.endswith("/")]
    faults = faults_of_names(names, expected(ROOT), version) + faults_of_versions(ROOT, version, arguments.tag)
    print(*faults, f"{wheels[0].name}: {len(names)} files, {len(faults)} faults", sep="\n")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
