"""Decode segment files, the keys and values of `__consumer_offsets`, and events into Arrow columns.

There are millions of commits, so they are decoded without a Python object for each. Generations and
events are few and are decoded with kohort.wire. Nothing here uses Spark.
"""
