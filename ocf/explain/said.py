"""What a problem file says of questions, in the place of what they do not say."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import TYPE_CHECKING, Any, TypeVar, cast

from ocf.errors import ProblemError

if TYPE_CHECKING:
    from ocf.problem.problem_file import ProblemFile

F = TypeVar("F", bound=Callable[..., Any])


def settings_said(file: ProblemFile, labels: Any) -> dict[str, Any]:
    """Settings of `Explainer.explain` that a problem file gives.

    Parameters
    ----------
    file : ProblemFile
    labels : array_like or None
        True classes that are given beside the file.

    Raises
    ------
    ProblemError
        The file names what only a command can look up: another file, or a column of labels.
    """
    said = {name: value for name, value in file.solve.items() if name != "missing"}
    wish = said.get("plausibility")
    elsewhere = {
        "[plausibility] label": (file.label is not None and labels is None, "give Explainer the labels"),
        "[plausibility] forest": (isinstance(wish, dict) and "forest" in wish, "give explain the forest itself"),
        "[solve] imputations": ("imputations" in said, "give explain the completions themselves"),
    }
    for name, (given, remedy) in elsewhere.items():
        if given:
            raise ProblemError(f"the problem file's {name} is for the commands, which look it up: {remedy} instead")
    return said


def with_file_defaults(function: F) -> F:
    """What asks an explainer, with what its problem file says in the place of arguments that are not given.

    Parameters
    ----------
    function : callable
        Its first argument, the explainer, keeps the settings as `said`. Only those that it names are filled in.
    """
    own = signature(function)
    explainer, *names = own.parameters

    @wraps(function)
    def asked(*args: Any, **given: Any) -> Any:
        stated = own.bind(*args, **given)
        said = stated.arguments[explainer].said
        stated.arguments |= {name: said[name] for name in names if name in said and name not in stated.arguments}
        return function(*stated.args, **stated.kwargs)

    return cast(F, asked)
