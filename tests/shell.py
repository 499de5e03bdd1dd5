"""Lines of a shell as the manual shows them, run one by one in the current folder."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path

from command_line import Answer


def shell_lines(blocks: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Lines of blocks of the language ``sh`` that call ``ocf``.

    Parameters
    ----------
    blocks : iterable of (language, text)
    """
    for language, text in blocks:
        if language == "sh":
            yield from (line for line in text.splitlines() if line.startswith("ocf "))


def paste(line: str) -> Answer:
    """Run a line; one that fails is an error."""
    words, _, file = line.partition(" > ")
    answer = Answer(*shlex.split(words, comments=True)[1:])
    assert answer.code == 0, f"{line}: {answer.err}"
    if file:
        Path(shlex.split(file, comments=True)[0]).write_text(answer.out, encoding="utf-8")
    return answer
