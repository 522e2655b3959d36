"""Decorator for Kohort's value classes: slotted dataclasses that the type checker treats as frozen.

A dataclass that is frozen at run time takes two to three times as long to construct, because every
attribute goes through `object.__setattr__`. Some values are constructed a hundred thousand times a
second, so only the type checker enforces that they do not change.

There are hundreds of value classes, and most processes use a few of them. `__init__` is therefore
compiled when a class is first instantiated, and `__eq__` and `__repr__` are shared by all classes.
"""

from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from operator import attrgetter
from typing import Any, Final, TypeVar, dataclass_transform, overload

T = TypeVar("T")


@overload
def value(cls: type[T]) -> type[T]: ...


@overload
def value(*, kw_only: bool) -> Callable[[type[T]], type[T]]: ...


@dataclass_transform(frozen_default=True, kw_only_default=True)
def value(
    cls: type[T] | None = None, *, kw_only: bool = True
) -> type[T] | Callable[[type[T]], type[T]]:
    """Make a class a value. `kw_only=False` is for classes that are constructed in hot loops.

    Python 3.11 takes two to three times as long to call a class with keywords as by position. The
    type checker checks positional calls as well. Everywhere else keywords are easier to read.
    """
    if cls is None:
        return lambda decorated: _make_value(decorated, kw_only=kw_only)
    return _make_value(cls, kw_only=kw_only)


def _make_value(cls: type[T], *, kw_only: bool) -> type[T]:
    # Without a docstring, dataclass computes the signature to put one there.
    cls.__doc__ = cls.__doc__ or cls.__name__
    methods: dict[str, Any] = {"__eq__": _equals, "__hash__": None, "__repr__": _show}
    for name, method in methods.items():
        if name not in vars(cls):
            setattr(cls, name, method)
    made = dataclass(slots=True, kw_only=kw_only, init=False, eq=False, repr=False)(cls)

    def build_first(self: T, *args: object, **given: object) -> None:
        built = _compile_init(made, kw_only=kw_only)
        type.__setattr__(made, "__init__", built)
        built(self, *args, **given)

    type.__setattr__(made, "__init__", build_first)
    return made


def _equals(self: object, other: object) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    get = _GETTERS[self.__class__]
    return get(self) == get(other)


class _Getters(dict[type, Callable[[Any], Any]]):
    """Functions that return all fields of a value, by class; each is built on first use."""

    def __missing__(self, cls: type) -> Callable[[Any], Any]:
        names = [field.name for field in fields(cls)]
        made = self[cls] = attrgetter(*names) if names else lambda _: ()
        return made


_GETTERS: Final = _Getters()


def _show(self: Any) -> str:
    shown = (f"{field.name}={getattr(self, field.name)!r}" for field in fields(self))
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _compile_init(cls: type, *, kw_only: bool) -> Callable[..., None]:
    """Compile the `__init__` that dataclass would generate.

    The source text contains nothing but names from our own declarations.
    """
    scope: dict[str, Any] = {"MISSING": MISSING}
    parameters, lines = [], ["    pass"]
    for field in fields(cls):
        name = given = field.name
        default = field.default
        if field.default_factory is not MISSING:
            scope[f"new_{name}"] = field.default_factory
            default = MISSING
            given = f"new_{name}() if {name} is MISSING else {name}"
        if default is not MISSING or given != name:
            scope[f"default_{name}"] = default
            parameters.append(f"{name}=default_{name}")
        else:
            parameters.append(name)
        lines.append(f"    self.{name} = {given}")
    star = ["*"] if kw_only and parameters else []
    head = f"def __init__({', '.join(['self', *star, *parameters])}):"
    exec("\n".join([head, *lines]), scope)  # noqa: S102
    built: Callable[..., None] = scope["__init__"]
    built.__qualname__ = f"{cls.__qualname__}.__init__"
    return built
