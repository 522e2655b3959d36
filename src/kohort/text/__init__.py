"""Text for people that several packages share: numbers, durations, times, lists, rebalances.

Everything here is pure and returns plain text. Escaping for HTML or a terminal is up to the caller.
"""
