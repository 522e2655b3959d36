"""Encoding and decoding of Kafka's protocol messages, records and record batches."""
