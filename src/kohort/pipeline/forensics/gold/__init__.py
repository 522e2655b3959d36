"""What a group's history means: rebalances and their causes, health, lag.

Each file makes one table, or a part of one, from silver. Nothing here looks at single records in
Python: all of it is what Spark can spread over a cluster.
"""
