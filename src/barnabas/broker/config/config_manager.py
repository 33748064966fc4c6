"""The configs of this broker and of its topics and groups: reads them from the metadata store, keeps them current, applies them.

The metadata store is authoritative. The manager reads all configs at the start, and a changed entity when its notification arrives. Logs
get the configs of their topic on top of the broker's defaults, and `DynamicBrokerConfig` gets the dynamic configs of the broker; listeners
get the names of changed settings. DescribeConfigs of topics, groups and client metrics reads the metadata store directly.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

from barnabas.broker.clock import Clock
from barnabas.broker.config import ConfigEntry, DynamicBrokerConfig, describe_broker, describe_broker_default, describe_topic
from barnabas.broker.config.addresses import addresses_of
from barnabas.broker.config.alterations.config_alterations import Alteration, AlterationOutcome, ConfigAlterations, node_id
from barnabas.broker.config.alterations.quota_alterations import QuotaAlteration, QuotaAlterations, QuotaOutcome
from barnabas.broker.config.client_metrics import describe_client_metrics
from barnabas.broker.config.client_quotas import (
    CONNECTION_RATE,
    ENTITY_TYPES,
    IP_TYPE,
    QuotaEntity,
    Quotas,
    client_quotas,
    entity_of,
    quotas_of,
)
from barnabas.broker.config.config_changes import ConfigChangeListener
from barnabas.broker.config.definitions.without_effect import ENTITIES_WITHOUT_EFFECT, warning
from barnabas.broker.config.groups import describe_group
from barnabas.broker.config.log_levels import LogLevels
from barnabas.broker.config.password_configs import PasswordConfigs, is_password
from barnabas.broker.config.policies import ALTER_CONFIG_POLICY, load_policy
from barnabas.broker.config.synonyms import config_key
from barnabas.broker.scheduling.loop_lag import LoopLag
from barnabas.broker.scheduling.turns import Turns
from barnabas.config_def import ConfigResourceType, InvalidConfig
from barnabas.errors import InvalidRequest
from barnabas.metadata import paths
from barnabas.metadata.admin_tree import AdminTree
from barnabas.metadata.client import TreeClient
from barnabas.metadata.znodes.configs import DEFAULT_ENTITY, desanitize, sanitize
from barnabas.storage.log_config import LogConfig
from barnabas.storage.log_manager import LogManager

_log = logging.getLogger(__name__)

# The prefixes of the broker settings that are defaults of LogConfig.
_LOG_DEFAULTS: Final = ("log.", "message.", "compression.", "min.insync.replicas", "unclean.leader.election.enable")


class ConfigManager:
    """Calls `on_broker_change` with the names of changed broker settings, `on_group_change` with the name of a group, and `on_user_change`,
    `on_topic_change` and `on_client_metrics_change` with the name and configs of a user, topic or subscription: of each at the start, and
    of a changed one later. A deleted topic has no configs. So it does with quotas: `on_quota_change` receives all quotas of a user, a
    client id or both, `on_ip_quota_change` the name of a host, its addresses and its connection rate."""

    def __init__(
        self,
        *,
        broker_id: int,
        tree: TreeClient,
        admin_tree: AdminTree,
        config: DynamicBrokerConfig,
        log_manager: LogManager,
        clock: Clock,
        log_levels: LogLevels | None = None,
        turns: Turns | None = None,
        loop_lag: LoopLag | None = None,
    ) -> None:
        self.config = config
        self.log_levels = log_levels or LogLevels()
        self.on_broker_change: list[Callable[[frozenset[str]], None]] = []
        self.on_group_change: list[Callable[[str], None]] = []
        self.on_topic_change: list[Callable[[str, Mapping[str, str]], None]] = []
        self.on_user_change: list[Callable[[str, Mapping[str, str]], None]] = []
        self.on_client_metrics_change: list[Callable[[str, Mapping[str, str]], None]] = []
        self.on_quota_change: list[Callable[[QuotaEntity, Mapping[str, float]], None]] = []
        self.on_ip_quota_change: list[Callable[[str | None, Sequence[str], float | None], None]] = []  # None: all hosts without a rate
        self.groups: dict[str, dict[str, str]] = {}
        self._broker_id = broker_id
        self._tree = tree
        self._admin = admin_tree
        self._log_manager = log_manager
        self._topics: dict[str, dict[str, str]] = {}
        self._warned: set[tuple[str, str]] = set()  # kind of entity and name of the setting
        self._monotonic_ms = clock.monotonic_ms
        self._loop_lag = loop_lag or LoopLag()
        self._changes = ConfigChangeListener(tree, self._apply_change, clock.monotonic_ms)
        policy = load_policy(config.static, ALTER_CONFIG_POLICY)
        self._passwords = PasswordConfigs(config.static)
        self._alterations = ConfigAlterations(broker_id, config, admin_tree, tree, self.log_levels, policy, self._passwords, turns)
        self._quota_alterations = QuotaAlterations(admin_tree, addresses_of, turns)

    async def start(self) -> None:
        """Reads all configs and listens for changes. To be called before the logs are loaded, so that they get their own configs."""
        await self._changes.start()
        async with self._changes.held():
            await self._read_all()

    async def close(self) -> None:
        await self._changes.close()
        self._alterations.close()

    async def load_topics(self, names: Collection[str]) -> None:
        """Reads the configs of topics that are new on this broker. To be awaited before their logs are created: the creation of a topic
        makes no config notification."""
        for name, properties in (await self._admin.fetch_configs("topics", list(names))).items():
            self._update_topic(name, properties)

    def forget_topics(self, names: Collection[str]) -> None:
        """Drops the configs of deleted topics: a deletion makes no config notification either."""
        for name in names:
            if self._topics.pop(name, None) is not None:
                self._notify_topic_change(name, {})
            self._log_manager.topic_configs.pop(name, None)

    def topic_properties(self, name: str) -> Mapping[str, str]:
        """The configs of a topic that this broker has read."""
        return self._topics.get(name, {})

    async def describe(self, kind: ConfigResourceType, name: str, names: Collection[str] | None) -> list[ConfigEntry]:
        """The configs of a resource, all or those in `names`. The caller has checked that a topic exists. Raises KafkaError."""
        if kind is ConfigResourceType.TOPIC:
            return describe_topic(self.config, await self._admin.fetch_config("topics", name), names)
        if kind is ConfigResourceType.BROKER:
            if not name:
                return describe_broker_default(self.config, names)
            self._check_broker_id(name, f"expected {self._broker_id} or empty string, but received {name}")
            return describe_broker(self.config, names)
        if kind is ConfigResourceType.BROKER_LOGGER:
            _check_not_empty(name, "Broker id must not be empty")
            self._check_broker_id(name, f"expected {self._broker_id} but received {name}")
            return self.log_levels.describe(names)
        if kind is ConfigResourceType.CLIENT_METRICS:
            _check_not_empty(name, "Client metrics subscription name must not be empty")
            return describe_client_metrics(await self._admin.fetch_config("client-metrics", sanitize(name)), names)
        assert kind is ConfigResourceType.GROUP, kind
        _check_not_empty(name, "Group name must not be empty")
        return describe_group(self.config.current, await self._admin.fetch_config("groups", sanitize(name)), names)

    async def alter(self, alterations: Sequence[Alteration], validate_only: bool) -> list[AlterationOutcome]:
        """The outcomes in order. On return this broker has applied the changes."""
        outcomes = await self._alterations.alter(alterations, validate_only)
        if not validate_only:
            await self.process_changes()
        return outcomes

    async def process_changes(self) -> None:
        """Applies the changes that are written to the metadata store. The writer of a change awaits it."""
        await self._changes.process()

    async def entities(self, kind: ConfigResourceType) -> list[str]:
        """The groups or client metrics subscriptions that have configs."""
        entity_type = {ConfigResourceType.GROUP: "groups", ConfigResourceType.CLIENT_METRICS: "client-metrics"}[kind]
        children = await self._tree.children(paths.config_type(entity_type))
        return [desanitize(name) for name in children.names] if children is not None else []

    async def client_quotas(self) -> list[tuple[QuotaEntity, Quotas]]:
        return await client_quotas(self._admin)

    async def alter_client_quotas(self, alterations: Sequence[QuotaAlteration], validate_only: bool) -> list[QuotaOutcome]:
        """The outcome of each entity. On return this broker applies the quotas. Raises PolicyViolation for too many changes."""
        outcomes = await self._quota_alterations.alter(alterations, validate_only)
        if not validate_only:
            await self.process_changes()
        return outcomes

    async def _read_all(self) -> None:
        self._topics = {name: properties for name, properties in (await self._admin.fetch_all_configs("topics")).items() if properties}
        self.groups = await self._fetch_all("groups")
        for subscription, properties in (await self._fetch_all("client-metrics")).items():
            self._update_client_metrics(subscription, properties)
        for entity_type, configs in (("topics", self._topics), ("groups", self.groups)):
            for properties in configs.values():
                self._warn_without_effect(entity_type, properties)
        for user, properties in (await self._admin.fetch_all_configs("users")).items():
            self._update_user(user, properties)
        for quota_entity, quotas in await self.client_quotas():
            await self._update_quotas(quota_entity, quotas)
        brokers = await self._admin.fetch_configs("brokers", [DEFAULT_ENTITY, str(self._broker_id)])
        own = await self._with_new_secret(brokers[str(self._broker_id)])
        changed = self.config.update_default(self._passwords.decoded(brokers[DEFAULT_ENTITY]))
        changed |= self.config.update_broker(self._passwords.decoded(own))
        self._apply_log_configs()
        self._warn_broker(changed, is_running=False)
        self._notify_broker_change(changed)
        for topic, properties in self._topics.items():
            self._notify_topic_change(topic, properties)

    async def _with_new_secret(self, stored: dict[str, str]) -> dict[str, str]:
        """Encodes the passwords of this broker anew if password.encoder.old.secret has encoded them."""
        properties = self._passwords.with_new_secret(stored)
        if properties != stored:
            await self._admin.change_broker_config(self._broker_id, properties)
            _log.info("The dynamic passwords of this broker are encoded with the new password.encoder.secret")
        return properties

    async def _fetch_all(self, entity_type: str) -> dict[str, dict[str, str]]:
        return {desanitize(name): properties for name, properties in (await self._admin.fetch_all_configs(entity_type)).items()}

    async def _apply_change(self, entity_path: str) -> None:
        entity_type, _, entity = entity_path.partition("/")
        if entity_type == "brokers" and entity not in (DEFAULT_ENTITY, str(self._broker_id)):
            return
        properties = await self._admin.fetch_config(entity_type, entity)
        _log.info("Processing override for entityPath: %s with config: %s", entity_path, _loggable(entity_type, properties))
        began_ms = self._monotonic_ms()
        self._apply(entity_type, entity, properties)
        self._loop_lag.note_work(self._monotonic_ms() - began_ms, f"the config change of {entity_path}")
        if entity_type in ENTITY_TYPES and (quota_entity := entity_of(entity_type, entity)) is not None:
            await self._update_quotas(quota_entity, quotas_of(quota_entity, properties))

    def _apply(self, entity_type: str, entity: str, properties: dict[str, str]) -> None:
        self._warn_without_effect(entity_type, properties)
        if entity_type == "topics":
            self._update_topic(entity, properties)
        elif entity_type == "brokers":
            self._update_broker(entity, properties)
        elif entity_type == "groups":
            self._update_group(desanitize(entity), properties)
        elif entity_type == "client-metrics":
            self._update_client_metrics(desanitize(entity), properties)
        elif entity_type == "users":
            self._update_user(entity, properties)

    def _update_topic(self, name: str, properties: dict[str, str]) -> None:
        if properties == self._topics.get(name, {}):
            return
        _keep(self._topics, name, properties)
        self._log_manager.update_topic_config(name, self._log_config(name))
        self._notify_topic_change(name, properties)

    def _update_broker(self, entity: str, properties: dict[str, str]) -> None:
        update = self.config.update_default if entity == DEFAULT_ENTITY else self.config.update_broker
        changed = update(self._passwords.decoded(properties))
        if any(name.startswith(_LOG_DEFAULTS) for name in changed):
            self._apply_log_configs()
        self._warn_broker(changed, is_running=True)
        self._notify_broker_change(changed)

    def _update_group(self, group: str, properties: dict[str, str]) -> None:
        _keep(self.groups, group, properties)
        for listener in self.on_group_change:
            listener(group)

    def _update_client_metrics(self, subscription: str, properties: dict[str, str]) -> None:
        for listener in self.on_client_metrics_change:
            listener(subscription, properties)

    def _update_user(self, entity: str, properties: dict[str, str]) -> None:
        """`alice`, but neither her clients, `alice/clients/c1`, nor the default of all users: they have quotas only."""
        if "/" in entity or entity == DEFAULT_ENTITY:
            return
        for listener in self.on_user_change:
            listener(desanitize(entity), properties)

    async def _update_quotas(self, entity: QuotaEntity, quotas: Quotas) -> None:
        if IP_TYPE not in entity:
            for listener in self.on_quota_change:
                listener(entity, quotas)
            return
        host = entity[IP_TYPE]
        addresses = await addresses_of(host) if host is not None else []
        if host is not None and not addresses:
            _log.error("The connection rate of %s is ignored: Unable to resolve address %s", host, host)
        for ip_listener in self.on_ip_quota_change:
            ip_listener(host, addresses, quotas.get(CONNECTION_RATE))

    def _notify_topic_change(self, name: str, properties: Mapping[str, str]) -> None:
        for listener in self.on_topic_change:
            listener(name, properties)

    def _warn_broker(self, changed: frozenset[str], is_running: bool) -> None:
        for line in self.config.warnings(changed, is_running):
            _log.warning("%s", line)

    def _warn_without_effect(self, entity_type: str, properties: Mapping[str, str]) -> None:
        """Once for each setting: there may be many topics."""
        reasons = ENTITIES_WITHOUT_EFFECT.get(entity_type, {})
        for name in sorted(reasons.keys() & properties.keys()):
            if (entity_type, name) not in self._warned:
                self._warned.add((entity_type, name))
                _log.warning("%s", warning(name, reasons[name]))

    def _notify_broker_change(self, changed: frozenset[str]) -> None:
        if not changed:
            return
        for listener in self.on_broker_change:
            try:
                listener(changed)
            except Exception:
                _log.exception("The change of %s could not be applied", ", ".join(sorted(changed)))

    def _apply_log_configs(self) -> None:
        defaults = self.config.current.log_config()
        topics = {name: self._log_config(name, defaults) for name in self._topics}
        self._log_manager.update_default_config(defaults, topics)

    def _log_config(self, topic: str, defaults: LogConfig | None = None) -> LogConfig:
        """The config of a topic on top of the broker's defaults. Skips invalid stored configs, so that the log still opens."""
        defaults = defaults or self.config.current.log_config()
        properties = self._topics.get(topic, {})
        try:
            return LogConfig.from_properties(properties, defaults)
        except InvalidConfig as error:
            _log.error("The configs of topic %s cannot all be used: %s", topic, error)
        usable = {name: text for name, text in properties.items() if _is_usable(name, text)}
        try:
            return LogConfig.from_properties(usable, defaults)
        except InvalidConfig:
            return defaults  # each config is valid, but they contradict each other

    def _check_broker_id(self, name: str, message: str) -> None:
        requested_id = node_id(name)
        if requested_id is None:
            raise InvalidRequest(f"Broker id must be an integer, but it is: {name}")
        if requested_id != self._broker_id:
            raise InvalidRequest(f"Unexpected broker id, {message}")


def _check_not_empty(name: str, message: str) -> None:
    if not name:
        raise InvalidRequest(message)


def _keep(configs: dict[str, dict[str, str]], name: str, properties: dict[str, str]) -> None:
    """Stores the configs of an entity. Entities without configs are not stored: there may be many."""
    if properties:
        configs[name] = properties
    else:
        configs.pop(name, None)


def _is_usable(name: str, text: str) -> bool:
    try:
        LogConfig.from_properties({name: text})
    except InvalidConfig:
        return False
    return True


def _loggable(entity_type: str, properties: dict[str, str]) -> dict[str, str]:
    """Hides possible secrets: passwords, unknown settings, and all configs of users, which include credentials."""
    hidden = {name for name in properties if entity_type == "users" or (entity_type == "brokers" and _is_secret(name))}
    return {name: "[hidden]" if name in hidden else text for name, text in properties.items()}


def _is_secret(name: str) -> bool:
    return is_password(name) or config_key(name) is None
