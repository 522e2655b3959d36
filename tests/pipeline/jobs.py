"""Starts jobs in processes of their own, and reads what they left."""

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
PATIENCE_S = 240

TOO_SLOW = "Python worker failed to connect back"
"""Spark gives a worker ten seconds to start, whatever else the machine has to do."""


def run_job(
    directory: Path,
    options: dict[str, str],
    *,
    master: str = "local[2]",
    kill: str = "",
    settings: dict[str, str] | None = None,
) -> tuple[int, str]:
    """How it ended, and what it said. Where a worker was too slow to start, there is another try,
    which goes on from the checkpoint."""
    given: dict[str, Any] = {
        "master": master,
        "options": options,
        "directory": f"{directory}",
        "kill": kill,
        "settings": settings or {},
    }
    code, said = _run(given)
    if TOO_SLOW in said:
        code, said = _run(given)
    return code, said


def _run(given: dict[str, Any]) -> tuple[int, str]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.pipeline.job", json.dumps(given)],
        cwd=ROOT,
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        said, complaints = process.communicate(timeout=PATIENCE_S)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    return process.returncode, said + complaints


def values_in(spark: SparkSession, directory: Path) -> Counter[str]:
    """Of all batches, whole or not."""
    rows = spark.read.parquet(f"{directory / 'table'}").select("value").collect()
    return Counter(bytes(row.value).decode() for row in rows)
