"""Asks any Kafka about its groups and topics, and changes them where an operator wishes it.

It is an ordinary client: what it knows of a node it knows from answers and from topics. It prints
nothing and draws nothing; the command line and the console do.
"""
