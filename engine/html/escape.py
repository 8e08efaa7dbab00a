"""Text that is already HTML, and everything else escaped on its way into it: names come from users."""

from __future__ import annotations

import html
import re

_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")  # that no page may hold


class Markup(str):
    """HTML. What is not of this type is text, and `escaped` where it meets HTML."""

    __slots__ = ()


def escaped(content: object) -> Markup:
    """HTML that shows `content` as it is written; what is `Markup` stays as it is."""
    if isinstance(content, Markup):
        return content
    return Markup(html.escape(_FORBIDDEN.sub("\ufffd", str(content))))


def joined(*parts: object) -> Markup:
    """The parts one after the other, in lines of their own."""
    return Markup("\n".join(map(escaped, parts)))


def tag(name: str, *content: object, **attributes: object) -> Markup:
    """An element: `tag("p", "text", class_="note")`.

    In the names of attributes an underscore is a hyphen, and one at the end is left out, so that Python's own words can
    be written. An attribute that is None is left out, and an element without content is closed at once in SVG.
    """
    told = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escaped(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{name}{told}>{''.join(map(escaped, content))}</{name}>")
