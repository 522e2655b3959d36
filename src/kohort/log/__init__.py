"""Append-only partition logs on disk, in Kafka's segment file formats.

The log reads of a record only what it needs to store, find and remove it. It has no clock, no
threads and no random numbers: callers pass the time and new ids, and methods return the results.
"""
