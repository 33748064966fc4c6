"""The reset of a group's offsets: the fields of its form, its effect on each partition, and the plan that is carried out after the
preview."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, TypeVar

from barnabas.administration.offset_resets import UNKNOWN_OFFSET, OffsetChange, Offsets, changes, in_range, parse_duration_ms
from barnabas.client.admin.async_admin import AsyncAdmin
from barnabas.client.admin.topics.offsets import OffsetSpec
from barnabas.console.failures import UnusableField
from barnabas.topic_partition import TopicPartition

T = TypeVar("T")
TARGETS: Final = ("earliest", "latest", "time", "duration", "offset", "shift")
PARTITIONS_MAX: Final = 100_000
PARTITIONS_NAMED_MAX: Final = 10_000
_PARTITIONS_TEXT_MAX: Final = 10_000  # characters
_OFFSET_MAX: Final = 2**63 - 1
_UNITS: Final = {"s": 1_000, "min": 60_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


@dataclass(frozen=True, slots=True)
class ResetTarget:
    """Where the offsets go: `number` is the time, duration, offset or shift of the target, and 0 for the others."""

    target: str  # one of TARGETS
    number: int = 0


def parse_request(target: str, values: Mapping[str, str]) -> ResetTarget:
    """The request of a form, whose fields have the names of the targets. Raises UnusableField."""
    text = values.get(target, "").strip()
    if target == "earliest" or target == "latest":
        return ResetTarget(target)
    if target == "time":
        return ResetTarget(target, parse_time(text))
    if target == "duration":
        return ResetTarget(target, parse_duration(text))
    if target == "offset":
        return ResetTarget(target, _whole(text, "An offset is a whole number from 0.", 0))
    if target == "shift":
        return ResetTarget(target, _whole(text, "Enter by how many records to go: -100 for back, 100 for forward.", -_OFFSET_MAX))
    raise UnusableField("Choose where the offsets go.")


def parse_time(text: str) -> int:
    """Milliseconds of a time as browsers send it, in UTC unless it names a zone; or the milliseconds themselves."""
    if re.fullmatch(r"[0-9]{12,15}", text):
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
        return round((moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp() * 1_000)
    except (ValueError, OverflowError):
        raise UnusableField("Enter a time such as 2026-11-18T20:15, in UTC, or its milliseconds since 1970.") from None


def parse_duration(text: str) -> int:
    """Milliseconds of `90 min`, `2 h`, `1 d`, or of a duration as in ISO 8601."""
    match = re.fullmatch(r"([0-9]{1,9})\s*(s|min|m|h|d)", text)
    try:
        duration_ms = int(match[1]) * _UNITS[match[2]] if match is not None else parse_duration_ms(text)
    except ValueError:
        duration_ms = -1
    if duration_ms < 0:
        raise UnusableField("Enter a duration such as 30 s, 90 min, 2 h, 1 d or PT2H30M.")
    return duration_ms


def parse_partitions(text: str) -> set[int] | None:
    """The numbers of `0, 2, 5-7`; None for an empty text, which is all. Raises UnusableField."""
    if len(text) > _PARTITIONS_TEXT_MAX:
        raise UnusableField(f"Write partitions in at most {_PARTITIONS_TEXT_MAX:,} characters, with ranges such as 5-7.")
    numbers: set[int] = set()
    named = 0
    for part in filter(None, re.split(r"[,\s]+", text.strip())):
        match = re.fullmatch(r"([0-9]{1,6})(?:-([0-9]{1,6}))?", part)
        if match is None or (match[2] is not None and int(match[2]) < int(match[1])):
            raise UnusableField(f"Write partitions as 0, 2, 5-7, and not {part[:40]}.")
        partitions = range(int(match[1]), int(match[2] or match[1]) + 1)
        named += len(partitions)  # before the range is expanded: a short text can name millions
        if named > PARTITIONS_NAMED_MAX:
            raise UnusableField(f"Name at most {PARTITIONS_NAMED_MAX:,} partitions, or leave the field empty for all.")
        numbers.update(partitions)
    return numbers or None


def _whole(text: str, sentence: str, low: int) -> int:
    if not re.fullmatch(r"[+-]?[0-9]{1,19}", text) or not low <= int(text) <= _OFFSET_MAX:
        raise UnusableField(sentence)
    return int(text)


async def preview(
    admin: AsyncAdmin, partitions: Sequence[TopicPartition], committed: Mapping[TopicPartition, int], request: ResetTarget, now_ms: int
) -> list[OffsetChange]:
    """What a reset would do, from the logs as they are now. Raises UnusableField, or the KafkaError of a partition."""
    starts = await _offsets(admin, partitions, OffsetSpec.EARLIEST)
    ends = await _offsets(admin, partitions, OffsetSpec.LATEST)
    after = await _after(admin, partitions, committed, request, now_ms, starts, ends)
    return changes(committed, in_range(after, starts, ends), starts, ends)


async def _after(
    admin: AsyncAdmin,
    partitions: Sequence[TopicPartition],
    committed: Mapping[TopicPartition, int],
    request: ResetTarget,
    now_ms: int,
    starts: Offsets,
    ends: Offsets,
) -> Offsets:
    if request.target == "earliest":
        return starts
    if request.target == "latest":
        return ends
    if request.target == "offset":
        return dict.fromkeys(partitions, request.number)
    if request.target == "shift":
        missing = [partition for partition in partitions if partition not in committed]
        if missing:
            raise UnusableField(f"{missing[0]} has no committed offset to go forward or back from: leave it out, or choose another target.")
        return {partition: committed[partition] + request.number for partition in partitions}
    time_ms = request.number if request.target == "time" else now_ms - request.number
    offsets = await _offsets(admin, partitions, max(0, time_ms))
    return {partition: ends[partition] if offset == UNKNOWN_OFFSET else offset for partition, offset in offsets.items()}


async def _offsets(admin: AsyncAdmin, partitions: Iterable[TopicPartition], timestamp: int) -> Offsets:
    offsets = (await admin.list_offsets(dict.fromkeys(partitions, OffsetSpec(timestamp)))).all()
    return {partition: info.offset for partition, info in offsets.items()}


def encode_plan(rows: Iterable[OffsetChange]) -> str:
    """The plan as the page keeps it until it is carried out: by topic, the partition and its offsets before and after."""
    plan: dict[str, list[list[int | None]]] = {}
    for row in rows:
        plan.setdefault(row.partition.topic, []).append([row.partition.partition, row.before, row.after])
    return json.dumps(plan, separators=(",", ":"))


def decode_plan(text: str) -> dict[TopicPartition, tuple[int | None, int]]:
    """Offsets before and after. Raises UnusableField for a text that no page has made."""
    try:
        plan = json.loads(text)
        decoded = {
            TopicPartition(_typed(topic, str), _typed(number, int)): (None if before is None else _typed(before, int), _typed(after, int))
            for topic, rows in plan.items()
            for number, before, after in rows
        }
    except (ValueError, TypeError, AttributeError, RecursionError):
        raise UnusableField("The plan is damaged: make the preview again.") from None
    in_bounds = all(0 <= partition.partition < 2**31 and 0 <= after <= _OFFSET_MAX for partition, (_, after) in decoded.items())
    if not decoded or len(decoded) > PARTITIONS_MAX or not in_bounds:
        raise UnusableField("The plan is damaged: make the preview again.")
    return decoded


def _typed(value: object, kind: type[T]) -> T:
    if type(value) is not kind:
        raise TypeError
    return value
