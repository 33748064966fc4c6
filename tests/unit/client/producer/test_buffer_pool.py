"""Memory is given out up to its limit, and to those who wait in the order in which they came."""

from __future__ import annotations

from barnabas.client.producer.buffer_pool import BufferPool


def nothing() -> None:
    return


def test_no_more_is_given_than_there_is() -> None:
    pool = BufferPool(100)
    assert pool.try_allocate(60)
    assert not pool.try_allocate(50)
    pool.deallocate(60)
    assert pool.try_allocate(100)


def test_who_came_first_is_served_first() -> None:
    pool = BufferPool(100)
    pool.try_allocate(100)
    woken: list[str] = []
    large = pool.wait(80, lambda: woken.append("large"))
    small = pool.wait(10, lambda: woken.append("small"))
    pool.deallocate(50)
    assert woken == []
    pool.deallocate(50)
    assert woken == ["large", "small"]
    assert large.granted and small.granted
    assert pool.available == 10


def test_nobody_passes_those_who_wait() -> None:
    pool = BufferPool(100)
    pool.try_allocate(90)
    pool.wait(50, nothing)
    assert not pool.try_allocate(5)


def test_who_gives_up_leaves_the_line() -> None:
    pool = BufferPool(100)
    pool.try_allocate(95)
    first = pool.wait(50, nothing)
    second = pool.wait(5, nothing)
    pool.give_up(first)
    assert second.granted
    assert pool.waiting == 0


def test_what_was_granted_to_one_who_gives_up_goes_back() -> None:
    pool = BufferPool(100)
    pool.try_allocate(100)
    waiter = pool.wait(50, nothing)
    pool.deallocate(100)
    pool.give_up(waiter)
    assert pool.available == 100


def test_closing_wakes_all() -> None:
    pool = BufferPool(10)
    pool.try_allocate(10)
    waiters = [pool.wait(5, nothing) for _ in range(3)]
    pool.close()
    assert all(waiter.closed and not waiter.granted for waiter in waiters)
    assert pool.wait(1, nothing).closed
