"""The consumer, for Kohort nodes and Apache Kafka.

It shares only the wire and protocol packages with the node, and never imports the node.
"""
