"""Lets Spark find `format("kohort")` without `kohort.pipeline.register`.

Spark 4 imports every top-level module whose name begins with `pyspark_` and registers its
`DefaultSource`. It does so in every program of the environment, also in one that has installed
Kohort without its extra `spark`.
"""

try:
    from kohort.pipeline.data_source import KohortDataSource as DefaultSource
except ModuleNotFoundError as error:
    if (error.name or "").startswith("kohort"):
        raise
else:
    __all__ = ["DefaultSource"]
