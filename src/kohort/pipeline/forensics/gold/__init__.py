"""The gold tables: rebalances and their causes, health and lag.

Each file builds one table, or a part of one, from silver. All of it runs in Spark; no Python code
handles single records.
"""
