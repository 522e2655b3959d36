"""Append-only partitions on a disk, in Kafka's own segment files.

The log never interprets a record beyond what it needs to keep, find and drop it. It has no clock,
no threads and no die: the time and new ids are given to it, and what happened is returned.
"""
