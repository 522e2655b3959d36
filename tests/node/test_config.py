"""Settings: Kafka's names, clear refusals, and a table that documents itself."""

from pathlib import Path

import pytest

from kohort.node.config import SETTINGS, BadSetting, Settings, read_settings


def test_what_is_not_given_has_its_default() -> None:
    assert Settings()["group.initial.rebalance.delay.ms"] == 3_000


def test_pairs_win_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "kohort.toml"
    file.write_text('"num.partitions" = 3\n[group]\n"max.size" = 7\n')

    settings = read_settings(file, ("num.partitions=5",))

    assert settings["num.partitions"] == 5
    assert settings["group.max.size"] == 7


def test_nested_tables_and_flags_mean_the_dotted_name(tmp_path: Path) -> None:
    file = tmp_path / "kohort.toml"
    file.write_text("[auto.create.topics]\nenable = false\n")

    assert read_settings(file, ())["auto.create.topics.enable"] is False


def test_an_unknown_name_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(BadSetting, match=r"did you mean offsets\.retention\.minutes\?"):
        Settings({"offset.retention.minutes": "5"})


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("num.partitions", "many"),
        ("num.partitions", "0"),
        ("auto.create.topics.enable", "perhaps"),
        ("kohort.durability", "hope"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_by_name(name: str, text: str) -> None:
    with pytest.raises(BadSetting, match=name.replace(".", r"\.")):
        Settings({name: text})


def test_a_pair_without_an_equals_sign_is_refused() -> None:
    with pytest.raises(BadSetting, match="name=value"):
        read_settings(None, ("num.partitions",))


def test_a_missing_file_and_a_broken_one_are_refused_with_a_sentence(tmp_path: Path) -> None:
    broken = tmp_path / "broken.toml"
    broken.write_text("this is = = not toml")

    with pytest.raises(BadSetting, match="cannot be read"):
        read_settings(tmp_path / "none.toml", ())
    with pytest.raises(BadSetting, match="is not TOML"):
        read_settings(broken, ())


def test_every_setting_says_what_it_means_and_reads_its_own_default() -> None:
    for setting in SETTINGS.values():
        assert setting.meaning.endswith(".")
        default = setting.default
        text = str(default).lower() if isinstance(default, bool) else str(default)
        assert setting.read(text) == default


def test_limits_follow_the_settings() -> None:
    limits = Settings({"offsets.retention.minutes": "2", "group.max.size": "9"}).limits()

    assert limits.offsets_retention_ms == 120_000
    assert limits.group_max_size == 9
