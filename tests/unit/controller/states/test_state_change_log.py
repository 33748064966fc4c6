"""The state-change log of the controller, and the log of topic deletion, in Kafka's words."""

from __future__ import annotations

import logging

import pytest

from barnabas.controller.context import LeaderAndIsr, PartitionStatus, ReplicaStatus
from barnabas.loggers import STATE_CHANGE, TRACE
from tests.unit.controller.cluster import controlling

PREFIX = "[Controller id=0 epoch=1] "
DELETION = "barnabas.controller.states.topic_deletion"


def lines(caplog: pytest.LogCaptureFixture, logger: str = STATE_CHANGE) -> list[str]:
    messages = [record.getMessage() for record in caplog.records if record.name == logger]
    caplog.clear()
    return messages


def test_states_have_kafkas_names() -> None:
    assert [str(status) for status in PartitionStatus] == ["NewPartition", "OnlinePartition", "OfflinePartition", "NonExistentPartition"]
    assert [str(status) for status in ReplicaStatus] == [
        "NewReplica",
        "OnlineReplica",
        "OfflineReplica",
        "ReplicaDeletionStarted",
        "ReplicaDeletionSuccessful",
        "ReplicaDeletionIneligible",
        "NonExistentReplica",
    ]


def test_leader_and_isr_are_printed_as_in_kafka() -> None:
    state = LeaderAndIsr(1, (1, 2), 5, 3, 0, 7)
    assert str(state) == (
        "LeaderAndIsr(leader=1, leaderEpoch=5, isrWithBrokerEpoch=List(BrokerState(brokerId=1, brokerEpoch=-1), "
        "BrokerState(brokerId=2, brokerEpoch=-1)), leaderRecoveryState=RECOVERED, partitionEpoch=7)"
    )
    assert state.with_controller_epoch() == ("(Leader:1,ISR:1,2,LeaderRecoveryState:RECOVERED,LeaderEpoch:5,ZkVersion:7,ControllerEpoch:3)")


async def test_every_transition_of_a_new_topic_has_its_states(caplog: pytest.LogCaptureFixture) -> None:
    async with controlling(0, 1) as world:
        caplog.set_level(TRACE, STATE_CHANGE)
        world.create_topic("T", {0: (0, 1)})
        await world.settle()
        log_lines = lines(caplog)
    assert all(line.startswith(PREFIX) for line in log_lines)
    state = str(LeaderAndIsr(0, (0, 1)))
    assert [line.removeprefix(PREFIX) for line in log_lines if "Changed" in line] == [
        "Changed partition T-0 state from NonExistentPartition to NewPartition with assigned replicas 0,1",
        "Changed state of replica 0 for partition T-0 from NonExistentReplica to NewReplica",
        "Changed state of replica 1 for partition T-0 from NonExistentReplica to NewReplica",
        f"Changed partition T-0 from NewPartition to OnlinePartition with state {state}",
        "Changed state of replica 0 for partition T-0 from NewReplica to OnlineReplica",
        "Changed state of replica 1 for partition T-0 from NewReplica to OnlineReplica",
    ]
    assert f"{PREFIX}Sending LeaderAndIsr request to broker 1 with 0 become-leader and 1 become-follower partitions" in log_lines
    (follower,) = [line for line in log_lines if line.startswith(f"{PREFIX}Sending become-follower LeaderAndIsr request ")]
    assert "LeaderAndIsrPartitionState(topicName='T', partitionIndex=0, controllerEpoch=1, leader=0, " in follower
    assert follower.endswith("isNew=true, leaderRecoveryState=0) to broker 1 for partition T-0")
    assert f"{PREFIX}Sending UpdateMetadata request to brokers [0, 1] for 1 partitions" in log_lines


async def test_at_info_only_new_leaders_are_told(caplog: pytest.LogCaptureFixture) -> None:
    async with controlling(0, 1) as world:
        caplog.set_level(logging.INFO, STATE_CHANGE)
        world.create_topic("T", {0: (0, 1)})
        await world.settle()
        assert [line.split()[3:5] for line in lines(caplog) if "Changed" in line] == [["Changed", "partition"]] * 2


async def test_a_broker_that_fails_leaves_the_isr(caplog: pytest.LogCaptureFixture) -> None:
    async with controlling(0, 1) as world:
        world.create_topic("T", {0: (1, 0)})
        await world.settle()
        caplog.set_level(TRACE, STATE_CHANGE)
        world.kill_broker(1)
        await world.settle()
        messages = [line.removeprefix(PREFIX) for line in lines(caplog)]
    assert "Changed partition T-0 state from OnlinePartition to OfflinePartition" in messages
    assert any(
        line.startswith("Changed partition T-0 from OfflinePartition to OnlinePartition with state LeaderAndIsr(leader=0,")
        for line in messages
    )
    (shrunk,) = [line for line in messages if line.startswith("Partition T-0 state changed to ")]
    assert shrunk.startswith("Partition T-0 state changed to (Leader:0,ISR:0,LeaderRecoveryState:RECOVERED,")
    assert shrunk.endswith(" after removing replica 1 from the ISR as part of transition to OfflineReplica")
    assert "Changed state of replica 1 for partition T-0 from OnlineReplica to OfflineReplica" in messages


async def test_a_partition_without_a_live_replica_says_so(caplog: pytest.LogCaptureFixture) -> None:
    async with controlling(0) as world:
        world.create_topic("T", {0: (7,)})
        await world.settle()
        (failed,) = lines(caplog)
    assert failed.startswith(f"{PREFIX}Controller 0 epoch 1 failed to change state for partition T-0 from NewPartition to NewPartition: ")
    assert "assigned replicas are [7], live brokers are [0]. No assigned replica is alive." in failed


async def test_the_deletion_manager_says_what_it_does(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, DELETION)
    async with controlling(0, 1) as world:
        assert lines(caplog, DELETION) == [
            "[Topic Deletion Manager 0] Initializing manager with initial deletions: Set(), initial ineligible deletions: Set()"
        ]
        world.create_topic("T", {0: (0,)})
        world.create_topic("U", {0: (0, 1)})
        await world.settle()
        world.mark_for_deletion("T")
        await world.settle()
        log_lines = lines(caplog, DELETION)
        assert all(line.startswith("[Topic Deletion Manager 0] ") for line in log_lines)
        messages = list(dict.fromkeys(line.removeprefix("[Topic Deletion Manager 0] ") for line in log_lines))
        assert messages == [
            "Handling deletion for topics T",
            "Deletion of topic T (re)started",
            "Deletion successfully completed for replicas [Topic=T,Partition=0,Replica=0]",
            "Deletion of topic T successfully completed",
        ]
        world.kill_broker(1)
        await world.settle()
        world.mark_for_deletion("U")
        await world.settle()
        log_lines = lines(caplog, DELETION)
    assert "[Topic Deletion Manager 0] Dead Replicas ([Topic=U,Partition=0,Replica=1]) found for topic U" in log_lines
    assert "[Topic Deletion Manager 0] Halted deletion of topics U due to offline replicas" in log_lines
