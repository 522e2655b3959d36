"""One module per API key, named as in wire/api. A handler translates messages to commands."""
