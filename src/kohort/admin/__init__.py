"""Admin client for any Kafka cluster: reads and changes groups, topics and offsets.

It uses only the public protocol and topics. It prints nothing; the CLI and the console do.
"""
