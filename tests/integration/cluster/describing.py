"""What a cluster says of itself: leaders, in-sync replicas, the controller; and waiting until it says something."""

from __future__ import annotations

import time
from collections.abc import Callable

from confluent_kafka import ElectionType, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, ClusterMetadata
from confluent_kafka.cimpl import NewTopic

from barnabas.coordinator.group.group import partition_for

ANSWER_S = 5  # librdkafka puts a question that a killed broker took with it to the same broker again: better to ask anew soon
PATIENCE_S = 60


class Description:
    def __init__(self, bootstrap: str) -> None:
        self._admin = AdminClient({"bootstrap.servers": bootstrap, "socket.timeout.ms": 10_000, "log_level": 0})

    def create(self, topic: str, partitions: int = 1, replicas: int = 3, **config: str) -> None:
        settings = {key.replace("_", "."): value for key, value in config.items()}
        made = self._admin.create_topics([NewTopic(topic, partitions, replicas, config=settings)], request_timeout=30)
        made[topic].result(timeout=30)

    def is_created(self, topic: str) -> bool:
        """Tries it, or finds that it was done."""
        try:
            self.create(topic)
        except KafkaException as refused:
            return bool(refused.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS)
        return True

    def elect_preferred(self, topic: str, partition: int = 0) -> None:
        """The first of its replicas."""
        self._admin.elect_leaders(ElectionType.PREFERRED, [TopicPartition(topic, partition)]).result(timeout=30)

    def leader(self, topic: str, partition: int = 0) -> int:
        return self._partition(topic, partition)[0]

    def isr(self, topic: str, partition: int = 0) -> set[int]:
        return set(self._partition(topic, partition)[1])

    def coordinator(self, key: str, *, transactions: bool = False) -> int:
        """The broker that leads the partition of a group or a transactional id, which is made if it is not there."""
        topic = "__transaction_state" if transactions else "__consumer_offsets"
        count = len(self._metadata(topic).topics[topic].partitions)
        return self.leader(topic, partition_for(key, count)) if count else -1

    def controller(self) -> int:
        return self._metadata().controller_id

    def _partition(self, topic: str, partition: int) -> tuple[int, list[int]]:
        description = self._metadata(topic).topics[topic].partitions.get(partition)
        return (-1, []) if description is None else (description.leader, description.isrs)

    def _metadata(self, topic: str | None = None) -> ClusterMetadata:
        """Of the topic, or of all. Asked again while no broker answers: the one that was asked may be dead, or the machine busy."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                return self._admin.list_topics(topic, timeout=ANSWER_S)
            except KafkaException as unanswered:
                if not is_silence(unanswered) or time.monotonic() > deadline:
                    raise


def until(is_so: Callable[[], bool], what: str, timeout_s: float = 60) -> None:
    deadline = time.monotonic() + timeout_s
    while not holds(is_so):
        assert time.monotonic() < deadline, f"not within {timeout_s} s: {what}"
        time.sleep(0.05)


def holds(is_so: Callable[[], bool]) -> bool:
    """No answer is no: the broker that was asked may be the one that was killed."""
    try:
        return is_so()
    except KafkaException as unanswered:
        if not is_silence(unanswered):
            raise
        return False


def is_silence(error: KafkaException) -> bool:
    return error.args[0].code() in (KafkaError._TIMED_OUT, KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN)
