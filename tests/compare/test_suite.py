"""Suite files: what they may say, and what is said when they say something else."""

from __future__ import annotations

from pathlib import Path

import pytest

from ocf.compare import built_in, load_suite, parse_suite
from ocf.compare.methods import Method
from ocf.compare.suite import all_methods, limited, part
from ocf.errors import ProblemError

from .suites import METHOD, suite


def test_lists_are_crossed() -> None:
    s = suite('trees = [1, 2]\nseed = [0, 1]\nnorm = ["l1", { l0 = 1 }]\nmodel = ["random_forest", "xgboost"]')
    assert len(s.grids) == 16
    assert {(g.recipe.trees, g.recipe.seed, g.recipe.model) for g in s.grids} == {
        (t, r, m) for t in (1, 2) for r in (0, 1) for m in ("random_forest", "xgboost")
    }
    named = suite(
        methods='[[methods]]\nformulation = ["interval", "ocean"]\nsolver = ["highs", "box"]\nreduce = [true, false]'
    )
    assert [m.name for m in named.methods] == [
        "interval/highs",
        "interval/highs unreduced",
        "box",
        "box unreduced",
        "ocean/highs",
        "ocean/highs unreduced",
    ]


def test_constraints_and_targets() -> None:
    s = suite('constraints = [{}, { name = "two", features_to_vary = ["a", "b"] }, { probability = 0.7 }]')
    assert [(g.ask.name, dict(g.ask.settings)) for g in s.grids] == [
        ("", {}),
        ("two", {"features_to_vary": ["a", "b"]}),
        ("constraints 3", {"probability": 0.7}),
    ]
    assert s.grids[1].ask.label == "to 1 l1 two"
    several = parse_suite('instances = [{ data = "iris", target = [0, [1, 2]] }]\n' + METHOD, "a")
    assert [g.ask.target for g in several.grids] == [0, [1, 2]]


def test_names_of_methods() -> None:
    assert Method("ocean", "scip", threads=2, mip_gap=0.01, seed=3).name == "ocean/scip 2 threads gap 0.01 seed 3"
    assert Method(solver="box", options={"node_limit": 5}).name == "box node_limit=5"
    assert Method("interval", "highs", cuts="root").name == "interval/highs cuts root"
    assert Method("interval", "highs", cuts="root").key != Method("interval", "highs").key
    assert Method("ocean", "box") == Method("interval", "box")
    assert len(all_methods()) == len({m.name for m in all_methods()}) >= 5


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = [", "a.toml is not valid TOML"),
        ("instances = [{ data = 1979-05-27 }]", "a.toml: at instances[0].data: 1979-05-27 is a date or time"),
        ("x = " + "[" * 5000, "a.toml is nested more than 64 levels deep"),
        ('instances = [{ data = "iris", norm = { l1 = "x" } }]', "norm = {'l1': 'x'} should be"),
        ("limit = { time = 3 }", "a.toml: unknown key 'limit' (did you mean 'limits'?)"),
        ("limits = { tim = 3 }", "[limits]: unknown key 'tim' (did you mean 'time'?)"),
        ("limits = { time = -3 }", "time = -3 should be a positive number of seconds"),
        ('limits = { memory = "much" }', "memory = 'much' should be an amount such as \"4 GB\""),
        ("report = { shift = 0 }", "shift = 0 should be a positive number of seconds"),
        ("instances = 3", "instances = 3 should be tables, each [[instances]]"),
        ("", "a.toml yields no run: it has no [[instances]]"),
        ('instances = [{ data = "iris" }]', "a.toml yields no run: it has no [[methods]]"),
        ("instances = [{}]", "[[instances]] 1: 'data' is missing"),
        ('instances = [{ data = "iris", tree = 3 }]', "unknown key 'tree' (did you mean 'trees'?)"),
        ('instances = [{ data = "iris", trees = [] }]', "trees = [] should be a whole number of at least 1"),
        ('instances = [{ data = "iris", trees = 0 }]', "trees = 0 should be"),
        ('instances = [{ data = "iris", rows = -1 }]', "rows = -1 should be a number of rows"),
        ('instances = [{ data = "iris", model = "random_forrest" }]', "did you mean 'random_forest'?"),
        ('instances = [{ data = "iris", model = "m.json" }]', "needs a table as its data, not 'iris'"),
        ('instances = [{ data = "t.csv" }]', "t.csv needs a target_column to train random_forest on"),
        (
            'instances = [{ data = "iris", constraints = [{ features_to_varry = [] }] }]',
            "did you mean 'features_to_vary'?",
        ),
        (
            'instances = [{ data = "iris", constraints = [{ n_explanations = 2 }] }]',
            "unknown key 'n_explanations'",
        ),
        ('methods = [{ solver = "highz" }]', "unknown solver 'highz' (did you mean 'highs'?)"),
        ('methods = [{ formulation = "oceans" }]', "unknown formulation 'oceans' (did you mean 'ocean'?)"),
        ('methods = [{ solvr = "highs" }]', "unknown key 'solvr' (did you mean 'solver'?)"),
        ('methods = [{ name = "a", solver = ["highs", "scip"] }]', "'a' would name 2 methods"),
        ('methods = [{ name = "a" }, { name = "a", solver = "scip" }]', "two methods are called 'a'"),
    ],
)
def test_what_means_nothing_is_refused(text: str, words: str) -> None:
    with pytest.raises(ProblemError) as error:
        parse_suite(text, "a.toml")
    assert words in str(error.value)


def test_files(tmp_path: Path) -> None:
    with pytest.raises(ProblemError, match="there is no suite 'smokes' \\(did you mean 'smoke'"):
        load_suite("smokes")
    with pytest.raises(ProblemError, match="cannot read the suite"):
        load_suite(tmp_path)
    path = tmp_path / "mine.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ProblemError, match="is not UTF-8 text"):
        load_suite(path)
    path.write_text('instances = [{ data = "t.csv", target_column = "y" }]\n' + METHOD)
    assert load_suite(path).grids[0].recipe.data == str(tmp_path / "t.csv")
    assert load_suite(path).name == "mine"


@pytest.mark.parametrize("name", built_in())
def test_built_in_suites_can_be_read(name: str) -> None:
    s = load_suite(name)
    assert s.name == name
    assert s.description.endswith(".")


def test_fingerprint_is_of_what_bears_on_a_result() -> None:
    s = suite("trees = [1, 2]")
    assert s.fingerprint == suite("trees = [1, 2]\nrows = 3", top='name = "other"\ndescription = "x"').fingerprint
    assert s.fingerprint == suite("trees = [1, 2]", methods='[[methods]]\nsolver = "scip"').fingerprint
    assert part(s, sets=["iris"]).fingerprint == s.fingerprint
    assert s.fingerprint != suite("trees = [1, 3]").fingerprint
    assert s.fingerprint != limited(s, time=3).fingerprint
    assert part(limited(s, memory=5), methods=["box"]).fingerprint == limited(s, memory=5).fingerprint


def test_parts() -> None:
    s = parse_suite('instances = [{ data = ["iris", "wine"], target = 1 }]\n' + METHOD, "a")
    assert [g.recipe.data for g in part(s, sets=["wine"]).grids] == ["wine"]
    with pytest.raises(ProblemError, match="the suite has no data set 'win' \\(did you mean 'wine'"):
        part(s, sets=["win"])
    with pytest.raises(ProblemError, match="the suite has no method 'bax' \\(did you mean 'box'"):
        part(s, methods=["bax"])
