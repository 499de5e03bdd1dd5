"""Settings that messages recommend, in the words of the command line in the place of Python's."""

from __future__ import annotations

import re

#: Flag of a setting that takes a value.
FLAGS = {
    "time_limit": "--time-limit",
    "memory_limit": "--memory-limit",
    "mip_gap": "--gap",
    "formulation": "--formulation",
    "solver": "--solver",
    "cuts": "--cuts",
}

#: Flag of a setting that is on or off.
SWITCHES = {"diagnose": "--diagnose", "trust_pickle": "--trust-pickle"}

#: What a message says beside the flag itself stays.
_ELSEWHERE = r"(?! in Python)"

_VALUE = re.compile(rf"\b({'|'.join(FLAGS)})=(?:'([^']*)'|([\w.+-]*\w)){_ELSEWHERE}")
_SWITCH = re.compile(rf"\b({'|'.join(SWITCHES)})=True\b{_ELSEWHERE}")
_VARY = re.compile(r"\bfeatures_to_vary=\[…\]")
_SUPPLY = re.compile(r"\bmissing=\{'cost_of_supplying': \{([^{}]*?): 1\.0((?:, …)?)\}\}")


def in_flags(words: str) -> str:
    """A message with the flags of the settings that it recommends, or where these stand in a problem file.

    Parameters
    ----------
    words : str
        In Python's words, such as ``"give it more (time_limit=600)"``.
    """
    words = _VALUE.sub(lambda found: f"{FLAGS[found[1]]} {found[2] or found[3]}", words)
    words = _SWITCH.sub(lambda found: SWITCHES[found[1]], words)
    words = _VARY.sub("[solve] features_to_vary = […] of a problem file", words)
    return _SUPPLY.sub(r"[missing] cost_of_supplying = {\1 = 1.0\2} of a problem file", words)
