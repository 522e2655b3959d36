"""Labelled histories of consumer groups, generated from a seed."""
