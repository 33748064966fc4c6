"""Items for other brokers: a bounded number of requests to each is in flight, and the next has all items that were put since."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from barnabas.broker.links.per_broker_batches import PerBrokerBatches


class Peer:
    def __init__(self, at_once_max: int = 10, in_flight_max: int = 1, size_of: Callable[[str], int] = lambda _: 1) -> None:
        self.sent: list[tuple[int, list[str]]] = []
        self.let = asyncio.Event()
        self.requests: PerBrokerBatches[str] = PerBrokerBatches(self._send, at_once_max, in_flight_max, size_of)

    async def _send(self, broker_id: int, what: list[str]) -> None:
        self.sent.append((broker_id, what))
        await self.let.wait()
        if "bad" in what:
            raise ValueError("bad")

    async def until(self, count: int) -> None:
        async with asyncio.timeout(60):
            while len(self.sent) < count:
                await asyncio.sleep(0)


async def test_brokers_do_not_wait_for_each_other() -> None:
    peer = Peer()
    peer.requests.put(1, "a")
    peer.requests.put(2, "b")
    await peer.until(2)
    assert sorted(peer.sent) == [(1, ["a"]), (2, ["b"])]


async def test_what_comes_meanwhile_goes_together_up_to_a_bound() -> None:
    peer = Peer(at_once_max=2)
    peer.requests.put(1, "a")
    await peer.until(1)
    for what in "bcd":
        peer.requests.put(1, what)
    peer.let.set()
    await peer.until(3)
    assert peer.sent == [(1, ["a"]), (1, ["b", "c"]), (1, ["d"])]


async def test_what_comes_in_one_turn_goes_together_and_the_next_does_not_wait_for_its_answer() -> None:
    peer = Peer(in_flight_max=2)
    peer.requests.put(1, "a")
    peer.requests.put(1, "b")
    await peer.until(1)
    peer.requests.put(1, "c")
    await peer.until(2)
    assert peer.sent == [(1, ["a", "b"]), (1, ["c"])]


async def test_beyond_the_bound_of_requests_things_wait_and_go_together() -> None:
    peer = Peer(in_flight_max=2)
    for number, what in enumerate("abcd"):
        peer.requests.put(1, what)
        await peer.until(min(number + 1, 2))
    peer.let.set()
    await peer.until(3)
    assert peer.sent == [(1, ["a"]), (1, ["b"]), (1, ["c", "d"])]


@pytest.mark.parametrize("in_flight_max", [1, 5])
async def test_what_comes_when_the_last_answers_have_just_been_heard_is_sent(in_flight_max: int) -> None:
    peer = Peer(in_flight_max=in_flight_max)
    for number in range(in_flight_max):
        peer.requests.put(1, str(number))
        await peer.until(number + 1)
    peer.let.set()
    asyncio.get_running_loop().call_soon(peer.requests.put, 1, "late")
    await peer.until(in_flight_max + 1)
    assert peer.sent[-1] == (1, ["late"])


async def test_large_things_go_in_several_requests_and_one_that_is_too_large_by_itself() -> None:
    peer = Peer(at_once_max=4, size_of=len)
    for what in ("aa", "bb", "c", "ddddd", "e"):
        peer.requests.put(1, what)
    peer.let.set()
    await peer.until(4)
    assert [what for _, what in peer.sent] == [["aa", "bb"], ["c"], ["ddddd"], ["e"]]


async def test_one_that_goes_wrong_does_not_hold_up_the_next() -> None:
    peer = Peer(at_once_max=1)
    peer.let.set()
    peer.requests.put(1, "bad")
    peer.requests.put(1, "good")
    await peer.until(2)
    assert peer.sent[1] == (1, ["good"])


async def test_after_its_end_nothing_is_under_way() -> None:
    before = asyncio.all_tasks()
    peer = Peer()
    peer.requests.put(1, "a")
    await peer.until(1)
    await peer.requests.close()
    assert asyncio.all_tasks() == before
