"""A tiny suite, its results, and solvers that lie, hang, crash and eat memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ocf.compare import Results, Suite, client, parse_suite, run_suite, runner
from ocf.compare.client import close_all
from ocf.solvers import CELL_SOLVERS

TINY = """
name = "tiny"
limits = { time = 2000, memory = "2 GB", grace = 2 }
report = { shift = 0.1 }

[[instances]]
data = "breast_cancer"
trees = [2, 4]
depth = 2
rows = 2

[[methods]]
solver = ["highs", "box"]
"""

#: A solver that does in its own process whatever its option says.
LIAR = """
import math, os, time
from dataclasses import replace
from ocf.cells.incumbent import find_incumbent
from ocf.solvers.result import SolveResult, Status

class Liar:
    name, version = "liar", "0"

    def refuses(self, cells):
        return ""

    def check_options(self, raw):
        pass

    def solve_cells(self, cells, options=None, *, cutoff=math.inf, confirm=None, relaxation=None, **asked):
        return getattr(self, options.options["lie"])(cells, cutoff)

    def worse(self, cells):
        # a good point without the changed cells of another good point
        part, open_ = cells.partition, cells.open.copy()
        chosen = part.offsets[:-1] + find_incumbent(cells).cells
        open_[chosen[cells.cost[chosen] > 0]] = False
        return find_incumbent(replace(cells, open=open_))

    def early(self, cells, cutoff):
        found = self.worse(cells)
        return SolveResult(Status.OPTIMAL, found.cells, found.cost, found.cost, 0.0, solver="liar")

    def bound(self, cells, cutoff):
        found = self.worse(cells)
        return SolveResult(Status.FEASIBLE, found.cells, found.cost, 0.999 * found.cost, 0.001, solver="liar")

    def infeasible(self, cells, cutoff):
        return SolveResult(Status.INFEASIBLE, bound=math.inf, solver="liar")

    def answer(self, **changes):
        from ocf.explain.explanation import Explanation
        honest = Explanation.to_dict
        Explanation.to_dict = lambda e: honest(e) | {k: v(e) for k, v in changes.items()}
        return SolveResult(Status.INFEASIBLE, bound=math.inf, message="cutoff", solver="liar")

    def cost(self, cells, cutoff):
        return self.answer(cost=lambda e: e.cost / 2, bound=lambda e: e.cost / 2)

    def target(self, cells, cutoff):
        return self.answer(target=lambda e: 0)

    def hang(self, cells, cutoff):
        time.sleep(10_000)

    def crash(self, cells, cutoff):
        os.abort()

    def leave(self, cells, cutoff):
        os._exit(3)

    def fail(self, cells, cutoff):
        raise ZeroDivisionError("oops")

    def eat(self, cells, cutoff):
        eaten = []
        while True:
            eaten.append(bytearray(b"x" * 20_000_000))
"""

#: Known to every Python that starts with it on its path, run servers among them.
SITE = 'from ocf.solvers import CELL_SOLVERS\nCELL_SOLVERS["liar"] = ("liar", "Liar")\n'


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Cache of prepared cases for this test session only."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OCF_CACHE", str(folder))
        # servers cost seconds: keep them from one test to the next
        patch.setattr(runner, "close_all", lambda: None)
        patch.setattr(client, "MOST_IDLE", 6)
        yield folder
    close_all()


@pytest.fixture(scope="session")
def tiny(cache: Path) -> Suite:
    return parse_suite(TINY, "tiny")


@pytest.fixture(scope="session")
def tiny_folder(tiny: Suite, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with the results of the tiny suite."""
    folder = tmp_path_factory.mktemp("tiny")
    run_suite(tiny, folder, command="ocf compare tiny.toml")
    return folder


@pytest.fixture(scope="session")
def liar_code(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the solver "liar" and of what makes it known."""
    code = tmp_path_factory.mktemp("code")
    (code / "liar.py").write_text(LIAR)
    (code / "sitecustomize.py").write_text(SITE)
    return code


@pytest.fixture(scope="session")
def liar_servers() -> Iterator[list[client.Client]]:
    """Servers that know the liar and wait for the next test."""
    servers: list[client.Client] = []
    yield servers
    for server in servers:
        server.close()


@pytest.fixture
def with_liar(
    cache: Path,
    tmp_path: Path,
    liar_code: Path,
    liar_servers: list[client.Client],
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[[str], Results]:
    """Run a suite in which the solver "liar" exists."""
    monkeypatch.setenv("PYTHONPATH", str(liar_code))
    monkeypatch.syspath_prepend(liar_code)
    monkeypatch.setitem(CELL_SOLVERS, "liar", ("liar", "Liar"))
    monkeypatch.setattr(client, "idle", liar_servers)  # servers of other tests do not know the liar
    return lambda text: run_suite(parse_suite(text, "liars"), tmp_path / "results")
