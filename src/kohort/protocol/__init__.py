"""One client session of the Kafka protocol, and the drivers that connect it to sockets.

`session` has all rules and does no I/O. `blocking_connection` drives it for one caller that waits
for each response, `selector` for a thread with many brokers. The simulation uses no sockets.
"""
