"""Matplotlib's figures as pieces of a web page that take their colours from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import StringIO
from typing import Any
from xml.etree import ElementTree

from ocf.support.optional import optional

#: The same figure gives the same bytes, and its letters stay letters.
SETTINGS = {"svg.hashsalt": "ocf", "svg.fonttype": "none", "font.sans-serif": ["DejaVu Sans"]}

#: Matplotlib's black is the ink of the page.
INK = {"#000000": "currentColor"}


def inline_svg(
    figure: Any,
    title: str,
    *,
    colours: Mapping[str, str] | None = None,
    tooltips: Mapping[str, Sequence[str]] | None = None,
) -> str:
    """A figure as an SVG element on no ground of its own.

    Parameters
    ----------
    figure : matplotlib Figure
    title : str
        What it shows, for who cannot see it.
    colours : mapping of str to str, optional
        What the page says for a colour: ``{"#4477aa": "var(--m0)"}``.
    tooltips : mapping of str to sequence of str, optional
        By the gid of a collection, the words of each of its marks.

    Returns
    -------
    str
        The same for the same figure: it holds no date, no random names, and no addresses.

    Raises
    ------
    MissingDependencyError
        Without matplotlib.
    """
    matplotlib = optional("matplotlib", "report", "a figure of a report")
    text = StringIO()
    with matplotlib.rc_context(SETTINGS):
        figure.savefig(text, format="svg", metadata={"Date": None, "Title": title}, transparent=True)
    root = ElementTree.fromstring(text.getvalue())
    _tidy(root)
    for gid, words in (tooltips or {}).items():
        marks = root.find(f".//g[@id='{gid}']")
        assert marks is not None
        for mark, said in zip(marks.findall("path"), words, strict=True):
            ElementTree.SubElement(mark, "title").text = said
    _drop_unused_names(root)
    svg = ElementTree.tostring(root, encoding="unicode")
    for colour, word in {**INK, **(colours or {})}.items():
        svg = svg.replace(colour, word)
    return svg


def _tidy(root: ElementTree.Element) -> None:
    """Drop metadata, and the namespaces that HTML does not want."""
    for parent in list(root.iter()):
        for child in [c for c in parent if c.tag.endswith("}metadata")]:
            parent.remove(child)
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
        element.attrib = {name.rpartition("}")[2]: value for name, value in element.attrib.items()}
        element.tail = None
    root.set("role", "img")
    root.set("fill", "currentColor")  # of letters, whose black matplotlib leaves unsaid


def _drop_unused_names(root: ElementTree.Element) -> None:
    """Keep no id that nothing refers to: figures of one page would share them."""
    text = ElementTree.tostring(root, encoding="unicode")
    for element in root.iter():
        name = element.get("id")
        if name and f"#{name}" not in text:
            del element.attrib["id"]
