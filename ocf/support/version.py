"""The version of ocf, as it is installed."""

from __future__ import annotations

from importlib.metadata import version

#: Of the installed distribution.
VERSION = version("ocf")
