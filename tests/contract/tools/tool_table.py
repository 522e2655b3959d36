"""Every tool of Apache Kafka, and whether it works with Kohort.

`python -m tests.contract.tools.tool_table` prints docs/reference/tools.md.
"""

import sys
from dataclasses import dataclass
from enum import Enum

from tests.apache.jars import VERSION

_HOME = "org.apache.kafka.tools."


class Verdict(Enum):
    """A heading, and a sentence about its tools."""

    WORKS = "Working", "These tools behave on Kohort as on Apache Kafka."
    REFUSED = (
        "Refused",
        "These tools need unsupported features, and fail with an error that says so.",
    )
    LEFT_OUT = "Not tested", "These tools were not run."


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    name: str
    """The name of its script, or of its class if it has none."""
    main: str
    verdict: Verdict
    about: str
    """What was tested, or why it was not."""


def _tool(name: str, main: str, verdict: Verdict, about: str) -> Tool:
    full = main if main.startswith("kafka.") else _HOME + main
    return Tool(name=name, main=full, verdict=verdict, about=about)


TOOLS = (
    _tool(
        "kafka-broker-api-versions",
        "BrokerApiVersionsCommand",
        Verdict.WORKS,
        "Kohort serves its APIs in the same versions as Kafka.",
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
        "Topic settings: describe, add, delete, read from a file. Broker settings: describe; they"
        " cannot be changed at run time. There are no settings of groups, users and loggers.",
    ),
    _tool(
        "kafka-console-consumer",
        "consumer.ConsoleConsumer",
        Verdict.WORKS,
        "From the beginning, an offset, the end; by topic and by pattern; in groups, with static"
        " members; keys, headers, offsets; read_committed; the formatters for"
        " `__consumer_offsets`.",
    ),
    _tool(
        "kafka-console-producer",
        "ConsoleProducer",
        Verdict.WORKS,
        "Keys, headers, nulls; every codec; every `acks` setting.",
    ),
    _tool(
        "kafka-consumer-groups",
        "consumer.group.ConsumerGroupCommand",
        Verdict.WORKS,
        "`--list` by state and type; `--describe` with offsets, members, state, all groups and"
        " verbosely; `--delete`; `--delete-offsets`; `--reset-offsets` to the earliest, the latest,"
        " an offset, a datetime, the current; by a shift, a duration, a file; dry run, execute,"
        " export.",
    ),
    _tool(
        "kafka-consumer-perf-test",
        "ConsumerPerformance",
        Verdict.WORKS,
        "Reads all records.",
    ),
    _tool(
        "kafka-delete-records",
        "DeleteRecordsCommand",
        Verdict.WORKS,
        "Before an offset, all records, and beyond the end.",
    ),
    _tool(
        "kafka-dump-log",
        "DumpLogSegments",
        Verdict.WORKS,
        "Segments, both indexes with `--index-sanity-check` and `--verify-index-only`, snapshots,"
        " and `__consumer_offsets` with `--offsets-decoder`.",
    ),
    _tool(
        "kafka-e2e-latency",
        "EndToEndLatency",
        Verdict.WORKS,
        "Produces and consumes records one by one.",
    ),
    _tool(
        "kafka-features",
        "FeatureCommand",
        Verdict.WORKS,
        "`describe`. There are no feature flags, so it prints none.",
    ),
    _tool(
        "kafka-get-offsets",
        "GetOffsetShell",
        Verdict.WORKS,
        "The earliest, the latest, by timestamp and by greatest timestamp; by topic, partition and"
        " range of partitions.",
    ),
    _tool("kafka-groups", "GroupsCommand", Verdict.WORKS, "`--list` by type and protocol."),
    _tool("kafka-log-dirs", "LogDirsCommand", Verdict.WORKS, "`--describe` with sizes."),
    _tool(
        "kafka-producer-perf-test",
        "ProducerPerformance",
        Verdict.WORKS,
        "With acks=1 and acks=all.",
    ),
    _tool(
        "kafka-replica-verification",
        "ReplicaVerificationTool",
        Verdict.WORKS,
        "With a single replica.",
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
        "Create with settings and manual replica assignment; list and describe by name, pattern, id"
        " and health; add partitions; delete; and errors.",
    ),
    _tool(
        "kafka-verifiable-consumer",
        "VerifiableConsumer",
        Verdict.WORKS,
        "Two members; one leaves and the other takes over; with the range and the cooperative"
        " assignor.",
    ),
    _tool(
        "kafka-verifiable-producer",
        "VerifiableProducer",
        Verdict.WORKS,
        "Every record is acknowledged with its offset.",
    ),
    _tool(
        "ClientCompatibilityTest",
        "ClientCompatibilityTest",
        Verdict.WORKS,
        "All its tests except access control.",
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
        "Client metrics are not collected.",
    ),
    _tool(
        "kafka-delegation-tokens",
        "DelegationTokenCommand",
        Verdict.REFUSED,
        "There is no authentication.",
    ),
    _tool(
        "kafka-leader-election",
        "LeaderElectionCommand",
        Verdict.REFUSED,
        "There is only one broker.",
    ),
    _tool(
        "kafka-metadata-quorum",
        "MetadataQuorumCommand",
        Verdict.REFUSED,
        "There is no metadata quorum.",
    ),
    _tool(
        "kafka-reassign-partitions",
        "reassign.ReassignPartitionsCommand",
        Verdict.REFUSED,
        "There is only one broker.",
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
        "It is for Kafka Connect.",
    ),
    _tool(
        "kafka-console-share-consumer",
        "consumer.ConsoleShareConsumer",
        Verdict.LEFT_OUT,
        "There are no share groups.",
    ),
    _tool("kafka-jmx", "JmxTool", Verdict.LEFT_OUT, "It is for JMX."),
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
        "There is no authentication.",
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

Which tools of Apache Kafka {VERSION} work with Kohort. The tests in `tests/contract/tools` run them
on Kohort, and most of them also on Apache Kafka with the same expectations. Pass Kohort's address
as `--bootstrap-server`.

This page is generated by `python -m tests.contract.tools.tool_table > docs/reference/tools.md`.
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
