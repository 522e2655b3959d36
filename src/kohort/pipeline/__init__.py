"""Topics into Spark under a consumer group, and every rebalance explained.

The only room that knows Spark. It never moves a group's offset before Spark has kept the batch.
"""
