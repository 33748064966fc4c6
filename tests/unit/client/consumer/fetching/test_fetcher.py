"""When a consumer fetches, from whom, and what it does with the answers."""

from __future__ import annotations

import asyncio

import pytest

from barnabas.client.cluster import COORDINATOR_IDS, Node
from barnabas.client.consumer.offsets.offset_reset import NONE
from barnabas.client.consumer.offsets.partition_state import FetchState
from barnabas.client.errors import (
    ClusterAuthorization,
    Disconnected,
    IllegalState,
    OffsetOutOfRange,
    SaslAuthentication,
    TopicAuthorization,
    UnsupportedVersion,
)
from barnabas.errors import KafkaError
from barnabas.protocol.errors import ErrorCode
from tests.unit.client.consumer.paper_network import TOPIC, Scene, Sent, asked, data, fetched, partition


def one(**settings: object) -> Scene:
    scene = Scene({0: 1}, **settings)  # type: ignore[arg-type]
    scene.seek(0, 0)
    return scene


def test_a_fetch_carries_the_settings() -> None:
    scene = one(fetch_min_bytes=5, fetch_max_bytes=600, fetch_max_wait_ms=70, client_rack="r", isolation_level="read_committed")
    (sent,) = scene.send()
    request = sent.request
    assert (request.min_bytes, request.max_bytes, request.max_wait_ms, request.rack_id) == (5, 600, 70, "r")
    assert (request.isolation_level, request.replica_id, request.replica_state) == (1, -1, None)
    assert request.topics[0].partitions[0].partition_max_bytes == 1048576
    assert request.topics[0].partitions[0].current_leader_epoch == 0


def test_only_one_fetch_is_under_way_to_a_broker() -> None:
    scene = Scene({0: 1, 1: 2, 2: 1})
    for number in range(3):
        scene.seek(number, 0)
    assert {sent.node_id: asked(sent.request) for sent in scene.send()} == {1: {0: 0, 2: 0}, 2: {1: 0}}
    assert scene.send() == []


def test_the_next_fetch_is_sent_as_soon_as_one_has_come_and_goes_on_behind_it() -> None:
    scene = one()
    (sent,) = scene.send()
    sent.answer(fetched(data(0, 0, 10)))
    (ahead,) = scene.network.take()
    assert asked(ahead.request) == {0: 10}
    ahead.answer(fetched(data(0, 10, 10)))
    assert scene.network.take() == []  # two are enough
    assert scene.poll() == {0: list(range(20))}
    assert asked(scene.send()[0].request) == {0: 20}


def test_nothing_is_asked_of_a_broker_while_a_partition_has_enough() -> None:
    """Otherwise a fetch that waits for the quiet partition would hold up the busy one."""
    scene = Scene({0: 1, 1: 1})
    scene.seek(0, 0)
    scene.seek(1, 0)
    (sent,) = scene.send()
    sent.answer(fetched(data(0, 0, 5), data(1)))
    (ahead,) = scene.network.take()
    ahead.answer(fetched(data(0, 5, 5)))
    assert scene.send() == []
    scene.poll()
    assert len(scene.send()) == 1


def test_no_more_is_fetched_than_fetch_max_bytes_while_it_is_not_read() -> None:
    scene = one(fetch_max_bytes=50)
    (sent,) = scene.send()
    sent.answer(fetched(data(0, 0, 10)))
    assert scene.network.take() == []
    scene.poll()
    assert len(scene.send()) == 1


def test_a_paused_partition_is_not_fetched_and_keeps_what_it_has() -> None:
    scene = one()
    (sent,) = scene.send()
    sent.answer(fetched(data(0, 0, 3)))
    (ahead,) = scene.network.take()
    scene.subscriptions.pause([partition(0)])
    ahead.answer(fetched(data(0, 3, 3)))
    assert scene.poll() == {}
    assert scene.send() == []
    scene.subscriptions.resume([partition(0)])
    assert scene.poll() == {0: [0, 1, 2, 3, 4, 5]}


def test_max_poll_records_are_taken_over_partitions() -> None:
    scene = Scene({0: 1, 1: 1}, max_poll_records=7)
    scene.seek(0, 0)
    scene.seek(1, 0)
    scene.send()[0].answer(fetched(data(0, 0, 5), data(1, 0, 5)))
    assert scene.poll() == {0: [0, 1, 2, 3, 4], 1: [0, 1]}
    assert scene.poll() == {1: [2, 3, 4]}


def test_an_answer_from_before_a_seek_is_dropped() -> None:
    scene = one()
    (sent,) = scene.send()
    scene.seek(0, 50)
    sent.answer(fetched(data(0, 0, 10)))
    assert scene.poll() == {}
    assert asked(scene.send()[0].request) == {0: 50}


def test_an_answer_for_a_partition_that_is_gone_is_dropped() -> None:
    scene = Scene({0: 1, 1: 1})
    scene.seek(0, 0)
    scene.seek(1, 0)
    (sent,) = scene.send()
    scene.subscriptions.assign_from_user([partition(1)])
    sent.answer(fetched(data(0, 0, 1), data(1, 0, 1)))
    assert scene.poll() == {1: [0]}


def test_what_is_buffered_of_a_revoked_partition_is_dropped() -> None:
    scene = Scene({0: 1, 1: 1})
    scene.seek(0, 0)
    scene.seek(1, 0)
    scene.send()[0].answer(fetched(data(0, 0, 1), data(1, 0, 1)))
    scene.subscriptions.assign_from_user([partition(1)])
    scene.send()
    assert len(scene.buffer) == 1
    assert scene.poll() == {1: [0]}
    assert scene.buffer.size_bytes == 0


def test_the_state_of_the_log_is_kept() -> None:
    scene = one()
    scene.send()[0].answer(fetched(data(0, 0, 2, high_watermark=30)))
    scene.poll()
    assert scene.subscriptions.lag(partition(0), read_committed=False) == 28
    assert scene.subscriptions.lead_or_none(partition(0)) == 2


LEADER_ERRORS = [
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.REPLICA_NOT_AVAILABLE,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.OFFSET_NOT_AVAILABLE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.INCONSISTENT_TOPIC_ID,
]


@pytest.mark.parametrize("error", LEADER_ERRORS)
def test_an_error_of_the_leader_asks_for_metadata_and_waits_a_moment(error: ErrorCode) -> None:
    scene = one()
    assert not scene.metadata.update_requested
    scene.send()[0].answer(fetched(data(0, error=error)))
    assert scene.metadata.update_requested
    assert scene.poll() == {}
    assert scene.send() == []
    assert scene.fetcher.retry_in_ms() == 100
    scene.clock.ms += 100
    assert len(scene.send()) == 1


@pytest.mark.parametrize("error", [ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.UNKNOWN_SERVER_ERROR])
def test_an_error_that_passes_is_waited_out(error: ErrorCode) -> None:
    scene = one()
    scene.send()[0].answer(fetched(data(0, error=error)))
    assert not scene.metadata.update_requested
    scene.clock.ms += 100
    assert len(scene.send()) == 1


def test_out_of_range_is_reset_by_the_strategy() -> None:
    scene = one()
    scene.send()[0].answer(fetched(data(0, error=ErrorCode.OFFSET_OUT_OF_RANGE)))
    assert scene.poll() == {}
    assert scene.subscriptions.partitions_needing_reset(scene.clock.ms) == {partition(0)}


def test_out_of_range_without_strategy_is_raised_once_and_after_what_came_before() -> None:
    scene = one(reset=NONE)
    scene.send()[0].answer(fetched(data(0, 0, 2)))
    scene.network.take()[0].answer(fetched(data(0, 2, error=ErrorCode.OFFSET_OUT_OF_RANGE)))
    assert scene.poll() == {0: [0, 1]}
    with pytest.raises(OffsetOutOfRange) as raised:
        scene.poll()
    assert raised.value.offset_out_of_range_partitions == {partition(0): 2}
    assert scene.poll() == {}
    assert len(scene.send()) == 1


def test_a_topic_that_may_not_be_read_is_named() -> None:
    scene = one()
    scene.send()[0].answer(fetched(data(0, error=ErrorCode.TOPIC_AUTHORIZATION_FAILED)))
    with pytest.raises(TopicAuthorization) as raised:
        scene.poll()
    assert raised.value.unauthorized_topics == {TOPIC}


def test_a_corrupt_log_and_unknown_errors_are_raised() -> None:
    scene = one()
    scene.send()[0].answer(fetched(data(0, error=ErrorCode.CORRUPT_MESSAGE)))
    with pytest.raises(KafkaError, match="Encountered corrupt message when fetching offset 0 for topic-partition t-0"):
        scene.poll()
    scene.send()[0].answer(fetched(data(0, error=ErrorCode.INVALID_REQUEST)))
    with pytest.raises(IllegalState, match="Unexpected error code 42 while fetching at offset 0 from topic-partition t-0"):
        scene.poll()


def test_a_lost_connection_starts_the_session_over_after_a_while() -> None:
    scene = one()
    scene.send()[0].answer(fetched(data(0)))
    (sent,) = scene.send()
    assert sent.request.session_epoch == 1
    sent.fail(Disconnected("lost"))
    assert scene.metadata.update_requested
    assert scene.send() == []
    scene.clock.ms += 100
    (again,) = scene.send()
    assert (again.request.session_id, again.request.session_epoch, asked(again.request)) == (9, 0, {0: 0})


def test_a_broker_that_is_not_connected_is_asked_when_it_is() -> None:
    scene = one()
    scene.network.unready.add(1)
    assert scene.send() == []
    scene.network.unready.clear()
    scene.network.on_ready[0](1)
    assert scene.progress == 1
    assert len(scene.send()) == 1


def test_a_broker_that_does_not_believe_who_we_are_is_told_to_the_application() -> None:
    scene = one()
    scene.fetcher.raise_problem()
    scene.network.authentication_errors[1] = SaslAuthentication("no")
    with pytest.raises(SaslAuthentication):
        scene.fetcher.raise_problem()


def test_a_fetch_that_fails_for_good_is_raised_once_and_tried_again_after_a_while() -> None:
    scene = one()
    scene.send()[0].fail(UnsupportedVersion("The node does not support FETCH"))
    with pytest.raises(UnsupportedVersion):
        scene.fetcher.raise_problem()
    scene.fetcher.raise_problem()
    assert scene.send() == []
    scene.clock.ms += 100
    assert len(scene.send()) == 1


def test_a_fetch_that_a_broker_refuses_as_a_whole_is_raised() -> None:
    scene = one()
    scene.send()[0].answer(fetched(error=ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
    with pytest.raises(ClusterAuthorization):
        scene.fetcher.raise_problem()
    assert scene.send() == []


@pytest.mark.parametrize("error", [ErrorCode.REQUEST_TIMED_OUT, ErrorCode.UNKNOWN_SERVER_ERROR])
def test_a_refusal_that_passes_is_waited_out(error: ErrorCode) -> None:
    scene = one()
    scene.send()[0].answer(fetched(error=error))
    scene.fetcher.raise_problem()
    assert scene.send() == []
    scene.clock.ms += 100
    assert len(scene.send()) == 1


def test_a_session_that_the_broker_forgot_is_opened_anew_at_once() -> None:
    scene = one()
    scene.send()[0].answer(fetched(error=ErrorCode.FETCH_SESSION_ID_NOT_FOUND))
    assert scene.send()[0].request.session_epoch == 0


# Follower fetching (KIP-392)


def test_a_replica_that_the_leader_names_is_read_from() -> None:
    scene = one(client_rack="r")
    scene.send()[0].answer(fetched(data(0, preferred=3)))
    (sent,) = scene.send()
    assert sent.node_id == 3
    sent.answer(fetched(data(0, 0, 2)))
    assert scene.poll() == {0: [0, 1]}


def test_the_leader_is_asked_again_after_metadata_max_age() -> None:
    scene = one(metadata_max_age_ms=1000)
    scene.send()[0].answer(fetched(data(0, preferred=3)))
    scene.clock.ms += 1001
    assert scene.send()[0].node_id == 1


def test_a_replica_that_is_gone_is_not_read_from() -> None:
    scene = one()
    scene.send()[0].answer(fetched(data(0, preferred=3)))
    scene.lead({0: 1}, nodes=(1, 2))
    assert scene.send()[0].node_id == 1
    assert scene.metadata.update_requested


def test_out_of_range_at_a_follower_goes_back_to_the_leader() -> None:
    scene = one()
    scene.send()[0].answer(fetched(data(0, preferred=3)))
    scene.send()[0].answer(fetched(data(0, error=ErrorCode.OFFSET_OUT_OF_RANGE)))
    assert scene.poll() == {}
    assert scene.position() == 0
    assert scene.send()[0].node_id == 1


def test_a_follower_that_cannot_be_reached_goes_back_to_the_leader() -> None:
    scene = one()
    scene.send()[0].answer(fetched(data(0, preferred=3)))
    scene.send()[0].fail(Disconnected("lost"))
    scene.clock.ms += 100
    assert scene.send()[0].node_id == 1


# New leaders


def test_a_response_that_names_the_new_leader_needs_no_metadata() -> None:
    """KIP-951."""
    scene = one()
    hint = data(0, error=ErrorCode.NOT_LEADER_OR_FOLLOWER, leader=(4, 7))
    scene.send()[0].answer(fetched(hint, nodes=[Node(4, "node4", 9092)]))
    (sent,) = scene.send()
    assert sent.node_id == 4
    assert sent.request.topics[0].partitions[0].current_leader_epoch == 7


def test_a_named_leader_of_an_older_epoch_is_ignored() -> None:
    scene = one()
    scene.lead({0: 1}, epoch=8)
    scene.offsets.follow_leaders()
    hint = data(0, error=ErrorCode.FENCED_LEADER_EPOCH, leader=(2, 7))
    scene.send()[0].answer(fetched(hint))
    scene.clock.ms += 100
    assert scene.send()[0].node_id == 1


def test_a_new_leader_is_not_read_from_before_the_position_is_validated() -> None:
    scene = one()
    scene.seek(0, 5, epoch=0)
    scene.lead({0: 2}, epoch=1)
    scene.offsets.follow_leaders()
    assert scene.subscriptions.state(partition(0)).fetch_state is FetchState.AWAIT_VALIDATION
    assert scene.send() == []


def test_a_position_without_leader_gets_it_from_metadata() -> None:
    scene = Scene({0: 1})
    scene.subscriptions.seek(partition(0), 3)
    assert [(sent.node_id, asked(sent.request)) for sent in scene.send()] == [(1, {0: 3})]


# Sessions


def test_a_session_says_only_what_changed() -> None:
    scene = Scene({0: 1, 1: 1})
    scene.seek(0, 0)
    scene.seek(1, 0)
    scene.send()[0].answer(fetched(data(0, 0, 1), data(1)))
    (sent,) = scene.network.take()
    assert (sent.request.session_id, sent.request.session_epoch) == (9, 1)
    assert asked(sent.request) == {0: 1}


def test_an_old_broker_is_asked_by_name() -> None:
    scene = one()
    scene.network.version = 11
    (sent,) = scene.send()
    assert sent.request.topics[0].topic == TOPIC


def test_a_topic_id_the_broker_does_not_expect_asks_for_metadata() -> None:
    scene = one()
    scene.send()[0].answer(fetched(error=ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR))
    assert scene.metadata.update_requested


def closing(scene: Scene) -> list[Sent]:
    """What is sent to close the sessions; all of it is answered."""

    async def close() -> list[Sent]:
        task = asyncio.ensure_future(scene.fetcher.close(1000))
        while not (sent := scene.network.take()) and not task.done():
            await asyncio.sleep(0)
        for request in sent:
            request.answer(fetched())
        await task
        return sent

    return asyncio.run(close())


def test_sessions_are_closed() -> None:
    scene = one()
    scene.network.unready.add(COORDINATOR_IDS - 1)
    scene.send()[0].answer(fetched(data(0)))
    (sent,) = closing(scene)
    assert (sent.node_id, sent.request.session_id, sent.request.session_epoch) == (1, 9, -1)


def test_a_session_is_closed_while_a_fetch_is_under_way() -> None:
    scene = one()
    scene.network.unready.add(COORDINATOR_IDS - 1)
    scene.send()[0].answer(fetched(data(0)))
    (waiting,) = scene.send()
    (sent,) = closing(scene)
    assert (sent.node_id, sent.request.session_id, sent.request.session_epoch) == (1, 9, -1)
    waiting.answer(fetched(data(0, 0, 1)))
    assert scene.network.take() == []


def test_closing_does_not_wait_behind_a_fetch_where_the_group_has_a_connection_to_that_broker() -> None:
    scene = one()
    scene.send()[0].answer(fetched(data(0)))
    scene.send()
    (sent,) = closing(scene)
    assert (sent.node_id, sent.request.session_id, sent.request.session_epoch) == (COORDINATOR_IDS - 1, 9, -1)


def test_a_fetch_without_session_leaves_nothing_to_close() -> None:
    scene = one()
    scene.send()
    assert closing(scene) == []


def test_aborted_transactions_are_handed_on() -> None:
    scene = one(isolation_level="read_committed")
    scene.send()[0].answer(fetched(data(0, 0, 3, aborted=[(77, 0)])))
    assert scene.poll() == {0: [0, 1, 2]}  # the batch is of no transaction
