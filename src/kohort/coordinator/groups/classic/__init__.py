"""The classic protocol: members join, the leader assigns, members sync.

A rebalance has two phases: `join_phase` collects the members of the next generation, `sync_phase`
stores the leader's assignment and sends it to them. `states` holds every legal transition.
"""
