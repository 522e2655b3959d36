"""Read topics: a group member beside Spark's driver, and tasks that fetch offset ranges."""
