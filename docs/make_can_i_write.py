"""Writes the programs of `docs/can-i-write.md` from the models of `benchmarks/first_hour`.

Run from a checkout: python docs/make_can_i_write.py, or make vocabulary. `tests/test_can_i_write.py` fails where the
page is not current, or a program is longer than it says, and runs the programs.
"""

import ast
import importlib.util
import inspect
import textwrap
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "can-i-write.md"
BEGIN, END = "<!-- made by make_can_i_write.py: begin -->\n", "<!-- made by make_can_i_write.py: end -->\n"
FOLDER = ROOT / "benchmarks" / "first_hour"
FILES = ("infernet", "stan", "bugs", "first_tries")
LONGEST = 25  # lines of a program, its data apart
DATA = 4  # lines of a statement without any cavity in it, beyond which it is data that are shown elsewhere
SYSTEMS = {  # by the words of a title, in this order; the rest are classics
    "Infer.NET": "Infer.NET's tutorials and pages",
    "MBML": "Model-Based Machine Learning, the book",
    "RxInfer": "RxInfer's examples",
    "PyMC": "PyMC's examples",
    "posteriordb": "posteriordb",
    "Stan": "Stan's manual",
    "Volume": "The BUGS volumes",
}
CLASSICS = "Classics"


def programs():
    """All models as (title, text of the program, file), by section."""
    sections = {title: [] for title in (*SYSTEMS.values(), CLASSICS)}
    for file in FILES:
        if not (FOLDER / f"{file}.py").exists():
            continue
        module = _module(FOLDER / f"{file}.py")
        for function in module.MODELS:
            title = " ".join(function.__doc__.split("Refused:")[0].split())
            section = next((SYSTEMS[word] for word in SYSTEMS if word in title), CLASSICS)
            sections[section].append((title, program(function, module), file))
    return {title: found for title, found in sections.items() if found}


def _module(path):
    """A module that is no part of the package, under a name that no other has."""
    spec = importlib.util.spec_from_file_location(f"first_hour_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def program(function, module):
    """The statements of a function that makes a model and its data, as one would type them."""
    source = textwrap.dedent(inspect.getsource(function))
    *statements, last = ast.parse(source).body[0].body[1:]
    if isinstance(last.value, ast.Call):  # of another function of the file, which makes the model
        helper = textwrap.dedent(inspect.getsource(getattr(module, last.value.func.id))).rstrip()
        call = ast.get_source_segment(source, last.value)
        return f"{helper}\n\n\nm, data = {call}\nposterior = cv.infer(m, data)"
    shown = [_segment(source, statement) for statement in statements if not _is_data(source, statement)]
    data, *options = (textwrap.dedent(_segment(source, own)) for own in last.value.elts[1:])
    if len(data.splitlines()) > DATA or "numbers(" in data:
        shown.append("data = ...  # see the file")
        data = "data"
    given = "".join(f", **{own}" for own in options)
    return "\n".join([*shown, f"posterior = cv.infer(m, {data}{given})"])


def _segment(source, node):
    """The text of a statement or expression, its further lines moved to the margin as well."""
    lines = source.splitlines()[node.lineno - 1 : node.end_lineno]
    lines[-1] = lines[-1].encode()[: node.end_col_offset].decode()
    indent = len(lines[0]) - len(lines[0].lstrip())
    first = lines[0].encode()[node.col_offset :].decode()
    return "\n".join([first, *(line[indent:] for line in lines[1:])])


def _is_data(source, statement):
    own = _segment(source, statement)
    return "cv." not in own and "m." not in own and len(own.splitlines()) > DATA


def renewed():
    """The text of the page with its programs made anew."""
    text, made = PAGE.read_text(), []
    for title, found in programs().items():
        made.append(f"## {title}\n")
        for name, own, file in found:
            made.append(f"{name} (`benchmarks/first_hour/{file}.py`)\n\n{textwrap.indent(own, '    ')}\n")
    return text[: text.index(BEGIN)] + BEGIN + "\n" + "\n".join(made) + "\n" + text[text.index(END) :]


if __name__ == "__main__":
    PAGE.write_text(renewed())
