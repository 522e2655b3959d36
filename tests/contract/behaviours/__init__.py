"""A package for pytest, so that package-scoped fixtures end with its last test."""
