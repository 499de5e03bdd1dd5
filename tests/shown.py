"""Pages that show what their snippets print; ``python -m shown``, in the folder tests, writes them anew."""

from __future__ import annotations

import io
import os
import re
import tempfile
from contextlib import chdir, redirect_stdout
from pathlib import Path

# who proves what is shown as on a machine where the kernels are compiled
os.environ.setdefault("OCF_COMPILE_FIRST", "1")

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
README = ROOT / "README.md"

#: Folders of the manual that are made, not written.
MADE = ("_build", "gallery", "tutorial", "smoke-report")

#: The pages of the manual.
PAGES = [page for page in sorted(DOCS.rglob("*.md")) if not set(MADE) & set(page.relative_to(DOCS).parts)]

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path) -> list[tuple[str, str]]:
    """(language, text) of each fenced block, in order."""
    return _BLOCK.findall(page.read_text(encoding="utf-8"))


def runs(page: Path) -> bool:
    """Whether a page has snippets."""
    return any(language == "python" for language, _ in blocks(page))


def run(page: Path, *, apart: bool = False) -> str:
    """Run the snippets of a page.

    Parameters
    ----------
    page : Path
    apart : bool
        Whether each snippet is a program of its own; otherwise all of them are one.

    Returns
    -------
    str
        The page, in which each block of the language ``text`` holds what the snippet before it has printed.
    """
    namespace: dict[str, object] = {}
    printed = ""

    def replaced(block: re.Match[str]) -> str:
        nonlocal namespace, printed
        language, content = block.groups()
        if language == "python":
            namespace = {} if apart else namespace
            with redirect_stdout(io.StringIO()) as out:
                exec(content, namespace)  # running the page is the point
            printed = "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())
        return f"```text\n{printed}```" if language == "text" else block.group()

    return _BLOCK.sub(replaced, page.read_text(encoding="utf-8"))


def main() -> None:
    """Write all pages anew whose snippets print something else by now."""
    os.environ.setdefault("MPLBACKEND", "agg")
    for page in [README, *filter(runs, PAGES)]:
        with tempfile.TemporaryDirectory() as folder, chdir(folder):
            text = run(page, apart=page == README)
        if text != page.read_text(encoding="utf-8"):
            page.write_text(text, encoding="utf-8")
            print(page.relative_to(ROOT))


if __name__ == "__main__":
    main()
