"""Tables: straight columns, and nothing in them that a terminal would obey."""

from kohort.cli.tables import cell_of, lay_out


def test_columns_are_as_wide_as_what_is_in_them() -> None:
    rows = [("a", 1, None), ("longer", 12345, "x")]

    assert lay_out(("GROUP", "LAG", "NOTE"), rows) == [
        "GROUP   LAG    NOTE",
        "a       1      -",
        "longer  12345  x",
    ]


def test_a_table_without_rows_still_has_its_heads() -> None:
    assert lay_out(("GROUP", "LAG"), []) == ["GROUP  LAG"]


def test_names_cannot_command_a_terminal() -> None:
    assert cell_of("evil\x1b[2Jname\nnext") == "evil\\x1b[2Jname\\nnext"
    assert cell_of("Gruppe-ü-組") == "Gruppe-ü-組"
    assert cell_of("") == "-"
    assert cell_of(0) == "0"
