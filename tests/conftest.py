"""Makes the oracle harness importable from every test, as ``oracle.instances`` and so on."""

from __future__ import annotations

import os
import sys
from pathlib import Path

# the instances are tiny and the cores are shared: threads of the libraries would only get in each other's way
os.environ.setdefault("OMP_NUM_THREADS", "1")

sys.path.insert(0, str(Path(__file__).parent))
