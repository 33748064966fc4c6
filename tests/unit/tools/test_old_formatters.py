"""The formatters of Kafka 2.8 for internal topics: their names, and the lines that scripts read."""

from __future__ import annotations

import io
import struct
from types import SimpleNamespace

import pytest

from barnabas.tools._record_formatters import load_formatter

GROUPS = "kafka.coordinator.group.GroupMetadataManager$"
OFFSETS = f"{GROUPS}OffsetsMessageFormatter"
METADATA = f"{GROUPS}GroupMetadataMessageFormatter"
TRANSACTIONS = "kafka.coordinator.transaction.TransactionLog$TransactionLogMessageFormatter"


def text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


def printed(formatter: str, key: bytes, value: bytes | None) -> str:
    output = io.BytesIO()
    load_formatter(formatter).write(SimpleNamespace(key=key, value=value, offset=7), output)
    return output.getvalue().decode()


OFFSET_KEY = struct.pack(">h", 1) + text("g") + text("t") + struct.pack(">i", 3)
GROUP_KEY = struct.pack(">h", 2) + text("g")
TRANSACTION_KEY = struct.pack(">h", 0) + text("x")


@pytest.mark.parametrize(("epoch", "shown"), [(-1, "Optional.empty"), (5, "Optional[5]")])
def test_an_offset_commit_is_a_line_of_scala(epoch: int, shown: str) -> None:
    value = struct.pack(">hqi", 3, 42, epoch) + text("note") + struct.pack(">q", 1000)
    assert printed(OFFSETS, OFFSET_KEY, value) == (
        f"[g,t,3]::OffsetAndMetadata(offset=42, leaderEpoch={shown}, metadata=note, commitTimestamp=1000, expireTimestamp=None)\n"
    )


def test_an_old_offset_commit_says_when_it_expires() -> None:
    value = struct.pack(">hq", 1, 42) + text("") + struct.pack(">qq", 1000, 2000)
    assert printed(OFFSETS, OFFSET_KEY, value) == (
        "[g,t,3]::OffsetAndMetadata(offset=42, leaderEpoch=Optional.empty, metadata=, commitTimestamp=1000, expireTimestamp=Some(2000))\n"
    )


@pytest.mark.parametrize(
    ("formatter", "key", "line"),
    [(OFFSETS, OFFSET_KEY, "[g,t,3]::NULL\n"), (METADATA, GROUP_KEY, "g::NULL\n"), (TRANSACTIONS, TRANSACTION_KEY, "x::NULL\n")],
)
def test_what_was_deleted_is_null(formatter: str, key: bytes, line: str) -> None:
    assert printed(formatter, key, None) == line


def test_records_of_other_types_are_left_out() -> None:
    assert printed(OFFSETS, GROUP_KEY, None) == printed(METADATA, OFFSET_KEY, None) == ""


def test_a_group_without_members_is_empty() -> None:
    value = struct.pack(">h", 0) + text("consumer") + struct.pack(">i", 4) + struct.pack(">hh", -1, -1) + struct.pack(">i", 0)
    assert printed(METADATA, GROUP_KEY, value) == (
        "g::GroupMetadata(groupId=g, generation=4, protocolType=Some(consumer), currentState=Empty, members=HashMap())\n"
    )


@pytest.mark.parametrize("name", ["Default", "Logging", "NoOp"])
def test_the_other_formatters_have_their_old_names_too(name: str) -> None:
    assert type(load_formatter(f"kafka.tools.{name}MessageFormatter")) is type(
        load_formatter(f"org.apache.kafka.tools.consumer.{name}MessageFormatter")
    )
