"""Transactional clients behind one face: librdkafka in this process, Java's in one of its own (java/Transactor.java)."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import confluent_kafka

from tests import kafka

PROGRAM = Path(__file__).parent / "java" / "Transactor.java"
WAIT_S = 30
COMMITTED, UNCOMMITTED = "read_committed", "read_uncommitted"


class Refused(Exception):
    """The client was told that it may not go on; the text is its name for that."""


class Producer(Protocol):
    def begin(self) -> None: ...
    def send(self, topic: str, partition: int, value: str) -> None:
        """A record, and waits until it is acknowledged."""

    def send_all(self, topic: str, partitions: int, value: str) -> None:
        """A record to each partition."""

    def send_offset(self, group: str, topic: str, partition: int, offset: int) -> None: ...
    def commit(self) -> None: ...
    def abort(self) -> None: ...
    def leave(self) -> None:
        """Ends it as a crash does: what is open stays open."""


class Client(Protocol):
    def producer(self, transactional_id: str, timeout_ms: int = 60_000) -> Producer: ...
    def read(self, topic: str, isolation: str, partition: int = 0) -> list[str]:
        """What such a reader is given of a partition, up to its end for this reader."""

    def committed(self, group: str, topic: str, partition: int = 0) -> int | None: ...


class ConfluentClient:
    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap

    def producer(self, transactional_id: str, timeout_ms: int = 60_000) -> Producer:
        return ConfluentProducer(self._bootstrap, transactional_id, timeout_ms)

    def read(self, topic: str, isolation: str, partition: int = 0) -> list[str]:
        consumer = self._consumer("nobody", {"isolation.level": isolation, "enable.partition.eof": True})
        try:
            consumer.assign([confluent_kafka.TopicPartition(topic, partition, confluent_kafka.OFFSET_BEGINNING)])
            values: list[str] = []
            while (message := consumer.poll(WAIT_S)) is not None and not message.error():
                values.append((message.value() or b"").decode())
            assert message is not None, f"{topic} does not end within {WAIT_S} s"
            error = message.error()
            assert error is not None and error.code() == confluent_kafka.KafkaError._PARTITION_EOF, error
            return values
        finally:
            consumer.close()

    def committed(self, group: str, topic: str, partition: int = 0) -> int | None:
        consumer = self._consumer(group, {})
        try:
            offset = consumer.committed([confluent_kafka.TopicPartition(topic, partition)], WAIT_S)[0].offset
            return None if offset < 0 else offset
        finally:
            consumer.close()

    def _consumer(self, group: str, config: Mapping[str, Any]) -> confluent_kafka.Consumer:
        return confluent_kafka.Consumer({"bootstrap.servers": self._bootstrap, "group.id": group, "enable.auto.commit": False, **config})


class ConfluentProducer:
    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int) -> None:
        self._bootstrap = bootstrap
        config = {"bootstrap.servers": bootstrap, "transactional.id": transactional_id, "transaction.timeout.ms": timeout_ms}
        self._refusal: str | None = None
        self._producer = confluent_kafka.Producer({**config, "linger.ms": 0})
        self._do(lambda: self._producer.init_transactions(WAIT_S))

    def begin(self) -> None:
        self._do(self._producer.begin_transaction)

    def send(self, topic: str, partition: int, value: str) -> None:
        self._do(lambda: self._producer.produce(topic, value.encode(), partition=partition, on_delivery=self._delivered))
        self._flush()

    def send_all(self, topic: str, partitions: int, value: str) -> None:
        for partition in range(partitions):
            self._producer.produce(topic, value.encode(), partition=partition, on_delivery=self._delivered)
        self._flush()

    def send_offset(self, group: str, topic: str, partition: int, offset: int) -> None:
        consumer = confluent_kafka.Consumer({"bootstrap.servers": self._bootstrap, "group.id": group})
        try:
            offsets = [confluent_kafka.TopicPartition(topic, partition, offset)]
            self._do(lambda: self._producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), WAIT_S))
        finally:
            consumer.close()

    def commit(self) -> None:
        self._do(lambda: self._producer.commit_transaction(WAIT_S))

    def abort(self) -> None:
        self._do(lambda: self._producer.abort_transaction(WAIT_S))

    def leave(self) -> None:
        del self._producer

    def _flush(self) -> None:
        self._do(lambda: self._producer.flush(WAIT_S))
        if self._refusal is not None:
            raise Refused(self._refusal)

    def _delivered(self, error: confluent_kafka.KafkaError | None, _message: confluent_kafka.Message) -> None:
        if error is not None:
            self._refusal = error.name()

    def _do(self, action: Any) -> None:
        try:
            action()
        except confluent_kafka.KafkaException as problem:
            raise Refused(problem.args[0].name()) from problem
        except SystemError:  # a fatal error raised amid callbacks, which may be lost on the way; whatever is asked next is told it again
            self._do(self._producer.begin_transaction)
            raise


class JavaClient:
    def __init__(self, bootstrap: str) -> None:
        command = kafka.source_command(kafka.available(kafka.prepare), PROGRAM, bootstrap)
        self._jvm = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8", bufsize=1
        )
        self._count = 0

    def close(self) -> None:
        assert self._jvm.stdin is not None and self._jvm.stdout is not None
        self._jvm.stdin.close()
        self._jvm.kill()
        self._jvm.wait()
        self._jvm.stdout.close()

    def producer(self, transactional_id: str, timeout_ms: int = 60_000) -> Producer:
        self._count += 1
        name = f"producer-{self._count}"
        self.tell("new", name, transactional_id, str(timeout_ms))
        return JavaProducer(self, name)

    def read(self, topic: str, isolation: str, partition: int = 0) -> list[str]:
        return [value for value in self.tell("read", isolation, topic, str(partition)) if value]

    def committed(self, group: str, topic: str, partition: int = 0) -> int | None:
        committed = self.tell("committed", group, topic, str(partition))[0]
        return int(committed) if committed else None

    def tell(self, *words: str) -> list[str]:
        assert self._jvm.stdin is not None and self._jvm.stdout is not None
        self._jvm.stdin.write("\t".join(words) + "\n")
        outcome, *rest = self._jvm.stdout.readline().rstrip("\n").split("\t")
        if outcome != "ok":
            raise Refused(rest[0] if rest else "the JVM has ended")
        return rest


class JavaProducer:
    def __init__(self, client: JavaClient, name: str) -> None:
        self._client = client
        self._name = name

    def begin(self) -> None:
        self._client.tell("begin", self._name)

    def send(self, topic: str, partition: int, value: str) -> None:
        self._client.tell("send", self._name, topic, str(partition), value)

    def send_all(self, topic: str, partitions: int, value: str) -> None:
        self._client.tell("send-all", self._name, topic, str(partitions), value)

    def send_offset(self, group: str, topic: str, partition: int, offset: int) -> None:
        self._client.tell("offsets", self._name, group, topic, str(partition), str(offset))

    def commit(self) -> None:
        self._client.tell("commit", self._name)

    def abort(self) -> None:
        self._client.tell("abort", self._name)

    def leave(self) -> None:
        self._client.tell("close", self._name)
