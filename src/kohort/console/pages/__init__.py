"""One file per page. Each has a function of a `Visit` that gives a `Page`."""
