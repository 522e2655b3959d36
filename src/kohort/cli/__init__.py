"""The command line: one file per verb, each turning one command line into one call.

No rule lives here, and no other room knows that there is a terminal.
"""
