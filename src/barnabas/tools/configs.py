"""Show and change the settings of topics, brokers, clients, users, addresses and groups, as kafka-configs does.

Options, messages, output and exit codes are those of Apache Kafka 4.2. With --zookeeper it works on a tree itself, as Kafka 2.8's does.
"""

from __future__ import annotations

import re
import socket
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from barnabas.errors import InvalidTopic, KafkaError
from barnabas.protocol.errors import ErrorCode, UnsupportedVersion
from barnabas.tools.administration import quota_configs as quotas
from barnabas.tools.administration.config_entities import (
    BROKERS,
    CLIENT_METRICS,
    CLIENTS,
    GROUPS,
    IPS,
    LOGGERS,
    TOPICS,
    TYPES,
    USERS,
    ZOOKEEPER_TYPES,
    Refused,
    added_configs,
)
from barnabas.tools.command_line.failures import BadArgument, described, finish, message_of, print_cause
from barnabas.tools.command_line.options import Option, Options, UsageError
from barnabas.tools.command_line.text import JSON, coloured, print_json
from barnabas.tools.connecting.connect import open_admin
from barnabas.tools.tree.zookeeper_tree import ZOOKEEPER, on_cluster, refuse_both, warn_deprecated
from barnabas.topic_name import validate

if TYPE_CHECKING:
    from barnabas.client.admin.admin import Admin

ABOUT: Final = "This tool helps to manipulate and describe entity config for a topic, client, user, broker, ip, client-metrics or group"
# An option for one entity of a type, and for the default of a type; in Kafka's order.
_FLAGS: Final = {
    "topic": TOPICS,
    "client": CLIENTS,
    "user": USERS,
    "broker": BROKERS,
    "broker-logger": LOGGERS,
    "ip": IPS,
    "client-metrics": CLIENT_METRICS,
    "group": GROUPS,
}
_DEFAULT_FLAGS: Final = {"client-defaults": CLIENTS, "user-defaults": USERS, "broker-defaults": BROKERS, "ip-defaults": IPS}
OPTIONS: Final = (
    Option("bootstrap-server", "The broker to connect to.", "required", described_as="server to connect to"),
    ZOOKEEPER,
    Option("bootstrap-controller", "The controller to connect to.", "required", described_as="controller to connect to"),
    Option("command-config", "A properties file for the admin client.", "required", described_as="command config property file"),
    Option("alter", "Change settings."),
    Option("describe", "Show settings."),
    Option("all", "With --describe: also settings that nobody has changed."),
    Option("entity-type", "What has the settings (topics/clients/users/brokers/broker-loggers/ips/client-metrics/groups).", "required"),
    Option("entity-name", "Its name: a topic, a client id, a user, a broker's id, an address, a group.", "required"),
    Option("entity-default", "The default for all clients, users, brokers or addresses."),
    Option("add-config", "Settings to add, as k1=v1,k2=[a,b],k3=v3: brackets around a value with commas.", "required"),
    Option("add-config-file", "A properties file with settings to add.", "required"),
    Option("delete-config", "Settings to delete, as k1,k2.", "required", separator=","),
    Option("topic", "The topic.", "required"),
    Option("client", "The client id.", "required"),
    Option("client-defaults", "The defaults of all clients."),
    Option("user", "The user's principal.", "required"),
    Option("user-defaults", "The defaults of all users."),
    Option("broker", "The broker's id.", "required"),
    Option("broker-defaults", "The defaults of all brokers."),
    Option("broker-logger", "The broker's id, for its loggers.", "required"),
    Option("ip-defaults", "The defaults of all addresses."),
    Option("ip", "The address.", "required"),
    Option("group", "The group's id.", "required"),
    Option("client-metrics", "The name of a client metrics resource.", "required"),
    Option("force", "With --zookeeper: taken and ignored, as there never was a question.", available_if=("zookeeper",)),
    JSON,
)
_CALL_TIMEOUT_MS: Final = 30_000


def main(arguments: Sequence[str]) -> int:
    return finish(lambda: _execute(arguments), lambda error: _failed(error, arguments))


def _failed(error: Exception, arguments: Sequence[str]) -> int:
    if isinstance(error, BadArgument | UsageError | UnsupportedVersion):
        print(message_of(error), file=sys.stderr)
        print_cause(error)
        return 1
    print(f"Error while executing config command with args '{' '.join(arguments)}'", file=sys.stderr)
    print(described(error), file=sys.stderr)
    return 1


def _execute(arguments: Sequence[str]) -> None:
    options = Options(OPTIONS, arguments)
    options.maybe_help_or_version(ABOUT)
    types, names = entities(options)
    _check(options, types, names)
    if options.has("zookeeper"):
        from barnabas.tools.zookeeper_mode import zookeeper_configs

        warn_deprecated()
        on_cluster(options.text("zookeeper"), lambda cluster: zookeeper_configs.run(cluster, options, types, names))
        return
    controllers = options.optional("bootstrap-controller")
    with open_admin(options.optional("bootstrap-server"), options.optional("command-config"), bootstrap_controllers=controllers) as admin:
        if options.has("alter"):
            if len(types) != len(names):
                raise BadArgument("An entity name must be specified for every entity type")
            _alter(admin, options, types, names)
        else:
            _describe(admin, options, types, names)


def entities(options: Options) -> tuple[list[str], list[str]]:
    """The types and names on the command line; the name "" is the default of a type."""
    flags = [*_FLAGS, *_DEFAULT_FLAGS]
    types = options.texts("entity-type") + [(_FLAGS | _DEFAULT_FLAGS)[flag] for flag in flags if options.has(flag)]
    given = iter(options.texts("entity-name"))
    names = [next(given) if name == "entity-name" else "" for name in options.order if name in ("entity-name", "entity-default")]
    names += [options.text(flag) for flag in _FLAGS if options.has(flag)]
    names += ["" for flag in _DEFAULT_FLAGS if options.has(flag)]
    return types, names


def _check(options: Options, types: Sequence[str], names: Sequence[str]) -> None:
    if options.has("alter") == options.has("describe"):
        options.usage("Command must include exactly one action: --describe, --alter")
    options.refuse_with("describe", ("alter", "add-config", "delete-config"))
    if len(set(types)) != len(types):
        repeated = list(types)
        for kind in dict.fromkeys(types):
            repeated.remove(kind)
        raise BadArgument(f"Duplicate entity type(s) specified: {','.join(repeated)}")
    if not any(map(options.has, ("bootstrap-server", "bootstrap-controller", "zookeeper"))):
        raise BadArgument("Either --bootstrap-server or --bootstrap-controller must be specified.")
    _check_types(options, types)
    if not types:
        raise BadArgument("At least one entity type must be specified")
    if len(types) > 1 and set(types) != {USERS, CLIENTS}:
        raise BadArgument(f"Only '{USERS}' and '{CLIENTS}' entity types may be specified together")
    general = any(map(options.has, ("entity-name", "entity-type", "entity-default")))
    if general and any(map(options.has, (*_FLAGS, *_DEFAULT_FLAGS))):
        raise BadArgument("--entity-{type,name,default} should not be used in conjunction with specific entity flags")
    if options.has("zookeeper"):
        refuse_both(options)
        if options.has("all"):
            raise BadArgument("--bootstrap-server must be specified for --all")
    if options.has("bootstrap-server") and options.has("bootstrap-controller"):
        raise BadArgument("Only one of --bootstrap-server or --bootstrap-controller can be specified")
    _check_names(options, types, names)
    (_check_describe if options.has("describe") else _check_alter)(options, types, names)


def _check_types(options: Options, types: Sequence[str]) -> None:
    if options.has("zookeeper"):
        allowed, ending = ",".join(ZOOKEEPER_TYPES), "the --zookeeper argument"
    else:
        allowed, ending = ", ".join(TYPES), "a --bootstrap-server or --bootstrap-controller argument"
    for kind in types:
        if kind not in re.split(", ?", allowed):
            raise BadArgument(f"Invalid entity type {kind}, the entity type must be one of {allowed} with {ending}")


def _check_names(options: Options, types: Sequence[str], names: Sequence[str]) -> None:
    if not any(names):
        return
    if BROKERS in types or LOGGERS in types:
        for flag in ("entity-name", "broker", "broker-logger"):
            if options.has(flag) and not _is_int(options.text(flag)):
                raise BadArgument(f"The entity name for {types[0]} must be a valid integer broker id, but it is: {options.text(flag)}")
    if IPS in types:
        for flag in ("entity-name", "ip"):
            if options.has(flag) and not _resolves(options.text(flag)):
                raise BadArgument(f"The entity name for {types[0]} must be a valid IP or resolvable host, but it is: {options.text(flag)}")


def _check_describe(options: Options, types: Sequence[str], names: Sequence[str]) -> None:
    if not {USERS, CLIENTS, BROKERS, IPS} & set(types) and options.has("entity-default"):
        raise BadArgument(f"--entity-default must not be specified with --describe of {','.join(types)}")
    if LOGGERS in types and not any(names):
        raise BadArgument(f"An entity name must be specified with --describe of {','.join(types)}")


def _check_alter(options: Options, types: Sequence[str], names: Sequence[str]) -> None:
    if {USERS, CLIENTS, BROKERS, IPS} & set(types):
        if not names:
            raise BadArgument("An entity-name or default entity must be specified with --alter of users, clients, brokers or ips")
    elif not any(names):
        raise BadArgument(f"An entity name must be specified with --alter of {','.join(types)}")
    if options.has("add-config") and options.has("add-config-file"):
        raise BadArgument("Only one of --add-config or --add-config-file must be specified")
    if not any(map(options.has, ("add-config", "add-config-file", "delete-config"))):
        raise BadArgument("At least one of --add-config, --add-config-file, or --delete-config must be specified with --alter")


def _check_topic(name: str) -> None:
    try:
        validate(name)
    except InvalidTopic as error:
        raise BadArgument(str(error)) from None


def _is_int(text: str) -> bool:
    return re.fullmatch(r"[+-]?[0-9]{1,10}", text) is not None


def _resolves(host: str) -> bool:
    try:
        socket.getaddrinfo(host, None)
    except OSError:
        return False
    return True


def _alter(admin: Admin, options: Options, types: Sequence[str], names: Sequence[str]) -> None:
    kind, name = types[0], names[0]
    added = added_configs(options)
    deleted = [setting.strip() for setting in options.texts("delete-config")]
    if kind in (TOPICS, CLIENT_METRICS, BROKERS, GROUPS):
        _alter_resource(admin, kind, name, added, deleted)
    elif kind == LOGGERS:
        _alter_loggers(admin, name, added, deleted)
    elif kind in (USERS, CLIENTS):
        quotas.alter_users_or_clients(admin, types, names, added, deleted)
    else:
        quotas.alter_ips(admin, types, names, added, deleted)
    if name:
        print(f"Completed updating config for {kind[:-1]} {name}.")
    else:
        print(f"Completed updating default config for {kind} in the cluster.")


def _alter_resource(admin: Admin, kind: str, name: str, added: dict[str, str], deleted: Sequence[str]) -> None:
    set_already = {entry.name for entry in _entries(admin, kind, name, synonyms=False, everything=False)}
    wrong = [setting for setting in deleted if setting not in set_already]
    if wrong:
        raise Refused(f"Invalid config(s): {','.join(wrong)}")
    try:
        _send(admin, kind, name, added, deleted)
    except UnsupportedVersion:
        raise UnsupportedVersion(
            "The INCREMENTAL_ALTER_CONFIGS API is not supported by the cluster. The API is supported starting from version 2.3.0."
            " You may want to use an older version of this tool to interact with your cluster, or upgrade your brokers to version 2.3.0 "
            "or newer to avoid this error."
        ) from None


def _alter_loggers(admin: Admin, name: str, added: dict[str, str], deleted: Sequence[str]) -> None:
    loggers = {entry.name for entry in _entries(admin, LOGGERS, name, synonyms=True, everything=False)}
    wrong = [logger for logger in (*deleted, *added) if logger not in loggers]
    if wrong:
        raise Refused(f"Invalid broker logger(s): {','.join(wrong)}")
    _send(admin, LOGGERS, name, added, deleted)


def _send(admin: Admin, kind: str, name: str, added: dict[str, str], deleted: Sequence[str]) -> None:
    from barnabas.client.admin.cluster.config_entries import ConfigResource
    from barnabas.client.admin.cluster.configs import AlterConfigOp, OpType

    operations = [AlterConfigOp(setting, "", OpType.DELETE) for setting in deleted]
    operations += [AlterConfigOp(setting, value, OpType.SET) for setting, value in added.items()]
    resource = ConfigResource(_resource_type(kind), name)
    admin.incremental_alter_configs({resource: operations}, timeout_ms=_CALL_TIMEOUT_MS).all()


def _describe(admin: Admin, options: Options, types: Sequence[str], names: Sequence[str]) -> None:
    kind = types[0]
    if kind in (USERS, CLIENTS, IPS) and options.has("json"):
        print_json(quotas.as_json(admin, types, names))
    elif kind in (USERS, CLIENTS, IPS):
        quotas.describe(admin, types, names)
        if quotas.has_credentials(types, names):
            quotas.describe_scram(admin, names)
    else:
        _describe_resources(admin, kind, names[0] if names else None, options)


def _describe_resources(admin: Admin, kind: str, name: str | None, options: Options) -> None:
    everything = options.has("all")
    if name is not None and not everything and not _exists(admin, kind, name):
        print(f"The {kind[:-1]} '{name}' doesn't exist and doesn't have dynamic config.")
        return
    documents: list[dict[str, Any]] = []
    for entity in [name] if name is not None else _all_entities(admin, kind):
        if options.has("json"):
            entries = _entries(admin, kind, entity, synonyms=True, everything=everything)
            documents.append({"type": kind, "name": entity or None, "configs": {entry.name: entry.value for entry in entries}})
            continue
        if entity:
            print(coloured(f"{'All' if everything else 'Dynamic'} configs for {kind[:-1]} {entity} are:", "bold"))
        else:
            print(coloured(f"Default configs for {kind} in the cluster are:", "bold"))
        for entry in _entries(admin, kind, entity, synonyms=True, everything=everything):
            synonyms = ", ".join(f"{synonym.source.name}:{synonym.name}={_text(synonym.value)}" for synonym in entry.synonyms)
            print(f"  {entry.name}={_text(entry.value)} sensitive={str(entry.is_sensitive).lower()} synonyms={{{synonyms}}}")
    if options.has("json"):
        print_json(documents)


def _text(value: str | None) -> str:
    return "null" if value is None else value


def _exists(admin: Admin, kind: str, name: str) -> bool:
    if kind == TOPICS:
        _check_topic(name)
        return name in admin.list_topics(list_internal=True)
    if kind in (BROKERS, LOGGERS):
        return not name or name in {str(node.id) for node in admin.describe_cluster().nodes}
    if kind == CLIENT_METRICS:
        return name in _resource_names(admin, CLIENT_METRICS)
    resources = _group_resources(admin)
    return name in {group.group_id for group in admin.list_groups()} or resources is None or name in resources


def _all_entities(admin: Admin, kind: str) -> list[str]:
    if kind == TOPICS:
        return sorted(admin.list_topics(list_internal=True))
    if kind in (BROKERS, LOGGERS):
        return [*(str(node.id) for node in admin.describe_cluster().nodes), ""]
    if kind == CLIENT_METRICS:
        return sorted(_resource_names(admin, CLIENT_METRICS))
    return sorted({group.group_id for group in admin.list_groups()} | (_group_resources(admin) or set()))


def _group_resources(admin: Admin) -> set[str] | None:
    try:
        return _resource_names(admin, GROUPS)
    except KafkaError as error:
        if error.code in (ErrorCode.UNSUPPORTED_VERSION, ErrorCode.CLUSTER_AUTHORIZATION_FAILED):
            return None
        raise


def _resource_names(admin: Admin, kind: str) -> set[str]:
    return {resource.name for resource in admin.list_config_resources([_resource_type(kind)])}


def _resource_type(kind: str) -> Any:
    from barnabas.client.admin.cluster.config_entries import ConfigResourceType

    return {
        TOPICS: ConfigResourceType.TOPIC,
        BROKERS: ConfigResourceType.BROKER,
        LOGGERS: ConfigResourceType.BROKER_LOGGER,
        CLIENT_METRICS: ConfigResourceType.CLIENT_METRICS,
        GROUPS: ConfigResourceType.GROUP,
    }[kind]


def _entries(admin: Admin, kind: str, name: str, *, synonyms: bool, everything: bool) -> list[Any]:
    """The settings of a resource by name; without `everything` those that are set for it."""
    from barnabas.client.admin.cluster.config_entries import ConfigResource, ConfigSource

    if kind == TOPICS and name:
        _check_topic(name)
    if kind in (BROKERS, LOGGERS) and name and not _is_int(name):
        raise BadArgument(f"The entity name for {kind} must be a valid integer broker id, found: {name}")
    source = {
        TOPICS: ConfigSource.DYNAMIC_TOPIC_CONFIG,
        BROKERS: ConfigSource.DYNAMIC_BROKER_CONFIG if name else ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG,
        CLIENT_METRICS: ConfigSource.DYNAMIC_CLIENT_METRICS_CONFIG,
        GROUPS: ConfigSource.DYNAMIC_GROUP_CONFIG,
    }.get(kind)
    resource = ConfigResource(_resource_type(kind), name)
    entries = admin.describe_configs([resource], include_synonyms=synonyms)[resource].entries
    return sorted((entry for entry in entries if everything or source is None or entry.source is source), key=lambda entry: entry.name)
