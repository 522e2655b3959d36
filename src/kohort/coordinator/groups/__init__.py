"""The types of group. `group` is the interface that all of them share."""
