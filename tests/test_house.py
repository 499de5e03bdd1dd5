"""The rules of the house: short functions, unique class names, documented parameters, and tests that mirror the rooms.

What lints say better (layers, complexity, private names) is in `pyproject.toml`; here is the rest, over the text alone.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TESTS = ROOT / "tests"
ROOMS = ("ocf", "formulations", "solvers")

#: How files end that are installed beside the sources.
DATA = (".toml", ".j2")

#: Folders of tests that belong to no room.
BESIDE_ROOMS = ("examples", "oracle")
#: How the docstring of a test file begins that is not about one source file.
ACROSS = "Across files: "


#: Lines without docstrings: what documents is no reason to cut what it documents.
LONGEST_FUNCTION = 60
LONGEST_CLASS = 250
DEEPEST_NESTING = 4

Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def sources() -> tuple[tuple[str, str, ast.Module], ...]:
    """Module name, text and tree of every file that is installed."""
    found = []
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
            text = path.read_text(encoding="utf-8")
            found.append((name, text, ast.parse(text)))
    return tuple(found)


def definitions(body: list[ast.stmt], within: str) -> Iterator[tuple[str, Function | ast.ClassDef]]:
    """Functions and classes with their dotted names, those inside others too."""
    for node in body:
        if isinstance(node, Function | ast.ClassDef):
            name = f"{within}.{node.name}"
            yield name, node
            yield from definitions(node.body, name)
        else:
            for part in ("body", "orelse", "finalbody", "handlers"):
                inner = getattr(node, part, [])
                for block in [inner] if part != "handlers" else [h.body for h in inner]:
                    yield from definitions(block, within)


def nesting(node: ast.AST, depth: int = 0) -> int:
    """How deep blocks lie in blocks; an `elif` lies beside its `if`."""
    deepest = depth
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Function | ast.ClassDef | ast.Lambda):
            continue
        opens = isinstance(child, ast.If | ast.For | ast.While | ast.With | ast.Try | ast.Match)
        beside = isinstance(node, ast.If) and isinstance(child, ast.If) and node.orelse == [child]
        deepest = max(deepest, nesting(child, depth + (opens and not beside)))
    return deepest


def code_lines(node: Function | ast.ClassDef) -> int:
    """Lines of a definition without its docstring and those of the definitions inside it."""
    within = [n for n in ast.walk(node) if isinstance(n, Function | ast.ClassDef)]
    docstrings = [n.body[0] for n in within if ast.get_docstring(n, clean=False) is not None]
    return node.end_lineno - node.lineno + 1 - sum(d.end_lineno - d.lineno + 1 for d in docstrings)


def is_too_large(node: Function | ast.ClassDef) -> bool:
    """Whether a definition exceeds the limits of its kind."""
    if isinstance(node, ast.ClassDef):
        return code_lines(node) > LONGEST_CLASS
    return code_lines(node) > LONGEST_FUNCTION or nesting(node) > DEEPEST_NESTING


def gives_a_reason(node: Function | ast.ClassDef, lines: list[str]) -> bool:
    """Whether a comment ``# long: reason`` stands above a definition or before its first statement."""
    first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
    return any("# long: " in line for line in lines[first - 2 : node.body[0].lineno - 1])


def arguments(node: Function, in_class: bool) -> list[str]:
    """Names of the arguments that a caller gives."""
    given = [a.arg for a in (*node.args.posonlyargs, *node.args.args)]
    if in_class and not any(isinstance(d, ast.Name) and d.id == "staticmethod" for d in node.decorator_list):
        given = given[1:]
    given += [a.arg for a in node.args.kwonlyargs]
    return given + [a.arg for a in (node.args.vararg, node.args.kwarg) if a is not None]


def is_overload(node: Function) -> bool:
    """Whether a definition only declares types."""
    return any(isinstance(d, ast.Name) and d.id == "overload" for d in node.decorator_list)


def is_command(node: Function) -> bool:
    """Whether a definition is a command of the command line, or the app itself."""
    return any(ast.unparse(d) in ("guarded", "app.callback()") for d in node.decorator_list)


def public_functions(tree: ast.Module, module: str) -> Iterator[tuple[str, Function, bool]]:
    """Public functions of a module and public methods of its public classes, and whether each is a method."""
    for node in tree.body:
        if isinstance(node, Function) and is_command(node):
            continue  # typer shows its docstring as --help, where each argument has a help text of its own
        if isinstance(node, Function) and not node.name.startswith("_") and not is_overload(node):
            yield f"{module}.{node.name}", node, False
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            for method in node.body:
                if isinstance(method, Function) and not method.name.startswith("_") and not is_overload(method):
                    yield f"{module}.{node.name}.{method.name}", method, True


def documented(node: Function) -> set[str]:
    """Names that the Parameters section of a docstring lists."""
    text = ast.get_docstring(node) or ""
    _, found, section = text.partition("Parameters\n----------\n")
    names: set[str] = set()
    for line in section.splitlines() if found else ():
        if line and set(line) == {"-"}:
            break
        if line and not line.startswith(" "):
            names |= {name.strip().lstrip("*") for name in line.partition(" : ")[0].split(",")}
    return names


def room_of(folder: Path) -> Path:
    """Where the sources are that the tests of a folder are about."""
    inside = folder.relative_to(TESTS)
    return ROOT / inside if inside.parts[0] in ROOMS else ROOT / "ocf" / inside


def is_private(name: str) -> bool:
    """Whether a name is one file's own; neither ``__init__`` nor a protocol's ``_repr_html_`` is."""
    return re.fullmatch(r"_[A-Za-z0-9]\w*(?<!_)", name) is not None


def private_names() -> set[str]:
    """Private functions, classes, variables and attributes of all rooms; fitted models of libraries have some alike."""
    names: set[str] = set()
    for _, _, tree in sources():
        for node in ast.walk(tree):
            if isinstance(node, Function | ast.ClassDef):
                names.add(node.name)
            elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
                names.add(node.id if isinstance(node, ast.Name) else node.attr)
    lint = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["ruff"]["lint"]
    return {name for name in names if is_private(name)} - set(lint["flake8-self"]["extend-ignore-names"])


def names_in_strings(tree: ast.Module) -> Iterator[str]:
    """Names in what patches are given and in statements about ocf that another process runs."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("attr"):
            for argument in node.args:
                yield from re.findall(r"\w+", ast.unparse(argument))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "ocf" in node.value:
            yield from re.findall(r"\w+", node.value)


def names_read(tree: ast.Module) -> set[str]:
    """Names that a test takes from elsewhere: attributes, imports, and those in strings."""
    names = set(names_in_strings(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and not (isinstance(node.value, ast.Name) and node.value.id == "self"):
            names.add(node.attr)
        elif isinstance(node, ast.ImportFrom):
            names |= {part for alias in node.names for part in (*(node.module or "").split("."), alias.name)}
    return names


def test_functions_and_classes_are_short_or_say_why_not() -> None:
    too_large = {
        name
        for module, text, tree in sources()
        for name, node in definitions(tree.body, module)
        if is_too_large(node) and not gives_a_reason(node, text.splitlines())
    }
    assert sorted(too_large) == [], "cut these, or say above each why not: # long: reason"


def test_reasons_stand_only_where_something_is_long() -> None:
    idle = {
        name
        for module, text, tree in sources()
        for name, node in definitions(tree.body, module)
        if gives_a_reason(node, text.splitlines()) and not is_too_large(node)
    }
    assert sorted(idle) == [], "take the comment # long: away"


def test_every_class_name_stands_once() -> None:
    names = Counter(
        node.name
        for module, _, tree in sources()
        for _, node in definitions(tree.body, module)
        if isinstance(node, ast.ClassDef)
    )
    assert sorted({name for name, count in names.items() if count > 1}) == [], "rename these"


def test_public_functions_document_their_parameters() -> None:
    lacking = {
        name: missing
        for module, _, tree in sources()
        for name, node, in_class in public_functions(tree, module)
        if len(given := arguments(node, in_class)) > 1 and (missing := sorted(set(given) - documented(node)))
    }
    assert lacking == {}, "list these arguments in a Parameters section, with shapes and units"


@pytest.mark.parametrize(
    ("text", "deep"),
    [
        ("def f():\n    if a:\n        pass\n    elif b:\n        pass\n    elif c:\n        pass", 1),
        ("def f():\n    for a in b:\n        if a:\n            while c:\n                pass", 3),
        ("def f():\n    if a:\n        pass\n    else:\n        if b:\n            pass\n        c()", 2),
    ],
)
def test_nesting_counts_blocks(text: str, deep: int) -> None:
    assert nesting(ast.parse(text).body[0]) == deep


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("def f():\n    'one'\n    return 1", 2),
        ('def f():\n    """one\n\n    two\n    """\n    # three\n\n    return 1', 4),
        ('class A:\n    """one"""\n    def f():\n        """two\n        """\n        return 1', 3),
        ('def f():\n    x = """one\n    two"""\n    return x', 4),
    ],
)
def test_docstrings_are_no_lines_of_code(text: str, lines: int) -> None:
    assert code_lines(ast.parse(text).body[0]) == lines


def test_files_of_tests_are_named_after_what_they_test() -> None:
    strangers = []
    for path in sorted(TESTS.glob("*/**/test_*.py")):
        if path.relative_to(TESTS).parts[0] in BESIDE_ROOMS:
            continue
        room, name = room_of(path.parent), path.stem.removeprefix("test_")
        about = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        of_the_room_itself = room.is_dir() and name == room.name
        if not ((room / f"{name}.py").is_file() or of_the_room_itself or about.startswith(ACROSS)):
            strangers.append(str(path.relative_to(TESTS)))
    assert strangers == [], f"name these after one source file, or begin their docstrings with {ACROSS!r}"


def test_no_test_reads_a_private_name() -> None:
    private = private_names()
    read = {
        str(path.relative_to(TESTS)): sorted(names)
        for path in sorted(TESTS.rglob("*.py"))
        if (names := names_read(ast.parse(path.read_text(encoding="utf-8"))) & private)
    }
    assert read == {}, "test through what is public, or make these public"


@pytest.mark.parametrize(
    "text",
    [
        "module._theirs()",
        "from a.b import _theirs",
        "from a._theirs import b",
        "patch.setattr('a.b._theirs', 1)",
        "getattr(module, '_theirs')",
        "CODE = 'from ocf.a import _theirs; _theirs()'",
    ],
)
def test_private_names_are_found_wherever_they_are_read(text: str) -> None:
    assert {name for name in names_read(ast.parse(text)) if is_private(name)} == {"_theirs"}


@pytest.mark.parametrize("text", ["self._theirs = 1", "def _theirs(): pass", "frame['_theirs']", "model.__dict__"])
def test_names_of_a_test_itself_are_its_own(text: str) -> None:
    assert not {name for name in names_read(ast.parse(text)) if is_private(name)}


def test_every_folder_of_the_sources_is_installed() -> None:
    """What no list names is missing from a wheel, though tests of a clone find it."""
    said = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    folders = {path.parent for room in ROOMS for path in (ROOT / room).rglob("*") if path.suffix in (".py", *DATA)}
    names = {".".join(folder.relative_to(ROOT).parts) for folder in folders}
    assert {name if name.startswith("ocf") else f"ocf.{name}" for name in names} == set(said["packages"])
    for package, patterns in said["package-data"].items():
        folder = ROOT.joinpath(*package.split("."))
        files = {path.name for path in folder.iterdir() if path.suffix in DATA or path.name == "py.typed"}
        assert files == {path.name for pattern in patterns for path in folder.glob(pattern)}
