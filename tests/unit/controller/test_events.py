"""The event queue: events are processed in order, one at a time, each to its end."""

from __future__ import annotations

import asyncio

from barnabas.controller.controller import settled
from barnabas.controller.events import BrokerChange, ControlledShutdown, ControllerChange, ControllerEvent, EventQueue, Expire, TopicChange
from barnabas.topic_partition import TopicPartition


class Processor:
    """Records its events; an event in `held` is not finished before it is released. The result of an event comes from `results`."""

    def __init__(self) -> None:
        self.results: dict[ControllerEvent, object] = {}
        self.begun: list[ControllerEvent] = []
        self.finished: list[ControllerEvent] = []
        self.held: dict[ControllerEvent, asyncio.Event] = {}

    async def process(self, event: ControllerEvent) -> object:
        self.begun.append(event)
        if event in self.held:
            await self.held[event].wait()
        self.finished.append(event)
        return self.results.get(event)


async def test_events_are_processed_in_the_order_of_their_coming() -> None:
    processor = Processor()
    queue = EventQueue(processor.process)
    for event in (BrokerChange(), TopicChange(), ControllerChange()):
        last = queue.put(event)
    queue.start()
    await last
    assert processor.finished == [BrokerChange(), TopicChange(), ControllerChange()]
    assert queue.is_idle
    await queue.close()


async def test_an_event_begins_when_the_one_before_has_come_to_its_end() -> None:
    processor = Processor()
    processor.held[BrokerChange()] = asyncio.Event()
    queue = EventQueue(processor.process)
    queue.start()
    queue.put(BrokerChange())
    second = queue.put(TopicChange())
    while not processor.begun:
        await asyncio.wait([second], timeout=0)
    assert processor.begun == [BrokerChange()]
    assert not queue.is_idle
    processor.held[BrokerChange()].set()
    await second
    assert processor.finished == [BrokerChange(), TopicChange()]
    await queue.close()


async def test_what_waits_is_void_when_the_session_expires() -> None:
    processor = Processor()
    queue = EventQueue(processor.process)
    preempted = queue.put(BrokerChange())
    expired = queue.clear_and_put(Expire())
    queue.start()
    await expired
    assert preempted.cancelled()
    assert processor.finished == [Expire()]
    await queue.close()


async def test_a_closed_queue_lets_the_event_in_process_finish_and_takes_no_more() -> None:
    processor = Processor()
    processor.held[BrokerChange()] = asyncio.Event()
    queue = EventQueue(processor.process)
    queue.start()
    first = queue.put(BrokerChange())
    waiting = queue.put(TopicChange())
    while not processor.begun:
        await asyncio.wait([first], timeout=0)
    closing = asyncio.ensure_future(queue.close())
    processor.held[BrokerChange()].set()
    await closing
    assert processor.finished == [BrokerChange()]
    assert waiting.cancelled()
    assert queue.put(ControllerChange()).cancelled()


async def test_whoever_waits_for_a_preempted_event_is_not_cancelled_itself() -> None:
    queue = EventQueue(Processor().process)
    waiting = queue.put(BrokerChange())
    queue.clear_and_put(Expire())
    assert await settled(waiting) is None
    assert waiting.cancelled()


async def test_the_result_of_an_event_is_the_result_of_its_future() -> None:
    processor = Processor()
    event = ControlledShutdown(broker_id=1, broker_epoch=7)
    processor.results[event] = [TopicPartition("led", 0)]
    queue = EventQueue(processor.process)
    queue.start()
    assert await settled(queue.put(event)) == [TopicPartition("led", 0)]
    assert await settled(queue.put(BrokerChange())) is None
    await queue.close()
