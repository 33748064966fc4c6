"""The settings of a consumer: Kafka's names, defaults and validation.

`consumer_config` validates the settings of a user and derives settings from others, as Kafka's ConsumerConfig does before anything
connects.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from barnabas.client.config.common_config import common, finish
from barnabas.client.config.config import ClientConfig, key
from barnabas.client.consumer.offsets.offset_reset import LATEST, AutoOffsetResetStrategy, parse_offset_reset
from barnabas.config_def import Importance, InvalidConfig, ListOf, NonEmptyString, OneOf, OneOfAnyCase, Range, Type, table
from barnabas.errors import InvalidGroupId

_STRING, _INT, _LIST, _BOOLEAN, _CLASS = Type.STRING, Type.INT, Type.LIST, Type.BOOLEAN, Type.CLASS
_HIGH, _MEDIUM, _LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW

READ_UNCOMMITTED: Final = "read_uncommitted"
READ_COMMITTED: Final = "read_committed"

RANGE_ASSIGNOR: Final = "org.apache.kafka.clients.consumer.RangeAssignor"
COOPERATIVE_STICKY_ASSIGNOR: Final = "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"


class _OffsetResetText:
    def check(self, name: str, value: Any) -> None:
        parse_offset_reset("null" if value is None else value)

    def __str__(self) -> str:
        return "[latest, earliest, none, by_duration:PnDTnHnMn.nS]"


KEYS: Final = table(
    [
        *common(),
        key("group.id", _STRING, None, None, _HIGH, "The group of this consumer; required to subscribe and to commit."),
        key("group.instance.id", _STRING, None, NonEmptyString(), _MEDIUM, "Makes it a static member: a restart causes no rebalance."),
        key("group.protocol", _STRING, "classic", OneOfAnyCase(("CONSUMER", "CLASSIC")), _HIGH, "classic, or consumer (KIP-848)."),
        key("group.remote.assignor", _STRING, None, None, _MEDIUM, "The assignor of the broker, for group.protocol=consumer."),
        key("session.timeout.ms", _INT, 45000, None, _HIGH, "A member without a heartbeat for this long is removed from its group."),
        key("heartbeat.interval.ms", _INT, 3000, None, _HIGH, "The time between heartbeats; less than session.timeout.ms."),
        key(
            "partition.assignment.strategy",
            _LIST,
            (RANGE_ASSIGNOR, COOPERATIVE_STICKY_ASSIGNOR),
            ListOf(),
            _MEDIUM,
            "Assignors in order of preference: classes, objects or Kafka's names.",
        ),
        key("max.poll.interval.ms", _INT, 300000, Range(1), _MEDIUM, "A member that does not poll for this long leaves its group."),
        key("max.poll.records", _INT, 500, Range(1), _MEDIUM, "The highest number of records that one poll returns."),
        key("enable.auto.commit", _BOOLEAN, True, None, _MEDIUM, "Whether polls commit positions in the background."),
        key("auto.commit.interval.ms", _INT, 5000, Range(0), _LOW, "The time between automatic commits."),
        key(
            "auto.offset.reset",
            _STRING,
            "latest",
            _OffsetResetText(),
            _MEDIUM,
            "The start without a committed offset, or if it is out of range: earliest, latest, by_duration:PT1H, or none to raise.",
        ),
        key("client.rack", _STRING, "", None, _LOW, "The rack of this client; a broker may name a replica in that rack to fetch from."),
        key("fetch.min.bytes", _INT, 1, Range(0), _HIGH, "A broker waits for this many bytes before it responds to a fetch."),
        key("fetch.max.bytes", _INT, 52428800, Range(0), _MEDIUM, "The highest number of bytes of a fetch; a first batch may be larger."),
        key("fetch.max.wait.ms", _INT, 500, Range(0), _LOW, "The longest time that a broker waits for fetch.min.bytes."),
        key(
            "max.partition.fetch.bytes",
            _INT,
            1048576,
            Range(0),
            _HIGH,
            "The highest number of bytes that a fetch returns for one partition; a first batch may be larger.",
        ),
        key("check.crcs", _BOOLEAN, True, None, _LOW, "Whether the checksums of batches are verified."),
        key(
            "isolation.level",
            _STRING,
            READ_UNCOMMITTED,
            OneOf((READ_COMMITTED, READ_UNCOMMITTED)),
            _MEDIUM,
            "Whether records of open and aborted transactions are returned.",
        ),
        key("key.deserializer", _CLASS, None, None, _HIGH, "A class, object, function or name; bytes if it is left out."),
        key("value.deserializer", _CLASS, None, None, _HIGH, "A class, object, function or name; bytes if it is left out."),
        key("default.api.timeout.ms", _INT, 60000, Range(0), _MEDIUM, "The timeout of calls without a timeout argument."),
        key("interceptor.classes", _LIST, (), ListOf(), _LOW, "ConsumerInterceptors, in order."),
        key("exclude.internal.topics", _BOOLEAN, True, None, _MEDIUM, "Whether patterns exclude Kafka's internal topics."),
        key("allow.auto.create.topics", _BOOLEAN, True, None, _MEDIUM, "Whether a Metadata request may create a missing topic."),
        key("internal.throw.on.fetch.stable.offset.unsupported", _BOOLEAN, False, None, _LOW, "Kafka's own, for Streams."),
        key("share.acknowledgement.mode", _STRING, "implicit", OneOf(("implicit", "explicit")), _MEDIUM, "For share consumers."),
        key("share.acquire.mode", _STRING, "batch_optimized", OneOf(("batch_optimized", "record_limit")), _MEDIUM, "For share consumers."),
    ]
)

# The other protocol decides these settings at the broker, or does not have them.
_ONLY_CLASSIC: Final = ("partition.assignment.strategy", "heartbeat.interval.ms", "session.timeout.ms")
_ONLY_CONSUMER: Final = ("group.remote.assignor",)

# Numbers the consumers of a process that have no client.id of their own, as Kafka does, so that brokers can tell them apart.
_numbers = itertools.count(1)


def consumer_config(given: Mapping[str, object] | None, keywords: Mapping[str, object]) -> ClientConfig:
    config = ClientConfig(KEYS, given, keywords)
    finish(config)
    _check_protocol(config)
    if not config["client.id"]:
        group_id = config["group.id"]
        number = config["group.instance.id"] or next(_numbers)
        config.override("client.id", f"consumer-{'null' if group_id is None else group_id}-{number}")
    if config["group.id"] is not None and not config["group.id"].strip():
        raise InvalidGroupId("The configured group.id should not be an empty string or whitespace.")
    if config["group.id"] is None:
        if not config.is_given("enable.auto.commit"):
            config.override("enable.auto.commit", False)
        elif config["enable.auto.commit"]:
            raise InvalidConfig("enable.auto.commit cannot be set to true without a group.id.")
    return config


def is_consumer_protocol(config: ClientConfig) -> bool:
    return str(config["group.protocol"]).lower() == "consumer"


def _check_protocol(config: ClientConfig) -> None:
    protocol, refused = ("CONSUMER", _ONLY_CLASSIC) if is_consumer_protocol(config) else ("CLASSIC", _ONLY_CONSUMER)
    for name in refused:
        if config.is_given(name) and config.given(name) not in (None, ""):
            raise InvalidConfig(f"{name} cannot be set when group.protocol={protocol}")


@dataclass(frozen=True)
class FetchConfig:
    """The settings that the fetcher reads."""

    min_bytes: int = 1
    max_bytes: int = 52428800
    max_wait_ms: int = 500
    partition_max_bytes: int = 1048576
    max_poll_records: int = 500
    read_committed: bool = False
    client_rack: str = ""
    metadata_max_age_ms: int = 300000
    offset_reset: AutoOffsetResetStrategy = LATEST

    @classmethod
    def of(cls, config: ClientConfig) -> FetchConfig:
        return cls(
            min_bytes=config["fetch.min.bytes"],
            max_bytes=config["fetch.max.bytes"],
            max_wait_ms=config["fetch.max.wait.ms"],
            partition_max_bytes=config["max.partition.fetch.bytes"],
            max_poll_records=config["max.poll.records"],
            read_committed=config["isolation.level"] == READ_COMMITTED,
            client_rack=config["client.rack"],
            metadata_max_age_ms=config["metadata.max.age.ms"],
            offset_reset=parse_offset_reset(config["auto.offset.reset"]),
        )
