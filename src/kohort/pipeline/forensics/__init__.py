"""Every rebalance explained: tables of what a group's history says, and what it means."""
