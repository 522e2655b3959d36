"""A server that answers every frame with its correlation id and does nothing else.

Its cost is that of Python and the system. Benchmarks run it beside the node, so that the node's own
cost can be told apart on any machine.
"""

import asyncio
import sys
from typing import cast

_ROOM = bytearray(64 * 1024)


class Bare(asyncio.BufferedProtocol):
    """Answers like a heartbeat response; treats each received chunk as one frame."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def get_buffer(self, sizehint: int) -> bytearray:  # noqa: ARG002  # asyncio's name
        return _ROOM

    def buffer_updated(self, nbytes: int) -> None:
        frame = bytes(memoryview(_ROOM)[4:nbytes])
        self._transport.write(b"\0\0\0\x0c" + frame[4:8] + bytes(8))


async def main() -> None:
    listener = await asyncio.get_running_loop().create_server(Bare, "127.0.0.1", 0)
    sys.stdout.write(f"{listener.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await listener.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
