"""A consumer group member as a pure state machine: events in, effects and a deadline out.

It does no I/O and uses no clock and no random source of its own.
"""
