"""Kafka's consumer-group system in Python: coordinator, node, consumer and data pipeline."""
