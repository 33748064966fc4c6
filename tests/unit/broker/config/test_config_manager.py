from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

from barnabas.broker.config import DynamicBrokerConfig, config_manager
from barnabas.broker.config.alterations.alter import Operation, OpType
from barnabas.broker.config.alterations.config_alterations import Alteration, AlterationOutcome
from barnabas.broker.config.policies import AlterConfigMetadata
from barnabas.broker.scheduling import loop_lag
from barnabas.config_def import ConfigResourceType
from barnabas.errors import PolicyViolation
from barnabas.metadata import paths
from barnabas.metadata.change_listener import CHANGE_EXPIRATION_MS
from barnabas.metadata.tree import Create, CreateMode, SetData, TreeRequest
from barnabas.metadata.znodes.configs import DEFAULT_ENTITY, encode_config, encode_config_change
from barnabas.topic_partition import TopicPartition
from tests.logged import lines_of
from tests.unit.broker.config_broker import ConfigBroker

TURNS_MAX = 1000
PROPERTIES = {"node.id": "1", "listeners": "PLAINTEXT://127.0.0.1:9092", "log.segment.bytes": "5000000"}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[ConfigBroker]:
    with ConfigBroker(tmp_path, PROPERTIES, topics=["orders", "other"]) as started:
        yield started


def set_of(name: str, value: str) -> Operation:
    return Operation(name, OpType.SET, value)


def alter(
    broker: ConfigBroker, kind: ConfigResourceType, name: str, *operations: Operation, validate_only: bool = False
) -> AlterationOutcome:
    (outcome,) = broker.run(broker.manager.alter([Alteration(kind, name, operations)], validate_only))
    assert isinstance(outcome, AlterationOutcome)
    return outcome


async def heard(broker: ConfigBroker) -> None:
    """Until the task that the watch has woken has taken up the change; the tree answers at once, so then it is done with it."""
    for _ in range(TURNS_MAX):
        if not broker.manager._changes._woken.is_set():
            return
        await asyncio.sleep(0)  # one turn of the loop
    raise TimeoutError(f"The change was not taken up in {TURNS_MAX} turns of the loop")


def retention_ms(broker: ConfigBroker, topic: str) -> int:
    config = broker.log_manager.topic_configs.get(topic, broker.log_manager.default_config)
    return config.retention_ms


def changes(broker: ConfigBroker) -> list[str]:
    children = broker.run(broker.client.children(paths.CONFIG_CHANGES))
    names: list[str] = children.names
    return names


# -- topics


def test_a_log_gets_the_config_of_its_topic_when_somebody_changes_it(broker: ConfigBroker) -> None:
    log = broker.log_manager.get_or_create(TopicPartition("orders", 0), broker.clock.now_ms())
    broker.run(broker.admin.change_topic_config("orders", {"retention.ms": "77"}))
    broker.run(heard(broker))
    assert log.config.retention_ms == 77
    assert log.config.segment_bytes == 5_000_000, "the broker's default stands beneath"


def test_what_stood_in_the_tree_before_the_start_is_known_when_logs_are_opened(tmp_path: Path) -> None:
    with ConfigBroker(tmp_path, PROPERTIES, topics=["orders"]) as broker:
        broker.run(broker.manager.close())
        broker.run(broker.admin.change_topic_config("orders", {"retention.ms": "77"}))
        broker.run(broker.start_manager())
        assert broker.log_manager.get_or_create(TopicPartition("orders", 0), broker.clock.now_ms()).config.retention_ms == 77


def test_a_new_topic_has_its_config_once_it_was_loaded(broker: ConfigBroker) -> None:
    broker.run(broker.admin.create_topic("new", {0: (1,)}, {"retention.ms": "5"}))
    broker.run(broker.manager.load_topics(["new"]))
    assert retention_ms(broker, "new") == 5


@pytest.mark.parametrize("forgotten", [False, True])
def test_a_topic_that_came_again_does_not_have_the_config_of_the_one_before_it(broker: ConfigBroker, forgotten: bool) -> None:
    broker.run(broker.admin.create_topic("new", {0: (1,)}, {"retention.ms": "5"}))
    broker.run(broker.manager.load_topics(["new"]))
    broker.run(broker.client.delete(paths.config_entity("topics/new")))
    if forgotten:
        broker.manager.forget_topics(["new"])
    broker.run(broker.manager.load_topics(["new"]))
    assert retention_ms(broker, "new") == 604_800_000


def test_a_topic_that_is_gone_is_forgotten(broker: ConfigBroker) -> None:
    broker.run(broker.admin.change_topic_config("orders", {"retention.ms": "77"}))
    broker.run(heard(broker))
    broker.manager.forget_topics(["orders", "never.seen"])
    assert broker.manager.topic_properties("orders") == {}
    assert "orders" not in broker.log_manager.topic_configs


def test_segments_as_small_as_kafka_3_9_takes_them_are_taken_from_the_tree(broker: ConfigBroker, caplog: pytest.LogCaptureFixture) -> None:
    broker.run(broker.admin.change_topic_config("orders", {"segment.bytes": "100000"}))
    broker.run(broker.admin.change_broker_config(None, {"log.segment.bytes": "200000"}))
    broker.run(heard(broker))
    assert broker.log_manager.topic_configs["orders"].segment_bytes == 100_000
    assert broker.manager.config.current.log_config().segment_bytes == 200_000
    assert "cannot" not in caplog.text


def test_settings_the_tree_holds_wrongly_are_left_out_and_the_others_count(broker: ConfigBroker) -> None:
    config = {"retention.ms": "77", "segment.bytes": "x", "message.format.version": "2.8"}
    broker.run(broker.admin.change_topic_config("orders", config))
    broker.run(heard(broker))
    assert retention_ms(broker, "orders") == 77


def test_settings_that_contradict_each_other_give_way_to_the_defaults(broker: ConfigBroker) -> None:
    config = {"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5", "retention.ms": "77"}
    broker.run(broker.admin.change_topic_config("orders", config))
    broker.run(heard(broker))
    assert retention_ms(broker, "orders") == 604_800_000


def test_a_setting_of_an_older_kafka_is_described_without_its_value(broker: ConfigBroker) -> None:
    broker.run(broker.admin.change_topic_config("orders", {"message.max.size": "2"}))
    (entry,) = broker.run(broker.manager.describe(ConfigResourceType.TOPIC, "orders", ["message.max.size"]))
    assert (entry.value, entry.sensitive) == (None, True)


# -- the broker


def test_who_listens_hears_which_settings_of_the_broker_have_changed(broker: ConfigBroker) -> None:
    heard_of: list[frozenset[str]] = []
    broker.manager.on_broker_change.append(heard_of.append)
    assert alter(broker, ConfigResourceType.BROKER, "1", set_of("max.connections", "5")) == AlterationOutcome()
    assert (
        alter(broker, ConfigResourceType.BROKER, "", set_of("max.connections", "7"), set_of("num.io.threads", "9")) == AlterationOutcome()
    )
    assert heard_of == [{"max.connections"}, {"num.io.threads"}]
    assert broker.config.current["max.connections"] == 5


def test_a_listener_that_fails_does_not_keep_the_others_from_hearing(broker: ConfigBroker) -> None:
    heard_of: list[frozenset[str]] = []

    def failing(changed: frozenset[str]) -> None:
        raise RuntimeError("no")

    broker.manager.on_broker_change += [failing, heard_of.append]
    alter(broker, ConfigResourceType.BROKER, "1", set_of("max.connections", "5"))
    assert heard_of == [{"max.connections"}]


def test_a_default_of_the_broker_reaches_logs_that_do_not_set_it(broker: ConfigBroker) -> None:
    own, other = (broker.log_manager.get_or_create(TopicPartition(topic, 0), broker.clock.now_ms()) for topic in ("orders", "other"))
    alter(broker, ConfigResourceType.TOPIC, "orders", set_of("retention.ms", "77"))
    alter(broker, ConfigResourceType.BROKER, "", set_of("log.retention.ms", "5000"), set_of("log.flush.interval.messages", "9"))
    assert (own.config.retention_ms, own.config.flush_messages) == (77, 9)
    assert (other.config.retention_ms, other.config.flush_messages) == (5000, 9)


def test_dynamic_settings_are_in_force_from_the_start(tmp_path: Path) -> None:
    with ConfigBroker(tmp_path, PROPERTIES) as broker:
        broker.run(broker.manager.close())
        broker.run(broker.admin.change_broker_config(1, {"log.retention.ms": "6"}))
        broker.run(broker.admin.change_broker_config(None, {"max.connections": "7"}))
        broker.run(broker.start_manager())
        assert broker.config.current["max.connections"] == 7
        assert broker.log_manager.default_config.retention_ms == 6


def test_the_settings_of_another_broker_are_not_ours(broker: ConfigBroker) -> None:
    broker.run(broker.admin.change_broker_config(2, {"max.connections": "7"}))
    broker.run(heard(broker))
    assert broker.config.current["max.connections"] == 2**31 - 1


def test_a_password_is_not_stored_in_the_tree(broker: ConfigBroker) -> None:
    outcome = alter(broker, ConfigResourceType.BROKER, "1", set_of("listener.name.plaintext.ssl.key.password", "secret"))
    assert outcome.code == 42
    assert (
        outcome.message == "Invalid config value for resource ConfigResource(type=BROKER, name='1'): Password encoder secret not configured"
    )
    assert broker.run(broker.admin.fetch_config("brokers", "1")) == {}


def test_a_password_that_kafka_has_encrypted_is_left_out_and_stays_where_it_is(broker: ConfigBroker) -> None:
    stored = {"listener.name.plaintext.ssl.key.password": "encrypted", "max.connections": "5"}
    broker.run(broker.admin.change_broker_config(1, stored))
    broker.run(heard(broker))
    assert broker.config.broker == {"max.connections": "5"}
    assert alter(broker, ConfigResourceType.BROKER, "1", set_of("max.connections", "6")) == AlterationOutcome()
    assert broker.run(broker.admin.fetch_config("brokers", "1")) == stored | {"max.connections": "6"}


def test_no_log_line_shows_a_password(broker: ConfigBroker, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        broker.run(broker.admin.change_broker_config(1, {"listener.name.a.ssl.key.password": "hunter2", "some.plugin.password": "hunter3"}))
        broker.run(broker.admin.change_config("users", "alice", {"SCRAM-SHA-256": "hunter4"}))
        broker.run(heard(broker))
    assert "hunter" not in caplog.text


# -- notifications


def test_notifications_of_kafka_0_9_are_understood(broker: ConfigBroker) -> None:
    broker.run(broker.client.set_or_create(paths.config_entity("topics/orders"), encode_config({"retention.ms": "77"})))
    data = b'{"version":1,"entity_type":"topics","entity_name":"orders"}'
    path = f"{paths.CONFIG_CHANGES}/{paths.CONFIG_CHANGE_PREFIX}"
    broker.run(broker.client.create(path, data, CreateMode.PERSISTENT_SEQUENTIAL))
    broker.run(heard(broker))
    assert retention_ms(broker, "orders") == 77


@pytest.mark.parametrize(
    "data", [b"not json", b"{}", b'{"version":3}', b'{"version":2,"entity_path":"colours/red"}', b'{"version":2}', None]
)
def test_a_notification_that_cannot_be_read_does_not_hold_up_those_behind_it(broker: ConfigBroker, data: bytes | None) -> None:
    path = f"{paths.CONFIG_CHANGES}/{paths.CONFIG_CHANGE_PREFIX}"
    broker.run(broker.client.create(path, data, CreateMode.PERSISTENT_SEQUENTIAL))
    broker.run(broker.admin.change_topic_config("orders", {"retention.ms": "77"}))
    broker.run(heard(broker))
    assert retention_ms(broker, "orders") == 77


def test_what_somebody_else_has_put_among_the_notifications_is_left_alone(broker: ConfigBroker) -> None:
    broker.run(broker.client.create(f"{paths.CONFIG_CHANGES}/config_change_of_mine"))
    broker.run(broker.admin.change_topic_config("orders", {"retention.ms": "77"}))
    broker.run(heard(broker))
    assert retention_ms(broker, "orders") == 77
    assert "config_change_of_mine" in changes(broker)


def test_a_change_while_changes_are_processed_is_not_missed(broker: ConfigBroker) -> None:
    async def many() -> None:
        for value in range(1, 50):
            await broker.admin.change_topic_config("orders", {"retention.ms": str(value)})
            if value % 7 == 0:
                await heard(broker)
        await heard(broker)

    broker.run(many())
    assert retention_ms(broker, "orders") == 49


def test_old_notifications_are_taken_away_after_a_quarter_of_an_hour(broker: ConfigBroker) -> None:
    broker.run(broker.admin.change_topic_config("orders", {"retention.ms": "1"}))
    broker.run(heard(broker))
    broker.clock.elapsed_ms += CHANGE_EXPIRATION_MS
    broker.run(broker.admin.change_topic_config("orders", {"retention.ms": "2"}))
    broker.run(heard(broker))
    assert len(changes(broker)) == 2
    broker.clock.elapsed_ms += 1
    broker.run(broker.admin.change_topic_config("orders", {"retention.ms": "3"}))
    broker.run(heard(broker))
    assert len(changes(broker)) == 2


def test_notifications_of_before_the_start_are_passed_over_and_taken_away_a_quarter_of_an_hour_later(tmp_path: Path) -> None:
    with ConfigBroker(tmp_path, PROPERTIES, topics=["orders"]) as broker:
        broker.run(broker.admin.change_topic_config("orders", {"retention.ms": "1"}))
        broker.run(broker.manager.close())
        broker.clock.wall_ms += 10 * CHANGE_EXPIRATION_MS
        broker.run(broker.start_manager())
        assert retention_ms(broker, "orders") == 1
        assert len(changes(broker)) == 1  # another broker may not have read it yet, whatever the wall clock says
        broker.clock.elapsed_ms += CHANGE_EXPIRATION_MS + 1
        broker.run(broker.admin.change_topic_config("orders", {"retention.ms": "2"}))
        broker.run(heard(broker))
        assert len(changes(broker)) == 1


def test_changes_that_came_while_there_was_no_session_are_read_with_the_new_one(broker: ConfigBroker) -> None:
    session = broker.client._session
    assert session is not None
    session.expire()  # type: ignore[attr-defined]
    writer = broker.tree.open_session_now(lambda event: None)
    broker.run(writer.handle(_change_of_orders()))
    broker.run(broker.client.reinitialize())
    broker.run(heard(broker))
    assert retention_ms(broker, "orders") == 77
    broker.run(broker.admin.change_topic_config("orders", {"retention.ms": "78"}))
    broker.run(heard(broker))
    assert retention_ms(broker, "orders") == 78


def _change_of_orders() -> list[TreeRequest[Any]]:
    notification = f"{paths.CONFIG_CHANGES}/{paths.CONFIG_CHANGE_PREFIX}"
    return [
        SetData(paths.config_entity("topics/orders"), encode_config({"retention.ms": "77"})),
        Create(notification, encode_config_change("topics/orders"), CreateMode.PERSISTENT_SEQUENTIAL),
    ]


# -- groups and subscriptions


def test_groups_are_kept_up_to_date_and_forgotten_with_their_last_setting(broker: ConfigBroker) -> None:
    heard_of: list[str] = []
    broker.manager.on_group_change.append(heard_of.append)
    name = "group/with a strange name"
    alter(broker, ConfigResourceType.GROUP, name, set_of("consumer.session.timeout.ms", "50000"))
    assert broker.manager.groups == {name: {"consumer.session.timeout.ms": "50000"}}
    assert broker.run(broker.manager.entities(ConfigResourceType.GROUP)) == [name]
    alter(broker, ConfigResourceType.GROUP, name, Operation("consumer.session.timeout.ms", OpType.DELETE, None))
    assert broker.manager.groups == {}
    assert broker.run(broker.manager.entities(ConfigResourceType.GROUP)) == []
    assert heard_of == [name, name]


def test_groups_and_subscriptions_are_known_after_a_restart(broker: ConfigBroker) -> None:
    alter(broker, ConfigResourceType.GROUP, "g", set_of("consumer.session.timeout.ms", "50000"))
    alter(broker, ConfigResourceType.CLIENT_METRICS, "s", set_of("interval.ms", "500"))
    broker.run(broker.manager.close())
    subscriptions: dict[str, Mapping[str, str]] = {}
    broker.make_manager()
    broker.manager.on_client_metrics_change.append(subscriptions.__setitem__)
    broker.run(broker.manager.start())
    assert broker.manager.groups == {"g": {"consumer.session.timeout.ms": "50000"}}
    assert subscriptions == {"s": {"interval.ms": "500"}}


# -- changes that take long


def test_the_warning_of_a_held_loop_names_the_change_whose_application_took_long(
    broker: ConfigBroker, caplog: pytest.LogCaptureFixture
) -> None:
    def apply_slowly(name: str, properties: Mapping[str, str]) -> None:
        broker.clock.elapsed_ms += 300

    broker.manager.on_topic_change.append(apply_slowly)
    alter(broker, ConfigResourceType.TOPIC, "orders", set_of("retention.ms", "500"))
    broker.loop_lag.late(300, 0)
    assert lines_of(caplog, loop_lag) == [
        "The event loop was held for 300 ms and all clients waited: the config change of topics/orders took 300 ms"
    ]


# -- who may refuse


class OnlyShortRetention:
    """A policy of whoever runs the cluster."""

    asked: ClassVar[list[AlterConfigMetadata]] = []

    def configure(self, configs: dict[str, str]) -> None:
        self.asked.clear()

    def validate(self, metadata: AlterConfigMetadata) -> None:
        self.asked.append(metadata)
        if metadata.configs.get("retention.ms") == "13":
            raise RuntimeError("an accident")
        if int(metadata.configs.get("retention.ms") or 0) > 1000:
            raise PolicyViolation("nothing is kept that long here")

    def close(self) -> None: ...


@pytest.fixture
def ruled(tmp_path: Path) -> Iterator[ConfigBroker]:
    policy = {"alter.config.policy.class.name": f"{__name__}.OnlyShortRetention"}
    with ConfigBroker(tmp_path, PROPERTIES | policy, topics=["orders"]) as started:
        yield started


def test_a_policy_may_refuse_a_change(ruled: ConfigBroker) -> None:
    refused = alter(ruled, ConfigResourceType.TOPIC, "orders", set_of("retention.ms", "5000"))
    assert refused == AlterationOutcome(44, "nothing is kept that long here")
    assert alter(ruled, ConfigResourceType.TOPIC, "orders", set_of("retention.ms", "500")) == AlterationOutcome()
    assert retention_ms(ruled, "orders") == 500


def test_a_policy_that_fails_is_an_error_of_the_server(ruled: ConfigBroker) -> None:
    assert alter(ruled, ConfigResourceType.TOPIC, "orders", set_of("retention.ms", "13")) == AlterationOutcome(-1, None)


def test_a_policy_hears_what_would_change_and_nothing_else(ruled: ConfigBroker) -> None:
    alter(ruled, ConfigResourceType.TOPIC, "orders", set_of("retention.ms", "500"), set_of("flush.ms", "9"))
    alter(ruled, ConfigResourceType.TOPIC, "orders", set_of("retention.ms", "500"), Operation("flush.ms", OpType.DELETE, None))
    replaced = Alteration(ConfigResourceType.TOPIC, "orders", (set_of("flush.ms", "7"),), replaces=True)
    ruled.run(ruled.manager.alter([replaced], validate_only=True))
    assert [metadata.configs for metadata in OnlyShortRetention.asked] == [
        {"retention.ms": "500", "flush.ms": "9"},
        {"flush.ms": None},
        {"flush.ms": "7"},
    ]


# -- one change at a time


def test_one_resource_that_is_refused_does_not_keep_another_from_being_changed(broker: ConfigBroker) -> None:
    wrong = Alteration(ConfigResourceType.TOPIC, "orders", (set_of("retention.ms", "x"),))
    good = Alteration(ConfigResourceType.TOPIC, "other", (set_of("retention.ms", "7"),))
    outcomes = broker.run(broker.manager.alter([wrong, good], validate_only=False))
    assert [outcome.code for outcome in outcomes] == [40, 0]
    assert retention_ms(broker, "other") == 7


def test_a_change_that_changes_nothing_is_not_told_to_anybody(broker: ConfigBroker) -> None:
    alter(broker, ConfigResourceType.TOPIC, "orders", set_of("retention.ms", "7"))
    before = changes(broker)
    alter(broker, ConfigResourceType.TOPIC, "orders", set_of("retention.ms", "7"))
    assert changes(broker) == before


def test_with_validate_only_nothing_is_written(broker: ConfigBroker) -> None:
    assert alter(broker, ConfigResourceType.BROKER, "", set_of("max.connections", "7"), validate_only=True) == AlterationOutcome()
    assert (
        alter(broker, ConfigResourceType.GROUP, "g", set_of("consumer.session.timeout.ms", "50000"), validate_only=True)
        == AlterationOutcome()
    )
    assert broker.run(broker.admin.fetch_config("brokers", DEFAULT_ENTITY)) == {}
    assert broker.manager.groups == {}
    assert changes(broker) == []


# -- settings without effect


def warned(caplog: pytest.LogCaptureFixture) -> list[str]:
    lines = lines_of(caplog, config_manager, logging.WARNING)
    caplog.clear()
    return lines


def start_again(broker: ConfigBroker) -> None:
    broker.run(broker.manager.close())
    broker.config = DynamicBrokerConfig(broker.config.static)
    broker.run(broker.start_manager())


def test_a_dynamic_setting_without_effect_is_warned_of_when_it_is_set(broker: ConfigBroker, caplog: pytest.LogCaptureFixture) -> None:
    threads = "The setting num.io.threads has no effect here, because a broker is one event loop, which has no pools of threads"
    alter(broker, ConfigResourceType.BROKER, "1", set_of("num.io.threads", "9"))
    assert warned(caplog) == [threads]
    alter(broker, ConfigResourceType.BROKER, "1", set_of("max.connections", "9"))
    assert warned(caplog) == []
    alter(broker, ConfigResourceType.BROKER, "1", Operation("num.io.threads", OpType.DELETE, None))
    assert warned(caplog) == []
    alter(broker, ConfigResourceType.BROKER, "", set_of("num.io.threads", "10"))
    assert warned(caplog) == [threads]
    start_again(broker)
    assert warned(caplog) == [threads], "at the start too"


def test_a_dynamic_setting_that_is_read_at_the_start_is_said_to_wait_for_it(broker: ConfigBroker, caplog: pytest.LogCaptureFixture) -> None:
    line = "The setting ssl.cipher.suites has no effect until this broker starts again, because it is read at the start"
    alter(broker, ConfigResourceType.BROKER, "1", set_of("ssl.cipher.suites", "TLS_AES_256_GCM_SHA384"))
    assert warned(caplog) == [line]
    alter(broker, ConfigResourceType.BROKER, "1", set_of("cordoned.log.dirs", "*"))
    assert warned(caplog) == [], "it counts at once"
    start_again(broker)
    assert warned(caplog) == []


def test_a_setting_of_topics_without_effect_is_warned_of_once(broker: ConfigBroker, caplog: pytest.LogCaptureFixture) -> None:
    line = "The setting local.retention.ms has no effect here, because there is no tiered storage: all segments stay on local disks"
    alter(broker, ConfigResourceType.TOPIC, "orders", set_of("local.retention.ms", "1000"))
    alter(broker, ConfigResourceType.TOPIC, "other", set_of("local.retention.ms", "1000"))
    assert warned(caplog) == [line]


def test_a_setting_of_groups_without_effect_is_warned_of(broker: ConfigBroker, caplog: pytest.LogCaptureFixture) -> None:
    alter(broker, ConfigResourceType.GROUP, "readers", set_of("share.session.timeout.ms", "50000"))
    assert warned(caplog) == ["The setting share.session.timeout.ms has no effect here, because share groups are not served"]


def test_a_quota_that_changes_while_the_start_resolves_a_host_is_not_undone(broker: ConfigBroker) -> None:
    started: list[float | None] = []
    resolving, resolved = asyncio.Event(), asyncio.Event()

    async def getaddrinfo(*_: Any, **__: Any) -> list[Any]:
        if not resolving.is_set():  # only the first request is slow
            resolving.set()
            await resolved.wait()
        return [(0, 0, 0, "", ("192.0.2.1", 0))]

    async def play() -> None:
        await broker.manager.close()
        await broker.admin.change_config("ips", "host.example", {"connection_creation_rate": "1"})
        broker.make_manager()
        broker.manager.on_ip_quota_change.append(lambda host, addresses, rate: started.append(rate))
        start = asyncio.ensure_future(broker.manager.start())
        await resolving.wait()
        await broker.admin.change_config("ips", "host.example", {"connection_creation_rate": "2"})
        await heard(broker)
        resolved.set()
        await start
        await broker.manager.process_changes()

    broker.loop.getaddrinfo = getaddrinfo  # type: ignore[method-assign]
    broker.run(play())
    assert started == [1.0, 2.0]
