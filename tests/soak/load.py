"""The mixed load of a soak: producers, a group whose members come and go, transactions, and an administrator."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from confluent_kafka.cimpl import NewTopic

TOPIC, PAIRS = "numbers", "pairs"
PARTITIONS = 3
PAUSE_S = 0.005  # of a producer after each record
VALUE_SIZE = 300
MEMBER_S = 15.0  # how long a member of the group stays
ADMIN_PAUSE_S = 1.0
DELIVERY_MS = 120_000
QUIET = {"log_level": 0, "reconnect.backoff.max.ms": 500}


class Worker:
    """Does something again and again on a thread of its own, until it is stopped. An unexpected error ends it and is kept."""

    def __init__(self) -> None:
        self.failures: list[str] = []
        self.rounds = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                self.turn()
                self.rounds += 1
            self.end()
        except Exception as error:
            self.failures.append(f"{type(self).__name__}: {error!r}")

    def turn(self) -> None:
        raise NotImplementedError

    def end(self) -> None:
        """After the last turn."""


class Numbers(Worker):
    """Writes the numbers from 0 on into a partition, with acks of all; notes how long each took to be acknowledged."""

    def __init__(self, bootstrap: str, partition: int, note: Callable[[float], None]) -> None:
        super().__init__()
        self.partition = partition
        self.acknowledged = 0
        self._note = note
        self._numbers = itertools.count()
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "enable.idempotence": "true", "delivery.timeout.ms": DELIVERY_MS, "linger.ms": 2, **QUIET}
        )

    def turn(self) -> None:
        sent = time.monotonic()

        def delivered(error: KafkaError | None, _: Message) -> None:
            if error is not None:
                self.failures.append(str(error))
            else:
                self.acknowledged += 1
                self._note(time.monotonic() - sent)

        value = f"{next(self._numbers)}".encode().ljust(VALUE_SIZE)
        self._producer.produce(TOPIC, value, partition=self.partition, on_delivery=delivered)
        self._producer.poll(PAUSE_S)

    def end(self) -> None:
        self._producer.flush(DELIVERY_MS / 1000)


class Readers(Worker):
    """A group of two members, of which one leaves and another joins every few seconds. Each number must be read, in order, once or more."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__()
        self.next_numbers = dict.fromkeys(range(PARTITIONS), 0)
        self._bootstrap = bootstrap
        self._members = [self._member(), self._member()]
        self._changed = time.monotonic()

    def turn(self) -> None:
        if time.monotonic() > self._changed + MEMBER_S:
            self._members.pop(0).close()
            self._members.append(self._member())
            self._changed = time.monotonic()
        for member in self._members:
            for message in member.consume(500, timeout=0.05):
                if message.error() is None:
                    self._take(message.partition() or 0, int(message.value() or b"-1"))
            with suppress(KafkaException):  # no offset yet, or a rebalance: it is committed by the next
                member.commit(asynchronous=True)

    def end(self) -> None:
        for member in self._members:
            member.close()

    def _member(self) -> Consumer:
        member = Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "group.id": "readers",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": "false",
                **QUIET,
            }
        )
        member.subscribe([TOPIC])
        return member

    def _take(self, partition: int, number: int) -> None:
        expected = self.next_numbers[partition]
        if number > expected:
            self.failures.append(f"partition {partition}: {number} was read, {expected} was not")
        self.next_numbers[partition] = max(expected, number + 1)


class Transactions(Worker):
    """Writes into two partitions in transactions, every fourth of which is aborted."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__()
        self._bootstrap = bootstrap
        self._producer = self._open()

    def turn(self) -> None:
        try:
            self._producer.begin_transaction()
            for partition in range(2):
                self._producer.produce(PAIRS, b"x" * VALUE_SIZE, partition=partition)
            if self.rounds % 4:
                self._producer.commit_transaction(30)
            else:
                self._producer.abort_transaction(30)
        except KafkaException as error:
            if error.args[0].fatal():
                self._producer = self._open()
            elif error.args[0].txn_requires_abort() or not error.args[0].retriable():
                with suppress(KafkaException):
                    self._producer.abort_transaction(30)
        self._stop.wait(0.05)

    def _open(self) -> Producer:
        while True:
            producer = Producer({"bootstrap.servers": self._bootstrap, "transactional.id": "soak", **QUIET})
            with suppress(KafkaException):  # its coordinator is just being restarted
                producer.init_transactions(30)
                return producer


class Administrator(Worker):
    """Creates, changes and deletes topics, and looks at groups and log directories."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__()
        self._admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})

    def turn(self) -> None:
        name = f"short-lived-{self.rounds % 5}"
        resource = ConfigResource(ResourceType.TOPIC, TOPIC, incremental_configs=[self._retention()])
        with suppress(KafkaException):  # a broker is just being restarted, or the last round was not finished
            self._admin.create_topics([NewTopic(name, 3, 2)], request_timeout=20)[name].result(30)
        with suppress(KafkaException):
            self._admin.incremental_alter_configs([resource], request_timeout=20)[resource].result(30)
        with suppress(KafkaException):
            self._admin.list_consumer_groups(request_timeout=20).result(30)
            self._admin.list_topics(timeout=20)
        with suppress(KafkaException):
            self._admin.delete_topics([name], request_timeout=20)[name].result(30)
        self._stop.wait(ADMIN_PAUSE_S)

    def _retention(self) -> ConfigEntry:
        size = 6 + self.rounds % 2
        return ConfigEntry("retention.bytes", str(size << 20), incremental_operation=AlterConfigOpType.SET)
