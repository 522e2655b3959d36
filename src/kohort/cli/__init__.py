"""The command line: one module per command, which turns its arguments into one call.

No rule about Kafka lives here, and no other package prints to a terminal.
"""
