"""Apache Kafka reads our `__consumer_offsets`: its dump, with the decoder of offsets, shows the records that Kafka would have kept."""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import groupby

import pytest

from tests.integration.groups.conftest import OFFSETS_TOPIC
from tests.integration.groups.stage import BUSY, EMPTY, EMPTY_CONSUMER, LIVE, STATIC

pytestmark = pytest.mark.java

RECORD = re.compile(r"^\| offset: \d+ .* key: (\{.*\}) payload: (.*)$", re.MULTILINE)
BATCH = re.compile(
    r"^baseOffset: .* (baseSequence: \S+) lastSequence: \S+ (producerId: .*) position: .* (magic: .*) crc: \d+ (.*)$", re.MULTILINE
)
GROUP = re.compile(r'"group(?:Id)?":"([^"]*)"')
DELETED = "<DELETE>"
REPLACEMENTS = [
    (re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"), "UUID"),
    (re.compile(r'"memberId":"[\w+/-]{22}"'), '"memberId":"ID"'),
    (re.compile(r'"topicId":"[\w-]{22}"'), '"topicId":"ID"'),
    (re.compile(r'Timestamp":\d+'), 'Timestamp":TIME'),
    (re.compile(r'"metadataHash":-?\d+'), '"metadataHash":HASH'),  # of what the topics are, their ids among it
]


@pytest.mark.parametrize("group", [EMPTY, EMPTY_CONSUMER, LIVE, STATIC, BUSY, "made"])
def test_kafka_finds_the_records_of_a_group_in_our_log_that_it_writes_itself(group: str, printed: dict[str, list[str]]) -> None:
    ours, theirs = (records_of(dump)[group] for dump in printed[OFFSETS_TOPIC])
    assert theirs
    assert ours == theirs


def test_kafka_finds_the_groups_in_the_partitions_where_it_looks_for_them(printed: dict[str, list[str]]) -> None:
    ours, theirs = map(partitions_of, printed[OFFSETS_TOPIC])
    assert {group: ours.get(group) for group in theirs} == theirs


def test_our_batches_are_made_as_kafkas_are(printed: dict[str, list[str]]) -> None:
    ours, theirs = (set(BATCH.findall(dump)) for dump in printed[OFFSETS_TOPIC])
    assert theirs
    assert ours == theirs


def records_of(dump: str) -> dict[str, list[tuple[str, str]]]:
    """By group its records, key and payload. Tombstones that follow each other come in the order of a hash map."""
    for pattern, word in REPLACEMENTS:
        dump = pattern.sub(word, dump)
    by_group: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for key, payload in RECORD.findall(dump):
        by_group[GROUP.findall(key)[0]].append((key, payload))
    runs = {group: groupby(records, lambda record: record[1] == DELETED) for group, records in by_group.items()}
    return {group: [one for deleted, run in some for one in (sorted(run) if deleted else run)] for group, some in runs.items()}


def partitions_of(dump: str) -> dict[str, int]:
    """By group the partition of the offsets topic in which its records are; console-consumer makes up names."""
    counts: dict[str, int] = {}
    for part in re.split(r"^Dumping .*__consumer_offsets-(?=\d+/)", dump, flags=re.MULTILINE)[1:]:
        counts |= {group: int(part.partition("/")[0]) for group in GROUP.findall(part) if not group.startswith("console-consumer-")}
    return counts
