"""Spark settings for small data, where compiling a query takes longer than running it."""

from collections.abc import Mapping
from typing import Final

JAVA: Final = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=200m"
"""One GC thread, only the C1 compiler, and a code cache that holds the code of all queries."""

FAST_SETTINGS: Final[Mapping[str, str]] = {
    # No TCP ports: a client that still reconnects to a stopped broker could hit a worker's port.
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.extraJavaOptions": JAVA,
    "spark.executor.extraJavaOptions": JAVA,
}


def spark_arguments(settings: Mapping[str, str] = FAST_SETTINGS) -> list[str]:
    """As command line arguments."""
    return [
        argument for name, text in settings.items() for argument in ("--spark", f"{name}={text}")
    ]
