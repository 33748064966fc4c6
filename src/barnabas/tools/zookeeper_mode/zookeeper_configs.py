"""kafka-configs --zookeeper: settings of topics, clients, users, brokers and addresses, read and written in the tree itself.

Messages and output are those of Kafka 2.8. Settings of a running broker are refused, except throttles: only the broker itself can
validate them.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from barnabas.administration.replica_moves import BROKER_THROTTLES
from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.config.dynamic import validate_dynamic
from barnabas.broker.config.password_configs import PasswordConfigs, is_password
from barnabas.config_def import LONG_MAX, ConfigKey, Importance, InvalidConfig, Range, Type, table
from barnabas.metadata import paths
from barnabas.metadata.znodes import ordering
from barnabas.metadata.znodes.configs import DEFAULT_ENTITY, desanitize, sanitize
from barnabas.security.scram import SALT_BYTES, ScramCredential
from barnabas.tools.administration import quota_configs as quotas
from barnabas.tools.administration.config_entities import BROKERS, CLIENTS, IPS, TOPICS, USERS, Refused, added_configs
from barnabas.tools.command_line.failures import BadArgument, ConfigRefused
from barnabas.tools.command_line.options import Options
from barnabas.tools.command_line.text import coloured, print_json
from barnabas.tools.tree.zookeeper_tree import ZooKeeperCluster, scala_set

_TITLES: Final = {USERS: "user-principal", CLIENTS: "client-id", TOPICS: "topic"}
_INT_MAX: Final = 2**31 - 1
_ENCODER_PREFIX: Final = "password.encoder."  # settings of the tool itself, which it does not write to the tree


def _keys(**kinds: tuple[Type, Any]) -> dict[str, ConfigKey]:
    return table(ConfigKey(name, kind, default, None, Importance.MEDIUM, "") for name, (kind, default) in kinds.items())


_CLIENT_KEYS: Final = _keys(
    producer_byte_rate=(Type.LONG, LONG_MAX),
    consumer_byte_rate=(Type.LONG, LONG_MAX),
    request_percentage=(Type.DOUBLE, float(LONG_MAX)),
    controller_mutation_rate=(Type.DOUBLE, float(_INT_MAX)),
)
_USER_KEYS: Final = _CLIENT_KEYS | table(ConfigKey(name, Type.STRING, None, None, Importance.MEDIUM, "") for name in quotas.SCRAM)
_IP_KEYS: Final = table([ConfigKey("connection_creation_rate", Type.INT, _INT_MAX, Range(0), Importance.MEDIUM, "")])
# The settings of a running broker that a tool may change.
_THROTTLES: Final = table(ConfigKey(name, Type.LONG, LONG_MAX, Range(0), Importance.MEDIUM, "") for name in BROKER_THROTTLES)


@dataclass(frozen=True)
class Entity:
    """An entity of kafka-configs: a type and a sanitized name, or all of a type; for a user also one of its clients, or all of them."""

    kind: str
    name: str | None
    child: Entity | None = None

    @property
    def path(self) -> str:
        """The path below the node of its type."""
        return (self.name or "") + (f"/{self.child.kind}/{self.child.name}" if self.child is not None else "")

    def __str__(self) -> str:
        shown = _shown(self)
        return shown if self.child is None else f"{shown}, {_shown(self.child)}"


def _shown(entity: Entity) -> str:
    title = _TITLES.get(entity.kind, entity.kind)
    if entity.name is None:
        return entity.kind
    if entity.name == DEFAULT_ENTITY:
        return f"default {title}"
    return f"{title} '{desanitize(entity.name) if entity.kind in (USERS, CLIENTS) else entity.name}'"


def parse_entity(types: Sequence[str], names: Sequence[str], *, altering: bool) -> Entity:
    if types[0] not in (USERS, CLIENTS):
        return Entity(types[0], (names[0] or DEFAULT_ENTITY) if names else None)
    if altering and len(names) != len(types):
        raise BadArgument("--entity-name or --entity-default must be specified with each --entity-type for --alter")
    if len(types) == 2 and types[0] == CLIENTS:
        types = types[::-1]
        names = names[::-1] if len(names) == 2 else names
    given = [sanitize(name) if name else DEFAULT_ENTITY for name in names]
    made = [Entity(kind, given[index] if index < len(given) else None) for index, kind in enumerate(types)]
    return made[0] if len(made) == 1 else Entity(made[0].kind, made[0].name, made[1])


async def run(cluster: ZooKeeperCluster, options: Options, types: Sequence[str], names: Sequence[str]) -> None:
    entity = parse_entity(types, names, altering=options.has("alter"))
    if options.has("alter"):
        await _alter(cluster, entity, added_configs(options), [name.strip() for name in options.texts("delete-config")])
    else:
        await _describe(cluster, entity, options)


async def _alter(cluster: ZooKeeperCluster, entity: Entity, added: dict[str, str], deleted: Sequence[str]) -> None:
    if entity.kind == USERS:
        added = {name: scram_credential(name, value) if name in quotas.SCRAM else value for name, value in added.items()}
    elif entity.kind == BROKERS:
        encoder_settings = {name: value for name, value in added.items() if name.startswith(_ENCODER_PREFIX)}
        added = {name: value for name, value in added.items() if name not in encoder_settings}
        await _check_broker(cluster, entity, added)
        added = with_encoded_passwords(added, encoder_settings)
    config = await cluster.admin.fetch_config(entity.kind, entity.path)
    wrong = [name for name in deleted if name not in config]
    if wrong:
        raise Refused(f"Invalid config(s): {','.join(wrong)}")
    config = {name: value for name, value in (config | added).items() if name not in deleted}
    _check_values(entity, config, added)
    if entity.kind == TOPICS:
        await cluster.admin.change_topic_config(entity.path, config)
    else:
        await cluster.admin.change_config(entity.kind, entity.path, config)
    print(f"Completed updating config for entity: {entity}.")


async def _check_broker(cluster: ZooKeeperCluster, entity: Entity, added: Mapping[str, str]) -> None:
    dynamic = [name for name in added if name not in _THROTTLES]
    if not dynamic:
        return
    running = await cluster.brokers()
    default = entity.name == DEFAULT_ENTITY
    if running if default else int(entity.path) in running:
        where = "for default cluster if any broker is running" if default else f"when broker {entity.name} is running"
        raise BadArgument(
            f"requirement failed: --bootstrap-server option must be specified to update broker configs {scala_set(dynamic)}. {where}. "
            "Broker configuration updates using ZooKeeper are supported for bootstrapping before brokers are started to enable encrypted "
            "password configs to be stored in ZooKeeper."
        )
    try:
        validate_dynamic(added, per_broker=not default)
    except InvalidConfig as error:
        raise ConfigRefused(str(error)) from None


def with_encoded_passwords(added: Mapping[str, str], encoder_settings: Mapping[str, str]) -> dict[str, str]:
    """The settings as the tree has them: passwords encrypted as brokers with the same password.encoder.secret decode them."""
    passwords = [name for name in added if is_password(name)]
    if not passwords:
        return dict(added)
    if f"{_ENCODER_PREFIX}secret" not in encoder_settings:
        raise BadArgument(
            f"requirement failed: {_ENCODER_PREFIX}secret must be specified to update {scala_set(passwords)}. Other password encoder "
            "configs like cipher algorithm and iterations may also be specified to override the default encoding parameters. Password "
            "encoder configs will not be persisted in ZooKeeper."
        )
    try:
        passwords_of_brokers = PasswordConfigs(BrokerConfig(encoder_settings))
        return passwords_of_brokers.encoded(added, {}, {})
    except InvalidConfig as error:
        raise ConfigRefused(str(error)) from None


def _check_values(entity: Entity, config: Mapping[str, str], added: Mapping[str, str]) -> None:
    if entity.kind == TOPICS:
        _check_topic(added)
        return
    if entity.kind == BROKERS:
        known: Mapping[str, ConfigKey] = _THROTTLES
    elif entity.kind == IPS:
        known = _IP_KEYS
    else:
        known = _USER_KEYS if entity.kind == USERS and entity.child is None and entity.name != DEFAULT_ENTITY else _CLIENT_KEYS
    unknown = [name for name in config if name not in known]
    if unknown and entity.kind != BROKERS:
        raise BadArgument(f"requirement failed: Unknown Dynamic Configuration: HashSet({', '.join(unknown)}).")
    try:
        for name in config:
            if name in known:
                known[name].parse(config[name])
    except InvalidConfig as error:
        raise ConfigRefused(str(error)) from None


def _check_topic(added: Mapping[str, str]) -> None:
    """Validates only new settings: the tree may hold settings of older versions of Kafka."""
    from barnabas.storage.log_config import LogConfig
    from barnabas.storage.topic_configs import TOPIC_CONFIGS

    for name in added:
        if name not in TOPIC_CONFIGS:
            raise Refused(f"Unknown topic config name: {name}")
    try:
        LogConfig.from_properties(added)
    except InvalidConfig as error:
        raise ConfigRefused(str(error)) from None


def scram_credential(mechanism: str, text: str) -> str:
    """The SCRAM credential of `iterations=N,password=P`, as brokers store it."""
    iterations, password = quotas.parse_credential(mechanism, text)
    return str(ScramCredential.of_password(mechanism, password, secrets.token_bytes(SALT_BYTES), iterations))


async def _describe(cluster: ZooKeeperCluster, entity: Entity, options: Options) -> None:
    all_users = entity.kind == USERS and entity.name is None and entity.child is None
    documents: list[dict[str, Any]] = []
    for one in await _all_entities(cluster, entity):
        config = await cluster.admin.fetch_config(one.kind, one.path)
        if not config and all_users:  # a node that exists only for the clients of the user
            continue
        if options.has("json"):
            documents.append({"entity": str(one), "path": f"{one.kind}/{one.path}", "configs": config})
        else:
            settings = ",".join(f"{name}={config[name]}" for name in ordering.java_properties(config))
            print(f"Configs for {coloured(str(one), 'bold')} are {settings}")
    if options.has("json"):
        print_json(documents)


async def _all_entities(cluster: ZooKeeperCluster, entity: Entity) -> list[Entity]:
    if entity.name is None:
        roots = [Entity(entity.kind, name) for name in await _children(cluster, entity.kind)]
        if entity.child is None:
            return roots
        return [client for root in roots for client in await _clients(cluster, root, entity.child.kind)]
    if entity.child is not None and entity.child.name is None:
        return await _clients(cluster, entity, entity.child.kind)
    return [entity]


async def _clients(cluster: ZooKeeperCluster, user: Entity, kind: str) -> list[Entity]:
    return [Entity(user.kind, user.name, Entity(kind, name)) for name in await _children(cluster, f"{user.kind}/{user.name}/{kind}")]


async def _children(cluster: ZooKeeperCluster, path: str) -> list[str]:
    children = await cluster.tree.children(paths.config_entity(path))
    return sorted(children.names) if children is not None else []
