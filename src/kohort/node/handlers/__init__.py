"""One file per API key, named as in wire/api. Each translates; none decides."""
