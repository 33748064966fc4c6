"""The replay of KRaft's metadata log, compared with Apache Kafka's own dump of it and with logs made here."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from barnabas.broker.adoption.kraft_metadata import KraftMetadata, MetadataReplay, read_kraft_metadata
from barnabas.errors import CorruptRecord
from barnabas.records.builder import build
from barnabas.storage.disk.files import Files
from barnabas.uuid import Uuid
from tests import golden

LOG = golden.LOGS / "kafka-4.2.0" / "first" / "__cluster_metadata-0"
ID = Uuid(bytes(range(1, 17)))


def uvarint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def text(value: str) -> bytes:
    return uvarint(len(value) + 1) + value.encode()


def frame(kind: int, body: bytes, version: int = 0, tagged: bytes = b"\0") -> bytes:
    return uvarint(1) + uvarint(kind) + uvarint(version) + body + tagged


def integers(*values: int) -> bytes:
    return uvarint(len(values) + 1) + b"".join(value.to_bytes(4, "big", signed=True) for value in values)


def i32(value: int) -> bytes:
    return value.to_bytes(4, "big", signed=True)


def topic(name: str = "t", topic_id: Uuid = ID) -> bytes:
    return frame(2, text(name) + topic_id.value)


def partition(number: int = 0, epoch: int = 0) -> bytes:
    return frame(3, i32(number) + ID.value + integers(1, 2) + integers(1) + integers() + integers() + i32(1) + i32(epoch) + i32(0))


def change(number: int = 0, **tags: bytes) -> bytes:
    numbered = {"isr": 0, "leader": 1, "replicas": 2}
    tagged = b"".join(uvarint(numbered[name]) + uvarint(len(value)) + value for name, value in tags.items())
    return frame(5, i32(number) + ID.value, tagged=uvarint(len(tags)) + tagged)


def config(name: str, value: str | None, resource: str = "t") -> bytes:
    return frame(4, b"\x02" + text(resource) + text(name) + (b"\0" if value is None else text(value)))


def batch(base_offset: int, *values: bytes) -> bytes:
    return build([(0, None, value, ()) for value in values], base_offset=base_offset)


def replayed(*records: bytes) -> KraftMetadata:
    replay = MetadataReplay()
    for record in records:
        replay.record(record)
    return replay.metadata


def kafkas_records(kind: str) -> list[dict[str, object]]:
    matches = re.findall(rf'payload: (\{{"type":"{kind}".*\}})$', (LOG / "DUMP.txt").read_text(), re.MULTILINE)
    return [json.loads(match)["data"] for match in matches]


def test_topics_are_those_that_kafka_shows() -> None:
    metadata = read_kraft_metadata(Files(), str(LOG))
    assert {(each.name, str(each.topic_id)) for each in metadata.topics.values()} == {
        (record["name"], record["topicId"]) for record in kafkas_records("TOPIC_RECORD")
    }


def test_settings_are_those_that_kafka_shows() -> None:
    metadata = read_kraft_metadata(Files(), str(LOG))
    found = {(kind, name, key, value) for (kind, name), settings in metadata.configs.items() for key, value in settings.items()}
    assert found == {
        (record["resourceType"], record["resourceName"], record["name"], record["value"]) for record in kafkas_records("CONFIG_RECORD")
    }


def test_producer_ids_are_those_that_kafka_shows() -> None:
    assert read_kraft_metadata(Files(), str(LOG)).next_producer_id == kafkas_records("PRODUCER_IDS_RECORD")[-1]["nextProducerId"]


def test_an_election_makes_the_leader_epoch_grow() -> None:
    metadata = replayed(topic(), partition(epoch=4), change(leader=i32(-1)), change(leader=i32(1)))
    assert metadata.topics[ID].partitions[0].leader_epoch == 6


def test_a_change_of_the_isr_leaves_the_leader_epoch_alone() -> None:
    assert replayed(topic(), partition(epoch=4), change(isr=integers(1, 2))).topics[ID].partitions[0].leader_epoch == 4


def test_a_change_without_a_new_leader_leaves_the_leader_epoch_alone() -> None:
    assert replayed(topic(), partition(epoch=4), change(leader=i32(-2))).topics[ID].partitions[0].leader_epoch == 4


def test_a_reassignment_changes_the_replicas() -> None:
    assert replayed(topic(), partition(), change(replicas=integers(3))).topics[ID].partitions[0].replicas == (3,)


def test_a_removed_topic_is_gone_with_its_settings() -> None:
    metadata = replayed(topic(), config("retention.ms", "1"), frame(9, ID.value))
    assert (metadata.topics, metadata.configs) == ({}, {})


def test_a_setting_without_a_value_is_gone() -> None:
    assert replayed(config("a", "1"), config("b", "2"), config("a", None)).configs == {(2, "t"): {"b": "2"}}


def test_records_of_a_transaction_count_when_it_ends() -> None:
    assert list(replayed(frame(23, b""), topic(), frame(24, b"")).topics) == [ID]


@pytest.mark.parametrize("end", [(), (frame(25, b""),)], ids=["cut off", "aborted"])
def test_records_of_a_transaction_that_did_not_end_do_not_count(end: tuple[bytes, ...]) -> None:
    assert replayed(frame(23, b""), topic(), *end).topics == {}


def test_what_has_no_place_here_is_counted() -> None:
    assert replayed(frame(18, b""), frame(18, b""), frame(19, b"")).left_behind == {"access control entries": 1}


def test_a_record_of_an_unknown_frame_is_an_error() -> None:
    with pytest.raises(CorruptRecord, match="frame version 2"):
        replayed(b"\x02\x02\x00")


def test_reading_begins_with_the_newest_snapshot_and_goes_on_behind_it(tmp_path: Path) -> None:
    (tmp_path / f"{3:020d}-{1:010d}.checkpoint").write_bytes(batch(0, topic("old")))
    (tmp_path / f"{5:020d}-{1:010d}.checkpoint").write_bytes(batch(0, topic("new")))
    (tmp_path / f"{0:020d}.log").write_bytes(batch(4, config("before", "1")) + batch(5, config("after", "2")))
    metadata = read_kraft_metadata(Files(), str(tmp_path))
    assert [each.name for each in metadata.topics.values()] == ["new"]
    assert metadata.configs == {(2, "t"): {"after": "2"}}


def test_damage_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / f"{0:020d}.log"
    path.write_bytes(batch(0, b"\x07"))
    with pytest.raises(CorruptRecord, match=str(path)):
        read_kraft_metadata(Files(), str(tmp_path))
