"""Hostile requests and connections, measured: `python -m tests.node.attacks --help`."""
