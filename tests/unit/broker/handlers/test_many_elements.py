"""Requests of many elements: a call of a handler gets at most one slice of them, and the response is that of one call."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from barnabas.broker.dispatcher import WAITING_BYTES_MAX
from barnabas.broker.handlers import HANDLERS, Handler
from barnabas.broker.handlers.parts import OffsetFetchParts, Parts
from barnabas.broker.requests.reply import Reply
from barnabas.broker.scheduling.turns import BYTES_AT_ONCE, ELEMENTS_AT_ONCE, ELEMENTS_PER_SLICE
from barnabas.protocol import api_keys
from barnabas.protocol.framing import SIZE_PREFIX, request_frame
from barnabas.protocol.message import Message
from barnabas.protocol.messages.alter_replica_log_dirs_request import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from barnabas.protocol.messages.delete_records_request import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from barnabas.protocol.messages.describe_producers_request import DescribeProducersRequest, TopicRequest
from barnabas.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from barnabas.protocol.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from barnabas.protocol.messages.offset_fetch_request import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from barnabas.protocol.messages.offset_fetch_response import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from barnabas.protocol.messages.offset_for_leader_epoch_request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from barnabas.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.protocol.slices import Records
from tests.unit.broker.handlers.leader import BROKER, DEADLINE_S, OTHER_BROKER, Asked, Leader, batch, with_leader

MANY = 2 * ELEMENTS_AT_ONCE + 10
BATCH = Records(batch())
HOSTED = 3  # of the partitions that are asked for

# Requests for partitions 0 to MANY of the topic, and where in the answer those are told of.
REQUESTS: dict[int, tuple[int, Message, tuple[str, str]]] = {
    api_keys.PRODUCE: (
        9,
        ProduceRequest(
            None,
            1,
            1000,
            [TopicProduceData("foo", partition_data=[PartitionProduceData(index, Records(batch())) for index in range(MANY)])],
        ),
        ("responses", "partition_responses"),
    ),
    api_keys.FETCH: (
        12,
        FetchRequest(max_wait_ms=0, topics=[FetchTopic("foo", partitions=[FetchPartition(index) for index in range(MANY)])]),
        ("responses", "partitions"),
    ),
    api_keys.LIST_OFFSETS: (
        6,
        ListOffsetsRequest(-1, 0, [ListOffsetsTopic("foo", [ListOffsetsPartition(index, timestamp=-1) for index in range(MANY)])]),
        ("topics", "partitions"),
    ),
    api_keys.DELETE_RECORDS: (
        2,
        DeleteRecordsRequest([DeleteRecordsTopic("foo", [DeleteRecordsPartition(index, 0) for index in range(MANY)])], 1000),
        ("topics", "partitions"),
    ),
    api_keys.OFFSET_FOR_LEADER_EPOCH: (
        4,
        OffsetForLeaderEpochRequest(-1, [OffsetForLeaderTopic("foo", [OffsetForLeaderPartition(index, -1, 0) for index in range(MANY)])]),
        ("topics", "partitions"),
    ),
    api_keys.DESCRIBE_PRODUCERS: (0, DescribeProducersRequest([TopicRequest("foo", list(range(MANY)))]), ("topics", "partitions")),
    api_keys.ALTER_REPLICA_LOG_DIRS: (
        2,
        AlterReplicaLogDirsRequest([AlterReplicaLogDir("/none", [AlterReplicaLogDirTopic("foo", list(range(MANY)))])]),
        ("results", "partitions"),
    ),
}


@pytest.mark.parametrize("key", REQUESTS, ids=lambda key: HANDLERS[key])
def test_a_handler_gets_no_more_in_one_call_than_a_slice_has(tmp_path: Path, key: int) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo", HOSTED)
        version, request, lists = REQUESTS[key]
        sizes = _watch(leader, key)
        pending = leader.ask(key, request, version)
        assert pending.is_waiting  # nothing is done in the call that brings it
        response = await pending.answer()
        assert leader.turns.taken > MANY // ELEMENTS_PER_SLICE
        assert max(sizes, default=0) <= ELEMENTS_PER_SLICE
        (topic,) = getattr(response, lists[0])
        partitions = getattr(topic, lists[1])
        assert [_index(partition) for partition in partitions] == list(range(MANY))
        assert [partition.error_code == 0 for partition in partitions[: HOSTED + 1]] == [
            key != api_keys.ALTER_REPLICA_LOG_DIRS
        ] * HOSTED + [False]

    with_leader(tmp_path, test)


def test_a_small_request_is_answered_in_the_call_that_brings_it(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo")
        request = OffsetForLeaderEpochRequest(-1, [OffsetForLeaderTopic("foo", [OffsetForLeaderPartition(0, -1, 0)])])
        assert leader.ask(api_keys.OFFSET_FOR_LEADER_EPOCH, request, 4).is_answered
        assert leader.fetch("foo").is_answered
        assert leader.turns.taken == 0

    with_leader(tmp_path, test)


def test_a_request_of_megabytes_waits_for_its_turn_before_it_is_parsed(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        names = [f"{number}" * 15_000 for number in range(10, 10 + BYTES_AT_ONCE // 30_000 + 1)]
        topics = [OffsetForLeaderTopic(name, [OffsetForLeaderPartition(0, -1, 0)]) for name in names]
        calls = _watch(leader, api_keys.OFFSET_FOR_LEADER_EPOCH)
        pending = leader.ask(api_keys.OFFSET_FOR_LEADER_EPOCH, OffsetForLeaderEpochRequest(-1, topics), 4)
        assert pending.is_waiting  # nothing is done in the call that brings it
        response = await pending.answer()
        assert [topic.topic for topic in response.topics] == names
        assert leader.turns.taken > 0
        assert calls == [len(names)]  # it is not divided

    with_leader(tmp_path, test)


def _ask_long(leader: Leader, key: int, message: Message, version: int, size: int) -> Asked:
    """A request of many elements, of which the connection says that it has so many bytes."""
    pending = Asked(key, version)
    pending.exchange.size = size
    leader.dispatcher.dispatch(pending.exchange, b"".join(request_frame(message, pending.api, version, 7, "client"))[SIZE_PREFIX:])
    return pending


def test_long_requests_that_wait_for_their_turn_are_queued_where_they_hold_many_bytes(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        version, request, _ = REQUESTS[api_keys.OFFSET_FOR_LEADER_EPOCH]
        size = WAITING_BYTES_MAX // 4
        all_pending = [_ask_long(leader, api_keys.OFFSET_FOR_LEADER_EPOCH, request, version, size) for _ in range(6)]
        assert [each.peer.has_left_queue for each in all_pending] == [True] * 4 + [False] * 2
        for pending in all_pending:
            await pending.answer()
        assert all(each.peer.has_left_queue for each in all_pending)
        assert _ask_long(leader, api_keys.OFFSET_FOR_LEADER_EPOCH, request, version, size).peer.has_left_queue

    with_leader(tmp_path, test)


def test_a_queued_long_request_leaves_the_queue_before_it_waits_for_followers(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo", replicas=(BROKER, OTHER_BROKER))
        data = [PartitionProduceData(index, BATCH) for index in range(MANY)]
        request = ProduceRequest(None, -1, 1000, [TopicProduceData("foo", partition_data=data)])
        pending = _ask_long(leader, api_keys.PRODUCE, request, 9, WAITING_BYTES_MAX + 1)
        assert not pending.peer.has_left_queue
        async with asyncio.timeout(DEADLINE_S):
            while leader.log("foo").log_end_offset == 0:
                await asyncio.sleep(0)
        assert pending.is_waiting

    with_leader(tmp_path, test)


def test_a_session_of_many_partitions_is_read_in_slices_however_small_the_request(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo")
        topics = [FetchTopic("foo", partitions=[FetchPartition(index) for index in range(MANY)])]
        request = FetchRequest(max_wait_ms=0, topics=topics, session_epoch=0)
        first = await leader.ask(api_keys.FETCH, request, 12).answer()
        taken = leader.turns.taken
        next_one = FetchRequest(max_wait_ms=0, session_id=first.session_id, session_epoch=1)
        response = await leader.ask(api_keys.FETCH, next_one, 12).answer()
        assert len(response.responses[0].partitions) == MANY - 1  # an error is told each time
        assert leader.turns.taken - taken >= MANY // ELEMENTS_PER_SLICE

    with_leader(tmp_path, test)


def test_a_follower_waits_for_one_slice_of_the_clients_before_each_of_its_own(tmp_path: Path) -> None:
    async def client(leader: Leader) -> None:
        while True:
            await leader.turns.next("client")

    async def test(leader: Leader) -> None:
        leader.create_topic("foo", MANY, hosted=False)
        topics = [FetchTopic("foo", partitions=[FetchPartition(index) for index in range(MANY)])]
        request = FetchRequest(replica_id=OTHER_BROKER, max_wait_ms=0, topics=topics, session_epoch=0)
        first = await leader.ask(api_keys.FETCH, request, 12).answer()
        taken_alone = leader.turns.taken
        clients = [asyncio.ensure_future(client(leader)) for _ in range(100)]
        await leader.turns.next()  # from here on they all wait
        taken = leader.turns.taken
        next_one = FetchRequest(replica_id=OTHER_BROKER, max_wait_ms=0, session_id=first.session_id, session_epoch=1)
        response = await leader.ask(api_keys.FETCH, next_one, 12).answer()
        assert len(response.responses[0].partitions) == MANY
        assert 4 * MANY // ELEMENTS_PER_SLICE <= leader.turns.taken - taken <= 2 * taken_alone
        for each in clients:
            each.cancel()

    with_leader(tmp_path, test)


def test_more_elements_than_any_client_has_a_use_for_close_the_connection(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        request = DescribeProducersRequest([TopicRequest("foo", [0] * 20_001)])
        pending = leader.ask(api_keys.DESCRIBE_PRODUCERS, request, 0)
        await pending.peer.answer.wait()
        assert pending.is_refused

    with_leader(tmp_path, test)


def test_every_handler_of_lists_is_known_to_take_turns() -> None:
    """A new API with a list in its request has to say how it is handled in slices, or why it need not be."""
    in_slices = {key for key in HANDLERS if (handler := Handler(HANDLERS[key])).parts is not None or handler.handle_many is not None}
    take_turns_themselves = {
        api_keys.LIST_OFFSETS,
        api_keys.DESCRIBE_CONFIGS,
        api_keys.ALTER_CONFIGS,
        api_keys.INCREMENTAL_ALTER_CONFIGS,
        api_keys.ALTER_CLIENT_QUOTAS,
        api_keys.CREATE_TOPICS,
        api_keys.CREATE_PARTITIONS,
        api_keys.DESCRIBE_USER_SCRAM_CREDENTIALS,
        api_keys.ALTER_USER_SCRAM_CREDENTIALS,
        api_keys.CREATE_ACLS,
        api_keys.DELETE_ACLS,
    }
    # One pass over the elements, of a microsecond or less each: what they lead to is done by the controller or bounded by what there is.
    are_short = {
        api_keys.JOIN_GROUP,
        api_keys.SYNC_GROUP,
        api_keys.LIST_GROUPS,
        api_keys.LIST_TRANSACTIONS,
        api_keys.DESCRIBE_LOG_DIRS,
        api_keys.ELECT_LEADERS,
        api_keys.ALTER_PARTITION_REASSIGNMENTS,
        api_keys.LIST_PARTITION_REASSIGNMENTS,
        api_keys.LIST_CONFIG_RESOURCES,
        api_keys.UPDATE_FEATURES,
        api_keys.CREATE_DELEGATION_TOKEN,
        api_keys.DESCRIBE_CLIENT_QUOTAS,
        api_keys.DESCRIBE_DELEGATION_TOKEN,
        api_keys.CONSUMER_GROUP_HEARTBEAT,
    }
    without_lists = {
        api_keys.HEARTBEAT,
        api_keys.API_VERSIONS,
        api_keys.SASL_HANDSHAKE,
        api_keys.SASL_AUTHENTICATE,
        api_keys.INIT_PRODUCER_ID,
        api_keys.ADD_OFFSETS_TO_TXN,
        api_keys.END_TXN,
        api_keys.RENEW_DELEGATION_TOKEN,
        api_keys.EXPIRE_DELEGATION_TOKEN,
        api_keys.DESCRIBE_CLUSTER,
        api_keys.UNREGISTER_BROKER,
        api_keys.GET_TELEMETRY_SUBSCRIPTIONS,
        api_keys.PUSH_TELEMETRY,
        api_keys.DESCRIBE_ACLS,
    }
    assert in_slices | take_turns_themselves | are_short | without_lists == set(HANDLERS)


def test_parts_keep_the_order_and_leave_the_original_alone() -> None:
    topics = [OffsetForLeaderTopic(name, [OffsetForLeaderPartition(index) for index in range(3)]) for name in "abc"]
    request = OffsetForLeaderEpochRequest(5, topics)
    parts: list[Any] = list(Parts(("topics", "partitions"), ("topics", "partitions"), 4).of(request))
    assert [[(topic.topic, [partition.partition for partition in topic.partitions]) for topic in part.topics] for part in parts] == [
        [("a", [0, 1, 2])],
        [("b", [0, 1, 2])],
        [("c", [0, 1, 2])],
    ]
    assert all(part.replica_id == 5 for part in parts)
    assert [len(topic.partitions) for topic in topics] == [3, 3, 3]


def test_a_group_whose_offsets_are_all_asked_for_is_one_element() -> None:
    groups = [OffsetFetchRequestGroup(f"g{index}", topics=None) for index in range(3)]
    groups.append(OffsetFetchRequestGroup("big", topics=[OffsetFetchRequestTopics("t", partition_indexes=list(range(1200)))]))
    parts: list[Any] = list(OffsetFetchParts().of(OffsetFetchRequest(groups=groups)))
    assert [[group.group_id for group in part.groups] for part in parts] == [["g0", "g1", "g2"], *[["big"]] * 12]


def test_what_the_answers_say_of_one_group_and_topic_is_said_once() -> None:
    def answer(*indexes: int, error: int = 0) -> OffsetFetchResponse:
        topic = OffsetFetchResponseTopics("t", partitions=[OffsetFetchResponsePartitions(index, index) for index in indexes])
        return OffsetFetchResponse(groups=[OffsetFetchResponseGroup("g", [topic], error)])

    joined = OffsetFetchParts().joined(answer(0, 1))
    joined.add(answer(2))
    joined.add(answer(3, error=16))
    (group,) = joined.whole.groups
    (topic,) = group.topics
    assert ([partition.partition_index for partition in topic.partitions], group.error_code) == ([0, 1, 2, 3], 16)


def _watch(leader: Leader, key: int) -> list[int]:
    """How many elements each call of the handler gets."""
    handler = Handler(HANDLERS[key])
    handle = handler.handle
    sizes: list[int] = []

    def watched(broker: Any, request: Any) -> Reply[Any]:
        sizes.append(sum(1 for _ in _leaves(request.message)))
        return handle(broker, request)

    if handler.parts is not None and handler.handle_many is None:
        handler.handle = watched
        leader.dispatcher._handlers[key] = handler
    return sizes


def _leaves(message: Any) -> Any:
    """The innermost elements of its lists."""
    for name in message.field_names():
        elements = getattr(message, name)
        if isinstance(elements, list):
            for element in elements:
                inner = list(_leaves(element)) if isinstance(element, Message) else []
                yield from inner or [element]


def _index(partition: Any) -> int:
    for name in ("index", "partition_index", "partition"):
        if name in partition.field_names():
            return int(getattr(partition, name))
    raise AssertionError(partition)
