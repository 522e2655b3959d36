"""kohort serve: readiness, clean shutdown, and errors at startup."""

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
from kohort.node.config import SETTINGS, format_value
from kohort.types import ErrorCode, Topic
from kohort.wire.api.k03_metadata import MetadataRequest, MetadataRequestTopic
from tests.node.broker_harness import fetch_request, new_batch, produce_request
from tests.node.raw_client import RawClient, join_alone, join_request
from tests.node.served_node import READY, ServedNode, command


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedNode]:
    """A running node whose port and directory are in use."""
    with ServedNode(tmp_path_factory.mktemp("served")) as served:
        yield served


def startup_error(*arguments: str) -> str:
    """Return the sentence that the command fails with."""
    result = CliRunner().invoke(app, ["serve", *arguments])
    assert result.exit_code == 1, result
    assert not result.stdout
    return sentence_in(result.stderr)


def sentence_in(stderr: str) -> str:
    (line,) = stderr.splitlines()
    assert line.startswith("kohort: ")
    return line.removeprefix("kohort: ")


def startup_error_for(data: Path) -> str:
    return startup_error("--listen", "127.0.0.1:0", "--data", str(data))


def names_in(directory: Path) -> list[str]:
    return [path.name for path in directory.iterdir()]


def make_topic(caller: RawClient, name: str) -> None:
    caller.ask(MetadataRequest(topics=(MetadataRequestTopic(name=Topic(name)),)), 9)


# Start


def test_stdout_has_only_the_ready_line(served: ServedNode) -> None:
    (line,) = served.said.splitlines()

    assert READY.fullmatch(line)
    with RawClient(served.address) as caller:
        assert caller.ask(MetadataRequest(topics=()), 9).brokers[0].port == served.address.port


def test_help_lists_all_options() -> None:
    result = CliRunner().invoke(app, ["serve", "--help"], terminal_width=100)

    assert result.exit_code == 0
    for option in ("--listen", "--data", "--set", "--config", "--settings"):
        assert option in result.stdout


def test_every_setting_is_listed_with_default_and_meaning() -> None:
    result = CliRunner().invoke(app, ["serve", "--settings"])

    assert result.exit_code == 0
    for setting in SETTINGS.values():
        line = f"{setting.name}={format_value(setting.default)}\n    {setting.meaning}\n"
        assert line in result.stdout


def test_set_option_overrides_the_config_file(tmp_path: Path) -> None:
    file = tmp_path / "kohort.toml"
    file.write_text('"num.partitions" = 3\n[node]\nid = 7\n', "utf-8")

    served = ServedNode(tmp_path, {"node.id": 8}, arguments=("--config", str(file)))
    with served, RawClient(served.address) as caller:
        make_topic(caller, "t")
        request = MetadataRequest(topics=(MetadataRequestTopic(name=Topic("t")),))
        metadata = caller.ask(request, 9)

    assert len(metadata.topics[0].partitions) == 3
    assert [broker.node_id for broker in metadata.brokers] == [8]


# Shutdown


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_shuts_down_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    with ServedNode(tmp_path) as served, RawClient(served.address) as caller:
        make_topic(caller, "t")
        caller.ask(produce_request(new_batch("kept"), acks=1), 9)
        served.signal(number)
        assert served.wait() == 0

    assert "Traceback" not in served.log
    assert (served.data / ".kafka_cleanshutdown").exists()


def test_waiting_clients_do_not_delay_the_shutdown(tmp_path: Path) -> None:
    served = ServedNode(tmp_path, {"group.initial.rebalance.delay.ms": 0})
    with (
        served,
        RawClient(served.address) as fetching,
        RawClient(served.address) as first,
        RawClient(served.address) as second,
    ):
        make_topic(fetching, "t")
        waiting = fetching.send(fetch_request(max_wait_ms=600_000), 12)
        join_alone(first, "g")
        joined = second.ask(join_request("g"), 9)
        parked = second.send(join_request("g", joined.member_id), 9)

        assert served.stop() == 0
        assert second.receive(parked).error_code == ErrorCode.NOT_COORDINATOR
        assert fetching.receive(waiting).responses[0].partitions[0].error_code == 0

    assert "Traceback" not in served.log


def test_restart_continues_with_the_same_log(tmp_path: Path) -> None:
    with ServedNode(tmp_path) as served, RawClient(served.address) as caller:
        make_topic(caller, "t")
        caller.ask(produce_request(new_batch("a", "b"), acks=-1), 9)
        served.stop()

    with ServedNode(tmp_path) as served, RawClient(served.address) as caller:
        taken = caller.ask(produce_request(new_batch("c"), acks=-1), 9)
        served.stop()

    assert taken.responses[0].partition_responses[0].base_offset == 2
    assert "tail-cut" not in served.log


# Startup errors


def test_busy_port_fails_with_one_sentence(tmp_path: Path, served: ServedNode) -> None:
    address = f"127.0.0.1:{served.address.port}"
    arguments = command("--listen", address, "--data", str(tmp_path))

    finished = subprocess.run(arguments, capture_output=True, text=True, timeout=20, check=False)

    assert (finished.returncode, finished.stdout) == (1, "")
    expected = f"cannot listen on {address}: Address already in use"
    assert sentence_in(finished.stderr) == expected


def test_unknown_host_name_is_rejected(tmp_path: Path) -> None:
    error = startup_error("--listen", "no-such-host.invalid:9092", "--data", str(tmp_path))

    assert error.startswith("cannot listen on no-such-host.invalid:9092: ")


def test_invalid_host_name_is_rejected(tmp_path: Path) -> None:
    host = "a" * 64

    error = startup_error("--listen", f"{host}:9092", "--data", str(tmp_path))

    assert error == f"cannot listen on {host}:9092: invalid host name"


def test_directory_in_use_is_rejected(served: ServedNode) -> None:
    assert startup_error_for(served.data) == f"{served.data} is in use by another process"


def test_rejected_process_does_not_disturb_the_running_node(served: ServedNode) -> None:
    startup_error_for(served.data)

    with RawClient(served.address) as caller:
        assert caller.ask(MetadataRequest(topics=()), 9).brokers


def test_data_path_must_be_a_directory(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")

    for data in (tmp_path / "file", tmp_path / "file" / "below"):
        assert startup_error_for(data).startswith(f"{data} cannot be used: ")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_read_only_directory_is_rejected(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        assert startup_error_for(tmp_path) == f"{tmp_path} cannot be used: Permission denied"
    finally:
        tmp_path.chmod(0o700)


def test_directory_with_other_files_is_rejected_unchanged(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("text", "utf-8")

    error = startup_error_for(tmp_path)

    assert error.startswith(f"{tmp_path} is not a Kohort data directory")
    assert "notes.txt" in error
    assert names_in(tmp_path) == ["notes.txt"]


def test_directory_of_apache_kafka_is_rejected_unchanged(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("version=1\n", "utf-8")

    assert "belongs to Apache Kafka" in startup_error_for(tmp_path)
    assert names_in(tmp_path) == ["meta.properties"]


@pytest.fixture
def catalog(tmp_path: Path) -> Path:
    """The catalog file of a stopped node."""
    data = tmp_path / "data"
    with kohort.Node(data=data):
        pass
    return data / "kohort-catalog.json"


def test_directory_of_a_newer_version_is_rejected(catalog: Path) -> None:
    content = json.loads(catalog.read_text("utf-8")) | {"format": 999}
    catalog.write_text(json.dumps(content), "utf-8")

    assert "has format 999, written by a newer version" in startup_error_for(catalog.parent)


def test_damaged_catalog_is_rejected(catalog: Path) -> None:
    catalog.write_text("{", "utf-8")

    assert startup_error_for(catalog.parent).startswith(f"{catalog} is corrupt")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--listen", "nonsense"), "--listen nonsense: expected HOST:PORT"),
        (("--listen", "127.0.0.1:99999"), "--listen 127.0.0.1:99999: expected HOST:PORT"),
        (("--set", "num.partition=3"), "there is no setting num.partition; did you mean num."),
        (("--set", "num.partitions"), "--set 'num.partitions' is not NAME=VALUE"),
        (("--set", "num.partitions=many"), "num.partitions='many': not a whole number"),
        (("--set", "num.partitions=0"), "num.partitions='0': less than 1; it takes a number"),
        (("--set", "kohort.durability=maybe"), "kohort.durability='maybe': none of fsync, os"),
        (("--listen", "::1"), "--listen ::1: expected HOST:PORT"),
        (("--listen", "127.0.0.1:-1"), "--listen 127.0.0.1:-1: expected HOST:PORT"),
        (("--metrics", "127.0.0.1"), "--metrics 127.0.0.1: expected HOST:PORT"),
        (("--set", "advertised.listeners=a:b"), "advertised.listeners='a:b': not HOST or HOST:"),
        (("--set", "advertised.listeners=a b:1"), "advertised.listeners='a b:1': not a host name"),
        (("--set", "advertised.listeners=[::]:9092"), "advertised.listeners='[::]:9092': clients"),
        (("--set", "advertised.listeners=A://a:1,B://b:2"), "advertised.listeners='A://a:1,B:"),
        (("--advertise", "0.0.0.0:9092"), "--advertise 0.0.0.0:9092: clients cannot connect to a"),
        (("--advertise", "0:9092"), "--advertise 0:9092: not a host name or an IP address"),
        (("--advertise", "host:0"), "--advertise host:0: port 0 is not between 1 and 65535"),
        (("--advertise", "host:65536"), "--advertise host:65536: port 65536 is not between 1"),
        (
            ("--advertise", "a:1", "--set", "advertised.listeners=b:1"),
            "--advertise a:1 contradicts the setting advertised.listeners=b:1: give only one",
        ),
        (
            ("--advertise", "a:1", "--set", "advertised.listeners=a:2"),
            "--advertise a:1 contradicts the setting advertised.listeners=a:2: give only one",
        ),
        (("--allowed-host", "a:80"), "allowed host 'a:80': not a host name or an IP address; it"),
        (("--allowed-host", "ftp://a"), "allowed host 'ftp://a': only http:// and https:// are"),
        (("--set", "kohort.data.directory.mode=0600"), "kohort.data.directory.mode='0600': not"),
        (("--config", "missing.toml"), "missing.toml cannot be read: No such file"),
    ],
)
def test_invalid_option_or_setting_is_rejected(
    arguments: tuple[str, ...], expected: str, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    defaults = () if "--listen" in arguments else ("--listen", "127.0.0.1:0")

    assert startup_error("--data", str(data), *defaults, *arguments).startswith(expected)
    assert not data.exists()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("num.partitions = ", "is not valid TOML"),
        ('"num.partition" = 3', "there is no setting num.partition"),
        ("[num]\npartitions = [1, 2]", "num.partitions='[1, 2]': "),
    ],
)
def test_invalid_config_file_is_rejected(tmp_path: Path, text: str, expected: str) -> None:
    file = tmp_path / "kohort.toml"
    file.write_text(text, "utf-8")

    assert expected in startup_error("--data", str(tmp_path / "data"), "--config", str(file))


def test_unknown_option_is_a_usage_error() -> None:
    result = CliRunner().invoke(app, ["serve", "--nonsense"])

    assert result.exit_code == 2
    assert "nonsense" in result.stderr
