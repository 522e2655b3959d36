"""Histories of groups with known truth, made from a seed: ordinary days and each pathology."""
