"""Options of each kind, and the errors that name them."""

import pytest

from kohort.settings.option import choice, flag, function, get_option, number, text, word
from kohort.settings.readers import BadValue

OPTIONS = {
    option.name: option
    for option in (
        number("max.records", 5, "Records of one poll.", minimum=1, maximum=9),
        flag("is.on", "Whether it is on.", default=True),
        text("client.id", None, "A name."),
        choice("mode", "fast", ("fast", "safe"), "How."),
        word("reset", "first", {"first": "first", "earliest": "first"}, "Where.", shown=("first",)),
        function("decoder", "Decodes values."),
    )
}


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("max.records", "7", 7),
        ("is.on", "false", False),
        ("client.id", "a", "a"),
        ("mode", "safe", "safe"),
        ("reset", "EARLIEST", "first"),
        ("decoder", None, None),
    ],
)
def test_an_option_parses_its_kind(name: str, given: object, expected: object) -> None:
    assert get_option(OPTIONS, name).parse(given) == expected


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("max.records", 0, "max.records=0: not between 1 and 9; it takes a number"),
        ("is.on", "x", "is.on='x': neither true nor false; it takes true or false"),
        ("client.id", "", "client.id='': empty; it takes text"),
        ("mode", "x", "mode='x': none of fast, safe; it takes fast or safe"),
        ("reset", "x", "reset='x': none of first; it takes first"),
        ("decoder", 7, "decoder=7: not callable; it takes function"),
    ],
)
def test_an_error_names_the_option_the_value_and_the_kind(
    name: str, given: object, message: str
) -> None:
    with pytest.raises(BadValue, match=f"^{message}$"):
        OPTIONS[name].parse(given)


def test_an_unknown_option_is_refused_with_a_similar_name() -> None:
    with pytest.raises(
        BadValue, match=r"^there is no setting max.record; did you mean max.records\?$"
    ):
        get_option(OPTIONS, "max.record", "setting")


def test_an_option_is_a_python_keyword_with_underscores() -> None:
    assert OPTIONS["max.records"].keyword == "max_records"
