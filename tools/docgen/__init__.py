"""Generators of the reference pages in docs/: each page is made from the code it describes."""
