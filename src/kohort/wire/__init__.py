"""Bytes to values and back, for every supported API version. The wire has no opinions."""
