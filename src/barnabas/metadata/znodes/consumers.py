"""Offsets that consumers of Kafka 0.8 store in znodes: /consumers/GROUP/offsets/TOPIC/PARTITION, a decimal number.

OffsetCommit and OffsetFetch version 0 write and read them; later versions use `__consumer_offsets`.
"""

from __future__ import annotations

from barnabas.metadata.znodes import json_text


def encode_offset(offset: int) -> bytes:
    return str(offset).encode()


def decode_offset(path: str, data: bytes | None) -> int | None:
    """None for a node without data."""
    return None if data is None else json_text.decode_number(path, data)
