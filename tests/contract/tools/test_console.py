"""kafka-console-producer and kafka-console-consumer."""

import pytest

from tests.contract.tools.cluster import Cluster
from tests.contract.tools.cluster_setup import committed, write
from tests.wait import wait_until


def produce(cluster: Cluster, topic: str, lines: list[str], *arguments: str) -> None:
    text = "".join(f"{line}\n" for line in lines)
    ended = cluster.run("kafka-console-producer", "--topic", topic, *arguments, stdin=text)
    assert "ERROR" not in ended.err, ended


def consume(cluster: Cluster, *arguments: str, show: str = "") -> list[str]:
    """The lines it printed; `show` names what it prints in addition to the value."""
    printed = [
        word for name in show.split() for word in ("--formatter-property", f"print.{name}=true")
    ]
    ended = cluster.run("kafka-console-consumer", *arguments, *printed)
    assert "ERROR" not in ended.err, ended
    return ended.lines


def test_lines_arrive_in_order(cluster: Cluster) -> None:
    topic = cluster.create_topic()
    lines = [f"line {number}" for number in range(20)]

    produce(cluster, topic, lines)
    seen = consume(cluster, "--topic", topic, "--from-beginning", "--max-messages", "20")

    assert seen == lines


def test_keys_headers_and_nulls_arrive(cluster: Cluster) -> None:
    topic = cluster.create_topic()
    parsing = ("--reader-property", "parse.key=true", "--reader-property", "parse.headers=true")
    nothing = ("--reader-property", "null.marker=NULL")
    lines = ["h1:one,h2:two\tkey\tvalue", "NULL\tNULL\tvalue", "h:x\tkey\tNULL"]

    produce(cluster, topic, lines, *parsing, *nothing)
    seen = consume(
        cluster,
        *("--topic", topic, "--from-beginning", "--max-messages", "3"),
        show="headers key partition offset",
    )

    assert seen == [
        "Partition:0\tOffset:0\th1:one,h2:two\tkey\tvalue",
        "Partition:0\tOffset:1\tNO_HEADERS\tnull\tvalue",
        "Partition:0\tOffset:2\th:x\tkey\tnull",
    ]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_compression_codec_works(cluster: Cluster, codec: str) -> None:
    topic = cluster.create_topic()
    lines = [f"{codec} " * 40 + f"{number}" for number in range(50)]

    produce(cluster, topic, lines, "--compression-codec", codec)
    seen = consume(cluster, "--topic", topic, "--from-beginning", "--max-messages", "50")

    assert [line.split() for line in seen] == [line.split() for line in lines]


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_every_acks_setting_works(cluster: Cluster, acks: str) -> None:
    topic = cluster.create_topic()
    options = (f"acks={acks}", "enable.idempotence=false", "linger.ms=0")
    arguments = [word for option in options for word in ("--command-property", option)]

    produce(cluster, topic, ["one", "two"], *arguments, "--sync")
    seen = consume(cluster, "--topic", topic, "--from-beginning", "--max-messages", "2")

    assert seen == ["one", "two"]


def test_a_group_continues_from_its_committed_offset(cluster: Cluster) -> None:
    topic, group = cluster.create_topic(), cluster.unique_name("group")
    write(cluster, topic, 6)
    arguments = ("--topic", topic, "--group", group, "--from-beginning")

    first = consume(cluster, *arguments, "--max-messages", "4")
    kept = committed(cluster, group)
    second = consume(cluster, *arguments, "--max-messages", "2")

    assert first == [f"value {number}" for number in range(4)]
    assert kept == {(topic, 0): 4}
    assert second == ["value 4", "value 5"]


def test_consuming_starts_at_an_offset_of_a_partition(cluster: Cluster) -> None:
    topic = cluster.create_topic(2)
    write(cluster, topic, 5, partition=1)
    place = ("--topic", topic, "--partition", "1")

    from_three = consume(cluster, *place, "--offset", "3", "--max-messages", "2")
    from_first = consume(cluster, *place, "--offset", "earliest", "--max-messages", "1")

    assert from_three == ["value 3", "value 4"]
    assert from_first == ["value 0"]


def test_consuming_from_the_end_waits_for_new_records(cluster: Cluster) -> None:
    topic = cluster.create_topic()
    write(cluster, topic, 3)
    arguments = ("--topic", topic, "--partition", "0", "--offset", "latest")
    running = cluster.start("kafka-console-consumer", *arguments)

    def arrives() -> bool:
        # The consumer may not have found the end yet; it never sees records before that.
        write(cluster, topic, 1)
        return bool(running.output_lines)

    wait_until(arrives, 20, "something came")
    ended = running.stop()

    assert set(ended.lines) == {"value 0"}


def test_topics_are_consumed_by_a_pattern(cluster: Cluster) -> None:
    word = cluster.unique_name("pattern")
    for ending in ("a", "b"):
        cluster.run("kafka-topics", "--create", "--topic", f"{word}.{ending}")
        produce(cluster, f"{word}.{ending}", [ending])

    arguments = ("--include", f"{word}\\..*", "--from-beginning", "--max-messages", "2")
    seen = consume(cluster, *arguments)

    assert sorted(seen) == ["a", "b"]


def test_read_committed_ends_when_no_records_arrive(cluster: Cluster) -> None:
    topic = cluster.create_topic()
    write(cluster, topic, 3)
    arguments = (
        "--topic",
        topic,
        "--partition",
        "0",
        "--offset",
        "earliest",
        "--timeout-ms",
        "2000",
    )

    ended = cluster.run("kafka-console-consumer", *arguments, "--isolation-level", "read_committed")

    assert ended.lines == ["value 0", "value 1", "value 2"]
    assert "Processed a total of 3 messages" in ended.err
