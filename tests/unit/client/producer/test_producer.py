"""What an application sees of a producer: the examples of the specification, limits, mistakes, and the asynchronous twin."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest

from barnabas.client.cluster import Cluster
from barnabas.client.errors import BufferExhausted, IllegalArgument, IllegalState, SerializationError, Timeout
from barnabas.client.producer import AsyncProducer, Producer, ProducerRecord, RecordMetadata
from barnabas.client.serialization import StringSerializer
from barnabas.config_def import InvalidConfig
from barnabas.errors import KafkaError, RecordTooLarge
from barnabas.protocol import api_keys
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.metadata_response import MetadataResponse, MetadataResponseBroker, MetadataResponseTopic
from tests.unit.client.producer.scripted_broker import DROP, ScriptedCluster

WAIT_S = 60
QUICK: dict[str, Any] = {"linger_ms": 0, "retry_backoff_ms": 5, "retry_backoff_max_ms": 10}


@pytest.fixture
def scripted() -> Iterator[ScriptedCluster]:
    with ScriptedCluster(partitions=4) as cluster:
        yield cluster


def producer(cluster: ScriptedCluster, **settings: Any) -> Producer:
    return Producer({"bootstrap.servers": cluster.bootstrap}, **{**QUICK, **settings})


def test_a_record_and_a_topic_with_its_fields_are_the_same(scripted: ScriptedCluster) -> None:
    with producer(scripted) as sending:
        sending.send(ProducerRecord("t", b"v", b"k", partition=1, timestamp=5, headers=[("h", b"1")])).result(WAIT_S)
        sending.send("t", b"v", b"k", partition=1, timestamp=5, headers=[("h", b"1")]).result(WAIT_S)
    first, second = (request.topic_data[0].partition_data[0].records for _, request in scripted.of_kind("Produce"))
    # All but the sequence and so the checksum.
    assert first.to_bytes()[57:] == second.to_bytes()[57:]


def test_a_callback_gets_metadata_or_an_error_and_never_both(scripted: ScriptedCluster) -> None:
    called: list[tuple[RecordMetadata | None, KafkaError | None]] = []
    with producer(scripted) as sending:
        sending.send("t", b"v", callback=lambda metadata, error: called.append((metadata, error))).result(WAIT_S)
        scripted.on_produce = lambda partition, batch, number: ErrorCode.INVALID_RECORD
        sending.send("t", b"v", callback=lambda metadata, error: called.append((metadata, error))).exception(WAIT_S)
        sending.flush()
    assert [(metadata is None, error is None) for metadata, error in called] == [(False, True), (True, False)]


class Prefix:
    def __init__(self) -> None:
        self.seen: list[str] = []

    def configure(self, configs: Any) -> None:
        self.settings = dict(configs)

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        return ProducerRecord(record.topic, f"prefix1-{record.value}", record.key, partition=record.partition)

    def on_acknowledgement(self, metadata: RecordMetadata, error: Exception | None) -> None:
        self.seen.append(f"{metadata} {type(error).__name__} {threading.current_thread().name.partition(' ')[0]}")

    def close(self) -> None:
        self.seen.append("closed")


def test_interceptors_come_before_the_callback_in_the_thread_of_the_network(scripted: ScriptedCluster) -> None:
    prefix = Prefix()
    with producer(scripted, interceptor_classes=[prefix], value_serializer=StringSerializer(), custom="own") as sending:
        sending.send("t", "kafka", partition=0, callback=lambda metadata, error: prefix.seen.append("callback"))
        sending.flush()
        scripted.on_produce = lambda partition, batch, number: ErrorCode.INVALID_RECORD
        sending.send("t", "kafka", partition=0).exception(WAIT_S)
        sending.flush()
    assert scripted.written() == [b"prefix1-kafka"]
    thread = "kafka-producer-network-thread"
    assert prefix.seen == [f"t-0@0 NoneType {thread}", "callback", f"t-0 InvalidRecord {thread}", "closed"]
    assert prefix.settings["custom"] == "own"


def test_interceptors_hear_of_records_that_are_refused_before_they_are_sent(scripted: ScriptedCluster) -> None:
    prefix = Prefix()
    with producer(scripted, interceptor_classes=[prefix], value_serializer=StringSerializer(), max_request_size=200) as sending:
        delivery = sending.send("t", "x" * 300, partition=2, callback=lambda metadata, error: prefix.seen.append("callback"))
        assert isinstance(delivery.exception(0), RecordTooLarge)
        with pytest.raises(SerializationError):
            sending.send("t", "x", key=object())
    assert [line.rpartition(" ")[0] for line in prefix.seen[:3]] == ["t-2 RecordTooLarge", "", "t SerializationError"]
    assert prefix.seen[1] == "callback"


def test_interceptors_then_serializers_then_the_partitioner(scripted: ScriptedCluster) -> None:
    steps: list[str] = []

    class Intercepting(Prefix):
        def on_send(self, record: ProducerRecord) -> ProducerRecord:
            steps.append("on_send")
            return record

    class Serializing(StringSerializer):
        def __init__(self, what: str) -> None:
            super().__init__()
            self.what = what

        def serialize(self, topic: str, data: str | None, headers: Any = None) -> bytes | None:
            steps.append(self.what)
            return super().serialize(topic, data, headers)

    class Partitioning(LastPartition):
        def partition(self, *arguments: Any) -> int:
            steps.append("partition")
            return 0

    settings: dict[str, Any] = {
        "interceptor_classes": [Intercepting()],
        "key_serializer": Serializing("key"),
        "value_serializer": Serializing("value"),
        "partitioner_class": Partitioning(),
    }
    with producer(scripted, **settings) as sending:
        sending.send("t", "v", "k").result(WAIT_S)
        assert steps == ["on_send", "key", "value", "partition"]
        steps.clear()
        sending.send("t", "v", "k", partition=2).result(WAIT_S)
        assert steps == ["on_send", "key", "value"], "a record that names its partition needs no partitioner"


class Company:
    def __init__(self, name: str, address: str) -> None:
        self.name = name
        self.address = address


class CompanySerializer:
    """The custom serializer of the specification: name and address, each behind its length."""

    made: ClassVar[list[CompanySerializer]] = []

    def __init__(self) -> None:
        self.closed = 0
        self.made.append(self)

    def configure(self, configs: Any, is_key: bool) -> None:
        self.configured = (configs["custom.setting"], is_key)

    def serialize(self, topic: str, data: Company | None, headers: Any = None) -> bytes | None:
        if data is None:
            return None
        parts = [part.encode() for part in (data.name, data.address)]
        return b"".join(len(part).to_bytes(4, "big") + part for part in parts)

    def close(self) -> None:
        self.closed += 1


def test_a_serializer_of_ones_own_is_made_configured_used_and_closed(scripted: ScriptedCluster) -> None:
    settings = {"bootstrap.servers": scripted.bootstrap, "value.serializer": CompanySerializer, "custom.setting": "x"}
    with Producer(settings, **QUICK) as sending:
        sending.send("t", Company("hidden", "China"), key=b"keys have their own", partition=0).result(WAIT_S)
    assert scripted.written() == [b"\0\0\0\x06hidden\0\0\0\x05China"]
    made = CompanySerializer.made[-1]
    assert (made.configured, made.closed) == (("x", False), 1)


def test_an_instance_takes_the_place_of_the_class_in_the_settings(scripted: ScriptedCluster) -> None:
    settings = {"bootstrap.servers": scripted.bootstrap, "value.serializer": "not.used.At.all"}
    with Producer(settings, value_serializer=StringSerializer(), **QUICK) as sending:
        sending.send("t", "text", partition=0).result(WAIT_S)
    assert scripted.written() == [b"text"]


def test_a_delivery_is_a_future(scripted: ScriptedCluster) -> None:
    with producer(scripted, linger_ms=200) as sending:
        delivery = sending.send("t", b"v")
        assert not delivery.done()
        assert not delivery.cancel()
        with pytest.raises(Timeout):
            delivery.result(0.01)
        assert delivery.result(WAIT_S).topic == "t"
        assert delivery.done()
        assert not delivery.cancelled()


def test_a_record_larger_than_a_request_fails_at_once(scripted: ScriptedCluster) -> None:
    called: list[Any] = []
    with producer(scripted, max_request_size=1000) as sending:
        delivery = sending.send("t", bytes(1000), callback=lambda metadata, error: called.append(error))
        words = (
            "The message is 1086 bytes when serialized which is larger than 1000, which is the value of the max.request.size configuration."
        )
        assert str(delivery.exception(0)) == words
        assert [str(error) for error in called] == [words]
    assert scripted.produced == 0


def test_a_record_larger_than_the_memory_fails_at_once(scripted: ScriptedCluster) -> None:
    with producer(scripted, buffer_memory=500) as sending:
        assert "buffer.memory" in str(sending.send("t", bytes(1000)).exception(0))


def test_when_memory_is_used_up_send_waits_and_then_gives_up(scripted: ScriptedCluster) -> None:
    scripted.on_produce = lambda partition, batch, number: DROP
    with producer(scripted, buffer_memory=16384, max_block_ms=100, request_timeout_ms=300, delivery_timeout_ms=300) as sending:
        first = sending.send("t", b"v", partition=0)
        began = time.monotonic()
        error = sending.send("t", b"v", partition=1).exception(0)
        assert isinstance(error, BufferExhausted)
        assert 0.09 < time.monotonic() - began < 5
        assert str(error) == (
            "Failed to allocate 16384 bytes within the configured max blocking time 100 ms. Total memory: 16384 bytes. "
            "Available memory: 0 bytes. Poolable size: 16384 bytes"
        )
        metric = sending._core.metrics.find("buffer-exhausted-total", "producer-metrics")
        assert metric is not None
        assert metric.metric_value() == 1
        assert isinstance(first.exception(WAIT_S), Timeout)


def test_when_memory_comes_free_those_who_wait_go_on(scripted: ScriptedCluster) -> None:
    with producer(scripted, buffer_memory=16384 * 2) as sending:
        deliveries = [sending.send("t", bytes(10000), partition=number % 4) for number in range(40)]
        assert all(delivery.result(WAIT_S).has_offset() for delivery in deliveries)
        assert sending._core.pool.available == 16384 * 2


def test_a_topic_that_is_not_there_fails_after_max_block_ms(scripted: ScriptedCluster) -> None:
    def unknown(request: Any) -> MetadataResponse:
        topics = [MetadataResponseTopic(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, topic.name) for topic in request.topics or ()]
        return MetadataResponse(brokers=[MetadataResponseBroker(1, "127.0.0.1", scripted.ports[1])], topics=topics)

    scripted.answers[api_keys.METADATA] = [unknown] * 1000
    with producer(scripted, max_block_ms=200) as sending:
        error = sending.send("missing", b"v").exception(0)
    assert isinstance(error, Timeout)
    assert str(error) == "Topic missing not present in metadata after 200 ms."


def test_a_partition_that_is_not_there_fails_after_max_block_ms(scripted: ScriptedCluster) -> None:
    with producer(scripted, max_block_ms=200) as sending:
        error = sending.send("t", b"v", partition=9).exception(0)
    assert str(error) == "Partition 9 of topic t with partition count 4 is not present in metadata after 200 ms."


def test_without_a_broker_send_fails_after_max_block_ms() -> None:
    with Producer({"bootstrap.servers": "127.0.0.1:1"}, max_block_ms=100) as sending:
        assert isinstance(sending.send("t", b"v").exception(0), Timeout)


@pytest.mark.parametrize("fields", [{"partition": -1}, {"timestamp": -1}])
def test_mistakes_are_raised(scripted: ScriptedCluster, fields: dict[str, int]) -> None:
    with producer(scripted) as sending, pytest.raises(IllegalArgument):
        sending.send("t", b"v", **fields)  # type: ignore[arg-type]


def test_text_without_a_serializer_is_refused(scripted: ScriptedCluster) -> None:
    with producer(scripted) as sending, pytest.raises(SerializationError):
        sending.send("t", "text")


def test_serializers_may_be_functions_and_add_headers(scripted: ScriptedCluster) -> None:
    class Marking(StringSerializer):
        def serialize(self, topic: str, data: str | None, headers: Any = None) -> bytes | None:
            headers.append(("mark", b"1"))
            return super().serialize(topic, data, headers)

    with producer(scripted, key_serializer=lambda number: b"%d" % number, value_serializer=Marking()) as sending:
        sending.send("t", "v", key=21).result(WAIT_S)
    content = scripted.of_kind("Produce")[0][1].topic_data[0].partition_data[0].records.to_bytes()
    assert b"21" in content
    assert b"mark" in content


def test_a_class_that_is_not_there_is_refused(scripted: ScriptedCluster) -> None:
    for name in ("key.serializer", "partitioner.class", "interceptor.classes"):
        with pytest.raises(InvalidConfig, match=r"could not be found"):
            Producer({"bootstrap.servers": scripted.bootstrap, name: "StringSerializer"})


class LastPartition:
    """Sends what has no key to any partition, with a leader or without: the example of the specification."""

    def __init__(self) -> None:
        self.closed = False

    def partition(self, topic: str, key: Any, key_bytes: bytes | None, value: Any, value_bytes: bytes | None, cluster: Cluster) -> int:
        return (cluster.partition_count(topic) or 1) - 1

    def close(self) -> None:
        self.closed = True


def test_a_partitioner_of_ones_own(scripted: ScriptedCluster) -> None:
    partitioner = LastPartition()
    with producer(scripted, partitioner_class=partitioner) as sending:
        assert sending.send("t", b"v").result(WAIT_S).partition == 3
        assert sending.send("t", b"v", partition=0).result(WAIT_S).partition == 0, "a record's own partition comes first"
    assert partitioner.closed


def test_a_partitioner_that_gives_nonsense_is_refused(scripted: ScriptedCluster) -> None:
    class Negative(LastPartition):
        def partition(self, *arguments: Any) -> int:
            return -1

    with producer(scripted, partitioner_class=Negative) as sending, pytest.raises(IllegalArgument, match="invalid partition number: -1"):
        sending.send("t", b"v")


def test_round_robin_by_its_name_in_java(scripted: ScriptedCluster) -> None:
    with producer(scripted, partitioner_class="org.apache.kafka.clients.producer.RoundRobinPartitioner") as sending:
        assert [sending.send("t", b"v", key=b"k").result(WAIT_S).partition for _ in range(5)] == [0, 1, 2, 3, 0]


def test_keys_are_hashed_over_all_partitions(scripted: ScriptedCluster) -> None:
    scripted.leaders[1] = -1
    with producer(scripted, request_timeout_ms=100, delivery_timeout_ms=200) as sending:
        # murmur2(b"21") is -973932308, and so partition 0 of 4.
        assert sending.send("t", b"v", key=b"21").result(WAIT_S).partition == 0
        keys = [b"%d" % number for number in range(20)]
        deliveries = [sending.send("t", b"v", key=key) for key in keys]
        assert {delivery.topic_partition.partition for delivery in deliveries} == {0, 1, 2, 3}
        lost = {delivery.topic_partition.partition for delivery in deliveries if delivery.exception(WAIT_S) is not None}
        assert lost == {1}, "the partition without a leader"


def test_keys_can_be_ignored(scripted: ScriptedCluster) -> None:
    with producer(scripted, partitioner_ignore_keys=True, linger_ms=1000) as sending:
        assert len({sending.send("t", b"v", key=b"%d" % number).topic_partition for number in range(20)}) == 1


def test_partitions_for(scripted: ScriptedCluster) -> None:
    with producer(scripted) as sending:
        infos = sending.partitions_for("t")
    assert [(info.topic, info.partition, info.leader and info.leader.id) for info in infos] == [("t", number, 1) for number in range(4)]


def test_metrics_have_kafkas_names(scripted: ScriptedCluster) -> None:
    with producer(scripted, client_id="measured") as sending:
        for _ in range(3):
            sending.send("t", b"v").result(WAIT_S)
        values = {(name.group, name.name, name.tag_map.get("topic")): metric.metric_value() for name, metric in sending.metrics().items()}
        tags = {name.tag_map["client-id"] for name in sending.metrics()}
    assert tags == {"measured"}
    assert values["producer-metrics", "record-send-total", None] == 3
    assert values["producer-topic-metrics", "record-send-total", "t"] == 3
    assert values["producer-metrics", "buffer-total-bytes", None] == 33554432
    for name in (
        "batch-size-avg",
        "batch-size-max",
        "buffer-available-bytes",
        "bufferpool-wait-ratio",
        "bufferpool-wait-time-ns-total",
        "buffer-exhausted-rate",
        "batch-split-rate",
        "compression-rate-avg",
        "flush-time-ns-total",
        "metadata-age",
        "metadata-wait-time-ns-total",
        "produce-throttle-time-avg",
        "record-error-rate",
        "record-queue-time-avg",
        "record-queue-time-max",
        "record-retry-rate",
        "record-send-rate",
        "record-size-avg",
        "record-size-max",
        "records-per-request-avg",
        "request-latency-avg",
        "request-latency-max",
        "requests-in-flight",
        "txn-commit-time-ns-total",
        "waiting-threads",
    ):
        assert ("producer-metrics", name, None) in values, name
    for name in ("byte-rate", "byte-total", "compression-rate", "record-error-total", "record-retry-rate"):
        assert ("producer-topic-metrics", name, "t") in values, name


def test_without_telemetry_there_is_no_instance_id(scripted: ScriptedCluster) -> None:
    with producer(scripted, enable_metrics_push=False) as sending, pytest.raises(IllegalState, match="Telemetry is not enabled"):
        sending.client_instance_id(1)


def test_many_threads_may_send(scripted: ScriptedCluster) -> None:
    with producer(scripted, linger_ms=1) as sending:

        def work(number: int) -> None:
            for count in range(100):
                sending.send("t", b"%d-%d" % (number, count), partition=0)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        sending.flush()
    written = [value for value in scripted.written() if value is not None]
    assert len(written) == 400
    for number in range(4):
        mine = [value for value in written if value.startswith(b"%d-" % number)]
        assert mine == [b"%d-%d" % (number, count) for count in range(100)]


def test_a_negative_timeout_is_refused(scripted: ScriptedCluster) -> None:
    with producer(scripted) as sending, pytest.raises(IllegalArgument, match="The timeout cannot be negative"):
        sending.close(-1)


def test_a_child_process_is_told_to_make_its_own(scripted: ScriptedCluster) -> None:
    with producer(scripted) as sending:
        sending.send("t", b"v").result(WAIT_S)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                sending.send("t", b"v")
            except IllegalState as error:
                code = 0 if "fork" in str(error) else 2
            os._exit(code)
        assert os.waitpid(child, 0)[1] == 0


def asynchronous(cluster: ScriptedCluster, **settings: Any) -> AsyncProducer:
    return AsyncProducer({"bootstrap.servers": cluster.bootstrap}, **{**QUICK, **settings})


def test_the_asynchronous_producer_sends(scripted: ScriptedCluster) -> None:
    async def run() -> list[int]:
        async with asynchronous(scripted) as sending:
            deliveries = [await sending.send("t", b"%d" % number, partition=0) for number in range(100)]
            assert (await sending.send_and_wait("t", b"last", partition=0)).offset == 100
            assert len(await sending.partitions_for("t")) == 4
            return [(await delivery).offset for delivery in deliveries]

    assert asyncio.run(run()) == list(range(100))


def test_the_asynchronous_producer_flushes_and_closes(scripted: ScriptedCluster) -> None:
    async def run() -> None:
        sending = asynchronous(scripted, linger_ms=60000, delivery_timeout_ms=120000)
        first = await sending.send("t", b"one")
        await sending.flush()
        assert first.done()
        second = await sending.send("t", b"two")
        await sending.close()
        assert second.done()
        with pytest.raises(IllegalState):
            await sending.send("t", b"three")

    asyncio.run(run())


def test_the_asynchronous_producer_waits_for_memory(scripted: ScriptedCluster) -> None:
    async def run() -> None:
        async with asynchronous(scripted, buffer_memory=16384 * 2) as sending:
            deliveries = [await sending.send("t", bytes(10000), partition=number % 4) for number in range(20)]
            for delivery in deliveries:
                await delivery

    asyncio.run(run())


def test_the_asynchronous_producer_gives_up_waiting_for_memory(scripted: ScriptedCluster) -> None:
    async def run() -> None:
        scripted.on_produce = lambda partition, batch, number: DROP
        async with asynchronous(scripted, buffer_memory=16384, max_block_ms=50, request_timeout_ms=200, delivery_timeout_ms=200) as sending:
            first = await sending.send("t", b"v", partition=0)
            with pytest.raises(BufferExhausted):
                await (await sending.send("t", b"v", partition=1))
            with pytest.raises(Timeout):
                await first

    asyncio.run(run())
