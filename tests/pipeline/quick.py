"""Settings for a Spark that has little to do: to compile queries takes longer than to run them."""

from collections.abc import Mapping
from typing import Final

JAVA: Final = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=200m"
"""One collector thread, no second compiler, and room for all that the first one makes: with what
Java gives it, queries push each other's code out."""

QUICK: Final[Mapping[str, str]] = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.extraJavaOptions": JAVA,
    "spark.executor.extraJavaOptions": JAVA,
}


def spark_words(settings: Mapping[str, str] = QUICK) -> list[str]:
    """As options of a command."""
    return [word for name, text in settings.items() for word in ("--spark", f"{name}={text}")]
