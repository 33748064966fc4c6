"""A controller on a real metadata store: its election, the topics it reads from znodes, and the requests it sends."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.controller.config import ControllerConfig
from barnabas.metadata import paths
from barnabas.metadata.client import TreeClient
from barnabas.metadata.embedded import open_embedded
from barnabas.metadata.local import LocalTree
from barnabas.metadata.znodes import cluster, topics
from barnabas.protocol.messages.leader_and_isr_request import LeaderAndIsrRequest
from barnabas.protocol.messages.update_metadata_request import UpdateMetadataRequest
from barnabas.topic_partition import TopicPartition
from tests.unit.controller.cluster import RecordingChannel, World, controlling

T0 = TopicPartition("T", 0)


async def test_the_first_broker_becomes_the_controller_with_epoch_1() -> None:
    async with controlling(0) as world:
        assert world.controller.is_active
        assert (world.controller.controller_id, world.controller.epoch) == (0, 1)
        assert world.data(paths.CONTROLLER) == b'{"version":2,"brokerid":0,"timestamp":"1794773512555","kraftControllerEpoch":-1}'
        assert world.data(paths.CONTROLLER_EPOCH) == b"1"
        assert world.version(paths.CONTROLLER_EPOCH) == 1


async def test_a_new_cluster_gets_the_feature_node_that_kafka_writes() -> None:
    async with controlling(0) as world:
        assert world.data(paths.FEATURE) == b'{"features":{},"version":2,"status":1}'


async def test_a_controller_tells_every_broker_who_lives() -> None:
    async with controlling(0, 1) as world:
        assert world.channel.take() == ["0 UpdateMetadata brokers=0,1", "1 UpdateMetadata brokers=0,1"]


async def test_a_request_carries_the_epochs_of_controller_and_broker() -> None:
    async with controlling(0) as world:
        _, request = world.channel.sent[0]
        assert isinstance(request, UpdateMetadataRequest)
        context = world.controller.context
        assert context is not None
        assert (request.controller_id, request.controller_epoch, request.broker_epoch) == (0, 1, context.live_brokers[0].epoch)
        (endpoint,) = request.live_brokers[0].endpoints
        assert (endpoint.host, endpoint.port, endpoint.listener, endpoint.security_protocol) == ("host0", 9092, "PLAINTEXT", 0)


async def test_a_new_topic_gets_states_in_the_tree_and_its_replicas_hear_of_it() -> None:
    async with controlling(0, 1) as world:
        world.channel.take()
        world.create_topic("T", {0: (0, 1), 1: (1, 0)})
        await world.settle()
        assert world.data(paths.topic_partition_state("T", 0)) == (
            b'{"controller_epoch":1,"leader":0,"version":1,"leader_epoch":0,"isr":[0,1]}'
        )
        assert world.state("T", 1) == topics.PartitionState(1, 0, (1, 0), 1)
        assert world.channel.take() == [
            "0 LeaderAndIsr T-0@0/0 new, T-1@1/0 new",
            "1 LeaderAndIsr T-0@0/0 new, T-1@1/0 new",
            "0 UpdateMetadata brokers=0,1 T-0@0 T-1@1",
            "1 UpdateMetadata brokers=0,1 T-0@0 T-1@1",
        ]


async def test_a_request_names_the_topic_its_id_and_where_the_leader_is() -> None:
    async with controlling(0) as world:
        topic_id = world.create_topic("T", {0: (0,)})
        await world.settle()
        request = next(request for _, request in world.channel.sent if isinstance(request, LeaderAndIsrRequest))
        assert [(topic.topic_name, topic.topic_id) for topic in request.topic_states] == [("T", topic_id)]
        assert [(live_leader.broker_id, live_leader.host_name, live_leader.port) for live_leader in request.live_leaders] == [
            (0, "host0", 9092)
        ]
        state = world.channel.leader_and_isr(0)[T0]
        assert (state.isr, state.replicas, state.partition_epoch, state.controller_epoch) == ([0], [0], 0, 1)


async def test_a_topic_without_an_id_gets_one() -> None:
    async with controlling(0) as world:
        world.set(paths.topic("T"), b'{"version":1,"partitions":{"0":[0]}}')
        await world.settle()
        written = topics.decode_topic("T", world.data(paths.topic("T")))
        assert written.topic_id is not None
        assert written.version == 3
        context = world.controller.context
        assert context is not None
        assert context.topic_ids["T"] == written.topic_id


async def test_added_partitions_get_their_leaders_and_the_others_stay() -> None:
    async with controlling(0, 1) as world:
        world.create_topic("T", {0: (0, 1)})
        await world.settle()
        world.channel.take()
        world.add_partitions("T", {1: (1, 0)})
        await world.settle()
        assert world.state("T", 1) == topics.PartitionState(1, 0, (1, 0), 1)
        assert world.version(paths.topic_partition_state("T", 0)) == 0
        assert world.channel.take()[:2] == ["1 LeaderAndIsr T-1@1/0 new", "0 LeaderAndIsr T-1@1/0 new"]


async def test_a_topic_whose_replicas_are_all_down_is_led_once_one_is_up() -> None:
    async with controlling(0) as world:
        world.create_topic("T", {0: (5,)})
        await world.settle()
        assert not world.exists(paths.topic_partition_state("T", 0))
        world.register_broker(5)
        await world.settle()
        assert world.state("T", 0) == topics.PartitionState(5, 0, (5,), 1)
        assert world.channel.leader_and_isr(5)[T0].is_new


async def test_after_a_restart_all_is_loaded_and_nothing_is_new(tmp_path: Path) -> None:
    path = str(tmp_path / "tree.db")
    async with controlling(0, tree=open_embedded(path, lambda: 0)) as world:
        world.create_topic("T", {0: (0,), 1: (0,)})
        world.create_topic("U", {0: (0,)})
        await world.settle()
        world.tree.close_now()
    async with controlling(0, tree=open_embedded(path, lambda: 0)) as world:
        assert world.controller.epoch == 2
        assert world.channel.take() == [
            "0 UpdateMetadata brokers=0",
            "0 LeaderAndIsr T-0@0/0, T-1@0/0, U-0@0/0",
            "0 UpdateMetadata brokers=0 T-0@0 T-1@0 U-0@0",
        ]
        assert world.state("T", 0).controller_epoch == 1  # nobody had to be elected, so nothing was written
        world.tree.close_now()


async def test_a_topic_created_while_there_was_no_controller_is_new_to_the_next() -> None:
    async with controlling(0, before=lambda world: world.create_topic("T", {0: (0,)})) as world:
        assert world.state("T", 0).leader == 0
        assert world.channel.leader_and_isr(0)[T0].is_new


async def test_two_topics_with_one_id_do_not_stop_the_others() -> None:
    def prepare(world: World) -> None:
        topic_id = world.create_topic("A", {0: (0,)})
        twin = topics.TopicAssignment({0: topics.ReplicaAssignment((0,))}, topic_id)
        world.set(paths.topic("B"), topics.encode_topic(twin))
        world.create_topic("C", {0: (0,)})

    async with controlling(0, before=prepare) as world:
        assert world.controller.is_active
        assert world.exists(paths.topic_partition_state("A", 0))
        assert world.exists(paths.topic_partition_state("C", 0))


async def test_a_topic_node_that_is_no_json_does_not_stop_the_others() -> None:
    def prepare(world: World) -> None:
        world.set(paths.topic("A"), b"\x00not json")
        world.create_topic("B", {0: (0,)})

    async with controlling(0, before=prepare) as world:
        assert world.exists(paths.topic_partition_state("B", 0))


async def test_a_topic_node_that_is_repaired_is_taken_up() -> None:
    async with controlling(0, before=lambda world: world.set(paths.topic("A"), b"{}}")) as world:
        world.set(paths.topic("A"), b'{"version":1,"partitions":{"0":[0]}}')
        await world.settle()
        assert world.state("A", 0).leader == 0
        context = world.controller.context
        assert context is not None
        assert "A" in context.topic_ids


async def test_a_failover_that_fails_gives_the_controller_node_up_for_the_next_try() -> None:
    async with controlling(0) as world:
        world.channel.failures = 1
        world.delete(paths.CONTROLLER)
        await world.until(lambda: world.controller.epoch == 3)
        await world.settle()
        assert world.controller.is_active
        assert world.channel.take()[-1] == "0 UpdateMetadata brokers=0"


async def test_an_isr_change_is_read_told_and_its_notification_deleted() -> None:
    async with controlling(0, 1) as world:
        world.create_topic("T", {0: (0, 1)})
        await world.settle()
        world.channel.take()
        world.set(paths.topic_partition_state("T", 0), topics.encode_partition_state(topics.PartitionState(0, 0, (0,), 1)))
        world.set(f"{paths.ISR_CHANGE_NOTIFICATION}/isr_change_0000000000", b'{"version":1,"partitions":[{"topic":"T","partition":0}]}')
        await world.settle()
        assert world.channel.metadata(1)[T0].isr == [0]
        assert world.channel.metadata(1)[T0].zk_version == 1
        assert not world.exists(f"{paths.ISR_CHANGE_NOTIFICATION}/isr_change_0000000000")


async def test_a_second_broker_waits_until_the_controller_is_gone() -> None:
    async with controlling(0, 1) as world:
        client, channel = TreeClient(world.tree, lambda: None), RecordingChannel()
        await client.connect()
        second = world.make_controller(1, client, channel)
        await second.start()
        assert (second.is_active, second.controller_id, second.epoch) == (False, 0, 0)
        assert channel.sent == []
        await world.controller.shutdown()
        await world.client.close()
        await world.settle()
        assert (second.is_active, second.controller_id, second.epoch) == (True, 1, 2)
        assert channel.take() == ["0 UpdateMetadata brokers=0,1", "1 UpdateMetadata brokers=0,1"]
        await second.shutdown()
        await client.close()


async def test_a_controller_whose_epoch_was_overtaken_writes_nothing_more_and_knows_why(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    async with controlling(0) as world:
        world.set(paths.CONTROLLER_EPOCH, b"7")
        world.create_topic("T", {0: (0,)})
        await world.settle()
        assert not world.exists(paths.topic_partitions("T"))
        assert "Controller moved to another broker when processing TopicChange()" in caplog.text


async def test_a_controller_that_finds_another_in_its_place_resigns() -> None:
    async with controlling(0) as world:
        world.set(paths.CONTROLLER_EPOCH, b"7")
        world.set(paths.CONTROLLER, cluster.encode_controller(cluster.ControllerZNode(9, 0)))
        await world.settle()
        assert (world.controller.is_active, world.controller.controller_id) == (False, 9)
        assert world.channel.connected == {}
        world.create_topic("T", {0: (0,)})
        await world.settle()
        assert not world.exists(paths.topic_partitions("T"))


async def test_deleting_the_controller_node_makes_a_new_term_that_tells_everything_again() -> None:
    async with controlling(0) as world:
        world.create_topic("T", {0: (0,)})
        await world.settle()
        world.channel.take()
        world.delete(paths.CONTROLLER)
        await world.settle()
        assert (world.controller.is_active, world.controller.epoch) == (True, 2)
        assert "0 LeaderAndIsr T-0@0/0" in world.channel.take()


async def test_an_expired_session_ends_the_term_and_the_next_session_begins_another() -> None:
    tree = LocalTree(lambda: 0)
    async with controlling(0, tree=tree) as world:
        world.create_topic("T", {0: (0,)})
        await world.settle()
        world.channel.take()
        world.kill_broker(0)
        session = world.client._session
        session.expire()  # type: ignore[union-attr]
        await world.client.reinitialize()
        await world.settle()
        assert (world.controller.is_active, world.controller.epoch) == (True, 2)
        assert world.exists(paths.broker_id(0))
        assert "0 LeaderAndIsr T-0@0/0" in world.channel.take()


async def test_a_session_that_ends_meanwhile_is_no_fault_of_the_event(caplog: pytest.LogCaptureFixture) -> None:
    async with controlling(0) as world:
        await world.settle()
        world.delete(paths.CONTROLLER)  # an event for the controller, which cannot ask anything any more
        world.client._session.expire()  # type: ignore[union-attr]
        await world.settle()
    assert "the next controller processes it" in caplog.text
    assert "Traceback" not in caplog.text


async def test_where_deleting_is_not_allowed_a_mark_is_wiped_away() -> None:
    async with controlling(0, config=ControllerConfig(delete_topic_enable=False)) as world:
        world.create_topic("T", {0: (0,)})
        await world.settle()
        world.mark_for_deletion("T")
        await world.settle()
        assert not world.exists(paths.delete_topic("T"))
        assert world.exists(paths.topic("T"))
