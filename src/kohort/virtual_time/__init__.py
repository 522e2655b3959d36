"""Virtual time and random streams, for simulations that a seed repeats exactly.

Nothing here waits or reads a clock, and all randomness comes from the seed.
"""
