"""Expressions of all groups, resolved in slices: what one slice may do, and whose turn is next."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from barnabas.coordinator.group.regex_queue import REST_FACTOR, SLICE_MS, SLICE_STEPS, RegexQueue, Resolved, resolution


class Loop:
    """A loop with one deferred call, and a steady clock that goes on by `step_ms` whenever it is read."""

    def __init__(self, step_ms: int = 0) -> None:
        self.now = 0
        self.reads = 0
        self.step_ms = step_ms
        self.deferred: list[tuple[int, Callable[[], None]]] = []

    def monotonic_ms(self) -> int:
        self.reads += 1
        self.now += self.step_ms
        return self.now

    def defer(self, delay_ms: int, action: Callable[[], None]) -> None:
        self.deferred.append((delay_ms, action))

    def run_slice(self) -> int:
        """Runs the one deferred call; returns the delay it was deferred by."""
        ((delay_ms, action),) = self.deferred
        self.deferred.clear()
        action()
        return delay_ms


class Answers(dict[str, Resolved]):
    def of(self, group_id: str) -> Callable[[Resolved], None]:
        def keep(resolved: Resolved) -> None:
            assert group_id not in self, "resolved twice"
            self[group_id] = resolved

        return keep


def queue_of(loop: Loop, names: list[str]) -> RegexQueue:
    return RegexQueue(loop.defer, loop.monotonic_ms, lambda: names)


def test_an_expression_matches_whole_names_only() -> None:
    resolved: Resolved = {}
    assert list(resolution(["foo", "fo.*"], ["foo", "foobar", "afoo"], resolved)) == [None] * 8
    assert resolved == {"foo": {"foo"}, "fo.*": {"foo", "foobar"}}


@pytest.mark.parametrize("regex", ["[", "(a?){1000}" * 20])
def test_an_expression_that_is_not_served_matches_nothing(regex: str) -> None:
    resolved: Resolved = {}
    assert list(resolution([regex], ["a"], resolved)) == []
    assert resolved == {regex: frozenset()}


def test_a_slice_ends_after_so_many_names() -> None:
    loop, answers = Loop(), Answers()
    names = [f"t{number}" for number in range(2 * SLICE_STEPS)]
    queue = queue_of(loop, names)
    queue.submit("g", ["t.*"], answers.of("g"))
    assert loop.run_slice() == 0
    assert not answers and queue.is_waiting("g")
    assert loop.run_slice() == 1
    assert not answers
    loop.run_slice()
    assert answers == {"g": {"t.*": frozenset(names)}} and not loop.deferred and not queue.is_waiting("g")


def test_a_slice_ends_when_its_time_is_over_and_a_rest_follows() -> None:
    loop, answers = Loop(step_ms=1), Answers()
    queue = queue_of(loop, [f"t{number}" for number in range(100)])
    queue.submit("g", ["t.*"], answers.of("g"))
    slices = 0
    while loop.deferred:
        before, delay_ms = loop.reads, loop.run_slice()
        slices += 1
        assert loop.reads - before <= SLICE_MS + 3  # each step reads the clock once, the slice three times
        assert slices == 1 or delay_ms >= REST_FACTOR * SLICE_MS
    assert slices > 100 / SLICE_MS and len(answers["g"]["t.*"]) == 100


def test_new_groups_get_no_more_of_the_loop() -> None:
    """The time of a slice is shared by all groups: a thousand of them are not a thousand slices at once."""
    loop, answers = Loop(step_ms=1), Answers()
    queue = queue_of(loop, ["a"])
    for number in range(1_000):
        queue.submit(f"g{number}", ["a"], answers.of(f"g{number}"))
    loop.run_slice()
    assert len(answers) <= SLICE_MS and len(loop.deferred) == 1
    while loop.deferred:
        assert loop.run_slice() >= REST_FACTOR
    assert len(answers) == 1_000 and len(queue) == 0


def test_a_simple_group_does_not_wait_for_one_that_takes_many_slices() -> None:
    loop, answers = Loop(), Answers()
    queue = queue_of(loop, [f"t{number}" for number in range(SLICE_STEPS // 2)])
    queue.submit("costly", [f"t{number}.*" for number in range(100)], answers.of("costly"))
    loop.run_slice()
    queue.submit("simple", ["t7"], answers.of("simple"))
    loop.run_slice()
    assert list(answers) == ["simple"]
    while loop.deferred:
        loop.run_slice()
    assert list(answers) == ["simple", "costly"]


def test_a_costly_group_is_not_put_off_for_ever() -> None:
    loop, answers = Loop(), Answers()
    queue = queue_of(loop, [f"t{number}" for number in range(SLICE_STEPS - 2)])
    queue.submit("costly", ["t1", "t2", "t3"], answers.of("costly"))
    for number in range(500):
        queue.submit(f"new{number}", ["t7"], answers.of(f"new{number}"))
        loop.run_slice()
    assert "costly" in answers


def test_what_is_cancelled_is_not_resolved() -> None:
    loop, answers = Loop(), Answers()
    queue = queue_of(loop, ["a"])
    for number in range(100):
        queue.submit(f"g{number}", ["a"], answers.of(f"g{number}"))
    for number in range(99):
        queue.cancel(f"g{number}")
    while loop.deferred:
        loop.run_slice()
    assert answers == {"g99": {"a": {"a"}}}


def test_a_later_request_of_a_group_replaces_the_earlier_one() -> None:
    loop, answers = Loop(), Answers()
    queue = queue_of(loop, ["a", "b"])
    queue.submit("g", ["a"], answers.of("g"))
    queue.submit("g", ["b"], answers.of("g"))
    while loop.deferred:
        loop.run_slice()
    assert answers == {"g": {"b": {"b"}}}


def test_topics_that_are_created_are_seen_by_the_next_group() -> None:
    loop, answers, names = Loop(), Answers(), ["a1"]
    queue = queue_of(loop, names)
    queue.submit("g", ["a."], answers.of("g"))
    loop.run_slice()
    names.append("a2")
    queue.topics_changed()
    queue.submit("h", ["a."], answers.of("h"))
    loop.run_slice()
    assert answers == {"g": {"a.": {"a1"}}, "h": {"a.": {"a1", "a2"}}}
