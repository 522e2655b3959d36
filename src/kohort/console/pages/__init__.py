"""One file per page: functions of a `PageRequest` that return a `Page`."""
