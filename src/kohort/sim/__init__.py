"""Deterministic simulation: clock, network, disk, faults and checkers, all driven by a seed.

It runs the production code unchanged. Production code never imports it.
"""
