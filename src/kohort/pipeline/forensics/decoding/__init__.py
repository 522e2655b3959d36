"""From bytes to columns: segment files, keys and values of `__consumer_offsets`, events.

Commits are millions, so no Python object is made for any of them; generations and events are few
and are read by the wire's own readers. Nothing here knows Spark: Arrow comes in, Arrow goes out.
"""
