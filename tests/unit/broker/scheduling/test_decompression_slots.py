"""Which batch is decompressed next: addresses take turns, and so do the connections of one address."""

from __future__ import annotations

import asyncio

import pytest

from barnabas.broker.scheduling.decompression_slots import DecompressionSlots


class Opened:
    """Batches that were opened, in their order. Opening one takes an iteration of the loop."""

    def __init__(self, at_once: int = 1) -> None:
        self.slots = DecompressionSlots(at_once)
        self.names: list[str] = []
        self.at_once = 0
        self.at_once_max = 0

    async def open(self, name: str, address: str, connection: str) -> None:
        async with self.slots.turn_of(address, connection):
            self.names.append(name)
            self.at_once += 1
            self.at_once_max = max(self.at_once_max, self.at_once)
            await asyncio.sleep(0)
            self.at_once -= 1

    def begin(self, name: str, address: str, connection: str) -> asyncio.Future[None]:
        return asyncio.ensure_future(self.open(name, address, connection))


def test_the_batch_of_a_second_connection_is_the_next_one_opened() -> None:
    async def run() -> None:
        opened = Opened()
        admissions = [opened.begin(f"first {number}", "10.0.0.1", "first") for number in range(4)]
        admissions += [opened.begin("second", "10.0.0.1", "second")]
        await asyncio.gather(*admissions)
        assert opened.names == ["first 0", "second", "first 1", "first 2", "first 3"]

    asyncio.run(run())


def test_connections_of_one_address_share_its_turns() -> None:
    async def run() -> None:
        opened = Opened()
        admissions = [opened.begin(f"a{number}", "10.0.0.66", f"a{number}") for number in range(5)]
        admissions += [opened.begin(f"b{number}", "10.0.0.1", "b") for number in range(2)]
        await asyncio.gather(*admissions)
        assert opened.names == ["a0", "b0", "a1", "b1", "a2", "a3", "a4"]

    asyncio.run(run())


@pytest.mark.parametrize("at_once", [1, 2, 3])
def test_no_more_are_open_than_may_be(at_once: int) -> None:
    async def run() -> None:
        opened = Opened(at_once)
        await asyncio.gather(*[opened.begin(str(number), f"10.0.0.{number % 3}", str(number % 5)) for number in range(30)])
        assert (len(opened.names), opened.at_once_max) == (30, at_once)

    asyncio.run(run())


def test_who_does_not_wait_any_more_gets_no_turn_and_keeps_none() -> None:
    async def run() -> None:
        opened = Opened()
        async with opened.slots.turn_of("10.0.0.1", "first"):
            admissions = [opened.begin(name, "10.0.0.1", name) for name in "abc"]
            await asyncio.sleep(0)
            admissions[0].cancel()  # while it waits
        admissions[1].cancel()  # which has its turn, and has not run since
        await asyncio.gather(*admissions, return_exceptions=True)
        assert opened.names == ["c"]
        await opened.open("d", "10.0.0.1", "d")

    asyncio.run(run())
