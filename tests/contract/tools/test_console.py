"""kafka-console-producer and kafka-console-consumer: lines become records and lines again."""

import pytest

from tests.contract.tools.cluster import Cluster
from tests.contract.tools.working import committed, write
from tests.waiting import wait_until


def produce(cluster: Cluster, topic: str, lines: list[str], *arguments: str) -> None:
    text = "".join(f"{line}\n" for line in lines)
    ended = cluster.run("kafka-console-producer", "--topic", topic, *arguments, stdin=text)
    assert "ERROR" not in ended.err, ended


def consume(cluster: Cluster, *arguments: str, show: str = "") -> list[str]:
    """What it printed; `show` names what of a record is printed beside its value."""
    printed = [
        word for name in show.split() for word in ("--formatter-property", f"print.{name}=true")
    ]
    ended = cluster.run("kafka-console-consumer", *arguments, *printed)
    assert "ERROR" not in ended.err, ended
    return ended.lines


def test_lines_arrive_in_their_order(cluster: Cluster) -> None:
    topic = cluster.create_topic()
    lines = [f"line {number}" for number in range(20)]

    produce(cluster, topic, lines)
    seen = consume(cluster, "--topic", topic, "--from-beginning", "--max-messages", "20")

    assert seen == lines


def test_keys_headers_and_nothing_at_all_arrive(cluster: Cluster) -> None:
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
def test_every_compression_is_undone_again(cluster: Cluster, codec: str) -> None:
    topic = cluster.create_topic()
    lines = [f"{codec} " * 40 + f"{number}" for number in range(50)]

    produce(cluster, topic, lines, "--compression-codec", codec)
    seen = consume(cluster, "--topic", topic, "--from-beginning", "--max-messages", "50")

    assert [line.split() for line in seen] == [line.split() for line in lines]


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_every_kind_of_acknowledgement_is_given(cluster: Cluster, acks: str) -> None:
    topic = cluster.create_topic()
    wishes = (f"acks={acks}", "enable.idempotence=false", "linger.ms=0")
    words = [word for wish in wishes for word in ("--command-property", wish)]

    produce(cluster, topic, ["one", "two"], *words, "--sync")
    seen = consume(cluster, "--topic", topic, "--from-beginning", "--max-messages", "2")

    assert seen == ["one", "two"]


def test_a_group_goes_on_where_it_ended(cluster: Cluster) -> None:
    topic, group = cluster.create_topic(), cluster.name_anew("group")
    write(cluster, topic, 6)
    words = ("--topic", topic, "--group", group, "--from-beginning")

    first = consume(cluster, *words, "--max-messages", "4")
    kept = committed(cluster, group)
    second = consume(cluster, *words, "--max-messages", "2")

    assert first == [f"value {number}" for number in range(4)]
    assert kept == {(topic, 0): 4}
    assert second == ["value 4", "value 5"]


def test_reading_begins_at_an_offset_of_a_partition(cluster: Cluster) -> None:
    topic = cluster.create_topic(2)
    write(cluster, topic, 5, partition=1)
    place = ("--topic", topic, "--partition", "1")

    from_three = consume(cluster, *place, "--offset", "3", "--max-messages", "2")
    from_first = consume(cluster, *place, "--offset", "earliest", "--max-messages", "1")

    assert from_three == ["value 3", "value 4"]
    assert from_first == ["value 0"]


def test_reading_at_the_end_waits_for_what_comes(cluster: Cluster) -> None:
    topic = cluster.create_topic()
    write(cluster, topic, 3)
    words = ("--topic", topic, "--partition", "0", "--offset", "latest")
    running = cluster.start("kafka-console-consumer", *words)

    def arrives() -> bool:
        # It may not have looked for the end yet: what comes before that, it never sees.
        write(cluster, topic, 1)
        return bool(running.said)

    wait_until(arrives, 20, "something came")
    ended = running.stop()

    assert set(ended.lines) == {"value 0"}


def test_topics_are_read_by_a_pattern(cluster: Cluster) -> None:
    word = cluster.name_anew("pattern")
    for ending in ("a", "b"):
        cluster.run("kafka-topics", "--create", "--topic", f"{word}.{ending}")
        produce(cluster, f"{word}.{ending}", [ending])

    words = ("--include", f"{word}\\..*", "--from-beginning", "--max-messages", "2")
    seen = consume(cluster, *words)

    assert sorted(seen) == ["a", "b"]


def test_reading_what_is_committed_ends_when_nothing_comes(cluster: Cluster) -> None:
    topic = cluster.create_topic()
    write(cluster, topic, 3)
    words = ("--topic", topic, "--partition", "0", "--offset", "earliest", "--timeout-ms", "2000")

    ended = cluster.run("kafka-console-consumer", *words, "--isolation-level", "read_committed")

    assert ended.lines == ["value 0", "value 1", "value 2"]
    assert "Processed a total of 3 messages" in ended.err
