"""Record batches that are small to send and large to open."""

from __future__ import annotations

import time

from barnabas.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.protocol.slices import Records
from barnabas.records.builder import encode_batch
from barnabas.records.codecs.compression import compress
from tests.attack.wire import frame

PRODUCE_VERSION = 9
HEADER = b"\x00\x01"  # a header with an empty key and no value: the smallest there is


def varint(value: int) -> bytes:
    """Zigzag, as records have it."""
    value = (value << 1) ^ (value >> 63)
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def record(value: bytes = b"", headers: int = 0, offset_delta: int = 0) -> bytes:
    """One record without a key, whose headers are all empty."""
    body = b"".join((b"\x00\x00", varint(offset_delta), varint(-1), varint(len(value)), value, varint(headers), HEADER * headers))
    return varint(len(body)) + body


def batch(records: bytes, count: int, codec: int) -> bytes:
    now_ms = int(time.time() * 1000)
    return encode_batch(compress(codec, records), codec, 0, count - 1, now_ms, now_ms, count, -1, -1, -1, -1)


def produce(topic: str, batches: list[bytes]) -> bytes:
    """A Produce of one batch for each partition from 0 on."""
    data = [PartitionProduceData(index, Records(each)) for index, each in enumerate(batches)]
    return frame(ProduceRequest(None, -1, 30_000, [TopicProduceData(topic, partition_data=data)]), PRODUCE_VERSION)
