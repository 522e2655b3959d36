"""What is read: where a partition stands, what to fetch next, and records out of what came."""
