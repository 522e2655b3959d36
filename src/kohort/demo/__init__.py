"""The demo: a node, its console, a shop's consumers that fail on schedule, and a Spark job.

It contains no rule about groups. It starts what the other packages offer and reports what happens.
"""
