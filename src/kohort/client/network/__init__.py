"""Cluster metadata and the queue of requests to brokers."""
