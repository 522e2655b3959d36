"""A package, so that package-scoped fixtures end with its last test."""
