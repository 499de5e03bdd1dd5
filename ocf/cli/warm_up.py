"""The command ``ocf warm-up``."""

from __future__ import annotations

import time

import typer

from ocf.cli.base import guarded


@guarded
def warm_up() -> None:
    """Compile all search kernels now, so that no later row has to wait: for images, clusters and services.

    They are kept in Numba's cache: beside ocf's files where these can be written, else in the user's cache folder, or
    where NUMBA_CACHE_DIR says. A cache is of use to the same kind of processor.
    """
    from ocf.explain.warm_up import count_kernels, warm_up
    from ocf.support.numba_cache import ANNOUNCER
    from ocf.support.progress import ProgressBar

    ANNOUNCER.said = True  # that kernels are compiled goes without saying
    begin = time.perf_counter()
    with ProgressBar(count_kernels(), unit="kernels") as bar:
        warm_up(bar.advance)
        compiled = sum(bar.counts.values())
    seconds = time.perf_counter() - begin
    typer.echo(f"the search kernels are ready: {compiled} compiled in {seconds:.0f} s")
