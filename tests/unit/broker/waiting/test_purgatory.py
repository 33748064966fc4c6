from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.broker.waiting.delayed_operation import DelayedOperation
from barnabas.broker.waiting.purgatory import DelayedOperationPurgatory


class Wait(DelayedOperation):
    """Completable once it is made ready; remembers what was called."""

    def __init__(self, delay_ms: int = 1000, then: Callable[[], object] | None = None) -> None:
        super().__init__(delay_ms)
        self.ready = False
        self.calls: list[str] = []
        self.tries = 0
        self.then = then

    def try_complete(self) -> bool:
        self.tries += 1
        return self.ready and self.force_complete()

    def on_complete(self) -> None:
        self.calls.append("complete")
        if self.then is not None:
            self.then()

    def on_expiration(self) -> None:
        self.calls.append("expire")


def purgatory(purge_interval: int = 1000) -> DelayedOperationPurgatory[Wait]:
    return DelayedOperationPurgatory("Test", 0, purge_interval)


def ready(operation: Wait) -> Wait:
    operation.ready = True
    return operation


def test_an_operation_that_is_ready_does_not_wait() -> None:
    waiting, operation = purgatory(), ready(Wait())
    assert waiting.try_complete_else_watch(operation, ["a"], 0)
    assert (operation.calls, waiting.watched, waiting.num_delayed) == (["complete"], 0, 0)


def test_an_operation_waits_for_one_of_its_keys() -> None:
    waiting, operation = purgatory(), Wait()
    assert not waiting.try_complete_else_watch(operation, ["a", "b"], 0)
    assert waiting.check_and_complete("b") == 0
    operation.ready = True
    assert waiting.check_and_complete("b") == 1
    assert (operation.calls, waiting.num_delayed) == (["complete"], 0)


def test_a_key_nobody_waits_for_completes_nothing() -> None:
    assert purgatory().check_and_complete("a") == 0


def test_only_the_operations_of_the_key_are_asked() -> None:
    waiting, other = purgatory(), Wait()
    waiting.try_complete_else_watch(other, ["b"], 0)
    other.ready = True
    assert (waiting.check_and_complete("a"), other.completed) == (0, False)


def test_operations_need_a_key() -> None:
    with pytest.raises(AssertionError, match="The watch key list can't be empty"):
        purgatory().try_complete_else_watch(Wait(), [], 0)


def test_an_operation_expires_after_its_delay() -> None:
    waiting, operation = purgatory(), Wait(20)
    waiting.try_complete_else_watch(operation, ["a"], 5)
    assert (waiting.next_expiry_ms(), waiting.advance(24), operation.calls) == (20, 0, [])
    assert (waiting.next_expiry_ms(), waiting.advance(25), operation.calls) == (25, 1, ["complete", "expire"])
    assert waiting.next_expiry_ms() is None


def test_a_completed_operation_does_not_expire() -> None:
    waiting, operation = purgatory(), Wait(20)
    waiting.try_complete_else_watch(operation, ["a"], 0)
    operation.force_complete()
    assert (waiting.next_expiry_ms(), waiting.advance(100), operation.calls) == (None, 0, ["complete"])


def test_an_operation_is_completed_once() -> None:
    operation = ready(Wait())
    assert [operation.force_complete(), operation.force_complete(), operation.try_complete(), operation.expire()] == [True] + [False] * 3
    assert operation.calls == ["complete"]


def test_a_delay_of_zero_expires_at_the_next_advance() -> None:
    waiting, operation = purgatory(), Wait(0)
    assert not waiting.try_complete_else_watch(operation, ["a"], 7)
    assert (operation.completed, waiting.advance(7), operation.calls) == (False, 1, ["complete", "expire"])


def test_an_operation_is_asked_once_when_it_comes() -> None:
    waiting, operation = purgatory(), Wait()
    waiting.try_complete_else_watch(operation, ["a", "b", "c"], 0)
    assert operation.tries == 1


def test_the_gauges_are_kafkas() -> None:
    waiting = purgatory()
    waiting.try_complete_else_watch(Wait(), ["a", "b"], 0)
    waiting.try_complete_else_watch(Wait(), ["b"], 0)
    assert waiting.metrics() == {"PurgatorySize": 3, "NumDelayedOperations": 2}


def test_a_completed_operation_stands_under_its_other_keys_until_they_are_looked_at() -> None:
    waiting, operation = purgatory(), Wait()
    waiting.try_complete_else_watch(operation, ["a", "b"], 0)
    operation.ready = True
    waiting.check_and_complete("a")
    assert waiting.watched == 1
    assert (waiting.check_and_complete("b"), waiting.watched) == (0, 0)


def fill_with_completed(waiting: DelayedOperationPurgatory[Wait], count: int) -> None:
    for number in range(count):
        operation = Wait()
        waiting.try_complete_else_watch(operation, [number], 0)
        operation.force_complete()


def test_completed_operations_are_swept_out_when_more_than_the_interval_have_gathered() -> None:
    waiting = purgatory(purge_interval=10)
    fill_with_completed(waiting, 10)
    waiting.advance(1)
    assert waiting.watched == 10
    fill_with_completed(waiting, 1)
    waiting.advance(1)
    assert waiting.watched == 0


def test_they_are_swept_out_even_when_nothing_ever_expires() -> None:
    waiting = purgatory(purge_interval=10)
    fill_with_completed(waiting, 1000)
    assert waiting.watched <= 12


def test_operations_that_wait_are_not_swept_out() -> None:
    waiting, operation = purgatory(purge_interval=10), Wait()
    waiting.try_complete_else_watch(operation, ["a"], 0)
    fill_with_completed(waiting, 100)
    operation.ready = True
    assert waiting.check_and_complete("a") == 1


def test_cancelling_a_key_returns_the_operations_uncompleted() -> None:
    waiting, one, two = purgatory(), Wait(), Wait()
    waiting.try_complete_else_watch(one, ["a"], 0)
    waiting.try_complete_else_watch(two, ["a"], 0)
    assert waiting.cancel_for_key("a") == [one, two]
    assert (waiting.watched, waiting.num_delayed, waiting.advance(10**6), one.calls + two.calls) == (0, 0, 0, [])


def test_cancelling_a_key_nobody_waits_for_returns_nothing() -> None:
    assert purgatory().cancel_for_key("a") == []


def test_cancelling_a_key_does_not_return_what_was_completed_before() -> None:
    waiting, operation = purgatory(), Wait()
    waiting.try_complete_else_watch(operation, ["a"], 0)
    operation.force_complete()
    assert waiting.cancel_for_key("a") == []


def test_a_completion_may_complete_another_operation_of_the_same_key() -> None:
    waiting, second = purgatory(), Wait()
    first = Wait(then=second.force_complete)
    waiting.try_complete_else_watch(first, ["a"], 0)
    waiting.try_complete_else_watch(second, ["a"], 0)
    first.ready = True
    assert waiting.check_and_complete("a") == 1
    assert (first.calls, second.calls, waiting.watched, waiting.num_delayed) == (["complete"], ["complete"], 0, 0)


def test_a_completion_may_watch_a_new_operation_under_the_same_key() -> None:
    waiting, second = purgatory(), Wait()
    first = Wait(then=lambda: waiting.try_complete_else_watch(second, ["a"], 0))
    waiting.try_complete_else_watch(first, ["a"], 0)
    first.ready = True
    assert (waiting.check_and_complete("a"), waiting.watched) == (1, 1)
    second.ready = True
    assert waiting.check_and_complete("a") == 1


def test_a_completion_may_cancel_its_own_key() -> None:
    waiting, second = purgatory(), Wait()
    first = Wait(then=lambda: waiting.cancel_for_key("a"))
    waiting.try_complete_else_watch(first, ["a"], 0)
    waiting.try_complete_else_watch(second, ["a"], 0)
    first.ready = True
    waiting.check_and_complete("a")
    assert (waiting.watched, waiting.num_delayed, second.calls) == (0, 0, [])


def test_a_chain_of_completions_of_any_length_fits_the_stack() -> None:
    waiting = purgatory()
    chain: list[Wait] = []
    for number in range(5000):
        operation = Wait(then=lambda at=number: chain[at + 1 :] and (ready(chain[at + 1]), waiting.check_and_complete(at + 1)))  # type: ignore[misc]
        chain.append(operation)
        waiting.try_complete_else_watch(operation, [number], 0)
    chain[0].ready = True
    assert waiting.check_and_complete(0) == 5000
    assert all(operation.calls == ["complete"] for operation in chain)


def test_an_event_during_the_first_look_is_not_lost() -> None:
    waiting = purgatory()

    class Stirs(Wait):
        def try_complete(self) -> bool:
            done = super().try_complete()
            self.ready = True  # looking changes what is looked at, and says so, before the operation is watched
            waiting.check_and_complete("a")
            return done

    assert waiting.try_complete_else_watch(Stirs(), ["a"], 0)


def fail() -> None:
    raise RuntimeError("the client is gone")


def test_a_failing_completion_does_not_reach_the_caller_nor_the_others(caplog: pytest.LogCaptureFixture) -> None:
    waiting, failing, other = purgatory(), Wait(then=fail), Wait()
    waiting.try_complete_else_watch(failing, ["a"], 0)
    waiting.try_complete_else_watch(other, ["a"], 0)
    failing.ready = other.ready = True
    waiting.check_and_complete("a")
    assert (other.calls, waiting.watched, waiting.num_delayed) == (["complete"], 0, 0)
    assert "the client is gone" in caplog.text


def test_a_failing_expiration_does_not_keep_the_others_from_expiring() -> None:
    waiting, failing, other = purgatory(), Wait(10, then=fail), Wait(10)
    waiting.try_complete_else_watch(failing, ["a"], 0)
    waiting.try_complete_else_watch(other, ["a"], 0)
    waiting.advance(10)
    assert other.calls == ["complete", "expire"]


STEPS = st.lists(st.tuples(st.sampled_from(["watch", "ready", "check", "advance", "cancel", "force"]), st.integers(0, 7)), max_size=80)


@given(steps=STEPS)
@settings(deadline=None, max_examples=200)
def test_every_operation_is_completed_exactly_once_or_waits(steps: list[tuple[str, int]]) -> None:
    waiting = purgatory(purge_interval=3)
    operations: list[Wait] = []
    keys: dict[Wait, tuple[int, int]] = {}
    cancelled: set[Wait] = set()
    now = 0
    for step, number in steps:
        if step == "watch":
            operation = Wait(number * 7, then=lambda key=number: waiting.check_and_complete(key))  # type: ignore[misc]
            operations.append(operation)
            keys[operation] = (number, number // 2)
            waiting.try_complete_else_watch(operation, keys[operation], now)
        elif step == "ready" and operations:
            operations[number % len(operations)].ready = True
        elif step == "check":
            waiting.check_and_complete(number)
            assert not [op for op in operations if op.ready and not op.completed and op not in cancelled and number in keys[op]]
        elif step == "cancel":
            cancelled.update(waiting.cancel_for_key(number))
        elif step == "force" and operations:
            operations[number % len(operations)].force_complete()
        else:
            now += number
            waiting.advance(now)
            assert all(op.completed or op.expiration_ms > now or op in cancelled for op in operations)
        assert all(op.calls in ([], ["complete"], ["complete", "expire"]) for op in operations)
        assert all(op.completed == bool(op.calls) for op in operations)
        assert waiting.num_delayed == sum(not op.completed and op not in cancelled for op in operations)
    waiting.advance(now + 10**6)
    assert all(op.completed or op in cancelled for op in operations)
