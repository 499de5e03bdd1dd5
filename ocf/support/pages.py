"""Web pages from templates: everything is escaped, and nothing is asked of the network."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment


def render(room: str, template: str, **values: Any) -> str:
    """Text of a template.

    Parameters
    ----------
    room : str
        Package whose folder ``templates`` holds it, such as ``"ocf.explain"``; it may extend and include the templates
        of `ocf.support`.
    template : str
        Name of the file.
    **values
        What the template names.
    """
    return _environment(room).get_template(template).render(values)


def table_fragment(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]], notes: Sequence[str] = ()) -> str:
    """HTML of a table for a notebook.

    Parameters
    ----------
    title : str
    heads : sequence of str
        Names of the columns.
    rows : sequence of sequences of str
    notes : sequence of str, optional
        Sentences between the title and the table.
    """
    return render("ocf.support", "table.html.j2", title=title, heads=heads, rows=rows, notes=notes)


@cache
def _environment(room: str) -> Environment:
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=ChoiceLoader([PackageLoader(room), PackageLoader("ocf.support")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
