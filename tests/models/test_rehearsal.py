"""Opening a model file in a child process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

skops_io = pytest.importorskip("skops.io")


def test_fork_after_openmp_threads_have_run(tmp_path: Path) -> None:
    """A fork has none of its parent's threads: one that waited for them would meet the limit of the clock."""
    rng = np.random.default_rng(0)
    model = HistGradientBoostingClassifier(max_iter=2).fit(rows := rng.normal(size=(3000, 3)), rows[:, 0] > 0)
    skops_io.dump(model, tmp_path / "model.skops")
    script = (
        "import sys; from pathlib import Path; from ocf.readers.files import load_model\n"
        "from ocf.models import rehearsal; import numpy as np\n"
        "rehearsal.CPU_SECONDS = 60; path = Path(sys.argv[1])\n"
        "load_model(path).predict(np.zeros((5000, 3))); rehearsal.rehearse(path)\n"
    )
    environment = {**os.environ, "OMP_NUM_THREADS": "2"}
    subprocess.run([sys.executable, "-c", script, tmp_path / "model.skops"], check=True, env=environment)
