"""The seeded world: clock, network, disk, faults, and the checkers that watch from outside.

It runs the production code unchanged, and production code never imports it.
"""
