"""kohort decode response."""

import re
from difflib import get_close_matches
from typing import Annotated, Final

import typer

from kohort.cli.decode.command_io import (
    AsText,
    HexDigits,
    decode_frame,
    print_decoded,
    read_hex,
    report_decode_errors,
)
from kohort.types import ErrorCode
from kohort.wire.api import FILES, Api, find_api
from kohort.wire.envelope import decode_response
from kohort.wire.header import API_VERSIONS_KEY
from kohort.wire.jsonable import Json, jsonable

_KEYS: Final = {file[4:].replace("_", ""): int(file[1:3]) for file in FILES}
"""API keys by lower-case name without separators: join-group and JoinGroup are the same."""


def run(
    digits: HexDigits,
    *,
    api: Annotated[str, typer.Option(help="API name or key: join-group, or 11.")],
    version: Annotated[int, typer.Option(help="Version of the request.")],
    as_text: AsText = False,
) -> None:
    """Decode a response. It names neither API nor version, so give both."""
    found = _get_api(api)
    if version not in found.versions:
        supported = f"{found.name} has versions {found.versions[0]} to {found.versions[-1]}."
        raise typer.BadParameter(supported, param_hint="--version")
    with report_decode_errors():
        print_decoded(
            decode_frame(
                read_hex(digits), lambda each: _decode(each, found, version, as_text=as_text)
            )
        )


def _decode(frame: bytes, api: Api, version: int, *, as_text: bool) -> Json:
    correlation_id, body = decode_response(frame, api.key, version)
    if api.key == API_VERSIONS_KEY and body.error_code == ErrorCode.UNSUPPORTED_VERSION:
        version = 0  # Brokers send this error in version 0, whatever was requested (KIP-511).
    return {
        "api": api.name,
        "version": version,
        "header": {"correlation_id": correlation_id},
        "body": jsonable(body, version=version, as_text=as_text),
    }


def _get_api(name: str) -> Api:
    normalized = re.sub(r"[\W_]", "", name).lower()
    numbers = {str(key): key for key in _KEYS.values()}
    key = (_KEYS | numbers).get(normalized)
    api = None if key is None else find_api(key)
    if api is None:
        nearest = [find_api(_KEYS[near]) for near in get_close_matches(normalized, _KEYS, n=1)]
        hint = "".join(f" Did you mean {near.name}?" for near in nearest if near is not None)
        raise typer.BadParameter(f"there is no API {name!r}.{hint}", param_hint="--api")
    return api
