"""The broker process: sockets, requests and the runtime around the coordinator.

A handler translates and never decides; the coordinator decides and never waits.
"""
