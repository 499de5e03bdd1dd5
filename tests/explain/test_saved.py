"""Explainers in files: the same answers in another process, and no file that is not what it says."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from ocf import Explainer
from ocf.errors import ModelError
from ocf.explain.saved import MAGIC, save

from .people import refused

PROGRAM = """
import sys, pandas as pd
from ocf import Explainer
explainer = Explainer.load(sys.argv[1], trust_pickle=True)
found = explainer.explain(pd.read_pickle(sys.argv[2]), target="granted")
print([e.cost for e in found], all(e.verified for e in found))
"""


@pytest.fixture
def file(credit, tmp_path: Path) -> Path:
    _, _, explainer = credit
    explainer.save(tmp_path / "model.ocf")
    return tmp_path / "model.ocf"


def test_another_process_gives_the_same_answers(credit, file: Path, tmp_path: Path) -> None:
    table, model, explainer = credit
    rows = refused(table, model).iloc[:3]
    rows.to_pickle(tmp_path / "rows")
    answer = subprocess.run(
        [sys.executable, "-c", PROGRAM, file, tmp_path / "rows"], capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == f"{[e.cost for e in explainer.explain(rows, target='granted')]} True"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model.ocf", "rows"]


def test_only_a_trusted_file_is_unpickled(file: Path) -> None:
    with pytest.raises(ModelError, match="trust_pickle=True"):
        Explainer.load(file)


def test_files_that_are_none(file: Path, tmp_path: Path) -> None:
    whole = file.read_bytes()
    other = tmp_path / "other.ocf"
    head, versions, rest = whole.split(b"\n", 2)
    older = json.dumps({**json.loads(versions), "numpy": "1.0", "lightgbm": "2.0"}).encode()
    for content, words in (
        (b"", "is no prepared model"),
        (b"something else\n" + rest, "is no prepared model"),
        (MAGIC + b"no JSON\n" + rest, "is damaged"),
        (MAGIC + b"[]\n" + rest, "is damaged"),
        (whole[: len(whole) // 2], "is damaged"),
        (head + b"\n" + versions + b"\n", "is damaged"),
        (head + b"\n" + older + b"\n" + rest, r"numpy 1\.0 \(here: .*lightgbm 2\.0"),
    ):
        other.write_bytes(content)
        with pytest.raises(ModelError, match=words):
            Explainer.load(other, trust_pickle=True)
    with pytest.raises(ModelError, match="cannot be read"):
        Explainer.load(tmp_path / "absent.ocf", trust_pickle=True)


def test_what_cannot_be_saved_leaves_the_old_file(tmp_path: Path) -> None:
    x = pd.DataFrame({"a": np.linspace(-1, 1, 40), "b": np.linspace(3, 1, 40)})
    model = make_pipeline(FunctionTransformer(lambda t: t), RandomForestClassifier(3, max_depth=2, random_state=0))
    explainer = Explainer(model.fit(x, (x.a > 0).astype(int)), data=x, monotone={"functiontransformer": "increasing"})
    (tmp_path / "model.ocf").write_bytes(b"old")
    with pytest.raises(ModelError, match="cannot be saved"):
        explainer.save(tmp_path / "model.ocf")
    assert (tmp_path / "model.ocf").read_bytes() == b"old"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_folder_that_there_is_not_is_named_by_the_path_that_was_given(tmp_path: Path) -> None:
    path = tmp_path / "no" / "such" / "model.ocf"
    with pytest.raises(FileNotFoundError) as error:
        save(None, path)  # type: ignore[arg-type]
    assert error.value.filename == str(path)
