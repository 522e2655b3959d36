"""kohort groups: all that an operator does with consumer groups, one file per kind of question."""

import typer

from kohort.cli import watch
from kohort.cli.groups import describing, lagging, listing, rebalancing, removing, resetting

app = typer.Typer(
    name="groups",
    help="""Look at consumer groups and change them, on Kohort and on any Kafka.

    The cluster is named by --bootstrap, or once for all commands: export
    KOHORT_BOOTSTRAP=localhost:9092
    """,
    no_args_is_help=True,
)

app.command("list")(listing.run)
app.command("describe")(describing.describe)
app.command("members")(describing.members)
app.command("offsets")(describing.offsets)
app.command("lag")(lagging.run)
app.command("rebalances")(rebalancing.run)
app.command("watch")(watch.run)
app.command("reset")(resetting.run)
app.command("delete")(removing.delete)
app.command("delete-offsets")(removing.delete_offsets)
app.command("remove-member")(removing.remove_member)
