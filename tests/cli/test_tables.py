"""Tables have aligned columns and no control characters."""

from kohort.cli.tables import format_cell, format_table


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    rows = [("a", 1, None), ("longer", 12345, "x")]

    assert format_table(("GROUP", "LAG", "NOTE"), rows) == [
        "GROUP   LAG    NOTE",
        "a       1      -",
        "longer  12345  x",
    ]


def test_empty_table_has_its_heading() -> None:
    assert format_table(("GROUP", "LAG"), []) == ["GROUP  LAG"]


def test_control_characters_are_escaped() -> None:
    assert format_cell("evil\x1b[2Jname\nnext") == "evil\\x1b[2Jname\\nnext"
    assert format_cell("Gruppe-ü-組") == "Gruppe-ü-組"
    assert format_cell("") == "-"
    assert format_cell(0) == "0"
