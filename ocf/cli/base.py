"""What all commands share: the app, its exit codes, and how errors and logs reach the user."""

from __future__ import annotations

import functools
import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path
from typing import Annotated, ParamSpec, TypeVar

import typer

from ocf.cli.flags import in_flags
from ocf.errors import OcfError
from ocf.support.limits import REMEDY
from ocf.support.messages import internal
from ocf.support.progress import ProgressBar
from ocf.support.version import VERSION

logger = logging.getLogger("ocf")

#: Who tells how a table was read.
READING = "ocf.reading"

P = ParamSpec("P")
R = TypeVar("R")


class ExitCode(IntEnum):
    """What an exit code of ``ocf`` means."""

    SOLVED = 0
    INTERNAL = 1
    USAGE = 2
    INFEASIBLE = 3
    FEASIBLE = 4
    UNKNOWN = 5
    UNVERIFIED = 6
    REGRESSED = 7
    INTERRUPTED = 130


app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"ocf {VERSION}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", metavar="", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
    debug: Annotated[
        bool,
        typer.Option("--debug", metavar="", envvar="OCF_DEBUG", help="Log everything, and show tracebacks of errors."),
    ] = False,
) -> None:
    """Optimal counterfactuals: the cheapest change that turns a tree model's decision, with proof."""
    set_up_log(logging.DEBUG if debug else logging.WARNING)


# -- errors ------------------------------------------------------------------------------------------------


def guarded(command: Callable[P, R]) -> Callable[P, R]:
    """Turn the errors of a command into messages on stderr and exit codes."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except (typer.Exit, typer.Abort, typer.BadParameter, BrokenPipeError):
            raise
        except OcfError as error:
            logger.debug("traceback:", exc_info=True)
            complain(str(error))
            raise typer.Exit(ExitCode.USAGE) from None
        except OSError as error:  # a full disk, a directory that has gone
            logger.debug("traceback:", exc_info=True)
            complain(f"{error.filename or 'a file'} cannot be read or written: {error.strerror or error}")
            raise typer.Exit(ExitCode.USAGE) from None
        except MemoryError:
            complain(f"there is not enough memory: {REMEDY}")
            raise typer.Exit(ExitCode.USAGE) from None
        except Exception as error:
            complain(internal(error))
            if logger.isEnabledFor(logging.DEBUG):
                logger.debug("traceback:", exc_info=True)
            else:
                typer.echo("This is a bug of ocf. To see the traceback: ocf --debug COMMAND … or OCF_DEBUG=1", err=True)
            raise typer.Exit(ExitCode.INTERNAL) from None

    return run


def complain(message: str) -> None:
    """One error message on stderr, red where stderr has colours."""
    from rich.console import Console
    from rich.text import Text

    # soft_wrap: a message must stay in one piece where it is piped or searched
    Console(stderr=True, soft_wrap=True).print(Text.assemble(("Error: ", "bold red"), in_flags(message)))


def deliver(text: str, path: Path | None) -> bool:
    """Write a result to a file, or to stdout where none is named or the disk is full; False in the last case.

    Parameters
    ----------
    text : str
    path : Path or None
    """
    if path is not None:
        try:
            path.write_text(text, encoding="utf-8", newline="")
            return True
        except OSError as error:  # hours of work must not go with a disk or a directory
            complain(f"cannot write {path} ({error.strerror or error}); the results follow on stdout")
    typer.echo(text, nl=False)
    return path is None


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Let errors of the system name the file that is written, which those of a full disk do not.

    Parameters
    ----------
    path : Path
    """
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(path)
        raise


# -- logs --------------------------------------------------------------------------------------------------


class _ToStderr(logging.Handler):
    """Log lines to whatever stderr is at the time; a progress bar replaces it while it is shown."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print a record, with its traceback only when debugging."""
        if not logger.isEnabledFor(logging.DEBUG):
            record.exc_info = record.exc_text = None
        words = self.format(record)
        print(words if record.name == READING else in_flags(words), file=sys.stderr)


class _Formatter(logging.Formatter):
    """What is told of a table stands for itself; all else says how grave it is."""

    def format(self, record: logging.LogRecord) -> str:
        """A record as text."""
        return record.getMessage() if record.name == READING else super().format(record)


def set_up_log(level: int) -> None:
    """Send what ocf logs at `level` and above to stderr, and how far a batch is."""
    logger.setLevel(level)
    logging.getLogger(READING).setLevel(logging.NOTSET)
    logging.getLogger(ProgressBar.__module__).setLevel(min(level, logging.INFO))
    for handler in logger.handlers[:]:
        if isinstance(handler, _ToStderr):
            logger.removeHandler(handler)
    handler = _ToStderr()
    handler.setFormatter(_Formatter("%(levelname)s: %(message)s"))
    logger.addHandler(handler)


def tell_how_tables_are_read() -> None:
    """Have the next batch begin with how its table was read."""
    logging.getLogger(READING).setLevel(logging.INFO)
