"""kohort serve: how it says that it is ready, how it stops, and what it refuses to start with."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

import kohort
from kohort.cli.app import app
from kohort.node.config import SETTINGS, text_of
from kohort.types import ErrorCode, Topic
from kohort.wire.api.k03_metadata import MetadataRequest, MetadataRequestTopic
from tests.node.asking import fetch_request, new_batch, produce_request
from tests.node.calling import Caller, join_alone, join_request
from tests.node.serving import READY, Served, command


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One node that stands for whoever was here first."""
    with Served(tmp_path_factory.mktemp("served")) as served:
        yield served


def refusal_of(*arguments: str) -> str:
    """The one sentence it leaves with."""
    result = CliRunner().invoke(app, ["serve", *arguments])
    assert result.exit_code == 1, result
    assert not result.stdout
    return sentence_in(result.stderr)


def sentence_in(stderr: str) -> str:
    (line,) = stderr.splitlines()
    assert line.startswith("kohort: ")
    return line.removeprefix("kohort: ")


def refusal_for(data: Path) -> str:
    return refusal_of("--listen", "127.0.0.1:0", "--data", str(data))


def names_in(directory: Path) -> list[str]:
    return [path.name for path in directory.iterdir()]


def make_topic(caller: Caller, name: str) -> None:
    caller.ask(MetadataRequest(topics=(MetadataRequestTopic(name=Topic(name)),)), 9)


# Starting


def test_it_says_where_it_is_ready_and_nothing_else(served: Served) -> None:
    (line,) = served.said.splitlines()

    assert READY.fullmatch(line)
    with Caller(served.address) as caller:
        assert caller.ask(MetadataRequest(topics=()), 9).brokers[0].port == served.address.port


def test_help_lists_the_options() -> None:
    result = CliRunner().invoke(app, ["serve", "--help"], terminal_width=100)

    assert result.exit_code == 0
    for option in ("--listen", "--data", "--set", "--config", "--settings"):
        assert option in result.stdout


def test_every_setting_is_listed_with_its_default_and_its_meaning() -> None:
    result = CliRunner().invoke(app, ["serve", "--settings"])

    assert result.exit_code == 0
    for setting in SETTINGS.values():
        line = f"{setting.name}={text_of(setting.default)}\n    {setting.meaning}\n"
        assert line in result.stdout


def test_settings_come_from_a_file_and_pairs_win(tmp_path: Path) -> None:
    file = tmp_path / "kohort.toml"
    file.write_text('"num.partitions" = 3\n[node]\nid = 7\n', "utf-8")

    served = Served(tmp_path, {"node.id": 8}, arguments=("--config", str(file)))
    with served, Caller(served.address) as caller:
        make_topic(caller, "t")
        asked = MetadataRequest(topics=(MetadataRequestTopic(name=Topic("t")),))
        metadata = caller.ask(asked, 9)

    assert len(metadata.topics[0].partitions) == 3
    assert [broker.node_id for broker in metadata.brokers] == [8]


# Stopping


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    with Served(tmp_path) as served, Caller(served.address) as caller:
        make_topic(caller, "t")
        caller.ask(produce_request(new_batch("kept"), acks=1), 9)
        served.signal(number)
        assert served.wait() == 0

    assert "Traceback" not in served.journal
    assert (served.data / ".kafka_cleanshutdown").exists()


def test_clients_that_wait_do_not_keep_it_from_ending(tmp_path: Path) -> None:
    served = Served(tmp_path, {"group.initial.rebalance.delay.ms": 0})
    with (
        served,
        Caller(served.address) as fetching,
        Caller(served.address) as first,
        Caller(served.address) as second,
    ):
        make_topic(fetching, "t")
        waiting = fetching.send(fetch_request(max_wait_ms=600_000), 12)
        join_alone(first, "g")
        told = second.ask(join_request("g"), 9)
        parked = second.send(join_request("g", told.member_id), 9)

        assert served.stop() == 0
        assert second.receive(parked).error_code == ErrorCode.NOT_COORDINATOR
        assert fetching.receive(waiting).responses[0].partitions[0].error_code == 0

    assert "Traceback" not in served.journal


def test_it_starts_again_where_it_ended(tmp_path: Path) -> None:
    with Served(tmp_path) as served, Caller(served.address) as caller:
        make_topic(caller, "t")
        caller.ask(produce_request(new_batch("a", "b"), acks=-1), 9)
        served.stop()

    with Served(tmp_path) as served, Caller(served.address) as caller:
        taken = caller.ask(produce_request(new_batch("c"), acks=-1), 9)
        served.stop()

    assert taken.responses[0].partition_responses[0].base_offset == 2
    assert "tail-cut" not in served.journal


# Refusing


def test_a_port_that_is_taken_ends_the_process_with_a_sentence(
    tmp_path: Path, served: Served
) -> None:
    address = f"127.0.0.1:{served.address.port}"
    arguments = command("--listen", address, "--data", str(tmp_path))

    finished = subprocess.run(arguments, capture_output=True, text=True, timeout=20, check=False)

    assert (finished.returncode, finished.stdout) == (1, "")
    expected = f"cannot listen on {address}: Address already in use"
    assert sentence_in(finished.stderr) == expected


def test_a_name_nobody_knows_is_no_place_to_listen(tmp_path: Path) -> None:
    refusal = refusal_of("--listen", "no-such-host.invalid:9092", "--data", str(tmp_path))

    assert refusal.startswith("cannot listen on no-such-host.invalid:9092: ")


def test_a_name_nobody_can_have_is_refused_as_such(tmp_path: Path) -> None:
    host = "a" * 64

    refusal = refusal_of("--listen", f"{host}:9092", "--data", str(tmp_path))

    assert refusal == f"cannot listen on {host}:9092: no host can have that name"


def test_a_directory_in_use_is_refused_to_a_second_process(served: Served) -> None:
    assert refusal_for(served.data) == f"{served.data} is in use by another process"


def test_a_refused_process_leaves_the_first_one_alone(served: Served) -> None:
    refusal_for(served.data)

    with Caller(served.address) as caller:
        assert caller.ask(MetadataRequest(topics=()), 9).brokers


def test_a_file_is_no_directory(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")

    for data in (tmp_path / "file", tmp_path / "file" / "below"):
        assert refusal_for(data).startswith(f"{data} cannot be used: ")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        assert refusal_for(tmp_path) == f"{tmp_path} cannot be used: Permission denied"
    finally:
        tmp_path.chmod(0o700)


def test_somebody_elses_directory_is_refused_untouched(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("precious", "utf-8")

    refusal = refusal_for(tmp_path)

    assert refusal.startswith(f"{tmp_path} is not empty")
    assert "thesis.txt" in refusal
    assert names_in(tmp_path) == ["thesis.txt"]


def test_a_directory_of_apache_kafka_is_refused_untouched(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("version=1\n", "utf-8")

    assert "belongs to Apache Kafka" in refusal_for(tmp_path)
    assert names_in(tmp_path) == ["meta.properties"]


@pytest.fixture
def catalog(tmp_path: Path) -> Path:
    """The catalog of a node that has been here before."""
    data = tmp_path / "data"
    with kohort.Node(data=data):
        pass
    return data / "kohort-catalog.json"


def test_a_directory_of_a_newer_version_is_refused(catalog: Path) -> None:
    content = json.loads(catalog.read_text("utf-8")) | {"format": 999}
    catalog.write_text(json.dumps(content), "utf-8")

    assert "has format 999, from a newer version" in refusal_for(catalog.parent)


def test_a_damaged_catalog_is_refused(catalog: Path) -> None:
    catalog.write_text("{", "utf-8")

    assert refusal_for(catalog.parent).startswith(f"{catalog} is damaged")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--listen", "nonsense"), "--listen nonsense: it takes HOST:PORT"),
        (("--listen", "127.0.0.1:99999"), "--listen 127.0.0.1:99999: it takes HOST:PORT"),
        (("--set", "num.partition=3"), "there is no setting num.partition; did you mean num."),
        (("--set", "num.partitions"), "'num.partitions' is not of the form name=value"),
        (("--set", "num.partitions=many"), "num.partitions=many: "),
        (("--set", "num.partitions=0"), "num.partitions=0: less than 1; it takes a number"),
        (("--set", "kohort.durability=maybe"), "kohort.durability=maybe: none of fsync, os"),
        (("--set", "advertised.listeners=nowhere"), "advertised.listeners=nowhere: "),
        (("--set", "advertised.listeners=a:b"), "advertised.listeners=a:b: "),
        (("--config", "missing.toml"), "missing.toml cannot be read: No such file"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_a_sentence(
    arguments: tuple[str, ...], expected: str, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    defaults = () if "--listen" in arguments else ("--listen", "127.0.0.1:0")

    assert refusal_of("--data", str(data), *defaults, *arguments).startswith(expected)
    assert not data.exists()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("num.partitions = ", "is not TOML"),
        ('"num.partition" = 3', "there is no setting num.partition"),
        ("[num]\npartitions = [1, 2]", "num.partitions=[1, 2]: "),
    ],
)
def test_a_file_that_cannot_be_meant_is_refused(tmp_path: Path, text: str, expected: str) -> None:
    file = tmp_path / "kohort.toml"
    file.write_text(text, "utf-8")

    assert expected in refusal_of("--data", str(tmp_path / "data"), "--config", str(file))


def test_an_option_nobody_knows_is_a_wrong_command_line() -> None:
    result = CliRunner().invoke(app, ["serve", "--nonsense"])

    assert result.exit_code == 2
    assert "nonsense" in result.stderr
