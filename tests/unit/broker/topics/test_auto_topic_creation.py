from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from barnabas.broker.config import BrokerConfig, DynamicBrokerConfig
from barnabas.broker.server.server import BrokerServer
from barnabas.broker.topics import auto_topic_creation
from barnabas.broker.topics.admin_manager import TopicCreation
from barnabas.broker.topics.auto_topic_creation import FAILURE_SHOWN_MS, AutoTopicCreation, creatable_topic
from barnabas.errors import KafkaError, NotController, PolicyViolation, RequestTimedOut, TopicExists
from barnabas.metadata.errors import ConnectionLoss, TreeError
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.create_topics_request import CreatableTopic
from barnabas.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from barnabas.protocol.messages.metadata_response import MetadataResponse, MetadataResponseTopic
from tests.unit.broker.handlers.asking import ask

LEADER_NOT_AVAILABLE = ErrorCode.LEADER_NOT_AVAILABLE
UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class Admin:
    """Stands for the AdminManager: notes what it is asked for, and lets a test decide when and how that ends."""

    def __init__(self, error: KafkaError | TreeError | None = None, outcome: KafkaError | None = None) -> None:
        self.calls: list[list[str]] = []
        self.timeouts_ms: list[int] = []
        self.may_end = asyncio.Event()
        self._error = error
        self._outcome = outcome

    async def create_topics(self, topics: Sequence[CreatableTopic], timeout_ms: int) -> list[TopicCreation]:
        self.calls.append([topic.name for topic in topics])
        self.timeouts_ms.append(timeout_ms)
        await self.may_end.wait()
        if self._error is not None:
            raise self._error
        return [TopicCreation(topic.name, self._outcome) for topic in topics]


def config(**settings: str) -> BrokerConfig:
    return BrokerConfig({"broker.id": "0", "log.dirs": "/data", **{name.replace("_", "."): value for name, value in settings.items()}})


def creating(
    scenario: Callable[[AutoTopicCreation, Admin], Awaitable[None]],
    error: KafkaError | TreeError | None = None,
    outcome: KafkaError | None = None,
    topic_count: Callable[[], int] = lambda: 0,
    now_ms: Callable[[], int] = lambda: 0,
    **settings: str,
) -> None:
    async def run() -> None:
        admin = Admin(error, outcome)
        broker_config = DynamicBrokerConfig(config(request_timeout_ms="1234", **settings))
        await scenario(AutoTopicCreation(broker_config, admin, topic_count, now_ms), admin)

    asyncio.run(run())


async def finished(creation: AutoTopicCreation, admin: Admin) -> None:
    admin.may_end.set()
    await asyncio.wait_for(creation.settled(), 60)


def told(topics: list[MetadataResponseTopic]) -> list[tuple[str | None, int]]:
    return [(topic.name, topic.error_code) for topic in topics]


def test_topics_are_created_together_and_have_no_leader_meanwhile() -> None:
    async def scenario(creation: AutoTopicCreation, admin: Admin) -> None:
        assert told(creation.create_topics(["a", "b"])) == [("a", LEADER_NOT_AVAILABLE), ("b", LEADER_NOT_AVAILABLE)]
        await finished(creation, admin)
        assert (admin.calls, admin.timeouts_ms) == ([["a", "b"]], [1234])

    creating(scenario)


def test_why_a_topic_cannot_be_created_is_told_to_the_next_who_ask() -> None:
    times = [0]

    async def scenario(creation: AutoTopicCreation, admin: Admin) -> None:
        assert told(creation.create_topics(["a"])) == [("a", LEADER_NOT_AVAILABLE)]
        await finished(creation, admin)
        assert told(creation.create_topics(["a", "b"])) == [("a", PolicyViolation.code), ("b", LEADER_NOT_AVAILABLE)]
        await finished(creation, admin)
        times[0] = FAILURE_SHOWN_MS
        assert told(creation.create_topics(["a"])) == [("a", LEADER_NOT_AVAILABLE)], "that was long ago"
        await finished(creation, admin)

    creating(scenario, outcome=PolicyViolation("no"), now_ms=lambda: times[0])


@pytest.mark.parametrize("outcome", [RequestTimedOut(), TopicExists()])
def test_a_topic_that_will_soon_be_there_is_not_refused(outcome: KafkaError) -> None:
    async def scenario(creation: AutoTopicCreation, admin: Admin) -> None:
        for _ in range(2):
            assert told(creation.create_topics(["a"])) == [("a", LEADER_NOT_AVAILABLE)]
            await finished(creation, admin)

    creating(scenario, outcome=outcome)


def test_the_failures_that_are_kept_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auto_topic_creation, "IN_FLIGHT_MAX", 2)

    async def scenario(creation: AutoTopicCreation, admin: Admin) -> None:
        for name in ("a", "b", "c", "a", "c"):
            expected = PolicyViolation.code if name == "c" and len(admin.calls) > 3 else LEADER_NOT_AVAILABLE
            assert told(creation.create_topics([name])) == [(name, expected)]
            await finished(creation, admin)

    creating(scenario, outcome=PolicyViolation("no"))


def test_names_that_no_topic_can_have_are_refused_first() -> None:
    async def scenario(creation: AutoTopicCreation, admin: Admin) -> None:
        assert told(creation.create_topics(["a", "b c", ".."])) == [("b c", 17), ("..", 17), ("a", LEADER_NOT_AVAILABLE)]
        assert told(creation.create_topics(["b c"])) == [("b c", ErrorCode.INVALID_TOPIC_EXCEPTION)]
        await finished(creation, admin)
        assert admin.calls == [["a"]]

    creating(scenario)


def test_a_topic_is_created_once_however_many_ask_for_it() -> None:
    async def scenario(creation: AutoTopicCreation, admin: Admin) -> None:
        creation.create_topics(["a"])
        assert told(creation.create_topics(["a", "b"])) == [("a", LEADER_NOT_AVAILABLE), ("b", LEADER_NOT_AVAILABLE)]
        await finished(creation, admin)
        assert admin.calls == [["a"], ["b"]]

    creating(scenario)


@pytest.mark.parametrize(("error", "outcome"), [(None, None), (NotController(), None), (None, PolicyViolation("no"))])
def test_when_a_creation_is_over_well_or_not_the_topic_can_be_asked_for_again(error: KafkaError | None, outcome: KafkaError | None) -> None:
    async def scenario(creation: AutoTopicCreation, admin: Admin) -> None:
        for _ in range(2):
            creation.create_topics(["a"])
            await finished(creation, admin)
        assert admin.calls == [["a"], ["a"]]

    creating(scenario, error, outcome)


def test_failures_are_logged_with_their_reason(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(creation: AutoTopicCreation, admin: Admin) -> None:
        creation.create_topics(["a"])
        await finished(creation, admin)

    creating(scenario, NotController("not here"))
    creating(scenario, outcome=PolicyViolation("no such names"))
    assert "creation of a failed, the first with: NotController('not here')" in caplog.text
    assert "creation of a failed, the first with: PolicyViolation('no such names')" in caplog.text


@pytest.mark.parametrize(
    ("error", "outcome"), [(NotController(), None), (ConnectionLoss("/x"), None), (None, PolicyViolation("no")), (None, RequestTimedOut())]
)
def test_a_failure_is_logged_once_however_often_a_client_asks(
    error: KafkaError | TreeError | None, outcome: KafkaError | None, caplog: pytest.LogCaptureFixture
) -> None:
    times = [0]

    async def scenario(creation: AutoTopicCreation, admin: Admin) -> None:
        for times[0] in (0, 100, 4_000, 8_000, 8_000 + FAILURE_SHOWN_MS):
            told_code = outcome.code if isinstance(outcome, PolicyViolation) and times[0] in (100, 4_000, 8_000) else LEADER_NOT_AVAILABLE
            assert told(creation.create_topics(["a"])) == [("a", told_code)]
            await finished(creation, admin)

    creating(scenario, error, outcome, now_ms=lambda: times[0])
    assert caplog.text.count("creation of a failed") == 2, "and again when it is asked for after a while"


def test_a_log_line_does_not_grow_with_what_clients_ask_for(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")

    async def scenario(creation: AutoTopicCreation, admin: Admin) -> None:
        creation.create_topics([f"t{index}" for index in range(100)])
        await finished(creation, admin)

    creating(scenario)
    assert "Created t0, t1, t2, t3, t4, t5, t6, t7, t8, t9, which clients requested" in caplog.text


def test_there_is_a_bound_on_what_is_being_created(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auto_topic_creation, "IN_FLIGHT_MAX", 2)

    async def scenario(creation: AutoTopicCreation, admin: Admin) -> None:
        assert told(creation.create_topics(["a", "b", "c"])) == [("c", UNKNOWN), ("a", LEADER_NOT_AVAILABLE), ("b", LEADER_NOT_AVAILABLE)]
        await finished(creation, admin)
        creation.create_topics(["c"])
        await finished(creation, admin)
        assert admin.calls == [["a", "b"], ["c"]]

    creating(scenario)


def test_forty_thousand_names_do_not_make_ten_thousand_topics(caplog: pytest.LogCaptureFixture) -> None:
    times = [0]

    async def scenario(creation: AutoTopicCreation, admin: Admin) -> None:
        topics = creation.create_topics([f"t{index}" for index in range(40_000)])
        assert Counter(topic.error_code for topic in topics) == {LEADER_NOT_AVAILABLE: 500, UNKNOWN: 39_500}
        await finished(creation, admin)
        assert [len(call) for call in admin.calls] == [10] * 50
        creation.create_topics([f"u{index}" for index in range(40_000)])
        assert len(admin.calls) == 50
        times[0] = 2_000
        creation.create_topics([f"u{index}" for index in range(40_000)])
        await finished(creation, admin)
        assert [len(call) for call in admin.calls] == [10] * 52

    creating(scenario, now_ms=lambda: times[0])
    assert caplog.text.count("Clients request more new topics than barnabas.auto.create.topics.burst") == 1


def test_topics_with_many_partitions_are_created_in_requests_that_are_not_too_large() -> None:
    async def scenario(creation: AutoTopicCreation, admin: Admin) -> None:
        creation.create_topics(["a", "b", "c"])
        await finished(creation, admin)
        assert admin.calls == [["a", "b"], ["c"]]

    creating(scenario, num_partitions="5000")


def test_with_many_topics_in_the_cluster_only_internal_ones_are_created(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(creation: AutoTopicCreation, admin: Admin) -> None:
        expected = [("b", UNKNOWN), ("a", LEADER_NOT_AVAILABLE), ("__consumer_offsets", LEADER_NOT_AVAILABLE)]
        assert told(creation.create_topics(["a", "b", "__consumer_offsets"])) == expected
        await finished(creation, admin)
        assert admin.calls == [["a", "__consumer_offsets"]]

    creating(scenario, topic_count=lambda: 9, barnabas_auto_create_topics_max="10")
    assert "than barnabas.auto.create.topics.max allow" in caplog.text


def test_closing_gives_up_what_is_under_way() -> None:
    async def scenario(creation: AutoTopicCreation, admin: Admin) -> None:
        creation.create_topics(["a"])
        await asyncio.wait_for(creation.close(), 60)

    creating(scenario)


def test_a_topic_gets_the_defaults_of_the_broker() -> None:
    assert creatable_topic("t", config(num_partitions="4", default_replication_factor="2")) == CreatableTopic("t", 4, 2)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("__consumer_offsets", {"cleanup.policy": "compact", "compression.type": "producer", "segment.bytes": "104857600"}),
        (
            "__transaction_state",
            {
                "unclean.leader.election.enable": "false",
                "compression.type": "uncompressed",
                "cleanup.policy": "compact",
                "min.insync.replicas": "2",
                "segment.bytes": "104857600",
            },
        ),
        (
            "__share_group_state",
            {
                "cleanup.policy": "delete",
                "compression.type": "producer",
                "segment.bytes": "104857600",
                "min.insync.replicas": "2",
                "retention.ms": "-1",
            },
        ),
    ],
)
def test_internal_topics_get_settings_of_their_own(name: str, settings: dict[str, str]) -> None:
    topic = creatable_topic(name, config(num_partitions="4"))
    assert (topic.num_partitions, topic.replication_factor) == (50, 3)
    assert {config.name: config.value for config in topic.configs} == settings


def test_internal_topics_are_marked_when_they_are_told() -> None:
    async def scenario(creation: AutoTopicCreation, admin: Admin) -> None:
        assert [topic.is_internal for topic in creation.create_topics(["__consumer_offsets", "a"])] == [True, False]
        await finished(creation, admin)

    creating(scenario)


def test_on_a_real_broker_a_topic_is_there_soon_after_its_metadata_was_asked_for(tmp_path: Path) -> None:
    async def scenario() -> MetadataResponseTopic:
        properties = {"log.dirs": str(tmp_path), "listeners": "PLAINTEXT://127.0.0.1:0", "num.partitions": "3", "broker.id": "0"}
        server = BrokerServer(BrokerConfig.from_properties(properties))
        await server.start()
        try:
            request = MetadataRequest([MetadataRequestTopic(name="new")])
            first = await ask(server.broker, request, MetadataResponse, 12)
            assert told(first.topics) == [("new", LEADER_NOT_AVAILABLE)]
            await asyncio.wait_for(server.broker.topic_creation.settled(), 10)
            return (await ask(server.broker, request, MetadataResponse, 12)).topics[0]
        finally:
            await server.shutdown()

    topic = asyncio.run(scenario())
    assert (topic.error_code, [partition.leader_id for partition in topic.partitions]) == (0, [0, 0, 0])
