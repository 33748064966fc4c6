from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.broker.config import BrokerConfig
from barnabas.broker.partitions.fetch_params import ClientMetadata
from barnabas.broker.replication.replica_selector import RACK_AWARE, RackAwareReplicaSelector, ReplicaView, load_selector
from barnabas.config_def import InvalidConfig
from barnabas.protocol.errors import ErrorCode
from tests.unit.broker.replicas import TP, Replicas

LEADER = ReplicaView(1, "a", 100, 0)
BEHIND = ReplicaView(2, "b", 90, 0)
AHEAD = ReplicaView(3, "b", 95, 50)
SELECTOR = RackAwareReplicaSelector()


def client(rack: str) -> ClientMetadata:
    return ClientMetadata(rack, "client", "127.0.0.1", "PLAINTEXT")


def chosen(rack: str, *others: ReplicaView) -> int:
    found = SELECTOR.select(TP, client(rack), LEADER, [LEADER, *others])
    assert found is not None
    return found.broker_id


# -- the rack-aware selector


def test_a_client_that_names_no_rack_reads_from_the_leader() -> None:
    assert chosen("", BEHIND, AHEAD) == 1


def test_a_client_in_a_rack_without_replicas_reads_from_the_leader() -> None:
    assert chosen("z", BEHIND, AHEAD) == 1


def test_a_client_in_the_leaders_rack_reads_from_the_leader() -> None:
    assert chosen("a", BEHIND._replace(rack="a", log_end_offset=100)) == 1


def test_a_client_reads_from_the_replica_in_its_rack_that_has_come_furthest() -> None:
    assert chosen("b", BEHIND, AHEAD) == 3


def test_of_two_that_are_as_far_the_one_that_was_caught_up_last_is_taken() -> None:
    assert chosen("b", BEHIND, AHEAD._replace(log_end_offset=90)) == 2


# -- on the way of a fetch


@pytest.fixture
def replicas(tmp_path: Path) -> Iterator[Replicas]:
    """Broker 1 leads; 2 has followed up to offset 2 and is in sync, 3 has not been heard of."""
    replicas = Replicas(tmp_path, settings={"replica.selector.class": RACK_AWARE})
    replicas.lead(replicas=(1, 2, 3))
    replicas.append(4, acks=1)
    replicas.follow(2, 2)
    yield replicas
    replicas.close()


def test_a_consumer_is_sent_to_the_replica_in_its_rack_without_records(replicas: Replicas) -> None:
    result = replicas.fetch(1, client_metadata=client("rack2")).result
    assert (result.error, result.preferred_read_replica, result.size) == (ErrorCode.NONE, 2, 0)


def test_a_consumer_is_not_sent_where_its_offset_is_not_yet(replicas: Replicas) -> None:
    assert replicas.fetch(3, client_metadata=client("rack2")).result.preferred_read_replica == -1


def test_a_consumer_is_not_sent_to_a_replica_that_is_not_in_sync(replicas: Replicas) -> None:
    replicas.lead(replicas=(1, 2, 3), isr=(1, 3), epoch=1)
    replicas.follow(2, 2)
    assert replicas.fetch(1, client_metadata=client("rack2")).result.preferred_read_replica == -1


def test_a_consumer_that_cannot_be_sent_elsewhere_reads_from_the_leader(replicas: Replicas) -> None:
    assert replicas.fetch(0).result.preferred_read_replica == -1


def test_who_is_sent_elsewhere_needs_the_leaders_epoch_too(replicas: Replicas) -> None:
    replicas.lead(replicas=(1, 2, 3), epoch=5)
    replicas.follow(2, 2)
    result = replicas.fetch(1, client_metadata=client("rack2"), wanted={"current_leader_epoch": 4}).result
    assert result.error == ErrorCode.FENCED_LEADER_EPOCH


def test_without_a_selector_everybody_reads_from_the_leader(tmp_path: Path) -> None:
    replicas = Replicas(tmp_path)
    replicas.lead(replicas=(1, 2))
    replicas.append(4, acks=1)
    replicas.follow(2, 2)
    assert replicas.fetch(1, client_metadata=client("rack2")).result.preferred_read_replica == -1
    replicas.close()


def test_a_selector_that_does_not_exist_stops_the_start() -> None:
    with pytest.raises(InvalidConfig, match=r"replica\.selector\.class"):
        load_selector(BrokerConfig({"replica.selector.class": "no.such.Selector"}))
