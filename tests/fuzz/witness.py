"""A well-behaved client in a process of its own: produces to and consumes its own topic all the time, and must notice nothing of others.

`python -m tests.fuzz.witness PORT` prints "ready", runs until its standard input ends, then prints one line of JSON. It ends with an error
as soon as a record is missing, changed, repeated or foreign, or an answer is not the one a quiet broker gives.
"""

from __future__ import annotations

import json
import select
import subprocess
import sys
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from barnabas.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from barnabas.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.protocol.slices import Records
from barnabas.records.builder import build
from barnabas.records.reader import records_of
from benchmarks.wire import Client

TOPIC = "well-behaved"
# All that a default of the broker could change for it is set for the topic itself.
CONFIGS = {
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "max.message.bytes": "1048588",
    "message.timestamp.type": "CreateTime",
    "compression.type": "producer",
    "min.insync.replicas": "1",
    "cleanup.policy": "delete",
    "segment.bytes": "104857600",
}
RECORDS = 5
PAUSE_S = 0.01
WARM_UP = 20  # round trips before it is ready, and not in its figures: the first ones import modules on both sides
PRODUCE_VERSION, FETCH_VERSION = 9, 12
END_TIMEOUT_S = 60


@dataclass(frozen=True)
class Testimony:
    """Its round trips. The percentiles count those too that it would have made every `PAUSE_S` while it waited for a slow one."""

    records: int
    p50_ms: float
    p99_ms: float
    slowest_ms: float


@contextmanager
def watching(port: int) -> Generator[list[Testimony], None, None]:
    """A witness for as long as the block lasts, at work when it begins; its testimony is in the list afterwards. Raises if it has noticed
    anything."""
    command = [sys.executable, "-m", "tests.fuzz.witness", str(port)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    testimony: list[Testimony] = []
    assert process.stdout is not None
    try:
        process.stdout.readline()  # that it is ready, or the end, which is looked into below
        yield testimony
        out, errors = process.communicate("", END_TIMEOUT_S)
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
    if process.returncode != 0:
        raise AssertionError(f"The well-behaved client was harmed: {errors[-3000:]}")
    testimony.append(Testimony(**json.loads(out)))


def main(port: int) -> None:
    with Client("127.0.0.1", port) as producer, Client("127.0.0.1", port) as consumer:
        producer.create_topics([TOPIC], 1, CONFIGS)
        sent = read = 0
        round_trips: list[float] = []
        while True:
            if len(round_trips) == WARM_UP:
                print("ready", flush=True)
            is_over = bool(select.select([sys.stdin], [], [], PAUSE_S)[0])
            started = time.perf_counter()
            base = _produce(producer, sent)
            assert base == sent, f"Records {sent} and on were given offset {base}: somebody else has written to {TOPIC}"
            sent += RECORDS
            while read < sent:
                read = _consume(consumer, read)
            round_trips.append(time.perf_counter() - started)
            if is_over and len(round_trips) > WARM_UP:
                break
    print(json.dumps({"records": read, **_figures(round_trips[WARM_UP:])}))


def _figures(round_trips: list[float]) -> dict[str, float]:
    times = sorted(time_taken for round_trip in round_trips for time_taken in _with_missed(round_trip))
    ranks = {"p50_ms": 0.5, "p99_ms": 0.99, "slowest_ms": 1.0}
    return {name: round(times[min(len(times) - 1, int(len(times) * rank))] * 1000, 1) for name, rank in ranks.items()}


def _with_missed(round_trip: float) -> Iterator[float]:
    while round_trip > 0:
        yield round_trip
        round_trip -= PAUSE_S


def _value(offset: int) -> bytes:
    return b"%d well-behaved " % offset * 5


def _produce(client: Client, first: int) -> int:
    now_ms = int(time.time() * 1000)
    batch = build([(now_ms, b"%d" % offset, _value(offset), ()) for offset in range(first, first + RECORDS)])
    data = PartitionProduceData(0, Records(batch))
    response = client.ask(ProduceRequest(None, -1, 30_000, [TopicProduceData(TOPIC, partition_data=[data])]), PRODUCE_VERSION)
    part = response.responses[0].partition_responses[0]
    assert part.error_code == 0, f"Producing gave error {part.error_code}"
    return int(part.base_offset)


def _consume(client: Client, offset: int) -> int:
    """Reads from there, checks every record, and tells where to go on."""
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    request = FetchRequest(max_wait_ms=1000, min_bytes=1, max_bytes=1 << 20, topics=[FetchTopic(TOPIC, partitions=[partition])])
    response = client.ask(request, FETCH_VERSION)
    assert response.error_code == 0, f"Fetching gave error {response.error_code}"
    part = response.responses[0].partitions[0]
    assert part.error_code == 0, f"Fetching gave error {part.error_code}"
    for record in records_of(part.records.to_bytes()):
        if record.offset < offset:
            continue
        assert record.offset == offset, f"Record {record.offset} came where {offset} was due"
        assert (record.key, record.value) == (b"%d" % offset, _value(offset)), f"Record {offset} is not what was sent"
        offset += 1
    return offset


if __name__ == "__main__":
    main(int(sys.argv[1]))
