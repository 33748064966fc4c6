"""Requests to the controller through znodes: /admin/…, /isr_change_notification, /log_dir_event_notification.

The first are the old interface of the command line tools, which still works. The notifications are sequential nodes that the controller
deletes once it has handled them. /admin/delete_topics/T and /brokers/seqid have no data: their names and versions are the information.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from barnabas.metadata import paths
from barnabas.metadata.znodes import json_text
from barnabas.topic_partition import TopicPartition

LOG_DIR_FAILURE_EVENT: Final = 1


def encode_reassignment(replicas: Mapping[TopicPartition, tuple[int, ...]]) -> bytes:
    partitions = [{"topic": key.topic, "partition": key.partition, "replicas": assigned} for key, assigned in replicas.items()]
    return json_text.encode({"version": 1, "partitions": partitions})


def decode_reassignment(data: bytes | None) -> dict[TopicPartition, tuple[int, ...]]:
    fields = json_text.decode(paths.REASSIGN_PARTITIONS, data)
    return {_partition(entry): entry.integers("replicas") for entry in fields.objects("partitions")}


def encode_preferred_replica_election(partitions: Iterable[TopicPartition]) -> bytes:
    return _encode_partitions(partitions)


def decode_preferred_replica_election(data: bytes | None) -> list[TopicPartition]:
    return _decode_partitions(paths.PREFERRED_REPLICA_ELECTION, data)


def encode_isr_change(partitions: Iterable[TopicPartition]) -> bytes:
    return _encode_partitions(partitions)


def decode_isr_change(path: str, data: bytes | None) -> list[TopicPartition]:
    return _decode_partitions(path, data)


def encode_log_dir_event(broker_id: int) -> bytes:
    return json_text.encode({"version": 1, "broker": broker_id, "event": LOG_DIR_FAILURE_EVENT})


def decode_log_dir_event(path: str, data: bytes | None) -> int:
    """The broker whose log directory failed."""
    return json_text.decode(path, data).integer("broker")


def _encode_partitions(partitions: Iterable[TopicPartition]) -> bytes:
    return json_text.encode(
        {"version": 1, "partitions": [{"topic": partition.topic, "partition": partition.partition} for partition in partitions]}
    )


def _decode_partitions(path: str, data: bytes | None) -> list[TopicPartition]:
    """The partitions without duplicates, in the order of the data."""
    return list(dict.fromkeys(_partition(entry) for entry in json_text.decode(path, data).objects("partitions")))


def _partition(fields: json_text.JsonObject) -> TopicPartition:
    return TopicPartition(fields.text("topic"), fields.integer("partition"))
