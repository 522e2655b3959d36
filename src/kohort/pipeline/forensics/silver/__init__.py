"""The silver tables: generations, memberships, ownership, commits and events of groups.

Each file builds one table from DataFrames and returns it with exactly its columns. The order is
that of offsets, never of timestamps. Records removed by compaction are unknown: between two
records, a group is assumed to stay as the first one describes it.
"""
