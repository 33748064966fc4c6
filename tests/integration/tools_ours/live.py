"""Commands about groups that have members and transactions that are open: both tools look at the same ones."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from barnabas.client.consumer.consumer import Consumer
from barnabas.client.producer.producer import Producer
from tests.integration.tools_ours.commands import Command, run

TOPIC = "live"
TRANSACTIONAL_ID = "open"
JOIN_TIMEOUT_POLLS = 300


def commands(group: str) -> list[Command]:
    return [
        run(f"consumer-groups: {group}: described", f"--describe --group {group}"),
        run(f"consumer-groups: {group}: offsets at length", f"--describe --group {group} --offsets --verbose"),
        run(f"consumer-groups: {group}: members", f"--describe --group {group} --members"),
        run(f"consumer-groups: {group}: members at length", f"--describe --group {group} --members --verbose"),
        run(f"consumer-groups: {group}: state", f"--describe --group {group} --state"),
        run(f"consumer-groups: {group}: state at length", f"--describe --group {group} --state --verbose"),
        run(f"consumer-groups: {group}: reset while it runs", f"--reset-offsets --group {group} --topic {TOPIC} --to-latest --dry-run"),
        run(f"consumer-groups: {group}: deleted while it runs", f"--delete --group {group}"),
        run(f"consumer-groups: {group}: offsets deleted while it runs", f"--delete-offsets --group {group} --topic {TOPIC}"),
    ]


LISTINGS = [
    run("consumer-groups: all listed", "--list", any_order=True),
    run("consumer-groups: all listed with states", "--list --state", any_order=True),
    run("consumer-groups: all listed with types and states", "--list --type --state", any_order=True),
    run("consumer-groups: those that are stable", "--list --state stable", any_order=True),
    run("consumer-groups: those of the new protocol", "--list --type consumer", any_order=True),
    run("groups: all", "--list", any_order=True),
    run("groups: of consumers", "--list --consumer", any_order=True),
    run("groups: of a type", "--list --group-type classic --protocol consumer", any_order=True),
    run("transactions: listed", f"list --transactional-id-pattern {TRANSACTIONAL_ID}"),
    run("transactions: an open one described", f"describe --transactional-id {TRANSACTIONAL_ID}"),
    run("transactions: its producer", f"describe-producers --topic {TOPIC} --partition 0"),
    run("transactions: not yet hanging", f"find-hanging --topic {TOPIC}"),
    run("transactions: hanging at once", f"find-hanging --topic {TOPIC} --max-transaction-timeout -1"),
]
# The partitions of the internal topics are Java's hash codes of "old" and "open", modulo 50.
_READ = "--offset earliest --max-messages 3 --timeout-ms 6000 --formatter org.apache.kafka.tools.consumer."
LISTINGS += [
    run("console-consumer: offsets that were committed", f"--topic __consumer_offsets --partition 19 {_READ}OffsetsMessageFormatter"),
    run("console-consumer: the metadata of a group", f"--topic __consumer_offsets --partition 19 {_READ}GroupMetadataMessageFormatter"),
    run("console-consumer: transactions", f"--topic __transaction_state --partition 24 {_READ}TransactionLogMessageFormatter"),
]
GROUPS = {"old": "classic", "new": "consumer"}
COMMANDS = [command for group in GROUPS for command in commands(group)] + LISTINGS


@contextmanager
def running(bootstrap: str) -> Generator[None, None, None]:
    """A topic with an open transaction, and a group of each protocol with one member that has read it."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": TRANSACTIONAL_ID})
    consumers: list[Consumer[Any, Any]] = []
    try:
        producer.init_transactions()
        with producer.transaction():
            for number in range(10):
                producer.send(TOPIC, b"%d" % number, partition=0)
        for group, protocol in GROUPS.items():
            consumers.append(_member(bootstrap, group, protocol))
        producer.begin_transaction()
        producer.send(TOPIC, b"undecided", partition=0).result(30)
        yield
    finally:
        for consumer in consumers:
            consumer.close()
        producer.abort_transaction()
        producer.close()


def _member(bootstrap: str, group: str, protocol: str) -> Consumer[Any, Any]:
    settings = {"bootstrap.servers": bootstrap, "group.id": group, "group.protocol": protocol, "client.id": f"client-of-{group}"}
    consumer: Consumer[Any, Any] = Consumer(settings | {"auto.offset.reset": "earliest", "enable.auto.commit": "false"})
    consumer.subscribe([TOPIC])
    for _ in range(JOIN_TIMEOUT_POLLS):
        if len(consumer.poll(0.1)):
            consumer.commit_sync()
            return consumer
    raise AssertionError(f"{group} got no records")
