"""kohort decode request."""

from kohort.cli.decode.command_io import (
    AsText,
    HexDigits,
    decode_frame,
    print_decoded,
    read_hex,
    report_decode_errors,
)
from kohort.wire.api import find_api
from kohort.wire.envelope import decode_request
from kohort.wire.header import request_header_version
from kohort.wire.jsonable import Json, jsonable


def run(digits: HexDigits, *, as_text: AsText = False) -> None:
    """Decode a request. Its header names the API and the version."""
    with report_decode_errors():
        print_decoded(decode_frame(read_hex(digits), lambda each: _decode(each, as_text=as_text)))


def _decode(frame: bytes, *, as_text: bool) -> Json:
    header, body = decode_request(frame)
    api, version = find_api(header.request_api_key), header.request_api_version
    assert api is not None, "decode_request rejects unknown API keys"
    return {
        "api": api.name,
        "version": version,
        "header": jsonable(header, version=request_header_version(api.request, version)),
        "body": jsonable(body, version=version, as_text=as_text),
    }
