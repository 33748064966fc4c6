"""What transactions leave on disk is what Apache Kafka leaves, as its dump reads it: states, markers, transaction indexes, snapshots."""

from __future__ import annotations

import re
from collections import defaultdict

import pytest

from tests import golden
from tests.integration.transactions.dumps import FILES, TRANSACTION_LOG
from tests.integration.transactions.stage import ABORTED, COMMITTED, EMPTY, HANGING, OFFSETS, ONGOING, STAGE

pytestmark = pytest.mark.java

RECORD = re.compile(r"^\| offset: \d+ .* key: (\{.*\}|\S+) payload: (.*)$", re.MULTILINE)
BATCH = re.compile(
    r"^baseOffset: .* (baseSequence: \S+) lastSequence: \S+ (producerId: .*) position: .* (magic: .*) crc: CRC (.*)$", re.MULTILINE
)
ID = re.compile(r'transactional_?[iI]d"?[:=]"?([\w-]+)')


@pytest.mark.parametrize("name", [EMPTY, ONGOING, COMMITTED, ABORTED, OFFSETS, HANGING])
def test_kafka_finds_the_states_of_a_transaction_in_our_log_that_it_writes_itself(name: str, found: dict[str, list[str]]) -> None:
    ours, theirs = (states_of(dump)[f"{STAGE}-{name}"] for dump in found[TRANSACTION_LOG])
    assert theirs
    assert ours == theirs


def test_kafka_finds_transactions_in_the_partitions_where_it_looks_for_them(found: dict[str, list[str]]) -> None:
    ours, theirs = map(partitions_of, found[TRANSACTION_LOG])
    assert len(theirs) > 1
    assert ours == theirs


def test_our_batches_of_states_are_made_as_kafkas_are(found: dict[str, list[str]]) -> None:
    ours, theirs = (set(BATCH.findall(dump)) for dump in found[TRANSACTION_LOG])
    assert theirs
    assert ours == theirs


def test_the_files_of_a_history_hold_what_kafkas_hold(found: dict[str, list[str]]) -> None:
    ours, theirs = (dump.splitlines() for dump in found[FILES])
    assert len(theirs) > 100
    assert ours == theirs


def test_the_history_has_every_kind_of_file(found: dict[str, list[str]]) -> None:
    """So that the comparison above is about something."""
    kinds = {name.rpartition(".")[2] for name in re.findall(r"^Dumping (\S+)$", found[FILES][1], re.MULTILINE)}
    assert kinds == {kind.removeprefix(".") for kind in golden.KINDS}


def states_of(dump: str) -> dict[str, list[tuple[str, str]]]:
    by_id: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for key, payload in RECORD.findall(dump):
        by_id[ID.findall(key)[0]].append((key, payload))
    return by_id


def partitions_of(dump: str) -> dict[str, int]:
    """By transactional id the partition of the log in which its states are."""
    lines_by_id: dict[str, int] = {}
    for part in re.split(r"^Dumping .*__transaction_state-(?=\d+/)", dump, flags=re.MULTILINE)[1:]:
        lines_by_id |= {transactional_id: int(part.partition("/")[0]) for transactional_id in ID.findall(part)}
    return lines_by_id
