"""Packages that only some of the work needs."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ocf.errors import MissingDependencyError


def optional(module: str, extra: str, purpose: str) -> Any:
    """A module of an optional package.

    Parameters
    ----------
    module : str
        Such as ``"matplotlib.pyplot"``.
    extra : str
        The extra of ocf that installs its package.
    purpose : str
        What needs it, as the subject of the message.

    Raises
    ------
    MissingDependencyError
        It is not installed; the message is the command that installs it.
    """
    try:
        return import_module(module)
    except ImportError:
        raise MissingDependencyError(module.partition(".")[0], extra, purpose) from None
