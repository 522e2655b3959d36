"""A package, so that pytest ends shared fixtures after its last test."""
