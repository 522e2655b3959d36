"""Subscription state, fetch positions, fetch requests and record decoding."""
