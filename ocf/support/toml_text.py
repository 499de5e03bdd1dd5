"""Values written as TOML, and what a value of TOML may be."""

from __future__ import annotations

import json
import re
from typing import Any

from ocf.support.amounts import plain_value


def is_scalar(value: Any) -> bool:
    """Whether a value is a text, a number or a boolean."""
    return isinstance(value, str | bool | int | float)


def toml_key(name: str) -> str:
    """Key of TOML, quoted where it must be."""
    return name if re.fullmatch("[A-Za-z0-9_-]+", name) else _text(name)


def _text(text: str) -> str:
    """Basic string of TOML: that of JSON, but for one control character that JSON leaves as it is."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def toml_value(value: Any) -> str:
    """A value as TOML writes it."""
    value = plain_value(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml_value, value))}]"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{toml_key(key)} = {toml_value(v)}" for key, v in value.items()) + " }"
    return repr(value)
