"""Public names of a package, imported on first use: a node does not load the consumer."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any


def import_name(package: str, homes: Mapping[str, str], name: str) -> Any:
    """The object with this name; `homes` has the module that defines it, or the module itself."""
    home = homes.get(name)
    if home is None:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    module = import_module(home)
    return module if home.endswith(f".{name}") else getattr(module, name)
