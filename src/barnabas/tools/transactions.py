"""List, describe and abort transactions, and find those that hang, as kafka-transactions does.

Options, messages, output and exit codes are those of Apache Kafka 4.2.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from barnabas.errors import KafkaError
from barnabas.protocol.errors import ErrorCode
from barnabas.tools.command_line.arguments import Parser, failed, number
from barnabas.tools.command_line.failures import Ended, NoSuchFile, complain, finish, message_of
from barnabas.tools.command_line.text import print_json, print_table
from barnabas.tools.connecting.connect import open_admin
from barnabas.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.administration.hanging_transactions import Hanging
    from barnabas.client.admin.admin import Admin

_BATCH_MAX: Final = 500  # partitions per request
_MINUTE_MS: Final = 60_000


def main(arguments: Sequence[str]) -> int:
    return finish(lambda: _execute(arguments), failed)


def build_parser() -> Parser:
    parser = Parser(
        prog="kafka-transactions.sh",
        description="This tool is used to analyze the transactional state of producers in the cluster. "
        "It can be used to detect and recover from hanging transactions.",
    )
    parser.add_version()
    parser.add_argument("--command-config", metavar="FILE", help="a properties file for the admin client")
    parser.add_argument("--bootstrap-server", metavar="host:port", required=True, help="brokers to connect to, with commas between them")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    listing = commands.add_parser("list", help="list transactions")
    listing.add_argument("--duration-filter", type=number("Long"), help="only those that run for longer than this many ms; all if < 0")
    listing.add_argument("--transactional-id-pattern", help="only those whose transactional id matches this regular expression")
    describe = commands.add_parser("describe", help="describe the state of an active transactional-id")
    describe.add_argument("--transactional-id", required=True, help="transactional id")
    producers = commands.add_parser("describe-producers", help="describe the states of active producers for a topic partition")
    producers.add_argument("--broker-id", type=number("Integer"), help="the replica to ask; the leader without it")
    producers.add_argument("--topic", required=True, help="topic name")
    producers.add_argument("--partition", type=number("Integer"), required=True, help="partition number")
    abort = commands.add_parser("abort", help="abort a hanging transaction (requires administrative privileges)")
    abort.add_argument("--topic", required=True, help="topic name")
    abort.add_argument("--partition", type=number("Integer"), required=True, help="partition number")
    abort.add_argument("--start-offset", type=number("Long"), help="where the transaction begins; enough for brokers since 3.0")
    abort.add_argument("--producer-id", type=number("Long"), help="for brokers older than 3.0, with the two that follow")
    abort.add_argument("--producer-epoch", type=number("Short"), help="producer epoch")
    abort.add_argument("--coordinator-epoch", type=number("Integer"), help="coordinator epoch")
    hanging = commands.add_parser("find-hanging", help="find hanging transactions")
    hanging.add_argument("--broker-id", type=number("Integer"), help="the broker to search")
    hanging.add_argument("--max-transaction-timeout", type=number("Integer"), default=15, help="in minutes; default: %(default)s")
    hanging.add_argument("--topic", help="the topic to search (required if --partition is specified)")
    hanging.add_argument("--partition", type=number("Integer"), help="partition number")
    force = commands.add_parser("forceTerminateTransaction", help="abort what a transactional id has open (requires privileges)")
    force.add_argument("--transactionalId", required=True, help="transactional id")
    parser.add_json()
    return parser


def _execute(arguments: Sequence[str]) -> None:
    given = build_parser().parse(list(arguments))
    try:
        admin = open_admin(given.bootstrap_server, given.command_config)
    except NoSuchFile as error:
        raise _gave_up("Failed to load admin client properties", error) from None
    with admin:
        table = _COMMANDS[given.command](admin, given)
    if table is None:
        return
    headers, rows = table
    if given.json:
        print_json([dict(zip(headers, row, strict=True)) for row in rows])
    else:
        print_table(headers, rows)


Table = tuple[Sequence[str], list[list[str]]]


def _gave_up(message: str, error: Exception) -> Ended:
    return complain(f"{message}: {message_of(error)}. Enable debug logging for additional detail.")


def _list(admin: Admin, given: Any) -> Table:
    try:
        by_broker = admin.list_transactions(
            duration_ms=-1 if given.duration_filter is None else given.duration_filter,
            transactional_id_pattern=given.transactional_id_pattern,
        ).all()
    except KafkaError as error:
        raise _gave_up("Failed to list transactions", error) from None
    rows = [
        [transaction.transactional_id, str(broker), str(transaction.producer_id), str(transaction.state)]
        for broker, listings in by_broker.items()
        for transaction in sorted(listings, key=lambda listing: listing.transactional_id)
    ]
    return ("TransactionalId", "Coordinator", "ProducerId", "TransactionState"), rows


def _describe(admin: Admin, given: Any) -> Table:
    name = given.transactional_id
    try:
        transaction = admin.describe_transactions([name])[name]
    except KafkaError as error:
        raise _gave_up(f"Failed to describe transaction state of transactional-id `{name}`", error) from None
    began = transaction.transaction_start_time_ms
    headers = (
        "CoordinatorId",
        "TransactionalId",
        "ProducerId",
        "ProducerEpoch",
        "TransactionState",
        "TransactionTimeoutMs",
        "CurrentTransactionStartTimeMs",
        "TransactionDurationMs",
        "TopicPartitions",
    )
    return headers, [
        [
            str(transaction.coordinator_id),
            name,
            str(transaction.producer_id),
            str(transaction.producer_epoch),
            str(transaction.state),
            str(transaction.transaction_timeout_ms),
            "None" if began is None else str(began),
            "None" if began is None else str(_now_ms() - began),
            ",".join(str(partition) for partition in sorted(transaction.topic_partitions)),
        ]
    ]


def _describe_producers(admin: Admin, given: Any) -> Table:
    partition = TopicPartition(given.topic, given.partition)
    try:
        producers = admin.describe_producers([partition], broker_id=given.broker_id)[partition]
    except KafkaError as error:
        where = "leader" if given.broker_id is None else f"broker {given.broker_id}"
        raise _gave_up(f"Failed to describe producers for partition {partition} on {where}", error) from None
    headers = ("ProducerId", "ProducerEpoch", "LatestCoordinatorEpoch", "LastSequence", "LastTimestamp", "CurrentTransactionStartOffset")
    return headers, [
        [
            str(producer.producer_id),
            str(producer.producer_epoch),
            str(_or(producer.coordinator_epoch, -1)),
            str(producer.last_sequence),
            str(producer.last_timestamp),
            str(_or(producer.current_transaction_start_offset, "None")),
        ]
        for producer in producers
    ]


def _or(value: Any, default: Any) -> Any:
    return default if value is None else value


def _abort(admin: Admin, given: Any) -> None:
    from barnabas.client.admin.topics.transactions import AbortTransactionSpec

    partition = TopicPartition(given.topic, given.partition)
    if given.start_offset is None and given.producer_id is None:
        raise complain(
            "The transaction to abort must be identified either with --start-offset (for brokers on 3.0 or above) or with "
            "--producer-id, --producer-epoch, and --coordinator-epoch (for older brokers)"
        )
    if given.start_offset is None:
        for name in ("producer-epoch", "coordinator-epoch"):
            if getattr(given, name.replace("-", "_")) is None:
                raise complain(f"Missing required argument --{name}")
        # A producer without a completed transaction has coordinator epoch -1; 0 is never newer than an existing epoch.
        spec = AbortTransactionSpec(partition, given.producer_id, given.producer_epoch, max(given.coordinator_epoch, 0))
    else:
        producer = _open_at(admin, partition, given.start_offset)
        spec = AbortTransactionSpec(partition, producer.producer_id, producer.producer_epoch, _or(producer.coordinator_epoch, 0))
    try:
        admin.abort_transaction(spec)
    except KafkaError as error:
        description = (
            f"AbortTransactionSpec(topicPartition={partition}, producerId={spec.producer_id}, "
            f"producerEpoch={spec.producer_epoch}, coordinatorEpoch={spec.coordinator_epoch})"
        )
        raise _gave_up(f"Failed to abort transaction {description}", error) from None


def _open_at(admin: Admin, partition: TopicPartition, offset: int) -> Any:
    try:
        producers = admin.describe_producers([partition])[partition]
    except KafkaError as error:
        raise _gave_up(f"Failed to validate producer state for partition {partition}", error) from None
    for producer in producers:
        if producer.current_transaction_start_offset == offset:
            return producer
    raise complain(f"Could not find any open transactions starting at offset {offset} on partition {partition}")


def _force(admin: Admin, given: Any) -> None:
    try:
        admin.force_terminate_transaction(given.transactionalId)
    except KafkaError as error:
        raise _gave_up(f"Failed to force terminate transactionalId `{given.transactionalId}`", error) from None


def _find_hanging(admin: Admin, given: Any) -> Table:
    if given.topic is None and given.broker_id is None:
        raise complain("The `find-hanging` command requires either --topic or --broker-id to limit the scope of the search")
    if given.partition is not None and given.topic is None:
        raise complain("The --partition argument requires --topic to be provided")
    partitions = _partitions_to_search(admin, given)
    candidates = _long_open(admin, given.broker_id, given.max_transaction_timeout * _MINUTE_MS, partitions)
    now = _now_ms()
    rows = [
        [
            partition.topic,
            str(partition.partition),
            str(producer.producer_id),
            str(producer.producer_epoch),
            str(_or(producer.coordinator_epoch, -1)),
            str(_or(producer.current_transaction_start_offset, -1)),
            str(producer.last_timestamp),
            str((now - producer.last_timestamp) // _MINUTE_MS),
        ]
        for candidate in _hanging(admin, candidates)
        for partition, producer in ((candidate.partition, candidate.producer),)
    ]
    headers = ("Topic", "Partition", "ProducerId", "ProducerEpoch", "CoordinatorEpoch", "StartOffset", "LastTimestamp", "Duration(min)")
    return headers, rows


def _partitions_to_search(admin: Admin, given: Any) -> list[TopicPartition]:
    if given.partition is not None:
        return [TopicPartition(given.topic, given.partition)]
    try:
        topics = [given.topic] if given.topic is not None else sorted(admin.list_topics(list_internal=True))
    except KafkaError as error:
        raise _gave_up("Failed to list topics", error) from None
    partitions = []
    for batch in _batches(topics):
        try:
            descriptions = admin.describe_topics(batch).all()
        except KafkaError as error:
            raise _gave_up(f"Failed to describe {len(batch)} topics", error) from None
        for name, topic in descriptions.items():
            for info in topic.partitions:
                if given.broker_id is None or given.broker_id in {node.id for node in info.replicas}:
                    partitions.append(TopicPartition(name, info.partition))
    return partitions


def _long_open(admin: Admin, broker_id: int | None, longest_ms: int, partitions: list[TopicPartition]) -> list[Hanging]:
    from barnabas.administration.hanging_transactions import long_open

    hanging: list[Hanging] = []
    for batch in _batches(partitions):
        try:
            producers = admin.describe_producers(batch, broker_id=broker_id).all()
        except KafkaError as error:
            where = f"Optional[{broker_id}]" if broker_id is not None else "Optional.empty"
            raise _gave_up(f"Failed to describe producers for {len(batch)} partitions on broker {where}", error) from None
        now = _now_ms()
        hanging += long_open(producers, longest_ms, now)
    return hanging


def _hanging(admin: Admin, candidates: list[Hanging]) -> list[Hanging]:
    """Transactions that no coordinator has, so that their markers will never be written."""
    if not candidates:
        return []
    from barnabas.administration.hanging_transactions import unknown_to_coordinators

    ids = {candidate.producer.producer_id for candidate in candidates}
    try:
        listed = admin.list_transactions(producer_ids=ids).all()
    except KafkaError as error:
        raise _gave_up(f"Failed to list transactions for {len(ids)} producers", error) from None
    names = {listing.producer_id: listing.transactional_id for listings in listed.values() for listing in listings}
    outcomes = admin.describe_transactions(set(names.values())) if names else None
    for refusal in outcomes.errors.values() if outcomes is not None else ():
        if refusal.code != ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            raise _gave_up(f"Failed to describe {len(names)} transactions", refusal) from None
    known = outcomes.successes if outcomes is not None else {}
    return unknown_to_coordinators(candidates, names, known)


def _batches(items: list[Any]) -> Iterator[list[Any]]:
    return (items[start : start + _BATCH_MAX] for start in range(0, len(items), _BATCH_MAX))


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


_COMMANDS: Final = {
    "list": _list,
    "describe": _describe,
    "describe-producers": _describe_producers,
    "abort": _abort,
    "find-hanging": _find_hanging,
    "forceTerminateTransaction": _force,
}
