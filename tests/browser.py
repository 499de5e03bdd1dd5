"""Pages in a browser, in windows of several widths."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html import escape, unescape
from pathlib import Path
from typing import Any

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

#: Writes down what was found; the page itself has no part in it.
TELL = """
document.body.innerHTML = "<pre id=found></pre>";
document.getElementById("found").textContent = JSON.stringify(found);
"""


def looked_at(page: str, look: str, tmp_path: Path, *flags: str) -> dict[str, Any]:
    """What a script finds on a page that is shown in frames of 375 and 1440 pixels.

    Parameters
    ----------
    page : str
    look : str
        Looks at each iframe of the document, and makes ``found``.
    tmp_path : Path
        For the browser's files; made if need be.
    *flags : str
        Of the browser.
    """
    frames = "".join(
        f'<iframe id="w{w}" style="border:0;width:{w}px;height:900px" srcdoc="{escape(page)}"></iframe>'
        for w in (375, 1440)
    )
    tmp_path.mkdir(exist_ok=True)
    path = tmp_path / "frames.html"
    script = f"<script>window.onload = () => {{{look}{TELL}}}</script>"
    path.write_text(f"<!DOCTYPE html><body>{frames}{script}", encoding="utf-8")
    profile = f"--user-data-dir={tmp_path / 'profile'}"
    command = [str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1500,1000", profile]
    out = subprocess.run(
        [*command, *flags, "--dump-dom", path.as_uri()], capture_output=True, text=True, check=True
    ).stdout
    found = re.search(r'<pre id="found">(.*?)</pre>', out, re.DOTALL)
    assert found, out[-2000:]
    return dict(json.loads(unescape(found[1])))
