"""The group coordinator as a pure state machine: commands in; records, replies, timers, events out.

It never waits, reads no clock, draws no random number, writes nothing and logs nothing.
"""
