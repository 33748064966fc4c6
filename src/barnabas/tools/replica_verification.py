"""Check that all replicas of topics hold the same data, as kafka-replica-verification does.

Options, messages, output and exit codes are those of Apache Kafka 4.2. It runs until ^C; with --once (not in Kafka) until it has
compared the records that existed at the start.
"""

from __future__ import annotations

import asyncio
import re
import sys
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from barnabas.errors import KafkaError
from barnabas.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from barnabas.protocol.messages.fetch_response import FetchResponse, PartitionData
from barnabas.tools.administration.replica_comparison import FetchedBatch, OffsetsDiffer, ReplicaBuffer, ReplicaFetch, timestamp
from barnabas.tools.command_line.failures import ToolError, complain, execution, failed_with_message, finish, message_of
from barnabas.tools.command_line.options import Option, Options, ShowVersion
from barnabas.tools.command_line.progress import ProgressBar
from barnabas.tools.command_line.topic_filter import IncludeList
from barnabas.tools.connecting.connect import validate_bootstrap
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid

if TYPE_CHECKING:
    from barnabas.tools.connecting.replica_fetch import ReplicaReader

ABOUT: Final = "Validate that all replicas for a set of topics have the same data."
OPTIONS: Final = (
    Option("broker-list", "REQUIRED: the brokers to connect to.", "required", described_as="hostname:port,...,hostname:port"),
    Option("fetch-size", "How much of a partition to fetch at a time.", "required", "Integer", "bytes", "1048576"),
    Option("max-wait-ms", "How long a fetch waits for records.", "required", "Integer", "ms", "1000"),
    Option("topics-include", "Which topics.", "required", described_as="Java regex (String)", default=".*"),
    Option("time", "From when on.", "required", "Long", "timestamp/-1(latest)/-2(earliest)", "-1"),
    Option("report-interval-ms", "How often to report.", "required", "Long", "ms", "30000"),
    Option("once", "End when all that was there at the start is compared, with 1 if something differs. (Not in Kafka.)"),
)
_DEBUGGING_REPLICA: Final = -2  # a replica id that may fetch from any replica
_SESSIONLESS_EPOCH: Final = -1
_RETRY_S: Final = 1.0
_TIMEOUT_MS: Final = 10_000  # for a response, in addition to the maximum wait of the fetch


def main(arguments: Sequence[str]) -> int:
    return finish(lambda: _execute(arguments), failed_with_message)


def _execute(arguments: Sequence[str]) -> int:
    options = Options(OPTIONS, arguments)
    if options.is_empty or options.has("help"):
        options.usage(ABOUT)
    if options.has("version"):
        raise ShowVersion
    options.require("broker-list")
    brokers = options.text("broker-list")
    wrong = validate_bootstrap(brokers)
    if wrong is not None:
        options.usage(wrong)
    regex = options.text("topics-include")
    try:
        re.compile(regex)
    except re.error:
        raise ToolError(f"{regex} is an invalid regex") from None
    with execution():
        return asyncio.run(_verify(brokers, IncludeList(regex), options))


async def _verify(brokers: str, topics: IncludeList, options: Options) -> int:
    from barnabas.tools.connecting.replica_fetch import ReplicaReader

    fetch_size, max_wait_ms, interval_ms = map(options.integer, ("fetch-size", "max-wait-ms", "report-interval-ms"))
    async with ReplicaReader({"bootstrap.servers": brokers}) as admin:
        names = [name for name in await admin.list_topics(list_internal=True) if topics.allows(name)]
        if not names:
            raise complain("No topics found. [topics-include] if specified, is either filtering out all topics or there is no topic.")
        described = (await admin.describe_topics(names)).all()
        replicas = {
            TopicPartition(name, info.partition): [node.id for node in info.replicas]
            for name, topic in described.items()
            for info in topic.partitions
        }
        ids = {name: topic.topic_id for name, topic in described.items()}
        ends = await _offsets(admin, list(replicas), -1)
        buffer = ReplicaBuffer(await _offsets(admin, list(replicas), options.integer("time")), interval_ms, _now_ms())
        print(f"{timestamp(_now_ms())}: verification process is started", flush=True)
        start = sum(buffer.offsets.values())
        progress = ProgressBar("Comparing", sum(ends.values()) - start, "offsets", after_s=2) if options.has("once") else None
        while not options.has("once") or any(buffer.offsets[partition] < end for partition, end in ends.items()):
            await _fetch_all(admin, replicas, ids, buffer, fetch_size, max_wait_ms)
            try:
                for line in buffer.verify(_now_ms()):
                    print(line, flush=True)
            except OffsetsDiffer as difference:
                print(difference)
                return 1
            if progress is not None:
                progress.at(sum(buffer.offsets.values()) - start)
        if progress is not None:
            progress.end()
        return 1 if buffer.mismatches else 0


async def _offsets(admin: ReplicaReader, partitions: Sequence[TopicPartition], when: int) -> dict[TopicPartition, int]:
    """The start offsets; the log end offset where no record is that new."""
    from barnabas.client.admin.topics.offsets import OffsetSpec

    offsets = (await admin.list_offsets(dict.fromkeys(partitions, OffsetSpec(when)))).all()
    late = [partition for partition, info in offsets.items() if info.offset < 0]
    ends = await _offsets(admin, late, OffsetSpec.LATEST) if late else {}
    return {partition: info.offset for partition, info in offsets.items()} | ends


async def _fetch_all(
    admin: ReplicaReader,
    replicas: Mapping[TopicPartition, Sequence[int]],
    ids: Mapping[str, Uuid],
    buffer: ReplicaBuffer,
    fetch_size: int,
    max_wait_ms: int,
) -> None:
    """Fetches from all brokers at once; a broker that does not answer counts as one without data."""
    brokers = sorted({broker for assigned in replicas.values() for broker in assigned})
    mine = {broker: [partition for partition, assigned in replicas.items() if broker in assigned] for broker in brokers}
    requests = {
        broker: _request({partition: buffer.offsets[partition] for partition in partitions}, ids, fetch_size, max_wait_ms)
        for broker, partitions in mine.items()
    }
    answers = await asyncio.gather(*(_ask(admin, broker, requests[broker]) for broker in brokers))
    names = {topic_id: name for name, topic_id in ids.items()}
    for broker, answer in zip(brokers, answers, strict=True):
        for partition in mine[broker]:
            buffer.add(partition, broker, ReplicaFetch())
        for topic in answer.responses if answer is not None else ():
            name = topic.topic or names.get(topic.topic_id, "")
            for data in topic.partitions:
                buffer.add(TopicPartition(name, data.partition_index), broker, _fetched(data))


async def _ask(admin: ReplicaReader, broker: int, request: FetchRequest) -> FetchResponse | None:
    try:
        return await admin.fetch(broker, request, timeout_ms=request.max_wait_ms + _TIMEOUT_MS)
    except KafkaError as error:
        print(f"Broker {broker} cannot be asked: {message_of(error)}", file=sys.stderr)
        await asyncio.sleep(_RETRY_S)
        return None


def _request(offsets: Mapping[TopicPartition, int], ids: Mapping[str, Uuid], fetch_size: int, max_wait_ms: int) -> FetchRequest:
    topics: dict[str, list[FetchPartition]] = {}
    for partition, offset in offsets.items():
        fetch_partition = FetchPartition(partition.partition, fetch_offset=offset, log_start_offset=0, partition_max_bytes=fetch_size)
        topics.setdefault(partition.topic, []).append(fetch_partition)
    return FetchRequest(
        replica_id=_DEBUGGING_REPLICA,
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        session_epoch=_SESSIONLESS_EPOCH,
        topics=[FetchTopic(name, ids[name], partitions) for name, partitions in topics.items()],
    )


def _fetched(data: PartitionData) -> ReplicaFetch:
    from barnabas.records.batch import read_batches

    records = data.records
    batches = read_batches(records.data, records.start, records.end) if records is not None and not data.error_code else []
    return ReplicaFetch(data.high_watermark, [FetchedBatch(batch.last_offset, batch.crc) for batch in batches])


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
