"""The web page of groups, rebalances and lag, live; each page has a JSON twin.

It is an ordinary client of any Kafka and never looks inside a node.
"""
