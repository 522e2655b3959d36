"""The least a server in Python can do: take a frame, answer with its number and nothing else.

What a node needs beyond this is its own doing; what this needs is Python's and the system's. Only
benchmarks use it, in the same run as the node, so that one can be told from the other on any
machine.
"""

import asyncio
import sys
from typing import cast

_ROOM = bytearray(64 * 1024)


class Bare(asyncio.BufferedProtocol):
    """Answers as a heartbeat is answered, whatever was asked; believes that a piece is a frame."""

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
