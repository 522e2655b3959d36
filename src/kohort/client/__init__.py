"""The consumer on the other side of the wire, for this node and for any Kafka.

It shares nothing with the node but the wire, and it never imports it.
"""
