"""The pure machine of consumer groups: commands in, records, replies, timers and notes out.

It never waits, never reads a clock, never rolls a die, never writes and never logs.
"""
