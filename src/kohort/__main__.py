"""Lets `python -m kohort` do what the kohort command does."""

from kohort.cli import app

app(prog_name="kohort")
