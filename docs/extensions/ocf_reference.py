"""Directives that write the reference of the command line and of TOML files from the program itself."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, ClassVar, get_type_hints

from docutils import nodes
from numpydoc.docscrape import ClassDoc, FunctionDoc
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


def cell_text(text: str) -> str:
    """Text as it may stand in a cell of a Markdown table."""
    return text.replace("|", "\\|").replace("\n", " ")


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Lines of a Markdown table."""
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


# -- command line ------------------------------------------------------------------------------------------------


def commands(group: Any, words: str = "ocf") -> Iterator[tuple[str, Any]]:
    """(what is typed, command) of all commands, those within groups too."""
    for name, command in group.commands.items():
        yield f"{words} {name}", command
        if getattr(command, "commands", None):
            yield from commands(command, f"{words} {name}")


def row_of_option(option: Any) -> tuple[str, str]:
    """Names and meaning of an option or argument."""
    names = option.opts + option.secondary_opts if option.param_type_name == "option" else [option.metavar]
    shown = ", ".join(f"`{name}`" for name in names)
    if option.param_type_name == "option" and option.metavar and not option.is_flag:
        shown += f" {option.metavar}"
    default = option.default
    said = f" Default: {default}." if isinstance(default, str | int | float) and not isinstance(default, bool) else ""
    variable = f" Also by the environment variable `{option.envvar}`." if option.envvar else ""
    return shown, cell_text(option.help or "") + said + variable


def command_page() -> str:
    """Markdown of all commands."""
    from typer.main import get_command

    from ocf.cli import app

    parts = []
    for typed, command in commands(get_command(app)):
        given = [p for p in command.params if p.name != "help"]
        arguments = [p for p in given if p.param_type_name == "argument"]
        options = [p for p in given if p.param_type_name == "option"]
        words = ["COMMAND"] if getattr(command, "commands", None) else [p.metavar or p.name.upper() for p in arguments]
        usage = " ".join([typed, *words, "[OPTIONS]" if options else ""])
        parts += [f"## {typed}", inspect.cleandoc(command.help or ""), f"```text\n{usage.strip()}\n```"]
        if given:
            parts.append(table(("argument or option", "meaning"), [row_of_option(p) for p in [*arguments, *options]]))
    return "\n\n".join(parts)


# -- TOML --------------------------------------------------------------------------------------------------------


def description(annotation: Any) -> str:
    """What the schema says that a value should be."""
    found = [m.description for m in getattr(annotation, "__metadata__", ()) if getattr(m, "description", None)]
    return found[-1] if found else "a number"


def documented(place: str) -> dict[str, str]:
    """First sentence on each parameter of a function or class, ``module:name``, or of its attributes."""
    module, _, name = place.partition(":")
    thing = import_module(module)
    for part in name.split("."):
        thing = getattr(thing, part)
    found = ClassDoc(thing, config={"show_class_members": False}) if isinstance(thing, type) else FunctionDoc(thing)
    sections = found["Parameters"] + found.get("Attributes", [])
    names = {one: " ".join(p.desc) for p in sections for one in p.name.split(", ") if p.desc}
    return {name: re.split(r"(?<=[.;]) (?=[A-Z`])", text.replace("``", "`"))[0] for name, text in names.items()}


def settings_table(schema: type, meanings: Mapping[str, str]) -> str:
    """Markdown of the keys of a section: what each should be, and what it means."""
    hints = get_type_hints(schema, include_extras=True)
    rows = [(f"`{key}`", cell_text(meanings.get(key, "")), cell_text(description(h))) for key, h in hints.items()]
    return table(("key", "meaning", "value"), rows)


# -- directives --------------------------------------------------------------------------------------------------


class CommandLine(SphinxDirective):
    """``ocf-commands``: every command with its arguments and options."""

    def run(self) -> list[nodes.Node]:
        """Sections of the commands."""
        return self.parse_text_to_nodes(command_page(), allow_section_headings=True)


class Settings(SphinxDirective):
    """``ocf-settings MODULE:SCHEMA``: every key of a section of a TOML file.

    What a key means is said by the lines ``KEY: MEANING`` within, or else by the docstring of ``:from: MODULE:NAME``.
    """

    required_arguments: ClassVar = 1
    has_content: ClassVar = True
    option_spec: ClassVar = {"from": str}

    def run(self) -> list[nodes.Node]:
        """Table of the keys."""
        module, _, name = self.arguments[0].partition(":")
        schema = getattr(import_module(module), name)
        said = dict(line.split(": ", 1) for line in self.content if line)
        if unknown := said.keys() - get_type_hints(schema):
            raise self.error(f"{name} has no {', '.join(sorted(unknown))}")
        meanings = (documented(self.options["from"]) if "from" in self.options else {}) | said
        return self.parse_text_to_nodes(settings_table(schema, meanings))


class Constraints(SphinxDirective):
    """``ocf-constraints``: what may be said of each kind of constraint in a problem file."""

    def run(self) -> list[nodes.Node]:
        """Table of the kinds."""
        from ocf.problem.constraints import keys_of
        from ocf.problem.problem_file import CONSTRAINTS

        rows = [(f"`{kind}`", ", ".join(f"`{key}`" for key in keys_of(kind))) for kind in CONSTRAINTS]
        return self.parse_text_to_nodes(table(("kind", "keys"), rows))


def setup(app: Sphinx) -> Mapping[str, bool]:
    """Register the directives."""
    app.add_directive("ocf-commands", CommandLine)
    app.add_directive("ocf-constraints", Constraints)
    app.add_directive("ocf-settings", Settings)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
