"""One command that shows all of Kohort at work: a node, a shop's workload, Spark and the console.

It holds no rule of its own; it starts what the other rooms offer and tells what happens.
"""
