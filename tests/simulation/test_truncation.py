"""The two histories in which replicas that truncate to their high watermarks lose a record or differ for ever, played by real brokers.

Two replicas of one partition, both of which go down: what each has of the log is compared by epochs when they meet again.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import pytest

from barnabas.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.protocol.slices import Records
from barnabas.records.batch import read_batches
from barnabas.records.builder import build
from barnabas.simulation.checkers import log_bytes, log_of, values_of
from barnabas.simulation.client import SimulatedClient, SimulatedConnection
from barnabas.simulation.cluster import PORT, SimulatedBroker, SimulatedCluster
from barnabas.storage.log.log import Log
from barnabas.topic_partition import TopicPartition

PARTITION = TopicPartition("t", 0)
SEEDS = range(3)
CHECKPOINTED_S = 6.0  # the high watermarks are written to disk more often than that
LIMIT_S = 120.0
ACKS_LEADER, ACKS_ALL = 1, -1


class Two:
    """`leader` and `follower` are what they are in the beginning."""

    def __init__(self, seed: int) -> None:
        self.cluster = SimulatedCluster(seed, 2)
        for broker in self.cluster.brokers.values():
            broker.start()
        self.clients = self.cluster.process("clients")
        admin = SimulatedClient([(broker.host, PORT) for broker in self.cluster.brokers.values()])
        self.clients.run_until_complete(admin.create_topic(PARTITION.topic, 1, 2))
        self.until(lambda: self.cluster.leader_of(PARTITION) is not None and self._is_led(self.cluster.leader_of(PARTITION)))
        self.leader = self.led_by()
        self.follower = next(broker for broker in self.cluster.brokers.values() if broker is not self.leader)
        self.until(lambda: log_of(self.follower, PARTITION) is not None)

    def led_by(self) -> SimulatedBroker:
        leader = self.cluster.leader_of(PARTITION)
        assert leader is not None
        return leader

    def until(self, is_so: Callable[[], bool]) -> None:
        self.cluster.world.run_until(is_so, LIMIT_S)

    def write(self, value: bytes, acks: int) -> None:
        async def produce() -> Any:
            connection = await SimulatedConnection.to(self.led_by().host, PORT)
            data = TopicProduceData(PARTITION.topic, partition_data=[PartitionProduceData(0, Records(build([(0, None, value, ())])))])
            answer = await connection.ask(ProduceRequest(None, acks, 10_000, [data]), 9)
            connection.close()
            return answer

        answer = self.clients.run_until_complete(produce())
        assert answer.responses[0].partition_responses[0].error_code == 0, answer

    def start_alone(self, broker: SimulatedBroker) -> None:
        """Until it leads; when the cluster has forgotten both, so that there is nobody else who could."""
        self.until(lambda: self.cluster.registered == [])
        broker.start_soon()
        self.until(lambda: self._is_led(broker))

    def start_both_agree(self, broker: SimulatedBroker) -> None:
        """Until it has what the other has, and knows that it is committed."""
        broker.start_soon()
        self.until(self._agree)

    def _agree(self) -> bool:
        logs = [log_of(broker, PARTITION) for broker in self.cluster.brokers.values()]
        states = {None if log is None else (log.log_end_offset, log.high_watermark, log_bytes(log)) for log in logs}
        return len(states) == 1 and None not in states and self._is_in_sync()

    def _is_in_sync(self) -> bool:
        state = self.cluster.state_of(PARTITION)
        return state is not None and len(state.isr) == 2

    def _is_led(self, broker: SimulatedBroker | None) -> bool:
        parts = None if broker is None else broker.broker
        hosted = None if parts is None else parts.replica_manager.online.get(PARTITION)
        return hosted is not None and hosted.is_leader

    def log(self, broker: SimulatedBroker) -> Log:
        log = log_of(broker, PARTITION)
        assert log is not None
        return log

    def values(self, broker: SimulatedBroker) -> list[bytes]:
        return [value for _, value in values_of(log_bytes(self.log(broker)))]

    def epochs(self, broker: SimulatedBroker) -> list[int]:
        return [batch.leader_epoch for batch in read_batches(log_bytes(self.log(broker)))]


@pytest.fixture(params=SEEDS)
def two(request: pytest.FixtureRequest) -> Generator[Two, None, None]:
    made = Two(request.param)
    yield made
    made.cluster.world.end()


def test_a_follower_that_comes_back_behind_the_high_watermark_and_leads_has_lost_nothing(two: Two) -> None:
    two.write(b"m1", ACKS_ALL)
    two.cluster.world.run_for(CHECKPOINTED_S)
    two.write(b"m2", ACKS_ALL)
    two.follower.kill()
    two.leader.kill()
    two.start_alone(two.follower)
    assert two.values(two.follower) == [b"m1", b"m2"]
    two.start_both_agree(two.leader)
    for broker in (two.leader, two.follower):
        assert two.values(broker) == [b"m1", b"m2"]
        assert two.log(broker).log_end_offset == two.log(broker).high_watermark == 2
        assert two.epochs(broker) == [0, 0]
    assert (two.log(two.follower).epochs.latest_epoch or 0) > 0  # it has led since


def test_a_leader_that_comes_back_with_what_nobody_else_has_takes_what_was_written_instead(two: Two) -> None:
    two.write(b"m1", ACKS_ALL)
    two.cluster.world.run_for(CHECKPOINTED_S)
    synced = two.follower.files.process_crash()  # what comes after is lost with the power
    two.write(b"m2", ACKS_ALL)
    two.cluster.world.run_for(CHECKPOINTED_S)
    assert two.log(two.leader).high_watermark == 2
    two.follower.kill()
    two.leader.kill()
    two.follower.files = synced
    two.start_alone(two.follower)
    assert two.values(two.follower) == [b"m1"]
    two.write(b"m3", ACKS_LEADER)
    two.start_both_agree(two.leader)
    for broker in (two.leader, two.follower):
        assert two.values(broker) == [b"m1", b"m3"]
        assert two.log(broker).log_end_offset == two.log(broker).high_watermark == 2
        first, second = two.epochs(broker)
        assert first == 0 < second
    assert log_bytes(two.log(two.leader)) == log_bytes(two.log(two.follower))
