"""Settings for a Spark that has little to do: to compile queries takes longer than to run them."""

from collections.abc import Mapping
from typing import Final

_JAVA: Final = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"

QUICK: Final[Mapping[str, str]] = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.extraJavaOptions": _JAVA,
    "spark.executor.extraJavaOptions": _JAVA,
}


def spark_words(settings: Mapping[str, str] = QUICK) -> list[str]:
    """As options of a command."""
    return [word for name, text in settings.items() for word in ("--spark", f"{name}={text}")]
