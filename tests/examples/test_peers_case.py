"""Across files: what the adapters are told of a model and make of it, and the optimum that answers are held against."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder

from ocf import Explainer
from ocf.compare.programs import question, record
from ocf.explain.answers import failed
from ocf.support import json_records
from ocf.support.json_dtypes import plain
from ocf.verify.files import verify_file

TESTS = Path(__file__).parents[1]
PEERS = TESTS.parent / "examples" / "peers"

#: Categories of the table; the levels of the second are numbers.
WORDS: dict[str, list[Any]] = {"housing": ["free", "own", "rent"], "region": [3, 10, 20]}

SETTINGS = {"region": {"kind": "categorical"}}

#: Adapter -> the distribution that it names with a version.
DISTRIBUTIONS = {"oceanpy": "oceanpy", "treecf": "treecf", "dice": "dice-ml", "alibi": "alibi"}

#: How far from zero amounts may be: float32 holds steps of 2**-7 there, with which costs differ visibly.
FAR = 1e5

Modules = Mapping[str, Mapping[str, object]]
Ask = Callable[[dict[str, Any]], dict[str, Any]]


def lending(offset: float = 0.0, n: int = 120, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """A table of numbers, categories, zeros and ones, and who is granted a loan."""
    rng = np.random.default_rng(seed)
    swing = rng.normal(size=n)
    table = pd.DataFrame(
        {
            "amount": offset + 3 * swing,
            "housing": rng.choice(WORDS["housing"], n),
            "late": rng.integers(0, 2, n),
            "region": rng.choice(WORDS["region"], n),
            "share": rng.random(n),
        }
    )
    better = (table["housing"] == "own") * 0.6 + (table["region"] == 10) * 0.6 - table["late"] * 0.6
    trust = 0.2 * swing + better + 0.5 * table["share"] + rng.normal(scale=0.1, size=n)
    return table, (trust > np.quantile(trust, 0.65)).to_numpy(int)


def lender(table: pd.DataFrame, granted: Any, trees: int = 4, depth: int = 4, seed: int = 0) -> Pipeline:
    """A forest behind the one-hot encoding of the categories."""
    words = [name for name in WORDS if name in table]
    levels = [sorted(table[name].unique()) for name in words]
    encode = ColumnTransformer(
        [("levels", OneHotEncoder(categories=levels, sparse_output=False), words)],
        remainder="passthrough",
        verbose_feature_names_out=False,
    )
    forest = RandomForestClassifier(trees, max_depth=depth, random_state=seed)
    return Pipeline([("encode", encode), ("forest", forest)]).fit(table, granted)


@dataclass(frozen=True)
class Told:
    """What an adapter said, and what becomes of it.

    Attributes
    ----------
    said : dict
    record : dict
        As `ocf.compare.programs.record` makes it.
    problems : list of str
        What the check finds wrong with it.
    """

    said: dict[str, Any]
    record: dict[str, Any]
    problems: list[str]

    @property
    def status(self) -> str:
        return self.said["status"]

    @property
    def cost(self) -> float:
        return self.record["cost"]

    @property
    def point(self) -> dict[str, Any]:
        return self.record["counterfactual"]["values"]


class Desk:
    """A model with the files that a comparison gives to a program.

    Parameters
    ----------
    folder : Path
    model : estimator
    table : DataFrame
    settings : mapping, optional
    """

    def __init__(self, folder: Path, model: Any, table: pd.DataFrame, settings: Any = SETTINGS) -> None:
        self.folder, self.model, self.table = folder, model, table
        self.explainer = Explainer(model, data=table, features={k: v for k, v in settings.items() if k in table})
        joblib.dump(model, folder / "model.joblib")
        table.to_csv(folder / "data.csv", index=False)

    def about(self, **options: Any) -> dict[str, Any]:
        """The first line of the protocol."""
        line = {
            "protocol": 1,
            "model": str(self.folder / "model.joblib"),
            "data": str(self.folder / "data.csv"),
            "features": self.explainer.space.to_dict(),
            "threads": 2,
            "seed": 7,
            "options": options,
        }
        return json.loads(json.dumps(line))

    def waiting(self, target: int, count: int) -> list[pd.DataFrame]:
        """The first rows without the target."""
        places = np.flatnonzero(self.model.predict(self.table) != target)[:count]
        return [self.table.iloc[[place]] for place in places]

    def optimum(self, row: pd.DataFrame, target: int) -> dict[str, Any]:
        """What ocf answers, with a proof."""
        found = self.explainer.explain(row, target=target, break_ties=False)[0].to_dict()
        assert found["status"] in ("optimal", "infeasible")
        return found

    def asked(self, row: pd.DataFrame, target: int) -> tuple[dict[str, Any], Any]:
        """The question in the words of an answer, and the problem."""
        problem = self.explainer.problem(row, target)
        blank = failed(row.index[0], row, "unknown", "", problem=problem).to_dict()
        return blank | {"target": plain(problem.target.named(self.explainer.classes))}, problem

    def line(self, row: pd.DataFrame, target: int, limit: float = 60.0) -> dict[str, Any]:
        """The line of the protocol that asks about a row."""
        return json.loads(json.dumps(question(self.asked(row, target)[0], limit)))

    def asking(self, name: str, **options: Any) -> Ask:
        """What answers in an adapter of a library that has a stand-in."""
        version, ask = adapter(f"with_{name}").prepare(self.about(**options))
        assert version == f"{DISTRIBUTIONS[name]} 1.2.3"
        return ask

    def put(self, ask: Ask, row: pd.DataFrame, target: int, limit: float = 60.0) -> Told:
        """Ask an adapter about a row."""
        return self.told(json.loads(json.dumps(ask(self.line(row, target, limit)))), row, target)

    def told(self, said: dict[str, Any], row: pd.DataFrame, target: int) -> Told:
        """What becomes of an answer."""
        asked, problem = self.asked(row, target)
        found = record(said, asked, problem)
        json_records.dumps(found, self.folder / "answer.json")
        ((_, verification),) = verify_file(self.folder / "answer.json", self.explainer.model, None)
        return Told(said, found, list(verification.problems))

    def costs(self, points: pd.DataFrame, row: pd.DataFrame, target: int) -> np.ndarray:
        """What ocf says that points cost."""
        return self.explainer.problem(row, target).costs(self.explainer.space.from_frame(points))

    def beyond(self, best: dict[str, Any], row: pd.DataFrame, far: float) -> dict[str, Any]:
        """The point of an answer with its changed numbers so much farther from the row, in scales."""
        point, moved = dict(best["counterfactual"]["values"]), {}
        for feature in self.explainer.space.features:
            value, own = point[feature.name], row[feature.name].item()
            if feature.kind == "numeric" and value != own:
                moved[feature.name] = value + far * feature.scale * (1 if value > own else -1)
        return point | moved

    def run(self, python: str, name: str, rows: list[pd.DataFrame], target: int, **options: Any) -> list[Told]:
        """Run an adapter as a program."""
        lines = [self.about(**options), *(self.line(row, target) for row in rows)]
        done = subprocess.run(
            [python, str(PEERS / f"{name}.py")],
            input="".join(json.dumps(line) + "\n" for line in lines),
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )
        ready, *answers = map(json.loads, done.stdout.splitlines())
        assert set(ready) == {"version"}
        return [self.told(said, row, target) for said, row in zip(answers, rows, strict=True)]


def install(monkeypatch: pytest.MonkeyPatch, folder: Path, distribution: str, modules: Modules) -> None:
    """Put stand-ins of a library in place of its modules, where adapters find them."""
    monkeypatch.syspath_prepend(PEERS)
    for name, content in modules.items():
        module = ModuleType(name)
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, name, module)
    written(folder, distribution, "", {})
    monkeypatch.syspath_prepend(folder)


def written(folder: Path, distribution: str, source: str, modules: Modules) -> None:
    """Write a package that is found by other processes: its modules take what they hold from ``MODULES`` of a test."""
    for name in modules:
        inside = folder.joinpath(*name.split("."))
        inside.mkdir(parents=True, exist_ok=True)
        text = f"from examples.{source} import MODULES\nglobals().update(MODULES[{name!r}])\n"
        (inside / "__init__.py").write_text(text, encoding="utf-8")
    info = folder / f"{distribution.replace('-', '_')}-1.2.3.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.2.3\n", encoding="utf-8")


def adapter(name: str) -> ModuleType:
    """An adapter, loaded anew."""
    spec = importlib.util.spec_from_file_location(name, PEERS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def environment(monkeypatch: pytest.MonkeyPatch, modules: Modules, folder: str, module: str) -> str:
    """Python that has a library itself: of the folder ``PEERS``, or this one; skips where there is none."""
    for name in modules:
        monkeypatch.delitem(sys.modules, name)
    python = Path(os.environ.get("PEERS", "~/peers")).expanduser() / folder / "bin" / "python"
    if python.exists():
        return str(python)
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:  # a folder of that name on the path is no library
        pytest.skip(f"{module} is not installed, and there is no {python}")
    return sys.executable


@pytest.fixture(autouse=True)
def at_peers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(PEERS)


def test_columns_are_those_of_the_forest(tmp_path: Path) -> None:
    from peer import Case, cost, scales

    table, granted = lending()
    desk = Desk(tmp_path, lender(table, granted), table)
    case = Case(desk.about())
    columns = [(c.feature["name"], c.level) for c in case.columns]
    indicators = [(name, level) for name, levels in WORDS.items() for level in levels]
    assert columns == [*indicators, ("amount", None), ("late", None), ("share", None)]
    assert case.binary == [True] * 6 + [False, True, False]
    pd.testing.assert_frame_equal(case.data, table)
    ranges = {name: float(np.ptp(table[name])) for name in ("amount", "late", "share")}
    of_numbers = [1 / ranges[name] for name in ("amount", "late", "share")]
    assert scales(case.columns).tolist() == pytest.approx([0.5] * 6 + of_numbers, rel=1e-12)
    for row, point in zip(table.index[:10], table.index[10:20], strict=True):
        before, after = case.encoded(table.loc[[row, point]])
        own = desk.costs(table.loc[[point]], table.loc[[row]], 1)[0]
        assert cost(case.columns, before, after) == pytest.approx(own, rel=1e-12)


def test_thresholds_are_those_of_the_trees(tmp_path: Path) -> None:
    from peer import Case

    table, granted = lending(FAR)
    desk = Desk(tmp_path, lender(table, granted), table)
    thresholds = Case(desk.about()).thresholds
    trees = [tree.tree_ for tree in desk.model[-1].estimators_]
    splits = {(int(f), float(t)) for tree in trees for f, t in zip(tree.feature, tree.threshold, strict=True) if f >= 0}
    assert {(k, t) for k, own in enumerate(thresholds) for t in own} == splits
    assert all((np.diff(own) > 0).all() for own in thresholds)
    assert len(thresholds[6]) > 2


@pytest.mark.parametrize("late", [int, bool, float])
def test_the_table_is_read_as_it_was_written(late: type, tmp_path: Path) -> None:
    from peer import Case

    table, granted = lending()
    odd = {"free": "None", "own": "NA", "rent": "1"}
    table = table.assign(
        late=table["late"].astype(late),
        housing=[odd[word] for word in table["housing"]],
        region=[f"0{number}" for number in table["region"]],
    )
    desk = Desk(tmp_path, lender(table, granted), table, {})
    case = Case(desk.about())
    assert case.data.to_numpy().tolist() == table.to_numpy().tolist()
    assert (case.encoded(case.data) == case.encoded(table)).all()
    row = desk.waiting(1, 1)[0]
    again = case.table(desk.line(row, 1)["row"])
    assert (case.encoded(again) == case.encoded(row)).all()


def test_changes_are_said_in_the_words_of_the_table(tmp_path: Path) -> None:
    from peer import Case, as_row

    table, granted = lending()
    desk = Desk(tmp_path, lender(table, granted), table)
    case = Case(desk.about())
    row = table.iloc[[0]]
    point = row.assign(housing="rent" if row["housing"].item() != "rent" else "own", late=1 - row["late"])
    for changed in (row, point, point.assign(region=10, amount=0.25), point.assign(region=20, share=1 / 3)):
        before, after = case.encoded(row)[0], case.encoded(changed)[0]
        said = as_row(case, before, after)
        differ = {name: changed[name].item() for name in table if changed[name].item() != row[name].item()}
        assert json.loads(json.dumps(said)) == differ
