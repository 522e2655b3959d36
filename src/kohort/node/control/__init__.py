"""What a running node can be asked beyond Kafka's protocol: waits, faults, time and reset.

Tests use it, from the process of the node or over HTTP.
"""
