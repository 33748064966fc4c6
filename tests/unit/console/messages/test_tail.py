"""The live tail shows what is written after it began."""

import asyncio

from barnabas.client import AsyncConsumer, AsyncProducer
from barnabas.console.messages.browse import MessageQuery
from barnabas.console.messages.filters import parse_filter
from barnabas.console.messages.masks import Masks
from barnabas.console.messages.tail import MESSAGES_A_STEP, TAIL_SETTINGS, follow
from barnabas.testing import EmbeddedBroker
from tests.unit.console.messages.reading import number, produce

DEADLINE_S = 60


def test_new_messages_come_oldest_first_and_too_many_are_counted(broker: EmbeddedBroker) -> None:
    topic = broker.create_topic("console-tail", 2)
    produce(broker, topic, [(0, 1, None, b"1")])

    async def run() -> tuple[list[int], int, int]:
        settings = {"bootstrap.servers": broker.bootstrap_servers}
        values: list[int] = []
        seen = left_out = 0
        async with AsyncConsumer({**settings, **TAIL_SETTINGS}) as consumer, AsyncProducer({**settings, "linger.ms": 50}) as producer:
            steps = follow(consumer, MessageQuery(topic), number, masks=Masks())
            step = await anext(steps)  # it knows the end
            for value in range(2, 202):
                await producer.send(topic, b"%d" % value, partition=0)
            while True:
                values += [match.item for match in step.found]
                assert len(step.found) <= MESSAGES_A_STEP
                seen, left_out = seen + step.seen, left_out + step.left_out
                if seen == 200:
                    await steps.aclose()
                    return values, seen, left_out
                step = await anext(steps)

    values, seen, left_out = asyncio.run(asyncio.wait_for(run(), DEADLINE_S))
    assert values == sorted(values) and values[-1] == 201 and 1 not in values
    assert len(values) + left_out == seen == 200


def test_a_tail_has_a_filter(broker: EmbeddedBroker) -> None:
    topic = broker.create_topic("console-tail-filter")

    async def run() -> list[int]:
        settings = {"bootstrap.servers": broker.bootstrap_servers}
        async with AsyncConsumer({**settings, **TAIL_SETTINGS}) as consumer, AsyncProducer(settings) as producer:
            steps = follow(consumer, MessageQuery(topic, filter=parse_filter("expression", "offset in [3, 5]")), number, masks=Masks())
            values = [match.item for match in (await anext(steps)).found]  # none: it knows the end
            for value in range(6):
                await (await producer.send(topic, b"%d" % value))
            while 5 not in values:
                values += [match.item for match in (await anext(steps)).found]
            await steps.aclose()
            return values

    assert asyncio.run(asyncio.wait_for(run(), DEADLINE_S)) == [3, 5]
