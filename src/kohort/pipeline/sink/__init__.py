"""Write topics: an idempotent producer in each Spark task."""
