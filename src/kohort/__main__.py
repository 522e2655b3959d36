"""Lets `python -m kohort` do what the kohort command does."""

from kohort.cli.entry import main

main()
