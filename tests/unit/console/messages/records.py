"""Records as a consumer returns them, for tests that need no broker."""

from __future__ import annotations

from barnabas.client.consumer.record import ConsumerRecord, TimestampType
from barnabas.console.messages.decoding import DecodedMessage, Decoder, RawRecord, Reading
from barnabas.console.messages.masks import Masks, parse_masks
from barnabas.console.messages.registry import RegistryDecoder


def record(
    value: bytes | None = b"v",
    key: bytes | None = b"k",
    headers: tuple[tuple[str, bytes | None], ...] = (),
    *,
    offset: int = 7,
    timestamp: int = 1_700_000_000_000,
) -> RawRecord:
    """A record of partition 0."""
    sizes = (-1 if key is None else len(key), -1 if value is None else len(value))
    return ConsumerRecord("orders", 0, offset, timestamp, TimestampType.CREATE_TIME, *sizes, key, value, headers)


def message(
    value: bytes | None = b"v",
    key: bytes | None = b"k",
    headers: tuple[tuple[str, bytes | None], ...] = (),
    *,
    masks: tuple[dict[str, str], ...] = (),
    topic: str = "orders",
    keys: Reading = "auto",
    values: Reading = "auto",
    registry: RegistryDecoder | None = None,
    **bounds: int,
) -> DecodedMessage:
    """A message of the topic, with masks as console.toml has them."""
    decoder = Decoder(topic, masks=Masks(parse_masks(list(masks))), key=keys, value=values, registry=registry, **bounds)
    return DecodedMessage(record(value, key, headers), decoder)
