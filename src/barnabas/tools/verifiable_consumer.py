"""Consume a topic and print what happens as JSON, as kafka-verifiable-consumer does.

Options, messages, output and exit codes are those of Apache Kafka 4.2.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from barnabas.client.consumer.membership.rebalance_listener import ConsumerRebalanceListener
from barnabas.client.consumer.offsets.offset_and_metadata import OffsetAndMetadata
from barnabas.client.errors import Wakeup
from barnabas.errors import FencedInstanceId, KafkaError
from barnabas.tools.command_line.arguments import Parser, number
from barnabas.tools.command_line.failures import described, finish, message_of
from barnabas.tools.connecting.connect import open_consumer
from barnabas.tools.connecting.load import on_signals
from barnabas.tools.verifiable_producer import failed, print_event, read_config
from barnabas.topic_partition import TopicPartition

_LOG: Final = logging.getLogger(__name__)
_RANGE: Final = "org.apache.kafka.clients.consumer.RangeAssignor"
_POLL_S: Final = 60.0


def main(arguments: Sequence[str]) -> int:
    if not arguments:
        build_parser().print_help()
        return 0
    return finish(lambda: _execute(arguments), failed)


def build_parser() -> Parser:
    parser = Parser(
        prog="verifiable-consumer",
        description="This tool consumes messages from a specific topic and emits consumer events (e.g. group rebalances, received "
        "messages, and offsets committed) as JSON objects to STDOUT.",
    )
    connection = parser.add_mutually_exclusive_group(required=True)
    connection.add_argument("--bootstrap-server", metavar="HOST1:PORT1[,HOST2:PORT2[...]]", help="the brokers to connect to")
    parser.add_argument("--topic", metavar="TOPIC", required=True, help="the topic")
    parser.add_argument("--group-protocol", metavar="GROUP-PROTOCOL", default="classic", help="CLASSIC or CONSUMER")
    parser.add_argument("--group-remote-assignor", metavar="GROUP-REMOTE-ASSIGNOR", help="for the protocol CONSUMER")
    parser.add_argument("--group-id", metavar="GROUP-ID", required=True, help="the consumer group")
    parser.add_argument("--group-instance-id", metavar="GROUP-INSTANCE-ID", help="the name of a static member")
    parser.add_argument(
        "--max-messages", metavar="MAX-MESSAGES", type=number("Integer"), default=-1, help="how many; -1: until it is stopped"
    )
    parser.add_argument("--session-timeout", metavar="TIMEOUT-MS", type=number("Integer"), help="for the protocol CLASSIC")
    parser.add_argument("--verbose", action="store_true", help="print each record")
    parser.add_argument("--enable-autocommit", action="store_true", help="let the consumer commit by itself")
    parser.add_argument("--reset-policy", metavar="RESET-POLICY", default="earliest", help="earliest, latest or none")
    parser.add_argument("--assignment-strategy", metavar="ASSIGNMENT-STRATEGY", default=_RANGE, help="for the protocol CLASSIC")
    parser.add_argument("--consumer.config", metavar="CONFIG-FILE", help="(DEPRECATED) the same as --command-config")
    parser.add_argument("--command-config", metavar="CONFIG-FILE", help="a properties file for the consumer")
    return parser


def consumer_settings(parser: Parser, given: Any) -> dict[str, Any]:
    settings: dict[str, Any] = dict(read_config(parser, given, "consumer.config"))
    settings["group.protocol"] = given.group_protocol.upper()
    if settings["group.protocol"] == "CONSUMER":
        if given.group_remote_assignor is not None:
            settings["group.remote.assignor"] = given.group_remote_assignor
    else:
        settings["partition.assignment.strategy"] = given.assignment_strategy
    if given.session_timeout is not None:
        settings["session.timeout.ms"] = str(given.session_timeout)
    if given.group_instance_id is not None:
        settings["group.instance.id"] = given.group_instance_id
    return settings | {
        "group.id": given.group_id,
        "bootstrap.servers": given.bootstrap_server,
        "enable.auto.commit": str(given.enable_autocommit).lower(),
        "auto.offset.reset": given.reset_policy,
    }


def _execute(arguments: Sequence[str]) -> None:
    parser = build_parser()
    given = parser.parse(list(arguments))
    consumer = open_consumer(consumer_settings(parser, given))
    on_signals(consumer.wakeup)
    ConsumerRun(consumer, given).consume()


class Events(ConsumerRebalanceListener):
    def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
        _print_partitions("partitions_assigned", partitions)

    def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:
        _print_partitions("partitions_revoked", partitions)


def _print_partitions(name: str, partitions: Collection[TopicPartition]) -> None:
    print_event(name, partitions=[{"topic": partition.topic, "partition": partition.partition} for partition in sorted(partitions)])


class ConsumerRun:
    def __init__(self, consumer: Any, given: Any) -> None:
        self._consumer = consumer
        self._given = given
        self._consumed = 0

    def consume(self) -> None:
        try:
            print_event("startup_complete")
            self._consumer.subscribe([self._given.topic], Events())
            while not self._is_finished():
                records = self._consumer.poll(_POLL_S)
                if not len(records):
                    continue
                offsets = self._received(records)
                if not self._given.enable_autocommit:
                    self._commit(offsets)
        except Wakeup:
            pass  # told to stop
        except Exception as error:
            _LOG.error("Error during processing, terminating consumer process: %s", described(error))
        finally:
            self._consumer.close()
            print_event("shutdown_complete")

    def _is_finished(self) -> bool:
        limit: int = self._given.max_messages
        return 0 <= limit <= self._consumed

    def _received(self, records: Any) -> dict[TopicPartition, OffsetAndMetadata]:
        offsets: dict[TopicPartition, OffsetAndMetadata] = {}
        summaries = []
        for partition in records.partitions():
            taken = records.records(partition)
            if self._given.max_messages >= 0:
                taken = taken[: self._given.max_messages - self._consumed]
            if not taken:
                continue
            first, last = taken[0].offset, taken[-1].offset
            offsets[partition] = OffsetAndMetadata(last + 1)
            summary = {
                "topic": partition.topic,
                "partition": partition.partition,
                "count": len(taken),
                "minOffset": first,
                "maxOffset": last,
            }
            summaries.append(summary)
            for record in taken if self._given.verbose else ():
                fields = {"key": _text(record.key), "value": _text(record.value), "topic": record.topic}
                print_event("record_data", **fields, partition=record.partition, offset=record.offset)
            self._consumed += len(taken)
            if self._is_finished():
                break
        print_event("records_consumed", count=len(records), partitions=summaries)
        return offsets

    def _commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        try:
            self._consumer.commit_sync(offsets)
        except Wakeup:
            self._commit(offsets)
            raise
        except FencedInstanceId:
            raise
        except KafkaError as error:
            _print_commit(offsets, error)
        else:
            _print_commit(offsets, None)


def _print_commit(offsets: Mapping[TopicPartition, OffsetAndMetadata], error: KafkaError | None) -> None:
    committed = [
        {"topic": partition.topic, "partition": partition.partition, "offset": offset.offset} for partition, offset in offsets.items()
    ]
    failure = {} if error is None else {"error": message_of(error)}
    print_event("offsets_committed", offsets=committed, **failure, success=error is None)


def _text(content: bytes | None) -> str | None:
    return None if content is None else content.decode("utf-8", "replace")
