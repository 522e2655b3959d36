"""Broker settings: defaults, file, pairs and error messages."""

from pathlib import Path

import pytest

from kohort.node.config import SETTINGS, BrokerConfig, read_settings
from kohort.settings.readers import BadValue


def test_missing_setting_has_its_default() -> None:
    assert BrokerConfig()["group.initial.rebalance.delay.ms"] == 3_000


def test_pairs_override_the_file(tmp_path: Path) -> None:
    file = tmp_path / "kohort.toml"
    file.write_text('"num.partitions" = 3\n[group]\n"max.size" = 7\n')

    settings = read_settings(file, ("num.partitions=5",))

    assert settings["num.partitions"] == 5
    assert settings["group.max.size"] == 7


def test_nested_tables_and_booleans_are_flattened(tmp_path: Path) -> None:
    file = tmp_path / "kohort.toml"
    file.write_text("[auto.create.topics]\nenable = false\n")

    assert read_settings(file, ())["auto.create.topics.enable"] is False


def test_unknown_name_is_refused_with_a_suggestion() -> None:
    with pytest.raises(BadValue, match=r"did you mean offsets\.retention\.minutes\?"):
        BrokerConfig({"offset.retention.minutes": "5"})


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("num.partitions", "many"),
        ("num.partitions", "0"),
        ("auto.create.topics.enable", "perhaps"),
        ("kohort.durability", "hope"),
    ],
)
def test_invalid_value_is_refused_with_the_setting_name(name: str, text: str) -> None:
    with pytest.raises(BadValue, match=name.replace(".", r"\.")):
        BrokerConfig({name: text})


def test_pair_without_an_equals_sign_is_refused() -> None:
    with pytest.raises(BadValue, match=r"--set 'num\.partitions' is not NAME=VALUE"):
        read_settings(None, ("num.partitions",))


def test_missing_or_invalid_file_is_refused(tmp_path: Path) -> None:
    broken = tmp_path / "broken.toml"
    broken.write_text("this is = = not toml")

    with pytest.raises(BadValue, match="cannot be read"):
        read_settings(tmp_path / "none.toml", ())
    with pytest.raises(BadValue, match="is not valid TOML"):
        read_settings(broken, ())


def test_every_setting_has_a_meaning_and_can_parse_its_default() -> None:
    for setting in SETTINGS.values():
        assert setting.meaning.endswith(".")
        default = setting.default
        text = str(default).lower() if isinstance(default, bool) else str(default)
        assert setting.read(text) == default


def test_group_config_uses_the_settings() -> None:
    limits = BrokerConfig({"offsets.retention.minutes": "2", "group.max.size": "9"}).group_config()

    assert limits.offsets_retention_ms == 120_000
    assert limits.group_max_size == 9
