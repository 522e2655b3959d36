"""kohort serve: a broker in the foreground, with or without the console."""

from pathlib import Path
from typing import Annotated, Final

import typer

from kohort.cli.serve_args import ServeOptions
from kohort.cli.serve_run import serve
from kohort.node.config import SETTINGS, format_value

_DEFAULT: Final = ServeOptions()


_Listen = Annotated[
    str, typer.Option(metavar="HOST:PORT", help="Address to listen on. Port 0: any free port.")
]
_Advertise = Annotated[
    str,
    typer.Option(
        metavar="HOST[:PORT]",
        help="Address that clients are told to connect to; the setting advertised.listeners.",
    ),
]
_Data = Annotated[Path, typer.Option(metavar="DIR", help="Data directory. Created if missing.")]
_Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Change a setting. May be repeated."),
]
_Config = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Read settings from a TOML file.")
]
_Metrics = Annotated[
    str,
    typer.Option(metavar="HOST:PORT", help="Serve Prometheus metrics here, at /metrics."),
]
_Control = Annotated[
    str,
    typer.Option(metavar="HOST:PORT", help="Serve control operations for tests here, over HTTP."),
]
_ReadyFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Write the addresses to this file, as a JSON object, once groups are loaded.",
    ),
]
_StopAtEof = Annotated[
    str,
    typer.Option(
        metavar="FD",
        help="Stop at the end of this file descriptor. 0 is stdin: a pipe from the parent "
        "process, which then leaves no broker behind.",
    ),
]
_Console = Annotated[str, typer.Option(metavar="HOST:PORT", help="Serve the web console here.")]
_AllowedHost = Annotated[
    list[str] | None,
    typer.Option(
        metavar="HOST",
        help="Answer to this host name on --metrics, --control and --console. May be "
        "repeated. "
        "https://HOST: the console is behind a TLS proxy.",
    ),
]
_Settings = Annotated[
    bool, typer.Option("--settings", help="Print all settings with their defaults and exit.")
]


def run(
    *,
    listen: _Listen = _DEFAULT.listen,
    advertise: _Advertise = _DEFAULT.advertise,
    data: _Data = _DEFAULT.data,
    set_: _Set = None,
    config: _Config = None,
    metrics: _Metrics = "",
    control: _Control = "",
    ready_file: _ReadyFile = None,
    stop_at_eof: _StopAtEof = "",
    console: _Console = "",
    allowed_host: _AllowedHost = None,
    settings: _Settings = False,
) -> None:
    """Run a broker until SIGTERM or Ctrl-C."""
    if settings:
        _print_settings()
        return
    options = ServeOptions(
        listen=listen,
        data=data,
        set=tuple(set_ or ()),
        config=config,
        metrics=metrics,
        control=control,
        ready_file=ready_file,
        stop_at_eof=stop_at_eof,
        advertise=advertise,
        allowed_host=tuple(allowed_host or ()),
    )
    if not console:
        raise typer.Exit(serve(options))
    # The console's libraries are an extra, which a node alone does not need.
    from kohort.cli.serve_console import console_beside_node  # noqa: PLC0415

    raise typer.Exit(serve(options, console_beside_node(console, options.allowed_host)))


def _print_settings() -> None:
    for setting in SETTINGS.values():
        typer.echo(f"{setting.name}={format_value(setting.default)}\n    {setting.meaning}")
