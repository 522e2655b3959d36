"""Reading topics: a member beside Spark's driver, and workers that fetch ranges."""
