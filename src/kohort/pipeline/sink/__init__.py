"""Writing topics: an idempotent producer in each of Spark's tasks."""
