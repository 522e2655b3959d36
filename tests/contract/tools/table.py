"""Every tool that comes with Apache Kafka, and what becomes of it here.

`python -m tests.contract.tools.table` prints docs/tools.md.
"""

import sys
from dataclasses import dataclass
from enum import Enum

from tests.apache.jars import VERSION

_HOME = "org.apache.kafka.tools."


class Verdict(Enum):
    """A word, and a sentence about all tools that it is said of."""

    WORKS = "Run", "They did on Kohort what they do on Apache Kafka."
    REFUSED = "Refused", "They are about what is not here, and end with an error that says so."
    LEFT_OUT = "Left out", "They were not run."


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    name: str
    """Of its script; where it has none, of its class."""
    main: str
    verdict: Verdict
    about: str
    """What of it was run, or why it was not."""


def _tool(name: str, main: str, verdict: Verdict, about: str) -> Tool:
    full = main if main.startswith("kafka.") else _HOME + main
    return Tool(name=name, main=full, verdict=verdict, about=about)


TOOLS = (
    _tool(
        "kafka-broker-api-versions",
        "BrokerApiVersionsCommand",
        Verdict.WORKS,
        "What Kohort serves, it serves in the versions that Kafka does.",
    ),
    _tool(
        "kafka-cluster",
        "ClusterTool",
        Verdict.WORKS,
        "`cluster-id` and `list-endpoints`.",
    ),
    _tool(
        "kafka-configs",
        "kafka.admin.ConfigCommand",
        Verdict.WORKS,
        "Settings of topics described, added, deleted, from a file, and refused; those of the node"
        " described. The node's cannot be changed while it runs; groups, users and loggers have"
        " none.",
    ),
    _tool(
        "kafka-console-consumer",
        "consumer.ConsoleConsumer",
        Verdict.WORKS,
        "From the beginning, an offset, the end; by topic and by pattern; in groups, static members"
        " among them; keys, headers, offsets; only what is committed; with the formatters for"
        " `__consumer_offsets`.",
    ),
    _tool(
        "kafka-console-producer",
        "ConsoleProducer",
        Verdict.WORKS,
        "Keys, headers, nulls; every codec; every kind of acknowledgement.",
    ),
    _tool(
        "kafka-consumer-groups",
        "consumer.group.ConsumerGroupCommand",
        Verdict.WORKS,
        "`--list` by state and type; `--describe` with offsets, members, state, all groups and"
        " verbosely; `--delete`; `--delete-offsets`; `--reset-offsets` to the earliest, the latest,"
        " an offset, a moment, the current; by a shift, a duration, a file; shown, done, exported.",
    ),
    _tool(
        "kafka-consumer-perf-test",
        "ConsumerPerformance",
        Verdict.WORKS,
        "Reads all there is.",
    ),
    _tool(
        "kafka-delete-records",
        "DeleteRecordsCommand",
        Verdict.WORKS,
        "Before an offset, all, and more than there are.",
    ),
    _tool(
        "kafka-dump-log",
        "DumpLogSegments",
        Verdict.WORKS,
        "Segments, both indexes with `--index-sanity-check` and `--verify-index-only`, snapshots,"
        " and `__consumer_offsets` with `--offsets-decoder`.",
    ),
    _tool("kafka-e2e-latency", "EndToEndLatency", Verdict.WORKS, "To and fro, one by one."),
    _tool(
        "kafka-features",
        "FeatureCommand",
        Verdict.WORKS,
        "`describe`. There are no features to be switched, so it prints none.",
    ),
    _tool(
        "kafka-get-offsets",
        "GetOffsetShell",
        Verdict.WORKS,
        "The first, the last, those of moments and of the latest timestamp; by topic, partition and"
        " range of partitions.",
    ),
    _tool("kafka-groups", "GroupsCommand", Verdict.WORKS, "`--list` by type and protocol."),
    _tool("kafka-log-dirs", "LogDirsCommand", Verdict.WORKS, "`--describe` with sizes."),
    _tool(
        "kafka-producer-perf-test",
        "ProducerPerformance",
        Verdict.WORKS,
        "With one acknowledgement and with all.",
    ),
    _tool(
        "kafka-replica-verification",
        "ReplicaVerificationTool",
        Verdict.WORKS,
        "The only replica agrees with itself.",
    ),
    _tool(
        "kafka-share-groups",
        "consumer.group.ShareGroupCommand",
        Verdict.WORKS,
        "`--list`, which finds none.",
    ),
    _tool(
        "kafka-streams-application-reset",
        "StreamsResetter",
        Verdict.WORKS,
        "Input topics `--to-earliest`.",
    ),
    _tool(
        "kafka-streams-groups",
        "streams.StreamsGroupCommand",
        Verdict.WORKS,
        "`--list`, which finds none.",
    ),
    _tool(
        "kafka-topics",
        "TopicCommand",
        Verdict.WORKS,
        "Created with settings and with placed replicas; listed and described by name, pattern, id"
        " and ailment; grown; deleted; and all that is refused.",
    ),
    _tool(
        "kafka-verifiable-consumer",
        "VerifiableConsumer",
        Verdict.WORKS,
        "Two members share, one goes, the other takes over; with the range and the cooperative"
        " assignor.",
    ),
    _tool(
        "kafka-verifiable-producer",
        "VerifiableProducer",
        Verdict.WORKS,
        "Every record is acknowledged in its place.",
    ),
    _tool(
        "ClientCompatibilityTest",
        "ClientCompatibilityTest",
        Verdict.WORKS,
        "All it tries, but for access control.",
    ),
    _tool(
        "LogCompactionTester",
        "LogCompactionTester",
        Verdict.WORKS,
        "100,000 records with deletes: every key has its last value.",
    ),
    _tool("kafka-acls", "AclCommand", Verdict.REFUSED, "There is no access control."),
    _tool(
        "kafka-client-metrics",
        "ClientMetricsCommand",
        Verdict.REFUSED,
        "Clients are not asked for their metrics.",
    ),
    _tool(
        "kafka-delegation-tokens",
        "DelegationTokenCommand",
        Verdict.REFUSED,
        "There are no tokens, as nobody signs in.",
    ),
    _tool(
        "kafka-leader-election",
        "LeaderElectionCommand",
        Verdict.REFUSED,
        "There is nobody else to be elected.",
    ),
    _tool(
        "kafka-metadata-quorum",
        "MetadataQuorumCommand",
        Verdict.REFUSED,
        "One node needs no quorum.",
    ),
    _tool(
        "kafka-reassign-partitions",
        "reassign.ReassignPartitionsCommand",
        Verdict.REFUSED,
        "There is nowhere else to go.",
    ),
    _tool(
        "kafka-transactions",
        "TransactionsCommand",
        Verdict.REFUSED,
        "There are no transactions.",
    ),
    _tool(
        "kafka-connect-plugin-path",
        "ConnectPluginPath",
        Verdict.LEFT_OUT,
        "It is about Kafka Connect's own folders.",
    ),
    _tool(
        "kafka-console-share-consumer",
        "consumer.ConsoleShareConsumer",
        Verdict.LEFT_OUT,
        "There are no share groups.",
    ),
    _tool("kafka-jmx", "JmxTool", Verdict.LEFT_OUT, "It is about Java."),
    _tool(
        "kafka-share-consumer-perf-test",
        "ShareConsumerPerformance",
        Verdict.LEFT_OUT,
        "There are no share groups.",
    ),
    _tool(
        "kafka-verifiable-share-consumer",
        "VerifiableShareConsumer",
        Verdict.LEFT_OUT,
        "There are no share groups.",
    ),
    _tool(
        "OAuthCompatibilityTool",
        "OAuthCompatibilityTool",
        Verdict.LEFT_OUT,
        "Nobody signs in.",
    ),
    _tool(
        "TransactionalMessageCopier",
        "TransactionalMessageCopier",
        Verdict.LEFT_OUT,
        "There are no transactions.",
    ),
)

HEAD = f"""\
# Kafka's own tools

Which of the tools of Apache Kafka {VERSION} were run on Kohort, and what became of them. The tests
in `tests/contract/tools` run them, most of them on an Apache Kafka as well: what they print is read
back and must mean the same. Give a tool Kohort's address as `--bootstrap-server`.

This page is made by `python -m tests.contract.tools.table > docs/tools.md`.
"""


def page() -> str:
    parts = [HEAD]
    for verdict in Verdict:
        word, sentence = verdict.value
        parts += [f"## {word}\n\n{sentence}\n", "| tool | |", "| --- | --- |"]
        parts += [f"| `{tool.name}` | {tool.about} |" for tool in TOOLS if tool.verdict is verdict]
        parts.append("")
    return "\n".join(parts)


if __name__ == "__main__":
    sys.stdout.write(page())
