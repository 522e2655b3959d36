"""What the records say: generations, memberships, ownership, commits and events of groups.

Each file builds one table from DataFrames and returns it with exactly its columns. Order is that
of offsets, never that of clocks. What compaction has removed cannot be told from what never was:
between two records that are there, a group is taken to have stayed as the first one left it.
"""
