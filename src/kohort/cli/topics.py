"""kohort topics: which there are, what they are like, and how that is changed."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from kohort.cli.clusters import (
    TIMEOUT_MS,
    AsJson,
    Bootstrap,
    Config,
    Timeout,
    complete_topics,
    refuse,
    say_error,
    talking_to,
)
from kohort.cli.tables import show_json, show_table
from kohort.client.topic_partition import TopicPartition
from kohort.types import Offset, Topic

if TYPE_CHECKING:
    from kohort.admin.cluster import Cluster
    from kohort.admin.topics import DescribedTopic, PartitionPlace, Setting

app = typer.Typer(
    name="topics",
    help="""Look at topics and change them, on Kohort and on any Kafka.

    The cluster is named by --bootstrap, or once for all commands: export
    KOHORT_BOOTSTRAP=localhost:9092
    """,
    no_args_is_help=True,
)

_Topic = Annotated[
    str, typer.Argument(metavar="TOPIC", help="Which one.", autocompletion=complete_topics)
]
_NewTopic = Annotated[str, typer.Argument(metavar="TOPIC", help="Its name.")]
_Topics = Annotated[
    list[str],
    typer.Argument(metavar="TOPIC", help="Which ones.", autocompletion=complete_topics),
]
_ExcludeInternal = Annotated[
    bool, typer.Option("--exclude-internal", help="Without those whose names begin with __.")
]
_Partitions = Annotated[int | None, typer.Option(metavar="N", min=1, help="How many.")]
_Replication = Annotated[
    int | None, typer.Option("--replication-factor", metavar="N", min=1, help="How many copies.")
]
_Configs = Annotated[
    list[str] | None,
    typer.Option("--config", metavar="NAME=VALUE", help="A setting; may be repeated."),
]
_DeleteConfigs = Annotated[
    list[str] | None,
    typer.Option(
        "--delete-config", metavar="NAME", help="A setting that shall be as everywhere again."
    ),
]
_IfNotExists = Annotated[
    bool, typer.Option("--if-not-exists", help="Be content where it is there already.")
]
_IfExists = Annotated[bool, typer.Option("--if-exists", help="Be content where it is not there.")]


@app.command("list")
def list_(
    *,
    bootstrap: Bootstrap,
    exclude_internal: _ExcludeInternal = False,
    command_config: Config = None,
    timeout: Timeout = TIMEOUT_MS,
    as_json: AsJson = False,
) -> None:
    """List topics with the number of their partitions and their size.

    \b
      kohort topics list
    """
    from kohort.admin.topics import list_topics, sizes  # noqa: PLC0415  # other verbs need none

    with talking_to(bootstrap, command_config, timeout) as cluster:
        found = [
            each for each in list_topics(cluster) if not (exclude_internal and each.is_internal)
        ]
        bytes_ = sizes(cluster, [each.topic for each in found])
    rows = [
        (each.topic, len(each.partitions), each.replication, _total(bytes_, each)) for each in found
    ]
    if as_json:
        names = ("topic", "partitions", "replication_factor", "bytes")
        show_json([dict(zip(names, row, strict=True)) for row in rows])
        return
    show_table(("TOPIC", "#PARTITIONS", "#REPLICAS", "BYTES"), rows)
    if not rows:
        say_error("there are no topics")


@app.command()
def describe(
    topics: _Topics,
    *,
    bootstrap: Bootstrap,
    command_config: Config = None,
    timeout: Timeout = TIMEOUT_MS,
    as_json: AsJson = False,
) -> None:
    """Show a topic's partitions, where they are and what they hold, and its own settings.

    \b
      kohort topics describe orders
    """
    from kohort.admin.topics import get_topics, settings, sizes  # noqa: PLC0415  # as above

    with talking_to(bootstrap, command_config, timeout) as cluster:
        found = get_topics(cluster, [Topic(each) for each in topics])
        bytes_ = sizes(cluster, found)
        earliest, latest = _reach(cluster, found)
        own = {
            topic: [each for each in settings(cluster, topic) if not each.is_default]
            for topic in found
        }
    if as_json:
        show_json(
            [
                _topic_json(each, own[topic], earliest, latest, bytes_)
                for topic, each in found.items()
            ]
        )
        return
    show_table(
        ("TOPIC", "PARTITION", "LEADER", "REPLICAS", "ISR", "START", "END", "BYTES"),
        [
            (topic, *_partition_row(topic, place, earliest, latest, bytes_))
            for topic, each in found.items()
            for place in each.partitions
        ],
    )
    if any(own.values()):
        typer.echo()
        rows = [(topic, each.name, each.content) for topic in found for each in own[topic]]
        show_table(("TOPIC", "SETTING", "VALUE"), rows)


@app.command()
def create(
    topic: _NewTopic,
    *,
    bootstrap: Bootstrap,
    partitions: _Partitions = None,
    replication_factor: _Replication = None,
    config: _Configs = None,
    if_not_exists: _IfNotExists = False,
    command_config: Config = None,
    timeout: Timeout = TIMEOUT_MS,
) -> None:
    """Create a topic. What is not said is as the cluster is set up.

    \b
      kohort topics create orders --partitions 6
      kohort topics create prices --config cleanup.policy=compact
    """
    from kohort.admin.errors import TopicExists  # noqa: PLC0415  # as above
    from kohort.admin.topics import create_topic  # noqa: PLC0415

    settings = _read_configs(config)
    with talking_to(bootstrap, command_config, timeout) as cluster:
        try:
            create_topic(
                cluster,
                Topic(topic),
                partitions=partitions,
                replication=replication_factor,
                settings=settings,
            )
        except TopicExists:
            if not if_not_exists:
                raise
            typer.echo(f"topic {topic!r} is there already")
            return
    typer.echo(f"topic {topic!r} is created")


@app.command()
def alter(
    topic: _Topic,
    *,
    bootstrap: Bootstrap,
    partitions: _Partitions = None,
    config: _Configs = None,
    delete_config: _DeleteConfigs = None,
    command_config: Config = None,
    timeout: Timeout = TIMEOUT_MS,
) -> None:
    """Give a topic more partitions, or other settings.

    With more partitions, the records of a key may go to another one from then on.

    \b
      kohort topics alter orders --partitions 12
      kohort topics alter orders --config retention.ms=86400000
      kohort topics alter orders --delete-config retention.ms
    """
    from kohort.admin.topics import add_partitions, alter_settings  # noqa: PLC0415  # as above

    changes: dict[str, str | None] = {**_read_configs(config)}
    for name in delete_config or ():
        if name in changes:
            refuse(f"{name} cannot be both set and deleted")
        changes[name] = None
    if partitions is None and not changes:
        refuse("say what to change: --partitions, --config or --delete-config")
    with talking_to(bootstrap, command_config, timeout) as cluster:
        # Settings first: they are refused as a whole, and more partitions stay for ever.
        if changes:
            alter_settings(cluster, Topic(topic), changes)
        if partitions is not None:
            add_partitions(cluster, Topic(topic), partitions)
    typer.echo(f"topic {topic!r} is altered")


@app.command()
def delete(
    topics: _Topics,
    *,
    bootstrap: Bootstrap,
    if_exists: _IfExists = False,
    command_config: Config = None,
    timeout: Timeout = TIMEOUT_MS,
) -> None:
    """Delete topics with all that is in them. It cannot be taken back.

    \b
      kohort topics delete orders
    """
    from kohort.admin.errors import AdminError, NoSuchTopic  # noqa: PLC0415  # as above
    from kohort.admin.topics import delete_topic  # noqa: PLC0415

    failed = False
    with talking_to(bootstrap, command_config, timeout) as cluster:
        for topic in topics:
            try:
                delete_topic(cluster, Topic(topic))
                typer.echo(f"topic {topic!r} is deleted")
            except AdminError as error:
                if isinstance(error, NoSuchTopic) and if_exists:
                    typer.echo(f"topic {topic!r} is not there")
                    continue
                say_error(error)
                failed = True
    if failed:
        raise typer.Exit(1)


def _read_configs(given: list[str] | None) -> dict[str, str]:
    found: dict[str, str] = {}
    for each in given or ():
        name, separator, content = each.partition("=")
        if not separator or not name.strip():
            refuse(f"--config {each!r} is not NAME=VALUE")
        found[name.strip()] = content
    return found


def _reach(
    cluster: "Cluster", found: "dict[Topic, DescribedTopic]"
) -> tuple[dict[TopicPartition, Offset], dict[TopicPartition, Offset]]:
    from kohort.admin.offsets import ends  # noqa: PLC0415  # as above

    places = [
        TopicPartition(topic, place.partition)
        for topic, each in found.items()
        for place in each.partitions
        # Nobody can be asked about a partition without a leader.
        if place.leader is not None
    ]
    return ends(cluster, places, "earliest"), ends(cluster, places, "latest")


def _total(sizes: dict[TopicPartition, int], described: "DescribedTopic") -> int | None:
    known = [
        sizes[place]
        for each in described.partitions
        if (place := TopicPartition(described.topic, each.partition)) in sizes
    ]
    return sum(known) if known else None


def _partition_row(
    topic: Topic,
    each: "PartitionPlace",
    earliest: dict[TopicPartition, Offset],
    latest: dict[TopicPartition, Offset],
    sizes: dict[TopicPartition, int],
) -> tuple[object, ...]:
    place = TopicPartition(topic, each.partition)
    return (
        each.partition,
        each.leader,
        ",".join(map(str, each.replicas)),
        ",".join(map(str, each.in_sync)),
        earliest.get(place),
        latest.get(place),
        sizes.get(place),
    )


def _topic_json(
    described: "DescribedTopic",
    own: "list[Setting]",
    earliest: dict[TopicPartition, Offset],
    latest: dict[TopicPartition, Offset],
    sizes: dict[TopicPartition, int],
) -> dict[str, Any]:
    return {
        "topic": described.topic,
        "internal": described.is_internal,
        "settings": {each.name: each.content for each in own},
        "partitions": [
            {
                "partition": each.partition,
                "leader": each.leader,
                "replicas": list(each.replicas),
                "isr": list(each.in_sync),
                "start": earliest.get(TopicPartition(described.topic, each.partition)),
                "end": latest.get(TopicPartition(described.topic, each.partition)),
                "bytes": sizes.get(TopicPartition(described.topic, each.partition)),
            }
            for each in described.partitions
        ],
    }
