"""LightGBM's text models: damaged ones are refused, with the place, before the library sees them."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ocf.errors import MissingDependencyError, ModelError, UnsupportedModelError
from ocf.readers import lightgbm as reader
from ocf.readers import read_model
from ocf.readers.conformance import check_conformance
from ocf.readers.lightgbm_format import ModelText, category_columns, parse, read_text

from .boosted import table
from .lightgbm_models import lgb, train


def infos(*columns: str) -> ModelText:
    return ModelText({"feature_infos": " ".join(columns)}, [])


@pytest.mark.parametrize(
    ("columns", "sizes", "found"),
    [
        (["[0:1]", "-1:0:2:1", "[-3:2.5]"], [3], [1]),
        (["none", "-1:0:1", "[0:1]"], [2], [1]),  # the column that the library has treated as categories
        (["[0:2]", "0:1", "[0.5:2]"], [3, 2], [0, 1]),  # an ordered one before it
        (["[0:2]", "[0:1]", "0:1"], [3, 2], None),  # either of two columns could be the ordered one
        (["[0:2]", "[0.5:1]", "0:1:7"], [3], [0]),  # the third was named as categories, and holds its own codes
        (["[0:5]"], [3], None),
        (["[0:1]"] * 9 + ["0:1"] * 9 + ["[0:1]"] * 9, [2] * 9, list(range(9, 18))),  # flags and codes beside them
        (["[0:1]"] * 9 + ["0:1"] * 9 + ["[0:1]"] * 9, [2] * 10, None),
        (["0:1"] * 200, [2] * 200, list(range(200))),
    ],
)
def test_columns_of_categories(columns: list[str], sizes: list[int], found: list[int] | None) -> None:
    lists = [list(range(n)) for n in sizes]
    assert list(category_columns(infos(*columns), lists)) == (found or [])


@pytest.fixture(scope="module")
def saved() -> bytes:
    return train("multiclass", rounds=1).model_to_string().encode()


@pytest.mark.parametrize("part", [0.0, 0.001, 0.01, 0.2, 0.4])
def test_truncated_files(saved: bytes, part: float, tmp_path: Path) -> None:
    path = tmp_path / "model.txt"
    path.write_bytes(saved[: int(saved.index(b"end of trees") * part / 0.4)])
    with pytest.raises(ModelError, match=r"model\.txt: .*save") as caught:
        reader.load(path)
    assert not isinstance(caught.value, UnsupportedModelError)


def test_wrong_tree_sizes_never_reach_the_library(saved: bytes, tmp_path: Path) -> None:
    (tmp_path / "model.txt").write_bytes(saved.replace(b"leaf_count", b"leaf_counts", 1))
    with pytest.raises(ModelError, match="not of the sizes"):
        reader.load(tmp_path / "model.txt")


def test_binary_files(tmp_path: Path) -> None:
    (tmp_path / "model.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ModelError, match="no text file"):
        reader.load(tmp_path / "model.txt")


@given(st.text(max_size=200))
def test_random_text(text: str) -> None:
    with pytest.raises(ModelError):
        read_text(parse(text))


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_damaged_files_are_read_or_refused(saved: bytes, data: st.DataObject) -> None:
    """A changed byte may change a number, but never breaks the reader in another way."""
    damaged = bytearray(saved[: saved.index(b"feature_importances")])
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.sampled_from(b"0123456789-. =\nex"))
    with contextlib.suppress(ModelError):
        read_text(parse(damaged.decode()))


def test_the_library_is_named_when_it_is_missing(saved: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "model.txt").write_bytes(saved)
    monkeypatch.setitem(__import__("sys").modules, "lightgbm", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'ocf\[lightgbm\]'"):
        reader.load(tmp_path / "model.txt")


LGB_DAMAGE: dict[str, tuple[str, str, str]] = {
    "wrong num_cat": ("num_cat=1", "num_cat=0", r"0 sets for 1 categorical splits, at Tree=0\.num_cat"),
    "more sets than splits": ("num_cat=1", "num_cat=2", r"2 sets for 1 categorical splits"),
    "empty num_cat": ("num_cat=1", "num_cat=", r"Tree=0\.num_cat"),
    "empty objective": ("objective=binary sigmoid:1", "objective=", "the objective ''"),
    "no sigmoid": ("objective=binary sigmoid:1", "objective=binary", "the objective 'binary'"),
    "other parameters": ("objective=binary sigmoid:1", "objective=binary sigmoid:1 sqrt", "the objective"),
    "empty leaf_weight": ("leaf_weight=", "leaf_weight=\nx=", r"0 entries where 3 belong, at Tree=0\.leaf_weight"),
    "words in leaf_weight": ("leaf_weight=", "leaf_weight=x", r"Tree=0\.leaf_weight\[0\]"),
    "empty feature_infos": ("feature_infos=", "feature_infos=\nx=", "0 feature_infos"),
    "words in feature_infos": ("feature_infos=[", "feature_infos=[x", r"feature_infos\[0\]"),
    "a list in feature_infos": ("feature_infos=[", "feature_infos=1:x [", "feature_infos"),
    "a line after the trees": ("end of trees\n", "end of trees\nTree=9\n", "'Tree=9' after the trees"),
    "a broken parameter": ("[data: ]", "[da", "after the trees has no meaning"),
    "a line at the end": ("pandas_categorical:null", "pandas_categorical:null\nzero", "'zero' after the trees"),
    "categories that are none": ("pandas_categorical:null", "pandas_categorical:[1]", "no list of lists"),
    "categories twice": ("pandas_categorical:null", "pandas_categorical:[[1,1]]", "holds one twice"),
    "deep categories": ("pandas_categorical:null", "pandas_categorical:" + "[" * 100_000, "are no JSON"),
    "an empty line in a tree": ("split_gain=", "\nsplit_gain=", "of the form 'key=value'"),
    "a key twice": ("is_linear=0", "is_linear=0\nis_linear=0", "'is_linear' comes twice in Tree=0"),
    "unknown line of a tree": ("is_linear=0", "is_linear=0\nslope=0", "does not know the line 'slope' in Tree=0"),
    "unknown line of the header": ("label_index=0", "label_index=0\nslope=0", "'slope' in the header"),
    "no label_index": ("label_index=0\n", "", "a line of the header"),
    "underscores": ("num_leaves=3", "num_leaves=0_3", r"'0_3' is no whole number, at Tree=0\.num_leaves"),
    "another number": ("Tree=0", "Tree=1", r"this is tree 0, at Tree=0\.Tree"),
    "huge count of leaves": ("num_leaves=3", "num_leaves=1099511627776", "entries where"),
    "huge count of features": ("max_feature_idx=2", "max_feature_idx=1099511627776", "train on fewer"),
    "feature out of range": ("split_feature=", "split_feature=9 ", r"Tree=0\.split_feature"),
    "unknown decision": ("decision_type=", "decision_type=64 \nx=", "1 entries where 2 belong"),
    "NaN for a leaf": ("leaf_value=", "leaf_value=nan ", "leaf_value"),
    "unknown version": ("version=v4", "version=v9", "'v9'"),
}


@pytest.fixture(scope="module")
def small_text() -> str:
    """One tree of a numeric and a categorical split."""
    x = table()[:, :]
    y = ((x[:, 1] % 2 == 0) ^ (x[:, 0] > 0.3)).astype(int) | (x[:, 1] == 3)
    settings = {"num_leaves": 3, "min_data_in_leaf": 5, "min_data_per_group": 1, "cat_smooth": 1, "num_threads": 1}
    settings |= {"objective": "binary", "verbose": -1, "max_cat_to_onehot": 1}
    text = lgb.train(settings, lgb.Dataset(x, y, categorical_feature=[1]), 1).model_to_string()
    return text if "pandas_categorical" in text else text + "\npandas_categorical:null\n"


def resized(text: str) -> str:
    """Announce the trees' sizes anew."""
    blocks = (text.split("\nend of trees")[0] + "\n").split("Tree=")[1:]
    sizes = " ".join(str(len(f"Tree={block}".encode())) for block in blocks)
    return "".join(
        f"tree_sizes={sizes}\n" if line.startswith("tree_sizes=") else line for line in text.splitlines(keepends=True)
    )


def test_the_small_text_is_read(small_text: str, tmp_path: Path) -> None:
    (tmp_path / "model.txt").write_text(resized(small_text))
    check_conformance(read_model(reader.load(tmp_path / "model.txt")))


@pytest.mark.parametrize("damage", LGB_DAMAGE)
def test_lightgbm_damage_is_named_by_its_place(damage: str, small_text: str, tmp_path: Path) -> None:
    old, new, message = LGB_DAMAGE[damage]
    assert small_text.count(old) >= 1
    path = tmp_path / "model.txt"
    path.write_text(resized(small_text.replace(old, new, 1)))
    with pytest.raises(ModelError, match=message) as caught:
        reader.load(path)
    assert str(caught.value).startswith(str(path))
