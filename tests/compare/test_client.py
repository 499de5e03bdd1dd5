"""Clients of the processes that prepare runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from ocf.compare.client import Client, ServerError
from ocf.compare.recipes import Recipe


def test_client_says_why_a_server_died(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/nowhere")
    monkeypatch.setenv("PYTHONHOME", "/nowhere")
    with pytest.raises(ServerError, match="the process that prepares runs died"):
        Client(Recipe("iris"), None)
