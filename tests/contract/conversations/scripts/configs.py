"""DescribeConfigs and IncrementalAlterConfigs, for some settings of topics and brokers."""

from dataclasses import replace
from typing import Any

from kohort.types import Topic
from kohort.wire.api.k32_describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from kohort.wire.api.k44_incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.contract.conversations.conversation import conversation
from tests.contract.conversations.records import create_topic
from tests.contract.conversations.session import DEADLINE_S, Session, narrowed
from tests.wait import wait_until

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32

SET, DELETE, APPEND, SUBTRACT = range(4)

FIXED = "broker settings are fixed at start; only topics can be changed"

TOPIC_SETTINGS = (
    "cleanup.policy",
    "compression.type",
    "delete.retention.ms",
    "flush.messages",
    "flush.ms",
    "index.interval.bytes",
    "leader.replication.throttled.replicas",
    "max.compaction.lag.ms",
    "max.message.bytes",
    "message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms",
    "message.timestamp.type",
    "min.cleanable.dirty.ratio",
    "min.compaction.lag.ms",
    "preallocate",
    "remote.storage.enable",
    "retention.bytes",
    "retention.ms",
    "segment.bytes",
    "segment.index.bytes",
    "segment.jitter.ms",
    "segment.ms",
    "unclean.leader.election.enable",
)

BROKER_SETTINGS = (
    "auto.create.topics.enable",
    "connections.max.idle.ms",
    "delete.topic.enable",
    "group.initial.rebalance.delay.ms",
    "group.max.session.timeout.ms",
    "group.max.size",
    "group.min.session.timeout.ms",
    "log.retention.ms",
    "log.segment.bytes",
    "message.max.bytes",
    "node.id",
    "num.partitions",
    "offset.metadata.max.bytes",
    "offsets.retention.minutes",
    "offsets.topic.num.partitions",
)


def describe_request(
    name: str, keys: tuple[str, ...] | None, kind: int = TOPIC, **fields: Any
) -> DescribeConfigsRequest:
    asked = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
    return DescribeConfigsRequest(resources=(asked,), **fields)


def alter_request(name: str, *configs: tuple[str, int, str | None], **fields: Any) -> Any:
    kind: int = fields.pop("kind", TOPIC)
    resource = AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=tuple(
            AlterableConfig(name=setting, config_operation=operation, value=text)
            for setting, operation, text in configs
        ),
    )
    return IncrementalAlterConfigsRequest(resources=(resource,), **fields)


# Describing


@conversation(vary=DescribeConfigsRequest)
def the_settings_of_a_topic_are_described(session: Session) -> None:
    t, _ = create_topic(session, cleanup_policy="compact", retention_ms="1000")

    session.client("a").ask(describe_request(t, TOPIC_SETTINGS))


@conversation(vary=DescribeConfigsRequest)
def synonyms_of_a_setting_are_returned_on_request(session: Session) -> None:
    t, _ = create_topic(session, cleanup_policy="compact", segment_ms="1000000")

    because = "In Kafka most topic settings have a broker setting as their default"
    with session.deviates(because, "answer.results.0.configs.*.synonyms*"):
        session.client("a").ask(describe_request(t, TOPIC_SETTINGS, include_synonyms=True))


@conversation(vary=DescribeConfigsRequest, since=3)
def documentation_of_a_setting_is_returned_on_request(session: Session) -> None:
    t, _ = create_topic(session)

    session.client("a").ask(describe_request(t, ("retention.ms",), include_documentation=True))


@conversation(vary=DescribeConfigsRequest)
def unknown_settings_are_left_out(session: Session) -> None:
    t, _ = create_topic(session)
    a = session.client("a")

    a.ask(describe_request(t, ("no.such.setting", "retention.ms")))
    a.ask(describe_request(t, ("no.such.setting",)))


@conversation(vary=DescribeConfigsRequest)
def all_settings_are_described_if_none_is_named(session: Session) -> None:
    t, _ = create_topic(session)

    def some(answer: DescribeConfigsResponse) -> DescribeConfigsResponse:
        return narrow(answer, TOPIC_SETTINGS)

    a = session.client("a")
    a.ask(describe_request(t, None), transform=some)
    a.ask(describe_request(t, ()), transform=some)


@conversation(vary=DescribeConfigsRequest)
def a_topic_that_does_not_exist_has_no_settings(session: Session) -> None:
    a = session.client("a")

    a.ask(describe_request(session.name("unknown"), None))
    a.ask(describe_request(session.name("un known"), None))
    a.ask(describe_request("", None))


@conversation(vary=DescribeConfigsRequest)
def the_settings_of_a_broker_are_described(session: Session) -> None:
    a = session.client("a")

    with session.deviates(FIXED, "*.read_only"):
        a.ask(describe_request("1", BROKER_SETTINGS, BROKER))


@conversation(vary=DescribeConfigsRequest)
def synonyms_of_a_broker_setting_are_returned_on_request(session: Session) -> None:
    names = ("group.max.size", "num.partitions", "group.min.session.timeout.ms")

    session.client("a").ask(describe_request("1", names, BROKER, include_synonyms=True))


@conversation(vary=DescribeConfigsRequest)
def only_this_broker_is_described(session: Session) -> None:
    a = session.client("a")

    a.ask(describe_request("2", None, BROKER))
    a.ask(describe_request("one", None, BROKER))
    a.ask(describe_request("", ("num.partitions",), BROKER))


@conversation(vary=DescribeConfigsRequest)
def an_unknown_resource_type_has_no_settings(session: Session) -> None:
    a = session.client("a")

    a.ask(describe_request("x", None, 0))
    a.ask(describe_request("x", None, 99))


@conversation(vary=DescribeConfigsRequest)
def only_topics_and_brokers_have_settings(session: Session) -> None:
    a = session.client("a")

    because = "groups, client metrics and loggers have no settings"
    for kind, name in ((GROUP, session.group()), (LOGGER, "1"), (METRICS, "x")):
        with session.deviates(because, "answer.results.0*"):
            a.ask(describe_request(name, ("none.of.them",), kind))


# Changing


@conversation(vary=IncrementalAlterConfigsRequest)
def a_setting_is_set_and_deleted(session: Session) -> None:
    t, _ = create_topic(session)
    a = session.client("a")

    a.ask(alter_request(t, ("retention.ms", SET, "5000"), ("segment.ms", SET, "6000")))
    wait_for(session, t, "retention.ms", "5000")
    a.ask(describe_request(t, ("retention.ms", "segment.ms")))
    a.ask(alter_request(t, ("retention.ms", DELETE, None)))
    wait_for(session, t, "retention.ms", "-1")
    a.ask(describe_request(t, ("retention.ms", "segment.ms")))


@conversation(vary=IncrementalAlterConfigsRequest)
def values_are_appended_to_and_subtracted_from_a_list(session: Session) -> None:
    t, _ = create_topic(session)
    a = session.client("a")

    a.ask(alter_request(t, ("cleanup.policy", APPEND, "compact")))
    wait_for(session, t, "cleanup.policy", "delete,compact")
    a.ask(alter_request(t, ("cleanup.policy", SUBTRACT, "delete")))
    wait_for(session, t, "cleanup.policy", "compact")
    a.ask(alter_request(t, ("cleanup.policy", APPEND, "compact")))
    a.ask(alter_request(t, ("cleanup.policy", SUBTRACT, "delete")))
    a.ask(alter_request(t, ("cleanup.policy", APPEND, "burn")))
    a.ask(alter_request(t, ("retention.ms", APPEND, "5")))
    a.ask(alter_request(t, ("retention.ms", SUBTRACT, "5")))
    a.ask(describe_request(t, ("cleanup.policy", "retention.ms")))


@conversation(vary=IncrementalAlterConfigsRequest)
def a_change_can_be_validated_only(session: Session) -> None:
    t, _ = create_topic(session)
    a = session.client("a")

    a.ask(alter_request(t, ("retention.ms", SET, "5000"), validate_only=True))
    a.ask(alter_request(t, ("retention.ms", SET, "soon"), validate_only=True))
    a.ask(describe_request(t, ("retention.ms",)))


@conversation(vary=IncrementalAlterConfigsRequest)
def unknown_settings_and_invalid_values_are_refused(session: Session) -> None:
    t, _ = create_topic(session)
    a = session.client("a")

    a.ask(alter_request(t, ("no.such.setting", SET, "1")))
    a.ask(alter_request(t, ("no.such.setting", DELETE, None)))
    a.ask(alter_request(t, ("retention.ms", SET, "soon")))
    a.ask(alter_request(t, ("retention.ms", SET, None)))
    a.ask(alter_request(t, ("retention.ms", SET, "")))
    with session.deviates(
        "Kafka returns UNKNOWN_SERVER_ERROR for an unknown operation", "*.error_code"
    ):
        a.ask(alter_request(t, ("retention.ms", 9, "1")))
    a.ask(alter_request(t, ("retention.ms", SET, "1"), ("retention.ms", SET, "2")))
    a.ask(alter_request(t, ("retention.ms", SET, "1"), ("segment.ms", SET, "soon")))
    a.ask(alter_request(t))
    a.ask(describe_request(t, ("retention.ms", "segment.ms")))


@conversation(vary=IncrementalAlterConfigsRequest)
def unknown_resources_cannot_be_altered(session: Session) -> None:
    a = session.client("a")

    a.ask(alter_request(session.name("unknown"), ("retention.ms", SET, "1")))
    a.ask(alter_request(session.name("un known"), ("retention.ms", SET, "1")))
    a.ask(alter_request("", ("retention.ms", SET, "1")))
    a.ask(alter_request("x", ("retention.ms", SET, "1"), kind=99))
    a.ask(IncrementalAlterConfigsRequest())


@conversation(vary=IncrementalAlterConfigsRequest)
def a_topic_that_is_named_twice_is_not_changed(session: Session) -> None:
    t, _ = create_topic(session)
    twice = alter_request(t, ("retention.ms", SET, "1")).resources * 2
    a = session.client("a")

    a.ask(IncrementalAlterConfigsRequest(resources=twice))
    a.ask(describe_request(t, ("retention.ms",)))


@conversation(vary=IncrementalAlterConfigsRequest)
def broker_settings_cannot_be_altered(session: Session) -> None:
    a = session.client("a")

    a.ask(alter_request("1", ("node.id", SET, "2"), kind=BROKER))
    a.ask(alter_request("2", ("num.io.threads", SET, "2"), kind=BROKER))
    a.ask(alter_request("one", ("num.io.threads", SET, "2"), kind=BROKER))
    with session.deviates(FIXED, "answer*"):
        a.ask(
            alter_request(
                "1", ("log.cleaner.backoff.ms", SET, "100"), kind=BROKER, validate_only=True
            )
        )


def wait_for(session: Session, t: Topic, name: str, text: str) -> None:
    """Wait until a change is visible: Kafka responds before that."""

    def has_arrived() -> bool:
        (result,) = session.query(describe_request(t, (name,))).results
        return bool(result.configs[0].value == text)

    wait_until(has_arrived, DEADLINE_S, f"{name} to be {text}")


def narrow(answer: DescribeConfigsResponse, names: tuple[str, ...]) -> DescribeConfigsResponse:
    results = tuple(
        replace(each, configs=tuple(one for one in each.configs if one.name in names))
        for each in answer.results
    )
    return narrowed(answer, results=results)
