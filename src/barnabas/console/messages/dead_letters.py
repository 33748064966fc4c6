"""Dead letters: records that a Spark query could not decode, in a topic of their own, with headers that say why and where from.

They are shown by reason and sent back to where they came from: to the topic and partition of their headers, with their own key, value,
timestamp and headers. The headers of the dead letter are taken off, and SENT_AGAIN is added. The original timestamp is kept because
event times and the order of windows follow it; a topic with LogAppendTime writes its own.

The topic of a dead letter comes from a header that anybody who may write there can forge. So a letter is not sent to internal topics, nor
to a topic that does not exist, and always with the rights of the visitor.
"""

from __future__ import annotations

import re
import time
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from barnabas.client import AsyncConsumer, AsyncProducer
from barnabas.console.messages.browse import read_offsets
from barnabas.console.messages.decoding import ORIGIN_HEADER, REASON_HEADER, DecodedMessage, RawRecord
from barnabas.console.messages.rows import Row, row_of
from barnabas.console.messages.sending import check_target
from barnabas.errors import KafkaError

PREFIX: Final = "__barnabas.errors."
SENT_AGAIN: Final = "__barnabas.sent_again"  # topic-partition@offset of the dead letter
LETTERS_AT_ONCE_MAX: Final = 1000
BYTES_AT_ONCE_MAX: Final = 64 * 1024 * 1024
LETTERS_A_REASON: Final = 100
_REASON_CHARACTERS_MAX: Final = 500
_QUOTED: Final = re.compile(r"'[^']*'|\"[^\"]*\"")
_DIGITS: Final = re.compile(r"\d+(?:[.,]\d+)*")


class LetterNotSent(Exception):
    """The letter is not sent; the message says why."""


@dataclass(frozen=True, slots=True)
class Letter:
    """A dead letter of a list."""

    row: Row
    reason: str
    format: str
    topic: str
    partition: int | None
    offset: int | None
    was_sent_again: bool  # it came back: it was sent to its topic before, and failed again

    @property
    def place(self) -> str:
        """`partition:offset` in the dead-letter topic, for a form."""
        return f"{self.row.partition}:{self.row.offset}"


@dataclass
class Reason:
    """All letters with one reason, format and origin. `letters` has the first LETTERS_A_REASON of `count`."""

    text: str
    format: str
    topic: str
    count: int = 0
    first_ms: int | None = None
    last_ms: int | None = None
    letters: list[Letter] = field(default_factory=list)


class LetterFilter:
    """Only records that are dead letters."""

    needs_values = False

    def matches(self, message: DecodedMessage) -> bool:
        return is_letter(message.record)


def is_letter(record: RawRecord) -> bool:
    """Whether the record has the headers of a dead letter."""
    names = {name for name, _ in record.headers}
    return REASON_HEADER in names


def letter_of(message: DecodedMessage) -> tuple[Letter, int]:
    """The dead letter with its masks, and its size in memory."""
    row, size = row_of(message)
    texts = {name: decoded.text for name, decoded in message.headers if name.startswith(PREFIX)}
    return (
        Letter(
            row,
            texts.get(REASON_HEADER, "")[:_REASON_CHARACTERS_MAX],
            texts.get(PREFIX + "format", "")[:50],
            texts.get(ORIGIN_HEADER, "")[:249],
            _number(texts.get(PREFIX + "partition")),
            _number(texts.get(PREFIX + "offset")),
            message.record.last_header(SENT_AGAIN) is not None,
        ),
        size,
    )


def by_reason(letters: Iterable[Letter]) -> list[Reason]:
    """The letters grouped by reason, the most frequent first. Reasons that differ only in numbers or quoted texts are the same."""
    reasons: dict[tuple[str, str, str], Reason] = {}
    for letter in letters:
        pattern = _DIGITS.sub("#", _QUOTED.sub("'…'", letter.reason))
        reason = reasons.setdefault((pattern, letter.format, letter.topic), Reason(letter.reason, letter.format, letter.topic))
        if reason.text != letter.reason:
            reason.text = pattern
        reason.count += 1
        if len(reason.letters) < LETTERS_A_REASON:
            reason.letters.append(letter)
        timestamp = letter.row.timestamp
        if timestamp is not None:
            reason.first_ms = timestamp if reason.first_ms is None else min(reason.first_ms, timestamp)
            reason.last_ms = timestamp if reason.last_ms is None else max(reason.last_ms, timestamp)
    return sorted(reasons.values(), key=lambda reason: (-reason.count, reason.topic, reason.text))


def parse_places(texts: Sequence[str]) -> list[tuple[int, int]]:
    """The places of a form, each `partition:offset`, without repetition. Raises LetterNotSent."""
    places: dict[tuple[int, int], None] = {}
    for text in texts:
        partition, _, offset = text.partition(":")
        if not (partition.isdecimal() and offset.isdecimal() and len(partition) < 10 and len(offset) < 19):
            raise LetterNotSent(f"{text[:40]!r} is no message: the form has partition:offset")
        places[int(partition), int(offset)] = None
    if not places:
        raise LetterNotSent("No dead letter is selected")
    if len(places) > LETTERS_AT_ONCE_MAX:
        raise LetterNotSent(f"At most {LETTERS_AT_ONCE_MAX} dead letters are sent at once; {len(places)} are selected")
    return list(places)


@dataclass(frozen=True)
class LetterOutcome:
    """What became of one letter: sent to `topic` at `partition` and `offset`, or `problem`."""

    place: tuple[int, int]
    topic: str = ""
    partition: int = -1
    offset: int = -1
    problem: str = ""


class SentLetters:
    """Which letters this console has sent again, so that a double click, a reload or a second person does not send them twice.

    Kept in memory for the last LETTERS_KEPT letters: after a restart of the console a letter may be sent again.
    """

    LETTERS_KEPT: Final = 100_000

    def __init__(self) -> None:
        self._sent: OrderedDict[tuple[str, str, int, int, int], float] = OrderedDict()

    def claim(self, cluster: str, topic: str, record: RawRecord) -> bool:
        """Whether this caller is the first to send the letter. A letter at the same place of a new topic has another timestamp."""
        key = _key(cluster, topic, record)
        if key in self._sent:
            return False
        self._sent[key] = time.monotonic()
        if len(self._sent) > self.LETTERS_KEPT:
            self._sent.popitem(last=False)
        return True

    def release(self, cluster: str, topic: str, record: RawRecord) -> None:
        """The letter was not sent after all."""
        self._sent.pop(_key(cluster, topic, record), None)


def _key(cluster: str, topic: str, record: RawRecord) -> tuple[str, str, int, int, int]:
    return cluster, topic, record.partition, record.offset, record.timestamp


async def send_again(
    consumer: AsyncConsumer[bytes, bytes],
    producer: AsyncProducer[bytes, bytes],
    topic: str,
    places: Sequence[tuple[int, int]],
    sent: SentLetters,
    cluster: str,
    *,
    repeat: bool = False,
) -> list[LetterOutcome]:
    """Sends letters back to where they came from, the oldest of each partition first. `repeat` also sends those that were sent before."""
    records = await read_offsets(consumer, topic, places, bytes_max=BYTES_AT_ONCE_MAX)
    partition_counts: dict[str, int] = {}
    outcomes: list[LetterOutcome] = []
    for place in sorted(places):  # in the order in which they were written
        record = records.get(place)
        try:
            if record is None:
                raise LetterNotSent("it is no longer in the topic")
            outcomes.append(await _send_one(consumer, producer, topic, record, sent, cluster, partition_counts, repeat))
        except LetterNotSent as reason:
            outcomes.append(LetterOutcome(place, problem=str(reason)))
    return outcomes


async def _send_one(
    consumer: AsyncConsumer[bytes, bytes],
    producer: AsyncProducer[bytes, bytes],
    topic: str,
    record: RawRecord,
    sent: SentLetters,
    cluster: str,
    partition_counts: dict[str, int],
    repeat: bool,
) -> LetterOutcome:
    target, partition = _origin(record, topic)
    if target not in partition_counts:
        try:
            partition_counts[target] = await check_target(consumer, target, None)
        except KafkaError as fault:
            raise LetterNotSent(f"{target}: {fault}") from fault
    if partition is not None and partition >= partition_counts[target]:
        partition = None  # the topic was made anew with fewer: the partitioner chooses by the key
    if not sent.claim(cluster, topic, record) and not repeat:
        raise LetterNotSent("it was already sent again from this console")
    headers = [header for header in record.headers if not header[0].startswith(PREFIX) and header[0] != SENT_AGAIN]
    headers.append((SENT_AGAIN, f"{topic}-{record.partition}@{record.offset}".encode()))
    try:
        metadata = await producer.send_and_wait(
            target,
            record.value,
            record.key,
            partition=partition,
            timestamp=record.timestamp if record.timestamp >= 0 else None,
            headers=headers,
        )
    except KafkaError as fault:
        sent.release(cluster, topic, record)
        raise LetterNotSent(f"{target}: {fault}") from fault
    return LetterOutcome((record.partition, record.offset), target, metadata.partition, metadata.offset)


def _origin(record: RawRecord, topic: str) -> tuple[str, int | None]:
    """The topic and partition that the letter comes from."""
    if not is_letter(record):
        raise LetterNotSent("it is no dead letter: it has no header __barnabas.errors.message")
    name = record.last_header(ORIGIN_HEADER)
    if not name:
        raise LetterNotSent("it does not say which topic it comes from")
    target = name.decode("utf-8", "replace")
    if target == topic:
        raise LetterNotSent("it says that it comes from this topic of dead letters")
    if target.startswith("__"):
        raise LetterNotSent(f"{target} is an internal topic: nothing is sent there from here")
    partition = record.last_header(PREFIX + "partition")
    return target, _number(None if partition is None else partition.decode("utf-8", "replace"))


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdecimal() and len(text) < 19 else None
