"""The settings of a producer: Kafka 4.2's names, defaults and validation.

Idempotence is enabled unless another setting contradicts it. If the user enabled idempotence explicitly, by name or through a transactional
id, the contradiction is an error; otherwise idempotence is disabled.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Mapping
from typing import Final

from barnabas.client.config.common_config import common, finish
from barnabas.client.config.config import ClientConfig, key
from barnabas.config_def import INT_MAX, ConfigKey, GzipLevel, Importance, InvalidConfig, ListOf, NonEmptyString, OneOf, Range, Type, table

_log = logging.getLogger(__name__)

_STRING, _INT, _LONG, _LIST, _BOOLEAN, _CLASS = Type.STRING, Type.INT, Type.LONG, Type.LIST, Type.BOOLEAN, Type.CLASS
_HIGH, _MEDIUM, _LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW

IN_FLIGHT_MAX_FOR_IDEMPOTENCE: Final = 5

KEYS: Final[dict[str, ConfigKey]] = table(
    [
        *common(receive_buffer_bytes=32768),
        key("key.serializer", _CLASS, None, None, _HIGH, "Serializes keys; without one, keys are bytes."),
        key("value.serializer", _CLASS, None, None, _HIGH, "Serializes values; without one, values are bytes."),
        key(
            "acks",
            _STRING,
            "all",
            OneOf(("all", "-1", "0", "1")),
            _LOW,
            "The acknowledgement that a record needs: all in-sync replicas, the leader (1), none (0).",
        ),
        key("buffer.memory", _LONG, 33554432, Range(0), _HIGH, "The bytes of records that may wait to be sent; then send() blocks."),
        key("compression.type", _STRING, "none", OneOf(("none", "gzip", "snappy", "lz4", "zstd")), _HIGH, "The compression of batches."),
        key("compression.gzip.level", _INT, -1, GzipLevel(), _MEDIUM, "The level of gzip; -1 for its default."),
        key("compression.lz4.level", _INT, 9, Range(1, 17), _MEDIUM, "The level of lz4."),
        key("compression.zstd.level", _INT, 3, Range(-131072, 22), _MEDIUM, "The level of zstd."),
        key(
            "retries", _INT, INT_MAX, Range(0, INT_MAX), _HIGH, "The number of retries of a batch; delivery.timeout.ms is the better limit."
        ),
        key(
            "batch.size",
            _INT,
            16384,
            Range(0),
            _MEDIUM,
            "The bytes of records of one partition that are sent together; 0 for one record at a time.",
        ),
        key("linger.ms", _LONG, 5, Range(0), _MEDIUM, "The time that a batch that is not full waits for more records."),
        key("delivery.timeout.ms", _INT, 120000, Range(0), _MEDIUM, "The time after send() within which a record is delivered or fails."),
        key("max.block.ms", _LONG, 60000, Range(0), _MEDIUM, "The longest wait of send() and of transaction methods."),
        key("max.request.size", _INT, 1048576, Range(0), _MEDIUM, "The largest request, and so the largest record before compression."),
        key("max.in.flight.requests.per.connection", _INT, 5, Range(1), _LOW, "The number of requests to one broker without a response."),
        key("metadata.max.idle.ms", _LONG, 300000, Range(5000), _LOW, "The metadata of a topic that is unused for this long is dropped."),
        key(
            "partitioner.class",
            _CLASS,
            None,
            None,
            _MEDIUM,
            "Chooses partitions; barnabas.client.producer.partitioners describes the default.",
        ),
        key("partitioner.ignore.keys", _BOOLEAN, False, None, _MEDIUM, "Whether records with a key are distributed like those without."),
        key(
            "partitioner.adaptive.partitioning.enable",
            _BOOLEAN,
            True,
            None,
            _LOW,
            "Whether slow partitions receive fewer records without a key.",
        ),
        key(
            "partitioner.availability.timeout.ms",
            _LONG,
            0,
            Range(0),
            _LOW,
            "A broker that accepts no data for this long is avoided; 0 disables this.",
        ),
        key("interceptor.classes", _LIST, (), ListOf(), _LOW, "A chain of ProducerInterceptor."),
        key("enable.idempotence", _BOOLEAN, True, None, _LOW, "Whether each record is written exactly once and in order despite retries."),
        key("transaction.timeout.ms", _INT, 60000, None, _LOW, "The longest time of a transaction; then the coordinator aborts it."),
        key(
            "transactional.id",
            _STRING,
            None,
            NonEmptyString(),
            _LOW,
            "The name that identifies the producer's transactions across restarts.",
        ),
        key("transaction.two.phase.commit.enable", _BOOLEAN, False, None, _LOW, "Whether an external coordinator ends the transactions."),
    ]
)

_client_numbers = itertools.count(1)


def producer_config(given: Mapping[str, object] | None = None, keywords: Mapping[str, object] | None = None) -> ClientConfig:
    """Validated settings; `acks` is -1, 0 or 1 as text, and `client.id` is never empty."""
    config = ClientConfig(KEYS, given, keywords)
    finish(config)
    if config["acks"] == "all":
        config.override("acks", "-1")
    _settle_idempotence(config)
    _check_two_phase_commit(config)
    _settle_delivery_timeout(config)
    if not config["client.id"]:
        config.override("client.id", _client_id(config["transactional.id"]))
    return config


def _settle_idempotence(config: ClientConfig) -> None:
    if config["enable.idempotence"] and not _idempotence_is_possible(config, config.is_given("enable.idempotence")):
        config.override("enable.idempotence", False)
    if not config["enable.idempotence"] and config["transactional.id"] is not None:
        raise InvalidConfig("Cannot set a transactional.id without also enabling idempotence.")


def _idempotence_is_possible(config: ClientConfig, asked_for: bool) -> bool:
    possible = True
    if config["retries"] == 0:
        if asked_for:
            raise InvalidConfig("Must set retries to non-zero when using the idempotent producer.")
        _log.info("Idempotence will be disabled because retries is set to 0.")
        possible = False
    if config["acks"] != "-1":
        if asked_for:
            raise InvalidConfig("Must set acks to all in order to use the idempotent producer. Otherwise we cannot guarantee idempotence.")
        _log.info("Idempotence will be disabled because acks is set to %s, not set to 'all'.", config["acks"])
        possible = False
    in_flight = config["max.in.flight.requests.per.connection"]
    if in_flight > IN_FLIGHT_MAX_FOR_IDEMPOTENCE:
        raise InvalidConfig(
            f"To use the idempotent producer, max.in.flight.requests.per.connection must be set to at most 5. Current value is {in_flight}."
        )
    return possible


def _check_two_phase_commit(config: ClientConfig) -> None:
    if config["transaction.two.phase.commit.enable"] and config.is_given("transaction.timeout.ms"):
        raise InvalidConfig(
            "Cannot set transaction.timeout.ms when transaction.two.phase.commit.enable is set to true. "
            "Transactions will not expire with two-phase commit enabled."
        )


def _settle_delivery_timeout(config: ClientConfig) -> None:
    least = min(min(config["linger.ms"], INT_MAX) + config["request.timeout.ms"], INT_MAX)
    if config["delivery.timeout.ms"] >= least:
        return
    if config.is_given("delivery.timeout.ms"):
        raise InvalidConfig("delivery.timeout.ms should be equal to or larger than linger.ms + request.timeout.ms")
    _log.warning("delivery.timeout.ms should be equal to or larger than linger.ms + request.timeout.ms. Setting it to %d.", least)
    config.override("delivery.timeout.ms", least)


def _client_id(transactional_id: str | None) -> str:
    return f"producer-{transactional_id or next(_client_numbers)}"
