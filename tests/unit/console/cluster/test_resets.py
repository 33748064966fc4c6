"""Resets of offsets: what people enter, and the plan that is kept between the preview and the change."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.administration.offset_resets import OffsetChange
from barnabas.client.admin.outcomes import Outcomes
from barnabas.client.admin.topics.offsets import OffsetSpec
from barnabas.console.cluster.resets import (
    ResetTarget,
    decode_plan,
    encode_plan,
    parse_duration,
    parse_partitions,
    parse_request,
    parse_time,
    preview,
)
from barnabas.console.failures import UnusableField
from barnabas.topic_partition import TopicPartition

A, B = TopicPartition("a", 0), TopicPartition("a", 1)
NOW_MS = 10_000_000


class Logs:
    """An admin client of two logs: offsets 10 to 100, with a record at 50 that was written at 5,000,000 ms, and the empty 7 to 7."""

    async def list_offsets(self, specs: dict[TopicPartition, OffsetSpec]) -> Any:
        def offset(partition: TopicPartition, timestamp: int) -> int:
            start, end = (10, 100) if partition == A else (7, 7)
            if timestamp == OffsetSpec.EARLIEST:
                return start
            if timestamp == OffsetSpec.LATEST:
                return end
            return 50 if partition == A and timestamp <= 5_000_000 else -1

        offsets = {partition: SimpleNamespace(offset=offset(partition, spec.timestamp)) for partition, spec in specs.items()}
        return Outcomes(offsets, offsets, {})


def after(request: ResetTarget, committed: dict[TopicPartition, int]) -> dict[TopicPartition, int]:
    admin: Any = Logs()
    return {row.partition: row.after for row in asyncio.run(preview(admin, [A, B], committed, request, NOW_MS))}


@pytest.mark.parametrize(
    ("request_of", "expected"),
    [
        (ResetTarget("earliest"), {A: 10, B: 7}),
        (ResetTarget("latest"), {A: 100, B: 7}),
        (ResetTarget("time", 5_000_000), {A: 50, B: 7}),
        (ResetTarget("time", 6_000_000), {A: 100, B: 7}),  # nothing was written since: the end
        (ResetTarget("duration", 5_000_000), {A: 50, B: 7}),
        (ResetTarget("offset", 20), {A: 20, B: 7}),
        (ResetTarget("shift", -1_000), {A: 10, B: 7}),
    ],
)
def test_each_target_is_within_the_log(request_of: ResetTarget, expected: dict[TopicPartition, int]) -> None:
    assert after(request_of, {A: 40, B: 7}) == expected


def test_a_shift_needs_an_offset_to_go_from() -> None:
    with pytest.raises(UnusableField, match="a-1 has no committed offset"):
        after(ResetTarget("shift", 5), {A: 40})


def test_times_are_utc_unless_they_name_a_zone() -> None:
    assert parse_time("1970-01-01T01:00") == 3_600_000
    assert parse_time("1970-01-01T01:00:00.005+01:00") == 5
    assert parse_time("1700000000000") == 1_700_000_000_000


@pytest.mark.parametrize("text", ["", "soon", "2026-13-01", "9" * 30])
def test_a_time_that_is_none_is_refused_in_words(text: str) -> None:
    with pytest.raises(UnusableField, match="Enter a time such as"):
        parse_time(text)


def test_durations_are_short_or_iso() -> None:
    assert [parse_duration(text) for text in ("90 min", "2h", "1 d", "PT1M30S")] == [5_400_000, 7_200_000, 86_400_000, 90_000]
    for text in ("", "2 weeks", "-PT1M", "1.5 h"):
        with pytest.raises(UnusableField, match="Enter a duration"):
            parse_duration(text)


def test_partitions_are_numbers_and_ranges() -> None:
    assert parse_partitions(" 0, 2,5-7 ") == {0, 2, 5, 6, 7}
    assert parse_partitions("") is None
    for text in ("x", "7-5", "1-", "9" * 50):
        with pytest.raises(UnusableField, match="Write partitions as"):
            parse_partitions(text)


def test_the_partitions_of_a_text_are_bounded() -> None:
    assert parse_partitions("0-9999") == set(range(10_000))
    for text in ("0-10000", "0-9999,0-9999", "0-999999," * 1_000):
        with pytest.raises(UnusableField, match="Name at most 10,000 partitions"):
            parse_partitions(text)
    with pytest.raises(UnusableField, match="at most 10,000 characters"):
        parse_partitions("0," * 5_001)


@pytest.mark.parametrize(("target", "text"), [("offset", "-1"), ("offset", ""), ("shift", "some"), ("offset", "9" * 20), ("nowhere", "")])
def test_a_target_without_its_number_is_refused(target: str, text: str) -> None:
    with pytest.raises(UnusableField):
        parse_request(target, {target: text})


@given(st.text(max_size=30), st.one_of(st.none(), st.integers(0, 2**63 - 1)), st.integers(0, 2**63 - 1))
def test_a_plan_survives_the_page(topic: str, before: int | None, target: int) -> None:
    row = OffsetChange(TopicPartition(topic, 3), before, target, 0, 10)
    assert decode_plan(encode_plan([row])) == {row.partition: (before, target)}


@pytest.mark.parametrize(
    "text",
    ["", "x", "[]", "{}", '{"t":[[0,1]]}', '{"t":[[0,1,-5]]}', '{"t":[["0",1,5]]}', '{"t":[[0,true,5]]}', '{"t":5}', "[" * 100_000],
)
def test_a_plan_that_no_page_made_is_refused(text: str) -> None:
    with pytest.raises(UnusableField, match="make the preview again"):
        decode_plan(text)
