"""Shared code for options and settings: option tables, value readers, times, NAME=VALUE pairs.

A reader converts user input to a typed value, or raises ValueError with the reason. Packages with
options convert it to their own errors.
"""
