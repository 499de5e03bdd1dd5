"""Spread a comparison over a Dask cluster: here a local one, elsewhere whatever `Client` connects to.

    pip install 'ocf[dask]'
    python examples/compare_on_dask.py smoke results/

Every run is a task of its own, in a process of its own on the worker that takes it; the results come back one by one
and are written here. The workers need ocf and, for sets that scikit-learn does not ship, the folder of data sets.
"""

import sys
from pathlib import Path

import joblib
from dask.distributed import Client, LocalCluster

from ocf.compare import compare, load_suite, run_suite, write_report


def main(suite: str = "smoke", folder: str = "dask-results") -> None:
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster),
        joblib.parallel_config("dask"),
    ):
        results = run_suite(load_suite(suite), folder, command=" ".join(sys.argv))
    comparison = compare(results)
    report, *_ = write_report(comparison, Path(folder))
    print(f"{len(comparison.runs)} runs, {len(comparison.disagreements)} disagreements: {report}")


if __name__ == "__main__":
    main(*sys.argv[1:])
