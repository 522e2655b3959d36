"""A Kohort node inside an asyncio program, used by aiokafka's producer and consumer.

The node runs on its own thread, so it does not block the program's event loop.
"""

import asyncio

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

import kohort


async def produce(bootstrap_servers: str, count: int) -> None:
    async with AIOKafkaProducer(bootstrap_servers=bootstrap_servers) as producer:
        for number in range(count):
            await producer.send_and_wait("numbers", f"{number}".encode())


async def consume(bootstrap_servers: str, count: int) -> list[int]:
    consumer = AIOKafkaConsumer(
        "numbers",
        bootstrap_servers=bootstrap_servers,
        group_id="adders",
        auto_offset_reset="earliest",
    )
    async with consumer:
        return [int((await anext(consumer)).value) for _ in range(count)]


async def main() -> None:
    async with kohort.Node() as node:
        await produce(node.bootstrap_servers, 10)
        numbers = await asyncio.wait_for(consume(node.bootstrap_servers, 10), 30)
        print(f"read {len(numbers)} records, sum {sum(numbers)}")


if __name__ == "__main__":
    asyncio.run(main())
