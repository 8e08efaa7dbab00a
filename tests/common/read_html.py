"""Reads a page or a part of one as a browser would, and notes what stands in it."""

import dataclasses
from html.parser import HTMLParser

VOID = {"meta", "br", "hr", "img", "input", "link"}


@dataclasses.dataclass
class Element:
    """One element: its name, its attributes, what it stands in, and the text inside it."""

    name: str
    attributes: dict
    above: list
    text: str = ""


class Page(HTMLParser):
    """The elements of a page in order; ValueError where one is closed that is not open, or is left open."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements, self.open, self.declared = [], [], ""
        self.feed(text)
        self.close()
        if self.open:
            raise ValueError(f"<{self.open[-1].name}> is not closed")

    def handle_decl(self, decl):
        self.declared = decl

    def handle_starttag(self, tag, attrs):
        if len(dict(attrs)) != len(attrs):
            raise ValueError(f"<{tag}> has an attribute twice: {attrs}")
        element = Element(tag, dict(attrs), list(self.open))
        self.elements.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_endtag(self, tag):
        if not self.open or self.open[-1].name != tag:
            raise ValueError(f"</{tag}> closes {self.open[-1].name if self.open else 'nothing'}")
        self.open.pop()

    def handle_data(self, data):
        for element in self.open:
            element.text += data

    def all(self, *names):
        """The elements of these names."""
        return [element for element in self.elements if element.name in names]

    def values(self, attribute):
        """The values of an attribute, in order."""
        return [element.attributes[attribute] for element in self.elements if attribute in element.attributes]
