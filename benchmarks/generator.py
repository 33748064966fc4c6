"""The raw load generator: sends prebuilt frames with several in flight and counts the answers.

It takes almost nothing of the machine, so that what it measures is the broker; `python -m benchmarks.generator` is how a part runs it in a
process of its own. Each mode prints one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import selectors
import sys
import time
from collections import deque

from barnabas.protocol.framing import parse_response_header, request_frame
from barnabas.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from barnabas.protocol.messages.fetch_response import FetchResponse
from barnabas.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.protocol.reader import Reader
from barnabas.protocol.registry import BY_NAME
from barnabas.protocol.slices import Records
from barnabas.records.batch import HEADER_SIZE_V2
from barnabas.records.builder import build
from benchmarks.wire import CLIENT_ID, Client

_RECORD_OVERHEAD = 8  # lengths, deltas and attributes of a record without key and headers, about
PRODUCE_VERSION = 9  # by name, flexible: what librdkafka and Java speak to brokers of the last years
FETCH_VERSION = 12


class Batch:
    """Records of one size and one time, built once and sent again and again."""

    def __init__(self, record_size: int, count: int) -> None:
        self.record_size = record_size
        self.count = count
        self.records = Records(build([(int(time.time() * 1000), None, os.urandom(record_size), ()) for _ in range(count)]))

    @classmethod
    def of_bytes(cls, record_size: int, batch_bytes: int) -> Batch:
        """As many records as fit."""
        return cls(record_size, max(1, (batch_bytes - HEADER_SIZE_V2) // (record_size + _RECORD_OVERHEAD)))

    def produce_frame(self, topic: str) -> bytes:
        """A Produce with this batch, acks=all."""
        partition = PartitionProduceData(0, self.records)
        request = ProduceRequest(None, -1, 30_000, [TopicProduceData(topic, partition_data=[partition])])
        return b"".join(request_frame(request, BY_NAME["Produce"], PRODUCE_VERSION, 7, CLIENT_ID))

    def count_in(self, fetch_response: bytes) -> int:
        """How many such batches have come whole; the last one may be cut."""
        _, reader = parse_response_header(fetch_response, 1)
        response = FetchResponse.read(reader, FETCH_VERSION)
        _check_error(response.error_code)
        partition = response.responses[0].partitions[0]
        _check_error(partition.error_code)
        return partition.records.size // self.records.size if partition.records is not None else 0


def fetch_frame(topic: str, offset: int, max_bytes: int, max_wait_ms: int = 500, min_bytes: int = 1) -> bytes:
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=max_bytes)
    request = FetchRequest(
        max_wait_ms=max_wait_ms, min_bytes=min_bytes, max_bytes=max_bytes, topics=[FetchTopic(topic, partitions=[partition])]
    )
    return b"".join(request_frame(request, BY_NAME["Fetch"], FETCH_VERSION, 7, CLIENT_ID))


def produce(client: Client, topic: str, batch: Batch, seconds: float, in_flight: int) -> dict[str, float]:
    """As fast as it goes, one connection. As many are sent at once as have been answered at once."""
    frames = [batch.produce_frame(topic) * count for count in range(in_flight + 1)]
    error_at, acknowledged, sent = _error_at(topic), 0, in_flight
    started = time.perf_counter()
    until = started + seconds
    client.socket.sendall(frames[in_flight])
    while acknowledged < sent:
        client.receive()
        answered = 0
        while (response := client.frame_at_hand()) is not None:
            _check_error(int.from_bytes(response[error_at : error_at + 2], "big", signed=True))
            answered += 1
        acknowledged += answered
        if time.perf_counter() < until:
            client.socket.sendall(frames[answered])
            sent += answered
    took = time.perf_counter() - started
    records = acknowledged * batch.count
    return {"mb_s": records * batch.record_size / took / 1e6, "requests_s": acknowledged / took, "records": records}


def consume(client: Client, topic: str, batch: Batch, records: int, max_bytes: int) -> dict[str, float]:
    """From the beginning, in order, one fetch after the other."""
    response = memoryview(bytearray(max_bytes + batch.records.size + 4096))
    started = time.perf_counter()
    offset = 0
    while offset < records:
        client.socket.sendall(fetch_frame(topic, offset, max_bytes))
        client.next_of(response)
        count = _records_size(response, topic) // batch.records.size * batch.count
        if count == 0:
            raise RuntimeError(f"Nothing to fetch at offset {offset} of {records}")
        offset += count
    return {"mb_s": offset * batch.record_size / (time.perf_counter() - started) / 1e6}


def latency(host: str, port: int, topic: str, record_size: int, rate: int, seconds: float, tick_ms: int) -> dict[str, float]:
    """Records at a steady rate, a few every tick, while a reader waits at the end of the log: from sent to acknowledged, and to read."""
    batch = Batch(record_size, rate * tick_ms // 1000)
    with Client(host, port) as producer, Client(host, port) as consumer:
        run = _LatencyRun(producer, consumer, topic, batch)
        run.run(seconds, tick_ms / 1000)
    return {
        **{f"ack_p{name}_ms": value for name, value in _percentiles(run.acknowledged)},
        **{f"read_p{name}_ms": value for name, value in _percentiles(run.read)},
    }


class _LatencyRun:
    def __init__(self, producer: Client, consumer: Client, topic: str, batch: Batch) -> None:
        self.acknowledged: list[float] = []
        self.read: list[float] = []
        self._producer, self._consumer = producer, consumer
        self._topic, self._batch, self._frame = topic, batch, batch.produce_frame(topic)
        self._unacknowledged: deque[float] = deque()
        self._unread: deque[float] = deque()
        self._offset = 0

    def run(self, seconds: float, tick: float) -> None:
        selector = selectors.DefaultSelector()
        selector.register(self._producer.socket, selectors.EVENT_READ, self._on_acknowledged)
        selector.register(self._consumer.socket, selectors.EVENT_READ, self._on_read)
        self._fetch()
        next_tick = time.perf_counter()
        until = next_tick + seconds
        while time.perf_counter() < until or self._unread or self._unacknowledged:
            now = time.perf_counter()
            if now >= next_tick and now < until:
                self._unacknowledged.append(next_tick)  # when it should have been sent: a stall counts for all that waited
                self._unread.append(next_tick)
                self._producer.socket.sendall(self._frame)
                next_tick += tick
            for key, _ in selector.select(max(0.0, min(next_tick - time.perf_counter(), 1))):
                key.data()

    def _on_acknowledged(self) -> None:
        self._producer.receive()
        at = _error_at(self._topic)
        while (response := self._producer.frame_at_hand()) is not None:
            _check_error(int.from_bytes(response[at : at + 2], "big", signed=True))
            self.acknowledged.append(time.perf_counter() - self._unacknowledged.popleft())

    def _on_read(self) -> None:
        self._consumer.receive()
        while (response := self._consumer.frame_at_hand()) is not None:
            batches = self._batch.count_in(response)
            now = time.perf_counter()
            for _ in range(batches):
                self.read.append(now - self._unread.popleft())
            self._offset += batches * self._batch.count
            self._fetch()

    def _fetch(self) -> None:
        self._consumer.socket.sendall(fetch_frame(self._topic, self._offset, 1 << 20))


def _records_size(response: memoryview, topic: str) -> int:
    """How many bytes of records a Fetch for one partition was answered with."""
    _check_error(int.from_bytes(response[9:11], "big", signed=True))  # behind the header and the throttle time
    error_at = 15 + 1 + 1 + len(topic) + 1 + 4  # behind the session, the topic and the number of the partition
    _check_error(int.from_bytes(response[error_at : error_at + 2], "big", signed=True))
    size_at = error_at + 2 + 3 * 8 + 1 + 4  # behind three offsets, no aborted transactions and no preferred replica
    return Reader(bytes(response[size_at : size_at + 5])).uvarint() - 1


def _error_at(topic: str) -> int:
    """Where the error stands in the answer to a Produce for one partition: behind header, topic and partition."""
    return 4 + 1 + 1 + 1 + len(topic) + 1 + 4


def _check_error(code: int) -> None:
    if code != 0:
        raise RuntimeError(f"The broker answered with error {code}")


def _percentiles(seconds: list[float]) -> list[tuple[str, float]]:
    ordered = sorted(seconds)
    shares = (("50", 0.5), ("99", 0.99), ("999", 0.999))
    return [(name, ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1000) for name, share in shares]


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.generator")
    parser.add_argument("mode", choices=["produce", "consume", "latency"])
    parser.add_argument("port", type=int)
    parser.add_argument("topic")
    parser.add_argument("--record-size", type=int, default=1024)
    parser.add_argument("--batch-bytes", type=int, default=16384)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--in-flight", type=int, default=5)
    parser.add_argument("--records", type=int, default=0)
    parser.add_argument("--max-bytes", type=int, default=1 << 20)
    parser.add_argument("--rate", type=int, default=5000)
    parser.add_argument("--tick-ms", type=int, default=1)
    parser.add_argument("--tls", metavar="AUTHORITY", help="the file of the certificate authority")
    a = parser.parse_args()
    if a.mode == "latency":
        measured = latency("127.0.0.1", a.port, a.topic, a.record_size, a.rate, a.seconds, a.tick_ms)
    else:
        batch = Batch.of_bytes(a.record_size, a.batch_bytes)
        with Client("localhost", a.port, authority=a.tls) as client:
            if a.mode == "produce":
                measured = produce(client, a.topic, batch, a.seconds, a.in_flight)
            else:
                measured = consume(client, a.topic, batch, a.records, a.max_bytes)
    print(json.dumps(measured))
    return 0


if __name__ == "__main__":
    sys.exit(main())
