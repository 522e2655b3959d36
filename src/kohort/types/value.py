"""How Kohort declares values: slotted, keyword-only, frozen in the eyes of the type checker.

A dataclass that is frozen at run time pays for every attribute each time one is built, two to
three times the cost of a plain one, on paths that build them a hundred thousand times a second.
The type checker refuses a change just as firmly, and for nothing.

There are hundreds of them, and most processes use a few. Writing their methods was a quarter of
what it took to start a node, so each is written when it is first needed, and two are shared.
"""

from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from operator import attrgetter
from typing import Any, Final, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, kw_only_default=True)
def value(cls: type[T]) -> type[T]:
    # Without one, dataclass works out a signature to put there.
    cls.__doc__ = cls.__doc__ or cls.__name__
    methods: dict[str, Any] = {"__eq__": _equals, "__hash__": None, "__repr__": _show}
    for name, method in methods.items():
        if name not in vars(cls):
            setattr(cls, name, method)
    made = dataclass(slots=True, kw_only=True, init=False, eq=False, repr=False)(cls)

    def build_first(self: T, **given: object) -> None:
        built = _builder(made)
        type.__setattr__(made, "__init__", built)
        built(self, **given)

    type.__setattr__(made, "__init__", build_first)
    return made


def _equals(self: object, other: object) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    get = _GETTERS[self.__class__]
    return get(self) == get(other)


class _Getters(dict[type, Callable[[Any], Any]]):
    """All fields of a value at once, by class; each is made when it is first asked for."""

    def __missing__(self, cls: type) -> Callable[[Any], Any]:
        names = [field.name for field in fields(cls)]
        made = self[cls] = attrgetter(*names) if names else lambda _: ()
        return made


_GETTERS: Final = _Getters()


def _show(self: Any) -> str:
    shown = (f"{field.name}={getattr(self, field.name)!r}" for field in fields(self))
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _builder(cls: type) -> Callable[..., None]:
    """`__init__` as dataclass would write it: all by name, defaults where they are declared."""
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
    star = ["*"] if parameters else []
    built = _compile("__init__", ["self", *star, *parameters], lines, scope)
    built.__qualname__ = f"{cls.__qualname__}.__init__"
    return built


def maker(cls: type[T]) -> Callable[..., T]:
    """A function that makes a value from all of its fields, in the order they are declared in.

    Calling a class with keywords costs several times as much as the value itself. For the few
    loops where that is felt; everywhere else names are worth more than the time.
    """
    names = [field.name for field in fields(cls)]  # type: ignore[arg-type]  # it is a dataclass
    lines = ["    made = new(cls)", *(f"    made.{name} = {name}" for name in names)]
    scope: dict[str, Any] = {"new": object.__new__, "cls": cls}
    return _compile("make", names, [*lines, "    return made"], scope)


def _compile(
    name: str, parameters: list[str], lines: list[str], scope: dict[str, Any]
) -> Callable[..., Any]:
    """A function from its text, which is made of our own declarations and of nothing else."""
    exec("\n".join([f"def {name}({', '.join(parameters)}):", *lines]), scope)  # noqa: S102
    made: Callable[..., Any] = scope[name]
    return made
