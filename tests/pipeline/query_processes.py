"""Run queries in separate processes, and read their tables."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
TIMEOUT_S = 240

WORKER_TIMEOUT = "Python worker failed to connect back"
"""Spark gives a worker ten seconds to start, which a busy machine may exceed."""


def run_job(
    directory: Path,
    options: dict[str, str],
    *,
    master: str = "local[2]",
    kill: str = "",
    settings: dict[str, str] | None = None,
) -> tuple[int, str]:
    """The exit code and the output.

    If a worker was too slow to start, the query runs again from its checkpoint.
    """
    given: dict[str, Any] = {
        "master": master,
        "options": options,
        "directory": f"{directory}",
        "kill": kill,
        "settings": settings or {},
    }
    code, output = _run(given)
    if WORKER_TIMEOUT in output:
        code, output = _run(given)
    return code, output


def _run(given: dict[str, Any]) -> tuple[int, str]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.pipeline.query_process", json.dumps(given)],
        cwd=ROOT,
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        stdout, stderr = process.communicate(timeout=TIMEOUT_S)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    return process.returncode, stdout + stderr


def values_in(spark: SparkSession, directory: Path) -> Counter[str]:
    """The values of all batches, complete or not."""
    rows = spark.read.parquet(f"{directory / 'table'}").select("value").collect()
    return Counter(bytes(row.value).decode() for row in rows)
