"""What a caller can wait for in a consumer group: a group at one time, and what it lacks.

The node answers waits with it, and `testing` polls any Kafka with it. Everything here is pure.
"""
