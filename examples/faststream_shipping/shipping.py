"""A FastStream app that ships every order, and tells so in another topic.

`AckPolicy.NACK_ON_ERROR` commits an order when its shipment is published, and reads it again if
something fails. FastStream's default commits orders before they are handled.
"""

import asyncio
import os
from typing import Protocol

from faststream import AckPolicy, FastStream
from faststream.kafka import KafkaBroker
from pydantic import BaseModel


class Order(BaseModel):
    id: int
    address: str


class Shipment(BaseModel):
    order_id: int
    tracking: str


class Carrier(Protocol):
    async def ship(self, order: Order) -> str:
        """Send the goods; return the tracking number. A repeated order changes nothing."""


class LocalCarrier:
    async def ship(self, order: Order) -> str:
        return f"local-{order.id}"


def make_app(broker: KafkaBroker, carrier: Carrier) -> FastStream:
    @broker.subscriber(
        "orders",
        group_id="shipping",
        auto_offset_reset="earliest",
        ack_policy=AckPolicy.NACK_ON_ERROR,
    )
    @broker.publisher("shipments")
    async def ship(order: Order) -> Shipment:
        return Shipment(order_id=order.id, tracking=await carrier.ship(order))

    return FastStream(broker)


async def main() -> None:
    broker = KafkaBroker(os.environ["BOOTSTRAP_SERVERS"])
    await make_app(broker, LocalCarrier()).run()


if __name__ == "__main__":
    asyncio.run(main())
