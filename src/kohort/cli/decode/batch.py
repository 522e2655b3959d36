"""kohort decode batch."""

from kohort.cli.decode.command_io import (
    LENGTH_BYTES,
    AsText,
    HexDigits,
    has_length_prefix,
    print_decoded,
    read_hex,
    report_decode_errors,
)
from kohort.wire import batch
from kohort.wire.jsonable import Json, jsonable


def run(digits: HexDigits, *, as_text: AsText = False) -> None:
    """Decode one record batch or several consecutive ones."""
    with report_decode_errors():
        data = read_hex(digits)
        position = LENGTH_BYTES if has_length_prefix(data) else 0
        decoded: list[Json] = []
        while position < len(data):
            each = batch.decode(data, position)
            position += each.header.size_in_bytes
            decoded.append(_as_json(each, as_text=as_text))
        print_decoded(decoded)


def _as_json(each: batch.Batch, *, as_text: bool) -> Json:
    header = each.header
    return {
        "header": jsonable(header),
        "codec": header.codec.name.lower(),
        "timestamp_type": header.timestamp_type.name.lower(),
        "is_transactional": header.is_transactional,
        "is_control": header.is_control,
        "records": jsonable(each.records, as_text=as_text),
    }
