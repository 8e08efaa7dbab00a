"""Sphinx: Markdown pages, tutorials that are run while the site is built, and an API reference from the docstrings.

`CAVITY_DOCS_TUTORIALS=off` shows the tutorials without running them, for whoever works on a page of text.
"""

import importlib
import os
import pkgutil
import re
import shutil
from pathlib import Path

import cavity

project = "cavity"
author = "The cavity developers"
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.mathjax", "sphinxcontrib.bibtex"]
myst_enable_extensions = ["dollarmath", "colon_fence"]
bibtex_bibfiles = ["references.bib"]
version = release = cavity.__version__

html_theme = "furo"
html_title = f"cavity {version}"
html_static_path = ["_static"]
html_css_files = ["cavity.css"]
templates_path = ["_templates"]
# Where the published site has its list of versions, seen from a version's root: the workflow that publishes it says so.
html_context = {"versions_page": os.environ.get("CAVITY_DOCS_VERSIONS", "")}
html_sidebars = {
    "**": [
        *(f"sidebar/{part}.html" for part in ("scroll-start", "brand", "search", "navigation", "scroll-end")),
        "versions.html",
    ]
}
exclude_patterns = ["_build", "_templates", "api/*.inc"]

# A tutorial is run from its beginning at each build, and one that raises an error stops the build.
nb_execution_mode = os.environ.get("CAVITY_DOCS_TUTORIALS", "force")
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_execution_show_tb = True
nb_merge_streams = True

# Addresses that are asked for by `make links`; publishers turn away what is no browser.
linkcheck_timeout = 20
linkcheck_retries = 2
linkcheck_ignore = [r"https://doi\.org/.*", r"https?://localhost.*"]
linkcheck_anchors = False
myst_heading_anchors = 3
smartquotes = False  # a prime is a transpose
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
# A name of the front door is documented where it is defined too: both are right targets.
suppress_warnings = ["ref.python"]
if os.environ.get("CAVITY_DOCS_TUTORIALS") == "off":
    suppress_warnings += ["myst-nb.lexer"]  # the kernel tells the language, and none is asked

ROOMS = ("models", "engine", "compiler", "factors")


def modules(room):
    """Names of a room's modules, the room first; empty ones are left out."""
    package = importlib.import_module(f"cavity.{room}")
    found = [package.__name__]
    found += [item.name for item in pkgutil.walk_packages(package.__path__, package.__name__ + ".")]
    return [name for name in found if importlib.import_module(name).__doc__]


def page(title, lines):
    return "\n".join([title, "=" * len(title), "", *lines, ""])


def is_package(name):
    return hasattr(importlib.import_module(name), "__path__")


def write_reference(app):
    """One page a package, one section a module: `docs/api/` is made anew at each build."""
    folder = Path(app.srcdir) / "api"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for room in ROOMS:
        sections = {}
        for name in modules(room):
            members = [] if is_package(name) else ["   :members:", "   :show-inheritance:"]
            section = [name, "-" * len(name), "", f".. automodule:: {name}", *members, ""]
            home = name if is_package(name) else name.rpartition(".")[0]
            sections.setdefault(home, []).extend(section)
        for home, lines in sections.items():
            below = [f"   {name.removeprefix('cavity.')}" for name in sections if name != home]
            inner = [".. toctree::", "   :maxdepth: 1", "", *below, ""] if home == f"cavity.{room}" else []
            (folder / f"{home.removeprefix('cavity.')}.rst").write_text(page(home, [*inner, *lines]))


def escape(text):
    """Plain text with `code` in single backticks, as reStructuredText; code passes, everything else is only text."""
    parts = re.split(r"(``.+?``|`[^`]+`)", text, flags=re.DOTALL)
    return "".join(
        f"``{part.strip('`')}``" if part.startswith("`") else re.sub(r"([*|_\\`])", r"\\\1", part) for part in parts
    )


def docstring_as_text(app, what, name, obj, options, lines):
    """Our docstrings are prose: paragraphs flow, whatever is indented or listed keeps its lines."""
    result = []
    for paragraph in re.split(r"\n\s*\n", "\n".join(lines).strip("\n")):
        rows = paragraph.split("\n")
        laid_out = any(row.startswith((" ", "- ", "* ")) for row in rows)
        code = all(row.startswith("    ") for row in rows)
        if code:
            result += ["::", "", *rows, ""]
        else:
            text = [f"| {escape(row)}" for row in rows] if laid_out else escape(paragraph).split("\n")
            result += [*text, ""]
    lines[:] = result


def setup(app):
    app.connect("builder-inited", write_reference)
    app.connect("autodoc-process-docstring", docstring_as_text)
