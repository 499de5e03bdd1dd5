"""The errors that ocf raises. Each message names the cause and the remedy."""


class OcfError(Exception):
    """Base class: every error that ocf raises on purpose."""


class DataError(OcfError, ValueError):
    """The table, the row or the feature description does not fit (NaN, unknown category, wrong columns)."""


class ModelError(OcfError, ValueError):
    """The model cannot be used: unfitted, unreadable, or of a kind without a reader."""


class UnsupportedModelError(ModelError):
    """The model is of a known library but of a kind that is no sum of trees that ocf can read exactly."""


class ConformanceError(ModelError):
    """The ensemble that was read does not score points as the library does; nothing built on it would be true."""


class ProblemError(OcfError, ValueError):
    """The question is malformed: unknown norm, a target that the model does not have, a contradictory option."""


class MissingDependencyError(OcfError, ImportError):
    """An optional package is needed; the message is the command that installs it."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs the package {package!r}: pip install 'ocf[{extra}]'")


class SolverError(OcfError, RuntimeError):
    """A solver is unknown, not installed, or failed in a way that is not a result."""


class TimeLimitError(OcfError, TimeoutError):
    """The time limit was reached where there was nothing to answer with yet."""


class MemoryLimitError(OcfError, MemoryError):
    """Something needs more memory than the limit leaves."""
