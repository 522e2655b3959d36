"""Options that several topic commands share."""

from typing import Annotated

import typer

from kohort.cli.cluster_options import complete_topics, usage_error
from kohort.settings.readers import BadValue, read_pairs

ExistingTopic = Annotated[
    str, typer.Argument(metavar="TOPIC", help="Topic name.", autocompletion=complete_topics)
]
ExistingTopics = Annotated[
    list[str], typer.Argument(metavar="TOPIC", help="Topic names.", autocompletion=complete_topics)
]
PartitionCount = Annotated[
    int | None, typer.Option("--partitions", metavar="N", min=1, help="Number of partitions.")
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--config", metavar="NAME=VALUE", help="Set a topic setting. May be repeated."),
]


def read_settings(given: list[str] | None) -> dict[str, str]:
    try:
        return read_pairs(given or (), "--config", may_repeat=True)
    except BadValue as error:
        usage_error(str(error))
