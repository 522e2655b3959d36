"""How requests travel: which brokers there are, the connections to them, and their answers."""
