"""Problem files: reading and refusing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ocf import Explainer
from ocf.errors import ProblemError
from ocf.features.inference import SETTINGS
from ocf.problem.constraints import checked
from ocf.problem.problem_file import FeatureSettings, ProblemFile, read_problem_file
from ocf.support.documents import settings_of

from .borrowers import EXAMPLES

Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def make(text: str) -> Path:
        path = tmp_path / "problem.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return make


def test_every_setting_of_features_is_known_here() -> None:
    assert set(settings_of(FeatureSettings)) == set(SETTINGS)


def test_a_file_is_read(write: Write) -> None:
    path = write(
        """
        [solve]
        target = 1
        norm = { l0 = 0.1, l1 = 1 }
        features_to_vary = ["age"]
        time_limit = 60
        [solve.options]
        mip_heuristic_effort = 0.1
        [features.age]
        bounds = [18, 90]
        weight = [2.0, 1]
        [features."odd name"]
        columns = { a = "x", b = "y" }
        base = "none"
        """
    )
    assert read_problem_file(path) == ProblemFile(
        features={
            "age": {"bounds": [18, 90], "weight": [2.0, 1]},
            "odd name": {"columns": {"a": "x", "b": "y"}, "base": "none"},
        },
        solve={
            "target": 1,
            "norm": {"l0": 0.1, "l1": 1},
            "features_to_vary": ["age"],
            "time_limit": 60,
            "options": {"mip_heuristic_effort": 0.1},
        },
    )


def test_targets_of_all_kinds_are_read(write: Write) -> None:
    said = write('[solve]\ntarget = ["good", "fair"]\nprobability = 0.7')
    assert read_problem_file(said).solve == {"target": ["good", "fair"], "probability": 0.7}
    assert read_problem_file(write("[solve]\nat_most = 3")).solve == {"target": (None, 3)}
    for text, word in (
        ("at_least = 1\ntarget = 2", "bound the value of a regressor"),
        ("probability = 70", "up to 1"),
        ("target = []", "list of classes"),
    ):
        with pytest.raises(ProblemError, match=word):
            read_problem_file(write("[solve]\n" + text))


def test_an_empty_file_says_nothing(write: Write) -> None:
    assert read_problem_file(str(write(""))) == ProblemFile()


def test_the_mark_that_some_editors_put_first_does_not_matter(tmp_path: Path) -> None:
    path = tmp_path / "problem.toml"
    path.write_text("[solve]\nseed = 3\n", encoding="utf-8-sig")
    assert read_problem_file(path).solve == {"seed": 3}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[solve]\nseed = ", ["not valid TOML", "Invalid value"]),
        ("[feature.age]\nkind = 'integer'", ["'feature'", "did you mean 'features'"]),
        ("[[constraint]]\nleft = 1", ["'constraint'", "did you mean 'constraints'?"]),
        ("target = 1", ["'target'", "settings belong in [solve]"]),
        ("solve = 3", ["must be a section, [solve]"]),
        ("[features]\nage = 3", ["'age'", "[features.age]"]),
        ("[features.age]\nbound = [1, 2]", ["[features.age]", "'bound'", "did you mean 'bounds'"]),
        ("[features.'a b']\nsteps = 1", ['[features."a b"]', "did you mean 'step'"]),
        ("[solve]\nsolvr = 'highs'", ["[solve]", "did you mean 'solver'"]),
        ("[solve]\nweights = { age = 2 }", ["'weights'", "[features.NAME]"]),
        ("[solve]\ngap = 0.1", ["'gap'", "'mip_gap'"]),
        ("[features.age]\nkind = 'float'", ["kind = 'float'", "'numeric'", "'ordinal'"]),
        ("[features.age]\nbounds = ['2024-01-31']", ["[lowest, highest], numbers or dates"]),
        ("[features.age]\nbounds = [5, 1]", ["bounds = [5, 1]", "[lowest, highest]"]),
        ("[features.age]\nbounds = ['1', 2]", ["[lowest, highest]"]),
        ("[features.age]\nbounds = [nan, 2]", ["[lowest, highest]"]),
        ("[features.age]\nlevels = []", ["a list of all levels"]),
        ("[features.age]\nstep = 0", ["a positive number"]),
        ("[features.age]\nscale = true", ["a positive number"]),
        ("[features.age]\nweight = [1, 2, 3]", ["weight", "going down"]),
        ("[features.age]\nweight = -1", ["weight", "at least 0"]),
        ("[features.age]\ncolumns = {}", ["table of levels"]),
        ("[features.age]\ncolumns = 3", ["table of levels"]),
        ("[features.age]\nactionability = 'never'", ["'fixed'"]),
        ("[features.age]\npermitted_range = 3", ["list of levels"]),
        ("[solve]\nnorm = 1", ["norm = 1", "l0 = 0.1"]),
        ("[solve]\ntime_limit = '60'", ["time_limit = '60'", "seconds"]),
        ("[solve]\ntime_limit = 0", ["positive number"]),
        ("[solve]\nthreads = 1.5", ["whole number"]),
        ("[solve]\nreduce = 1", ["true or false"]),
        ("[solve]\nn_jobs = 0", ["-1 for one per core"]),
        ("[solve]\nfeatures_to_vary = 'age'", ["list of feature names"]),
        ("[plausibility]\nquantile = 1", ["quantile = 1", "below 1"]),
        ("[plausibility]\ntree = 1", ["[plausibility]", "did you mean 'trees'"]),
        ("plausibility = true", ["must be a section, [plausibility]"]),
        ("[solve]\nplausibility = true", ["'plausibility'", "[plausibility]"]),
        ("[solve]\noptions = { a = [1] }", ["own options"]),
        ("[solve]\nseed = 1\nseed = 2", ["not valid TOML"]),
        ("[solve]\nnorm = { l0 = 'x' }", ["norm = {'l0': 'x'}", "l0 = 0.1", "expected `float`, got `str`"]),
        ("[solve]\ntarget = ['a', [1]]", ["list of classes", "at [1]: expected `bool | int | float | str`"]),
        ("[features.age]\nweight = [1, -1]", ["going down", "at [1]: expected `float` >= 0.0"]),
        ("[features.age]\nbounds = [2]", ["[lowest, highest]"]),
        ("[features.age]\ncost = { points = 3 }", ["an amount per unit"]),
        ("[solve]\nat_least = nan", ["a number, the least value"]),
    ],
)
def test_mistakes_are_named_with_file_key_and_remedy(write: Write, text: str, words: list[str]) -> None:
    path = write(text)
    with pytest.raises(ProblemError) as caught:
        read_problem_file(path)
    for word in (str(path), *words):
        assert word in str(caught.value)


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(ProblemError, match=r"cannot read the problem file .*nowhere"):
        read_problem_file(tmp_path / "nowhere.toml")
    with pytest.raises(ProblemError, match="cannot read the problem file"):
        read_problem_file(tmp_path)
    path = tmp_path / "bytes.toml"
    path.write_bytes(b"\xff\xfe\x00[")
    with pytest.raises(ProblemError, match="not UTF-8"):
        read_problem_file(path)


FILE = """
[[constraints]]
name = "solvent"
kind = "linear"
terms = { income = 1, debt = -2.5, job = { smith = -500 } }
sense = ">="
bound = 1000

[[constraints]]
name = "no job"
kind = "implication"
when = { job = "none" }
then = { income = { max = 4000 } }

[[constraints]]
name = "months"
kind = "budget"
limit = 24
costs = { school = { primary = 12, college = 36 }, income = [0, 0.01], age = 1 }

[[constraints]]
kind = "max_changes"
most = 2
"""


def test_problem_files_say_the_same(tmp_path: Path, explainer: Explainer) -> None:
    path = tmp_path / "p.toml"
    path.write_text(FILE)
    assert read_problem_file(path).constraints == (EXAMPLES[0], EXAMPLES[2], EXAMPLES[4], EXAMPLES[6])
    checked(read_problem_file(path).constraints, explainer.space)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[constraints]\nkind = "linear"', "double brackets"),
        ("[[constraints]]\nmost = 2", "give its kind"),
        ('[[constraints]]\nkind = "linar"', "did you mean 'linear'"),
        ('[[constraints]]\nkind = "max_changes"\nmots = 2', "did you mean 'most'"),
        ('[[constraints]]\nkind = ["linear"]', "unknown kind ['linear']"),
        (
            '[[constraints]]\nkind = "budget"\nlimit = 2\ncosts = 5',
            "[[constraints]] 1 is incomplete or damaged: at costs",
        ),
        ('[[constraints]]\nkind = "budget"\nlimit = 2\ncosts = { x = { between = 1 } }', "'between' is a list"),
        ('[[constraints]]\nkind = "linear"\nterms = [1]\nsense = "="\nbound = 1', "at terms[0]: expected `array`"),
        ('[[constraints]]\nkind = "max_changes"\nmost = 2\namong = 3', "at among: expected `array`"),
        ('[[constraints]]\nkind = "max_changes"\nmost = -2', "at least 0"),
        (
            '[[constraints]]\nkind = "linear"\nname = "a"\nterms = { x = 1 }',
            "[[constraints]] a is incomplete or damaged: `sense` is missing",
        ),
    ],
)
def test_mistakes_in_problem_files(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "p.toml"
    path.write_text(text)
    with pytest.raises(ProblemError) as caught:
        read_problem_file(path)
    assert says in str(caught.value)
    assert str(path) in str(caught.value)
