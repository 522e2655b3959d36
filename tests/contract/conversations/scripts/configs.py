"""Settings of topics and brokers: described and changed. Only some of them are looked at."""

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
from tests.contract.conversations.records import made
from tests.contract.conversations.talking import DEADLINE_S, Talk, narrowed
from tests.waiting import wait_until

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32

SET, DELETE, APPEND, SUBTRACT = range(4)

FIXED = "only topics can be changed; this node's settings are those it was started with"

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


def describing(
    name: str, keys: tuple[str, ...] | None, kind: int = TOPIC, **words: Any
) -> DescribeConfigsRequest:
    asked = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
    return DescribeConfigsRequest(resources=(asked,), **words)


def altering(name: str, *configs: tuple[str, int, str | None], **words: Any) -> Any:
    kind: int = words.pop("kind", TOPIC)
    told = AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=tuple(
            AlterableConfig(name=setting, config_operation=operation, value=text)
            for setting, operation, text in configs
        ),
    )
    return IncrementalAlterConfigsRequest(resources=(told,), **words)


# Describing


@conversation(vary=DescribeConfigsRequest)
def the_settings_of_a_topic_are_told(talk: Talk) -> None:
    t, _ = made(talk, cleanup_policy="compact", retention_ms="1000")

    talk.speaker("a").ask(describing(t, TOPIC_SETTINGS))


@conversation(vary=DescribeConfigsRequest)
def where_a_setting_comes_from_is_told_to_who_asks(talk: Talk) -> None:
    t, _ = made(talk, cleanup_policy="compact", segment_ms="1000000")

    because = "Kafka has a setting of the broker behind most of those of a topic"
    with talk.deviates(because, "answer.results.0.configs.*.synonyms*"):
        talk.speaker("a").ask(describing(t, TOPIC_SETTINGS, include_synonyms=True))


@conversation(vary=DescribeConfigsRequest, since=3)
def what_a_setting_means_is_told_to_who_asks(talk: Talk) -> None:
    t, _ = made(talk)

    talk.speaker("a").ask(describing(t, ("retention.ms",), include_documentation=True))


@conversation(vary=DescribeConfigsRequest)
def settings_that_do_not_exist_are_not_told(talk: Talk) -> None:
    t, _ = made(talk)
    a = talk.speaker("a")

    a.ask(describing(t, ("no.such.setting", "retention.ms")))
    a.ask(describing(t, ("no.such.setting",)))


@conversation(vary=DescribeConfigsRequest)
def all_settings_are_told_to_who_names_none(talk: Talk) -> None:
    t, _ = made(talk)

    def some(answer: DescribeConfigsResponse) -> DescribeConfigsResponse:
        return narrow(answer, TOPIC_SETTINGS)

    a = talk.speaker("a")
    a.ask(describing(t, None), through=some)
    a.ask(describing(t, ()), through=some)


@conversation(vary=DescribeConfigsRequest)
def a_topic_that_does_not_exist_has_no_settings(talk: Talk) -> None:
    a = talk.speaker("a")

    a.ask(describing(talk.name("unknown"), None))
    a.ask(describing(talk.name("un known"), None))
    a.ask(describing("", None))


@conversation(vary=DescribeConfigsRequest)
def the_settings_of_a_broker_are_told(talk: Talk) -> None:
    a = talk.speaker("a")

    with talk.deviates(FIXED, "*.read_only"):
        a.ask(describing("1", BROKER_SETTINGS, BROKER))


@conversation(vary=DescribeConfigsRequest)
def where_a_setting_of_a_broker_comes_from_is_told_to_who_asks(talk: Talk) -> None:
    names = ("group.max.size", "num.partitions", "group.min.session.timeout.ms")

    talk.speaker("a").ask(describing("1", names, BROKER, include_synonyms=True))


@conversation(vary=DescribeConfigsRequest)
def only_this_broker_is_described(talk: Talk) -> None:
    a = talk.speaker("a")

    a.ask(describing("2", None, BROKER))
    a.ask(describing("one", None, BROKER))
    a.ask(describing("", ("num.partitions",), BROKER))


@conversation(vary=DescribeConfigsRequest)
def a_kind_that_does_not_exist_has_no_settings(talk: Talk) -> None:
    a = talk.speaker("a")

    a.ask(describing("x", None, 0))
    a.ask(describing("x", None, 99))


@conversation(vary=DescribeConfigsRequest)
def only_topics_and_brokers_have_settings(talk: Talk) -> None:
    a = talk.speaker("a")

    because = "groups, client metrics and loggers have no settings here"
    for kind, name in ((GROUP, talk.group()), (LOGGER, "1"), (METRICS, "x")):
        with talk.deviates(because, "answer.results.0*"):
            a.ask(describing(name, ("none.of.them",), kind))


# Changing


@conversation(vary=IncrementalAlterConfigsRequest)
def a_setting_is_set_and_deleted(talk: Talk) -> None:
    t, _ = made(talk)
    a = talk.speaker("a")

    a.ask(altering(t, ("retention.ms", SET, "5000"), ("segment.ms", SET, "6000")))
    wait_for(talk, t, "retention.ms", "5000")
    a.ask(describing(t, ("retention.ms", "segment.ms")))
    a.ask(altering(t, ("retention.ms", DELETE, None)))
    wait_for(talk, t, "retention.ms", "-1")
    a.ask(describing(t, ("retention.ms", "segment.ms")))


@conversation(vary=IncrementalAlterConfigsRequest)
def a_list_grows_and_shrinks(talk: Talk) -> None:
    t, _ = made(talk)
    a = talk.speaker("a")

    a.ask(altering(t, ("cleanup.policy", APPEND, "compact")))
    wait_for(talk, t, "cleanup.policy", "delete,compact")
    a.ask(altering(t, ("cleanup.policy", SUBTRACT, "delete")))
    wait_for(talk, t, "cleanup.policy", "compact")
    a.ask(altering(t, ("cleanup.policy", APPEND, "compact")))
    a.ask(altering(t, ("cleanup.policy", SUBTRACT, "delete")))
    a.ask(altering(t, ("cleanup.policy", APPEND, "burn")))
    a.ask(altering(t, ("retention.ms", APPEND, "5")))
    a.ask(altering(t, ("retention.ms", SUBTRACT, "5")))
    a.ask(describing(t, ("cleanup.policy", "retention.ms")))


@conversation(vary=IncrementalAlterConfigsRequest)
def a_change_may_only_be_tried(talk: Talk) -> None:
    t, _ = made(talk)
    a = talk.speaker("a")

    a.ask(altering(t, ("retention.ms", SET, "5000"), validate_only=True))
    a.ask(altering(t, ("retention.ms", SET, "soon"), validate_only=True))
    a.ask(describing(t, ("retention.ms",)))


@conversation(vary=IncrementalAlterConfigsRequest)
def a_setting_must_exist_and_make_sense(talk: Talk) -> None:
    t, _ = made(talk)
    a = talk.speaker("a")

    a.ask(altering(t, ("no.such.setting", SET, "1")))
    a.ask(altering(t, ("no.such.setting", DELETE, None)))
    a.ask(altering(t, ("retention.ms", SET, "soon")))
    a.ask(altering(t, ("retention.ms", SET, None)))
    a.ask(altering(t, ("retention.ms", SET, "")))
    with talk.deviates("over an operation that does not exist Kafka fails", "*.error_code"):
        a.ask(altering(t, ("retention.ms", 9, "1")))
    a.ask(altering(t, ("retention.ms", SET, "1"), ("retention.ms", SET, "2")))
    a.ask(altering(t, ("retention.ms", SET, "1"), ("segment.ms", SET, "soon")))
    a.ask(altering(t))
    a.ask(describing(t, ("retention.ms", "segment.ms")))


@conversation(vary=IncrementalAlterConfigsRequest)
def what_does_not_exist_cannot_be_changed(talk: Talk) -> None:
    a = talk.speaker("a")

    a.ask(altering(talk.name("unknown"), ("retention.ms", SET, "1")))
    a.ask(altering(talk.name("un known"), ("retention.ms", SET, "1")))
    a.ask(altering("", ("retention.ms", SET, "1")))
    a.ask(altering("x", ("retention.ms", SET, "1"), kind=99))
    a.ask(IncrementalAlterConfigsRequest())


@conversation(vary=IncrementalAlterConfigsRequest)
def a_topic_that_is_named_twice_is_not_changed(talk: Talk) -> None:
    t, _ = made(talk)
    twice = altering(t, ("retention.ms", SET, "1")).resources * 2
    a = talk.speaker("a")

    a.ask(IncrementalAlterConfigsRequest(resources=twice))
    a.ask(describing(t, ("retention.ms",)))


@conversation(vary=IncrementalAlterConfigsRequest)
def a_broker_keeps_what_it_was_started_with(talk: Talk) -> None:
    a = talk.speaker("a")

    a.ask(altering("1", ("node.id", SET, "2"), kind=BROKER))
    a.ask(altering("2", ("num.io.threads", SET, "2"), kind=BROKER))
    a.ask(altering("one", ("num.io.threads", SET, "2"), kind=BROKER))
    with talk.deviates(FIXED, "answer*"):
        a.ask(
            altering("1", ("log.cleaner.backoff.ms", SET, "100"), kind=BROKER, validate_only=True)
        )


def wait_for(talk: Talk, t: Topic, name: str, text: str) -> None:
    """Until a change has arrived: that it will is answered before."""

    def has_arrived() -> bool:
        (result,) = talk.peek(describing(t, (name,))).results
        return bool(result.configs[0].value == text)

    wait_until(has_arrived, DEADLINE_S, f"{name} to be {text}")


def narrow(answer: DescribeConfigsResponse, names: tuple[str, ...]) -> DescribeConfigsResponse:
    results = tuple(
        replace(each, configs=tuple(one for one in each.configs if one.name in names))
        for each in answer.results
    )
    return narrowed(answer, results=results)
