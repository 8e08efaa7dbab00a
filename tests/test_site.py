"""The site and what publishes it: tutorials that are programs, pictures that are there, workflows that can be read."""

import ast
import hashlib
import importlib.util
import os
import re
import subprocess
import tomllib

import pytest
from doc_scripts import DOCS, load

import cavity
from cavity.engine.posterior import AnyPosterior  # one whose scales are integrated is no `cavity.Posterior`

ROOT = DOCS.parent
CELL = re.compile(r"^```\{code-cell\} ipython3\n(.*?)^```", re.MULTILINE | re.DOTALL)
TUTORIALS = sorted(path for path in (DOCS / "tutorials").glob("*.md") if path.stem != "index")
WORKFLOWS = sorted((ROOT / ".github").rglob("*.yml"))


def script(name):
    """The module .ci/<name>.py."""
    spec = importlib.util.spec_from_file_location(f"ci_{name}", ROOT / ".ci" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# Tutorials and pictures -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial_begins_with_a_question_and_is_a_program(path):
    text = path.read_text()
    front, title = re.match(r"---\n(.*?)\n---\n+# ([^\n]*)\n", text, re.DOTALL).groups()
    assert "file_format: mystnb" in front
    assert title.endswith("?")
    cells = CELL.findall(text)
    assert len(cells) >= 4
    for cell in cells:
        ast.parse(cell)
    assert any("import cavity as cv" in cell for cell in cells)


def test_the_page_of_tutorials_has_each_with_its_question():
    text = (DOCS / "tutorials" / "index.md").read_text()
    listed = {target: title for title, target in re.findall(r"^\* \[(.*?)\]\((\w+)\.md\)", text, re.MULTILINE)}
    assert listed == {path.stem: re.search(r"^# (.*)$", path.read_text(), re.MULTILINE)[1] for path in TUTORIALS}
    assert re.search(r"```\{toctree\}\n:hidden:\n\n(.*?)```", text, re.DOTALL)[1].split() == list(listed)


@pytest.mark.slow
@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial_runs(path):
    matplotlib = pytest.importorskip("matplotlib")
    pytest.importorskip("pandas")
    matplotlib.use("Agg")
    names = {}
    for cell in CELL.findall(path.read_text()):
        exec(compile(cell, path.name, "exec"), names)
    posteriors = [value for value in names.values() if isinstance(value, AnyPosterior)]
    assert posteriors
    assert all(posterior.converged for posterior in posteriors)


def test_pictures_are_there_told_in_words_and_small():
    """Those of the README too; and no picture is kept that no page shows."""
    shown = set()
    for path in (ROOT / "README.md", DOCS / "gallery.md"):
        for words, target in re.findall(r"!\[(.*?)\]\(([^)]*)\)", path.read_text()):
            picture = (path.parent / target).resolve()
            assert picture.read_bytes().startswith(b"\x89PNG"), target
            assert picture.stat().st_size < 120_000, target
            assert len(words) > 25, target
            shown.add(picture)
    assert shown == set((DOCS / "_static" / "gallery").glob("*.png"))


def test_each_figure_of_the_gallery_has_its_picture(monkeypatch):
    monkeypatch.syspath_prepend(DOCS)  # the script imports its neighbour
    gallery = load("make_gallery")
    text = (DOCS / "gallery.md").read_text()
    assert len(gallery.pictures(text)) >= 10
    for block in load("run_pages").BLOCK.finditer(text):
        if re.search(r"^figure\b", block["code"], re.MULTILINE):
            between = re.match(r"\s*!\[", text[block.end() :])
            assert between, block["code"].splitlines()[-1]


# Publishing -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_and_forms_are_yaml_with_what_their_readers_ask_for(path):
    yaml = pytest.importorskip("yaml")
    found = yaml.safe_load(path.read_text())
    if path.parent.name == "workflows":
        assert {"name", "concurrency", "permissions", "jobs"} <= set(found)
        for name, job in found["jobs"].items():
            assert "timeout-minutes" in job, name
            for step in job["steps"]:
                assert ("run" in step) != ("uses" in step)
        if path.stem == "release":
            assert not found["concurrency"]["cancel-in-progress"]
    elif path.stem != "config":
        assert {"name", "description", "body"} <= set(found)
        ids = [field["id"] for field in found["body"]]
        assert len(ids) == len(set(ids))


def test_what_the_workflows_call_is_there():
    made = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for path in WORKFLOWS:
        text = path.read_text()
        for name in re.findall(r"\.ci/[\w.]+", text):
            assert (ROOT / name).exists(), f"{path.name}: {name}"
        for goal in re.findall(r"run: make (\w+)", text):
            assert goal in made, f"{path.name}: make {goal}"


def test_the_recipe_asks_for_what_the_package_asks_for():
    yaml = pytest.importorskip("yaml")
    recipe = yaml.safe_load((ROOT / ".ci" / "recipe.yaml").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = {item.replace(" ", "") for item in recipe["requirements"]["run"]}
    assert asked - {"python>=${{python_min}}"} == set(project["dependencies"])
    ((command, place),) = project["scripts"].items()
    assert recipe["build"]["python"]["entry_points"] == [f"{command} = {place}"]


def test_the_citation_is_of_this_version():
    yaml = pytest.importorskip("yaml")
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert cited["version"] == project["version"] == cavity.__version__
    assert cited["license"] == project["license"]
    assert cited["authors"] == project["authors"]


def test_a_wheel_is_looked_through():
    check = script("check_wheel")
    wanted = check.expected(ROOT)
    assert {"cavity/__init__.py", "cavity/py.typed", "cavity/factors/deprecation.py"} <= wanted
    assert not any("tests" in name or "docs" in name for name in wanted)
    info = [
        f"cavity-9.9.dist-info/{n}" for n in ("METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE")
    ]
    assert check.faults_of_names([*wanted, *info], wanted, "9.9") == []
    found = check.faults_of_names([*(wanted - {"cavity/py.typed"}), *info, "tests/conftest.py"], wanted, "9.9")
    assert found == ["missing: cavity/py.typed", "not ours: tests/conftest.py"]
    assert check.faults_of_versions(ROOT, cavity.__version__, f"v{cavity.__version__}") == []
    assert len(check.faults_of_versions(ROOT, "9.9", None)) == 4


def test_links_of_the_readme_are_whole_on_a_package_index():
    whole = script("absolute_links").absolute
    address = "https://example.org/a/b"
    assert whole("![x](docs/a.png)", address, "v1") == f"![x]({address}/raw/v1/docs/a.png)"
    assert whole("see [y](docs/a.md#b)", address, "v1") == f"see [y]({address}/blob/v1/docs/a.md#b)"
    assert whole("[z](https://other.org) [w](#here)", address, "v1") == "[z](https://other.org) [w](#here)"
    readme = whole((ROOT / "README.md").read_text(), address, "v1")
    assert re.findall(r"\]\((?!https://)", readme) == []


def test_the_first_use_runs_the_example_of_the_readme():
    first = script("first_use")
    code, said = first.BLOCK.findall((ROOT / "README.md").read_text())[0]
    assert "cv.infer(" in code
    assert said.startswith("skills: ")
    assert first.words("a 1.5e-3 b\n") == ["a#b"]


def test_the_readme_is_short():
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) <= 100
    assert len(re.findall(r"!\[", text)) == 3


def test_a_site_is_put_beside_those_of_other_versions(tmp_path):
    """On a repository of its own: main is dev, a tag is its number and stable, a branch is refused."""

    def git(*arguments, place):
        return subprocess.run(
            ["git", *arguments], cwd=place, check=True, capture_output=True, text=True, timeout=30
        ).stdout

    def publish(name, text):
        (tmp_path / "site").mkdir(exist_ok=True)
        (tmp_path / "site" / "index.html").write_text(text)
        command = [str(ROOT / ".ci" / "publish_site.sh"), str(tmp_path / "site"), name]
        return subprocess.run(
            command, cwd=tmp_path / "copy", env=environment, capture_output=True, timeout=30
        ).returncode

    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "HOME": str(tmp_path)}
    git("init", "--quiet", "--bare", "remote", place=tmp_path)
    git("clone", "--quiet", "remote", "copy", place=tmp_path)
    name = ["-c", "user.name=a", "-c", "user.email=a@localhost"]
    git(*name, "commit", "--quiet", "--allow-empty", "--message", "first", place=tmp_path / "copy")
    assert publish("main", "one") == 0
    assert publish("v0.7.0", "two") == 0
    assert publish("main", "three") == 0
    assert publish("some-branch", "four") == 2
    show = lambda path: git("show", f"gh-pages:{path}", place=tmp_path / "remote")  # noqa: E731
    assert [show(f"{place}/index.html") for place in ("dev", "0.7.0", "stable")] == ["three", "two", "two"]
    assert "url=stable/" in show("index.html")
    assert all(f'"{place}/"' in show("versions.html") for place in ("dev", "0.7.0", "stable"))


def test_the_recipe_has_the_digest_of_what_was_built():
    fill = script("fill_recipe")
    recipe = (ROOT / ".ci" / "recipe.yaml").read_text()
    found = fill.filled(recipe, b"an sdist")
    digest = hashlib.sha256(b"an sdist").hexdigest()
    assert f'sha256: "{digest}"\n' in found
    assert len(found.splitlines()) == len(recipe.splitlines())
    with pytest.raises(SystemExit, match="0 places"):
        fill.filled("source:\n", b"an sdist")
