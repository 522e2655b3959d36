"""A member of a consumer group as a pure machine: events in, effects and a deadline out.

Nothing in here waits, asks for the time, rolls dice or knows a socket.
"""
