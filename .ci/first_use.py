"""What a newcomer does: installs the built wheel in an empty environment and runs the README's example.

    python .ci/first_use.py dist [--keep FOLDER]

Everything happens outside of the checkout, so that nothing of it can help. The example must print what the README says,
numbers apart, which differ between machines. `--keep` leaves the environment there, for a list of what it holds.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n(?:[^\n`]+\n\n)?```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"[-+]?\d+(?:\.\d*)?(?:e[-+]?\d+)?")


def words(text: str) -> list[str]:
    """Lines without their numbers and spaces."""
    return ["".join(NUMBER.sub("#", line).split()) for line in text.strip().splitlines()]


def main() -> None:
    """Installs, runs, compares; exits with 1 where the README is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--keep", type=Path)
    arguments = parser.parse_args()
    (wheel,) = arguments.folder.resolve().glob("*.whl")
    with tempfile.TemporaryDirectory() as place:
        home = (arguments.keep or Path(place) / "environment").resolve()
        venv.create(home, with_pip=True)
        python = home / "bin" / "python"
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, wheel], check=True, timeout=900)
        code, said = BLOCK.findall(README.read_text())[0]
        script = Path(place) / "first.py"
        script.write_text(code)
        run = subprocess.run([python, script], cwd=place, capture_output=True, text=True, timeout=600)
        command = subprocess.run([home / "bin" / "cavity", "--help"], cwd=place, capture_output=True, timeout=120)
    if run.returncode or words(run.stdout) != words(said):
        sys.exit(f"The README's example does not do what the README says.\n{run.stdout}\n{run.stderr}")
    if command.returncode:
        sys.exit("The command `cavity --help` does not run.")
    print(f"{wheel.name}: installed, and the README's example prints what it says")


if __name__ == "__main__":
    main()
