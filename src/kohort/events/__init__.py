"""The schema of `__kohort_events`, and the names and partitioning of internal topics.

The node writes the events; admin, pipeline, cli and demo read them with the parser of this package.
Everything here is pure.
"""
