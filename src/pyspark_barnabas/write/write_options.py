"""The validated options of writing, for a batch or a stream, as plain data that is pickled to the tasks.

Names are those of Spark's own connector where it has them. Contradictions are errors on the driver, before any task runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from barnabas.client.config.config import SharedSettings
from barnabas.client.errors import KafkaError
from barnabas.client.producer.config import producer_config
from barnabas.config_def import InvalidConfig
from pyspark_barnabas.errors import OptionError
from pyspark_barnabas.options import PUBLISH, REFUSED_FOR_WRITING, boolean, choice, client_settings, given, refuse_unknown, text

TOPIC: Final = "topic"
EXACTLY_ONCE: Final = "exactlyOnce"
PREFIX: Final = "transactionalIdPrefix"
DECISION_TOPIC: Final = "decisionTopic"
VERIFY: Final = "verifyReplays"
KNOWN: Final = (TOPIC, "includeHeaders", EXACTLY_ONCE, PREFIX, DECISION_TOPIC, VERIFY, PUBLISH)

DECISION_TOPIC_DEFAULT: Final = "__barnabas_spark_decisions"
TRANSACTION_TIMEOUT_MS_DEFAULT: Final = 900_000  # the default of the broker's transaction.max.timeout.ms
# rows arrive in bulk, and a request has one batch of a partition: the producer's 16 KB would mean many requests
BATCH_SIZE_DEFAULT: Final = 512 * 1024
PREFIX_SIZE_MAX: Final = 200

VERIFY_ROWS: Final = "rows"
VERIFY_COUNT: Final = "count"
VERIFY_NONE: Final = "none"

_FOR_EXACTLY_ONCE_ONLY: Final = (PREFIX, DECISION_TOPIC, VERIFY)
_SET_BY_EXACTLY_ONCE: Final = {
    "transactional.id": f"Every task has an id of its own; set the option '{PREFIX}'",
    "transaction.two.phase.commit.enable": "The decision log does what two-phase commit would",
}


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """`settings` are those of Kafka's producer, without `kafka.`. `topic` None: each row has its own."""

    settings: dict[str, str]
    topic: str | None
    batch_size: int = BATCH_SIZE_DEFAULT
    exactly_once: bool = False
    prefix: str = ""
    decision_topic: str = DECISION_TOPIC_DEFAULT
    verify: str = VERIFY_ROWS
    transaction_timeout_ms: int = TRANSACTION_TIMEOUT_MS_DEFAULT
    publish: bool = True

    @classmethod
    def of(cls, options: Mapping[str, str], *, streaming: bool) -> WriteOptions:
        refuse_unknown(options, KNOWN, "writing")
        settings = client_settings(options, REFUSED_FOR_WRITING)
        exactly_once = boolean(options, EXACTLY_ONCE, False)
        if exactly_once:
            _check_exactly_once(options, settings, streaming)
        else:
            _refuse_leftovers(options, settings)
        _check_settings(settings)
        topic = given(options, TOPIC)
        if topic == "":
            raise OptionError(TOPIC, "must not be empty.")
        return cls(
            settings,
            topic,
            int(settings.get("batch.size", BATCH_SIZE_DEFAULT)),
            exactly_once,
            text(options, PREFIX, "-") if exactly_once else "",
            text(options, DECISION_TOPIC, DECISION_TOPIC_DEFAULT),
            choice(options, VERIFY, VERIFY_ROWS, (VERIFY_ROWS, VERIFY_COUNT, VERIFY_NONE)),
            int(settings.get("transaction.timeout.ms", TRANSACTION_TIMEOUT_MS_DEFAULT)),
            boolean(options, PUBLISH, True),
        )


def _check_exactly_once(options: Mapping[str, str], settings: Mapping[str, str], streaming: bool) -> None:
    if not streaming:
        raise OptionError(EXACTLY_ONCE, "is for streams: a batch has no checkpoint to go on from. Leave it out.")
    prefix = given(options, PREFIX)
    if not prefix:
        raise OptionError(
            PREFIX, f"must be set when '{EXACTLY_ONCE}' is: a name that no other query uses, and that stays when this one restarts."
        )
    if "\x00" in prefix:
        raise OptionError(PREFIX, "must not have a NUL character in it.")
    if len(prefix) > PREFIX_SIZE_MAX:
        raise OptionError(PREFIX, f"must not be longer than {PREFIX_SIZE_MAX} characters.")
    for name, reason in _SET_BY_EXACTLY_ONCE.items():
        if name in settings:
            raise OptionError("kafka." + name, f"does not go with '{EXACTLY_ONCE}'. {reason}.")
    if settings.get("acks", "all") not in ("all", "-1"):
        raise OptionError("kafka.acks", f"must be 'all' when '{EXACTLY_ONCE}' is set.")
    if settings.get("enable.idempotence", "true").lower() != "true":
        raise OptionError("kafka.enable.idempotence", f"must be 'true' when '{EXACTLY_ONCE}' is set.")


def _refuse_leftovers(options: Mapping[str, str], settings: Mapping[str, str]) -> None:
    for name in _FOR_EXACTLY_ONCE_ONLY:
        if given(options, name) is not None:
            raise OptionError(name, f"has an effect only together with '{EXACTLY_ONCE}'; set that to 'true', or leave this out.")
    if "transactional.id" in settings:
        raise OptionError(
            "kafka.transactional.id", f"is not supported: tasks cannot share it. Set '{EXACTLY_ONCE}' and '{PREFIX}' instead."
        )


def _check_settings(settings: Mapping[str, str]) -> None:
    """Raises the errors and logs the warnings of the producer's own settings before any task runs."""
    try:
        producer_config(SharedSettings(settings), {}).report_unused()
    except (InvalidConfig, KafkaError, ValueError) as error:
        named = next((name for name in settings if name in str(error)), "")
        raise OptionError("kafka." + named if named else "kafka.*", f"is refused by the producer: {error}") from error
