"""Tests with real clients."""
