"""Clients that send as fast as a quota lets them, and write down how much they could do and how long they were told to wait.

`python -m benchmarks.quota_loads PORT TOPIC CLIENT_ID SECONDS` is a client that does not keep to its throttle times: it produces with
several requests in flight, for as long as it is told.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from barnabas.protocol.framing import parse_response_header, request_frame
from barnabas.protocol.messages import alter_client_quotas_request as altering
from barnabas.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from barnabas.protocol.messages.describe_client_quotas_request import ComponentData, DescribeClientQuotasRequest
from barnabas.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from barnabas.protocol.messages.metadata_request import MetadataRequest
from barnabas.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.protocol.registry import BY_NAME
from benchmarks.generator import FETCH_VERSION, PRODUCE_VERSION, Batch
from benchmarks.wire import CREATE_TOPICS_VERSION, METADATA_VERSION, Client

HOST = "127.0.0.1"
THROTTLING_QUOTA_EXCEEDED = 89
ALTER_QUOTAS_VERSION = 1
SETTLE_S = 0.5  # from the answer of DescribeClientQuotas until Apache Kafka applies the quota
IN_FLIGHT = 5


@dataclass
class Load:
    """What a client could do in its seconds: `amounts` are bytes or partitions by the time, in seconds, at which they were answered."""

    seconds: float = 0.0
    amounts: list[tuple[float, float]] = field(default_factory=list)
    throttles_ms: list[int] = field(default_factory=list)
    first_throttle_s: float = 0.0

    @property
    def rate(self) -> float:
        return self.rate_over(self.seconds)

    def rate_over(self, seconds: float) -> float:
        """Of the first seconds."""
        return sum(amount for at, amount in self.amounts if at < seconds) / seconds

    @property
    def throttle_share(self) -> float:
        """The throttle times together, in milliseconds for each second since the first of them."""
        return sum(self.throttles_ms) / (self.seconds - self.first_throttle_s)

    @property
    def longest_throttle_ms(self) -> int:
        return max(self.throttles_ms, default=0)

    def add(self, at: float, amount: float, throttle_ms: int) -> None:
        self.amounts.append((at, amount))
        if throttle_ms:
            self.first_throttle_s = self.first_throttle_s or at
            self.throttles_ms.append(throttle_ms)


def set_quota(port: int, client_id: str, name: str, value: float | None) -> None:
    """Sets or removes the quota of a client id, and waits until it is known."""
    entity = altering.EntityData("client-id", client_id)
    change = altering.EntryData([entity], [altering.OpData(name, value or 0.0, value is None)])
    question = DescribeClientQuotasRequest([ComponentData("client-id", 0, client_id)], True)
    with Client(HOST, port) as admin:
        (entry,) = admin.ask(altering.AlterClientQuotasRequest([change], False), ALTER_QUOTAS_VERSION).entries
        if entry.error_code:
            raise RuntimeError(f"The quota {name} of {client_id} was not set: {entry.error_message}")
        while bool(admin.ask(question, ALTER_QUOTAS_VERSION).entries) != (value is not None):
            time.sleep(0.05)
    time.sleep(SETTLE_S)


def produce(port: int, client_id: str, topic: str, request_bytes: int, seconds: float) -> Load:
    """The size of requests is what counts, as in Kafka: with their headers, without their length."""
    frame = produce_frame(topic, client_id, request_bytes)

    def one(client: Client) -> tuple[float, int]:
        client.socket.sendall(frame)
        return len(frame) - 4, throttle_time_of(client, "Produce", PRODUCE_VERSION)

    return _for(port, client_id, seconds, one)


def fetch(port: int, client_id: str, topic: str, max_bytes: int, seconds: float) -> Load:
    """Again and again from the beginning of a topic. A throttled response is empty and does not count."""
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=max_bytes)
    request = FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=max_bytes, topics=[FetchTopic(topic, partitions=[partition])])
    frame = b"".join(request_frame(request, BY_NAME["Fetch"], FETCH_VERSION, 1, client_id))
    api = BY_NAME["Fetch"]

    def one(client: Client) -> tuple[float, int]:
        client.socket.sendall(frame)
        response = client.next_frame()
        _, reader = parse_response_header(response, api.response_header_version(FETCH_VERSION))
        throttle_ms = int(api.response.read(reader, FETCH_VERSION).throttle_time_ms)  # type: ignore[attr-defined]
        return (0 if throttle_ms else len(response)), throttle_ms

    return _for(port, client_id, seconds, one)


def requests(port: int, client_id: str, seconds: float) -> Load:
    """Metadata of all topics. The responses are not parsed, so that the broker takes longer than the client."""
    frame = b"".join(request_frame(MetadataRequest(None), BY_NAME["Metadata"], METADATA_VERSION, 1, client_id))

    def one(client: Client) -> tuple[float, int]:
        client.socket.sendall(frame)
        return 1, int.from_bytes(client.next_frame()[5:9], "big")  # behind the header

    return _for(port, client_id, seconds, one)


def mutations(port: int, client_id: str, prefix: str, partitions: int, rate: float, windows_s: int, seconds: float) -> Load:
    """Creates topics. The first one takes what the quota has saved up, so that the load begins with an empty bucket."""
    numbers = iter(range(1_000_000))

    def one(client: Client, count: int = partitions) -> tuple[float, int]:
        topic = CreatableTopic(f"{prefix}-{next(numbers)}", count, 1, [], [])
        response = client.ask(CreateTopicsRequest([topic], 60_000), CREATE_TOPICS_VERSION)
        (created,) = response.topics
        if created.error_code not in (0, THROTTLING_QUOTA_EXCEEDED):
            raise RuntimeError(f"Creating {created.name}: error {created.error_code} {created.error_message}")
        return (0 if created.error_code else count), int(response.throttle_time_ms)

    with Client(HOST, port, client_id=client_id) as client:
        one(client, int(rate * windows_s))
    return _for(port, client_id, seconds, one)


def latencies(port: int, topic: str, pause_s: float, seconds: float) -> list[float]:
    """Milliseconds from sending a small record to its acknowledgement, at a steady pace, by a client without a quota."""
    frame = produce_frame(topic, "calm", 1024)
    took: list[float] = []
    with Client(HOST, port, client_id="calm") as client:
        next_at = time.perf_counter()
        deadline = next_at + seconds
        while (now := time.perf_counter()) < deadline:
            if now < next_at:
                time.sleep(next_at - now)
            next_at += pause_s
            sent = time.perf_counter()
            client.socket.sendall(frame)
            throttle_time_of(client, "Produce", PRODUCE_VERSION)
            took.append((time.perf_counter() - sent) * 1000)
    return took


def produce_frame(topic: str, client_id: str, request_bytes: int) -> bytes:
    """A Produce request of about this size, with acks=1 and one record."""
    partitions = [PartitionProduceData(0, Batch(request_bytes, 1).records)]
    request = ProduceRequest(acks=1, timeout_ms=30_000, topic_data=[TopicProduceData(topic, partition_data=partitions)])
    return b"".join(request_frame(request, BY_NAME["Produce"], PRODUCE_VERSION, 1, client_id))


def _for(port: int, client_id: str, seconds: float, one: Callable[[Client], tuple[float, int]]) -> Load:
    load = Load(seconds)
    with Client(HOST, port, client_id=client_id) as client:
        began = time.perf_counter()
        while time.perf_counter() - began < seconds:
            amount, throttle_ms = one(client)
            load.add(time.perf_counter() - began, amount, throttle_ms)
    return load


def throttle_time_of(client: Client, name: str, version: int) -> int:
    """The throttle time of the next response. Raises for an error of a partition."""
    api = BY_NAME[name]
    _, reader = parse_response_header(client.next_frame(), api.response_header_version(version))
    response = api.response.read(reader, version)
    for topic in response.responses:  # type: ignore[attr-defined]
        for partition in topic.partition_responses:
            if partition.error_code:
                raise RuntimeError(f"The broker answered with error {partition.error_code}")
    return int(response.throttle_time_ms)  # type: ignore[attr-defined]


def run_wild(port: int, topic: str, client_id: str, seconds: float) -> None:
    frame = produce_frame(topic, client_id, 16_384)
    with Client(HOST, port, client_id=client_id) as client:
        client.socket.sendall(frame * IN_FLIGHT)
        deadline = time.perf_counter() + seconds
        client.socket.settimeout(1)
        while time.perf_counter() < deadline:
            try:
                client.next_frame()
            except TimeoutError:
                continue
            client.socket.sendall(frame)


if __name__ == "__main__":
    run_wild(int(sys.argv[1]), sys.argv[2], sys.argv[3], float(sys.argv[4]))
