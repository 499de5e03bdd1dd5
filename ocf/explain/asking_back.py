"""What was read from a table, written down as a problem file for the user to edit."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ocf.errors import DataError
from ocf.features.space import FeatureSpace
from ocf.problem.problem_template import write_problem_file

logger = logging.getLogger(__name__)

#: In the place of features: write them down.
ASK = "ask"

#: Where to.
ASKED = Path("problem.toml")


def refuse_to_overwrite(path: Path) -> None:
    """Refuse to write features to a file that is there, since it may have been edited.

    Raises
    ------
    DataError
    """
    if path.exists():
        raise DataError(f"{path} is there already: use it with features={str(path)!r}, or remove it to have it anew")


def write_down(space: FeatureSpace, classes: Sequence[Any], path: Path) -> None:
    """Write a problem file that describes the features, and say so.

    Parameters
    ----------
    space : FeatureSpace
    classes : sequence
        Labels of the model's classes.
    path : Path
    """
    refuse_to_overwrite(path)
    try:
        path.write_text(write_problem_file(space, classes), encoding="utf-8")
    except OSError as error:
        raise DataError(f"cannot write {path}: {error.strerror or error}") from None
    logger.warning("%s holds what was read: edit it, and say features=%r. %s", path, str(path), space)
