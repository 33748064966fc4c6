"""The cluster that the console is measured on: 1,000 topics of 10 partitions with records, 500 groups with a member and a lag, one topic of
100 million records, and a live traffic.

The large topic is written as segments while the broker is stopped: the same compressed batches again and again, each with its own offsets
and times.
"""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from barnabas.client.consumer.assignors.assignor import Assignment
from barnabas.client.consumer.assignors.protocol import serialize_assignment
from barnabas.protocol.message import Message
from barnabas.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from barnabas.protocol.messages.init_producer_id_request import InitProducerIdRequest
from barnabas.protocol.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from barnabas.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.protocol.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from barnabas.protocol.slices import Records
from barnabas.records.batch import HEADER_SIZE_V2
from barnabas.records.builder import build, encode_batch
from barnabas.records.codecs.compression import ZSTD
from barnabas.storage.disk.files import Files
from barnabas.storage.log_config import LogConfig
from barnabas.storage.log_manager import LogManager
from barnabas.topic_partition import TopicPartition
from benchmarks import peers
from benchmarks.peers import Peer
from benchmarks.wire import Client

TOPICS: Final = 1000
PARTITIONS: Final = 10
GROUPS: Final = 500
TOPICS_OF_A_GROUP: Final = 2
RECORDS: Final = 20  # in each partition before anything is measured
FILES_MAX: Final = 20_000
LARGE: Final = "large"
LARGE_RECORDS: Final = 100_000_000
QUERIES: Final = "__barnabas_queries"
QUERY_ID: Final = "6e0c52f1-8a2f-4c52-9d6c-1f5f2d7f9a10"
TRANSACTIONAL_ID: Final = "bench-transactions"
RARE: Final = "needle"  # in one of RARE_EVERY values of the large topic
RARE_EVERY: Final = 10_000
_BATCH_RECORDS: Final = 1000
_BODIES: Final = 100  # different batches
_STEP_MS: Final = 10  # between two records of a partition
_TOPICS_PER_REQUEST: Final = 100
_SESSION_MS: Final = 1_800_000  # a member that says nothing stays so long
_VERSIONS: Final = {"Produce": 9, "JoinGroup": 3, "SyncGroup": 3, "OffsetCommit": 8, "InitProducerId": 4, "FindCoordinator": 3}
_TRAFFIC_TOPICS: Final = 20  # that get records at once
_TRAFFIC_EVERY_S: Final = 0.2
_SUBSCRIPTION: Final = b"\0\0\0\0\0\0\xff\xff\xff\xff"  # to no topic, in version 0


class LargeTopic(NamedTuple):
    """The topic with many records, and the times of its first record and of the one after its last."""

    records: int
    first_ms: int
    end_ms: int


def topic(number: int) -> str:
    return f"topic-{number:04}"


def group(number: int) -> str:
    return f"group-{number:03}"


@contextmanager
def filled(directory: Path, large_records: int = LARGE_RECORDS) -> Iterator[tuple[Peer, LargeTopic]]:
    """A broker with all of it."""
    with peers.barnabas(directory, FILES_MAX) as peer, Client("127.0.0.1", peer.port) as client:
        client.create_topics([LARGE], PARTITIONS, {"retention.ms": "-1"})
    large = _write_large(directory, large_records)
    with peers.barnabas(directory, FILES_MAX) as peer:
        with Client("127.0.0.1", peer.port, timeout=120) as client:
            _create(client)
            _publish_query(client)
            _ask_patiently(client, FindCoordinatorRequest(group(0)))
            for number in range(GROUPS):
                _join(client, number)
            _ask_patiently(client, FindCoordinatorRequest(TRANSACTIONAL_ID, 1))
            _ask_patiently(client, InitProducerIdRequest(TRANSACTIONAL_ID, 60_000))
        yield peer, large


def _create(client: Client) -> None:
    batch = _batch(RECORDS)
    for first in range(0, TOPICS, _TOPICS_PER_REQUEST):
        names = [topic(number) for number in range(first, first + _TOPICS_PER_REQUEST)]
        client.create_topics(names, PARTITIONS)
        produce(client, names, batch)


def produce(client: Client, topics: Sequence[str], batch: Records, partitions: int = PARTITIONS) -> None:
    """The batch to every partition of these topics."""
    data = [TopicProduceData(name, partition_data=[PartitionProduceData(number, batch) for number in range(partitions)]) for name in topics]
    _ask(client, ProduceRequest(None, -1, 30_000, data))


def _batch(count: int) -> Records:
    now = round(time.time() * 1000)
    values = [json.dumps({"order": number, "total": number * 1.5}).encode() for number in range(count)]
    return Records(build([(now, b"key-%d" % number, value, ()) for number, value in enumerate(values)]))


def _publish_query(client: Client) -> None:
    client.create_topics([QUERIES])
    now = round(time.time() * 1000)
    document = {
        **{"version": 1, "kind": "source", "part": "9f86d081884c", "queryId": QUERY_ID, "runId": QUERY_ID, "name": "bench", "batch": 17},
        **{"source": "subscribe", "plannedMs": now, "inputRows": 500, "arrivedPerSecond": 120.5, "topicsLeftOut": 0, "batches": []},
        "topics": [{"name": topic(0), "partitions": PARTITIONS, "start": 0, "end": RECORDS, "latest": RECORDS}],
    }
    record = (now, f"{QUERY_ID}/source/9f86d081884c".encode(), json.dumps(document).encode(), ())
    produce(client, [QUERIES], Records(build([record])), partitions=1)


def _join(client: Client, number: int) -> None:
    """A group with one member, which reads all partitions of its topics and is behind in each."""
    name = group(number)
    topics = [topic((number * TOPICS_OF_A_GROUP + index) % TOPICS) for index in range(TOPICS_OF_A_GROUP)]
    assignment = serialize_assignment(Assignment(tuple(TopicPartition(one, index) for one in topics for index in range(PARTITIONS))))
    join = JoinGroupRequest(
        group_id=name,
        session_timeout_ms=_SESSION_MS,
        rebalance_timeout_ms=_SESSION_MS,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol("range", _SUBSCRIPTION)],
    )
    joined = _ask_patiently(client, join)
    sync = SyncGroupRequest(name, joined.generation_id, joined.member_id)
    sync.assignments = [SyncGroupRequestAssignment(joined.member_id, assignment)]
    _ask(client, sync)
    commit(client, name, topics, RECORDS // 2, joined.generation_id, joined.member_id)


def commit(client: Client, name: str, topics: Sequence[str], offset: int, generation: int = -1, member: str = "") -> None:
    partitions = [OffsetCommitRequestPartition(number, offset) for number in range(PARTITIONS)]
    committed = [OffsetCommitRequestTopic(one, partitions=partitions) for one in topics]
    _ask(client, OffsetCommitRequest(name, generation, member, topics=committed))


def _ask(client: Client, request: Message) -> Any:
    """The response. Raises RuntimeError for an error in it."""
    answer = client.ask(request, _VERSIONS[type(request).__name__.removesuffix("Request")])
    code = _error_in(answer)
    if code:
        raise RuntimeError(f"{type(request).__name__} was answered with error {code}")
    return answer


def _ask_patiently(client: Client, request: Message) -> Any:
    """The response; the coordinator may have to create its topic first."""
    until = time.monotonic() + 60
    while True:
        try:
            return _ask(client, request)
        except RuntimeError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)


def _error_in(answer: Any) -> int:
    """The first error code of a response, on whatever level."""
    if code := getattr(answer, "error_code", 0):
        return int(code)
    parts = (part for name in ("responses", "partition_responses", "topics", "partitions") for part in getattr(answer, name, ()))
    return next((code for part in parts if (code := _error_in(part))), 0)


class Traffic:
    """Records for some topics after the other, several times a second, while the cluster is looked at."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self._is_over = threading.Event()
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Traffic:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._is_over.set()
        self._thread.join()
        if self._error is not None and kind is None:
            raise self._error

    def _run(self) -> None:
        try:
            with Client("127.0.0.1", self._peer.port) as client:
                first = 0
                while not self._is_over.wait(_TRAFFIC_EVERY_S):
                    produce(client, [topic((first + number) % TOPICS) for number in range(_TRAFFIC_TOPICS)], _batch(RECORDS))
                    first += _TRAFFIC_TOPICS
        except Exception as error:
            self._error = error


# -- the large topic


def _write_large(directory: Path, records: int) -> LargeTopic:
    now = round(time.time() * 1000)
    batches = records // PARTITIONS // _BATCH_RECORDS
    first_ms = now - batches * _BATCH_RECORDS * _STEP_MS
    bodies = [_body(number) for number in range(_BODIES)]
    manager = LogManager(Files(), [str(directory)], LogConfig())
    manager.load(now)
    for partition in range(PARTITIONS):
        log = manager.get_or_create(TopicPartition(LARGE, partition), now)
        for number in range(batches):
            body = bodies[(number + partition) % _BODIES]  # rare values are at other offsets in each partition
            log.append_as_follower(_stamped(body, number, first_ms), now)
        log.update_high_watermark(log.log_end_offset)
    for log in manager.logs:
        log.producers.take_snapshot(sync=False)
        log.segments.close()
    log_dir = manager.dirs[str(directory)]
    log_dir.checkpoint_recovery_points(manager.logs)
    log_dir.clean_shutdown.write()
    log_dir.release()
    return LargeTopic(batches * _BATCH_RECORDS * PARTITIONS, first_ms, first_ms + batches * _BATCH_RECORDS * _STEP_MS)


def _body(number: int) -> bytes:
    """The compressed records of a batch, some 120 bytes each."""
    chance = random.Random(number)
    records: list[tuple[int, bytes, bytes, tuple[()]]] = []
    for index in range(_BATCH_RECORDS):
        position = number * _BATCH_RECORDS + index
        value = {
            "order": position,
            "customer": f"{chance.getrandbits(48):012x}",
            "total": round(chance.random() * 1000, 2),
            "state": chance.choice(("new", "paid", "sent")),
            "note": RARE if position % RARE_EVERY == 0 else chance.choice(("call before delivery", "leave at the door", "a gift")),
        }
        records.append((index * _STEP_MS, b"customer-%d" % chance.randrange(100_000), json.dumps(value).encode(), ()))
    return build(records, codec=ZSTD)[HEADER_SIZE_V2:]


def _stamped(body: bytes, number: int, first_ms: int) -> bytes:
    """A batch with its place in the partition."""
    offset = number * _BATCH_RECORDS
    base_ms = first_ms + offset * _STEP_MS
    last = _BATCH_RECORDS - 1
    return encode_batch(body, ZSTD, offset, offset + last, base_ms, base_ms + last * _STEP_MS, _BATCH_RECORDS, leader_epoch=0)
