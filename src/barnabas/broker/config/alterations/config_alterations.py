"""AlterConfigs and IncrementalAlterConfigs: validates each resource separately, then writes it to the metadata store.

The order of the checks is Kafka's, because it decides which error a client gets: the request itself, the authorization, the resources of
the broker (log levels, broker configs), the resources of the controller (topics, groups, client metrics), and last the alter.config.policy.
Nothing is applied here: every broker, this one included, applies a change when it receives the notification.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from barnabas import topic_name
from barnabas.broker.config import DynamicBrokerConfig, validate_topic
from barnabas.broker.config.alterations.alter import Operation, apply_to_broker, apply_to_others, check_names_and_values
from barnabas.broker.config.client_metrics import validate_client_metrics
from barnabas.broker.config.groups import validate_group
from barnabas.broker.config.log_levels import LogLevels
from barnabas.broker.config.password_configs import PasswordConfigs
from barnabas.broker.config.policies import AlterConfigMetadata, AlterConfigPolicy
from barnabas.broker.config.synonyms import config_key
from barnabas.broker.config.validation import UnmetRequirement
from barnabas.broker.scheduling.turns import Turns
from barnabas.config_def import ConfigKey, ConfigResourceType, InvalidConfig
from barnabas.errors import InvalidRequest, KafkaError, UnknownTopicOrPartition
from barnabas.metadata import paths
from barnabas.metadata.admin_tree import AdminTree
from barnabas.metadata.client import TreeClient
from barnabas.metadata.znodes.configs import DEFAULT_ENTITY, sanitize
from barnabas.protocol.errors import ErrorCode
from barnabas.storage.topic_configs import TOPIC_CONFIGS

_log = logging.getLogger(__name__)

_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,10}")
_ENTITY_TYPES: Final = {
    ConfigResourceType.TOPIC: "topics",
    ConfigResourceType.BROKER: "brokers",
    ConfigResourceType.CLIENT_METRICS: "client-metrics",
    ConfigResourceType.GROUP: "groups",
}
# Their znodes are deleted with the last config. The znode of a topic or a broker stays, empty, as in Kafka.
_DELETED_WHEN_EMPTY: Final = (ConfigResourceType.CLIENT_METRICS, ConfigResourceType.GROUP)


@dataclass(frozen=True, slots=True)
class Alteration:
    """A change of one resource. With `replaces` all operations are SET, and configs that they do not name are removed. `denial` is the
    error of a client that may not alter the resource."""

    type: int
    name: str
    operations: tuple[Operation, ...]
    replaces: bool = False
    denial: ErrorCode | None = None

    @property
    def kind(self) -> ConfigResourceType:
        return ConfigResourceType.for_id(self.type)


class AlterationDenied(KafkaError):
    """TOPIC_, GROUP_ or CLUSTER_AUTHORIZATION_FAILED, with Kafka's text, of which log levels have none."""

    def __init__(self, error: ErrorCode, kind: ConfigResourceType) -> None:
        self.code = int(error)
        super().__init__("" if kind is ConfigResourceType.BROKER_LOGGER else error.message)


class AlterationOutcome(NamedTuple):
    code: int = 0
    message: str | None = None


ALTERATIONS_MAX: Final = 10_000  # Kafka's limit of changes per request
RESOURCES_PER_SLICE: Final = 10
_TOO_MANY: Final = AlterationOutcome(int(ErrorCode.POLICY_VIOLATION), "Unable to perform excessively large batch operation.")


def node_id(name: str) -> int | None:
    """A broker id, parsed as Java does. None if it is not a number."""
    return int(name) if _INTEGER.fullmatch(name) else None


class ConfigAlterations:
    def __init__(
        self,
        broker_id: int,
        config: DynamicBrokerConfig,
        admin_tree: AdminTree,
        tree: TreeClient,
        log_levels: LogLevels,
        policy: AlterConfigPolicy | None,
        passwords: PasswordConfigs,
        turns: Turns | None = None,
    ) -> None:
        self._broker_id = broker_id
        self._config = config
        self._admin = admin_tree
        self._tree = tree
        self._log_levels = log_levels
        self._policy = policy
        self._passwords = passwords
        self._turns = turns  # of the event loop: validating the configs of a topic takes most of a millisecond

    async def alter(self, alterations: Sequence[Alteration], validate_only: bool) -> list[AlterationOutcome]:
        if sum(max(1, len(alteration.operations)) for alteration in alterations) > ALTERATIONS_MAX:
            return [_TOO_MANY] * len(alterations)
        times = Counter((alteration.type, alteration.name) for alteration in alterations)
        outcomes = []
        for index, alteration in enumerate(alterations):
            if self._turns is not None and index % RESOURCES_PER_SLICE == RESOURCES_PER_SLICE - 1:
                await self._turns.next("AlterConfigs")
            try:
                if times[alteration.type, alteration.name] > 1:
                    raise InvalidRequest("Each resource must appear at most once.")
                await self._alter(alteration, validate_only)
                outcomes.append(AlterationOutcome())
            except KafkaError as error:
                _log.info("Configs of %s %s are not altered: %s", alteration.kind.name, alteration.name, error)
                outcomes.append(AlterationOutcome(int(error.code), str(error) or None))
            except Exception:
                _log.exception("Altering the configs of %s %s failed", alteration.kind.name, alteration.name)
                outcomes.append(AlterationOutcome(int(ErrorCode.UNKNOWN_SERVER_ERROR)))
        return outcomes

    def close(self) -> None:
        if self._policy is not None:
            self._policy.close()

    async def _alter(self, alteration: Alteration, validate_only: bool) -> None:
        kind, name = alteration.kind, alteration.name
        check_names_and_values(alteration.operations)
        if kind is ConfigResourceType.BROKER_LOGGER and not alteration.replaces:
            _require_authorized(alteration)
            self._alter_log_levels(alteration, validate_only)
            return
        if kind not in _ENTITY_TYPES:
            raise InvalidRequest(f"Unknown resource type {alteration.type}")
        if kind is ConfigResourceType.BROKER and name:
            self._check_node_id(name, "Unexpected broker id, expected {0}, but received {1}")
        _require_authorized(alteration)  # before the values are looked at: they may name files of this broker
        entity = _entity(kind, name)
        # The name is validated later, with the configs. Until then it may be one that cannot be a znode name.
        stored = await self._admin.fetch_config(_ENTITY_TYPES[kind], entity) if _may_exist(kind, name) else {}
        current = self._passwords.decoded(stored) if kind is ConfigResourceType.BROKER else stored
        changed = self._changed(alteration, current)
        self._validate(kind, name, changed)
        if kind is ConfigResourceType.TOPIC and not await self._admin.topic_exists(name):
            raise UnknownTopicOrPartition(f"The topic '{name}' does not exist.")
        self._apply_policy(alteration, current, changed)
        # A broker reloads its configs even if they are equal: the files that they name may have changed.
        if not validate_only and kind is ConfigResourceType.BROKER:
            await self._write(kind, entity, self._with_encoded_passwords(alteration, changed, stored, current))
        elif not validate_only and changed != current:
            await self._write(kind, entity, changed)

    def _alter_log_levels(self, alteration: Alteration, validate_only: bool) -> None:
        self._check_node_id(alteration.name, "Unexpected node id. Expected {0}, but received {1}")
        self._log_levels.validate(alteration.operations)
        if not validate_only:
            self._log_levels.alter(alteration.operations)

    def _check_node_id(self, name: str, message: str) -> None:
        requested_id = node_id(name)
        if requested_id is None:
            raise InvalidRequest(f"Node id must be an integer, but it is: {name}")
        if requested_id != self._broker_id:
            raise InvalidRequest(message.format(self._broker_id, name))

    def _changed(self, alteration: Alteration, current: Mapping[str, str]) -> dict[str, str]:
        if alteration.replaces:
            return {operation.name: operation.value for operation in alteration.operations if operation.value is not None}
        if alteration.kind is ConfigResourceType.BROKER:
            return apply_to_broker(current, alteration.operations, config_key)
        # As in Kafka, only topic configs have types here. APPEND and SUBTRACT do not work for groups and client metrics.
        keys: Mapping[str, ConfigKey] = TOPIC_CONFIGS if alteration.kind is ConfigResourceType.TOPIC else {}
        return apply_to_others(current, alteration.operations, keys.get)

    def _with_encoded_passwords(
        self, alteration: Alteration, changed: Mapping[str, str], stored: Mapping[str, str], current: Mapping[str, str]
    ) -> dict[str, str]:
        """A stored password that this broker cannot decode stays as it is, unless the alteration names or replaces it."""
        named = {operation.name for operation in alteration.operations}
        kept = {name: text for name, text in stored.items() if name not in current and name not in named and not alteration.replaces}
        try:
            return self._passwords.encoded(changed, stored, current) | kept
        except InvalidConfig as error:
            _log.warning("A dynamic password of broker %r is refused: set password.encoder.secret on every broker", alteration.name)
            resource = f"ConfigResource(type=BROKER, name='{alteration.name}')"
            raise InvalidRequest(f"Invalid config value for resource {resource}: {error}") from error

    def _validate(self, kind: ConfigResourceType, name: str, changed: dict[str, str]) -> None:
        if kind is ConfigResourceType.TOPIC:
            if not name:
                raise InvalidRequest("Default topic resources are not allowed.")
            topic_name.validate(name)
            validate_topic(changed, self._config.current)
        elif kind is ConfigResourceType.BROKER:
            self._validate_broker(changed, per_broker=bool(name))
        elif kind is ConfigResourceType.CLIENT_METRICS:
            validate_client_metrics(name, changed)
        else:
            if not name:
                raise InvalidRequest("Default group resources are not allowed.")
            validate_group(changed, self._config.current)

    def _validate_broker(self, changed: Mapping[str, str], per_broker: bool) -> None:
        """Kafka returns INVALID_REQUEST for an invalid broker config, and keeps it for compatibility with its clients."""
        try:
            self._config.validate(changed, per_broker)
        except UnmetRequirement as error:
            raise InvalidRequest(f"requirement failed: {error}") from error
        except InvalidConfig as error:
            raise InvalidRequest(str(error)) from error

    def _apply_policy(self, alteration: Alteration, current: Mapping[str, str], changed: Mapping[str, str]) -> None:
        """The policy gets the named configs that change. As in Kafka, it does not get those that a replacement removes implicitly."""
        if self._policy is None:
            return
        altered = {
            operation.name: changed.get(operation.name)
            for operation in alteration.operations
            if changed.get(operation.name) != current.get(operation.name) or alteration.kind is ConfigResourceType.BROKER
        }
        self._policy.validate(AlterConfigMetadata(alteration.type, alteration.name, altered))

    async def _write(self, kind: ConfigResourceType, entity: str, changed: dict[str, str]) -> None:
        entity_type = _ENTITY_TYPES[kind]
        if changed or kind not in _DELETED_WHEN_EMPTY:
            await self._admin.change_config(entity_type, entity, changed)
        else:
            await self._tree.delete(paths.config_entity(f"{entity_type}/{entity}"))
            await self._admin.notify_config_change(f"{entity_type}/{entity}")


def _require_authorized(alteration: Alteration) -> None:
    if alteration.denial is not None:
        raise AlterationDenied(alteration.denial, alteration.kind)


def _entity(kind: ConfigResourceType, name: str) -> str:
    if kind is ConfigResourceType.BROKER:
        return str(node_id(name)) if name else DEFAULT_ENTITY
    return name if kind is ConfigResourceType.TOPIC else sanitize(name)


def _may_exist(kind: ConfigResourceType, name: str) -> bool:
    return topic_name.is_valid(name) if kind is ConfigResourceType.TOPIC else kind is ConfigResourceType.BROKER or bool(name)
