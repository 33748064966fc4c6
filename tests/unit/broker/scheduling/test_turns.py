"""Turns of the loop: one slice of long work in each iteration, and all short work in between."""

from __future__ import annotations

import asyncio
from collections.abc import Generator

from barnabas.broker.scheduling.turns import Turns, at_once, slices


def test_in_one_iteration_of_the_loop_one_slice_is_done() -> None:
    async def run() -> None:
        turns = Turns()
        done_in: list[tuple[int, str]] = []
        iteration = 0

        async def work(name: str) -> None:
            for _ in range(3):
                await turns.next(name)
                done_in.append((iteration, name))

        tasks = [asyncio.ensure_future(work(name)) for name in "abc"]
        while not all(task.done() for task in tasks):
            await asyncio.sleep(0)
            iteration += 1
        iterations = [number for number, _ in done_in]
        assert len(set(iterations)) == len(iterations) == 9, done_in
        assert [name for _, name in done_in] == list("abcabcabc")  # by turns
        assert (turns.taken, turns.waiting, turns.last_taker) == (9, 0, "c")

    asyncio.run(run())


def test_a_broker_waits_for_one_slice_of_the_clients_before_each_of_its_own() -> None:
    async def run() -> None:
        turns = Turns()

        async def client() -> None:
            while True:
                await turns.next("client")

        clients = [asyncio.ensure_future(client()) for _ in range(100)]
        await turns.next("client")  # from here on they all wait
        before = turns.taken
        for _ in range(50):
            await turns.next("broker", is_broker=True)
        assert turns.taken - before <= 2 * 50
        for each in clients:
            each.cancel()

    asyncio.run(run())


def test_clients_get_every_second_turn_however_many_say_that_they_are_brokers() -> None:
    async def run() -> None:
        turns = Turns()

        async def broker() -> None:
            while True:
                await turns.next("broker", is_broker=True)

        brokers = [asyncio.ensure_future(broker()) for _ in range(100)]
        await turns.next("broker", is_broker=True)
        before = turns.taken
        for _ in range(50):
            await turns.next("client")
        assert turns.taken - before <= 2 * 50
        for each in brokers:
            each.cancel()

    asyncio.run(run())


def test_who_does_not_wait_any_more_gets_no_turn() -> None:
    async def run() -> None:
        turns = Turns()
        first, second = asyncio.ensure_future(turns.next()), asyncio.ensure_future(turns.next())
        await asyncio.sleep(0)
        first.cancel()
        await second
        assert turns.taken == 1
        await turns.next()  # and nothing has stopped
        assert turns.taken == 2

    asyncio.run(run())


def _counting(slices_of_work: list[int]) -> Generator[None, None, int]:
    for turn in range(3):
        slices_of_work.append(turn)
        yield
    return len(slices_of_work)


def test_a_generator_is_run_slice_by_slice() -> None:
    async def run() -> None:
        turns = Turns()
        assert await turns.run(_counting([])) == 3
        assert turns.taken == 4
        assert at_once(_counting([])) == 3

    asyncio.run(run())


def test_elements_come_in_lists_of_the_size_of_a_slice() -> None:
    assert list(slices(range(7), 3)) == [[0, 1, 2], [3, 4, 5], [6]]
    assert list(slices([], 3)) == []
