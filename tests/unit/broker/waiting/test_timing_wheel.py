from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.broker.waiting.timing_wheel import EXPIRATION_MS_MAX, Bucket, TaskCounter, Timer, TimerTask, TimingWheel


class Named(TimerTask):
    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name


def names(tasks: list[TimerTask]) -> list[str]:
    return [task.name for task in tasks if isinstance(task, Named)]


def timer_with(*delays: int, start_ms: int = 0) -> Timer:
    timer = Timer(start_ms)
    for delay in delays:
        timer.add(Named(str(delay)), delay, start_ms)
    return timer


def test_a_task_is_due_at_its_millisecond_and_not_before() -> None:
    timer = timer_with(5)
    assert names(timer.advance(4)) == []
    assert names(timer.advance(5)) == ["5"]


def test_a_task_is_handed_out_once() -> None:
    timer = timer_with(5)
    timer.advance(5)
    assert timer.advance(1000) == []


@pytest.mark.parametrize("delay", [0, -1])
def test_a_task_without_a_delay_is_due_at_the_next_advance(delay: int) -> None:
    timer = timer_with(delay, start_ms=100)
    assert timer.next_expiry_ms() == 100
    assert names(timer.advance(100)) == [str(delay)]


def test_tasks_come_in_the_order_of_their_deadlines() -> None:
    assert names(timer_with(500, 3, 9000, 40, 21).advance(10_000)) == ["3", "21", "40", "500", "9000"]


def test_tasks_of_one_millisecond_come_in_the_order_in_which_they_were_added() -> None:
    timer = Timer(0)
    for name in "abc":
        timer.add(Named(name), 7, 0)
    assert names(timer.advance(7)) == ["a", "b", "c"]


def test_a_cancelled_task_never_comes() -> None:
    timer, task = Timer(0), Named("a")
    timer.add(task, 5, 0)
    task.cancel()
    assert (timer.size, task.scheduled, timer.advance(10)) == (0, False, [])


def test_a_task_that_was_due_when_added_can_still_be_cancelled() -> None:
    timer, task = Timer(0), Named("a")
    timer.add(task, 0, 0)
    task.cancel()
    assert (timer.size, timer.advance(10), timer.next_expiry_ms()) == (0, [], None)


def test_cancelling_twice_or_after_the_end_does_nothing() -> None:
    timer, task = Timer(0), Named("a")
    timer.add(task, 5, 0)
    timer.advance(5)
    task.cancel()
    task.cancel()
    assert timer.size == 0


def test_adding_a_task_again_moves_it() -> None:
    timer, task = Timer(0), Named("a")
    timer.add(task, 5, 0)
    timer.add(task, 50, 0)
    assert (timer.size, names(timer.advance(49)), names(timer.advance(50))) == (1, [], ["a"])


def test_the_size_counts_what_waits() -> None:
    timer = timer_with(0, 5, 500)
    assert timer.size == 3
    timer.advance(5)
    assert timer.size == 1


def test_nothing_waiting_means_nothing_to_wake_up_for() -> None:
    assert Timer(0).next_expiry_ms() is None


def test_a_bucket_whose_tasks_were_all_cancelled_wakes_nobody() -> None:
    timer, task = timer_with(300), Named("a")
    timer.add(task, 10, 0)
    assert timer.next_expiry_ms() == 10
    task.cancel()
    assert timer.next_expiry_ms() == 300


def test_a_bucket_that_was_forgotten_empty_is_queued_again_when_used_again() -> None:
    timer, first = Timer(0), Named("first")
    timer.add(first, 10, 0)
    first.cancel()
    assert timer.next_expiry_ms() is None
    timer.add(Named("second"), 10, 0)
    assert (timer.next_expiry_ms(), names(timer.advance(10))) == (10, ["second"])


def test_empty_ticks_are_skipped() -> None:
    """200 ms then 840 ms: the wheel wakes for buckets, not for milliseconds."""
    timer = timer_with(200, 840)
    wakes = 0
    while (at := timer.next_expiry_ms()) is not None:
        timer.advance(at)
        wakes += 1
    assert wakes <= 5


def test_450_ms_move_down_from_wheel_to_wheel() -> None:
    """Level 3 until 400, then level 2 [440, 460), then level 1."""
    timer, due = timer_with(450), []
    while (at := timer.next_expiry_ms()) is not None:
        due.append(at)
        timer.advance(at)
    assert due == [400, 440, 450]


def test_a_bucket_is_queued_once_a_round() -> None:
    timer = Timer(0)
    for _ in range(100):
        timer.add(TimerTask(), 123, 0)
    timer.advance(120)
    assert (timer.size, timer.next_expiry_ms()) == (100, 123)
    assert len(timer.advance(123)) == 100


def test_after_idle_time_a_short_delay_goes_into_the_finest_wheel() -> None:
    timer = timer_with(1)
    timer.advance(1)
    timer.add(Named("a"), 5, 1_000_000)
    assert timer.next_expiry_ms() == 1_000_005


def test_a_clock_that_was_not_advanced_in_time_loses_nothing() -> None:
    timer = timer_with(1)
    timer.add(Named("late"), 5, 1_000_000)
    assert names(timer.advance(1_000_005)) == ["1", "late"]


def test_a_delay_without_end_is_bounded() -> None:
    timer, task = Timer(0), Named("a")
    timer.add(task, 2**80, 0)
    assert task.expiration_ms == EXPIRATION_MS_MAX
    assert timer.advance(10**12) == []


def test_the_time_of_a_wheel_is_a_multiple_of_its_tick() -> None:
    wheel = TimingWheel(20, 20, 123, TaskCounter())
    assert wheel.current_time_ms == 120
    wheel.advance(139)
    assert wheel.current_time_ms == 120
    wheel.advance(165)
    assert wheel.current_time_ms == 160


def slot_of(wheel: TimingWheel, bucket: Bucket) -> int:
    return [wheel.bucket(slot * wheel.tick_ms) is bucket for slot in range(wheel.wheel_size)].index(True)


@pytest.mark.parametrize(("now", "expiration", "slot"), [(0, 18, 18), (2, 21, 1)])
def test_slots_of_the_first_wheel_are_reused(now: int, expiration: int, slot: int) -> None:
    wheel = TimingWheel(1, 20, now, TaskCounter())
    assert slot_of(wheel, wheel.bucket(expiration)) == slot


@pytest.mark.parametrize(("expiration", "slot"), [(237, 11), (123, 6), (350, 17)])
def test_slots_of_the_second_wheel(expiration: int, slot: int) -> None:
    wheel = TimingWheel(1, 20, 0, TaskCounter()).overflow_wheel()
    assert (wheel.tick_ms, wheel.interval_ms, slot_of(wheel, wheel.bucket(expiration))) == (20, 400, slot)


@pytest.mark.parametrize(("delay", "begins"), [(18, 18), (123, 120), (237, 220), (350, 340), (450, 400), (8000, 8000), (30_000, 24_000)])
def test_a_bucket_expires_at_its_beginning(delay: int, begins: int) -> None:
    assert timer_with(delay).next_expiry_ms() == begins


def test_overflow_wheels_are_twenty_times_as_coarse_each() -> None:
    wheel = TimingWheel(1, 20, 0, TaskCounter())
    intervals = []
    for _ in range(4):
        intervals.append(wheel.interval_ms)
        wheel = wheel.overflow_wheel()
    assert intervals == [20, 400, 8000, 160_000]


def test_an_overflow_wheel_starts_at_the_time_of_the_wheel_below() -> None:
    wheel = TimingWheel(1, 20, 1237, TaskCounter())
    assert wheel.overflow_wheel().current_time_ms == 1220


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(-5, 50) | st.integers(0, 500) | st.integers(0, 200_000)),
        st.tuples(st.just("advance"), st.integers(0, 30) | st.integers(0, 1000) | st.integers(0, 100_000)),
        st.tuples(st.just("tick"), st.integers(0, 500)),
        st.tuples(st.just("cancel"), st.integers(0, 40)),
        st.tuples(st.just("readd"), st.integers(0, 40)),
        st.tuples(st.just("peek"), st.just(0)),
    ),
    max_size=60,
)


@given(start=st.integers(0, 10**6), steps=STEPS, shape=st.sampled_from([(1, 20), (1, 2), (1, 3)]))
@settings(deadline=None, max_examples=300)
def test_a_timer_is_a_sorted_list(start: int, steps: list[tuple[str, int]], shape: tuple[int, int]) -> None:
    now = start
    timer = Timer(start, *shape)
    model: dict[TimerTask, int] = {}
    tasks: list[TimerTask] = []
    for step, number in steps:
        if step == "add":
            tasks.append(TimerTask())
            timer.add(tasks[-1], number, now)
            model[tasks[-1]] = now + number
        elif step == "readd" and tasks:
            task = tasks[number % len(tasks)]
            timer.add(task, number, now)
            model[task] = now + number
        elif step == "cancel" and tasks:
            task = tasks[number % len(tasks)]
            task.cancel()
            model.pop(task, None)
        elif step == "tick":  # time passes without the timer being told
            now += number
        elif step == "advance":
            now += number
            expired = timer.advance(now)
            assert set(expired) == {task for task, at in model.items() if at <= now}
            assert len(expired) == len(set(expired))
            for task in expired:
                del model[task]
        else:
            next_ms = timer.next_expiry_ms()
            assert (next_ms is None) == (not model)
            assert next_ms is None or next_ms <= max(min(model.values()), timer.current_time_ms)
        assert timer.size == len(model)
        assert all(task.scheduled == (task in model) for task in tasks)
    waits = sorted(at for at in model.values())
    assert sorted(task.expiration_ms for task in timer.advance(now + 10**7)) == waits
