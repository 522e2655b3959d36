"""A package to pytest, so that what its tests share ends with the last of them."""
