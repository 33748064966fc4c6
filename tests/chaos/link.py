"""One link of a chain, in a process of its own: reads a topic, and writes what it makes of it to the next one, in transactions.

    link.py BOOTSTRAP NAME INPUT OUTPUT SEED

It aborts one transaction in four on purpose. What the client may try again it tries again; by what is fatal it ends with code 1, and
whoever started it starts another. It may be killed at any moment.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException

TRANSACTION_SIZE = 20
POLL_S = 0.2
WAIT_S = 60
ABORTED = 0.25


def main() -> int:
    bootstrap, name, source, target, seed = sys.argv[1:]
    link = Link(bootstrap, name, source, target, random.Random(seed))
    try:
        link.run()
    except KafkaException as problem:
        print(f"{name} ends: {problem}", file=sys.stderr)
        return 1
    return 0


class Link:
    def __init__(self, bootstrap: str, name: str, source: str, target: str, chance: random.Random) -> None:
        self._name = name
        self._source = source
        self._target = target
        self._chance = chance
        # A client that has lost all its brokers, here the one, forgets them by default, and with them a request that it still waits for.
        common = {"bootstrap.servers": bootstrap, "metadata.recovery.strategy": "none", "reconnect.backoff.max.ms": 500}
        self._consumer = confluent_kafka.Consumer(
            {
                **common,
                "group.id": name,
                "group.instance.id": name,  # so that its successor need not wait until it is missed
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        self._producer = confluent_kafka.Producer({**common, "transactional.id": name, "transaction.timeout.ms": 20_000})

    def run(self) -> None:
        self._consumer.subscribe([self._source])
        self._patiently(lambda: self._producer.init_transactions(WAIT_S))
        while True:
            read = [message for message in self._consumer.consume(TRANSACTION_SIZE, POLL_S) if not message.error()]
            if read:
                self._pass_on(read)

    def _pass_on(self, read: list[confluent_kafka.Message]) -> None:
        self._producer.begin_transaction()
        try:
            for message in read:
                self._producer.produce(self._target, message.value(), partition=message.partition() or 0)
            positions = self._consumer.position(self._consumer.assignment())
            group = self._consumer.consumer_group_metadata()
            self._patiently(lambda: self._producer.send_offsets_to_transaction(positions, group, WAIT_S))
            if self._chance.random() < ABORTED:
                self._producer.flush(WAIT_S)  # or it would be dropped here and never be aborted there
                self._go_back()
            else:
                self._patiently(lambda: self._producer.commit_transaction(WAIT_S))
        except KafkaException as problem:
            if not problem.args[0].txn_requires_abort():
                raise
            self._go_back()

    def _go_back(self) -> None:
        """Aborts, and reads again from what was committed last."""
        self._patiently(lambda: self._producer.abort_transaction(WAIT_S))
        for place in self._committed():
            place.offset = place.offset if place.offset >= 0 else confluent_kafka.OFFSET_BEGINNING
            self._consumer.seek(place)

    def _committed(self) -> list[confluent_kafka.TopicPartition]:
        offsets: list[confluent_kafka.TopicPartition] = []

        def ask() -> None:
            offsets[:] = self._consumer.committed(self._consumer.assignment(), WAIT_S)

        self._patiently(ask)
        return offsets

    def _patiently(self, action: Callable[[], object]) -> None:
        """Does it again as long as the client says that this may help."""
        while True:
            try:
                action()
            except KafkaException as problem:
                error: KafkaError = problem.args[0]
                if not error.retriable() or error.fatal():
                    raise
            else:
                return


if __name__ == "__main__":
    sys.exit(main())
